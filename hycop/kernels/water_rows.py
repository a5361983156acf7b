"""Rows of cells between their faces: the last part of every step of shallow water by finite volumes.

Rows of faces and edges are (channel, face) with ``room`` for vectors that reach beyond the last.
"""

from __future__ import annotations

import numba

from hycop.kernels.lanes import LANES, load, store
from hycop.kernels.reconstruction import OUTFLOW, WALL
from hycop.kernels.water_fluxes import MOMENTUM, face_flux, put_state, state_at


@numba.njit(cache=True, nogil=True, forceinline=True)
def cells_with_edges(n, code):  # type: ignore[no-untyped-def]
    """The first cell of a row whose edges along the row are computed, and the number of these cells: not those beyond
    the ends, if ``close_row`` knows theirs."""
    return (-1, n + 2) if code == OUTFLOW else (0, n)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def close_row(low, high, n, code, signs):  # type: ignore[no-untyped-def]
    """Edges of the cells beyond the ends of a row: those at its other end, or mirror images. Edges of cell k stand at
    k + 1."""
    if code != OUTFLOW:
        for c in range(low.shape[0]):
            if code == WALL:
                high[c, 0], low[c, n + 1] = signs[c, 1] * low[c, 1], signs[c, 1] * high[c, n]
            else:
                high[c, 0], low[c, n + 1] = high[c, n], low[c, 1]


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def flux_along(left, right, count, across, aside, g, dry, system, flux):  # type: ignore[no-untyped-def]
    """Fluxes through ``count`` faces of a row: face k is between cell k of ``left`` and cell k + 1 of ``right``."""
    for k in range(0, count, LANES):
        before, after = state_at(left, k, across, aside), state_at(right, k + 1, across, aside)
        put_state(flux, k, across, aside, face_flux(before, after, g, dry, system))


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _put(v, base, out, x, change, keep):  # type: ignore[no-untyped-def]
    store(out, x, keep * load(base, x) + (1.0 - keep) * (load(v, x) - change))


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _put_all(v, base, out, x, plane, changes, keep, system):  # type: ignore[no-untyped-def]
    """Writes cells from x on; ``changes`` are those of depth and of momentum along and across the row."""
    cells, across = v.shape[1], v.shape[0] - 1
    if system == MOMENTUM:
        store(out, x, load(v, x))
    else:
        _put(v, base, out, x, changes[0], keep)
    _put(v, base, out, across * cells + x, changes[1], keep)
    if plane:
        _put(v, base, out, cells + x, changes[2], keep)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def put_line(v, base, out, x, n, flux, along, keep, system):  # type: ignore[no-untyped-def]
    """``put_row`` on a line."""
    for k in range(0, n, LANES):
        near, far = state_at(flux, k, 1, 0), state_at(flux, k + 1, 1, 0)
        changes = along * (far[0] - near[0]), along * (far[1] - near[1]), near[2]
        _put_all(v, base, out, x + k, False, changes, keep, system)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def put_row(v, base, out, x, n, flux, enters, below, above, first, ratio, g, dry, keep, system):  # type: ignore[no-untyped-def]
    """A row of n cells of a plane, x on, out = keep·base + (1 − keep)·(v − Σ_axis τ/Δx·(flux out − flux in)).

    ``flux`` are those along the row, ``enters`` those into it from the row before; they become those into the next
    row, between the edges ``below`` and ``above`` their faces, which stand from ``first`` on.
    """
    down, along = ratio[0], ratio[1]
    for k in range(0, n, LANES):
        near, far, into = state_at(flux, k, 2, 1), state_at(flux, k + 1, 2, 1), state_at(enters, k, 1, 2)
        leaves = face_flux(state_at(below, first + k, 1, 2), state_at(above, first + k, 1, 2), g, dry, system)
        put_state(enters, k, 1, 2, leaves)
        changes = (
            along * (far[0] - near[0]) + down * (leaves[0] - into[0]),
            along * (far[1] - near[1]) + down * (leaves[2] - into[2]),
            along * (far[2] - near[2]) + down * (leaves[1] - into[1]),
        )
        _put_all(v, base, out, x + k, True, changes, keep, system)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def enter(enters, n, below, above, first, g, dry, system):  # type: ignore[no-untyped-def]
    """The fluxes into the first row."""
    for k in range(0, n, LANES):
        leaves = face_flux(state_at(below, first + k, 1, 2), state_at(above, first + k, 1, 2), g, dry, system)
        put_state(enters, k, 1, 2, leaves)
