"""Squared distances between states and what they should be."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]


# sums may be taken in any order that suits the processor, which is the same for the same lengths
@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def squared_distance(state: Array, truth: Array) -> float:
    """Σ (state − truth)² of two vectors."""
    total = 0.0
    for i in range(state.size):
        difference = np.float64(state[i]) - np.float64(truth[i])
        total += difference * difference
    return total


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _squared(states: Array, truth: Array, out: Array) -> None:
    for row in numba.prange(states.shape[0]):
        out[row] = squared_distance(states[row], truth[row % truth.shape[0]])


def squared_distances(states: Array, truth: Array) -> Array:
    """Σ (state i − truth i mod batch)² over everything but the first axis, for each of the states; in double
    precision."""
    flat, against = (np.ascontiguousarray(u).reshape(u.shape[0], -1) for u in (states, truth))
    out = np.empty(flat.shape[0])
    with sharing(flat.size):
        _squared(flat, against, out)
    return out
