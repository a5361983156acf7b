"""Raw features with their units, as an ablation of the dimensionless ones."""

from __future__ import annotations

from hycop.features.observed import Observed
from hycop.grid import Array


def raw_parameter(name: str, seen: Observed) -> Array:
    """A physical coefficient with its units (ablation)."""
    return seen.param(name)


def raw_time(seen: Observed) -> Array:
    """The query time with its unit (ablation)."""
    return seen.time


def raw_block(index: int, seen: Observed) -> Array:
    """Mean of the state over one of eight slabs along the first axis (ablation)."""
    u0 = seen.query.u0
    cells = u0.shape[2]
    first = index * cells // 8
    slab = u0[:, 0, first : max(first + 1, (index + 1) * cells // 8)]
    out: Array = slab.reshape(seen.batch, -1).mean(axis=1)
    return out
