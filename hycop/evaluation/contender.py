"""Contenders of a table: a solver, which has ``solve(query) -> Outcome``, and its name in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evaluation.variant import Variant
from hycop.execution import Outcome, measure, run
from hycop.grid import Array
from hycop.program import Program, ProgramBatch
from hycop.query import Query

SHORT, RUNS = 0.2, 5
"""``timed`` runs a solver for this many seconds or this many times; the fastest run counts."""

WARM_UP = 1e-3
"""Fraction of the query time of the warm-up run, so that compilation does not count."""


class Solver(Protocol):
    """Anything that solves queries: a trained model, a scheme or a program with its dictionary, a network. One that has
    ``any_time = False`` answers at some times only."""

    def solve(self, query: Query) -> Outcome: ...


class Writer(Protocol):
    """Anything that writes programs: a classical scheme, a program written by hand, a policy."""

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch: ...


class Composing(Solver, Protocol):
    """A solver that runs programs and can show them."""

    def programs(self, query: Query) -> ProgramBatch: ...


@dataclass(frozen=True)
class ByHand:
    """One hand-written program for every query."""

    program: Program

    def __str__(self) -> str:
        return str(self.program)

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        names = dictionary.names_in(step.primitive for step in self.program)
        return ProgramBatch.of([self.program], names).take(np.zeros(query.batch, dtype=np.int64))


@dataclass(frozen=True)
class Composed:
    """A solver made of a writer of programs and a ``dictionary``. Programs run on a grid ``refinement`` times finer
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

    def states(self, query: Query) -> Array:
        """The states of ``solve`` alone: to measure the work takes a tenth of the time."""
        return run(self.programs(query), self.dictionary, query, refinement=self.refinement, strict=False)


@dataclass(frozen=True)
class Contender:
    """A solver with its name in rows: method, dictionary and variant.

    A ``boundary`` replaces that of every query.
    """

    method: str
    solver: Solver
    dictionary: str = ""
    variant: Variant = field(default_factory=Variant)
    boundary: str | None = None

    @property
    def any_time(self) -> bool:
        """Whether the solver answers at any time."""
        return bool(getattr(self.solver, "any_time", True))

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
        """Work and seconds, as fields of a row."""
        return {"work": float(self.work.mean()), "seconds_per_sample": self.seconds}


def timed(solver: Solver, query: Query) -> Timed:
    """A solver's answer and its cost, from the query to the states.

    A warm-up with a tiny query time comes first, so that compilation does not count. Short runs are repeated, and the
    fastest counts.
    """
    few = query.take(slice(0, 2))
    solver.solve(replace(few, time=WARM_UP * few.time) if getattr(solver, "any_time", True) else few)
    seconds: list[float] = []
    while True:
        start = perf_counter()
        done = solver.solve(query)
        seconds.append(perf_counter() - start)
        if sum(seconds) >= SHORT or len(seconds) >= RUNS:
            return Timed(done.states, done.work, min(seconds) / query.batch)
