"""The Euler equations on periodic boxes by central differences of fourth order and the classical Runge–Kutta method."""

from __future__ import annotations

from collections.abc import Callable
from math import nan, sqrt
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.compressible import BLOCK, MOST_STEPS, boxed, inverse_widths, unboxed
from hycop.kernels.threads import sharing, threads_for

Array = npt.NDArray[Any]

REACH = 2
"""Cells on either side that a difference of fourth order looks at."""

CELLS = 2 * REACH + 1
"""Cells from which a difference is taken: fewer along an axis would be counted twice."""

STAGES = ((1 / 2, 1 / 6), (1 / 2, 1 / 3), (1.0, 1 / 3), (0.0, 1 / 6))
"""Classical Runge–Kutta: how far the next stage is, and what the rate of this one weighs, as fractions of the step."""


@numba.njit(cache=True, error_model="numpy")
def _fluxes(y, f, g, first, last, n2, box, peak):  # type: ignore[no-untyped-def]
    """Fluxes f along the first axis and g, with ghost columns, along the second; y is (4, cells).

    ``peak`` gets the largest Σ (|v| + c)/Δx of these rows and the number of cells that are not physical.
    Indices without a sign: Numba counts negative ones from the end, and looking for them stops vectorisation.
    """
    gamma, pitch, wave, wrong = box[0], n2 + 2 * REACH, 0.0, 0.0
    for row in range(first, last):
        start, target = row * n2, row * pitch + REACH
        for k in range(n2):
            a, b = np.uint64(start + k), np.uint64(target + k)
            density, mx, my, energy = y[0, a], y[1, a], y[2, a], y[3, a]
            vx, vy = mx / density, my / density
            pressure = (gamma - 1.0) * (energy - 0.5 * (mx * vx + my * vy))
            f[0, a], f[1, a], f[2, a], f[3, a] = mx, mx * vx + pressure, my * vx, (energy + pressure) * vx
            g[0, b], g[1, b], g[2, b], g[3, b] = my, mx * vy, my * vy + pressure, (energy + pressure) * vy
            wrong += 0.0 if (density > 0.0) & (pressure > 0.0) else 1.0
            sound = sqrt(gamma * pressure / density)
            wave = max(wave, (abs(vx) + sound) * box[1] + (abs(vy) + sound) * box[2])
        for channel in range(4):
            for ghost in range(REACH):
                g[channel, target - 1 - ghost] = g[channel, target + (-1 - ghost) % n2]
                g[channel, target + n2 + ghost] = g[channel, target + ghost % n2]
    peak[0], peak[1] = wave, wrong


@numba.njit(cache=True)
def _update(f, g, v, y, total, first, last, shape, box, ahead, weight):  # type: ignore[no-untyped-def]
    """Rows of total ← total + weight·L and y ← v + ahead·L, with the rate L = −∂f − ∂g from the fluxes.

    ∂f = (8(f₊₁ − f₋₁) − (f₊₂ − f₋₂))/12Δx, the difference of face fluxes 7/12(f₀ + f₁) − 1/12(f₋₁ + f₂).
    """
    n1, n2 = shape
    pitch = n2 + 2 * REACH
    along, across = box[1] / 12.0, box[2] / 12.0
    one, two = np.uint64(1), np.uint64(2)
    for row in range(first, last):
        low2, low1 = (row - 2) % n1 * n2, (row - 1) % n1 * n2
        high1, high2 = (row + 1) % n1 * n2, (row + 2) % n1 * n2
        for channel in range(4):
            for k in range(n2):
                here, side = np.uint64(row * n2 + k), np.uint64(row * pitch + REACH + k)
                near = f[channel, np.uint64(low1 + k)] - f[channel, np.uint64(high1 + k)]
                far = f[channel, np.uint64(low2 + k)] - f[channel, np.uint64(high2 + k)]
                near_side = g[channel, side - one] - g[channel, side + one]
                far_side = g[channel, side - two] - g[channel, side + two]
                rate = along * (8.0 * near - far) + across * (8.0 * near_side - far_side)
                total[channel, here] += weight * rate
                y[channel, here] = v[channel, here] + ahead * rate


@numba.njit(cache=True)
def _steps_for(rest, peaks, cfl):  # type: ignore[no-untyped-def]
    """Equal steps into which a duration is cut; NaN if a cell is not physical."""
    return nan if peaks[:, 1].sum() > 0.0 else max(1.0, np.ceil(rest * peaks[:, 0].max() / cfl))


def _marching(shared: bool) -> Callable[..., None]:
    """One code for a sample whose rows are shared among the threads, and for one that a thread has to itself.

    That ``shared`` is a free variable also keeps Numba's caches of the two apart.
    """

    @numba.njit(parallel=shared, cache=True)
    def march(u, out, duration, shape, box, cfl):  # type: ignore[no-untyped-def]
        """A sample through its steps, each as long as the Courant number allows."""
        n1, n2 = shape
        rows = BLOCK if shared else n1
        tasks = (n1 + rows - 1) // rows
        v, y, total = u.copy(), np.empty_like(u), np.empty_like(u)
        f, g, peaks = np.empty_like(u), np.empty((4, n1 * (n2 + 2 * REACH))), np.empty((tasks, 2))
        for task in numba.prange(tasks):
            _fluxes(v, f, g, task * rows, min((task + 1) * rows, n1), n2, box, peaks[task])
        rest, steps = duration, _steps_for(duration, peaks, cfl)
        while rest > 0.0 and steps <= MOST_STEPS:
            step = rest / steps
            total[:] = v
            for stage in range(len(STAGES)):
                ahead, weight = STAGES[stage][0] * step, STAGES[stage][1] * step
                for task in numba.prange(tasks):
                    first, last = task * rows, min((task + 1) * rows, n1)
                    _update(f, g, v, y, total, first, last, shape, box, ahead, weight)
                latest = y if stage + 1 < len(STAGES) else total
                for task in numba.prange(tasks):
                    _fluxes(latest, f, g, task * rows, min((task + 1) * rows, n1), n2, box, peaks[task])
            v, total = total, v
            rest = rest - step if steps > 1.0 else 0.0
            steps = _steps_for(rest, peaks, cfl)
        out[:] = v if steps <= MOST_STEPS else np.full_like(v, nan)

    return march


_march_shared, _march_alone = _marching(True), _marching(False)


@numba.njit(cache=True, parallel=True)
def _march_samples(u, out, durations, shape, boxes, cfl):  # type: ignore[no-untyped-def]
    for sample in numba.prange(u.shape[0]):
        _march_alone(u[sample], out[sample], durations[sample], shape, boxes[sample], cfl)


def _march_rows(u, out, durations, shape, boxes, cfl):  # type: ignore[no-untyped-def]
    for sample in range(u.shape[0]):
        _march_shared(u[sample], out[sample], durations[sample], shape, boxes[sample], cfl)


@numba.njit(cache=True, parallel=True)
def _tendencies(u, out, shape, boxes):  # type: ignore[no-untyped-def]
    n1, n2 = shape
    for sample in numba.prange(u.shape[0]):
        v, rate, peak = u[sample].copy(), np.zeros_like(u[sample]), np.empty(2)
        f, g, ahead = np.empty_like(v), np.empty((4, n1 * (n2 + 2 * REACH))), np.empty_like(v)
        _fluxes(v, f, g, 0, n1, n2, boxes[sample], peak)
        _update(f, g, v, ahead, rate, 0, n1, shape, boxes[sample], 0.0, 1.0)
        out[sample] = rate if peak[1] == 0.0 else np.full_like(rate, nan)


def tendencies(u: Array, gamma: Array, spacing: Array) -> Array:
    """du/dt of the semi-discrete scheme (batch, channel, *grid), NaN for a sample that is not physical."""
    states, shape = boxed(u)
    out = np.empty_like(states)
    with sharing(states.size):
        _tendencies(states, out, shape, np.column_stack([gamma, inverse_widths(spacing)]))
    return unboxed(out, u)


def central_euler(u: Array, duration: Array, gamma: Array, spacing: Array, cfl: float) -> Array:
    """States (batch, channel, *grid) after a duration per sample.

    A sample that is, or becomes, not physical (density or pressure not positive) is NaN.
    """
    states, shape = boxed(u)
    out = np.empty_like(states)
    boxes = np.column_stack([gamma, inverse_widths(spacing)])
    sweep = states[:1].size
    by_rows = u.shape[0] < threads_for(sweep)
    march: Callable[..., None] = _march_rows if by_rows else _march_samples
    with sharing(sweep if by_rows else states.size):
        march(states, out, duration, shape, boxes, cfl)
    return unboxed(out, u)
