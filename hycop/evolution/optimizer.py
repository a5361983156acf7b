"""What every optimiser is: settings, a frozen state, ask and tell; and the random vectors they draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Any, Protocol, TypeVar

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
    stream = np.random.Philox(key=np.array([seed, generation], np.uint64))
    draw, start = np.random.Generator(stream).standard_normal, stream.state  # a new stream for each takes four times
    for i, vector in enumerate(vectors, start=first):
        start["state"]["counter"][3] = i
        stream.state = start
        draw(out=vector)
    return vectors


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


def check_positive(**settings: float) -> None:
    for name, value in settings.items():
        if not 0 < value < inf:
            raise InvalidInputError(f"{name} {value}: a positive number is needed")


def beginning(theta0: Array, seed: int) -> dict[str, Any]:
    theta = np.array(theta0, dtype=np.float64)
    if theta.ndim != 1 or not theta.size or not np.isfinite(theta).all():
        raise InvalidInputError(f"theta of shape {theta.shape}: one flat vector of finite parameters is needed")
    if not 0 <= seed < 2**64:
        raise InvalidInputError(f"seed {seed}: a whole number from 0 to 2^64 - 1 is needed")
    return {"theta": theta, "generation": 0, "seed": int(seed)}


def checked_fitness(fitness: Array, members: int, generation: int, finite: int = 1) -> Array:
    fitness = np.asarray(fitness, dtype=np.float64)
    if fitness.shape != (members,):
        raise InvalidInputError(f"fitness of shape {fitness.shape}: one loss for each of {members} members is needed")
    if np.isfinite(fitness).sum() < finite:
        raise NoFitnessError(generation)
    return np.where(np.isfinite(fitness), fitness, inf)
