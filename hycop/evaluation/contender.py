"""Who is compared in a table: anything that has ``solve(query) -> Outcome``, and the name that it has in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evaluation.variant import Variant
from hycop.execution import Outcome, measure
from hycop.grid import Array
from hycop.program import Program, ProgramBatch
from hycop.query import Query

SHORT, RUNS = 0.2, 5
"""A solver is run until this many seconds have passed or this many runs are done; the fastest run counts."""

WARM_UP = 1e-3
"""Share of the query time for which a solver runs once, so that compilation does not count."""


class Solver(Protocol):
    """Anything that can be asked: a trained model, a scheme or a program with its dictionary, later a network."""

    def solve(self, query: Query) -> Outcome: ...


class Writer(Protocol):
    """Anything that writes programs: a classical scheme, a program written by hand, a policy."""

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch: ...


class Composing(Solver, Protocol):
    """A solver that answers by programs, which it can show."""

    def programs(self, query: Query) -> ProgramBatch: ...


@dataclass(frozen=True)
class ByHand:
    """One program for every query, as it was written."""

    program: Program

    def __str__(self) -> str:
        return str(self.program)

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        return ProgramBatch.of([self.program], dictionary.names).take(np.zeros(query.batch, dtype=np.int64))


@dataclass(frozen=True)
class Composed:
    """A solver from anything that writes programs: they run with ``dictionary``, on a grid ``refinement`` times finer
    than the query's. A state that becomes NaN or infinite is a result, not an error.

    An unsplit solver is ``Composed(splitting("Lie"), dictionary)``, where the dictionary has a single primitive.
    """

    writer: Writer
    dictionary: Dictionary
    refinement: int = 1

    def programs(self, query: Query) -> ProgramBatch:
        return self.writer.programs(query, self.dictionary)

    def solve(self, query: Query) -> Outcome:
        return measure(self.programs(query), self.dictionary, query, refinement=self.refinement, strict=False)


@dataclass(frozen=True)
class Contender:
    """A solver under the name that its rows have: method, dictionary and variant.

    With a ``boundary`` of its own it is asked in that box, whatever the box of the query.
    """

    method: str
    solver: Solver
    dictionary: str = ""
    variant: Variant = field(default_factory=Variant)
    boundary: str | None = None

    def solve(self, query: Query) -> Outcome:
        if self.boundary is not None:
            grid = query.grid.with_boundary(self.boundary)
            query = replace(query, setting=query.setting.with_grid(grid))
        return self.solver.solve(query)


def composed(
    writers: Sequence[Writer], dictionary: Dictionary, *, label: str = "", refinement: int = 1
) -> list[Contender]:
    """Contenders from schemes or programs, each under its own name; ``label`` is the dictionary's name in rows."""
    return [Contender(str(writer), Composed(writer, dictionary, refinement), label) for writer in writers]


class Timed(NamedTuple):
    """States (batch, channel, *grid), work (batch,), and the seconds per sample of the fastest run."""

    states: Array
    work: Array
    seconds: float

    @property
    def cost(self) -> Mapping[str, float]:
        """The fields of a row that say what it took."""
        return {"work": float(self.work.mean()), "seconds_per_sample": self.seconds}


def timed(solver: Solver, query: Query) -> Timed:
    """A solver's answer and its cost, from the query to the states.

    It first runs for next to no time, so that compilation does not count. A short run is repeated, and the best counts.
    """
    few = query.take(slice(0, 2))
    solver.solve(replace(few, time=WARM_UP * few.time))
    seconds: list[float] = []
    while True:
        start = perf_counter()
        done = solver.solve(query)
        seconds.append(perf_counter() - start)
        if sum(seconds) >= SHORT or len(seconds) >= RUNS:
            return Timed(done.states, done.work, min(seconds) / query.batch)
