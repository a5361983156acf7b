"""Ask/tell optimisers on explicit, frozen state: they know vectors, seeds and losses, and nothing of what is optimised.

``state = optimizer.start(theta0, seed)``; then, as often as wanted, evaluate the rows of ``optimizer.ask(state)`` and
``state = optimizer.tell(state, losses)``. Lower is better. A state holds all that is needed to go on, as plain
numbers, so a run that was stored with ``to_arrays`` and restored goes on as if nothing had happened, to the bit.
Whoever evaluates members [a, b) makes them alone with ``ask_some``, and sums are not left to BLAS and its threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from math import ceil, inf
from typing import Any, Literal, Protocol, TypeVar

import cmaes
import numpy as np
import numpy.typing as npt

from hycop.errors import HyCOPError, InvalidInputError

Array = npt.NDArray[Any]
S = TypeVar("S", bound="State")


class NoFitnessError(HyCOPError, ArithmeticError):
    """Not one candidate of a generation has a finite loss, so there is no direction to go."""

    def __init__(self, generation: int, what: str = "no candidate has a finite loss") -> None:
        super().__init__(f"generation {generation}: {what}; start from parameters that run, or search more narrowly")


def noise(seed: int, generation: int, first: int, count: int, dim: int) -> Array:
    """Standard normal vectors number first … first+count−1 of a generation, shape (count, dim).

    Vector i is drawn from Philox with key (seed, generation) from counter i·2¹⁹² on: it depends on nothing else.
    """
    vectors = np.empty((count, dim))
    for i, vector in enumerate(vectors, start=first):
        bits = np.random.Philox(key=np.array([seed, generation], np.uint64), counter=np.array([0, 0, 0, i], np.uint64))
        np.random.Generator(bits).standard_normal(out=vector)
    return vectors


def centred_ranks(loss: Array) -> Array:
    """Rank shaping: −½ for the lowest loss to ½ for the highest; equal losses share their mean rank."""
    _, place, counts = np.unique(loss, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(ranks[place] / (len(loss) - 1) - 0.5)


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """``theta``: the answer so far; ``generation``: calls of ``tell``; ``converged``: no gain is to be expected."""

    theta: Array
    generation: int
    seed: int
    converged: bool = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, value.copy())
                getattr(self, name).setflags(write=False)

    def to_arrays(self) -> dict[str, Array]:
        """Every field as a numeric array, scalars with no axes."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_arrays(cls: type[S], arrays: Mapping[str, Array]) -> S:
        """The state that gave these arrays: ``optimizer.start(theta0, seed).from_arrays(stored)``."""
        names = {field.name for field in fields(cls)}
        if names != set(arrays):
            raise InvalidInputError(f"optimiser state: {sorted(names ^ set(arrays))} missing or unknown; start anew")
        values: dict[str, Any] = {name: value if value.ndim else value.item() for name, value in arrays.items()}
        return cls(**values)


class Optimizer(Protocol[S]):
    """What the training loop needs of an optimiser; its fields are its settings, and all else is in the state."""

    def start(self, theta0: Array, seed: int) -> S: ...

    def members(self, state: S) -> int:
        """How many candidates the next ``tell`` is about."""

    def ask_some(self, state: S, first: int, count: int) -> Array:
        """Rows first … first+count−1 of ``ask``, to the bit."""

    def tell(self, state: S, fitness: Array) -> S: ...

    def ask(self, state: S) -> Array:
        """The candidates to evaluate, shape (members, dim)."""
        return self.ask_some(state, 0, self.members(state))


@dataclass(frozen=True)
class OpenES(Optimizer[State]):
    """OpenAI evolution strategy, the paper's Algorithm 1 (Salimans et al. 2017, arXiv:1703.03864).

    With M = population/2 antithetic pairs θ ± σ ε_i (members 2i and 2i+1) and centred ranks w of all losses,

        g = 1/(2Mσ) Σ_i (w_i⁺ − w_i⁻) ε_i,    θ ← (1 − λ)(θ − η g).

    A loss that is not finite ranks as the worst. Settings of the paper: 200 generations of the defaults.
    """

    population: int = 500
    sigma: float = 0.02
    learning_rate: float = 5e-3
    weight_decay: float = 1e-3

    def __post_init__(self) -> None:
        if self.population < 2 or self.population % 2:
            raise InvalidInputError(f"population {self.population}: must be even, two members to an antithetic pair")
        _check_positive(sigma=self.sigma)

    def start(self, theta0: Array, seed: int) -> State:
        return State(**_beginning(theta0, seed))

    def members(self, state: State) -> int:
        return self.population

    def ask_some(self, state: State, first: int, count: int) -> Array:
        pair = first // 2
        epsilon = noise(state.seed, state.generation, pair, ceil((first + count) / 2) - pair, state.theta.size)
        signed = np.stack((epsilon, -epsilon), axis=1).reshape(-1, state.theta.size)
        return np.asarray(state.theta + self.sigma * signed[first - 2 * pair :][:count])

    def tell(self, state: State, fitness: Array) -> State:
        w = centred_ranks(_checked_fitness(fitness, self.population, state.generation))
        epsilon = noise(state.seed, state.generation, 0, self.population // 2, state.theta.size)
        g = np.add.reduce((w[0::2] - w[1::2])[:, None] * epsilon, axis=0) / (self.population * self.sigma)
        theta = (1 - self.weight_decay) * (state.theta - self.learning_rate * g)
        return replace(state, theta=theta, generation=state.generation + 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class CMAState(State):
    """Mean (``theta``), step size, covariance with its eigenvectors and root eigenvalues, and the evolution paths."""

    sigma: float
    covariance: Array
    basis: Array
    scales: Array
    path_sigma: Array
    path_c: Array
    history: Array


# Where the library keeps what evolves, as its own __getstate__ names it; all else follows from the settings.
_EVOLVING = ("theta", "generation", "sigma", "covariance", "basis", "scales", "path_sigma", "path_c", "history")
_ATTRIBUTES = ("_mean", "_g", "_sigma", "_c_1d", "_B", "_D", "_p_sigma", "_pc", "_funhist_values")


@dataclass(frozen=True)
class CMA(Optimizer[CMAState]):
    """Covariance matrix adaptation evolution strategy (Hansen 2016, arXiv:1604.00772) by the library ``cmaes``.

    Members are x = m + σ B D z with C = B D² Bᵀ and our own counter-based z; the library does the update only (by BLAS:
    from 100 parameters on, the last bits depend on the BLAS threads of the process that tells). It is made anew for
    every ``tell`` from plain arrays by its own pickling protocol. ``converged`` is its stopping rule, and also true if
    it diverged. Good values: population 4 + 3 ln dim or more, sigma a third of the distance to the optimum.
    """

    population: int
    sigma: float

    def __post_init__(self) -> None:
        if self.population < 4:
            raise InvalidInputError(f"population {self.population}: CMA needs at least 4 members")
        _check_positive(sigma=self.sigma)

    def start(self, theta0: Array, seed: int) -> CMAState:
        beginning = _beginning(theta0, seed)
        strategy = cmaes.CMA(beginning["theta"], self.sigma, population_size=self.population, seed=0)
        state = _exported(strategy, beginning["seed"])
        return replace(state, history=np.zeros_like(state.history))  # the library leaves this memory as it finds it

    def members(self, state: CMAState) -> int:
        return self.population

    def ask_some(self, state: CMAState, first: int, count: int) -> Array:
        z = noise(state.seed, state.generation, first, count, state.theta.size)
        y = np.zeros_like(z)
        for j, scale in enumerate(state.scales):
            y += z[:, j, None] * (scale * state.basis[:, j])
        return np.asarray(state.theta + state.sigma * y)

    def tell(self, state: CMAState, fitness: Array) -> CMAState:
        fitness = _checked_fitness(fitness, self.population, state.generation)
        strategy = cmaes.CMA(state.theta, self.sigma, population_size=self.population, seed=0)
        evolved = {theirs: getattr(state, ours) for ours, theirs in zip(_EVOLVING, _ATTRIBUTES, strict=True)}
        strategy.__setstate__(strategy.__getstate__() | deepcopy(evolved))
        strategy.tell(list(zip(self.ask(state), fitness.tolist(), strict=True)))
        return _exported(strategy, state.seed)


def _exported(strategy: cmaes.CMA, seed: int) -> CMAState:
    converged = bool(strategy.should_stop())  # which also factorises the covariance
    attributes = strategy.__getstate__()
    evolved = {ours: attributes[theirs] for ours, theirs in zip(_EVOLVING, _ATTRIBUTES, strict=True)}
    return CMAState(**evolved, seed=seed, converged=converged)


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
        _check_positive(damping=self.damping, reach=min(self.reach), difference=self.difference)

    def start(self, theta0: Array, seed: int = 0) -> LMState:
        return LMState(**_beginning(theta0, seed), loss=inf, radius=0.0, scale=np.zeros(1), **_NO_TRIALS)

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
        return self._tried(state, _checked_fitness(fitness, len(state.trials), state.generation, finite=0))

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


def _check_positive(**settings: float) -> None:
    for name, value in settings.items():
        if not 0 < value < inf:
            raise InvalidInputError(f"{name} {value}: a positive number is needed")


def _beginning(theta0: Array, seed: int) -> dict[str, Any]:
    theta = np.array(theta0, dtype=np.float64)
    if theta.ndim != 1 or not theta.size or not np.isfinite(theta).all():
        raise InvalidInputError(f"theta of shape {theta.shape}: one flat vector of finite parameters is needed")
    if not 0 <= seed < 2**64:
        raise InvalidInputError(f"seed {seed}: a whole number from 0 to 2^64 - 1 is needed")
    return {"theta": theta, "generation": 0, "seed": int(seed)}


def _checked_fitness(fitness: Array, members: int, generation: int, finite: int = 1) -> Array:
    fitness = np.asarray(fitness, dtype=np.float64)
    if fitness.shape != (members,):
        raise InvalidInputError(f"fitness of shape {fitness.shape}: one loss for each of {members} members is needed")
    if np.isfinite(fitness).sum() < finite:
        raise NoFitnessError(generation)
    return np.where(np.isfinite(fitness), fitness, inf)
