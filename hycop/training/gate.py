"""The gate: a learned policy is kept only if it beats the best classical scheme at equal work on held-out queries."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import NonFiniteStateError
from hycop.evaluation import Composed, errors_of
from hycop.grid import Array
from hycop.query import Query
from hycop.splitting import Scheme, splitting

EXTREME = 0.1

MARGIN = 1e-3
"""Share by which the learned error must be smaller: less is rounding."""


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
        return replace(
            self, kept=True, classical_when_clipped=False, classical_when_far=False, classical_when_repeated=False
        )

    def to_json(self) -> dict[str, object]:
        return asdict(self)


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
    states, cost = Composed(scheme, dictionary, refinement).solve(query)
    ours, theirs = (errors_of(error, found, truth, query) for found in (learned, states))
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
