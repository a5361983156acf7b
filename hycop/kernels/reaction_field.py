"""Logistic growth with a rate for each cell."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.reaction import grow
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True)
def _grow_each(first: int, last: int, u: Array, a: Array) -> None:
    for sample in range(first, last):
        for channel in range(u.shape[1]):
            for cell in range(u.shape[2]):
                grow(u[sample, channel, cell : cell + 1], a[sample, cell])


def logistic_field(u: Array, a: Array) -> Array:
    """The exact flow of u' = r u (1 − u) with a = r·duration (batch, *grid) in every cell."""
    out = np.array(u).reshape(u.shape[0], u.shape[1], -1)
    rates = np.ascontiguousarray(a).reshape(u.shape[0], -1)
    in_parts(lambda first, last: _grow_each(first, last, out, rates), u.shape[0], float(u.size))
    return out.reshape(u.shape)
