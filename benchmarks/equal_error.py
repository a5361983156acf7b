"""An opponent at the error of a model: of a family of solvers with finer and finer steps (or grids), what the one with
that error would take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol

import numpy as np

from benchmarks.measure import Seconds, interleaved
from hycop.data import Dataset
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.query import Query

EQUAL = 1.1
"""Errors that differ by at most this factor are equal."""


class Family(Protocol):
    """Solvers of one kind, from the coarsest ``level`` to the finest."""

    @property
    def name(self) -> str: ...

    @property
    def levels(self) -> Sequence[int]: ...

    def solver(self, level: int, query: Query) -> Callable[[], Array]:
        """The call that answers these queries."""
        ...


def mean_error(states: Array, data: Dataset) -> float:
    return float(rel_l2(np.asarray(states), data.truth, data.setting).mean())


@dataclass(frozen=True)
class Match:
    """Levels of a family whose errors enclose that of a model; both are the same where one is equal within 10 %.

    ``reached`` is false if no level is as accurate; the most accurate then stands for the family.
    """

    family: Family
    coarse: int
    fine: int
    errors: tuple[float, float]
    weight: float
    reached: bool = True

    @property
    def error(self) -> float:
        """The error that the seconds of ``at_equal_error`` stand for."""
        return float(self.errors[0] ** (1 - self.weight) * self.errors[1] ** self.weight)

    def told(self) -> str:
        if not self.reached:
            return f"{self.family.name} reaches {self.errors[1]:.2g} only (level {self.fine})"
        if self.coarse == self.fine:
            return f"{self.family.name}, level {self.fine}: error {self.errors[1]:.2g}"
        pair = f"levels {self.coarse} and {self.fine}: errors {self.errors[0]:.2g} and {self.errors[1]:.2g}"
        return f"{self.family.name}, seconds between {pair}"

    def calls(self, query: Query) -> dict[str, Callable[[], object]]:
        return {f"{self.family.name} {level}": self.family.solver(level, query) for level in {self.coarse, self.fine}}

    def at_equal_error(self, seconds: dict[str, Seconds]) -> Seconds:
        """What the family takes at the error of the model: between the two, on straight lines of logarithms."""
        coarse, fine = (seconds[f"{self.family.name} {level}"] for level in (self.coarse, self.fine))
        return between(coarse, fine, self.weight)


def between(coarse: Seconds, fine: Seconds, weight: float) -> Seconds:
    """coarse^(1 − weight)·fine^weight, round by round."""
    pairs = (zip(*both, strict=True) for both in zip(coarse, fine, strict=True))
    return Seconds(*([a ** (1 - weight) * b**weight for a, b in pair] for pair in pairs))


def match(family: Family, data: Dataset, error: float) -> Match:
    """The levels of a family around an error: the first that is as accurate, and the one before it."""
    before: tuple[int, float] | None = None
    best: tuple[int, float] | None = None
    for level in family.levels:
        with np.errstate(all="ignore"):
            found = mean_error(family.solver(level, data.query)(), data)
        if not np.isfinite(found):
            continue
        if found <= EQUAL * error:
            if before is None or found >= error / EQUAL:
                return Match(family, level, level, (found, found), 1.0)
            share = log(before[1] / error) / log(before[1] / found)
            return Match(family, before[0], level, (before[1], found), share)
        before = level, found
        best = before if best is None or found < best[1] else best
    if best is None:
        raise RuntimeError(f"{family.name}: no level gives a finite answer")
    return Match(family, best[0], best[0], (best[1], best[1]), 1.0, False)


def fastest(matches: Sequence[Match], query: Query, rounds: int = 2) -> Match:
    """The family that takes least for a query, of those that reach the error; the most accurate if none does."""
    able = [each for each in matches if each.reached] or [min(matches, key=lambda each: each.error)]
    if len(able) == 1:
        return able[0]
    seconds = interleaved({name: call for each in able for name, call in each.calls(query).items()}, rounds, 0.0)
    return min(able, key=lambda each: min(each.at_equal_error(seconds).cpu))
