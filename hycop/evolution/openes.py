"""The evolution strategy of the source paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from hycop.errors import InvalidInputError
from hycop.evolution.optimizer import Array, Optimizer, State, beginning, check_positive, checked_fitness, noise


def centred_ranks(loss: Array) -> Array:
    """Rank shaping: −½ for the lowest loss to ½ for the highest; equal losses share their mean rank."""
    _, place, counts = np.unique(loss, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(ranks[place] / (len(loss) - 1) - 0.5)


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
        check_positive(sigma=self.sigma)

    def start(self, theta0: Array, seed: int) -> State:
        return State(**beginning(theta0, seed))

    def members(self, state: State) -> int:
        return self.population

    def ask_some(self, state: State, first: int, count: int) -> Array:
        pair = first // 2
        epsilon = noise(state.seed, state.generation, pair, ceil((first + count) / 2) - pair, state.theta.size)
        signed = np.stack((epsilon, -epsilon), axis=1).reshape(-1, state.theta.size)
        return np.asarray(state.theta + self.sigma * signed[first - 2 * pair :][:count])

    def tell(self, state: State, fitness: Array) -> State:
        w = centred_ranks(checked_fitness(fitness, self.population, state.generation))
        epsilon = noise(state.seed, state.generation, 0, self.population // 2, state.theta.size)
        g = np.add.reduce((w[0::2] - w[1::2])[:, None] * epsilon, axis=0) / (self.population * self.sigma)
        theta = (1 - self.weight_decay) * (state.theta - self.learning_rate * g)
        return replace(state, theta=theta, generation=state.generation + 1)
