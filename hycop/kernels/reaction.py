"""Pointwise logistic growth, u' = r·u·(1 − u), with a = r·duration per sample."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]

BLOCK = 1024
"""Values per task: small enough to share one large sample among threads, large enough to hide the sharing."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def grow(u: Array, a: float) -> None:
    """u ← u·e^a / (u·e^a + 1 − u), every value in place, with both terms divided by the larger exponential, so that no
    large a overflows or cancels; 0 and 1 stay."""
    zero, one, nan = u.dtype.type(0.0), u.dtype.type(1.0), u.dtype.type(np.nan)
    small = u.dtype.type(math.exp(-abs(a)))
    up, down = (small, one) if a < 0 else (one, small)
    for i in range(u.size):
        value = u[i]
        top = value * up
        bottom = top + (one - value) * down
        # a bottom below zero: a pole was passed on the way, and the exact solution has gone to infinity
        moved = top / bottom if bottom > zero else nan
        u[i] = value if value in (zero, one) else moved


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _logistic(u: Array, out: Array, a: Array) -> None:
    samples, size = u.shape
    blocks = (size + BLOCK - 1) // BLOCK
    for task in numba.prange(samples * blocks):
        sample, start = task // blocks, task % blocks * BLOCK
        stop = min(start + BLOCK, size)
        out[sample, start:stop] = u[sample, start:stop]
        grow(out[sample, start:stop], a[sample])


def logistic(u: Array, a: Array) -> Array:
    """The exact flow."""
    flat = np.ascontiguousarray(u).reshape(u.shape[0], -1)
    out = np.empty_like(flat)
    with sharing(u.size):
        _logistic(flat, out, np.asarray(a, dtype=np.float64))
    return out.reshape(u.shape)


@numba.njit(parallel=True, cache=True)
def _rk4_logistic(u: Array, out: Array, step: Array, steps: Array) -> None:
    samples, size = u.shape
    blocks = (size + BLOCK - 1) // BLOCK
    half, sixth, two, one = u.dtype.type(0.5), u.dtype.type(1.0 / 6.0), u.dtype.type(2.0), u.dtype.type(1.0)
    for task in numba.prange(samples * blocks):
        sample, start = task // blocks, task % blocks * BLOCK
        h = step[sample]
        values = out[sample, start : min(start + BLOCK, size)]
        values[:] = u[sample, start : start + values.size]
        for _ in range(steps[sample]):  # outside the loop over values, so that that one is vectorised
            for i in range(values.size):
                value = values[i]
                k1 = h * value * (one - value)
                v2 = value + half * k1
                k2 = h * v2 * (one - v2)
                v3 = value + half * k2
                k3 = h * v3 * (one - v3)
                v4 = value + k3
                k4 = h * v4 * (one - v4)
                values[i] = value + sixth * (k1 + two * (k2 + k3) + k4)


def rk4_logistic(u: Array, a: Array, steps: Array) -> Array:
    """The same flow by the classical Runge–Kutta method in ``steps`` equal steps per sample."""
    flat = np.ascontiguousarray(u).reshape(u.shape[0], -1)
    out = np.empty_like(flat)
    with sharing(4 * flat[:1].size * steps.sum()):
        _rk4_logistic(flat, out, (a / np.maximum(steps, 1)).astype(u.dtype), steps)
    return out.reshape(u.shape)
