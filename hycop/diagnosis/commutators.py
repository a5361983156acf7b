"""Commutators of the processes: where and by how much their order matters.

    [F_i, F_j] u ≈ (Φ_j(τ) Φ_i(τ) u − Φ_i(τ) Φ_j(τ) u) / τ²   for a small step τ

A splitting of order one errs by T²/2 · [F_i, F_j] to leading order; commuting processes can be split at no cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hycop.diagnosis.case import Case
from hycop.diagnosis.trusted import Trusted
from hycop.dictionary import Dictionary
from hycop.execution import run
from hycop.grid import Array, changed, restrict
from hycop.program import ProgramBatch
from hycop.query import Query

QUERIES = 16
"""Queries at whose states commutators are taken, evenly spread."""

SMALL_STEP = 1 / 64
"""The step τ as a fraction of the query time."""


@dataclass(frozen=True, eq=False)
class Commutator:
    """The commutator of two parts of a dictionary, at the initial state and at the truth.

    ``size`` is its mean L2 norm (root mean square over channels and cells). ``strength`` is the mean of
    T² ‖[F_i, F_j] u‖ / ‖u‖: twice the relative error of one unsymmetric step for all of T. ``map`` (channel, *grid) is
    its root mean square over states.
    """

    pair: tuple[str, str]
    size: float
    strength: float
    map: Array

    def to_json(self) -> dict[str, object]:
        return {"pair": list(self.pair), "size": self.size, "strength": self.strength}


def commutators(case: Case, trusted: Trusted, separable: bool) -> list[Commutator]:
    """The commutators of all pairs of primitives that the programs use, those that splitting hurts most first. Trusted
    flows decide where they are known, ``separable``, else the model's own."""
    some = case.take(case.few(QUERIES))
    names = [name for op, name in enumerate(case.programs.names) if (case.programs.ops == op).any()]
    dictionary = trusted.dictionary if separable else case.model.dictionary
    states = [some.query, changed(some.query, u0=some.truth)]
    starts = [trusted.start(each) for each in states] if separable else states
    found = []
    for pair in combinations(names, 2):
        if dictionary[pair[0]].advances & dictionary[pair[1]].advances:  # they are not split from each other
            continue
        fields = [restrict(commutator(dictionary, pair, each), some.query.grid.shape) for each in starts]
        norms = [np.linalg.norm(field.reshape(some.batch, -1), axis=1) for field in fields]
        sizes = [np.linalg.norm(each.u0.reshape(some.batch, -1), axis=1) for each in states]
        ratios = [
            some.query.time**2 * norm / np.where(size > 0, size, 1.0) for norm, size in zip(norms, sizes, strict=True)
        ]
        found.append(
            Commutator(
                pair,
                float(np.mean(norms)) / np.sqrt(some.truth[0].size),
                float(np.mean(ratios)),
                np.sqrt(np.mean(np.concatenate(fields) ** 2, axis=0)),
            )
        )
    return sorted(found, key=lambda each: -each.strength)


def commutator(dictionary: Dictionary, pair: tuple[str, str], query: Query) -> Array:
    """[F_i, F_j] u (batch, channel, *grid) at the initial states of queries."""
    step = SMALL_STEP * query.time
    durations = np.stack([step, step], axis=1)
    first, second = (
        run(ProgramBatch(pair, np.tile(order, (query.batch, 1)), durations), dictionary, query)
        for order in ([0, 1], [1, 0])
    )
    out: Array = (first - second) / (step**2).reshape((-1,) + (1,) * (first.ndim - 1))
    return out
