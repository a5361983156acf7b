"""A scalar conservation law u_t + Σ_i f_i(u)_i = 0 on up to three axes: Godunov's flux between reconstructed edges.

The fluxes are formulas on a tape. Godunov's flux is the least f between two edges that rise, and the largest between
two that fall; it is attained at an edge or where f' = 0 (Osher, SIAM J. Numer. Anal. 21 (1984) 217), so that f need
not be convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, nan
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.advection import BOUNDARY_CODES
from hycop.kernels.lanes import room
from hycop.kernels.reconstruction import (
    GHOSTS,
    MOST_SUB_STEPS,
    RECONSTRUCTIONS,
    ROUNDING,
    STAGES,
    edges,
    inside,
)
from hycop.kernels.tape import evaluate
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]

SCAN, MOST_SONIC, HALVINGS = 129, 8, 60
"""Values between which f' may change its sign, sonic values of an axis at most, and halvings to find one."""


@dataclass(frozen=True, eq=False)
class Law:
    """The fluxes of all axes and their derivatives, in this order, as the outputs of one tape each."""

    flux_code: Array
    flux_numbers: Array
    flux_outputs: Array
    slope_code: Array
    slope_numbers: Array
    slope_outputs: Array


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _sonic(v, k, law, points, values, counts):  # type: ignore[no-untyped-def]
    """Where f' of each axis vanishes between the least and the largest value, a little beyond them, and f there."""
    fcode, fnumbers, foutputs, scode, snumbers, soutputs = law
    low, high = v.min(), v.max()
    margin = 0.1 * (high - low)
    grid = np.linspace(low - margin, high + margin, SCAN).reshape(1, SCAN)
    registers, one, place = np.empty((scode.shape[0], SCAN)), np.empty((scode.shape[0], 1)), np.empty((1, 1))
    there = np.empty((fcode.shape[0], 1))
    counts[:] = 0
    if not high > low:
        return
    evaluate(scode, snumbers, grid, k, registers)
    for axis in range(foutputs.size):
        slope = registers[soutputs[axis]]
        for j in range(SCAN - 1):
            if slope[j] * slope[j + 1] < 0.0 or (slope[j] == 0.0 and j > 0):
                a, b, rising = grid[0, j], grid[0, j + 1], slope[j + 1] > 0.0
                for _ in range(HALVINGS if slope[j] != 0.0 else 0):
                    place[0, 0] = 0.5 * (a + b)
                    evaluate(scode, snumbers, place, k, one)
                    if (one[soutputs[axis], 0] > 0.0) == rising:
                        b = place[0, 0]
                    else:
                        a = place[0, 0]
                if counts[axis] < MOST_SONIC:
                    place[0, 0] = a
                    evaluate(fcode, fnumbers, place, k, there)
                    points[axis, counts[axis]], values[axis, counts[axis]] = a, there[foutputs[axis], 0]
                    counts[axis] += 1


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fastest(v, k, law, dx):  # type: ignore[no-untyped-def]
    """Σ_axis max|f'|/Δx over all values between the least and the largest, or NaN if one is not finite."""
    scode, snumbers, soutputs = law[3], law[4], law[5]
    low = high = v[0]
    for i in range(v.size):
        if not abs(v[i]) < np.inf:
            return nan
        low, high = min(low, v[i]), max(high, v[i])
    registers = np.empty((scode.shape[0], SCAN))
    evaluate(scode, snumbers, np.linspace(low, high, SCAN).reshape(1, SCAN), k, registers)
    total = 0.0
    for axis in range(soutputs.size):
        most = 0.0
        for i in range(SCAN):
            speed = abs(registers[soutputs[axis], i])
            if not speed <= most:  # also if it is NaN
                most = speed
        total += most / dx[axis]
    return total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _godunov(left, right, f_left, f_right, points, values, count):  # type: ignore[no-untyped-def]
    rises = left <= right
    out = min(f_left, f_right) if rises else max(f_left, f_right)
    for j in range(count):
        if min(left, right) < points[j] < max(left, right):
            out = min(out, values[j]) if rises else max(out, values[j])
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _changes(v, out, shape, codes, dx, k, law, sonic, reconstruction):  # type: ignore[no-untyped-def]
    """out = −Σ_axis (flux out − flux in)/Δx of the cells v, flattened."""
    fcode, fnumbers, foutputs = law[0], law[1], law[2]
    points, values, counts = sonic
    out[:] = 0.0
    stride = v.size
    for axis in range(shape.size):
        n = shape[axis]
        stride //= n
        if fcode[foutputs[axis], 0] == 0:  # a flux that is a number carries nothing
            continue
        line, flux = np.ones((1, room(n + 2 * GHOSTS))), np.empty(n + 1)
        lower, upper = np.empty((1, room(n + 2))), np.empty((1, room(n + 2)))
        faces, registers = np.empty((1, 2 * (n + 1))), np.empty((fcode.shape[0], 2 * (n + 1)))
        for number in range(v.size // n):
            start = (number // stride) * stride * n + number % stride
            for i in range(n):
                line[0, GHOSTS + i] = v[start + i * stride]
            for j in range(GHOSTS):
                for ghost in (-1 - j, n + j):
                    source, _ = inside(ghost, n, codes[axis])
                    line[0, GHOSTS + ghost] = line[0, GHOSTS + source]
            edges(line, 0, GHOSTS - 1, n + 2, 1, reconstruction, lower, upper)
            for i in range(n + 1):
                faces[0, i], faces[0, n + 1 + i] = upper[0, i], lower[0, i + 1]
            evaluate(fcode, fnumbers, faces, k, registers)
            f = registers[foutputs[axis]]
            for i in range(n + 1):
                left, right = faces[0, i], faces[0, n + 1 + i]
                flux[i] = _godunov(left, right, f[i], f[n + 1 + i], points[axis], values[axis], counts[axis])
            if codes[axis] == 1:
                flux[0] = flux[n] = 0.0
            for i in range(n):
                out[start + i * stride] -= (flux[i + 1] - flux[i]) / dx[axis]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _march(v, shape, codes, dx, k, law, duration, cfl, keeps, reconstruction):  # type: ignore[no-untyped-def]
    """The cells after a duration, in sub-steps as long as the speeds of each moment allow; NaN if they are lost."""
    axes = shape.size
    sonic = np.zeros((axes, MOST_SONIC)), np.zeros((axes, MOST_SONIC)), np.zeros(axes, dtype=np.int64)
    _sonic(v, k, law, sonic[0], sonic[1], sonic[2])
    base, change = v.copy(), np.empty_like(v)
    remaining, rate = duration, _fastest(v, k, law, dx)
    while remaining > 0.0 and remaining * rate / cfl <= MOST_SUB_STEPS:
        step = remaining / max(1.0, ceil(remaining * rate / cfl * (1.0 - ROUNDING)))
        base[:] = v
        for number in range(keeps.size):
            _changes(v, change, shape, codes, dx, k, law, sonic, reconstruction)
            keep = keeps[number]
            for i in range(v.size):
                v[i] = keep * base[i] + (1.0 - keep) * (v[i] + step * change[i])
        remaining, rate = remaining - step, _fastest(v, k, law, dx)
    if remaining > 0.0 or np.isnan(rate):
        v[:] = nan
    return v


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _flow(u, durations, shape, codes, dx, k, law, cfl, keeps, reconstruction, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        v = u[i].copy()
        u[i] = _march(v, shape, codes, dx[i].copy(), k[i].copy(), law, durations[i], cfl, keeps, reconstruction)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _tendencies(u, out, shape, codes, dx, k, law, reconstruction):  # type: ignore[no-untyped-def]
    axes = shape.size
    for i in range(u.shape[0]):
        v, number = u[i].copy(), k[i].copy()
        sonic = np.zeros((axes, MOST_SONIC)), np.zeros((axes, MOST_SONIC)), np.zeros(axes, dtype=np.int64)
        _sonic(v, number, law, sonic[0], sonic[1], sonic[2])
        _changes(v, out[i], shape, codes, dx[i].copy(), number, law, sonic, reconstruction)


def _arguments(u: Array, boundary: tuple[str, ...], law: Law) -> tuple[Array, Array, Array, tuple[Array, ...]]:
    """The cells (batch, cell), the shape of the grid, the codes of its boundaries, and the law as arrays."""
    cells = np.array(u, dtype=np.float64, order="C").reshape(u.shape[0], -1)
    codes = np.array([BOUNDARY_CODES[name] for name in boundary])
    arrays = (law.flux_code, law.flux_numbers, law.flux_outputs, law.slope_code, law.slope_numbers, law.slope_outputs)
    return cells, np.array(u.shape[1:]), codes, arrays


def flow(
    u: Array,
    durations: Array,
    boundary: tuple[str, ...],
    dx: Array,
    k: Array,
    law: Law,
    cfl: float,
    reconstruction: str,
) -> Array:
    """States (batch, *grid) after their durations; NaN for a sample that is lost on the way. ``k`` (batch, name) are
    the coefficients of the law."""
    cells, shape, codes, arrays = _arguments(u, boundary, law)
    keeps, kind = STAGES[reconstruction], RECONSTRUCTIONS[reconstruction]

    def some(first: int, last: int) -> None:
        _flow(cells, durations, shape, codes, dx, k, arrays, cfl, keeps, kind, first, last)

    in_parts(some, len(u), 10.0 * keeps.size * u.size)
    return cells.reshape(u.shape).astype(u.dtype, copy=False)


def tendencies(u: Array, boundary: tuple[str, ...], dx: Array, k: Array, law: Law, reconstruction: str) -> Array:
    """du/dt of the semi-discrete scheme (batch, *grid)."""
    cells, shape, codes, arrays = _arguments(u, boundary, law)
    out = np.empty_like(cells)
    _tendencies(cells, out, shape, codes, dx, k, arrays, RECONSTRUCTIONS[reconstruction])
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def fastest(u: Array, dx: Array, k: Array, law: Law) -> Array:
    """Σ_axis max|f'|/Δx of each sample: the inverse of the time in which a wave crosses a cell."""
    cells, _, _, arrays = _arguments(u, ("periodic",) * (u.ndim - 1), law)
    return np.array([_fastest(cells[i], k[i], arrays, dx[i]) for i in range(len(u))])
