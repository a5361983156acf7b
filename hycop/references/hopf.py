"""The solution formulas of Burgers' equation on a periodic box, evaluated at the faces of cells.

With U the potential of the initial state, U' = u₀, and P that of the solution, P_x = u:

    P(x, t) = −2ν log ∫ exp(−(x − y)²/4νt − U(y)/2ν) dy + const   (Cole 1951, Hopf 1950)
    P(x, t) = min_y (x − y)²/2t + U(y)                            (Lax 1957: the limit ν → 0, the entropy solution)

The average of u over a cell is the difference of P at its faces, so totals are kept and shocks stay exact.
"""

from __future__ import annotations

from math import ceil, exp, floor, log, sqrt

import numba
import numpy as np

from hycop.grid import Array
from hycop.references.reference import run_blocks

NEGLIGIBLE = 40.0
"""A part of an integral e^−40 times smaller than its largest is left out."""

NODES_PER_WIDTH = 1.5
"""Of the trapezoidal rule, for each standard deviation of the sharpest peak: an error of e^−44."""

MOST_PER_CELL = 1000.0
"""Nodes in a cell. A viscosity that asks for more changes averages by 1e-8 or less, and is left out."""

GOLDEN = (sqrt(5.0) - 1.0) / 2.0
SHRINKINGS = 40
"""Of the bracket around a minimum by the golden ratio: 4e-9 of a cell, hence 1e-17 in the value."""


def potentials(averages: Array, spacing: Array) -> Array:
    """U in each cell as a polynomial of the distance from its centre in cells, (batch, n, 6), lowest power first.

    u₀ is in each cell the quartic with the averages of five cells; they (batch, n) must have no mean.
    """
    powers = np.arange(5)
    edges = np.arange(-2.5, 3.0)
    of_cells = np.diff(edges[:, None] ** (powers + 1) / (powers + 1), axis=0)
    windows = np.stack([np.roll(averages, 2 - offset, axis=1) for offset in range(5)], axis=2)
    quartic = windows @ np.linalg.inv(of_cells).T
    out = np.zeros((*averages.shape, 6))
    out[:, :, 1:] = quartic / (powers + 1) * spacing[:, None, None]
    left = np.cumsum(averages, axis=1) * spacing[:, None]
    left = np.concatenate([np.zeros((averages.shape[0], 1)), left[:, :-1]], axis=1)
    out[:, :, 0] = left - (out[:, :, 1:] * (-0.5) ** (powers + 1)).sum(axis=2)
    return out


@numba.njit(cache=True, inline="always")
def _potential(cells, y, spacing):  # type: ignore[no-untyped-def]
    """U at y of the periodic box."""
    position = y / spacing
    cell = floor(position)
    s = position - cell - 0.5
    a = cells[int(cell) % cells.shape[0]]
    return a[0] + s * (a[1] + s * (a[2] + s * (a[3] + s * (a[4] + s * a[5]))))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def cole_hopf(cells, spacing, faces, out, time, nu, node, reach):  # type: ignore[no-untyped-def]
    """P at the faces: the integral by the trapezoidal rule with a distance ``node`` up to ``reach`` on both sides."""
    most = ceil(reach / node)
    exponents = np.empty(2 * most + 1)
    for face in range(faces.size):
        largest = -np.inf
        for k in range(-most, most + 1):
            away = k * node
            exponent = -(away * away / (4.0 * time) + 0.5 * _potential(cells, faces[face] + away, spacing)) / nu
            exponents[k + most] = exponent
            largest = max(largest, exponent)
        total = 0.0
        for k in range(exponents.size):
            if exponents[k] > largest - NEGLIGIBLE:
                total += exp(exponents[k] - largest)
        out[face] = -2.0 * nu * (largest + log(total))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def hopf_lax(cells, spacing, faces, out, time, node, reach):  # type: ignore[no-untyped-def]
    """P at the faces: the least of the nodes, improved by golden-section search between its neighbours."""
    most = ceil(reach / node)
    for face in range(faces.size):
        x = faces[face]
        best, least = 0.0, np.inf
        for k in range(-most, most + 1):
            away = k * node
            value = away * away / (2.0 * time) + _potential(cells, x + away, spacing)
            if value < least:
                best, least = away, value
        low, high = best - node, best + node
        for _ in range(SHRINKINGS):
            a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
            at_a = a * a / (2.0 * time) + _potential(cells, x + a, spacing)
            at_b = b * b / (2.0 * time) + _potential(cells, x + b, spacing)
            least = min(least, at_a, at_b)
            if at_a < at_b:
                high = b
            else:
                low = a
        out[face] = least


def burgers_flow(u: Array, lengths: Array, duration: Array, nu: Array, count: int, workers: int | None) -> Array:
    """Averages over ``count`` equal cells of u_t + u u_x = ν u_xx from averages (batch, n), for durations > 0.

    The mean velocity c is a change of frame: u = c + v(x − c t, t), where v has no mean.
    """
    spacing = lengths / u.shape[1]
    mean = u.mean(axis=1)
    v = u - mean[:, None]
    cells = potentials(v, spacing)
    levels = np.cumsum(v, axis=1) * spacing[:, None]
    span = levels.max(axis=1) - levels.min(axis=1)
    fastest = np.abs(v).max(axis=1)
    steepest = np.maximum(np.roll(v, -1, axis=1) - v, 0.0).max(axis=1) / spacing
    # beyond this distance the parabola outweighs what the potential can gain, by its slope or by its range
    spread = 4.0 * NEGLIGIBLE * nu * duration
    reach = np.minimum(
        fastest * duration + np.sqrt((fastest * duration) ** 2 + spread), np.sqrt(2.0 * span * duration + spread)
    )
    width = np.sqrt(2.0 * nu / (1.0 / duration + steepest))
    with np.errstate(divide="ignore", invalid="ignore"):
        per_cell = np.ceil(NODES_PER_WIDTH * spacing / width)
        # the lowest mode of the integral has decayed below rounding
        uniform = nu * duration * (2.0 * np.pi / lengths) ** 2 > NEGLIGIBLE + 0.5 * span / nu
    viscous = per_cell <= MOST_PER_CELL
    node = spacing / np.where(viscous, np.maximum(per_cell, 1.0), 1.0)
    out = np.empty((u.shape[0], count))

    def advance(block: Array) -> None:
        for sample in block:
            faces = np.arange(count) * (lengths[sample] / count) - mean[sample] * duration[sample]
            levels = np.zeros(count)
            given = cells[sample], spacing[sample], faces, levels, duration[sample]
            if viscous[sample] and not uniform[sample]:
                cole_hopf(*given, nu[sample], node[sample], reach[sample])
            elif not uniform[sample]:
                hopf_lax(*given, node[sample], reach[sample] + node[sample])
            out[sample] = mean[sample] + (np.roll(levels, -1) - levels) * (count / lengths[sample])

    run_blocks(advance, list(np.arange(u.shape[0])[:, None]), workers)
    return out
