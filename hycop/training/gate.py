"""The gate: a learned policy is kept only if it beats the best classical scheme at equal work on held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import NonFiniteStateError
from hycop.execution import Outcome, measure
from hycop.grid import Array
from hycop.metrics import metric
from hycop.query import Query
from hycop.splitting import Scheme, portfolio, splitting

EQUAL_WORK = 1.02
"""Opponents may take this much of the policy's mean work."""

EXTREME = 0.1

MARGIN = 1e-3
"""Share by which the learned error must be smaller: less is rounding."""

FEW, FEWEST = 32, 8
"""Queries on which the error of every affordable scheme is estimated: the more the cheaper they are."""

TRIED = 2**16
"""Values in the states of those queries, about."""

COSTED, UNSURE = 8, 0.15
"""Queries on which the work of the schemes over that of the policy is estimated, and how wrong that may be: closer to
what is affordable it is measured on all of them."""

COPIES = (1, 2, 3, 4, 6, 8)
"""How often each scheme is repeated."""

FINALISTS = 8
"""Schemes that are compared on as many times more queries, or all that there are."""


@dataclass(frozen=True)
class Gate:
    """The decision of a run and its numbers: mean errors on the held-out queries and on their most extreme tenth.

    ``classical_when_repeated``: beyond the times of training only the first part is the policy's, the rest classical.
    ``classical_when_far``: queries further outside the trained ranges than these are wide, or with other coefficients
    where all of training had the same, get the classical programs: the held-out queries say nothing about them.
    """

    kept: bool
    classical: str
    learned_error: float
    classical_error: float
    learned_extreme: float
    classical_extreme: float
    classical_when_clipped: bool
    learned_work: float
    classical_work: float
    samples: int
    classical_when_repeated: bool = False
    classical_when_far: bool = True
    cover: tuple[str, ...] | None = None

    @property
    def scheme(self) -> Scheme:
        """The classical scheme."""
        return splitting(self.classical).within(self.cover)

    def opened(self) -> Gate:
        """The gate that always lets the policy through."""
        open_ = {"classical_when_clipped": False, "classical_when_far": False, "classical_when_repeated": False}
        return replace(self, kept=True, **open_)

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Opponents:
    """Classical schemes, ranked by their mean ``error`` on queries with a known truth, each of which is computed once.

    The opponents of a program that is repeated are offered as often, too, and schemes of all ``covers``.
    """

    dictionary: Dictionary
    query: Query
    truth: Array
    refinement: int = 1
    error: str = "rel_l2"
    repeats: int = 1
    covers: Sequence[Sequence[str]] | None = None
    _known: dict[tuple[Scheme, int], float] = field(default_factory=dict, init=False, repr=False)

    def best(self, asked: Query, work: Array) -> Scheme:
        """The best of those that are affordable; if none is, the cheapest.

        Affordable is what takes, on the queries ``asked``, at most 1.02 times the mean ``work`` of a policy on them.
        """
        costs = self._costs(asked, work)
        rivals = [scheme for scheme, share in costs.items() if share <= EQUAL_WORK]
        if not rivals:
            return min(costs, key=costs.__getitem__)
        # the few best on some of the queries are compared on more of them
        some = _few(self.query, self.refinement)
        finalists = sorted(rivals, key=lambda scheme: self._mean_error(scheme, some))[:FINALISTS]
        return min(finalists, key=lambda scheme: self._mean_error(scheme, FINALISTS * some))

    def _costs(self, asked: Query, work: Array) -> dict[Scheme, float]:
        """The work of schemes over that of the policy, up to the first of each family that is not affordable."""
        copies = sorted({*COPIES, *(self.repeats * copies for copies in COPIES)})
        offered = portfolio(self.dictionary, self.query.setting, copies, self.covers)

        def cost(scheme: Scheme, chosen: Array) -> float:
            theirs = _measured(scheme, self.dictionary, asked.take(chosen), self.refinement).work
            return float(theirs.mean()) / (float(work[chosen].mean()) or 1.0)  # what takes no time takes no work

        every = np.argsort(work, kind="stable")
        few = every[np.unique(((np.arange(COSTED) + 0.5) / COSTED * asked.batch).astype(np.int64))]  # cheap and dear
        costs: dict[Scheme, float] = {}
        for _, family in groupby(offered, key=lambda scheme: (scheme.cover, scheme.name, scheme.outer)):
            for scheme in family:  # from few copies to many
                costs[scheme] = cost(scheme, few)
                if abs(costs[scheme] - EQUAL_WORK) < UNSURE and few.size < every.size:
                    costs[scheme] = cost(scheme, every)
                if costs[scheme] > EQUAL_WORK:
                    break
        return costs

    def _mean_error(self, scheme: Scheme, count: int) -> float:
        if (scheme, count) not in self._known:
            part = self.query.take(slice(0, count))
            states = _measured(scheme, self.dictionary, part, self.refinement).states
            errors = _errors(self.error, states, self.truth[:count], part)
            self._known[scheme, count] = float(errors.mean())
        return self._known[scheme, count]


def _few(query: Query, refinement: int) -> int:
    values = query.u0[0].size * refinement**query.grid.axes
    return max(FEWEST, min(FEW, TRIED // values))


def _measured(scheme: Scheme, dictionary: Dictionary, query: Query, refinement: int) -> Outcome:
    return measure(scheme.programs(query, dictionary), dictionary, query, refinement=refinement, strict=False)


def _errors(name: str, states: Array, truth: Array, query: Query) -> Array:
    """Errors per sample; a state that left the finite numbers is infinitely wrong."""
    errors = metric(name)(states, truth, query.setting)
    return np.where(np.isfinite(errors), errors, np.inf)


def gate(
    learned: Array,
    work: Array,
    scheme: Scheme,
    dictionary: Dictionary,
    query: Query,
    truth: Array,
    features: Array,
    refinement: int = 1,
    error: str = "rel_l2",
) -> Gate:
    """Compares the learned states with those of ``scheme`` query by query; ``features`` are normalised."""
    states, cost = _measured(scheme, dictionary, query, refinement)
    ours, theirs = _errors(error, learned, truth, query), _errors(error, states, truth, query)
    reach = np.abs(features).max(axis=1) if features.shape[1] else np.zeros(query.batch)
    if not (np.isfinite(ours.mean()) or np.isfinite(theirs.mean())):
        raise NonFiniteStateError(
            "neither the learned nor the classical programs have a finite error on the held-out queries; check the data"
        )
    extreme = np.argsort(-reach, kind="stable")[: max(1, int(EXTREME * query.batch))]
    return Gate(
        kept=bool(ours.mean() < (1 - MARGIN) * theirs.mean()),
        classical=str(scheme),
        learned_error=float(ours.mean()),
        classical_error=float(theirs.mean()),
        learned_extreme=float(ours[extreme].mean()),
        classical_extreme=float(theirs[extreme].mean()),
        classical_when_clipped=bool(not ours[extreme].mean() < theirs[extreme].mean()),
        learned_work=float(work.mean()),
        classical_work=float(cost.mean()),
        samples=query.batch,
        cover=scheme.cover,
    )
