"""Fluxes of shallow water through faces between cells: of gravity waves, of the advection of momentum, or of both.

A state is three vectors: depth h, momentum m across the face, and momentum s along it. So is a flux.
"""

from __future__ import annotations

import numba

from hycop.kernels.lanes import LANES, filled, load, maximum, minimum, square_root, store, where_positive

GRAVITY, MOMENTUM, BOTH = 0, 1, 2


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def velocity(m, h, dry):  # type: ignore[no-untyped-def]
    """m/h, or 0 where the bed is dry."""
    return where_positive(h - dry, m / h, 0.0)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def inverses(h0, h1, dry, system):  # type: ignore[no-untyped-def]
    """1/h0 and 1/h1 by one division, which takes as long as a dozen products; 0 where the bed is dry, as it may be only
    where both processes act."""
    if system != BOTH:
        both = 1.0 / (h0 * h1)
        return h1 * both, h0 * both
    wet0, wet1 = where_positive(h0 - dry, h0, 1.0), where_positive(h1 - dry, h1, 1.0)
    both = 1.0 / (wet0 * wet1)
    return where_positive(h0 - dry, wet1 * both, 0.0), where_positive(h1 - dry, wet0 * both, 0.0)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _gravity_flux(left, right, g):  # type: ignore[no-untyped-def]
    """Rusanov's flux of (m, ½gh²): of the two waves ±√(gh) it resolves both. Momentum along the face stays."""
    (h0, m0, _), (h1, m1, _) = left, right
    speed = square_root(g * maximum(h0, h1))
    mass = 0.5 * ((m0 + m1) - speed * (h1 - h0))
    return mass, 0.5 * (0.5 * g * (h0 * h0 + h1 * h1) - speed * (m1 - m0)), filled(0.0)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _momentum_flux(left, right):  # type: ignore[no-untyped-def]
    """Godunov's flux of m²/h, which is convex in m with its minimum at rest: the larger of what either side sends.

    Momentum along the face goes with what flows out of its own side, the sum of both where they collide.
    """
    (h0, m0, s0), (h1, m1, s1) = left, right
    inverse0, inverse1 = inverses(h0, h1, 0.0, MOMENTUM)
    ahead, back = maximum(m0, 0.0), minimum(m1, 0.0)
    out, into = ahead * inverse0, back * inverse1
    return filled(0.0), maximum(ahead * out, back * into), out * s0 + into * s1


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def _shallow_water_flux(left, right, g, dry):  # type: ignore[no-untyped-def]
    """HLLC (Toro, Shock-Capturing Methods for Free-Surface Shallow Flows, 2001): HLL with Einfeldt's speeds, and those
    of a dry bed next to one, for depth and normal momentum; momentum along the face goes with the mass."""
    (h0, m0, s0), (h1, m1, s1) = left, right
    inverse0, inverse1 = inverses(h0, h1, dry, BOTH)
    u0, u1 = m0 * inverse0, m1 * inverse1
    c0, c1 = square_root(g * h0), square_root(g * h1)
    mean = (c0 * u0 + c1 * u1) / (c0 + c1 + 1e-300)
    c = square_root(0.5 * g * (h0 + h1))
    slow = where_positive(h0 - dry, minimum(u0 - c0, mean - c), u1 - 2.0 * c1)
    fast = where_positive(h1 - dry, maximum(u1 + c1, mean + c), u0 + 2.0 * c0)
    slow, fast = minimum(slow, 0.0), maximum(fast, 0.0)
    scale = 1.0 / (fast - slow + 1e-300)
    q0, q1 = h0 * u0, h1 * u1  # no momentum where the bed is dry
    mass = scale * (fast * q0 - slow * q1 + fast * slow * (h1 - h0))
    push0, push1 = q0 * u0 + 0.5 * g * (h0 * h0), q1 * u1 + 0.5 * g * (h1 * h1)
    push = scale * (fast * push0 - slow * push1 + fast * slow * (q1 - q0))
    return mass, push, mass * where_positive(mass, s0 * inverse0, s1 * inverse1)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def face_flux(left, right, g, dry, system):  # type: ignore[no-untyped-def]
    """What flows through faces from the left to the right, in vectors (depth, momentum across the face, along it)."""
    if system == GRAVITY:
        return _gravity_flux(left, right, g)
    if system == MOMENTUM:
        return _momentum_flux(left, right)
    return _shallow_water_flux(left, right, g, dry)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def state_at(rows, k, normal, aside):  # type: ignore[no-untyped-def]
    """The state of ``LANES`` cells from k on; with ``aside`` 0 its momentum along the face is any number."""
    size = rows.shape[1]
    return load(rows, k), load(rows, normal * size + k), load(rows, aside * size + k)


@numba.njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def put_state(rows, k, normal, aside, state):  # type: ignore[no-untyped-def]
    """Writes a state, or a flux, to where ``state_at`` finds it; with ``aside`` 0 no momentum along the face."""
    size = rows.shape[1]
    store(rows, aside * size + k, state[2])  # depth, which comes later, stays if there is no such row
    store(rows, normal * size + k, state[1])
    store(rows, k, state[0])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def flux_through(system, left, right, shift, count, normal, aside, g, dry, flux):  # type: ignore[no-untyped-def]
    """Fluxes through ``count`` faces: face k has cell k of ``left`` and cell k + shift of ``right`` on its sides. Rows
    have ``room`` for vectors that reach beyond the last face."""
    for k in range(0, count, LANES):
        sides = state_at(left, k, normal, aside), state_at(right, k + shift, normal, aside)
        put_state(flux, k, normal, aside, face_flux(sides[0], sides[1], g, dry, system))
