"""Equal error: unsplit solvers with a ladder of time steps, and the cheapest of them that is no worse than a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.evaluation.contender import Composed
from hycop.evaluation.opponents import errors_of
from hycop.grid import Array
from hycop.primitive import Primitive, is_linear
from hycop.primitives.exponential import ExponentialRungeKutta
from hycop.query import Query
from hycop.schemes import splitting

EQUAL_ERROR = 1.02
"""An opponent of at most this many times the policy's mean error is no worse."""

COSTED = 4
"""Queries on which the work of every rung is measured."""

STAGES = (2, 4)
"""Stages of the exponential methods that are tried."""

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of steps that are tried, the same for all samples."""

REACHES = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
"""Values of ``reach`` that are tried, for steps that suit each sample; the first are stable if L damps enough."""

COURANT = (2.0, 1.0, 0.5, 0.25, 0.125)
"""Multiples of its own Courant number that are tried for a solver that has one."""


@dataclass(frozen=True, eq=False)
class Rung:
    """An unsplit solver with a time step: ``knob`` names what sets the step, ``value`` is its setting."""

    primitive: Primitive
    knob: str
    value: float

    def solver(self, refinement: int = 1) -> Composed:
        return Composed(splitting("Lie"), Dictionary({"unsplit": self.primitive}), refinement)


def ladder(parts: Sequence[Primitive], whole: Primitive | None = None) -> tuple[Rung, ...]:
    """Unsplit solvers of the equation that ``parts`` advance, from coarse to fine steps.

    A solver of the ``whole`` equation with a Courant number is taken at several of those. Otherwise they are
    exponential Runge–Kutta methods of the parts themselves; there are none if a part has neither symbol nor rate.
    """
    if whole is not None:
        return tuple(_courant_ladder(whole))
    if not all(is_linear(part) or hasattr(part, "rate") for part in parts):
        return ()
    if all(map(is_linear, parts)):
        return (Rung(ExponentialRungeKutta(tuple(parts)), "exact", 1.0),)
    found = []
    for stages in STAGES:
        method = ExponentialRungeKutta(tuple(parts), stages)
        found += [Rung(replace(method, steps=steps), f"ETDRK{stages} steps", steps) for steps in STEPS]
        found += [Rung(replace(method, reach=reach), f"ETDRK{stages} reach", reach) for reach in REACHES]
    return tuple(found)


def _courant_ladder(whole: Primitive) -> list[Rung]:
    own = getattr(whole, "cfl", None)
    if own is None:
        return [Rung(whole, "own step", 1.0)]
    found, changeable = [], cast(Any, whole)
    for multiple in COURANT:
        try:
            found.append(Rung(replace(changeable, cfl=multiple * own), "cfl", multiple * own))
        except InvalidInputError:  # beyond its limit of stability
            continue
    return found


@dataclass(frozen=True)
class Choice:
    """The rung that was chosen, its mean error on the held-out queries, and whether that is no worse than asked."""

    rung: Rung
    error: float
    reached: bool


@dataclass(frozen=True, eq=False)
class UnsplitOpponents:
    """Unsplit solvers with their mean ``error`` on queries with a known truth, from the cheapest on."""

    rungs: Sequence[Rung]
    query: Query
    truth: Array
    refinement: int = 1
    error: str = "rel_l2"
    _known: dict[Rung, float] = field(default_factory=dict, init=False, repr=False)

    def best(self, target: float) -> Choice:
        """The cheapest rung whose error is at most 1.02 times the ``target``; if there is none, the most accurate."""
        if not self.rungs:
            raise InvalidInputError("there is no unsplit solver: a primitive has neither a symbol nor a rate")
        for rung in sorted(self.rungs, key=self._work):
            if self.mean_error(rung) <= EQUAL_ERROR * target:
                return Choice(rung, self.mean_error(rung), True)
        rung = min(self.rungs, key=self.mean_error)
        return Choice(rung, self.mean_error(rung), False)

    def mean_error(self, rung: Rung) -> float:
        if rung not in self._known:
            states = rung.solver(self.refinement).solve(self.query).states
            self._known[rung] = float(errors_of(self.error, states, self.truth, self.query).mean())
        return self._known[rung]

    def _work(self, rung: Rung) -> float:
        few = self.query.take(slice(0, COSTED))
        return float(rung.solver(self.refinement).solve(few).work.mean())
