"""Loops of the shallow-water reference: split fluxes, WENO-Z at the faces, fourth-order Runge–Kutta steps."""

from __future__ import annotations

from math import ceil, sqrt

import numba
import numpy as np

GHOSTS = 3
"""Cells beyond the ends that the faces see."""

SMOOTH = 1e-4
"""Changes between cells that count as smooth, relative to the largest flux: there the weights are the optimal ones."""

MOST_STEPS = 1e7
"""A sample that asks for more steps than this has blown up."""


@numba.njit(cache=True, inline="always", error_model="numpy")
def face_value(a, b, c, d, e, small):  # type: ignore[no-untyped-def]
    """The function whose averages over five cells are a … e, at the face between c and d (WENO-Z, fifth order).

    The weights d_k (1 + τ/B_k) are multiplied by B₀B₁B₂, which leaves one division.
    """
    b0 = 13.0 / 12.0 * (a - 2.0 * b + c) ** 2 + 0.25 * (a - 4.0 * b + 3.0 * c) ** 2
    b1 = 13.0 / 12.0 * (b - 2.0 * c + d) ** 2 + 0.25 * (b - d) ** 2
    b2 = 13.0 / 12.0 * (c - 2.0 * d + e) ** 2 + 0.25 * (3.0 * c - 4.0 * d + e) ** 2
    tau = abs(b0 - b2)
    s0, s1, s2 = b0 + small, b1 + small, b2 + small
    w0 = (s0 + tau) * (s1 * s2)
    w1 = 6.0 * (s1 + tau) * (s0 * s2)
    w2 = 3.0 * (s2 + tau) * (s0 * s1)
    value = w0 * (2.0 * a - 7.0 * b + 11.0 * c) + w1 * (-b + 5.0 * c + 2.0 * d) + w2 * (2.0 * c + 5.0 * d - e)
    return value / (6.0 * (w0 + w1 + w2))


@numba.njit(cache=True, error_model="numpy")
def speeds(u, g, pressure, transport):  # type: ignore[no-untyped-def]
    """Fastest characteristic along each axis and the greatest depth; NaN if a depth is not positive."""
    channels, n1, n2 = u.shape
    deepest, along1, along2 = 0.0, 0.0, 0.0
    valid = True
    for i in range(n1):
        for j in range(n2):
            depth = u[0, i, j]
            valid = valid and depth > 0.0
            wave = sqrt(g * depth) if pressure else 0.0
            factor = 0.0 if not transport else 1.0 if pressure else 2.0
            deepest = max(deepest, depth)
            along2 = max(along2, factor * abs(u[channels - 1, i, j]) / depth + wave)
            if channels == 3:
                along1 = max(along1, factor * abs(u[1, i, j]) / depth + wave)
    if not (valid and np.isfinite(along1 + along2 + deepest)):
        return np.nan, np.nan, np.nan
    return along1, along2, deepest


@numba.njit(cache=True)
def _extend(u, wide, code1, code2):  # type: ignore[no-untyped-def]
    """Copies the cells and continues them beyond the ends: periodic 0, mirror image at a wall 1, zero gradient 2."""
    channels, n1, n2 = u.shape
    for channel in range(channels):
        for i in range(n1):
            for j in range(n2):
                wide[channel, i + GHOSTS, j + GHOSTS] = u[channel, i, j]
    for channel in range(channels):
        sign2 = -1.0 if code2 == 1 and channel == channels - 1 else 1.0
        for ghost in range(1, GHOSTS + 1):
            low = n2 - ghost if code2 == 0 else ghost - 1 if code2 == 1 else 0
            high = ghost - 1 if code2 == 0 else n2 - ghost if code2 == 1 else n2 - 1
            for i in range(n1):
                wide[channel, i + GHOSTS, GHOSTS - ghost] = sign2 * u[channel, i, low % n2]
                wide[channel, i + GHOSTS, GHOSTS + n2 - 1 + ghost] = sign2 * u[channel, i, high % n2]
        sign1 = -1.0 if code1 == 1 and channel == 1 and channels == 3 else 1.0
        for ghost in range(1, GHOSTS + 1):
            low = n1 - ghost if code1 == 0 else ghost - 1 if code1 == 1 else 0
            high = ghost - 1 if code1 == 0 else n1 - ghost if code1 == 1 else n1 - 1
            for j in range(n2):
                wide[channel, GHOSTS - ghost, j + GHOSTS] = sign1 * u[channel, low % n1, j]
                wide[channel, GHOSTS + n1 - 1 + ghost, j + GHOSTS] = sign1 * u[channel, high % n1, j]


@numba.njit(cache=True, error_model="numpy")
def _split(wide, right, left, normal, alpha, g, pressure, transport):  # type: ignore[no-untyped-def]
    """Lax–Friedrichs splitting ½(F ± αU) of the fluxes along the axis of a momentum channel.

    A channel without a flux gets no dissipation: the depth under momentum advection, the other momentum under gravity.
    """
    channels, n1, n2 = wide.shape
    p, t = 0.5 * g if pressure else 0.0, 1.0 if transport else 0.0
    mass = 1.0 if pressure else 0.0
    for i in range(n1):
        for j in range(n2):
            depth, momentum = wide[0, i, j], wide[normal, i, j]
            velocity = t * momentum / depth
            flux = momentum * velocity + p * depth * depth
            right[0, i, j] = 0.5 * mass * (momentum + alpha * depth)
            left[0, i, j] = 0.5 * mass * (momentum - alpha * depth)
            right[normal, i, j] = 0.5 * (flux + alpha * momentum)
            left[normal, i, j] = 0.5 * (flux - alpha * momentum)
        if channels == 3:
            other = 3 - normal
            for j in range(n2):
                across = wide[other, i, j]
                flux = across * wide[normal, i, j] / wide[0, i, j]
                right[other, i, j] = 0.5 * t * (flux + alpha * across)
                left[other, i, j] = 0.5 * t * (flux - alpha * across)


@numba.njit(cache=True, error_model="numpy")
def _add_rows(rate, right, left, channel, small, scale):  # type: ignore[no-untyped-def]
    """rate −= scale·(difference of the face fluxes) along the first axis."""
    _, n1, n2 = rate.shape
    before, here = np.empty(n2), np.empty(n2)
    for i in range(n1 + 1):
        r0, r1, r2 = right[channel, i], right[channel, i + 1], right[channel, i + 2]
        r3, r4 = right[channel, i + 3], right[channel, i + 4]
        l1, l2, l3 = left[channel, i + 1], left[channel, i + 2], left[channel, i + 3]
        l4, l5 = left[channel, i + 4], left[channel, i + 5]
        for j in range(n2):
            k = j + GHOSTS
            here[j] = face_value(r0[k], r1[k], r2[k], r3[k], r4[k], small) + face_value(
                l5[k], l4[k], l3[k], l2[k], l1[k], small
            )
        if i > 0:
            for j in range(n2):
                rate[channel, i - 1, j] -= scale * (here[j] - before[j])
        before, here = here, before


@numba.njit(cache=True, error_model="numpy")
def _add_columns(rate, right, left, channel, small, scale):  # type: ignore[no-untyped-def]
    """The same along the second axis."""
    _, n1, n2 = rate.shape
    face = np.empty(n2 + 1)
    for i in range(n1):
        r, f = right[channel, i + GHOSTS], left[channel, i + GHOSTS]
        for j in range(n2 + 1):
            face[j] = face_value(r[j], r[j + 1], r[j + 2], r[j + 3], r[j + 4], small) + face_value(
                f[j + 5], f[j + 4], f[j + 3], f[j + 2], f[j + 1], small
            )
        for j in range(n2):
            rate[channel, i, j] -= scale * (face[j + 1] - face[j])


@numba.njit(cache=True, error_model="numpy")
def _rate(u, rate, wide, right, left, dx, codes, g, pressure, transport):  # type: ignore[no-untyped-def]
    """du/dt; False if a depth is not positive."""
    channels = u.shape[0]
    along1, along2, deepest = speeds(u, g, pressure, transport)
    rate[:] = 0.0
    if not along2 >= 0.0:
        return False
    _extend(u, wide, codes[0], codes[1])
    for axis in range(3 - channels, 2):
        alpha = along1 if axis == 0 else along2
        _split(wide, right, left, axis + channels - 2, alpha, g, pressure, transport)
        for channel in range(channels):
            size = SMOOTH * alpha * deepest * (1.0 if channel == 0 else alpha)
            small = size * size + 1e-40
            if axis == 0:
                _add_rows(rate, right, left, channel, small, 1.0 / dx[0])
            else:
                _add_columns(rate, right, left, channel, small, 1.0 / dx[1])
    return True


@numba.njit(cache=True)
def _combine(u, total, stage, rate, weight, ahead):  # type: ignore[no-untyped-def]
    """total += weight·rate, and the next stage = u + ahead·rate."""
    base, sums, points, rates = u.ravel(), total.ravel(), stage.ravel(), rate.ravel()
    for i in range(base.size):
        sums[i] += weight * rates[i]
        points[i] = base[i] + ahead * rates[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def advance_sample(u, out, duration, dx, codes, g, pressure, transport, cfl):  # type: ignore[no-untyped-def]
    """One sample through the whole duration by classical Runge–Kutta steps of Σ α_i Δt/Δx_i ≤ cfl."""
    channels, n1, n2 = u.shape
    stage, rate, total = np.empty_like(u), np.empty_like(u), np.empty_like(u)
    box = (channels, n1 + 2 * GHOSTS, n2 + 2 * GHOSTS)
    # the corners are never read by a face, but the splitting divides by their depth
    wide, right, left = np.ones(box), np.empty(box), np.empty(box)
    out[:] = u
    remaining = duration
    nodes, weights = (0.5, 0.5, 1.0, 0.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)
    while remaining > 0.0:
        along1, along2, _ = speeds(out, g, pressure, transport)
        wanted = remaining * (along1 / dx[0] + along2 / dx[1]) / cfl
        if not wanted < MOST_STEPS:
            out[:] = np.nan
            return
        steps = max(1, ceil(wanted))
        dt = remaining / steps
        total[:] = out
        stage[:] = out
        for index in range(4):
            if not _rate(stage, rate, wide, right, left, dx, codes, g, pressure, transport):
                out[:] = np.nan
                return
            _combine(out, total, stage, rate, weights[index] * dt, nodes[index] * dt)
        out[:] = total
        remaining = 0.0 if steps == 1 else remaining - dt
