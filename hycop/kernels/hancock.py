"""MUSCL–Hancock: one step of shallow water from one evaluation of the fluxes, second order in space and time.

    edges of a cell at half the step = limited edges − τ/2 Σ_axis (F(upper edge) − F(lower edge))/Δx

after van Leer, SIAM J. Sci. Stat. Comput. 5 (1984) 1. Both axes enter the change of each edge: there is no splitting by
axis, and waves that cross the grid obliquely are of second order too. With slopes limited by the monotonised central
difference, the leading error vanishes for a wave that crosses half a cell in a step, as the fastest ones do in a plane
(Fromm, J. Comput. Phys. 3 (1968) 176). With edges by WENO-Z the average over the step of the parabola between them
replaces that of the line, which is of third order along an axis while speeds are constant.
"""

from __future__ import annotations

import numba
import numpy as np

from hycop.kernels.reconstruction import GHOSTS, WENO5, edges
from hycop.kernels.water_fluxes import GRAVITY, MOMENTUM, flux_through, velocity

SHALLOWEST = 0.1
"""Depth at the edge of a cell, as a fraction of its average, below which the edges are pulled towards the average."""

STEEP = 4.0
"""Ratio of the depths of neighbours above which a cell is taken as constant."""

CROSSED = 1.1
"""Courant number, by the waves after a step, above which the step was too long for them."""


@numba.njit(cache=True, error_model="numpy")
def _change(low, high, normal, half, g, dry, system, change):  # type: ignore[no-untyped-def]
    """Adds what leaves a cell through both its edges along an axis, less what enters, within half a step."""
    count, pressure = low.shape[1], 0.5 * g
    if system != MOMENTUM:
        for k in range(count):
            h0, h1 = low[0, k], high[0, k]
            change[0, k] += half * (high[normal, k] - low[normal, k])
            change[normal, k] += half * (pressure * ((h1 - h0) * (h1 + h0)))
    if system != GRAVITY:
        for c in range(1, low.shape[0]):
            for k in range(count):
                out, into = velocity(high[normal, k], high[0, k], dry), velocity(low[normal, k], low[0, k], dry)
                change[c, k] += half * (high[c, k] * out - low[c, k] * into)


@numba.njit(cache=True, error_model="numpy")
def _advance_edges(low, high, normal, change, system):  # type: ignore[no-untyped-def]
    for c in range(low.shape[0]):
        if c == 0 or c == normal or system != GRAVITY:  # gravity waves leave momentum along a face alone
            for k in range(low.shape[1]):
                low[c, k] -= change[c, k]
                high[c, k] -= change[c, k]


@numba.njit(cache=True, error_model="numpy")
def _bend(v, start, normal, ratio, g, dry, system, low, high):  # type: ignore[no-untyped-def]
    """Adds what a parabola between the edges has beyond a line: ∓ ¼ν A δ² + (νA)²/6 δ², with its second difference δ²,
    ν = τ/Δx and the Jacobian A of the flux along the axis."""
    plane = v.shape[0] == 3
    other = 3 - normal if plane else normal
    mass = 0.0 if system == MOMENTUM else 1.0
    for k in range(low.shape[1]):
        x = np.uint64(start + k)
        h = v[0, x]
        along = 0.0 if system == GRAVITY else velocity(v[normal, x], h, dry)
        side = velocity(v[other, x], h, dry) if plane and system != GRAVITY else 0.0
        force = mass * g * h - along * along
        d0 = 6.0 * (low[0, k] + high[0, k]) - 12.0 * h
        d1 = 6.0 * (low[normal, k] + high[normal, k]) - 12.0 * v[normal, x]
        a0, a1 = mass * d1, force * d0 + 2.0 * along * d1
        b0, b1 = mass * a1, force * a0 + 2.0 * along * a1
        odd, even = 0.25 * ratio, ratio * ratio / 6.0
        if plane and system != GRAVITY:
            d2 = 6.0 * (low[other, k] + high[other, k]) - 12.0 * v[other, x]
            a2 = side * (d1 - along * d0) + along * d2
            b2 = side * (a1 - along * a0) + along * a2
            low[other, k] += even * b2 + odd * a2
            high[other, k] += even * b2 - odd * a2
        low[0, k] += even * b0 + odd * a0
        high[0, k] += even * b0 - odd * a0
        low[normal, k] += even * b1 + odd * a1
        high[normal, k] += even * b1 - odd * a1


@numba.njit(cache=True, inline="always", error_model="numpy")
def _flat(v, x, one, width, low, high, k, bent):  # type: ignore[no-untyped-def]
    """Whether a cell is taken as constant: next to one much deeper or shallower, or with next to no water left at an
    edge, or between the edges if they are those of a parabola (``bent``). ``width`` is 0 on a line."""
    h = v[0, x]
    lowest = min(low[0, k], high[0, k])
    lowest = min(lowest, 0.1 * (12.0 * h - (low[0, k] + high[0, k]))) if bent else lowest
    least, most = min(v[0, x - one], v[0, x + one]), max(v[0, x - one], v[0, x + one])
    least, most = min(least, v[0, x - width]), max(most, v[0, x - width])
    least, most = min(min(least, v[0, x + width]), h), max(max(most, v[0, x + width]), h)
    return (STEEP * least < most) | (lowest < SHALLOWEST * h)


@numba.njit(cache=True, error_model="numpy")
def _flatten(v, start, width, low, high, bent):  # type: ignore[no-untyped-def]
    """Puts the averages at the edges of cells that are taken as constant.

    Next to no cell needs it, so a loop that is vectorised looks for one first.
    """
    one, wide, found = np.uint64(1), np.uint64(width), 0
    for k in range(low.shape[1]):
        found += 1 if _flat(v, np.uint64(start + k), one, wide, low, high, k, bent) else 0
    if found == 0:
        return
    for k in range(low.shape[1]):
        x = np.uint64(start + k)
        if _flat(v, x, one, wide, low, high, k, bent):
            for c in range(v.shape[0]):
                low[c, k] = high[c, k] = v[c, x]


@numba.njit(cache=True, error_model="numpy")
def _half_step(v, start, width, plane, ratio, g, dry, system, kind, low, high, below, above, change):  # type: ignore[no-untyped-def]
    """Edges along a row (``low``, ``high``) and across it (``below``, ``above``) of cells from ``start`` on, at half
    the step."""
    across, count = v.shape[0] - 1, low.shape[1]
    change[:] = 0.0
    for c in range(v.shape[0]):
        if c == 0 or c == across or system != GRAVITY:
            edges(v, c, start, count, 1, kind, low, high)
        if plane and (c <= 1 or system != GRAVITY):
            edges(v, c, start, count, width, kind, below, above)
    _change(low, high, across, 0.5 * ratio[1], g, dry, system, change)
    if plane:
        _change(below, above, 1, 0.5 * ratio[0], g, dry, system, change)
    if kind == WENO5:
        _bend(v, start, across, ratio[1], g, dry, system, low, high)
        if plane:
            _bend(v, start, 1, ratio[0], g, dry, system, below, above)
    _advance_edges(low, high, across, change, system)
    _flatten(v, start, width if plane else 0, low, high, kind == WENO5)
    if plane:
        _advance_edges(below, above, 1, change, system)
        _flatten(v, start, width, below, above, kind == WENO5)


@numba.njit(cache=True, error_model="numpy")
def hancock_step(v, out, first, last, n, plane, ratio, g, dry, system, kind):  # type: ignore[no-untyped-def]
    """Rows first … last − 1 of out = v − Σ_axis τ/Δx·(flux out − flux in), with the fluxes at half the step.

    ``kind`` reconstructs the edges. Corners between ghosts of both axes are looked at, too.
    """
    channels, width, across = v.shape[0], n + 2 * GHOSTS, v.shape[0] - 1
    low, high, change = np.empty((channels, n + 2)), np.empty((channels, n + 2)), np.empty((channels, n + 2))
    below, above, before = np.empty((channels, n + 2)), np.empty((channels, n + 2)), np.empty((channels, n + 2))
    flux, enters, leaves = np.empty((channels, n + 1)), np.zeros((channels, n + 2)), np.zeros((channels, n + 2))
    down, along, halo = ratio[0], ratio[1], 1 if plane else 0
    for i in range(first - halo, last + halo):  # a row is updated once the fluxes from it to the next one are known
        start = (i + GHOSTS if plane else i) * width + GHOSTS
        _half_step(v, start - 1, width, plane, ratio, g, dry, system, kind, low, high, below, above, change)
        if plane and i >= first:
            flux_through(system, before, below, 0, n + 2, 1, g, dry, leaves)
        if plane and i > first:
            for c in range(channels):
                for k in range(n):
                    out[c, np.uint64(start - width + k)] -= down * (leaves[c, k + 1] - enters[c, k + 1])
        if first <= i < last:
            flux_through(system, high, low, 1, n + 1, across, g, dry, flux)
            for c in range(channels):
                for k in range(n):
                    x = np.uint64(start + k)
                    out[c, x] = v[c, x] - along * (flux[c, k + 1] - flux[c, k])
        before, above = above, before
        enters, leaves = leaves, enters
