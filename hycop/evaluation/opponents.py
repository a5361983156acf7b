"""Equal work: which classical schemes take no more work than a policy, and which of them is the best.

Classical schemes are splittings, and unsplit exponential integrators made of the same primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import floor
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evaluation.contender import Composed
from hycop.execution import expected_work
from hycop.grid import Array
from hycop.metrics import find_metric
from hycop.query import Query
from hycop.schemes import MOST_SUBSTEPS, Classical, Scheme, Unsplit, portfolio
from hycop.scope import WithinTraining

EQUAL_WORK = 1.02
"""Opponents may take at most this many times the policy's mean work."""

FEW, FEWEST = 32, 8
"""Most and fewest queries on which the error of every affordable scheme is estimated; more where states are small."""

VALUES_AT_ONCE = 2**16
"""Target for the number of values in the states of those queries together."""

COSTED = 8
UNSURE = (0.15, 0.15, 0.04)
"""The ratio of a scheme's work to the policy's is first estimated from the initial states of ``COSTED`` queries. While
it is closer than this to ``EQUAL_WORK``, it is measured: on these queries, on four times as many, and on all. The best
splitting is searched among the schemes whose estimate is not beyond this: only those that may win are measured."""

SUBSTEPS = (1, 2, 3, 4, 6, 8)
"""Numbers of substeps that are tried for each scheme."""

FINALISTS = 8
"""Number of the best schemes that are compared again, on this many times more queries."""

STAGES = (2, 4)
"""Stages of the unsplit solvers that are tried."""

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of their steps that are tried, and the most that equal work allows."""

NO_WORSE = 1.02
"""An unsplit solver of at most this many times the smallest error is no worse; of these the cheapest is taken."""


class Rivals(NamedTuple):
    """The best classical scheme at equal work, and the best splitting, which is the same where no unsplit solver is
    better."""

    best: Classical
    splitting: Scheme


@dataclass(frozen=True, eq=False)
class Costs:
    """Work of schemes divided by that of a policy, ``work`` (batch,) on queries ``asked``. Each is computed once.
    ``composed`` makes a solver of a scheme."""

    composed: Callable[[Classical], Composed]
    asked: Query
    work: Array
    _estimated: dict[Scheme, float] = field(default_factory=dict, init=False, repr=False)
    _known: dict[Scheme, float] = field(default_factory=dict, init=False, repr=False)

    def estimated(self, scheme: Scheme) -> float:
        """From the initial states of a few queries."""
        if scheme not in self._estimated:
            few, solver = self.asked.take(self._spread[0]), self.composed(scheme)
            expected = expected_work(solver.programs(few), solver.dictionary, few, refinement=solver.refinement)
            self._estimated[scheme] = self._share(float(expected.mean()), self._spread[0])
        return self._estimated[scheme]

    def of(self, scheme: Scheme) -> float:
        """Measured as far as is needed to tell whether it is above ``EQUAL_WORK``."""
        if scheme not in self._known:
            found = self.estimated(scheme)
            for chosen, unsure in zip(self._spread, UNSURE, strict=True):
                if not abs(found - EQUAL_WORK) < unsure:
                    break
                found = self._share(float(self.composed(scheme).solve(self.asked.take(chosen)).work.mean()), chosen)
            self._known[scheme] = found
        return self._known[scheme]

    @cached_property
    def _spread(self) -> tuple[Array, ...]:
        """Few queries, more and all, by the policy's work: cheap and costly ones."""
        every, batch = np.argsort(self.work, kind="stable"), self.asked.batch
        counts = (COSTED, 4 * COSTED)
        few, more = (every[np.unique(((np.arange(n) + 0.5) / n * batch).astype(np.int64))] for n in counts)
        return few, more, every

    def _share(self, cost: float, chosen: Array) -> float:
        return cost / (float(self.work[chosen].mean()) or 1.0)  # what takes no time takes no work


@dataclass(frozen=True, eq=False)
class Opponents:
    """Classical schemes, ranked by their mean ``error`` on queries with a known truth. Each error is computed once, and
    only as far as is needed to tell that a scheme is not the best.

    ``substeps`` is the number of substeps of the policy's program: schemes are also offered with multiples of it.
    ``covers`` are the sets of primitives that they may compose.
    """

    dictionary: Dictionary
    query: Query
    truth: Array
    refinement: int = 1
    error: str = "rel_l2"
    substeps: int = 1
    covers: Sequence[Sequence[str]] | None = None
    _known: dict[Classical, Array] = field(default_factory=dict, init=False, repr=False)

    def best(self, asked: Query, work: Array) -> Classical:
        """The best scheme that is affordable on the queries ``asked``; if none is, the cheapest splitting."""
        return self.rivals(asked, work).best

    def rivals(self, asked: Query, work: Array) -> Rivals:
        """The best scheme that is affordable on the queries ``asked``, and the best splitting."""
        splitting = self._best_splitting(asked, work)
        some = FINALISTS * self._few
        solvers = self.unsplit(asked, work)  # from few steps to many
        beaten = least = self._mean_error(splitting, some)
        for solver in reversed(solvers):  # many steps have the smallest errors, next to which others are given up
            least = min(least, self._mean_error(solver, some, NO_WORSE * least))
        if not least < beaten:
            return Rivals(splitting, splitting)
        most = NO_WORSE * least
        return Rivals(next(each for each in solvers if self._mean_error(each, some, most) <= most), splitting)

    def _best_splitting(self, asked: Query, work: Array) -> Scheme:
        costs, most = Costs(self._composed, asked, work), EQUAL_WORK + UNSURE[0]
        tried = [each for each in self._offered(costs.estimated, most) if costs.estimated(each) <= most]
        best, least, compared = None, np.inf, 0
        # the few best on some of the queries are compared on more of them
        for scheme in sorted(tried, key=lambda each: self._mean_error(each, self._few)):
            error = self._mean_error(scheme, FINALISTS * self._few, least)
            if (best is None or error < least) and costs.of(scheme) <= EQUAL_WORK:
                best, least = scheme, error
            compared += costs.estimated(scheme) <= EQUAL_WORK
            if best is not None and compared >= FINALISTS:
                break
        return min(self._offered(costs.of), key=costs.of) if best is None else best

    def affordable(self, asked: Query, work: Array) -> list[Classical]:
        """Schemes whose mean work on the queries ``asked`` is at most 1.02 times the mean ``work`` (batch,) of a
        policy; of unsplit solvers those with the most steps."""
        costs = Costs(self._composed, asked, work)
        splittings = [scheme for scheme in self._offered(costs.of) if costs.of(scheme) <= EQUAL_WORK]
        finest = {(solver.cover, solver.stages): solver for solver in self.unsplit(asked, work)}
        return [*splittings, *finest.values()]

    def unsplit(self, asked: Query, work: Array) -> list[Unsplit]:
        """The unsplit solvers that are affordable, by their work; there are none for a dictionary without symbols."""
        most, few, found = EQUAL_WORK * float(work.mean()), asked.take(slice(0, COSTED)), dict[Unsplit, float]()
        for cover in self.covers or [self.dictionary.names]:
            for stages in STAGES:
                plain = Unsplit(stages, 1, tuple(cover))
                if not plain.runs(self.dictionary, self.query.setting):
                    continue
                one, two = (self._work(replace(plain, steps=steps), few) for steps in (1, 2))
                finest = min(MOST_SUBSTEPS, 1 + floor((most - one) / (two - one)))
                for steps in sorted({*(each for each in STEPS if each < finest), finest}):
                    if steps >= 1:
                        found[replace(plain, steps=steps)] = one + (steps - 1) * (two - one)
        return sorted(found, key=found.__getitem__)

    def _work(self, scheme: Classical, asked: Query) -> float:
        return float(self._composed(scheme).solve(asked).work.mean())

    def _offered(self, share: Callable[[Scheme], float], most: float = EQUAL_WORK) -> Iterator[Scheme]:
        """Splittings with their numbers of substeps, from few to many; the last of each family is the first whose
        ``share`` of work is above the ``most``."""
        substeps = sorted({*SUBSTEPS, *(self.substeps * each for each in SUBSTEPS)})
        offered = portfolio(self.dictionary, self.query.setting, substeps, self.covers)
        for _, family in groupby(offered, key=lambda scheme: (scheme.cover, scheme.name, scheme.outer)):
            for scheme in family:
                yield scheme
                if share(scheme) > most:
                    break

    def _composed(self, scheme: Classical) -> Composed:
        covers = tuple(tuple(cover) for cover in self.covers or ())
        return Composed(WithinTraining(scheme, covers), self.dictionary, self.refinement)

    def _mean_error(self, scheme: Classical, count: int, most: float = np.inf) -> float:
        """Mean error on the first queries; infinite as soon as it is known to be above ``most``."""
        count = min(count, self.query.batch)
        found = self._known.get(scheme, np.empty(0))
        while found.size < count and found.sum() <= most * count and found.sum() < np.inf:
            part = slice(found.size, min(found.size + self._few, count))
            states = self._composed(scheme).solve(self.query.take(part)).states
            errors = errors_of(self.error, states, self.truth[part], self.query.take(part))
            found = self._known[scheme] = np.append(found, errors)
        return float(found[:count].mean()) if found.size >= count else np.inf

    @cached_property
    def _few(self) -> int:
        """How many queries are solved at once, and first."""
        values = self.query.u0[0].size * self.refinement**self.query.grid.axes
        return max(FEWEST, min(FEW, VALUES_AT_ONCE // values))


def errors_of(name: str, states: Array, truth: Array, query: Query) -> Array:
    """Errors per sample; a state that became NaN or infinite is infinitely wrong."""
    errors = find_metric(name)(states, truth, query.setting)
    return np.where(np.isfinite(errors), errors, np.inf)
