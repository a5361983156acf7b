"""Theta is one flat vector; its layout names the slices, so that parts of it can move to another policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array, all_finite

Layout = Mapping[str, slice]
"""Where the parameters of each name lie in theta, in the order of theta."""


def laid_out(sizes: Iterable[tuple[str, int]]) -> Layout:
    """Slices of theta by name, from the sizes in order; names without parameters are left out.

    >>> laid_out([("shares", 3), ("tilt1", 0), ("selector", 2)])
    {'shares': slice(0, 3, None), 'selector': slice(3, 5, None)}
    """
    layout: dict[str, slice] = {}
    start = 0
    for name, size in sizes:
        if size:
            layout[name] = slice(start, start + size)
            start += size
    return layout


def carried(theta: Array, old: Layout, new: Layout, start: Array | None = None) -> Array:
    """A theta for another layout: parameters of the same name and number keep their values; the others come from
    ``start``, or are zero."""
    size = max((part.stop for part in new.values()), default=0)
    out = np.zeros(size) if start is None else np.array(start, dtype=np.float64)
    for name, part in new.items():
        if name in old and old[name].stop - old[name].start == part.stop - part.start:
            out[part] = theta[old[name]]
    return out


def checked_thetas(thetas: Array, size: int) -> Array:
    out = np.asarray(thetas, dtype=np.float64)
    out = out if out.ndim > 1 else np.atleast_2d(out)
    if out.ndim != 2 or out.shape[1] != size:
        raise InvalidInputError(f"theta has {out.shape[-1]} numbers: this policy needs {size}")
    if not all_finite(out):
        raise InvalidInputError("theta has a NaN or infinite entry")
    return out
