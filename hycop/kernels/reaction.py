"""Pointwise logistic growth, u' = r·u·(1 − u), with a = r·duration per sample."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]

BLOCK = 1024
"""Values per task: small enough to share one large sample among threads, large enough to hide the sharing."""


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _logistic(u: Array, out: Array, grow: Array, fade: Array) -> None:
    samples, size = u.shape
    blocks = (size + BLOCK - 1) // BLOCK
    zero, one, nan = u.dtype.type(0.0), u.dtype.type(1.0), u.dtype.type(np.nan)
    for task in numba.prange(samples * blocks):
        sample, start = task // blocks, task % blocks * BLOCK
        p, q = grow[sample], fade[sample]
        for i in range(start, min(start + BLOCK, size)):
            value = u[sample, i]
            top = value * p
            bottom = top + (one - value) * q
            # a bottom below zero: a pole was passed on the way, and the exact solution has gone to infinity
            moved = top / bottom if bottom > zero else nan
            out[sample, i] = value if value in (zero, one) else moved


def logistic(u: Array, a: Array) -> Array:
    """u·e^a / (u·e^a + 1 − u): the exact flow, with both terms divided by the larger exponential, so that no large a
    overflows or cancels; 0 and 1 stay."""
    flat = np.ascontiguousarray(u).reshape(u.shape[0], -1)
    out = np.empty_like(flat)
    small = np.exp(-np.abs(a))
    grow, fade = np.where(a < 0, small, 1.0), np.where(a < 0, 1.0, small)
    with sharing(u.size):
        _logistic(flat, out, grow.astype(u.dtype), fade.astype(u.dtype))
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
