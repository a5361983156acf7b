"""What is measured of a primitive without an order, such as a network, in place of that order."""

from __future__ import annotations

import numpy as np

from hycop.grid import Array
from hycop.primitive import Primitive
from hycop.query import Setting

NUDGE = 1e-2
"""Size of a disturbance, relative to the state, for the Lipschitz constant."""


def _norms(u: Array) -> Array:
    out: Array = np.linalg.norm(u.reshape(len(u), -1), axis=1)
    return out


def semigroup_defect(primitive: Primitive, u: Array, duration: Array, setting: Setting) -> float:
    """Mean of ‖Φ_{0.625τ} Φ_{0.375τ} u − Φ_τ u‖ / ‖Φ_τ u‖: one step against two."""
    once = primitive.flow(u, duration, setting)
    twice = primitive.flow(primitive.flow(u, 0.375 * duration, setting), 0.625 * duration, setting)
    return float(np.mean(_norms(twice - once) / np.maximum(_norms(once), np.finfo(float).tiny)))


def lipschitz(primitive: Primitive, u: Array, duration: Array, setting: Setting, seed: int = 0) -> float:
    """Largest ‖Φ_τ(u + δ) − Φ_τ u‖ / ‖δ‖ over the samples and three disturbances δ each, rough and smooth ones."""
    rng = np.random.default_rng(seed)
    still = primitive.flow(u, duration, setting)
    axes, largest = tuple(range(2, u.ndim)), 0.0
    for smoothing in (0, 2, 4):
        nudge = rng.standard_normal(u.shape)
        for _ in range(smoothing):
            for axis in axes:
                nudge = 0.5 * nudge + 0.25 * (np.roll(nudge, 1, axis) + np.roll(nudge, -1, axis))
        size = NUDGE * _norms(u) / _norms(nudge)
        nudge *= size.reshape((-1,) + (1,) * (u.ndim - 1))
        moved = primitive.flow(u + nudge, duration, setting)
        largest = max(largest, float(np.max(_norms(moved - still) / np.maximum(_norms(nudge), np.finfo(float).tiny))))
    return largest
