"""Burgers' nonlinear advection on a line: Godunov's exact flux between reconstructed edges, sub-stepped."""

from __future__ import annotations

from math import ceil, inf, nan
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
    fill_ghosts,
    padded,
    unpad,
)
from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]


@numba.njit(cache=True, error_model="numpy")
def _stage(v, base, out, n, ratio, keep, reconstruction):  # type: ignore[no-untyped-def]
    """out = keep·base + (1 − keep)·(v − τ/Δx·(flux out − flux in)).

    The flux ½u² is convex with its minimum at zero, so Godunov's is the larger of what either side sends to the other.
    """
    lower, upper, flux = np.empty((1, room(n + 2))), np.empty((1, room(n + 2))), np.empty(n + 1)
    edges(v, 0, GHOSTS - 1, n + 2, 1, reconstruction, lower, upper)
    for k in range(n + 1):
        flux[k] = 0.5 * max(max(upper[0, k], 0.0) ** 2, min(lower[0, k + 1], 0.0) ** 2)
    for k in range(n):
        here = k + GHOSTS
        out[0, here] = keep * base[0, here] + (1.0 - keep) * (v[0, here] - ratio * (flux[k + 1] - flux[k]))


@numba.njit(cache=True)
def _fastest(v, n):  # type: ignore[no-untyped-def]
    """The largest |u|, or NaN if one is not finite."""
    lost, most = 0, 0.0
    for k in range(GHOSTS, GHOSTS + n):
        lost += 0 if abs(v[0, k]) < inf else 1
        most = max(most, abs(v[0, k]))
    return most if lost == 0 else nan


@numba.njit(cache=True)
def _march(v, n, duration, codes, signs, dx, cfl, keeps, reconstruction):  # type: ignore[no-untyped-def]
    """A padded state after a duration, in sub-steps as long as the speeds of each moment allow; NaN if it is lost."""
    stage, new = np.empty_like(v), np.empty_like(v)
    rate = _fastest(v, n) / dx
    remaining = duration
    while remaining > 0.0 and remaining * rate / cfl <= MOST_SUB_STEPS:
        step = remaining / max(1.0, ceil(remaining * rate / cfl * (1.0 - ROUNDING)))
        now, out = v, stage
        for number in range(keeps.size):
            fill_ghosts(now, 1, n, False, codes, signs)
            _stage(now, v, out, n, step / dx, keeps[number], reconstruction)
            now, out = out, new if number == 0 else now
        remaining, rate = remaining - step, _fastest(now, n) / dx
        v, stage, new = now, out, v
    if remaining > 0.0 or np.isnan(rate):
        v[:] = nan
    return v


@numba.njit(cache=True, parallel=True)
def _flow(u, out, durations, codes, dx, cfl, keeps, reconstruction):  # type: ignore[no-untyped-def]
    signs = np.ones((1, 2))
    for i in numba.prange(u.shape[0]):
        v = padded(u, i, False)
        v = _march(v, u.shape[3], durations[i], codes, signs, dx[i], cfl, keeps, reconstruction)
        unpad(v, out, i, False)


@numba.njit(cache=True, parallel=True)
def _tendencies(u, out, codes, dx, reconstruction):  # type: ignore[no-untyped-def]
    signs, n = np.ones((1, 2)), u.shape[3]
    for i in numba.prange(u.shape[0]):
        v = padded(u, i, False)
        new, rate = np.full_like(v, nan), _fastest(v, n) / dx[i]
        if rate >= 0.0:  # false if NaN
            step = 1.0 / max(rate, 1e-300)
            fill_ghosts(v, 1, n, False, codes, signs)
            _stage(v, v, new, n, step / dx[i], 0.0, reconstruction)
            new = (new - v) / step
        unpad(new, out, i, False)


def tendencies(u: Array, boundary: str, dx: Array, reconstruction: str) -> Array:
    """du/dt of the semi-discrete scheme (batch, 1, n), NaN for a sample that is not finite.

    The change in an Euler step with a Courant number of one, over its length: rounding is then that of the fluxes.
    """
    state = np.ascontiguousarray(u, dtype=np.float64)[:, :, None]
    out = np.empty_like(state)
    with sharing(u.size):
        _tendencies(state, out, np.array([0, BOUNDARY_CODES[boundary]]), dx, RECONSTRUCTIONS[reconstruction])
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def flow(u: Array, durations: Array, boundary: str, dx: Array, cfl: float, reconstruction: str) -> Array:
    """The states (batch, 1, n) after their durations; NaN for a sample that is lost on the way."""
    state = np.ascontiguousarray(u, dtype=np.float64)[:, :, None]
    out, keeps = np.empty_like(state), STAGES[reconstruction]
    codes = np.array([0, BOUNDARY_CODES[boundary]])
    with sharing(keeps.size * u.size):
        _flow(state, out, durations, codes, dx, cfl, keeps, RECONSTRUCTIONS[reconstruction])
    return out.reshape(u.shape).astype(u.dtype, copy=False)
