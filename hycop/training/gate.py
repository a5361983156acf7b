"""The gate: a learned policy is kept only if it beats the best classical scheme at equal work on held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def best_classical(
    dictionary: Dictionary,
    query: Query,
    truth: Array,
    asked: Query,
    work: Array,
    refinement: int = 1,
    error: str = "rel_l2",
    repeats: int = 1,
    covers: Sequence[Sequence[str]] | None = None,
) -> Scheme:
    """The scheme with the least mean error on ``query`` among those that are affordable; if none is, the cheapest.

    Affordable is what takes, on the queries ``asked``, at most 1.02 times the mean ``work`` of a policy on them.
    The opponents of a program that is repeated are offered as often, too, and schemes of all ``covers``.
    """
    copies = sorted({*COPIES, *(repeats * copies for copies in COPIES)})
    offered = portfolio(dictionary, query.setting, copies, covers)

    def cost(scheme: Scheme, chosen: Array) -> float:
        """Its work over that of the policy on these queries; what takes no time takes no work."""
        theirs = _measured(scheme, dictionary, asked.take(chosen), refinement).work
        return float(theirs.mean()) / (float(work[chosen].mean()) or 1.0)

    every = np.argsort(work, kind="stable")
    few = every[np.unique(((np.arange(COSTED) + 0.5) / COSTED * asked.batch).astype(np.int64))]  # cheap ones and dear
    costs: dict[Scheme, float] = {}
    for _, family in groupby(offered, key=lambda scheme: (scheme.cover, scheme.name, scheme.outer)):
        for scheme in family:  # from few copies to many: beyond the first that is too dear, all are
            costs[scheme] = cost(scheme, few)
            if abs(costs[scheme] - EQUAL_WORK) < UNSURE and few.size < every.size:
                costs[scheme] = cost(scheme, every)
            if costs[scheme] > EQUAL_WORK:
                break
    rivals = [scheme for scheme, share in costs.items() if share <= EQUAL_WORK]
    if not rivals:
        return min(costs, key=costs.__getitem__)

    def mean_error(scheme: Scheme, count: int) -> float:
        part = query.take(slice(0, count))
        states = _measured(scheme, dictionary, part, refinement).states
        return float(_errors(error, states, truth[:count], part).mean())

    # the few best on some of the queries are compared on more of them
    some = _few(query, refinement)
    finalists = sorted(rivals, key=lambda scheme: mean_error(scheme, some))[:FINALISTS]
    return min(finalists, key=lambda scheme: mean_error(scheme, FINALISTS * some))


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
