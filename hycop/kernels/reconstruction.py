"""Ghost cells and values at the edges of cells, for finite volumes on a line or in a plane.

A padded state is (channel, cell): rows of ``row_width(n)`` cells one after the other, and in a plane GHOSTS rows before
the first and after the last. So a neighbour along either axis is a fixed stride away, and one loop serves both axes.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.lanes import LANES, absolute, aligned_rows, fused, load, minimum, store, where_positive

Array = npt.NDArray[Any]

GHOSTS = 3
"""Cells beyond each end: the flux at an end needs the edge of the first of them, which needs two more."""

PERIODIC, WALL, OUTFLOW = 0, 1, 2
"""Codes of what is beyond the ends of an axis."""

UPWIND, MUSCL, WENO5, CENTRAL, HANCOCK = 0, 1, 2, 3, 4
RECONSTRUCTIONS = {
    "upwind": UPWIND,
    "muscl": MUSCL,
    "weno5": WENO5,
    "hancock": CENTRAL + HANCOCK,
    "weno5-hancock": WENO5 + HANCOCK,
}
"""``HANCOCK`` is added to a way to reconstruct edges if these are then taken to half the step."""

STAGES = {
    "upwind": np.array([0.0]),
    "muscl": np.array([0.0, 0.5]),
    "weno5": np.array([0.0, 0.75, 1.0 / 3.0]),
    "hancock": np.array([0.0]),  # edges are those at half the step
    "weno5-hancock": np.array([0.0]),
}
"""Strong-stability-preserving Runge–Kutta methods of orders 1, 2 and 3 (Shu and Osher, J. Comput. Phys. 77 (1988) 439):
each stage is keep·u + (1 − keep)·(v + τ L(v)), with u the state before the step and v that of the stage before."""

CELLS = {"upwind": 1, "muscl": 3, "weno5": 5, "hancock": 3, "weno5-hancock": 5}
"""Cells from which the edges of one cell are reconstructed: fewer along an axis would be counted twice."""

TINY = 1e-40
"""Keeps the weights of WENO finite where cells are equal; far below the square of any difference that matters."""

ROUNDING = 1e-12
"""A duration that is this close, relatively, to a whole number of sub-steps needs no further one."""

MOST_SUB_STEPS = 1_000_000
"""Sub-steps for one duration: a state that asks for more has blown up."""


@numba.njit(cache=True)
def inside(i: int, n: int, code: int) -> tuple[int, bool]:
    """The cell that stands in for cell i of a row of n, and whether it is seen in a mirror."""
    if code == PERIODIC:
        return i % n, False
    if code == WALL:
        i %= 2 * n
        return (i, False) if i < n else (2 * n - 1 - i, True)
    return min(max(i, 0), n - 1), False


@numba.njit(cache=True, nogil=True, inline="always")
def row_width(n: int) -> int:
    """Cells from one row of n to the next: ghosts at both ends, and room for a last vector that reaches beyond its row
    without touching the cells inside the next one."""
    return (n + 2 * GHOSTS + LANES - 1) // LANES * LANES


@numba.njit(cache=True)
def padded(u, sample, plane):  # type: ignore[no-untyped-def]
    """One sample of a state (sample, channel, row, cell) with room for ghosts.

    An array of its own: views of u would make threads contend for its reference count.
    """
    channels, rows, n = u.shape[1:]
    width, above = row_width(n), GHOSTS if plane else 0
    v = aligned_rows(channels, (rows + 2 * above) * width + LANES, GHOSTS)  # vectors may reach beyond the last cell
    v[:] = 0.0
    for c in range(channels):
        for i in range(rows):
            for k in range(n):
                v[c, (above + i) * width + GHOSTS + k] = u[sample, c, i, k]
    return v


@numba.njit(cache=True)
def unpad(v, out, sample, plane):  # type: ignore[no-untyped-def]
    """Writes the cells inside of a padded state to their sample."""
    channels, rows, n = out.shape[1:]
    width, above = row_width(n), GHOSTS if plane else 0
    for c in range(channels):
        for i in range(rows):
            for k in range(n):
                out[sample, c, i, k] = v[c, (above + i) * width + GHOSTS + k]


@numba.njit(cache=True)
def fill_ghosts(v, rows, n, plane, codes, signs):  # type: ignore[no-untyped-def]
    """Cells beyond the ends of both axes; ``signs`` (channel, axis) is −1 where a wall flips what it mirrors.

    Corners are filled from ghosts of the second axis.
    """
    width, above = row_width(n), GHOSTS if plane else 0
    for j in range(GHOSTS):
        for ghost in (-1 - j, n + j):
            source, mirrored = inside(ghost, n, codes[1])
            for c in range(v.shape[0]):
                sign = signs[c, 1] if mirrored else 1.0
                for i in range(above, above + rows):
                    row = i * width + GHOSTS
                    v[c, np.uint64(row + ghost)] = sign * v[c, np.uint64(row + source)]
    for j in range(GHOSTS if plane else 0):
        for ghost in (-1 - j, rows + j):
            source, mirrored = inside(ghost, rows, codes[0])
            here, there = (above + ghost) * width, (above + source) * width
            for c in range(v.shape[0]):
                sign, cells = signs[c, 0] if mirrored else 1.0, c * v.shape[1]
                for k in range(0, width, LANES):
                    store(v, cells + here + k, sign * load(v, cells + there + k))


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def cells_around(v, x, stride):  # type: ignore[no-untyped-def]
    """``LANES`` cells from x on, in the middle of their two neighbours on either side."""
    before = load(v, x - 2 * stride), load(v, x - stride)
    return before[0], before[1], load(v, x), load(v, x + stride), load(v, x + 2 * stride)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _van_leer(before, here, after):  # type: ignore[no-untyped-def]
    """Both edges with van Leer's slope (J. Comput. Phys. 32 (1979) 101): zero at an extremum."""
    left, right = here - before, after - here
    product = left * right
    half = where_positive(product, product / (left + right), 0.0)
    return here - half, here + half


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _monotonised_central(before, here, after):  # type: ignore[no-untyped-def]
    """Both edges with the central slope, as far as no edge goes beyond a neighbour (van Leer, J. Comput. Phys. 23
    (1977) 276): zero at an extremum."""
    left, right = here - before, after - here
    size = minimum(minimum(absolute(left), absolute(right)), 0.25 * absolute(left + right))
    half = where_positive(left * right, where_positive(left, size, 0.0 - size), 0.0)
    return here - half, here + half


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _rough(bend, lean):  # type: ignore[no-untyped-def]
    """Four times a smoothness indicator, 13/3 bend² + lean²."""
    return fused(13.0 / 3.0 * bend, bend, lean * lean)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _weno5(a, b, c, d, e):  # type: ignore[no-untyped-def]
    """Both edges of the middle of five cells by WENO-Z (Borges et al., J. Comput. Phys. 227 (2008) 3191).

    Written so that the mirror image of the cells gives the mirror image of the edges, to the bit: what is contracted to
    one rounding has a mirror image that is contracted likewise.
    """
    p, q, r, s = b - a, c - b, d - c, e - d
    bend0, bend1, bend2 = q - p, r - q, s - r
    thrice_q, thrice_r = 3.0 * q, 3.0 * r
    first, second, third = _rough(bend0, thrice_q - p), _rough(bend1, q + r), _rough(bend2, thrice_r - s)
    tau = absolute(first - third)
    first, second, third = first + TINY, second + TINY, third + TINY
    outer = first * third
    scaled = tau / (outer * second)  # the three quotients tau / rough for one division
    ratio0, ratio1, ratio2 = scaled * (second * third), scaled * outer, scaled * (second * first)
    weight0, weight2 = fused(ratio0, ratio0, 1.0), fused(ratio2, ratio2, 1.0)
    weight1, light0, light2 = fused(6.0 * ratio1, ratio1, 6.0), 3.0 * weight0, 3.0 * weight2
    fall = fused(weight2, fused(-2.0, bend2, thrice_r), light0 * (thrice_q + bend0))
    rise = fused(weight0, fused(2.0, bend0, thrice_q), light2 * (thrice_r - bend2))
    fall, rise = fused(weight1, thrice_q + bend1, fall), fused(weight1, thrice_r - bend1, rise)
    down, up = (weight2 + light0) + weight1, (weight0 + light2) + weight1
    scale = 1.0 / (6.0 * (down * up))  # two quotients for one division, which takes as long as a dozen products
    return c - (fall * up) * scale, c + (rise * down) * scale


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def edges_of(around, reconstruction):  # type: ignore[no-untyped-def]
    """Values at both edges of the cells in the middle of ``cells_around``.

    It takes no array: Numba would count references to it in the loops that this is part of.
    """
    a, b, c, d, e = around
    if reconstruction == WENO5:
        return _weno5(a, b, c, d, e)
    if reconstruction == MUSCL:
        return _van_leer(b, c, d)
    if reconstruction == CENTRAL:
        return _monotonised_central(b, c, d)
    return c, c


@numba.njit(cache=True, nogil=True, error_model="numpy")
def edges(v, c, start, count, stride, reconstruction, lower, upper):  # type: ignore[no-untyped-def]
    """Values of channel c at both edges of ``count`` cells from ``start`` on, across the axis of the given stride. The
    rows of ``lower`` and ``upper`` have ``room``."""
    cells, own = c * v.shape[1], c * lower.shape[1]
    for k in range(0, count, LANES):
        low, high = edges_of(cells_around(v, cells + start + k, stride), reconstruction)
        store(lower, own + k, low)
        store(upper, own + k, high)
