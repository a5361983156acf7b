"""Steps in time for the compressible equations: stabilised Runge–Kutta–Chebyshev where viscosity is stiff.

Sommeijer, Shampine & Verwer, J. Comput. Appl. Math. 88 (1998) 315: second order, and s stages are stable up to a
damping of about s²/3 along the negative axis, where s explicit steps reach 2 s. The damping parameter is as large as
Verwer, Sommeijer & Hundsdorfer (J. Comput. Phys. 201 (2004) 61) take for advection with diffusion: it widens the stable
strip and damps what the grid does not resolve. Without stiffness three stages of third order (Shu & Osher 1988).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from hycop.references.two_point_fluxes import GHOSTS, fastest_rates, primitive_variables, rates

DAMPING = 10.0
FEWEST_STAGES = 4
NOT_STIFF = 0.5
"""Step times viscous rate below which the explicit method takes the step."""

MOST_STEPS = 1e7


@numba.njit(cache=True, nogil=True)
def chebyshev_weights(stages):  # type: ignore[no-untyped-def]
    """Weights (5, stages + 1) of the stages, of w₀, of the two stages before, of h F before and of h F₀; and the
    length of the stable interval.

    Chebyshev polynomials T_j and their derivatives at 1 + ε/s², by recurrence.
    """
    centre = 1.0 + DAMPING / stages**2
    t, dt, ddt = np.ones(stages + 1), np.zeros(stages + 1), np.zeros(stages + 1)
    t[1], dt[1] = centre, 1.0
    for j in range(2, stages + 1):
        t[j] = 2.0 * centre * t[j - 1] - t[j - 2]
        dt[j] = 2.0 * centre * dt[j - 1] - dt[j - 2] + 2.0 * t[j - 1]
        ddt[j] = 2.0 * centre * ddt[j - 1] - ddt[j - 2] + 4.0 * dt[j - 1]
    slope = dt[stages] / ddt[stages]
    b = np.empty(stages + 1)
    b[2:] = ddt[2:] / dt[2:] ** 2
    b[:2] = b[2]
    weights = np.zeros((5, stages + 1))
    weights[0, 1], weights[3, 1] = 1.0, b[1] * slope
    for j in range(2, stages + 1):
        before, earlier = 2.0 * b[j] * centre / b[j - 1], -b[j] / b[j - 2]
        rate = 2.0 * b[j] * slope / b[j - 1]
        weights[:, j] = (1.0 - before - earlier, before, earlier, rate, -(1.0 - b[j - 1] * t[j - 1]) * rate)
    return weights, (centre + 1.0) / slope


@numba.njit(cache=True, nogil=True)
def _combine(out, weights, start, before, earlier, rate, first):  # type: ignore[no-untyped-def]
    """out = a·start + b·before + c·earlier + d·rate + e·first, cell by cell."""
    a, b, c, d, e = weights
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                known = a * start[k, i, j] + b * before[k, i, j] + c * earlier[k, i, j]
                out[k, i, j] = known + d * rate[k, i, j] + e * first[k, i, j]


@numba.njit(cache=True, nogil=True)
def _third_order_step(w, h, first, system, work):  # type: ignore[no-untyped-def]
    """One explicit step of w, in place, given its rate; whether every stage is a valid state."""
    gamma, spacing, viscosity, convects, q, flux = system
    stage, later, _, rate = work
    _combine(stage, (1.0, 0.0, 0.0, h, 0.0), w, w, w, first, first)
    valid = rates(stage, gamma, spacing, viscosity, convects, q, flux, rate)
    _combine(later, (0.75, 0.25, 0.0, h / 4.0, 0.0), w, stage, w, rate, first)
    valid &= rates(later, gamma, spacing, viscosity, convects, q, flux, rate)
    _combine(stage, (1.0 / 3.0, 2.0 / 3.0, 0.0, 2.0 * h / 3.0, 0.0), w, later, w, rate, first)
    w[:] = stage
    return valid


@numba.njit(cache=True, nogil=True)
def _chebyshev_step(w, h, damping, first, system, work):  # type: ignore[no-untyped-def]
    """One stabilised step of w, in place, with as many stages as the viscous rate ``damping`` asks for."""
    gamma, spacing, viscosity, convects, q, flux = system
    before, earlier, later, rate = work
    stages = FEWEST_STAGES
    weights, stable = chebyshev_weights(stages)
    while stable < damping * h:
        stages += 1
        weights, stable = chebyshev_weights(stages)
    valid = True
    earlier[:] = w
    _combine(before, (1.0, 0.0, 0.0, h * weights[3, 1], 0.0), w, w, w, first, first)
    for j in range(2, stages + 1):
        valid &= rates(before, gamma, spacing, viscosity, convects, q, flux, rate)
        a, b, c, d, e = weights[0, j], weights[1, j], weights[2, j], h * weights[3, j], h * weights[4, j]
        _combine(later, (a, b, c, d, e), w, before, earlier, rate, first)
        before, earlier, later = later, before, earlier
    w[:] = before
    return valid


@numba.njit(cache=True, nogil=True)
def advance_sample(state, duration, gamma, spacing, viscosity, convects, courant, stiffness):  # type: ignore[no-untyped-def]
    """The state (4, n1, n2) after a duration; NaN everywhere if density or pressure does not stay positive.

    A step is the largest with Σ (|v| + c)h/dx ≤ courant and viscous rate·h ≤ stiffness, shortened so that equal steps
    would reach the end.
    """
    n1, n2 = state.shape[1:]
    q, flux = np.empty((6, n1, n2 + 2 * GHOSTS)), np.empty((4, n2 + GHOSTS))
    system = (gamma, spacing, viscosity, convects, q, flux)
    work = (np.empty_like(state), np.empty_like(state), np.empty_like(state), np.empty_like(state))
    w, first = state.copy(), np.empty_like(state)
    elapsed, valid = 0.0, True
    while valid and elapsed < duration:
        valid = rates(w, gamma, spacing, viscosity, convects, q, flux, first)
        crossing, damping = fastest_rates(q, spacing, viscosity)
        steps = (duration - elapsed) * max(convects * crossing / courant, damping / stiffness)
        if not (valid and steps < MOST_STEPS):
            return np.full_like(state, np.nan)
        steps = max(1.0, math.ceil(steps))
        h = (duration - elapsed) / steps
        elapsed = elapsed + h if steps > 1.0 else duration
        if damping * h <= NOT_STIFF:
            valid = _third_order_step(w, h, first, system, work)
        else:
            valid = _chebyshev_step(w, h, damping, first, system, work)
    if duration > 0.0 and not (valid and primitive_variables(w, gamma, q)):
        return np.full_like(state, np.nan)
    return w
