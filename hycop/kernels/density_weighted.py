"""Diffusion of velocities weighted by a density, ρ v_t = Σ_i ∂_i(ν_i ρ ∂_i v), by transforms with constant ν.

With s = √ρ the product w = s·v obeys w_t = L w − (L s/s)·w, L = Σ_i ν_i ∂_ii. Over a duration τ, with K = e^{τL}, that
is v ↦ P v = K(h v)/K h for a weight h close to s: averages of v, which leave a constant velocity alone. If h·K h = ρ,
then P is symmetric with respect to ρ and keeps the momentum Σ ρ v too, and agrees with Strang's splitting of potential
and diffusion to second order; that equation is solved by a few steps of a fixed-point iteration from h = s.

The kinetic energy that P takes, H = P(v²/2) − (P v)²/2 ≥ 0 per mass, is heat; but in H it has been spread for the rest
of the duration as if it were velocity. For a single Fourier mode that is P^½ of the heat, so P^−½ H heats the flow.

A duration is taken in a few equal steps. The density does not change, so they share h, K h and the gathering of heat,
and a further step takes two transform pairs per velocity where the first takes seven.
"""

from __future__ import annotations

from math import nan, prod, sqrt
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.spectral import multiply_modes, weigh_modes
from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]

CACHED = 2**17
"""Values of the state that are worked on at once, with some four times as many beside them."""


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
def _improve(root, h, spread):  # type: ignore[no-untyped-def]
    """h ← √(h·ρ/K h): smooth errors vanish at once, so that one step is enough for second order; rough ones halve."""
    samples, components, cells = h.shape
    for sample in numba.prange(samples):
        for c in range(components):
            for k in range(cells):
                h[sample, c, k] = root[sample, c, k] * sqrt(h[sample, c, k] / spread[sample, c, 0, k])


@numba.njit(cache=True, parallel=True)
def _weigh(h, v, fields):  # type: ignore[no-untyped-def]
    """The fields h·v and h·v²/2."""
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        for c in range(components):
            for k in range(cells):
                weighted = h[sample, c, k] * v[sample, c, k]
                fields[sample, c, 0, k] = weighted
                fields[sample, c, 1, k] = 0.5 * weighted * v[sample, c, k]


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _slow_down(weight, spread, root, v, fields):  # type: ignore[no-untyped-def]
    """v ← P v, and √ρ·H is added to the second field; ``weight`` is K h."""
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        for c in range(components):
            for k in range(cells):
                value = spread[sample, c, 0, k] / weight[sample, c, 0, k]
                lost = spread[sample, c, 1, k] / weight[sample, c, 0, k] - 0.5 * value * value
                v[sample, c, k] = value
                fields[sample, c, 1, k] += root[sample, c, k] * lost


@numba.njit(cache=True, parallel=True, error_model="numpy")
def _heat(u, v, gathered, out):  # type: ignore[no-untyped-def]
    """The state with new velocities and the heat from the gathered fields; NaN in a sample that is not physical."""
    samples, components, cells = v.shape
    for sample in numba.prange(samples):
        wrong = 0
        for k in range(cells):
            density, internal, kinetic = u[sample, 0, k], u[sample, components + 1, k], 0.0
            for c in range(components):
                momentum, value = u[sample, 1 + c, k], v[sample, c, k]
                internal += density * gathered[sample, c, 1, k] / gathered[sample, c, 0, k]
                internal -= 0.5 * momentum * momentum / density
                kinetic += 0.5 * density * value * value
                out[sample, 1 + c, k] = density * value
            out[sample, 0, k], out[sample, components + 1, k] = density, internal + kinetic
            wrong += 0 if internal > 0.0 else 1
        if wrong:
            out[sample] = nan


def gathering(exponents: Array) -> Array:
    """e^{x/2} to third order in 1 − e^{−x}, which is at most 2.2: what undoes half of e^{−x} as far as it is wise."""
    rest = -np.expm1(-exponents)
    return 1.0 + rest * (1 / 2 + rest * (3 / 8 + rest * 5 / 16))


def diffuse_velocities(u: Array, exponents: tuple[Array, ...], iterations: int, steps: int) -> Array:
    """States (batch, channel, *grid) whose velocities have diffused, and which the lost kinetic energy has heated.

    ``exponents`` are ν_i k_i² τ for each axis and one of the steps, (batch × components, modes). A sample that is, or
    becomes, not physical (density or pressure not positive) is NaN. Few samples at a time, so that they stay in the
    cache from one transform to the next.
    """
    components, some = u.shape[1] - 2, max(numba.get_num_threads(), CACHED // max(u[:1].size, 1))
    parts = [
        _diffused(
            u[first : first + some],
            tuple(x[components * first : components * (first + some)] for x in exponents),
            iterations,
            steps,
        )
        for first in range(0, u.shape[0], some)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty_like(u)


def _diffused(u: Array, exponents: tuple[Array, ...], iterations: int, steps: int) -> Array:
    batch, components, grid = u.shape[0], u.shape[1] - 2, u.shape[2:]
    cells, transforms = prod(grid), ("fourier",) * len(grid)
    states = np.ascontiguousarray(u, dtype=np.float64).reshape(batch, components + 2, cells)
    spreading, gathers = tuple(np.exp(-x) for x in exponents), tuple(gathering(x) for x in exponents)

    def multiplied(fields: Array, multipliers: tuple[Array, ...]) -> Array:
        lines = fields.reshape(batch * components, fields.shape[2], *grid)
        return multiply_modes(lines, transforms, multipliers).reshape(fields.shape)

    root, v = np.empty((batch, components, cells)), np.empty((batch, components, cells))
    weighted, lost = np.empty((batch, components, 2, cells)), np.zeros((batch, components, 2, cells))
    out = np.empty_like(states)
    with sharing(states.size):
        _begin(states, root, v)
        h = root.copy()
        for _ in range(iterations):
            _improve(root, h, multiplied(h[:, :, None], spreading))
        weight = multiplied(h[:, :, None], spreading)
        lost[:, :, 0] = root
        for _ in range(steps):
            _weigh(h, v, weighted)
            _slow_down(weight, multiplied(weighted, spreading), root, v, lost)
        _heat(states, v, multiplied(lost, gathers), out)
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def tendencies(u: Array, decays: tuple[Array, ...]) -> Array:
    """du/dt of the same process, (batch, channel, *grid), NaN for a sample that is not physical.

    ρ v_t = s·L(s v) − s v·L s and E_t = Σ_components s·L(s v²/2) − (s v²/2)·L s: the derivatives of P v and P(v²/2) at
    zero duration. ``decays`` are ν_i k_i² for each axis, (batch × components, modes).
    """
    batch, components, grid = u.shape[0], u.shape[1] - 2, u.shape[2:]
    states = np.ascontiguousarray(u, dtype=np.float64).reshape(batch, components + 2, -1)
    root, v = np.empty((batch, components, states.shape[2])), np.empty((batch, components, states.shape[2]))
    with sharing(states.size):
        _begin(states, root, v)
    fields = np.stack([root, root * v, 0.5 * root * v * v], axis=2)
    lines = fields.reshape(batch * components, 3, *grid)
    spread = weigh_modes(lines, ("fourier",) * len(grid), tuple(-decay for decay in decays)).reshape(fields.shape)
    change = root[:, :, None] * spread[:, :, 1:] - fields[:, :, 1:] * spread[:, :, :1]
    out = np.zeros_like(states)
    out[:, 1:-1], out[:, -1] = change[:, :, 0], change[:, :, 1].sum(axis=1)
    out[np.isnan(root).any(axis=(1, 2))] = nan
    return out.reshape(u.shape).astype(u.dtype, copy=False)
