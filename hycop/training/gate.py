"""The gate: a learned policy is kept only if it beats the best classical scheme at equal work on held-out queries."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from hycop.dictionary import Dictionary
from hycop.execution import measure
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.query import Query
from hycop.splitting import Scheme, portfolio

EQUAL_WORK = 1.02
"""Opponents may take this much of the policy's mean work."""

EXTREME = 0.1


@dataclass(frozen=True)
class Gate:
    """The decision of a run and its numbers: mean errors on the held-out queries and on their most extreme tenth."""

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

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def best_classical(
    dictionary: Dictionary,
    query: Query,
    truth: Array,
    most_work: float,
    refinement: int = 1,
    copies: tuple[int, ...] = (1, 2, 3, 4, 6, 8),
) -> Scheme:
    """The scheme with the least mean error among those whose mean work is at most 1.02 times ``most_work``; if all of
    them cost more, the cheapest."""
    best: tuple[tuple[bool, float], Scheme] | None = None
    for scheme in portfolio(dictionary, query.setting, copies):
        programs = scheme.programs(query, dictionary)
        states, work = measure(programs, dictionary, query, refinement=refinement, strict=False)
        mean = float(work.mean())
        affordable = mean <= EQUAL_WORK * most_work
        error = float(np.nan_to_num(rel_l2(states, truth, query.setting), nan=np.inf).mean())
        key = (not affordable, error if affordable else mean)
        if best is None or key < best[0]:
            best = (key, scheme)
    assert best is not None
    return best[1]


def gate(
    learned: Array,
    work: Array,
    scheme: Scheme,
    dictionary: Dictionary,
    query: Query,
    truth: Array,
    features: Array,
    refinement: int = 1,
) -> Gate:
    """Compares the learned states with those of ``scheme`` query by query; ``features`` are normalised."""
    programs = scheme.programs(query, dictionary)
    states, cost = measure(programs, dictionary, query, refinement=refinement, strict=False)
    ours = np.nan_to_num(rel_l2(learned, truth, query.setting), nan=np.inf)
    theirs = np.nan_to_num(rel_l2(states, truth, query.setting), nan=np.inf)
    reach = np.abs(features).max(axis=1) if features.shape[1] else np.zeros(query.batch)
    extreme = np.argsort(-reach, kind="stable")[: max(1, int(EXTREME * query.batch))]
    return Gate(
        kept=bool(ours.mean() < theirs.mean()),
        classical=str(scheme),
        learned_error=float(ours.mean()),
        classical_error=float(theirs.mean()),
        learned_extreme=float(ours[extreme].mean()),
        classical_extreme=float(theirs[extreme].mean()),
        classical_when_clipped=bool(not ours[extreme].mean() < theirs[extreme].mean()),
        learned_work=float(work.mean()),
        classical_work=float(cost.mean()),
        samples=query.batch,
    )
