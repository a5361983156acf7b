"""Compressible flow in one and two dimensions by finite volumes: MUSCL–HLLC fluxes, viscous fluxes, or both.

A sample is (4, cells): density, momentum along the first and second axis, energy. A line is a box of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan, sqrt
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing, threads_for

Array = npt.NDArray[Any]

BOUNDARY_CODES = {"periodic": 0, "wall": 1, "outflow": 2}

GHOSTS = 2
"""Cells added around a box: as many as a limited slope next to a face looks at."""

BLOCK = 16
"""Rows per task where the threads share one large sample."""

GAMMA, ALONG, ACROSS, EULER, WIDTHS = 0, 1, 2, 3, 4
"""Places in the description of a sample's fluid and box: ratio of specific heats, viscosities of the velocity normal to
a face and of the other, 1 or 0 for with or without Euler fluxes, and 1/Δx of both axes."""

ROOM = 3.0
"""How much of the decay that an integrator can bear is kept for upwind fluxes, per Courant number: enough up to 0.8."""

MOST_STEPS = 100_000_000
"""A state that asks for more steps than this has a sound speed that is no longer physical."""


@numba.njit(cache=True)
def inside(i: int, n: int, code: int) -> int:
    """The cell whose image is cell i: wrapped if periodic, mirrored at a wall, the nearest one at an outflow."""
    if code == 0:
        return i % n
    if code == 1:
        i = -1 - i if i < 0 else 2 * n - 1 - i if i >= n else i
    return min(max(i, 0), n - 1)


@numba.njit(cache=True, error_model="numpy")
def _fill_primitive(v, q, first, last, shape, codes, gamma):  # type: ignore[no-untyped-def]
    """Rows first … last − 1 of q: density, velocities and pressure of a box with its ghost cells."""
    n1, n2 = shape
    pitch = n2 + 2 * GHOSTS
    for row in range(first, last):
        source = inside(row - GHOSTS, n1, codes[0])
        start, target = source * n2, row * pitch + GHOSTS
        mirror = -1.0 if codes[0] == 1 and source != row - GHOSTS else 1.0
        for k in range(n2):
            a, b = np.uint64(start + k), np.uint64(target + k)
            inverse = 1.0 / v[0, a]
            x, y = v[1, a] * inverse, v[2, a] * inverse
            q[0, b], q[1, b], q[2, b] = v[0, a], mirror * x, y
            q[3, b] = (gamma - 1.0) * (v[3, a] - 0.5 * (v[1, a] * x + v[2, a] * y))
        for ghost in (-2, -1, n2, n2 + 1):
            image, place = target + inside(ghost, n2, codes[1]), target + ghost
            for channel in range(4):
                q[channel, place] = q[channel, image]
            if codes[1] == 1:
                q[2, place] = -q[2, image]


@numba.njit(cache=True, inline="always", error_model="numpy")
def _half_slope(before: float, here: float, after: float) -> float:
    """Half the harmonic mean of both differences (van Leer, J. Comput. Phys. 32 (1979) 101): zero at an extremum.

    A value that far from a centre is between those of the neighbours: densities and pressures at faces are positive.
    """
    left, right = here - before, after - here
    product = left * right
    return product / (left + right) if product > 0.0 else 0.0


@numba.njit(cache=True, inline="always")
def _at_face(q, channel, behind, here, ahead, slopes):  # type: ignore[no-untyped-def]
    """Value of cell ``here`` at its face towards cell ``ahead``."""
    return q[channel, here] + slopes * _half_slope(q[channel, behind], q[channel, here], q[channel, ahead])


@numba.njit(cache=True, inline="always", error_model="numpy")
def _hllc(rl, ul, tl, pl, rr, ur, tr, pr, gamma):  # type: ignore[no-untyped-def]
    """Flux of mass, normal and tangential momentum and energy between two states (density, velocities, pressure).

    Toro, Spruce, Speares, Shock Waves 4 (1994) 25, with the outer speeds of Davis, SIAM J. Sci. Stat. Comput. 9 (1988).
    Without branches, so that a loop over faces is vectorised.
    """
    cl, cr = sqrt(gamma * pl / rl), sqrt(gamma * pr / rr)
    sl, sr = min(ul - cl, ur - cr), max(ul + cl, ur + cr)
    dl, dr = rl * (sl - ul), rr * (sr - ur)
    contact = (pr - pl + dl * ul - dr * ur) / (dl - dr)
    left = contact >= 0.0
    r, u, t, p = (rl if left else rr), (ul if left else ur), (tl if left else tr), (pl if left else pr)
    speed, d = (sl if left else sr), (dl if left else dr)
    passed = min(sl, 0.0) if left else max(sr, 0.0)  # zero if the whole fan is on the other side
    energy = p / (gamma - 1.0) + 0.5 * r * (u * u + t * t)
    r_star = d / (speed - contact)
    e_star = r_star * (energy / r + (contact - u) * (contact + p / d))
    mass = r * u + passed * (r_star - r)
    normal = r * u * u + p + passed * (r_star * contact - r * u)
    return mass, normal, t * mass, (energy + p) * u + passed * (e_star - energy)


@numba.njit(cache=True, error_model="numpy")
def _add_euler(q, at, stride, faces, axis, slopes, gamma, flux):  # type: ignore[no-untyped-def]
    """Adds to flux[:, k] what passes the face before cell at + k along an axis with that stride.

    Indices without a sign: Numba counts negative ones from the end, and looking for them stops vectorisation.
    """
    n, t, one = 1 + axis, 2 - axis, np.uint64(stride)
    for k in range(faces):
        c = np.uint64(at + k)
        b = c - one
        a, d = b - one, c + one
        rl, rr = _at_face(q, 0, a, b, c, slopes), _at_face(q, 0, d, c, b, slopes)
        ul, ur = _at_face(q, n, a, b, c, slopes), _at_face(q, n, d, c, b, slopes)
        tl, tr = _at_face(q, t, a, b, c, slopes), _at_face(q, t, d, c, b, slopes)
        pl, pr = _at_face(q, 3, a, b, c, slopes), _at_face(q, 3, d, c, b, slopes)
        mass, normal, tangential, energy = _hllc(rl, ul, tl, pl, rr, ur, tr, pr, gamma)
        flux[0, k] += mass
        flux[n, k] += normal
        flux[t, k] += tangential
        flux[3, k] += energy


@numba.njit(cache=True)
def _add_viscous(q, at, stride, faces, axis, along, across, flux):  # type: ignore[no-untyped-def]
    """Adds −ν ρ ∂v of both components and −ν ρ ∂(v²/2); ``along`` and ``across`` are ν/Δx; see above."""
    n, t, one = 1 + axis, 2 - axis, np.uint64(stride)
    for k in range(faces):
        c = np.uint64(at + k)
        b = c - one
        density = 0.5 * (q[0, b] + q[0, c])
        normal = along * density * (q[n, c] - q[n, b])
        tangential = across * density * (q[t, c] - q[t, b])
        flux[n, k] -= normal
        flux[t, k] -= tangential
        flux[3, k] -= 0.5 * (normal * (q[n, b] + q[n, c]) + tangential * (q[t, b] + q[t, c]))


@numba.njit(cache=True)
def _fluxes(q, at, stride, faces, axis, box, slopes, flux):  # type: ignore[no-untyped-def]
    """The fluxes that a sample has through some faces, instead of what flux held."""
    flux[:] = 0.0
    if box[EULER] > 0.0:
        _add_euler(q, at, stride, faces, axis, slopes, box[GAMMA], flux)
    if box[ALONG] > 0.0:
        along, across = box[ALONG] * box[WIDTHS + axis], box[ACROSS] * box[WIDTHS + axis]
        _add_viscous(q, at, stride, faces, axis, along, across, flux)


@numba.njit(cache=True)
def _stage(q, v, y, older, rate, first, last, shape, box, weights, slopes, start):  # type: ignore[no-untyped-def]
    """Rows of older ← w₀·v + w₁·y + w₂·older + w₃·L(y) + w₄·L(v), with L(v) kept in ``rate`` by the starting stage."""
    n2 = shape[1]
    pitch = n2 + 2 * GHOSTS
    if first >= last:
        return
    low, high, side = np.empty((4, n2)), np.empty((4, n2)), np.empty((4, n2 + 1))
    inverse_x, inverse_y = box[WIDTHS], box[WIDTHS + 1]
    w0, w1, w2, w3, w4 = weights[0], weights[1], weights[2], weights[3], weights[4]
    _fluxes(q, (first + GHOSTS) * pitch + GHOSTS, pitch, n2, 0, box, slopes, low)
    for row in range(first, last):
        at = (row + GHOSTS) * pitch + GHOSTS
        _fluxes(q, at + pitch, pitch, n2, 0, box, slopes, high)
        _fluxes(q, at, 1, n2 + 1, 1, box, slopes, side)
        for channel in range(4):
            for k in range(n2):
                cell = np.uint64(row * n2 + k)
                change = inverse_x * (low[channel, k] - high[channel, k])
                change += inverse_y * (side[channel, k] - side[channel, k + 1])
                if start:
                    rate[channel, cell] = change
                older[channel, cell] = (
                    w0 * v[channel, cell]
                    + w1 * y[channel, cell]
                    + w2 * older[channel, cell]
                    + w3 * change
                    + w4 * rate[channel, cell]
                )
        low, high = high, low


@numba.njit(cache=True, error_model="numpy")
def _peaks(q, first, last, shape, box, peaks):  # type: ignore[no-untyped-def]
    """Among some rows: largest Σ (|v| + c)/Δx, bound of the fastest decay, number of cells that are not physical.

    The decay is Gershgorin's bound of the eigenvalues of v ↦ Σ ∂(ν ρ ∂v)/ρ, and room for those of the upwind fluxes.
    """
    n2 = shape[1]
    pitch = n2 + 2 * GHOSTS
    gamma, along, across = box[GAMMA], box[ALONG], box[ACROSS]
    inverse_x, inverse_y = box[WIDTHS], box[WIDTHS + 1]
    wave, decay, wrong = 0.0, 0.0, 0.0
    for row in range(first, last):
        at = (row + GHOSTS) * pitch + GHOSTS
        for k in range(n2):
            c, one, line = np.uint64(at + k), np.uint64(1), np.uint64(pitch)
            density, pressure = q[0, c], q[3, c]
            wrong += 0.0 if (density > 0.0) & (pressure > 0.0) else 1.0
            sound = sqrt(gamma * pressure / density)
            wave = max(wave, (abs(q[1, c]) + sound) * inverse_x + (abs(q[2, c]) + sound) * inverse_y)
            x = (q[0, c - line] + 2.0 * density + q[0, c + line]) * inverse_x**2
            y = (q[0, c - one] + 2.0 * density + q[0, c + one]) * inverse_y**2
            decay = max(decay, max(along * x + across * y, across * x + along * y) / density)
    wave *= box[EULER]
    peaks[0], peaks[1], peaks[2] = wave, decay + ROOM * wave, wrong


@numba.njit(cache=True)
def _steps_for(rest, peaks, cfl, most_stages):  # type: ignore[no-untyped-def]
    """Equal steps into which a duration is cut: by the Courant number, and for so many stages by the decay."""
    wave, decay, wrong = peaks[:, 0].max(), peaks[:, 1].max(), peaks[:, 2].sum()
    reach = 0.5 * (most_stages**2 + most_stages - 2.0)
    return nan if wrong > 0.0 else max(1.0, np.ceil(max(rest * wave / cfl, rest * decay / reach)))


@numba.njit(cache=True)
def _weights(step, decay):  # type: ignore[no-untyped-def]
    """Weights of v, of the last two stages and of the rates L of the last one and of v, (stage, 5).

    SSPRK3 (Shu, Osher, J. Comput. Phys. 77 (1988) 439) where it is stable, else RKL2 (Meyer, Balsara, Aslam,
    J. Comput. Phys. 257 (2014) 594): second order, and stable for decay × step ≤ (s² + s − 2)/2; with an odd number s
    of stages it damps the fastest mode.
    """
    if decay * step <= 2.5:
        second, third = (0.75, 0.25, 0.0, 0.25 * step, 0.0), (1 / 3, 2 / 3, 0.0, 2 / 3 * step, 0.0)
        return np.array(((1.0, 0.0, 0.0, step, 0.0), second, third))
    stages = int(np.ceil(0.5 * (sqrt(9.0 + 8.0 * decay * step) - 1.0)))
    stages += 1 - stages % 2
    weights = np.zeros((stages, 5))
    unit = 4.0 * step / (stages**2 + stages - 2.0)
    before, last = 1.0 / 3.0, 1.0 / 3.0  # b of the stages j − 2 and j − 1
    weights[0, 0], weights[0, 3] = 1.0, last * unit
    for j in range(2, stages + 1):
        b = (j**2 + j - 2.0) / (2.0 * j * (j + 1.0))
        mu, nu = (2.0 * j - 1.0) / j * b / last, -(j - 1.0) / j * b / before
        weights[j - 1] = np.array((1.0 - mu - nu, mu, nu, mu * unit, -(1.0 - last) * mu * unit))
        before, last = last, b
    return weights


def _marching(shared: bool) -> Callable[..., None]:
    """One code for a sample whose rows are shared among the threads, and for one that a thread has to itself.

    That ``shared`` is a free variable also keeps Numba's caches of the two apart.
    """

    @numba.njit(parallel=shared, cache=True)
    def march(u, out, duration, shape, codes, box, cfl, most_stages):  # type: ignore[no-untyped-def]
        """A sample through its steps. A step to a state that is not physical is taken again without slopes."""
        n1, padded = shape[0], shape[0] + 2 * GHOSTS
        rows = BLOCK if shared else padded
        tasks = (padded + rows - 1) // rows
        v, y, older, rate = u.copy(), u.copy(), np.empty_like(u), np.empty_like(u)
        q, peaks = np.empty((4, padded * (shape[1] + 2 * GHOSTS))), np.zeros((tasks, 3))
        for task in numba.prange(tasks):
            _fill_primitive(v, q, task * rows, min((task + 1) * rows, padded), shape, codes, box[GAMMA])
        for task in numba.prange(tasks):
            _peaks(q, task * rows, min((task + 1) * rows, n1), shape, box, peaks[task])
        rest, steps = duration, _steps_for(duration, peaks, cfl, most_stages)
        while rest > 0.0 and steps <= MOST_STEPS:
            weights = _weights(rest / steps, peaks[:, 1].max())
            rest = rest - rest / steps if steps > 1.0 else 0.0
            for slopes in (1.0, 0.0):
                y[:] = v
                older[:] = v
                for stage in range(len(weights)):
                    for task in numba.prange(tasks):
                        _fill_primitive(y, q, task * rows, min((task + 1) * rows, padded), shape, codes, box[GAMMA])
                    for task in numba.prange(tasks):
                        first, last = task * rows, min((task + 1) * rows, n1)
                        _stage(q, v, y, older, rate, first, last, shape, box, weights[stage], slopes, stage == 0)
                    y, older = older, y
                for task in numba.prange(tasks):
                    _fill_primitive(y, q, task * rows, min((task + 1) * rows, padded), shape, codes, box[GAMMA])
                for task in numba.prange(tasks):
                    _peaks(q, task * rows, min((task + 1) * rows, n1), shape, box, peaks[task])
                steps = _steps_for(rest, peaks, cfl, most_stages)
                if steps <= MOST_STEPS:
                    break
            v, y = y, v
        out[:] = v if steps <= MOST_STEPS else np.full_like(v, nan)

    return march


_march_shared, _march_alone = _marching(True), _marching(False)


@numba.njit(cache=True, parallel=True)
def _march_samples(u, out, durations, shape, codes, boxes, cfl, most_stages):  # type: ignore[no-untyped-def]
    for sample in numba.prange(u.shape[0]):
        _march_alone(u[sample], out[sample], durations[sample], shape, codes, boxes[sample], cfl, most_stages)


def _march_rows(u, out, durations, shape, codes, boxes, cfl, most_stages):  # type: ignore[no-untyped-def]
    for sample in range(u.shape[0]):
        _march_shared(u[sample], out[sample], durations[sample], shape, codes, boxes[sample], cfl, most_stages)


@numba.njit(cache=True, parallel=True)
def _survey_samples(u, out, shape, codes, boxes):  # type: ignore[no-untyped-def]
    padded = shape[0] + 2 * GHOSTS
    for sample in numba.prange(u.shape[0]):
        q = np.empty((4, padded * (shape[1] + 2 * GHOSTS)))
        _fill_primitive(u[sample], q, 0, padded, shape, codes, boxes[sample, GAMMA])
        _peaks(q, 0, shape[0], shape, boxes[sample], out[sample])


@numba.njit(cache=True, parallel=True)
def _tendencies(u, out, shape, codes, boxes):  # type: ignore[no-untyped-def]
    """The rates that a starting stage keeps; its other results are thrown away."""
    padded = shape[0] + 2 * GHOSTS
    for sample in numba.prange(u.shape[0]):
        v, rate, nothing, peaks = u[sample].copy(), np.empty_like(u[sample]), np.zeros_like(u[sample]), np.empty(3)
        q = np.empty((4, padded * (shape[1] + 2 * GHOSTS)))
        _fill_primitive(v, q, 0, padded, shape, codes, boxes[sample, GAMMA])
        _peaks(q, 0, shape[0], shape, boxes[sample], peaks)
        _stage(q, v, v, nothing, rate, 0, shape[0], shape, boxes[sample], np.zeros(5), 1.0, True)
        out[sample] = rate if peaks[2] == 0.0 else np.full_like(rate, nan)


def boxed(u: Array) -> tuple[Array, tuple[int, int]]:
    """States as (batch, 4, cells) of float64 and the rows and columns of their box; a line is its only row."""
    if u.ndim == 4:
        shape = (u.shape[2], u.shape[3])
        return np.ascontiguousarray(u, dtype=np.float64).reshape(u.shape[0], 4, shape[0] * shape[1]), shape
    states = np.zeros((u.shape[0], 4, u.shape[2]))
    states[:, [0, 2, 3]] = u
    return states, (1, u.shape[2])


def unboxed(states: Array, like: Array) -> Array:
    """The inverse of ``boxed``, in the shape and type of a given state."""
    chosen = states if like.ndim == 4 else states[:, [0, 2, 3]]
    return chosen.reshape(like.shape).astype(like.dtype, copy=False)


def inverse_widths(spacing: Array) -> Array:
    """1/Δx of both axes, (batch, 2); zero across a line, where nothing changes."""
    inverse = np.zeros((spacing.shape[0], 2))
    inverse[:, 2 - spacing.shape[1] :] = 1.0 / spacing
    return inverse


def _codes(boundary: tuple[str, ...]) -> Array:
    return np.array([0] * (2 - len(boundary)) + [BOUNDARY_CODES[name] for name in boundary])


def finite_volumes(
    u: Array, duration: Array, fluid: Array, spacing: Array, boundary: tuple[str, ...], cfl: float, most_stages: int
) -> Array:
    """States (batch, channel, *grid) after a duration per sample; ``fluid`` is (batch, 4) as described above.

    A sample that is, or becomes, not physical (density or pressure not positive) is NaN.
    """
    states, shape = boxed(u)
    out = np.empty_like(states)
    boxes = np.hstack([fluid, inverse_widths(spacing)])
    sweep = states[:1].size
    by_rows = u.shape[0] < threads_for(sweep)
    march: Callable[..., None] = _march_rows if by_rows else _march_samples
    with sharing(sweep if by_rows else states.size):
        march(states, out, duration, shape, _codes(boundary), boxes, cfl, most_stages)
    return unboxed(out, u)


def tendencies(u: Array, fluid: Array, spacing: Array, boundary: tuple[str, ...]) -> Array:
    """du/dt of the semi-discrete scheme (batch, channel, *grid), NaN for a sample that is not physical."""
    states, shape = boxed(u)
    out = np.empty_like(states)
    with sharing(states.size):
        _tendencies(states, out, shape, _codes(boundary), np.hstack([fluid, inverse_widths(spacing)]))
    return unboxed(out, u)


def peak_rates(u: Array, fluid: Array, spacing: Array, boundary: tuple[str, ...]) -> Array:
    """Largest Σ (|v| + c)/Δx, bound of the fastest decay, and number of cells that are not physical, (batch, 3)."""
    states, shape = boxed(u)
    out = np.empty((u.shape[0], 3))
    with sharing(states.size):
        _survey_samples(states, out, shape, _codes(boundary), np.hstack([fluid, inverse_widths(spacing)]))
    return out
