"""Fluxes of shallow water through faces between cells: of gravity waves, of the advection of momentum, or of both."""

from __future__ import annotations

from math import sqrt

import numba

GRAVITY, MOMENTUM, BOTH = 0, 1, 2


@numba.njit(cache=True, error_model="numpy")
def velocity(m: float, h: float, dry: float) -> float:
    return m / h if h > dry else 0.0


@numba.njit(cache=True, error_model="numpy")
def _gravity_flux(left, right, shift, count, normal, g, flux):  # type: ignore[no-untyped-def]
    """Rusanov's flux of (m, ½gh²): of the two waves ±√(gh) it resolves both. Momentum along the face stays."""
    for k in range(count):
        h0, h1 = left[0, k], right[0, k + shift]
        m0, m1 = left[normal, k], right[normal, k + shift]
        speed = sqrt(g * max(h0, h1))
        flux[0, k] = 0.5 * ((m0 + m1) - speed * (h1 - h0))
        flux[normal, k] = 0.5 * (0.5 * g * (h0 * h0 + h1 * h1) - speed * (m1 - m0))
    for c in range(1, flux.shape[0]):
        if c != normal:
            flux[c, :count] = 0.0


@numba.njit(cache=True, error_model="numpy")
def _momentum_flux(left, right, shift, count, normal, flux):  # type: ignore[no-untyped-def]
    """Godunov's flux of m²/h, which is convex in m with its minimum at rest: the larger of what either side sends.

    Momentum along the face goes with what flows out of its own side, the sum of both where they collide.
    """
    for k in range(count):
        ahead, back = max(left[normal, k], 0.0), min(right[normal, k + shift], 0.0)
        flux[0, k] = 0.0
        flux[normal, k] = max(ahead * ahead / left[0, k], back * back / right[0, k + shift])
    for c in range(1, flux.shape[0]):
        if c != normal:
            for k in range(count):
                ahead = max(left[normal, k], 0.0) / left[0, k]
                back = min(right[normal, k + shift], 0.0) / right[0, k + shift]
                flux[c, k] = ahead * left[c, k] + back * right[c, k + shift]


@numba.njit(cache=True, error_model="numpy")
def _shallow_water_flux(left, right, shift, count, normal, g, dry, flux):  # type: ignore[no-untyped-def]
    """HLLC (Toro, Shock-Capturing Methods for Free-Surface Shallow Flows, 2001): HLL with Einfeldt's speeds, and those
    of a dry bed next to one, for depth and normal momentum; momentum along the face goes with the mass."""
    for k in range(count):
        h0, h1 = left[0, k], right[0, k + shift]
        m0, m1 = left[normal, k], right[normal, k + shift]
        u0, u1 = velocity(m0, h0, dry), velocity(m1, h1, dry)
        c0, c1 = sqrt(g * h0), sqrt(g * h1)
        mean = (c0 * u0 + c1 * u1) / (c0 + c1 + 1e-300)
        c = sqrt(0.5 * g * (h0 + h1))
        slow = min(u0 - c0, mean - c) if h0 > dry else u1 - 2.0 * c1
        fast = max(u1 + c1, mean + c) if h1 > dry else u0 + 2.0 * c0
        slow, fast = min(slow, 0.0), max(fast, 0.0)
        scale = 1.0 / (fast - slow + 1e-300)
        flux[0, k] = scale * (fast * h0 * u0 - slow * h1 * u1 + fast * slow * (h1 - h0))
        push0, push1 = h0 * u0 * u0 + 0.5 * g * h0 * h0, h1 * u1 * u1 + 0.5 * g * h1 * h1
        flux[normal, k] = scale * (fast * push0 - slow * push1 + fast * slow * (h1 * u1 - h0 * u0))
    for c in range(1, flux.shape[0]):
        if c != normal:
            for k in range(count):
                mass = flux[0, k]
                v0 = velocity(left[c, k], left[0, k], dry)
                v1 = velocity(right[c, k + shift], right[0, k + shift], dry)
                flux[c, k] = mass * (v0 if mass > 0.0 else v1)


@numba.njit(cache=True, error_model="numpy")
def flux_through(system, left, right, shift, count, normal, g, dry, flux):  # type: ignore[no-untyped-def]
    """Fluxes through ``count`` faces: face k has cell k of ``left`` and cell k + shift of ``right`` on its sides."""
    if system == GRAVITY:
        _gravity_flux(left, right, shift, count, normal, g, flux)
    elif system == MOMENTUM:
        _momentum_flux(left, right, shift, count, normal, flux)
    else:
        _shallow_water_flux(left, right, shift, count, normal, g, dry, flux)
