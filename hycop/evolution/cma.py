"""Covariance matrix adaptation, by a library, on a state of plain arrays."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hycop.errors import InvalidInputError
from hycop.evolution.optimizer import Array, Optimizer, State, beginning, check_positive, checked_fitness, noise

if TYPE_CHECKING:
    import cmaes


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
        check_positive(sigma=self.sigma)

    def start(self, theta0: Array, seed: int) -> CMAState:
        first = beginning(theta0, seed)
        state = _exported(self._strategy(first["theta"]), first["seed"])
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
        fitness = checked_fitness(fitness, self.population, state.generation)
        strategy = self._strategy(state.theta)
        evolved = {theirs: getattr(state, ours) for ours, theirs in zip(_EVOLVING, _ATTRIBUTES, strict=True)}
        strategy.__setstate__(strategy.__getstate__() | deepcopy(evolved))
        strategy.tell(list(zip(self.ask(state), fitness.tolist(), strict=True)))
        return _exported(strategy, state.seed)

    def _strategy(self, mean: Array) -> cmaes.CMA:
        import cmaes  # imports scipy.stats, which takes a second

        return cmaes.CMA(mean, self.sigma, population_size=self.population, seed=0)


def _exported(strategy: cmaes.CMA, seed: int) -> CMAState:
    converged = bool(strategy.should_stop())  # which also factorises the covariance
    attributes = strategy.__getstate__()
    evolved = {ours: attributes[theirs] for ours, theirs in zip(_EVOLVING, _ATTRIBUTES, strict=True)}
    return CMAState(**evolved, seed=seed, converged=converged)
