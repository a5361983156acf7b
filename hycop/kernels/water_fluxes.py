"""Fluxes of shallow water through faces between cells: of gravity waves, of the advection of momentum, or of both.

States at the faces are rows (channel, face) with ``room`` for vectors that reach beyond the last.
"""

from __future__ import annotations

import numba

from hycop.kernels.lanes import LANES, load, maximum, minimum, square_root, store, where_positive

GRAVITY, MOMENTUM, BOTH = 0, 1, 2


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def velocity(m, h, dry):  # type: ignore[no-untyped-def]
    """m/h, or 0 where the bed is dry."""
    return where_positive(h - dry, m / h, 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _gravity_flux(left, right, shift, count, normal, g, flux):  # type: ignore[no-untyped-def]
    """Rusanov's flux of (m, ½gh²): of the two waves ±√(gh) it resolves both. Momentum along the face stays."""
    a, b, f = normal * left.shape[1], normal * right.shape[1] + shift, normal * flux.shape[1]
    for k in range(0, count, LANES):
        h0, h1, m0, m1 = load(left, k), load(right, k + shift), load(left, a + k), load(right, b + k)
        speed = square_root(g * maximum(h0, h1))
        store(flux, k, 0.5 * ((m0 + m1) - speed * (h1 - h0)))
        store(flux, f + k, 0.5 * (0.5 * g * (h0 * h0 + h1 * h1) - speed * (m1 - m0)))
    for c in range(1, flux.shape[0]):
        if c != normal:
            flux[c, :count] = 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _momentum_flux(left, right, shift, count, normal, flux):  # type: ignore[no-untyped-def]
    """Godunov's flux of m²/h, which is convex in m with its minimum at rest: the larger of what either side sends.

    Momentum along the face goes with what flows out of its own side, the sum of both where they collide.
    """
    a, b, f = left.shape[1], right.shape[1], flux.shape[1]
    for k in range(0, count, LANES):
        m0 = maximum(load(left, normal * a + k), 0.0)
        m1 = minimum(load(right, normal * b + k + shift), 0.0)
        ahead, back = m0 / load(left, k), m1 / load(right, k + shift)
        store(flux, k, 0.0 * m0)
        store(flux, normal * f + k, maximum(ahead * m0, back * m1))
        for c in range(1, flux.shape[0]):
            if c != normal:
                store(flux, c * f + k, ahead * load(left, c * a + k) + back * load(right, c * b + k + shift))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _shallow_water_flux(left, right, shift, count, normal, g, dry, flux):  # type: ignore[no-untyped-def]
    """HLLC (Toro, Shock-Capturing Methods for Free-Surface Shallow Flows, 2001): HLL with Einfeldt's speeds, and those
    of a dry bed next to one, for depth and normal momentum; momentum along the face goes with the mass."""
    a, b, f = left.shape[1], right.shape[1], flux.shape[1]
    for k in range(0, count, LANES):
        h0, h1 = load(left, k), load(right, k + shift)
        u0, u1 = velocity(load(left, normal * a + k), h0, dry), velocity(load(right, normal * b + k + shift), h1, dry)
        c0, c1 = square_root(g * h0), square_root(g * h1)
        mean = (c0 * u0 + c1 * u1) / (c0 + c1 + 1e-300)
        c = square_root(0.5 * g * (h0 + h1))
        slow = where_positive(h0 - dry, minimum(u0 - c0, mean - c), u1 - 2.0 * c1)
        fast = where_positive(h1 - dry, maximum(u1 + c1, mean + c), u0 + 2.0 * c0)
        slow, fast = minimum(slow, 0.0), maximum(fast, 0.0)
        scale = 1.0 / (fast - slow + 1e-300)
        m0, m1 = h0 * u0, h1 * u1
        mass = scale * (fast * m0 - slow * m1 + fast * slow * (h1 - h0))
        push0, push1 = m0 * u0 + 0.5 * g * (h0 * h0), m1 * u1 + 0.5 * g * (h1 * h1)
        store(flux, k, mass)
        store(flux, normal * f + k, scale * (fast * push0 - slow * push1 + fast * slow * (m1 - m0)))
        for along in range(1, flux.shape[0]):
            if along != normal:
                v0 = velocity(load(left, along * a + k), h0, dry)
                v1 = velocity(load(right, along * b + k + shift), h1, dry)
                store(flux, along * f + k, mass * where_positive(mass, v0, v1))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def flux_through(system, left, right, shift, count, normal, g, dry, flux):  # type: ignore[no-untyped-def]
    """Fluxes through ``count`` faces: face k has cell k of ``left`` and cell k + shift of ``right`` on its sides."""
    if system == GRAVITY:
        _gravity_flux(left, right, shift, count, normal, g, flux)
    elif system == MOMENTUM:
        _momentum_flux(left, right, shift, count, normal, flux)
    else:
        _shallow_water_flux(left, right, shift, count, normal, g, dry, flux)
