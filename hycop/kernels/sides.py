"""What solvers for coefficients that vary in space share: three axes, faces, and what holds at the ends of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PERIODIC, WALL, OUTFLOW, DIRICHLET, NEUMANN = range(5)
SIDE_CODES = {"periodic": PERIODIC, "wall": WALL, "outflow": OUTFLOW, "dirichlet": DIRICHLET, "neumann": NEUMANN}


class Ends(NamedTuple):
    """Codes (3, low/high) of the ends of each axis, and their values (3, low/high, channel)."""

    codes: Array
    values: Array


def in_three_axes(u: Array) -> Array:
    """A state (batch, channel, *grid) in double precision, with axes of one cell put before the others."""
    shape = u.shape[:2] + (1,) * (5 - u.ndim) + u.shape[2:]
    return np.ascontiguousarray(u, dtype=np.float64).reshape(shape)


def lines_of(faces: Sequence[Array]) -> tuple[Array, Array, Array]:
    """Faces of each axis, (batch, …, n + 1, …), as (batch, before, n + 1, after) of three axes; none for those that
    are not there."""
    absent = np.zeros((faces[0].shape[0], 1, 0, 1))
    found = [absent] * (3 - len(faces))
    for axis, values in enumerate(faces):
        shape = values.shape[1:]
        before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
        found.append(np.ascontiguousarray(values).reshape(values.shape[0], before, shape[axis], after))
    return found[0], found[1], found[2]


def neighbours(cells: Array, axis: int, periodic: bool) -> tuple[Array, Array]:
    """The cells (batch, *grid) on the low and the high side of each of the n + 1 faces along an axis. Beyond the ends
    of an axis that is not periodic stands what a straight line through the two last cells has there."""
    moved = np.moveaxis(cells, 1 + axis, -1)
    first, last = moved[..., :1], moved[..., -1:]
    if periodic:
        before, after = last, first
    elif moved.shape[-1] > 1:
        before, after = 2.0 * first - moved[..., 1:2], 2.0 * last - moved[..., -2:-1]
    else:
        before, after = first, last
    low, high = np.concatenate([before, moved], axis=-1), np.concatenate([moved, after], axis=-1)
    return np.moveaxis(low, -1, 1 + axis), np.moveaxis(high, -1, 1 + axis)


@numba.njit(cache=True, nogil=True)
def add(total: Array, factor: float, values: Array) -> None:
    """total += factor·values, in a loop that compiles in a tenth of the time."""
    for i in range(total.size):
        total[i] += factor * values[i]
