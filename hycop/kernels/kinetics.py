"""Ordinary differential equations in each cell, by an embedded Runge–Kutta pair of order 8(5, 3) with step control.

The method is Dormand and Prince's (Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, 1993, II.5).
Blocks of cells have steps of their own; a block is always the same cells of a sample, so that no sample depends on the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from scipy.integrate import DOP853

from hycop.kernels.tape import evaluate
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]

STAGES = int(DOP853.n_stages)
A = np.ascontiguousarray(DOP853.A)
B = np.ascontiguousarray(DOP853.B)
FIFTH, THIRD = np.ascontiguousarray(DOP853.E5[:STAGES]), np.ascontiguousarray(DOP853.E3[:STAGES])
"""Weights of the two estimates of the error of a step."""

BLOCK = 512
"""Cells that share their steps."""

REACH = 0.3
"""First step, as a fraction of the time in which the largest value changes by itself."""

MOST_STEPS = 20_000
"""A block that needs more steps runs into a pole, or is stiff: its values become NaN."""

Rate = Callable[[Array], Array]
"""(channel, cell) → du/dt."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _largest(u):  # type: ignore[no-untyped-def]
    """The largest |u| of each channel, and NaN if one is not finite."""
    out = np.zeros(u.shape[0])
    for c in range(u.shape[0]):
        for i in range(u.shape[1]):
            value = abs(u[c, i])
            if not value <= out[c]:
                out[c] = value
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def first_step(u, slope, duration):  # type: ignore[no-untyped-def]
    """A step in which no channel changes by more than a fraction of its size."""
    size, steep = _largest(u), _largest(slope)
    fastest = 0.0
    for c in range(size.size):
        if steep[c] > 0.0:
            fastest = max(fastest, steep[c] / max(size[c], 1e-3 * size.max(), 1e-300))
    return duration if fastest * duration <= REACH else REACH / fastest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def stage_state(u, slopes, weights, count, h, out):  # type: ignore[no-untyped-def]
    """out = u + h Σ_j weights[j] slopes[j] over the first ``count`` slopes."""
    out[:] = u
    for j in range(count):
        weight = h * weights[j]
        if weight != 0.0:
            for c in range(u.shape[0]):
                for i in range(u.shape[1]):
                    out[c, i] += weight * slopes[j, c, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def error_of(u, new, slopes, h, tolerance):  # type: ignore[no-untyped-def]
    """The estimated error of a step over what the tolerance allows, in the largest cell."""
    before, after = _largest(u), _largest(new)
    floor = 1e-3 * max(before.max(), after.max())
    fifth = third = 0.0
    for c in range(u.shape[0]):
        scale = tolerance * max(max(before[c], after[c]), max(floor, 1e-300))
        for i in range(u.shape[1]):
            five = three = 0.0
            for j in range(STAGES):
                five += FIFTH[j] * slopes[j, c, i]
                three += THIRD[j] * slopes[j, c, i]
            five, three = abs(five) / scale, abs(three) / scale
            if not five <= fifth:
                fifth = five
            if not three <= third:
                third = three
    if fifth == 0.0:
        return 0.0
    return h * fifth**2 / np.sqrt(fifth**2 + 0.01 * third**2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def factor_of(error, accepted):  # type: ignore[no-untyped-def]
    """By how much the next step is longer than this one."""
    if not error < np.inf:
        return 0.2
    wanted = 6.0 if error == 0.0 else 0.9 * error ** (-1.0 / 8.0)
    return min(6.0, max(0.333, wanted)) if accepted else min(0.9, max(0.2, wanted))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rate(code, numbers, outputs, u, k, registers, out):  # type: ignore[no-untyped-def]
    evaluate(code, numbers, u, k, registers)
    for c in range(u.shape[0]):
        for i in range(u.shape[1]):
            out[c, i] = registers[outputs[c], i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _march(u, duration, k, code, numbers, outputs, tolerance):  # type: ignore[no-untyped-def]
    """A block after a duration, in place."""
    registers = np.empty((code.shape[0], u.shape[1]))
    slopes, state = np.empty((STAGES, *u.shape)), np.empty_like(u)
    _rate(code, numbers, outputs, u, k, registers, slopes[0])
    rest, h = duration, first_step(u, slopes[0], duration)
    for _ in range(MOST_STEPS):
        h = min(h, rest)
        for j in range(1, STAGES):
            stage_state(u, slopes, A[j], j, h, state)
            _rate(code, numbers, outputs, state, k, registers, slopes[j])
        stage_state(u, slopes, B, STAGES, h, state)
        error = error_of(u, state, slopes, h, tolerance)
        accepted = error <= 1.0
        if accepted:
            u[:] = state
            rest = rest - h
            if rest <= 0.0:
                return
            _rate(code, numbers, outputs, u, k, registers, slopes[0])
        h *= factor_of(error, accepted)
        if not h > 1e-15 * duration:
            break
    u[:] = np.nan


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _advance(u, duration, k, code, numbers, outputs, tolerance, start, stop):  # type: ignore[no-untyped-def]
    """Blocks start … stop − 1 of all samples, in place."""
    cells = u.shape[2]
    blocks = (cells + BLOCK - 1) // BLOCK
    for task in range(start, stop):
        sample, first = task // blocks, (task % blocks) * BLOCK
        last = min(first + BLOCK, cells)
        if duration[sample] > 0.0:
            block = u[sample, :, first:last].copy()
            _march(block, duration[sample], k[sample].copy(), code, numbers, outputs, tolerance)
            u[sample, :, first:last] = block


def tape_kinetics(
    u: Array, duration: Array, k: Array, code: Array, numbers: Array, outputs: Array, tolerance: float
) -> Array:
    """The flow of u' = f(u, k), f the formulas of a tape, one for each channel of ``u`` (batch, channel, *grid)."""
    out = np.array(u, dtype=np.float64, order="C").reshape(u.shape[0], u.shape[1], -1)
    tau, blocks = np.asarray(duration, dtype=np.float64), len(u) * -(-out.shape[2] // BLOCK)

    def advance(start: int, stop: int) -> None:
        _advance(out, tau, k, code, numbers, outputs, tolerance, start, stop)

    in_parts(advance, blocks, STAGES * len(code) * out[:, 0].size)
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def function_kinetics(u: Array, duration: float, rate: Rate, tolerance: float) -> Array:
    """One sample (channel, cell) of u' = rate(u) after a duration, by the same method, for a rate in Python."""
    slopes, state = np.empty((STAGES, *u.shape)), np.empty_like(u)
    u = u.copy()
    slopes[0] = rate(u)
    rest, h = duration, float(first_step(u, slopes[0], duration))
    for _ in range(MOST_STEPS):
        h = min(h, rest)
        for j in range(1, STAGES):
            stage_state(u, slopes, A[j], j, h, state)
            slopes[j] = rate(state)
        stage_state(u, slopes, B, STAGES, h, state)
        error = error_of(u, state, slopes, h, tolerance)
        accepted = bool(error <= 1.0)
        if accepted:
            u[:] = state
            rest = rest - h
            if rest <= 0.0:
                return u
            slopes[0] = rate(u)
        h *= float(factor_of(error, accepted))
        if not h > 1e-15 * duration:
            break
    return np.full_like(u, np.nan)
