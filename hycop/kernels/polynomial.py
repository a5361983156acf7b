"""Pointwise polynomial kinetics, u_c' = Σ_k a_k Π_j u_{f(k,j)}, by Taylor series."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]

ORDER = 16
"""Degree of the Taylor polynomial: with steps of e⁻² of the radius of convergence its error is e⁻³², rounding."""

NEGLIGIBLE = 2.0**-60
"""A short step ends its series where two terms in a row are below this fraction of the state."""

BLOCK = 64
"""Cells that share their steps, few enough that all of their series fit into the fastest cache. A block is always the
same cells of a sample, so that no sample depends on the others."""

MOST_STEPS = 20_000
"""A block that needs more steps runs into a pole: its values become NaN."""


class _Products(NamedTuple):
    """Products of channels, each of them another product (or channel) times a channel. Channels are numbered first,
    then products; terms that share a product compute it once."""

    left: Array
    right: Array
    of_term: Array
    """The number of each term's product; −1 for a constant."""


def _products(channels: int, factors: Array, degree: Array) -> _Products:
    known: dict[tuple[int, ...], int] = {(channel,): channel for channel in range(channels)} | {(): -1}
    left, right = [], []
    for row, count in zip(factors.tolist(), degree.tolist(), strict=True):
        ordered = sorted(row[:count])
        for length in range(2, count + 1):
            if tuple(ordered[:length]) not in known:
                left.append(known[tuple(ordered[: length - 1])])
                right.append(ordered[length - 1])
                known[tuple(ordered[:length])] = channels + len(left) - 1
    terms = [known[tuple(sorted(row[:count]))] for row, count in zip(factors.tolist(), degree.tolist(), strict=True)]
    return _Products(*(np.array(each, dtype=np.int64) for each in (left, right, terms)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _largest(series: Array, channels: int, n: int) -> float:
    out = 0.0
    for c in range(channels):
        for i in range(series.shape[2]):
            value = abs(series[c, n, i])
            if not value <= out:  # also if it is NaN
                out = value
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_product(a: Array, b: Array, out: Array) -> None:
    for i in range(out.size):  # rows, so that the loop is one of vector instructions
        out[i] += a[i] * b[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_scaled(a: Array, scale: float, out: Array) -> None:
    for i in range(out.size):
        out[i] += scale * a[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _scale_and_add(out: Array, scale: float, a: Array) -> None:
    for i in range(out.size):
        out[i] = out[i] * scale + a[i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _series(
    series: Array, channels: int, weights: Array, target: Array, left: Array, right: Array, of_term: Array, rest: float
) -> int:
    """Taylor coefficients series[c, n, cell] of the solution from series[c, 0, cell], and of the products, which stand
    behind the channels. Returns their degree: less than ``ORDER`` if that suffices for a step of ``rest``."""
    least = NEGLIGIBLE * _largest(series, channels, 0)
    power, small = 1.0, 0
    for n in range(ORDER):
        for p in range(left.size):
            out, a, b = series[channels + p], series[left[p]], series[right[p]]
            out[n] = 0.0
            for m in range(n + 1):
                _add_product(a[m], b[n - m], out[n])
        for c in range(channels):
            series[c, n + 1] = 0.0
        for k in range(weights.size):
            scale = weights[k] / (n + 1)
            if of_term[k] >= 0:
                _add_scaled(series[of_term[k], n], scale, series[target[k], n + 1])
            elif n == 0:
                series[target[k], 1] += scale
        power *= rest
        small = small + 1 if _largest(series, channels, n + 1) * power <= least else 0
        if small == 2:
            return n + 1
    return ORDER


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _step(series: Array, channels: int) -> float:
    """A step of e⁻² of the radius of convergence, estimated from the last two coefficients (Jorba & Zou 2005)."""
    size = _largest(series, channels, 0)
    radius = np.inf
    for n in (ORDER - 1, ORDER):
        last = _largest(series, channels, n)
        if last > 0.0:
            radius = min(radius, (max(size, 1e-300) / last) ** (1.0 / n))
    return radius * math.exp(-2.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _march(
    u: Array, duration: float, weights: Array, target: Array, left: Array, right: Array, of_term: Array, series: Array
) -> None:
    """A block (channel, cell) after a duration, in place."""
    channels, rest = u.shape[0], duration
    for _ in range(MOST_STEPS):
        series[:channels, 0] = u
        degree = _series(series, channels, weights, target, left, right, of_term, rest)
        h = rest if degree < ORDER else _step(series, channels)
        if not h > 0.0:
            break
        h = min(h, rest)
        for c in range(channels):
            u[c] = series[c, degree]
            for n in range(degree - 1, -1, -1):
                _scale_and_add(u[c], h, series[c, n])
        if h >= rest:
            return
        rest -= h
    u[:] = np.nan


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _advance(
    u: Array, duration: Array, weights: Array, target: Array, left: Array, right: Array, of_term: Array
) -> None:
    samples, channels, cells = u.shape
    blocks = (cells + BLOCK - 1) // BLOCK
    for task in numba.prange(samples * blocks):
        sample, first = task // blocks, (task % blocks) * BLOCK
        last = min(first + BLOCK, cells)
        if duration[sample] > 0.0:
            series = np.empty((channels + left.size, ORDER + 1, last - first))
            block = u[sample, :, first:last].copy()
            _march(block, duration[sample], weights[sample], target, left, right, of_term, series)
            u[sample, :, first:last] = block


def polynomial_kinetics(
    u: Array, duration: Array, weights: Array, target: Array, factors: Array, degree: Array
) -> Array:
    """The flow of u_c' = Σ_k weights[sample, k]·Π_j u[factors[k, j]], target[k] = c, to rounding.

    ``u`` is (batch, channel, *grid); ``factors`` (term, most factors) lists the channels of each product, of which the
    first ``degree[k]`` count.
    """
    out = np.array(u, dtype=np.float64, order="C").reshape(u.shape[0], u.shape[1], -1)
    products = _products(u.shape[1], factors, degree)
    with sharing(ORDER * ORDER * u.size):
        _advance(out, np.asarray(duration, dtype=np.float64), weights, target, *products)
    return out.reshape(u.shape).astype(u.dtype, copy=False)
