"""Shallow water over a bed that is not flat, well balanced: a lake at rest stays at rest."""

from __future__ import annotations

from math import ceil, sqrt
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.lanes import room
from hycop.kernels.sides import OUTFLOW, PERIODIC, WALL
from hycop.kernels.threads import in_parts
from hycop.kernels.water_fluxes import BOTH, flux_through

Array = npt.NDArray[Any]
CODES = {"periodic": PERIODIC, "wall": WALL, "outflow": OUTFLOW}


@numba.njit(cache=True, nogil=True, inline="always", error_model="numpy")
def _half_slope(before: float, here: float, after: float) -> float:
    """van Leer's limited slope times half a cell."""
    left, right = here - before, after - here
    product = left * right
    return product / (left + right) if product > 0.0 else 0.0


@numba.njit(cache=True, nogil=True)
def _gather(u, bed, axis, number, normal, code, line):  # type: ignore[no-untyped-def]
    """A line of cells with two beyond either end: channels, then the bed."""
    n, last = u.shape[1 + axis], line.shape[0] - 1
    for j in range(n + 4):
        i, sign = j - 2, 1.0
        if code == PERIODIC:
            i = i % n
        elif i < 0 or i >= n:
            sign = -1.0 if code == WALL else 1.0
            mirrored = -1 - i if i < 0 else 2 * n - 1 - i
            i = mirrored if code == WALL else min(max(i, 0), n - 1)
        row, column = (i, number) if axis == 0 else (number, i)
        for c in range(last):
            line[c, j] = u[c, row, column]
        line[normal, j] *= sign
        line[last, j] = bed[row, column]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _reconstruct(line, low, high):  # type: ignore[no-untyped-def]
    """States at both edges of each cell, and the bed there: depth is the surface less the bed. Where that is not
    positive, surface and bed are flat within the cell."""
    last = line.shape[0] - 1
    for j in range(1, line.shape[1] - 1):
        for c in range(1, last):
            slope = _half_slope(line[c, j - 1], line[c, j], line[c, j + 1])
            low[c, j], high[c, j] = line[c, j] - slope, line[c, j] + slope
        before, here = line[0, j - 1] + line[last, j - 1], line[0, j] + line[last, j]
        rise = _half_slope(before, here, line[0, j + 1] + line[last, j + 1])
        slope = _half_slope(line[last, j - 1], line[last, j], line[last, j + 1])
        if not abs(rise - slope) < line[0, j]:
            rise = slope = 0.0
        low[last, j], high[last, j] = line[last, j] - slope, line[last, j] + slope
        low[0, j], high[0, j] = here - rise - low[last, j], here + rise - high[last, j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _at_face(edges, j, bed, out, k):  # type: ignore[no-untyped-def]
    """The state of an edge above the higher bed of its face, with its own velocity."""
    depth = max(0.0, edges[0, j] + edges[edges.shape[0] - 1, j] - bed)
    share = depth / edges[0, j] if edges[0, j] > 0.0 else 0.0
    out[0, k] = depth
    for c in range(1, out.shape[0]):
        out[c, k] = share * edges[c, j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_axis(u, bed, change, axis, normal, code, g, dx, system):  # type: ignore[no-untyped-def]
    """What fluxes along an axis and the slope of the bed change (Audusse et al.)."""
    channels, n, last = u.shape[0], u.shape[1 + axis], u.shape[0]
    line, low, high = np.empty((channels + 1, n + 4)), np.empty((channels + 1, n + 4)), np.empty((channels + 1, n + 4))
    faces = room(n + 1)
    left, right, flux = np.ones((channels, faces)), np.ones((channels, faces)), np.empty((channels, faces))
    for number in range(u.shape[2 - axis]):
        _gather(u, bed, axis, number, normal, code, line)
        _reconstruct(line, low, high)
        for k in range(n + 1):  # the face between cells k + 1 and k + 2 of the line
            higher = max(high[last, k + 1], low[last, k + 2])
            _at_face(high, k + 1, higher, left, k)
            _at_face(low, k + 2, higher, right, k)
        flux_through(system, left, right, 0, n + 1, normal, channels - normal if channels == 3 else 0, g, 0.0, flux)
        for k in range(n):
            j = k + 2
            row, column = (k, number) if axis == 0 else (number, k)
            for c in range(channels):
                change[c, row, column] -= (flux[c, k + 1] - flux[c, k]) / dx
            # pressure on the steps of the bed at the faces, and on its slope within the cell
            ahead = 0.5 * g * (high[0, j] ** 2 - left[0, k + 1] ** 2)
            back = 0.5 * g * (low[0, j] ** 2 - right[0, k] ** 2)
            slope = 0.5 * g * (low[0, j] + high[0, j]) * (low[last, j] - high[last, j])
            change[normal, row, column] += (slope - ahead + back) / dx


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _change(u, bed, change, codes, g, dx, system):  # type: ignore[no-untyped-def]
    change[:] = 0.0
    first = 3 - u.shape[0]  # one momentum: the first axis is not there
    for axis in range(first, 2):
        _add_axis(u, bed, change, axis, 1 + axis - first, codes[axis], g, dx[axis], system)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fastest(u, g, dx, system):  # type: ignore[no-untyped-def]
    """The largest Σ_i speed_i/Δx_i of all cells; NaN if a depth is not positive."""
    most, first = 0.0, 3 - u.shape[0]
    for row in range(u.shape[1]):
        for column in range(u.shape[2]):
            h, total = u[0, row, column], 0.0
            if not h > 0.0:
                return np.nan
            for axis in range(first, 2):
                flow = abs(u[1 + axis - first, row, column]) / h if system == BOTH else 0.0
                total += (flow + sqrt(g * h)) / dx[axis]
            most = max(most, total)
    return most


@numba.njit(cache=True, nogil=True)
def _advance(first, last, u, bed, duration, codes, g, dx, cfl, system):  # type: ignore[no-untyped-def]
    """Samples first … last − 1 to the end of their durations by Heun's method, in place."""
    for sample in range(first, last):
        v, rate, left = u[sample], np.empty(u.shape[1:]), duration[sample]
        middle = np.empty(u.shape[1:])
        while left > 0.0:
            wanted = left * _fastest(v, g[sample], dx[sample], system) / cfl
            if not wanted < 1e8:
                v[:] = np.nan
                break
            step = left / max(1, ceil(wanted))
            _change(v, bed[sample], rate, codes, g[sample], dx[sample], system)
            flat, change, stage = v.reshape(-1), rate.reshape(-1), middle.reshape(-1)
            for i in range(flat.size):
                stage[i] = flat[i] + step * change[i]
                flat[i] += 0.5 * step * change[i]
            _change(middle, bed[sample], rate, codes, g[sample], dx[sample], system)
            for i in range(flat.size):
                flat[i] += 0.5 * step * change[i]
            left = left - step if wanted > 1.0 else 0.0


@numba.njit(cache=True, nogil=True)
def _rates(first, last, u, bed, out, codes, g, dx, system):  # type: ignore[no-untyped-def]
    for sample in range(first, last):
        _change(u[sample], bed[sample], out[sample], codes, g[sample], dx[sample], system)


@numba.njit(cache=True, nogil=True)
def _speeds(first, last, u, out, g, dx, system):  # type: ignore[no-untyped-def]
    for sample in range(first, last):
        out[sample] = _fastest(u[sample], g[sample], dx[sample], system)


def _on_two_axes(u: Array, spacing: Array) -> tuple[Array, Array]:
    """A copy of the state (batch, channel, rows, columns) in double precision, and the widths (batch, 2)."""
    shape = (u.shape[0], u.shape[1], *(1,) * (4 - u.ndim), *u.shape[2:])
    state = np.array(u, dtype=np.float64).reshape(shape)
    return state, np.pad(spacing, ((0, 0), (2 - spacing.shape[1], 0)), constant_values=1.0)


def _codes(boundary: tuple[str, ...]) -> Array:
    return np.array([PERIODIC] * (2 - len(boundary)) + [CODES[name] for name in boundary])


def flow(
    u: Array, bed: Array, tau: Array, boundary: tuple[str, ...], dx: Array, g: Array, cfl: float, system: int
) -> Array:
    """The state after a duration per sample; NaN where a depth is not positive."""
    state, widths = _on_two_axes(u, dx)
    ground = np.ascontiguousarray(bed).reshape(state.shape[0], *state.shape[2:])
    ready = (ground, tau, _codes(boundary), g, widths, cfl, system)
    in_parts(lambda first, last: _advance(first, last, state, *ready), u.shape[0], 100.0 * u.size)
    return state.reshape(u.shape).astype(u.dtype, copy=False)


def tendencies(u: Array, bed: Array, boundary: tuple[str, ...], dx: Array, g: Array, system: int) -> Array:
    """du/dt of the semi-discrete scheme."""
    state, widths = _on_two_axes(u, dx)
    ground, out = np.ascontiguousarray(bed).reshape(state.shape[0], *state.shape[2:]), np.empty(state.shape)
    ready = (ground, out, _codes(boundary), g, widths, system)
    in_parts(lambda first, last: _rates(first, last, state, *ready), u.shape[0], float(u.size))
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def speeds(u: Array, dx: Array, g: Array, system: int) -> Array:
    """Largest Σ_i speed_i/Δx_i (batch,); NaN where a depth is not positive."""
    state, widths = _on_two_axes(u, dx)
    out = np.empty(u.shape[0])
    _speeds(0, u.shape[0], state, out, g, widths, system)
    return out
