"""A Runge–Kutta stage of shallow water by finite volumes: edges that are kept wet, fluxes between them, the update.

    out = keep·base + (1 − keep)·(v − Σ_axis τ/Δx·(flux out − flux in))

Fluxes of both axes enter one stage (no splitting by axis); they are taken at the middle of each face.
"""

from __future__ import annotations

import numba
import numpy as np

from hycop.kernels.hancock import SHALLOWEST, STEEP
from hycop.kernels.lanes import LANES, aligned_rows, any_positive, filled, fused, load, maximum, minimum, room, store
from hycop.kernels.reconstruction import GHOSTS, cells_around, edges_of, row_width
from hycop.kernels.water_fluxes import GRAVITY
from hycop.kernels.water_rows import cells_with_edges, close_row, enter, flux_along, put_line, put_row


@numba.njit(cache=True, inline="always", error_model="numpy")
def _pull(before, h, after, lower, upper):  # type: ignore[no-untyped-def]
    """What remains of the distance of a cell's edges from its average, at most 1."""
    least = min(min(lower, upper), 0.1 * (12.0 * h - (lower + upper)))
    steep = STEEP * min(min(before, h), after) < max(max(before, h), after)
    pull = (1.0 - SHALLOWEST) * h / (h - least) if least < SHALLOWEST * h else 1.0
    return 0.0 if steep else pull


@numba.njit(cache=True, error_model="numpy")
def _keep_wet(v, start, first, count, stride, lower, upper):  # type: ignore[no-untyped-def]
    """Pulls the edges of a cell towards its average until depth there, and in between, is positive; all the way next to
    a cell that is ``STEEP`` times as deep, since momentum over depth has no bounds there.

    Zhang and Shu, Proc. R. Soc. A 467 (2011) 2752, with the four-point Lobatto rule.
    """
    one = np.uint64(stride)
    for k in range(first + 1, first + 1 + count):
        x = np.uint64(start + k - 1)
        pull = _pull(v[0, x - one], v[0, x], v[0, x + one], lower[0, k], upper[0, k])
        if pull < 1.0:
            for c in range(v.shape[0]):
                mean = v[c, x]
                lower[c, k] = mean + pull * (lower[c, k] - mean)
                upper[c, k] = mean + pull * (upper[c, k] - mean)


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def _edges(v, start, first, count, stride, normal, aside, system, kind, lower, upper):  # type: ignore[no-untyped-def]
    """Edges, across the axis of the given stride, of ``count`` cells of the row that begins at ``start``, from the
    ``first`` on; those of cell k stand at k + 1. Gravity waves leave momentum ``aside`` alone. Next to no cell is
    pulled, none where neighbours and edges differ by less than ``STEEP``, so that one look at all of them comes
    first."""
    cells, row = v.shape[1], lower.shape[1]
    uneven, last = filled(0.0), first + 1 + max(count - LANES, 0)
    for number in range(first + 1, first + 1 + count, LANES):
        k = min(number, last)  # the last vector ends where the row does: beyond it there is no water
        x = start + k - 1
        h, before, after = load(v, x), load(v, x - stride), load(v, x + stride)
        low, high = edges_of(cells_around(v, x, stride), kind)
        store(lower, k, low)
        store(upper, k, high)
        least = minimum(minimum(minimum(before, after), h), minimum(low, high))
        most = maximum(maximum(maximum(before, after), h), maximum(low, high))
        uneven = maximum(uneven, fused(-STEEP, least, most))
        low, high = edges_of(cells_around(v, normal * cells + x, stride), kind)
        store(lower, normal * row + k, low)
        store(upper, normal * row + k, high)
        if aside > 0 and system != GRAVITY:
            low, high = edges_of(cells_around(v, aside * cells + x, stride), kind)
            store(lower, aside * row + k, low)
            store(upper, aside * row + k, high)
    if any_positive(uneven):
        _keep_wet(v, start, first, count, stride, lower, upper)


@numba.njit(cache=True, forceinline=True, error_model="numpy")
def stage(v, base, out, first, last, n, plane, code, signs, ratio, g, dry, keep, system, kind):  # type: ignore[no-untyped-def]
    """Rows first … last − 1 of the stage; ``code`` and ``signs`` (channel, axis) are of the ends of rows, ``kind``
    reconstructs the edges. ``system`` and ``kind`` should be constants of the caller: then no choice is left in the
    loops."""
    channels, width, across, aside = v.shape[0], row_width(n), v.shape[0] - 1, 1 if plane else 0
    work = aligned_rows(7 * channels, room(n + 2), 1).reshape(7, channels, room(n + 2))
    lower, upper, below, over, above, flux, enters = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    begin, count = cells_with_edges(n, code)
    # fluxes between rows need the edges of both; what is written as one vector and read as parts of two is read later
    for i in range(first - 2 if plane else first - 1, last):
        start = (i + GHOSTS if plane else i) * width + GHOSTS
        if plane:
            _edges(v, start + width, 0, n, width, 1, across, system, kind, over, above)
        if i >= first:
            flux_along(upper, lower, n + 1, across, aside, g, dry, system, flux)
        if first <= i + 1 < last:
            _edges(v, start + width, begin, count, 1, across, aside, system, kind, lower, upper)
            close_row(lower, upper, n, code, signs)
        if plane:
            if i >= first:
                put_row(v, base, out, start, n, flux, enters, below, over, 1, ratio, g, dry, keep, system)
            elif i == first - 1:
                enter(enters, n, below, over, 1, g, dry, system)
            below, above = above, below
        elif i >= first:
            put_line(v, base, out, start, n, flux, ratio[1], keep, system)
