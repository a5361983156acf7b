"""Differences of cell averages along one axis, with closures at walls and open ends, as matrices."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array, Grid

GHOSTS = 3
FACE_VALUE = np.array([2.0, -13.0, 47.0, 27.0, -3.0]) / 60.0
"""Weights of u at i + ½ from the cells i − 2 … i + 2: fifth order, upwind-biased."""
FACE_GRADIENT = np.array([1.0, -15.0, 15.0, -1.0]) / 12.0
"""Weights of dx ∂u at i + ½ from the cells i − 1 … i + 2: fourth order."""
EXTRAPOLATION = np.array([(-1.0) ** k * comb(4, k + 1) for k in range(4)])
"""Weights of a cubic polynomial's average in a ghost cell, from the four cells next to it."""


@lru_cache(maxsize=32)
def axis_rates(cells: int, boundary: str) -> tuple[Array, Array, Array]:
    """The matrices (n, n) of −dx ∂u for wind to the right, of +dx ∂u for wind to the left, and of dx² ∂²u.

    They are differences of the fluxes at the faces, so each column adds up to zero unless the box is open.
    """
    values = _faces(FACE_VALUE, _extended(cells, boundary), 0)
    gradients = _faces(FACE_GRADIENT, _extended(cells, boundary), 1)
    if boundary == "wall":
        # The last cell collects the inflow; if the faces before it saw it, it would flow back.
        upwind = _faces(FACE_VALUE, _extended(cells - 1, boundary), 0)
        values[cells - 2 : cells] = np.pad(upwind[cells - 2 : cells], ((0, 0), (0, 1)))
        values[[0, cells]] = 0.0
    if boundary == "outflow":
        # Wind that enters brings the value at the end of the box, where the gradient is zero: an even extension.
        even = _extended(cells, boundary)
        even[:GHOSTS] = even[GHOSTS : 2 * GHOSTS][::-1]
        values[:GHOSTS] = _faces(FACE_VALUE, even, 0)[:GHOSTS]
    if boundary != "periodic":
        gradients[[0, cells]] = 0.0
    forward = -np.diff(values, axis=0)
    rates = forward, forward[::-1, ::-1].copy(), np.diff(gradients, axis=0)
    for matrix in rates:
        matrix.setflags(write=False)
    return rates


@lru_cache(maxsize=32)
def prolongation(cells: int, boundary: str, refinement: int) -> Array:
    """The matrix (n · refinement, n) from averages over cells to averages over their equal parts.

    In each cell the quartic polynomial with the averages of five cells, so the parts have the average of the whole.
    """
    powers = np.arange(5)

    def averages(left: Array, width: float) -> Array:
        integral = (left[:, None] + width) ** (powers + 1) - left[:, None] ** (powers + 1)
        out: Array = integral / (width * (powers + 1))
        return out

    parts = averages(np.arange(refinement) / refinement - 0.5, 1.0 / refinement)
    weights = np.linalg.solve(averages(np.arange(-2, 3) - 0.5, 1.0).T, parts.T).T
    extended = _extended(cells, boundary)
    matrix = np.zeros((cells, refinement, cells))
    for offset in range(5):
        first = GHOSTS - 2 + offset
        matrix += weights[None, :, offset, None] * extended[first : first + cells, None, :]
    joined = matrix.reshape(cells * refinement, cells)
    joined.setflags(write=False)
    return joined


def averages_of_points(u: Array, grid: Grid) -> Array:
    """Cell averages from values at the centres, u + dx²/24 ∂²u along each axis: fourth order."""
    for axis, boundary in enumerate(grid.boundary):
        u = u + second_difference(u, 2 + axis, boundary) / 24.0
    return u


def second_difference(u: Array, axis: int, boundary: str) -> Array:
    """u(i − 1) − 2 u(i) + u(i + 1); at the ends of a box that is not periodic, that of a cubic polynomial."""
    wide = _padded(u, axis, boundary)
    n = u.shape[axis]
    left, middle, right = (_part(wide, axis, first, n) for first in range(3))
    out: Array = left - 2.0 * middle + right
    return out


def neighbour_difference(u: Array, axis: int, boundary: str) -> Array:
    """½ (u(i + 1) − u(i − 1)), with the same ends."""
    wide = _padded(u, axis, boundary)
    n = u.shape[axis]
    out: Array = 0.5 * (_part(wide, axis, 2, n) - _part(wide, axis, 0, n))
    return out


def _part(u: Array, axis: int, first: int, count: int) -> Array:
    index = [slice(None)] * u.ndim
    index[axis] = slice(first, first + count)
    return u[tuple(index)]


def _padded(u: Array, axis: int, boundary: str) -> Array:
    """The state with one ghost cell at each end of an axis."""
    n = u.shape[axis]
    if boundary == "periodic":
        return np.concatenate([_part(u, axis, n - 1, 1), u, _part(u, axis, 0, 1)], axis=axis)
    _checked_cells(n)
    left, right = np.zeros((2, *_part(u, axis, 0, 1).shape))
    for distance, weight in enumerate(EXTRAPOLATION):
        left += weight * _part(u, axis, distance, 1)
        right += weight * _part(u, axis, n - 1 - distance, 1)
    return np.concatenate([left, u, right], axis=axis)


def _extended(cells: int, boundary: str) -> Array:
    """The matrix (n + 2 · ghosts, n) that continues the cells beyond both ends: periodic, or as cubic polynomials."""
    inside = np.eye(cells)
    if boundary == "periodic":
        return inside[np.arange(-GHOSTS, cells + GHOSTS) % cells]
    _checked_cells(cells)
    out = np.pad(inside, ((GHOSTS, GHOSTS), (0, 0)))
    last = GHOSTS + cells - 1
    for ghost in range(1, GHOSTS + 1):
        near = np.arange(1, EXTRAPOLATION.size + 1) - ghost
        out[GHOSTS - ghost] = EXTRAPOLATION @ out[GHOSTS + near]
        out[last + ghost] = EXTRAPOLATION @ out[last - near]
    return out


def _faces(stencil: Array, extended: Array, first: int) -> Array:
    """A stencil at the n + 1 faces, as a matrix (n + 1, n); ``first`` ghost cell that the first face sees."""
    faces = extended.shape[1] + 1
    out = np.zeros((faces, extended.shape[1]))
    for offset, weight in enumerate(stencil):
        out += weight * extended[first + offset : first + offset + faces]
    return out


def _checked_cells(cells: int) -> None:
    if cells < EXTRAPOLATION.size:
        raise InvalidInputError(
            f"finite-volume reference: {cells} cells along an axis that is not periodic; "
            f"at least {EXTRAPOLATION.size + 1} are needed, refinement included"
        )
