"""Equal work: which classical schemes take no more work than a policy, and which of them is the best.

Classical schemes are splittings, and unsplit exponential integrators made of the same primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, islice
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evaluation.contender import Composed
from hycop.execution import Outcome, expected_work, refined_query
from hycop.grid import Array
from hycop.metrics import find_metric
from hycop.query import Query
from hycop.schemes import MOST_SUBSTEPS, Classical, Scheme, Unsplit, portfolio
from hycop.scope import WithinTraining

EQUAL_WORK = 1.02
"""Opponents may take at most this many times the policy's mean work."""

FEW, FEWEST = 8, 2
"""Most and fewest queries on which the error of every affordable scheme is estimated; more where states are small."""

VALUES_AT_ONCE = 2**15
"""Target for the number of values in the states of those queries together."""

ROUNDS, KEPT = 5, 0.4
"""The race of the schemes has this many more rounds. In each, this fraction of them is compared on twice as many
queries."""

FINALISTS, LAST = 8, 3
"""Once no more schemes than this are left in the race, all are likely affordable; the last are compared to the end."""

COSTED = 8
UNSURE, DEVIATIONS, LEAST_UNSURE = 0.15, 4.0, 0.005
"""The ratio of a scheme's work to the policy's is first estimated from the initial states of ``COSTED`` queries. While
it is close to ``EQUAL_WORK``, it is measured: on these queries, on four times as many, and on all. An estimate is close
within ``UNSURE``, a ratio that was measured on some queries within ``DEVIATIONS`` standard errors, or ``LEAST_UNSURE``.
The best splitting is searched among the schemes whose estimate is not beyond this: only those that may win are
measured."""

SUBSTEPS = (1, 2, 3, 4, 6, 8)
"""Numbers of substeps that are tried for each scheme."""

STAGES = (2, 4)
"""Stages of the unsplit solvers that are tried."""

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of their steps that are tried, and the most that equal work allows."""

NO_WORSE = 1.02
"""An unsplit solver of at most this many times the smallest error is no worse; of these the cheapest is taken."""


class Rivals(NamedTuple):
    """The best classical scheme at equal work; the best splitting, which is the same where no unsplit solver is better;
    and the answers of the best scheme to the queries asked, if they were computed to measure its work."""

    best: Classical
    splitting: Scheme
    answers: Outcome | None = None


@dataclass(frozen=True, eq=False)
class Costs:
    """Work of schemes divided by that of a policy, ``work`` (batch,) on queries ``asked``. Each is computed once.
    ``composed`` makes a solver of a scheme, on a grid of that ``refinement``."""

    composed: Callable[[Classical], Composed]
    asked: Query
    work: Array
    refinement: int = 1
    answers: dict[Scheme, Outcome] = field(default_factory=dict, init=False, repr=False)
    """Answers to all queries of the schemes whose work was measured on all."""
    _estimated: dict[Scheme, float] = field(default_factory=dict, init=False, repr=False)
    _shares: dict[tuple[Scheme, int], tuple[float, float]] = field(default_factory=dict, init=False, repr=False)
    _known: dict[Scheme, float] = field(default_factory=dict, init=False, repr=False)

    def estimated(self, scheme: Scheme) -> float:
        """From the initial states of a few queries."""
        if scheme not in self._estimated:
            expected = self._expected(scheme, self._few)
            self._estimated[scheme] = float(expected.mean()) / self._mean_work(self._spread[0])
        return self._estimated[scheme]

    def of(self, scheme: Scheme) -> float:
        """Measured as far as is needed to tell whether it is above ``EQUAL_WORK``."""
        if scheme not in self._known:
            self._known[scheme] = self._measured(scheme) if self._unsure(scheme) else self.estimated(scheme)
        return self._known[scheme]

    def likely(self, scheme: Scheme) -> bool:
        """Whether it may be affordable, as far as a few queries tell."""
        if scheme in self._known or not self._unsure(scheme):
            return self.of(scheme) <= EQUAL_WORK
        share, deviation = self._share(scheme, self._spread[0])
        return share - deviation <= EQUAL_WORK

    def _unsure(self, scheme: Scheme) -> bool:
        return abs(self.estimated(scheme) - EQUAL_WORK) < UNSURE

    def _measured(self, scheme: Scheme) -> float:
        for chosen in self._spread:
            share, deviation = self._share(scheme, chosen)
            if abs(share - EQUAL_WORK) > max(DEVIATIONS * deviation, LEAST_UNSURE):
                return share
        self.answers[scheme] = self.composed(scheme).solve(self.asked)
        return float(self.answers[scheme].work.mean()) / self._mean_work(slice(None))

    def _share(self, scheme: Scheme, chosen: Array) -> tuple[float, float]:
        """The share of work on all queries from runs of those chosen, and its standard error: by the ratio to the
        policy's work or to the expected work, whichever varies less between queries."""
        key = scheme, chosen.size
        if key not in self._shares:
            found, ours = self.composed(scheme).solve(self.asked.take(chosen)).work, self._mean_work(slice(None))
            guesses = []
            for known in (self.work, self._expected(scheme, self._all)):
                ratio = found.mean() / (known[chosen].mean() or 1.0)
                deviation = np.std(found - ratio * known[chosen]) / np.sqrt(chosen.size)
                guesses.append((float(ratio * known.mean() / ours), float(deviation / ours)))
            self._shares[key] = min(guesses, key=lambda guess: guess[1])
        return self._shares[key]

    def _expected(self, scheme: Scheme, both: tuple[Query, Query]) -> Array:
        """Work (batch,) on queries, which are given together with their refinement."""
        query, fine = both
        solver = self.composed(scheme)
        return expected_work(solver.programs(query), solver.dictionary, fine)

    @cached_property
    def _few(self) -> tuple[Query, Query]:
        return self._with_fine(self.asked.take(self._spread[0]))

    @cached_property
    def _all(self) -> tuple[Query, Query]:
        return self._with_fine(self.asked)

    def _with_fine(self, query: Query) -> tuple[Query, Query]:
        return query, query if self.refinement == 1 else refined_query(query, self.refinement)

    @cached_property
    def _spread(self) -> tuple[Array, ...]:
        """Few queries and more, by the policy's work: cheap and costly ones."""
        order, batch = np.argsort(self.work, kind="stable"), self.asked.batch
        counts = (COSTED, 4 * COSTED)
        return tuple(order[np.unique(((np.arange(n) + 0.5) / n * batch).astype(np.int64))] for n in counts)

    def _mean_work(self, chosen: Array | slice) -> float:
        return float(self.work[chosen].mean()) or 1.0  # what takes no time takes no work


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
        splitting, answers = self._best_splitting(asked, work)
        some = 2**ROUNDS * self._few
        solvers = self.unsplit(asked, work)  # from few steps to many
        beaten = least = self._mean_error(splitting, some)
        for solver in reversed(solvers):  # many steps have the smallest errors, next to which others are given up
            least = min(least, self._mean_error(solver, some, NO_WORSE * least))
        if not least < beaten:
            return Rivals(splitting, splitting, answers)
        most = NO_WORSE * least
        return Rivals(next(each for each in solvers if self._mean_error(each, some, most) <= most), splitting)

    def _best_splitting(self, asked: Query, work: Array) -> tuple[Scheme, Outcome | None]:
        """The best affordable splitting, and its answers if they are known."""
        costs = self._costs(asked, work)
        most = EQUAL_WORK + UNSURE
        tried = [each for each in self._offered(costs.estimated, most) if costs.estimated(each) <= most]
        best = self._race(tried, costs) or min(self._offered(costs.of), key=costs.of)
        return best, costs.answers.get(best)

    def _race(self, tried: list[Scheme], costs: Costs) -> Scheme | None:
        """The best affordable scheme of those tried: all are compared on a few queries, and ever fewer on ever more."""
        racing, dropped, count = tried, list[Scheme](), self._few
        for _ in range(ROUNDS):
            ranked = self._ranked(racing, count)
            kept = max(LAST, ceil(KEPT * len(ranked)))
            order = filter(costs.likely, [*ranked, *dropped]) if kept <= FINALISTS else iter(ranked)
            racing = list(islice(order, kept))
            dropped = [each for each in (*ranked, *dropped) if each not in racing]
            count *= 2
        order = iter([*self._ranked(racing, count), *dropped])
        return next((each for each in order if costs.of(each) <= EQUAL_WORK), None)

    def _ranked(self, schemes: list[Scheme], count: int) -> list[Scheme]:
        return sorted(schemes, key=lambda each: self._mean_error(each, count))

    def _costs(self, asked: Query, work: Array) -> Costs:
        return Costs(self._composed, asked, work, self.refinement)

    def affordable(self, asked: Query, work: Array) -> list[Classical]:
        """Schemes whose mean work on the queries ``asked`` is at most 1.02 times the mean ``work`` (batch,) of a
        policy; of unsplit solvers those with the most steps."""
        costs = self._costs(asked, work)
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
            part = slice(found.size, min(max(self._few, 2 * found.size), count))
            states = self._composed(scheme).states(self.query.take(part))
            errors = errors_of(self.error, states, self.truth[part], self.query.take(part))
            found = self._known[scheme] = np.append(found, errors)
        return float(found[:count].mean()) if found.size >= count else np.inf

    @cached_property
    def _few(self) -> int:
        """How many queries are solved first."""
        values = self.query.u0[0].size * self.refinement**self.query.grid.axes
        return max(FEWEST, min(FEW, VALUES_AT_ONCE // values))


def errors_of(name: str, states: Array, truth: Array, query: Query) -> Array:
    """Errors per sample; a state that became NaN or infinite is infinitely wrong."""
    errors = find_metric(name)(states, truth, query.setting)
    return np.where(np.isfinite(errors), errors, np.inf)
