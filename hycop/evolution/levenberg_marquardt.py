"""Least squares: normal equations that add up over shares of the residuals, and damped Gauss–Newton on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

import numpy as np

from hycop.errors import InvalidInputError
from hycop.evolution.optimizer import (
    Array,
    NoFitnessError,
    Optimizer,
    State,
    beginning,
    check_positive,
    checked_fitness,
)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Σ_i w_i r_i² to first order in θ: the Gram matrix of the weighted residual r and its derivatives J = ∂r/∂θ.

        gram = [ rᵀWr  rᵀWJ ]
               [ JᵀWr  JᵀWJ ]    (half the gradient and half the Gauss–Newton Hessian of the loss)

    The equations of shares of the residuals add up; sum them in a fixed order, as ``total`` does.
    """

    gram: Array

    @property
    def loss(self) -> float:
        return float(self.gram[0, 0])

    @property
    def gradient(self) -> Array:
        return np.asarray(self.gram[1:, 0])

    @property
    def curvature(self) -> Array:
        return np.asarray(self.gram[1:, 1:])

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram + other.gram)

    @classmethod
    def total(cls, grams: Array) -> NormalEquations:
        """The sum of Gram matrices (share, 1+dim, 1+dim), first to last."""
        return cls(np.add.reduce(grams, axis=0))


def normal_equations(residuals: Array, weights: Array, steps: Array) -> NormalEquations:
    """Normal equations of residuals (1+dim, n) at θ and at θ + h_j e_j, with weights (n,) ≥ 0 and steps h (dim,)."""
    width = 1024  # columns that fit in the cache; a part of the summation order, so not to be tuned
    gram = np.zeros((len(residuals), len(residuals)))
    with np.errstate(invalid="ignore", over="ignore"):
        for first in range(0, residuals.shape[1], width):
            columns = np.asarray(residuals[:, first : first + width], dtype=np.float64)
            rows = np.concatenate((columns[:1], (columns[1:] - columns[:1]) / steps[:, None]))
            rows *= np.sqrt(weights[first : first + width])
            gram += np.einsum("in,jn->ij", rows, rows)
    return NormalEquations(gram)


@dataclass(frozen=True, eq=False, kw_only=True)
class LMState(State):
    """``loss`` at ``theta``, trust radius, scale √D; while trial points are evaluated, those and their equations."""

    loss: float
    radius: float
    scale: Array
    gram: Array
    trials: Array

    @property
    def phase(self) -> Literal["linearise", "try"]:
        return "try" if len(self.trials) else "linearise"


_LEAST_DAMPING = 1e-10  # below, directions in which the loss is flat to rounding would be followed
_NO_TRIALS: dict[str, Any] = {"gram": np.zeros((0, 0)), "trials": np.zeros((0, 0))}


@dataclass(frozen=True)
class LevenbergMarquardt(Optimizer[LMState]):
    """Damped Gauss–Newton for Σ_i w_i r_i(θ)², always on the same residuals (Moré 1978, doi:10.1007/BFb0067700).

    Two phases take turns. To ``linearise``, ask gives the stencil θ, θ + h_1 e_1, …, θ + h_dim e_dim with forward
    steps h_j = difference · max(1, |θ_j|), and tell wants their ``NormalEquations``. To ``try``, ask gives the points

        θ + δ,   (JᵀWJ + μ D) δ = −JᵀWr,   ‖D^½ δ‖ ≤ radius · reach,   D = largest diag JᵀWJ so far (≥ 10⁻⁸ max D),

    with the least μ for each reach, and tell wants their losses. The boldest that gains a quarter of what the model
    predicts is taken, or else the best; the radius follows it, or shrinks if none lowers the loss. ``damping`` is the
    μ of the first radius. Converged: gains are below ``tolerance`` times the loss, or only steps below h are left.
    A parameter whose derivative is not finite rests; a trial whose loss is not finite is refused; seeds are not used.
    Good values: difference 1.5e-8 (√eps) for float64 residuals, 3e-4 for float32.
    """

    damping: float = 1e-2
    reach: tuple[float, ...] = (2.0, 1.0, 0.5)
    difference: float = 1.5e-8
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        check_positive(damping=self.damping, reach=min(self.reach), difference=self.difference)

    def start(self, theta0: Array, seed: int = 0) -> LMState:
        return LMState(**beginning(theta0, seed), loss=inf, radius=0.0, scale=np.zeros(1), **_NO_TRIALS)

    def members(self, state: LMState) -> int:
        return len(state.trials) or 1 + state.theta.size

    def steps(self, state: LMState) -> Array:
        """The differences h (dim,) of the stencil as rounding leaves them, for ``normal_equations``."""
        return np.asarray(state.theta + self.difference * np.maximum(1.0, np.abs(state.theta)) - state.theta)

    def ask_some(self, state: LMState, first: int, count: int) -> Array:
        stencil = np.vstack((state.theta, state.theta + np.diag(self.steps(state))))
        return np.array((state.trials if len(state.trials) else stencil)[first : first + count])

    def tell(self, state: LMState, fitness: Array | NormalEquations) -> LMState:
        state = replace(state, generation=state.generation + 1, converged=False)
        if isinstance(fitness, NormalEquations) != (state.phase == "linearise"):
            raise InvalidInputError(f"Levenberg–Marquardt: {type(fitness).__name__} told in phase '{state.phase}'")
        if isinstance(fitness, NormalEquations):
            return self._linearised(state, fitness.gram)
        return self._tried(state, checked_fitness(fitness, len(state.trials), state.generation, finite=0))

    def _linearised(self, state: LMState, gram: Array) -> LMState:
        usable = np.isfinite(gram[0]) & np.isfinite(np.diagonal(gram))
        if not usable[0] or not usable[1:].any():
            raise NoFitnessError(state.generation - 1, "the present loss or all its derivatives are not finite")
        gram = np.where(np.outer(usable, usable), gram, 0.0)
        norms = np.sqrt(np.diagonal(gram)[1:])
        scale = np.maximum(np.maximum(state.scale, norms), 1e-4 * norms.max() or 1.0)
        return self._proposed(replace(state, loss=float(gram[0, 0]), scale=scale, gram=gram))

    def _tried(self, state: LMState, losses: Array) -> LMState:
        moves, equations = state.trials - state.theta, NormalEquations(state.gram)
        bends = np.add.reduce(equations.curvature * moves[:, None], axis=2)
        predicted = -np.add.reduce(moves * (2 * equations.gradient + bends), axis=1)
        lengths = np.sqrt(np.add.reduce((state.scale * moves) ** 2, axis=1))
        gains = state.loss - losses
        bold = (gains >= predicted / 4) & (gains > 0)
        best = int(np.argmax(bold if bold.any() else gains))
        if not gains[best] > 0:
            return self._proposed(replace(state, radius=float(lengths[-1]) / 4))
        return replace(
            state,
            theta=state.trials[best],
            loss=float(losses[best]),
            radius=float(lengths[best] if best else max(lengths[0], state.radius)),
            converged=bool(max(gains[best], predicted[best]) <= self.tolerance * state.loss),
            **_NO_TRIALS,
        )

    def _proposed(self, state: LMState) -> LMState:
        """The state with trial points, boldest first, or converged. D^-½ JᵀWJ D^-½ = V Λ Vᵀ makes a μ one division."""
        equations = NormalEquations(state.gram)
        # eigh, not solve: it keeps its bits for any number of BLAS threads (up to some 128 parameters).
        eigenvalues, v = np.linalg.eigh(equations.curvature / np.outer(state.scale, state.scale))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        q = np.add.reduce(v * (equations.gradient / state.scale)[:, None], axis=0)
        radius = state.radius or float(np.linalg.norm(q / (eigenvalues + self.damping)))
        dampings = _dampings(eigenvalues, q, radius * np.array(self.reach))
        mu = dampings[0] if len(state.trials) else _LEAST_DAMPING
        predicted = np.sum((q / (eigenvalues + mu)) ** 2 * (eigenvalues + 2 * mu))
        stuck = len(state.trials) and state.radius <= np.linalg.norm(state.scale * self.steps(state))
        if stuck or predicted <= self.tolerance * state.loss:
            return replace(state, converged=True, **_NO_TRIALS)
        moves = np.add.reduce(v * (q / (eigenvalues + dampings[:, None]))[:, None], axis=2) / state.scale
        return replace(state, radius=radius, trials=state.theta - moves)


def _dampings(eigenvalues: Array, q: Array, radii: Array) -> Array:
    """The least μ with ‖q / (Λ + μ)‖ ≤ radius for each radius, increasing and without repetitions, by bisection."""
    low = np.full(radii.shape, _LEAST_DAMPING)
    inside = np.linalg.norm(q / (eigenvalues + low[:, None]), axis=1) <= radii
    if inside.all():  # also without a gradient, where bisection would divide nothing by nothing
        return low[:1]
    high = np.linalg.norm(q) / np.where(inside, 1.0, radii)
    for _ in range(50):
        middle = np.sqrt(low * high)
        long = np.linalg.norm(q / (eigenvalues + middle[:, None]), axis=1) > radii
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    return np.unique(np.where(inside, _LEAST_DAMPING, high))
