"""Diffusion of velocities weighted by a density, ρ v_t = Σ_i ∂_i(ν_i ρ ∂_i v), by transforms with constant ν.

With s = √ρ the product w = s·v obeys w_t = L w − (L s/s)·w, L = Σ_i ν_i ∂_ii. Over a duration τ, with K = e^{τL}, that
is v ↦ P v = K(h v)/K h for a weight h close to s: averages of v, which leave a constant velocity alone. If h·K h = ρ,
then P is symmetric with respect to ρ and keeps the momentum Σ ρ v too, and agrees with Strang's splitting of potential
and diffusion to second order; that equation is solved by a few steps of a fixed-point iteration from h = s.
"""

from __future__ import annotations

from math import nan, prod, sqrt
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.spectral import multiply_modes
from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _begin(u, root, v):  # type: ignore[no-untyped-def]
    """√ρ and the velocities of u = (density, momenta, energy); NaN in a sample that is not physical."""
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        wrong = 0
        for k in range(cells):
            density, kinetic = u[sample, 0, k], 0.0
            for c in range(components):
                momentum = u[sample, 1 + c, k]
                root[sample, c, k], v[sample, c, k] = sqrt(density), momentum / density
                kinetic += 0.5 * momentum * v[sample, c, k]
            wrong += 0 if (density > 0.0) & (u[sample, components + 1, k] > kinetic) else 1
        if wrong:
            root[sample] = nan


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _improve(density, h, spread):  # type: ignore[no-untyped-def]
    """h ← √(h·ρ/K h): smooth errors vanish at once, so that one step is enough for second order; rough ones halve."""
    samples, components, cells = h.shape
    for sample in numba.prange(samples):
        for c in range(components):
            for k in range(cells):
                h[sample, c, k] = sqrt(h[sample, c, k] * density[sample, k] / spread[sample, c, 0, k])


@numba.njit(cache=True, parallel=True)
def _weigh(h, v, fields):  # type: ignore[no-untyped-def]
    """The fields h, h·v and h·v²/2."""
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        for c in range(components):
            for k in range(cells):
                value = v[sample, c, k]
                weighted = h[sample, c, k] * value
                fields[sample, c, 0, k] = h[sample, c, k]
                fields[sample, c, 1, k] = weighted
                fields[sample, c, 2, k] = 0.5 * weighted * value


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _lose(h, spread, v, heat, weighted):  # type: ignore[no-untyped-def]
    """v ← P v, the kinetic energy P(v²/2) − (P v)²/2 ≥ 0 that it loses, and h times that."""
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        for c in range(components):
            for k in range(cells):
                weight = spread[sample, c, 0, k]
                value = spread[sample, c, 1, k] / weight
                v[sample, c, k] = value
                heat[sample, c, k] = spread[sample, c, 2, k] / weight - 0.5 * value * value
                weighted[sample, c, 0, k] = h[sample, c, k] * heat[sample, c, k]


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _finish(u, v, heat, spread_heat, spread, out):  # type: ignore[no-untyped-def]
    """The state with new velocities, heated by the lost energy H; NaN in a sample that is not physical.

    H was spread as long as it would have been had it been lost at the start; 3/2 H − 1/2 P H takes half of that back.
    """
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        wrong = 0
        for k in range(cells):
            density, before, after, gain = u[sample, 0, k], 0.0, 0.0, 0.0
            out[sample, 0, k] = density
            for c in range(components):
                momentum = u[sample, 1 + c, k]
                before += 0.5 * momentum * momentum / density
                out[sample, 1 + c, k] = density * v[sample, c, k]
                after += 0.5 * density * v[sample, c, k] * v[sample, c, k]
                diffused = spread_heat[sample, c, 0, k] / spread[sample, c, 0, k]
                gain += density * (1.5 * heat[sample, c, k] - 0.5 * diffused)
            energy = u[sample, components + 1, k] - before + gain
            out[sample, components + 1, k] = energy + after
            wrong += 0 if energy > 0.0 else 1
        if wrong:
            out[sample] = nan


def diffuse_velocities(u: Array, multipliers: tuple[Array, ...], iterations: int) -> Array:
    """States (batch, channel, *grid) after K of each velocity component; the energy that the flow loses heats it.

    ``multipliers`` hold K for each axis, (batch × components, modes). A sample that is, or becomes, not physical
    (density or pressure not positive) is NaN.
    """
    batch, components, grid = u.shape[0], u.shape[1] - 2, u.shape[2:]
    cells = prod(grid)
    states = np.ascontiguousarray(u, dtype=np.float64).reshape(batch, components + 2, cells)

    def spread(fields: Array) -> Array:
        lines = fields.reshape(batch * components, fields.size // max(1, batch * components * cells), *grid)
        modes = multiply_modes(lines, ("fourier",) * len(grid), multipliers)
        return modes.reshape(batch, components, lines.shape[1], cells)

    h, v, heat = (np.empty((batch, components, cells)) for _ in range(3))
    fields, weighted = (np.empty((batch, components, count, cells)) for count in (3, 1))
    out = np.empty_like(states)
    with sharing(states.size):
        _begin(states, h, v)
        density = np.ascontiguousarray(states[:, 0])
        for _ in range(iterations):
            _improve(density, h, spread(h))
        _weigh(h, v, fields)
        new = spread(fields)
        _lose(h, new, v, heat, weighted)
        _finish(states, v, heat, spread(weighted), new, out)
    return out.reshape(u.shape).astype(u.dtype, copy=False)
