"""Sixth-order conservative differences of the compressible equations: fluxes between pairs of cells one to three apart.

The rate of a cell is Σ_axis Σ_l [G_l(i − l, i) − G_l(i, i + l)] for l = 1, 2, 3, so that what leaves one cell enters
another. Convection takes the averages of Kennedy & Gruber (2008) in the pairs of Pirozzoli (J. Comput. Phys. 229
(2010) 7180), which keep kinetic energy; viscosity takes k (φ' − φ) with k the mean of both ends, which is of full order
because (k φ')' = ½[k φ'' + (k φ)'' − φ k''].
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

GHOSTS = 3
"""Copies of periodic neighbours that every row has at either end."""

FIRST = np.array([3.0 / 2.0, -3.0 / 10.0, 1.0 / 30.0])
"""Twice the weights of the sixth-order first derivative for neighbours one, two and three cells away."""

SECOND = np.array([3.0 / 2.0, -3.0 / 20.0, 1.0 / 90.0])
"""The weights of the sixth-order second derivative."""

LARGEST_SECOND = 2.0 * (SECOND[0] + SECOND[2]) * 2.0
"""−dx² times the second difference of the shortest wave."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _primitive_variables(w, gamma, q):  # type: ignore[no-untyped-def]
    """Fills q (6, n1, n2 + ghosts) with ρ, v_x, v_y, p, enthalpy H and sound speed c; whether ρ and p are positive."""
    n1, n2 = w.shape[1:]
    bad = 0
    for i in range(n1):
        for j in range(n2):
            density, energy = w[0, i, j], w[3, i, j]
            vx, vy = w[1, i, j] / density, w[2, i, j] / density
            pressure = (gamma - 1.0) * (energy - 0.5 * density * (vx * vx + vy * vy))
            bad += 0 if density > 0.0 and pressure > 0.0 else 1
            q[0, i, j + GHOSTS] = density
            q[1, i, j + GHOSTS] = vx
            q[2, i, j + GHOSTS] = vy
            q[3, i, j + GHOSTS] = pressure
            q[4, i, j + GHOSTS] = (energy + pressure) / density
            q[5, i, j + GHOSTS] = math.sqrt(gamma * pressure / density)
        for c in range(6):
            for ghost in range(GHOSTS):
                q[c, i, ghost] = q[c, i, n2 + ghost]
                q[c, i, n2 + GHOSTS + ghost] = q[c, i, GHOSTS + ghost]
    return bad == 0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pair_fluxes(q, i, i2, s, s2, cells, axis, convection, diffusion, viscosity, flux):  # type: ignore[no-untyped-def]
    """What passes from cells (i, j + s) to (i2, j + s2), convected and diffused, for all j.

    ``viscosity`` holds the coefficients of the velocity along the axis and across it.
    """
    along, across = 1 + axis, 2 - axis
    for j in range(cells):
        u, u2 = q[along, i, j + s], q[along, i2, j + s2]
        v, v2 = q[across, i, j + s], q[across, i2, j + s2]
        densities = q[0, i, j + s] + q[0, i2, j + s2]
        mass = 0.25 * convection * densities * (u + u2)
        stress = 0.5 * diffusion * viscosity[0] * densities * (u2 - u)
        shear = 0.5 * diffusion * viscosity[1] * densities * (v2 - v)
        flux[0, j] = mass
        flux[along, j] = 0.5 * (mass * (u + u2) + convection * (q[3, i, j + s] + q[3, i2, j + s2])) - stress
        flux[across, j] = 0.5 * mass * (v + v2) - shear
        enthalpies = q[4, i, j + s] + q[4, i2, j + s2]
        flux[3, j] = 0.5 * (mass * enthalpies - stress * (u + u2) - shear * (v + v2))


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _fifth_difference(q, c, rows, j, shifts):  # type: ignore[no-untyped-def]
    outer = q[c, rows[5], j + shifts[5]] - q[c, rows[0], j + shifts[0]]
    middle = q[c, rows[4], j + shifts[4]] - q[c, rows[1], j + shifts[1]]
    inner = q[c, rows[3], j + shifts[3]] - q[c, rows[2], j + shifts[2]]
    return outer - 5.0 * middle + 10.0 * inner


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _upwind_fluxes(q, rows, shifts, cells, axis, scale, flux):  # type: ignore[no-untyped-def]
    """scale·|A| δ⁵, for all j: each characteristic wave of the fifth difference at its own speed, as Roe (1981) does.

    Sound is damped at |v ± c| and entropy and shear, which slow flow hardly moves, at |v| only.
    """
    along, across = 1 + axis, 2 - axis
    for j in range(cells):
        drho = _fifth_difference(q, 0, rows, j, shifts)
        du = _fifth_difference(q, along, rows, j, shifts)
        dv = _fifth_difference(q, across, rows, j, shifts)
        dp = _fifth_difference(q, 3, rows, j, shifts)
        left, right, s, s2 = rows[2], rows[3], j + shifts[2], j + shifts[3]
        density = 0.5 * (q[0, left, s] + q[0, right, s2])
        u = 0.5 * (q[along, left, s] + q[along, right, s2])
        v = 0.5 * (q[across, left, s] + q[across, right, s2])
        enthalpy = 0.5 * (q[4, left, s] + q[4, right, s2])
        c = 0.5 * (q[5, left, s] + q[5, right, s2])
        compliance = 1.0 / (c * c)
        forward = 0.5 * scale * compliance * abs(u + c) * (dp + density * c * du)
        backward = 0.5 * scale * compliance * abs(u - c) * (dp - density * c * du)
        entropy = scale * abs(u) * (drho - compliance * dp)
        shear = scale * abs(u) * density * dv
        mass = forward + backward + entropy
        flux[0, j] = mass
        flux[along, j] = mass * u + (forward - backward) * c
        flux[across, j] = mass * v + shear
        kinetic = 0.5 * (u * u + v * v)
        flux[3, j] = (forward + backward) * enthalpy + (forward - backward) * u * c + entropy * kinetic + shear * v


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _give(flux, rate, i, i2, distance):  # type: ignore[no-untyped-def]
    """Takes the fluxes from the cells of row i and gives them to row i2, or along the row if that is the same."""
    n2 = rate.shape[2]
    for c in range(4):
        if i2 != i:
            for j in range(n2):
                rate[c, i, j] -= flux[c, j]
            for j in range(n2):
                rate[c, i2, j] += flux[c, j]
        else:
            for j in range(n2):
                rate[c, i, j] += flux[c, j] - flux[c, j + distance]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _rates(w, gamma, spacing, viscosity, convects, q, flux, rate):  # type: ignore[no-untyped-def]
    """Fills ``rate`` with ∂w/∂t of the state w (4, n1, n2) and returns whether w is a valid state.

    q (6, n1, n2 + 6) and flux (4, n2 + 3) are work space.
    """
    valid = _primitive_variables(w, gamma, q)
    n1, n2 = w.shape[1:]
    rate[:] = 0.0
    for i in range(n1):
        for axis in range(2):
            h = spacing[axis]
            for distance in range(1, GHOSTS + 1):
                convection = convects * FIRST[distance - 1] / h
                diffusion = SECOND[distance - 1] / (h * h)
                if axis == 0:
                    i2, s, s2, cells = (i + distance) % n1, GHOSTS, GHOSTS, n2
                else:  # pairs that begin up to ``distance`` cells before the row
                    i2, s, s2, cells = i, GHOSTS - distance, GHOSTS, n2 + distance
                _pair_fluxes(q, i, i2, s, s2, cells, axis, convection, diffusion, viscosity, flux)
                _give(flux, rate, i, i2, distance)
            if convects > 0.0:
                scale = -1.0 / (60.0 * h)
                if axis == 0:
                    rows = ((i - 2) % n1, (i - 1) % n1, i, (i + 1) % n1, (i + 2) % n1, (i + 3) % n1)
                    _upwind_fluxes(q, rows, (3, 3, 3, 3, 3, 3), n2, axis, scale, flux)
                    _give(flux, rate, i, (i + 1) % n1, 1)
                else:
                    _upwind_fluxes(q, (i, i, i, i, i, i), (0, 1, 2, 3, 4, 5), n2 + 1, axis, scale, flux)
                    _give(flux, rate, i, i, 1)
    return valid


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fastest_rates(q, spacing, viscosity):  # type: ignore[no-untyped-def]
    """Σ_axis (|v| + c)/dx of the fastest cell, and the largest rate at which viscosity damps a wave.

    The viscous bound holds for equal neighbours and grows with the ratio of their densities.
    """
    n1, cells = q.shape[1:]
    crossing, ratio = 0.0, 1.0
    for i in range(n1):
        below = (i + 1) % n1
        for j in range(GHOSTS, cells - GHOSTS):
            c, density = q[5, i, j], q[0, i, j]
            crossing = max(crossing, (abs(q[1, i, j]) + c) / spacing[0] + (abs(q[2, i, j]) + c) / spacing[1])
            for neighbour in (q[0, below, j], q[0, i, j + 1]):
                ratio = max(ratio, neighbour / density, density / neighbour)
    x, y = 1.0 / spacing[0] ** 2, 1.0 / spacing[1] ** 2
    diffusion = max(viscosity[0] * x + viscosity[1] * y, viscosity[1] * x + viscosity[0] * y)
    return crossing, LARGEST_SECOND * 0.5 * (1.0 + ratio) * diffusion


class TwoPointFluxes:
    """∂w/∂t of states (4, n1, n2) in one box, a callable; ``convects`` is 1 with the Euler equations and 0 without.

    ``viscosity`` holds ν along the velocity and across it.
    """

    def __init__(self, shape: tuple[int, ...], gamma: float, spacing: Array, viscosity: Array, convects: float) -> None:
        self._coefficients = gamma, spacing, viscosity, convects
        self._primitives = np.empty((6, shape[0], shape[1] + 2 * GHOSTS))
        self._flux = np.empty((4, shape[1] + GHOSTS))

    def __call__(self, w: Array, out: Array) -> bool:
        """Fills ``out`` with the rate of change of w; whether density and pressure of w are positive."""
        return bool(_rates(w, *self._coefficients, self._primitives, self._flux, out))

    def valid(self, w: Array) -> bool:
        return bool(_primitive_variables(w, self._coefficients[0], self._primitives))

    def fastest(self) -> tuple[float, float]:
        """Of the state that was seen last: Σ_axis (|v| + c)/dx of the fastest cell, and the fastest viscous decay."""
        _, spacing, viscosity, convects = self._coefficients
        crossing, decay = _fastest_rates(self._primitives, spacing, viscosity)
        return convects * crossing, decay
