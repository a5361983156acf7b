"""Shallow water by finite volumes: gravity waves, advection of momentum, or both at once, sub-stepped, any boundary.

Fluxes of both axes enter one stage (no splitting by axis); they are taken at the middle of each face.
"""

from __future__ import annotations

from functools import cache
from math import ceil, nan, sqrt
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.advection import BOUNDARY_CODES
from hycop.kernels.hancock import CROSSED, hancock_step
from hycop.kernels.lanes import LANES, absolute, aligned_rows, filled, load, maximum, square_root, store, where_positive
from hycop.kernels.reconstruction import (
    GHOSTS,
    HANCOCK,
    MOST_SUB_STEPS,
    RECONSTRUCTIONS,
    ROUNDING,
    STAGES,
    TINY,
    fill_ghosts,
    padded,
    row_width,
    unpad,
)
from hycop.kernels.threads import in_parts, sharing, threads_for
from hycop.kernels.water_fluxes import BOTH, GRAVITY, MOMENTUM
from hycop.kernels.water_stage import stage

Array = npt.NDArray[Any]

BLOCK = 8
"""Rows per task where the threads share one large sample."""

DRY = 1e-9
"""Depth, as a fraction of the sample's largest, below which water does not move."""

SPEED_UP = 100.0
"""Growth of the fastest wave during one duration beyond which a state has blown up."""

REFUSALS = 8
"""How often a sub-step is tried again with half its length: if it leaves a depth negative, or waves so much faster than
before that it was too long for them."""


@numba.njit(cache=True, error_model="numpy")
def _rate(v, first, last, n, origin, width, dx, g, dry, system):  # type: ignore[no-untyped-def]
    """The largest Σ_axis speed/Δx in rows first … last − 1, or NaN if they hold what is no state. Row 0 begins at
    ``origin``, the next one ``width`` cells later."""
    channels, cells = v.shape[0], v.shape[1]
    waves = 0.0 if system == MOMENTUM else g
    drift = 0.0 if system == GRAVITY else 1.0 if system == BOTH else 2.0
    least = 0.0 if system == BOTH else TINY
    thin, thick = 1.0 / dx[1], 1.0 / dx[0] if channels == 3 else 0.0
    most, lost = np.zeros(LANES), np.zeros(LANES)
    fastest, odd, deepest = load(most, 0), load(lost, 0), filled(0.0)
    for i in range(first, last):
        start = origin + i * width
        for k in range(0, n - n % LANES, LANES):
            x = start + k
            h, m, across = load(v, x), load(v, (channels - 1) * cells + x), load(v, cells + x)
            rate = filled(0.0)
            if system != GRAVITY:
                rate = where_positive(h - dry, drift / h, 0.0) * (absolute(m) * thin + absolute(across) * thick)
            if system == BOTH:
                rate = rate + square_root(waves * h) * (thin + thick)
            deepest, fastest = maximum(deepest, h), maximum(fastest, rate)
            # the difference of a number and itself is NaN for all that is not finite
            odd = odd + where_positive(least - h, 1.0, 0.0) + ((h - h) + (rate - rate) + (m - m) + (across - across))
        for k in range(n - n % LANES, n):
            h, m, across = v[0, start + k], v[channels - 1, start + k], v[1, start + k]
            drifting = (drift / h if h > dry else 0.0) * (abs(m) * thin + abs(across) * thick)
            rate = drifting + sqrt(waves * h) * (thin + thick)
            lost[0] += (1.0 if h < least else 0.0) + ((rate - rate) + (m - m) + (across - across))
            most[0] = max(most[0], rate)
    if system == GRAVITY:  # the fastest waves are where the water is deepest: one root for all
        fastest = square_root(waves * deepest) * (thin + thick)
    found, wrong = most[0], lost[0]
    store(most, 0, fastest)
    store(lost, 0, odd)
    for lane in range(LANES):
        found, wrong = max(found, most[lane]), wrong + lost[lane]
    return found if wrong == 0.0 else nan


@numba.njit(cache=True)
def _largest(rates):  # type: ignore[no-untyped-def]
    """The largest of the rates, or NaN if one of them is."""
    most = 0.0
    for rate in rates:
        most = rate if rate > most or np.isnan(rate) else most
        if np.isnan(most):
            break
    return most


@numba.njit(cache=True)
def _still_depth(v, system):  # type: ignore[no-untyped-def]
    """The depth below which water does not move: only where both processes act may the bed be dry."""
    if system != BOTH:
        return 0.0
    deepest = 0.0
    for h in v[0]:
        deepest = max(deepest, h)
    return DRY * deepest


@numba.njit(cache=True)
def _settle(v, dry):  # type: ignore[no-untyped-def]
    """Takes the momentum out of cells where water does not move."""
    for k in range(v.shape[1]):
        if v[0, k] <= dry:
            for c in range(1, v.shape[0]):
                v[c, k] = 0.0


@numba.njit(cache=True, inline="always")
def _march(v, rows, n, plane, duration, codes, signs, dx, g, cfl, keeps, system, reconstruction, block):  # type: ignore[no-untyped-def]
    """A padded state after a duration, in sub-steps as long as the waves of each moment allow; NaN if it is lost.

    Part of its callers, so that the loops over blocks of rows are parallel in the one that goes sample by sample.
    """
    blocks = (rows + block - 1) // block
    rates, ratio = np.empty(blocks), np.empty(2)
    middle, new = aligned_rows(v.shape[0], v.shape[1], GHOSTS), aligned_rows(v.shape[0], v.shape[1], GHOSTS)
    dry = _still_depth(v, system)
    if system == BOTH:
        _settle(v, dry)
    width = row_width(n)
    origin = GHOSTS * (width + 1) if plane else GHOSTS
    rate = _rate(v, 0, rows, n, origin, width, dx, g, dry, system)
    remaining, refusals, most = duration, 0, min(SPEED_UP * rate, MOST_SUB_STEPS * cfl / duration)
    code, crossed = codes[1], CROSSED if reconstruction >= HANCOCK else 2.0 * cfl
    while remaining > 0.0 and refusals <= REFUSALS and rate <= most:
        steps = max(1.0, ceil(remaining * rate / cfl * (1.0 - ROUNDING)))
        length = remaining / steps / 2.0**refusals
        ratio[0], ratio[1] = length / dx[0], length / dx[1]
        now, out = v, middle
        for number in range(keeps.size):
            fill_ghosts(now, rows, n, plane, codes, signs)
            for task in numba.prange(blocks):
                first, last = task * block, min((task + 1) * block, rows)
                if reconstruction >= HANCOCK:
                    kind = reconstruction - HANCOCK
                    hancock_step(now, out, first, last, n, plane, code, signs, ratio, g, dry, system, kind)
                else:
                    keep = keeps[number]
                    stage(now, v, out, first, last, n, plane, code, signs, ratio, g, dry, keep, system, reconstruction)
            now, out = out, new if number == 0 else now
        for task in numba.prange(blocks):
            first, last = task * block, min((task + 1) * block, rows)
            rates[task] = _rate(now, first, last, n, origin, width, dx, g, dry, system)
        after = _largest(rates)
        if after * length <= crossed:  # false if NaN
            remaining, rate, refusals = remaining - length, after, 0
            v, middle, new = now, out, v
        else:
            refusals += 1
    if system == BOTH:
        _settle(v, dry)
    if remaining > 0.0 or np.isnan(rate):
        v[:] = nan
    return v


def _compiled(function: Any, system: int, reconstruction: int, **options: Any) -> Any:
    """The kernel of one system and reconstruction, under a name of its own: Numba keeps compiled code in files of that
    name, and processes that compile at once must not write into the same one."""
    function.__qualname__ = f"{function.__name__}_{system}_{reconstruction}"
    return numba.njit(cache=True, error_model="numpy", **options)(function)


@cache
def _flow_of(system: int, reconstruction: int) -> Any:
    """The kernel of one system and reconstruction, which takes whole samples through all their sub-steps, so that a
    sample stays in its cache. Each is compiled when it is first needed: all of them together take half a minute."""

    def flow(first, last, u, out, durations, codes, signs, dx, g, cfl, keeps):  # type: ignore[no-untyped-def]
        plane, rows, n = u.shape[1] == 3, u.shape[2], u.shape[3]
        for i in range(first, last):
            tau, width = durations[i], dx[i].copy()
            v = padded(u, i, plane)
            v = _march(v, rows, n, plane, tau, codes, signs, width, g[i], cfl, keeps, system, reconstruction, rows)
            unpad(v, out, i, plane)

    return _compiled(flow, system, reconstruction, nogil=True)


@cache
def _flow_by_rows_of(system: int, reconstruction: int) -> Any:
    """The same sample by sample, with the rows of each shared among the threads."""

    def flow_by_rows(u, out, durations, codes, signs, dx, g, cfl, keeps):  # type: ignore[no-untyped-def]
        plane, rows, n = u.shape[1] == 3, u.shape[2], u.shape[3]
        for i in range(u.shape[0]):
            tau, width = durations[i], dx[i].copy()
            v = padded(u, i, plane)
            v = _march(v, rows, n, plane, tau, codes, signs, width, g[i], cfl, keeps, system, reconstruction, BLOCK)
            unpad(v, out, i, plane)

    return _compiled(flow_by_rows, system, reconstruction, parallel=True)


@numba.njit(cache=True, parallel=True)
def _rates(u, dx, g, system):  # type: ignore[no-untyped-def]
    samples, channels, rows, n = u.shape
    out = np.empty(samples)
    for i in numba.prange(samples):
        v = u[i].copy().reshape(channels, rows * n)  # an array of its own, as that of ``padded``
        out[i] = _rate(v, 0, rows, n, 0, n, dx[i], g[i], _still_depth(v, system), system)
    return out


def _in_rows(u: Array, dx: Array) -> tuple[Array, Array]:
    """The state as (batch, channel, row, cell) in double precision, and the widths of its cells likewise."""
    line = u.ndim == 3
    state = np.ascontiguousarray(u, dtype=np.float64)
    return state[:, :, None] if line else state, np.column_stack([np.ones_like(dx), dx]) if line else dx


def rates(u: Array, dx: Array, g: Array, system: int) -> Array:
    """Σ_axis speed/Δx of the fastest wave in each sample; NaN for one that is no state."""
    state, widths = _in_rows(u, dx)
    with sharing(u.size):
        out: Array = _rates(state, widths, g, system)
    return out


@cache
def _tendencies_of(system: int, reconstruction: int) -> Any:
    """The kernel of one system and reconstruction."""

    def tendencies(first, last, u, out, codes, signs, dx, g):  # type: ignore[no-untyped-def]
        plane, rows, n = u.shape[1] == 3, u.shape[2], u.shape[3]
        for i in range(first, last):
            v = padded(u, i, plane)
            dry, new = _still_depth(v, system), np.full_like(v, nan)
            if system == BOTH:
                _settle(v, dry)
            width = row_width(n)
            origin = GHOSTS * (width + 1) if plane else GHOSTS
            rate = _rate(v, 0, rows, n, origin, width, dx[i], g[i], dry, system)
            if rate >= 0.0:  # false if NaN
                step = 1.0 / max(rate, 1e-300)
                fill_ghosts(v, rows, n, plane, codes, signs)
                ratio = step / dx[i]
                stage(v, v, new, 0, rows, n, plane, codes[1], signs, ratio, g[i], dry, 0.0, system, reconstruction)
                new = (new - v) / step
            unpad(new, out, i, plane)

    return _compiled(tendencies, system, reconstruction, nogil=True)


def _ends(u: Array, boundary: tuple[str, ...], signs: Array) -> tuple[Array, Array]:
    """Codes and signs of the boundaries; a line is a plane of one row, whose first axis is never looked at."""
    codes = np.array([BOUNDARY_CODES[name] for name in boundary])
    if u.ndim == 3:
        return np.concatenate([[0], codes]), np.column_stack([np.ones(2), signs])
    return codes, signs


def tendencies(
    u: Array, boundary: tuple[str, ...], signs: Array, dx: Array, g: Array, reconstruction: str, system: int
) -> Array:
    """du/dt of the semi-discrete scheme (batch, channel, *grid), NaN for a sample that is no state.

    The change in an Euler step with a Courant number of one, over its length: rounding is then that of the fluxes.
    """
    state, widths = _in_rows(u, dx)
    codes, mirrors = _ends(u, boundary, signs)
    out = np.empty_like(state)
    kernel = _tendencies_of(system, RECONSTRUCTIONS[reconstruction] % HANCOCK)
    in_parts(lambda first, last: kernel(first, last, state, out, codes, mirrors, widths, g), len(u), u.size)
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def flow(
    u: Array,
    durations: Array,
    boundary: tuple[str, ...],
    signs: Array,
    dx: Array,
    g: Array,
    cfl: float,
    reconstruction: str,
    system: int,
) -> Array:
    """The states (batch, channel, *grid) after their durations; NaN for a sample that is lost on the way.

    ``signs`` (channel, axis) is −1 where a wall flips a component; ``cfl`` bounds Σ_axis speed·τ/Δx of a sub-step.
    """
    state, widths = _in_rows(u, dx)
    (codes, signs), keeps = _ends(u, boundary, signs), STAGES[reconstruction]
    out = np.empty_like(state)
    updates, pair = keeps.size * u[:1].size, (system, RECONSTRUCTIONS[reconstruction])
    lasting = np.array(durations, dtype=np.float64)  # of one layout, for which the kernel is compiled
    arrays = state, out, lasting, codes, signs, widths, g, cfl, keeps
    if u.shape[0] < threads_for(updates):
        with sharing(updates):
            _flow_by_rows_of(*pair)(*arrays)
    else:
        kernel = _flow_of(*pair)
        in_parts(lambda first, last: kernel(first, last, *arrays), len(u), updates * len(u))
    return out.reshape(u.shape).astype(u.dtype, copy=False)
