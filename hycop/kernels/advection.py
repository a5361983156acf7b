"""Conservative transport at constant velocity: first-order upwind and MUSCL, sub-stepped, any boundary."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing, threads_for

Array = npt.NDArray[Any]

BOUNDARY_CODES = {"periodic": 0, "wall": 1, "outflow": 2}

BLOCK = 16
"""Rows per task where the threads share one large sample."""


@numba.njit(cache=True, inline="always")
def _neighbour(i: int, n: int, code: int) -> int:
    """Index of the cell that stands in for cell i: wrapped if periodic, else the nearest one inside."""
    if code == 0:
        return i % n
    return min(max(i, 0), n - 1)


@numba.njit(cache=True, inline="always", error_model="numpy")
def _face(before: float, here: float, after: float, reach: float) -> float:
    """Value of the middle cell ``reach`` half widths from its centre, with van Leer's slope: zero at an extremum."""
    left, right = here - before, after - here
    product = left * right
    return here + reach * (product / (left + right) if product > 0.0 else 0.0)


@numba.njit(cache=True, error_model="numpy")
def _stage(v, base, out, first, last, nu, codes, keep, slopes):  # type: ignore[no-untyped-def]
    """Rows first … last − 1 of out = keep·base + (1 − keep)·(v − Σ_axis (what leaves − what enters a cell)).

    What passes a face is nu times the value there of the cell upwind; ``slopes`` is 1 for MUSCL and 0 for upwind.
    One long function, because arrays handed to helpers would be counted as references, row by row.
    """
    n2, n3 = v.shape[1:]
    total, flux = np.empty(n3, dtype=v.dtype), np.zeros(n3 + 1, dtype=v.dtype)
    for row in range(first, last):
        i, j = row // n2, row % n2
        total[:] = 0.0
        for axis in range(2):  # faces towards other rows; cells are named up2, up1, here, down along the wind
            if nu[axis] == 0.0:
                continue
            n, code, at, d = v.shape[axis], codes[axis], i if axis == 0 else j, 1 if nu[axis] > 0.0 else -1
            enters = 0.0 if code == 1 and not 0 <= at - d < n else abs(nu[axis])
            leaves = 0.0 if code == 1 and not 0 <= at + d < n else abs(nu[axis])
            up2, up1, down = _neighbour(at - 2 * d, n, code), _neighbour(at - d, n, code), _neighbour(at + d, n, code)
            i2, i1, i0 = (up2, up1, down) if axis == 0 else (i, i, i)
            j2, j1, j0 = (up2, up1, down) if axis == 1 else (j, j, j)
            for k in range(n3):
                here, up = v[i, j, k], v[i1, j1, k]
                outflow, inflow = _face(up, here, v[i0, j0, k], slopes), _face(v[i2, j2, k], up, here, slopes)
                total[k] += leaves * outflow - enters * inflow
        c, code = nu[2], codes[2]
        if c != 0.0:  # faces within the row: a cell gives the flux at its end, or at its start if the wind is negative
            shift, reach = (1, slopes) if c > 0.0 else (0, -slopes)
            for k in range(1, n3 - 1):
                flux[k + shift] = c * _face(v[i, j, k - 1], v[i, j, k], v[i, j, k + 1], reach)
            for k in (0, n3 - 1):
                before, after = v[i, j, _neighbour(k - 1, n3, code)], v[i, j, _neighbour(k + 1, n3, code)]
                flux[k + shift] = c * _face(before, v[i, j, k], after, reach)
            inlet, outlet, entrance = (0, n3, 0) if c > 0.0 else (n3, 0, n3 - 1)
            if code == 1:
                flux[outlet] = 0.0
            flux[inlet] = c * v[i, j, entrance] if code == 2 else flux[outlet]
        for k in range(n3):
            out[i, j, k] = keep * base[i, j, k] + (1.0 - keep) * (v[i, j, k] - (total[k] + (flux[k + 1] - flux[k])))


@numba.njit(cache=True, parallel=True)
def _advect_samples(u, out, nu, steps, codes, muscl):  # type: ignore[no-untyped-def]
    """A thread takes whole samples through all their sub-steps, so that a sample stays in its cache."""
    samples, channels, n1, n2, n3 = u.shape
    box, rows, slopes = (n1, n2, n3), n1 * n2, 1.0 if muscl else 0.0
    for sample in numba.prange(samples):
        # arrays of its own: views of u would make the threads contend for its reference count
        v, stage, new = np.empty(box, u.dtype), np.empty(box, u.dtype), np.empty(box, u.dtype)
        courant = nu[sample].copy()
        for channel in range(channels):
            v[:] = u[sample, channel]
            for _ in range(steps[sample]):
                if muscl:
                    _stage(v, v, stage, 0, rows, courant, codes, 0.0, slopes)
                    _stage(stage, v, new, 0, rows, courant, codes, 0.5, slopes)
                else:
                    _stage(v, v, new, 0, rows, courant, codes, 0.0, slopes)
                v, new = new, v
            out[sample, channel] = v


@numba.njit(cache=True, parallel=True)
def _advect_rows(u, out, nu, steps, codes, muscl):  # type: ignore[no-untyped-def]
    """The same, with the rows of one large sample shared among the threads."""
    samples, channels, n1, n2, n3 = u.shape
    box, rows, slopes = (n1, n2, n3), n1 * n2, 1.0 if muscl else 0.0
    blocks = (rows + BLOCK - 1) // BLOCK
    v, stage, new = np.empty(box, u.dtype), np.empty(box, u.dtype), np.empty(box, u.dtype)
    for sample in range(samples):
        for channel in range(channels):
            v[:] = u[sample, channel]
            for _ in range(steps[sample]):
                first = stage if muscl else new
                for block in numba.prange(blocks):
                    start, stop = block * BLOCK, min((block + 1) * BLOCK, rows)
                    _stage(v, v, first, start, stop, nu[sample], codes, 0.0, slopes)
                if muscl:
                    for block in numba.prange(blocks):
                        start, stop = block * BLOCK, min((block + 1) * BLOCK, rows)
                        _stage(stage, v, new, start, stop, nu[sample], codes, 0.5, slopes)
                v, new = new, v
            out[sample, channel] = v


@numba.njit(cache=True, parallel=True)
def _euler_changes(u, out, nu, codes, slopes):  # type: ignore[no-untyped-def]
    """What one Euler step changes."""
    samples, channels, n1, n2, n3 = u.shape
    for sample in numba.prange(samples):
        v, new, courant = np.empty((n1, n2, n3)), np.empty((n1, n2, n3)), nu[sample].copy()
        for channel in range(channels):
            v[:] = u[sample, channel]
            _stage(v, v, new, 0, n1 * n2, courant, codes, 0.0, slopes)
            out[sample, channel] = new - v


def _in_three_axes(u: Array, nu: Array, boundary: tuple[str, ...]) -> tuple[Array, Array, Array]:
    """State, Courant numbers and boundary codes, with axes of one cell put before the others."""
    padding = 3 - (u.ndim - 2)
    state = np.ascontiguousarray(u).reshape(u.shape[:2] + (1,) * padding + u.shape[2:])
    courant = np.zeros((u.shape[0], 3))
    courant[:, padding:] = nu
    return state, courant, np.array([0] * padding + [BOUNDARY_CODES[name] for name in boundary])


def tendencies(u: Array, speed: Array, boundary: tuple[str, ...], muscl: bool) -> Array:
    """du/dt of the semi-discrete scheme; ``speed`` (batch, axis) is c/Δx.

    The change in an Euler step with a Courant number of one, over its length: rounding is then that of the fluxes.
    """
    total = np.abs(speed).sum(axis=1, keepdims=True)
    step = 1.0 / np.maximum(total, 1e-300)  # any length will do where nothing moves
    state, courant, codes = _in_three_axes(u.astype(np.float64, copy=False), speed * step, boundary)
    out = np.empty_like(state)
    with sharing(u.size):
        _euler_changes(state, out, courant, codes, 1.0 if muscl else 0.0)
    out = out.reshape(u.shape) / step.reshape((-1,) + (1,) * (u.ndim - 1))
    return out.astype(u.dtype, copy=False)


def advect(u: Array, nu: Array, steps: Array, boundary: tuple[str, ...], muscl: bool) -> Array:
    """``steps`` sub-steps per sample with Courant numbers nu (batch, axis); MUSCL takes Heun's two stages in each."""
    state, courant, codes = _in_three_axes(u, nu, boundary)
    out = np.empty(state.shape, dtype=u.dtype)
    sweep = u[:1].size
    by_rows = u.shape[0] < threads_for(sweep)
    kernel = _advect_rows if by_rows else _advect_samples
    with sharing(sweep if by_rows else sweep * steps.sum()):
        kernel(state, out, courant, steps.astype(np.int64), codes, muscl)
    return out.reshape(u.shape)
