"""Features as they stand, with their units: what the dimensionless ones are compared with."""

from __future__ import annotations

from hycop.grid import Array
from hycop.query import Query


def raw_parameter(name: str, query: Query) -> Array:
    """A physical coefficient as it stands, with its units (ablation)."""
    return query.setting.param(name)


def raw_time(query: Query) -> Array:
    """The query time as it stands (ablation)."""
    return query.time


def raw_block(index: int, query: Query) -> Array:
    """Mean of the state over one of eight slabs along the first axis (ablation)."""
    cells = query.u0.shape[2]
    first = index * cells // 8
    slab = query.u0[:, 0, first : max(first + 1, (index + 1) * cells // 8)]
    out: Array = slab.reshape(query.batch, -1).mean(axis=1)
    return out
