"""Equal work: which classical schemes take no more work than a policy, and which of them is the best.

Classical schemes are splittings, and unsplit exponential integrators made of the same primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
it is closer than this to ``EQUAL_WORK``, it is measured: on these queries, on four times as many, and on all."""

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
class Opponents:
    """Classical schemes, ranked by their mean ``error`` on queries with a known truth. Each error is computed once.

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
    _known: dict[tuple[Classical, int], float] = field(default_factory=dict, init=False, repr=False)

    def best(self, asked: Query, work: Array) -> Classical:
        """The best scheme that is affordable on the queries ``asked``; if none is, the cheapest splitting."""
        return self.rivals(asked, work).best

    def rivals(self, asked: Query, work: Array) -> Rivals:
        """The best scheme that is affordable on the queries ``asked``, and the best splitting."""
        splitting = self._best_splitting(asked, work)
        some = FINALISTS * _few(self.query, self.refinement)
        solvers = self.unsplit(asked, work)  # from few steps to many
        least = min((self._mean_error(solver, some) for solver in solvers), default=np.inf)
        if not least < self._mean_error(splitting, some):
            return Rivals(splitting, splitting)
        return Rivals(next(each for each in solvers if self._mean_error(each, some) <= NO_WORSE * least), splitting)

    def _best_splitting(self, asked: Query, work: Array) -> Scheme:
        costs = self._costs(asked, work)
        rivals = [scheme for scheme, share in costs.items() if share <= EQUAL_WORK]
        if not rivals:
            return min(costs, key=costs.__getitem__)
        # the few best on some of the queries are compared on more of them
        some = _few(self.query, self.refinement)
        finalists = sorted(rivals, key=lambda scheme: self._mean_error(scheme, some))[:FINALISTS]
        return min(finalists, key=lambda scheme: self._mean_error(scheme, FINALISTS * some))

    def affordable(self, asked: Query, work: Array) -> list[Classical]:
        """Schemes whose mean work on the queries ``asked`` is at most 1.02 times the mean ``work`` (batch,) of a
        policy; of unsplit solvers those with the most steps."""
        splittings = [scheme for scheme, share in self._costs(asked, work).items() if share <= EQUAL_WORK]
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

    def _costs(self, asked: Query, work: Array) -> dict[Scheme, float]:
        """Work of each scheme divided by the policy's. Each family ends at its first scheme that is not affordable."""
        substeps = sorted({*SUBSTEPS, *(self.substeps * each for each in SUBSTEPS)})
        offered = portfolio(self.dictionary, self.query.setting, substeps, self.covers)

        every = np.argsort(work, kind="stable")
        spread = [
            every[np.unique(((np.arange(count) + 0.5) / count * asked.batch).astype(np.int64))]  # cheap and costly ones
            for count in (COSTED, 4 * COSTED)
        ]
        few = asked.take(spread[0])

        def share(cost: float, chosen: Array) -> float:
            return cost / (float(work[chosen].mean()) or 1.0)  # what takes no time takes no work

        def ratio(scheme: Scheme) -> float:
            programs = self._composed(scheme).programs(few)
            expected = expected_work(programs, self.dictionary, few, refinement=self.refinement)
            found = share(float(expected.mean()), spread[0])
            for chosen, unsure in zip((*spread, every), UNSURE, strict=True):
                if not abs(found - EQUAL_WORK) < unsure:
                    break
                found = share(self._work(scheme, asked.take(chosen)), chosen)
            return found

        costs: dict[Scheme, float] = {}
        for _, family in groupby(offered, key=lambda scheme: (scheme.cover, scheme.name, scheme.outer)):
            for scheme in family:  # from few substeps to many
                costs[scheme] = ratio(scheme)
                if costs[scheme] > EQUAL_WORK:
                    break
        return costs

    def _composed(self, scheme: Classical) -> Composed:
        covers = tuple(tuple(cover) for cover in self.covers or ())
        return Composed(WithinTraining(scheme, covers), self.dictionary, self.refinement)

    def _mean_error(self, scheme: Classical, count: int) -> float:
        if (scheme, count) not in self._known:
            part = self.query.take(slice(0, count))
            states = self._composed(scheme).solve(part).states
            self._known[scheme, count] = float(errors_of(self.error, states, self.truth[:count], part).mean())
        return self._known[scheme, count]


def _few(query: Query, refinement: int) -> int:
    values = query.u0[0].size * refinement**query.grid.axes
    return max(FEWEST, min(FEW, VALUES_AT_ONCE // values))


def errors_of(name: str, states: Array, truth: Array, query: Query) -> Array:
    """Errors per sample; a state that became NaN or infinite is infinitely wrong."""
    errors = find_metric(name)(states, truth, query.setting)
    return np.where(np.isfinite(errors), errors, np.inf)
