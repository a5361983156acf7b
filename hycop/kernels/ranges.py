"""Where numbers (sample, column) lie in the range of their column, from low to high: one pass instead of many small
arrays."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def normalised(values: Array, low: Array, high: Array) -> Array:
    """Mapped to [−1, 1] and clipped; 0 for NaN, and where the range is one number."""
    out = np.zeros(values.shape)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            value, width = values[row, column], high[column] - low[column]
            if width > 0 and not np.isnan(value):
                out[row, column] = min(max(2.0 * (value - low[column]) / width - 1.0, -1.0), 1.0)
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def outside(values: Array, low: Array, high: Array) -> Array:
    """Which lie beyond the range, as NaN does."""
    out = np.empty(values.shape, np.bool_)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            out[row, column] = not low[column] <= values[row, column] <= high[column]
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def far(values: Array, low: Array, high: Array, least: float) -> Array:
    """Which lie further beyond the range than it is wide, if it is wider than ``least``; NaN does always."""
    out = np.empty(values.shape, np.bool_)
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            value, width = values[row, column], high[column] - low[column]
            near = low[column] - width <= value <= high[column] + width
            out[row, column] = np.isnan(value) or (not near and width > least)
    return out
