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

from hycop.kernels.lanes import LANES, aligned_rows, filled, load, maximum, minimum, room, where_positive
from hycop.kernels.reconstruction import GHOSTS, WENO5, cells_around, edges_of, row_width
from hycop.kernels.water_fluxes import GRAVITY, MOMENTUM, inverses, put_state, velocity
from hycop.kernels.water_rows import cells_with_edges, close_row, enter, flux_along, put_line, put_row

SHALLOWEST = 0.1
"""Depth at the edge of a cell, as a fraction of its average, below which the edges are pulled towards the average."""

STEEP = 4.0
"""Ratio of the depths of neighbours above which a cell is taken as constant."""

CROSSED = 1.1
"""Courant number, by the waves after a step, above which the step was too long for them."""


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def _change(low, high, half, g, dry, system):  # type: ignore[no-untyped-def]
    """What leaves cells through both their edges (depth, momentum across the face, along it) within half a step, less
    what enters."""
    (h0, m0, s0), (h1, m1, s1) = low, high
    mass, push, drag = 0.0 * h0, 0.0 * h0, 0.0 * h0
    if system != MOMENTUM:
        mass, push = half * (m1 - m0), half * (0.5 * g * ((h1 - h0) * (h1 + h0)))
    if system != GRAVITY:
        inverse0, inverse1 = inverses(h0, h1, dry, system)
        into, out = m0 * inverse0, m1 * inverse1
        push, drag = push + half * (m1 * out - m0 * into), half * (s1 * out - s0 * into)
    return mass, push, drag


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def _bent(low, high, mean, inverse, ratio, g, system):  # type: ignore[no-untyped-def]
    """Edges with what a parabola between them has beyond a line: ∓ ¼ν A δ² + (νA)²/6 δ², with its second difference δ²,
    ν = τ/Δx and the Jacobian A of the flux along the axis; ``inverse`` is 1/h, or 0 where the bed is dry."""
    (h, m, s), waves = mean, 0.0 if system == MOMENTUM else 1.0
    along, side = 0.0 * h, 0.0 * h
    if system != GRAVITY:
        along, side = m * inverse, s * inverse
    force = waves * g * h - along * along
    d0, d1 = 6.0 * (low[0] + high[0]) - 12.0 * h, 6.0 * (low[1] + high[1]) - 12.0 * m
    d2 = 6.0 * (low[2] + high[2]) - 12.0 * s
    a0, a1, a2 = waves * d1, force * d0 + 2.0 * along * d1, side * (d1 - along * d0) + along * d2
    b0, b1, b2 = waves * a1, force * a0 + 2.0 * along * a1, side * (a1 - along * a0) + along * a2
    odd, even = 0.25 * ratio, ratio * ratio / 6.0
    return (
        (low[0] + (even * b0 + odd * a0), low[1] + (even * b1 + odd * a1), low[2] + (even * b2 + odd * a2)),
        (high[0] + (even * b0 - odd * a0), high[1] + (even * b1 - odd * a1), high[2] + (even * b2 - odd * a2)),
    )


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def _later(low, high, mean, mass, push, drag, uneven, bent):  # type: ignore[no-untyped-def]
    """Edges after half a step; averages in cells that are taken as constant: next to one much deeper or shallower
    (``uneven`` > 0), or with next to no water left at an edge, or between the edges if they are those of a parabola."""
    low = low[0] - mass, low[1] - push, low[2] - drag
    high = high[0] - mass, high[1] - push, high[2] - drag
    least = minimum(low[0], high[0])
    if bent:
        least = minimum(least, 0.1 * (12.0 * mean[0] - (low[0] + high[0])))
    flat = maximum(uneven, SHALLOWEST * mean[0] - least)
    return (
        (
            where_positive(flat, mean[0], low[0]),
            where_positive(flat, mean[1], low[1]),
            where_positive(flat, mean[2], low[2]),
        ),
        (
            where_positive(flat, mean[0], high[0]),
            where_positive(flat, mean[1], high[1]),
            where_positive(flat, mean[2], high[2]),
        ),
    )


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def _half_step(v, start, first, count, width, plane, ratio, g, dry, system, kind, low, high, below, above):  # type: ignore[no-untyped-def]
    """Edges along a row (``low``, ``high``) and across it (``below``, ``above``) of ``count`` cells of the row that
    begins at ``start``, from the ``first`` on, at half the step. Those of cell k stand at k + 1."""
    across, cells = v.shape[0] - 1, v.shape[1]
    aside, bent = 1 if plane else 0, kind == WENO5
    for k in range(first + 1, first + 1 + count, LANES):
        x = start + k - 1
        h, m = load(v, x), load(v, across * cells + x)
        s = load(v, aside * cells + x)  # depth, which nobody looks at, on a line
        before, after = load(v, x - 1), load(v, x + 1)
        least, most = minimum(minimum(before, after), h), maximum(maximum(before, after), h)
        along, over = (h, m, s), (h, s, m)
        h_edges = edges_of(cells_around(v, x, 1), kind)
        m_edges = edges_of(cells_around(v, across * cells + x, 1), kind)
        s_edges = s, s
        if plane and system != GRAVITY:  # gravity waves leave momentum along a face alone
            s_edges = edges_of(cells_around(v, cells + x, 1), kind)
        near, far = (h_edges[0], m_edges[0], s_edges[0]), (h_edges[1], m_edges[1], s_edges[1])
        mass, push, drag = _change(near, far, 0.5 * ratio[1], g, dry, system)
        inverse = velocity(filled(1.0), h, dry) if bent and system != GRAVITY else filled(0.0)
        if bent:
            near, far = _bent(near, far, along, inverse, ratio[1], g, system)
        if plane:
            before, after = load(v, x - width), load(v, x + width)
            least, most = minimum(least, minimum(before, after)), maximum(most, maximum(before, after))
            h_edges = edges_of(cells_around(v, x, width), kind)
            s_edges = edges_of(cells_around(v, cells + x, width), kind)
            m_edges = m, m
            if system != GRAVITY:
                m_edges = edges_of(cells_around(v, across * cells + x, width), kind)
            under, upper = (h_edges[0], s_edges[0], m_edges[0]), (h_edges[1], s_edges[1], m_edges[1])
            more, shove, pull = _change(under, upper, 0.5 * ratio[0], g, dry, system)
            mass, push, drag = mass + more, push + pull, drag + shove
            if bent:
                under, upper = _bent(under, upper, over, inverse, ratio[0], g, system)
            under, upper = _later(under, upper, over, mass, drag, push, most - STEEP * least, bent)
            put_state(below, k, 1, across if system != GRAVITY else 0, under)
            put_state(above, k, 1, across if system != GRAVITY else 0, upper)
        near, far = _later(near, far, along, mass, push, drag, most - STEEP * least, bent)
        put_state(low, k, across, aside if system != GRAVITY else 0, near)
        put_state(high, k, across, aside if system != GRAVITY else 0, far)


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def hancock_step(v, out, first, last, n, plane, code, signs, ratio, g, dry, system, kind):  # type: ignore[no-untyped-def]
    """Rows first … last − 1 of out = v − Σ_axis τ/Δx·(flux out − flux in), with the fluxes at half the step.

    ``code`` and ``signs`` (channel, axis) are of the ends of rows, ``kind`` reconstructs the edges. Corners between
    ghosts of both axes are looked at, too. ``system`` and ``kind`` should be constants of the caller: then no choice is
    left in the loops.
    """
    channels, width, across, aside = v.shape[0], row_width(n), v.shape[0] - 1, 1 if plane else 0
    work = aligned_rows(7 * channels, room(n + 2), 1).reshape(7, channels, room(n + 2))
    low, high, below, above, before, flux, enters = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    begin, count = cells_with_edges(n, code)
    for i in range(first - aside, last + aside):  # a row is updated once the fluxes from it to the next one are known
        start = (i + GHOSTS if plane else i) * width + GHOSTS
        _half_step(v, start, begin, count, width, plane, ratio, g, dry, system, kind, low, high, below, above)
        close_row(low, high, n, code, signs)  # well before its numbers are loaded as parts of vectors
        if plane and i == first:
            enter(enters, n, before, below, 1, g, dry, system)
        if plane and i > first:
            put_row(v, v, out, start - width, n, flux, enters, before, below, 1, ratio, g, dry, 0.0, system)
        if first <= i < last:
            flux_along(high, low, n + 1, across, aside, g, dry, system, flux)
        if not plane:
            put_line(v, v, out, start, n, flux, ratio[1], 0.0, system)
        before, above = above, before
