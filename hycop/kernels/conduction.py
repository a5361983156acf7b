"""Diffusion u_t = ∇·(D ∇u) with a diffusivity for each face, exact in time: Chebyshev's expansion of φ₁."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import scipy.fft

from hycop.kernels.sides import DIRICHLET, NEUMANN, PERIODIC, Ends, add, in_three_axes, lines_of, neighbours
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]


def conductances(diffusivity: Array, width: Array, axis: int, low: int, high: int) -> Array:
    """Conductances (batch, …, n + 1, …) of the faces along an axis in units of a rate: the harmonic mean of D on both
    sides over Δx², which is exact for layers.

    At an end with a value the wall is half a cell away; at one with a slope D is continued to the wall.
    """
    periodic = low == PERIODIC
    below, above = neighbours(diffusivity, axis, periodic)
    mean = 0.5 * (below + above)
    faces = np.where(mean > 0.0, below * above / np.where(mean > 0.0, mean, 1.0), 0.0)
    if not periodic:
        ends, cells = np.moveaxis(faces, 1 + axis, -1), np.moveaxis(diffusivity, 1 + axis, -1)
        straight = np.moveaxis(mean, 1 + axis, -1)
        for place, code in ((0, low), (-1, high)):
            at_wall = np.clip(straight[..., place], 0.0, 2.0 * cells[..., place])
            ends[..., place] = 2.0 * cells[..., place] if code == DIRICHLET else at_wall if code == NEUMANN else 0.0
    return np.asarray(faces / (width**2).reshape((-1,) + (1,) * (faces.ndim - 1)))


def stiffest(faces: Sequence[Array]) -> Array:
    """A bound (batch,) of the fastest rate of decay: twice the largest sum of the conductances around a cell."""
    total: Array | float = 0.0
    for axis, each in enumerate(faces):
        moved = np.moveaxis(each, 1 + axis, -1)
        total = total + np.moveaxis(moved[..., :-1] + moved[..., 1:], -1, 1 + axis)
    cells = np.asarray(total)
    return np.asarray(2.0 * cells.reshape(cells.shape[0], -1).max(axis=1, initial=0.0))


REACH = 1000.0
"""Longest sub-step in units of 1/fastest rate: beyond it the differences of large numbers cost digits."""

_NODES = 512


def chebyshev(length: Array, tolerance: float) -> tuple[Array, Array]:
    """Coefficients (batch, term) of φ₁(z) = (e^z − 1)/z on −length ≤ z ≤ 0 in Chebyshev polynomials, and how many of
    them (batch,) leave out no more than ``tolerance`` of the state."""
    x = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    z = 0.5 * length[:, None] * (x - 1.0)
    small = np.abs(z) < 1e-5
    values = np.where(small, 1.0 + 0.5 * z, np.expm1(z) / np.where(small, 1.0, z))
    found = scipy.fft.dct(values, axis=1) / _NODES
    found[:, 0] *= 0.5
    left = np.cumsum(np.abs(found[:, ::-1]), axis=1)[:, ::-1]
    needed = (left > tolerance / np.maximum(1.0, length)[:, None]).sum(axis=1)
    return found, np.maximum(1, needed)


@numba.njit(cache=True, nogil=True)
def _add_fluxes(v, k, out, codes, values, width):  # type: ignore[no-untyped-def]
    """out += what enters − what leaves, along the middle axis of v (before, n, after)."""
    n = v.shape[1]
    for o in range(v.shape[0]):
        for i in range(1, n):
            for j in range(v.shape[2]):
                flux = k[o, i, j] * (v[o, i, j] - v[o, i - 1, j])
                out[o, i - 1, j] += flux
                out[o, i, j] -= flux
        if codes[0] == PERIODIC:
            for j in range(v.shape[2]):
                flux = k[o, 0, j] * (v[o, 0, j] - v[o, n - 1, j])
                out[o, n - 1, j] += flux
                out[o, 0, j] -= flux
            continue
        for side in range(2):
            face, cell = (0, 0) if side == 0 else (n, n - 1)
            for j in range(v.shape[2]):
                if codes[side] == DIRICHLET:
                    out[o, cell, j] += k[o, face, j] * (values[side] - v[o, cell, j])
                elif codes[side] == NEUMANN:
                    out[o, cell, j] += k[o, face, j] * values[side] * width


@numba.njit(cache=True, nogil=True)
def _rate(v, k1, k2, k3, out, codes, values, widths):  # type: ignore[no-untyped-def]
    n1, n2, n3 = v.shape
    out[:] = 0.0
    shape = (1, n1, n2 * n3)
    if k1.shape[1]:
        _add_fluxes(v.reshape(shape), k1, out.reshape(shape), codes[0], values[0], widths[0])
    if k2.shape[1]:
        _add_fluxes(v, k2, out, codes[1], values[1], widths[1])
    shape = (n1 * n2, n3, 1)
    _add_fluxes(v.reshape(shape), k3, out.reshape(shape), codes[2], values[2], widths[2])


@numba.njit(cache=True, nogil=True)
def _recur(before, now, rate, scale, first):  # type: ignore[no-untyped-def]
    """before ← 2X now − before, or X now at first."""
    for i in range(now.size):
        moved = now[i] + scale * rate[i]
        before[i] = moved if first else 2.0 * moved - before[i]


@numba.njit(cache=True, nogil=True)
def _advance(first, last, u, out, k1, k2, k3, tau, steps, fastest, terms, needed, codes, values, widths):  # type: ignore[no-untyped-def]
    """Samples first … last − 1 through all their sub-steps: u + τ φ₁(τA)(A u + b), the exact solution of u' = A u + b.
    The polynomials T_k of X = 1 + 2A/fastest, whose eigenvalues lie in [−1, 1], follow from T_{k+1} = 2X T_k − T_{k−1}.
    """
    shape, none = u.shape[2:], np.zeros((3, 2))
    cells = shape[0] * shape[1] * shape[2]
    total, rate = np.empty(cells), np.empty(shape)
    now, before = np.empty(shape), np.empty(shape)
    for sample in range(first, last):
        faces, scale = (k1[sample], k2[sample], k3[sample]), 2.0 / max(fastest[sample], 1e-300)
        width = widths[sample]
        for channel in range(u.shape[1]):
            held, v = values[:, :, channel].copy(), u[sample, channel].copy()
            for _ in range(steps[sample]):
                _rate(v, faces[0], faces[1], faces[2], now, codes, held, width)
                total[:] = 0.0
                add(total, terms[sample, 0], now.reshape(cells))
                for term in range(1, needed[sample]):
                    _rate(now, faces[0], faces[1], faces[2], rate, codes, none, width)
                    _recur(before.reshape(cells), now.reshape(cells), rate.reshape(cells), scale, term == 1)
                    now, before = before, now
                    add(total, terms[sample, term], now.reshape(cells))
                add(v.reshape(cells), tau[sample], total)
            out[sample, channel] = v


@numba.njit(cache=True, nogil=True)
def _rates(first, last, u, out, k1, k2, k3, codes, values, widths):  # type: ignore[no-untyped-def]
    for sample in range(first, last):
        for channel in range(u.shape[1]):
            held = values[:, :, channel].copy()
            faces = k1[sample], k2[sample], k3[sample]
            _rate(u[sample, channel], faces[0], faces[1], faces[2], out[sample, channel], codes, held, widths[sample])


def conduct(
    u: Array, faces: Sequence[Array], tau: Array, steps: Array, series: tuple[Array, Array], ends: Ends, widths: Array
) -> Array:
    """``steps`` sub-steps of length ``tau`` per sample; ``faces`` are the conductances of each axis, ``series`` the
    terms of ``chebyshev`` for a sub-step."""
    state, out = in_three_axes(u), np.empty(in_three_axes(u).shape)
    k1, k2, k3 = lines_of(faces)
    ready = (k1, k2, k3, tau, steps, stiffest(faces), *series, *ends, widths)
    updates = float(state[:1].size * (steps * series[1]).sum())
    in_parts(lambda first, last: _advance(first, last, state, out, *ready), u.shape[0], updates)
    return out.reshape(u.shape).astype(u.dtype, copy=False)


def conduct_rates(u: Array, faces: Sequence[Array], ends: Ends, widths: Array) -> Array:
    """du/dt of the semi-discrete scheme."""
    state, out = in_three_axes(u), np.empty(in_three_axes(u).shape)
    k1, k2, k3 = lines_of(faces)
    in_parts(
        lambda first, last: _rates(first, last, state, out, k1, k2, k3, *ends, widths), u.shape[0], float(state.size)
    )
    return out.reshape(u.shape).astype(u.dtype, copy=False)
