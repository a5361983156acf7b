"""Pointwise polynomial kinetics, u_c' = Σ_k a_k Π_j u_{f(k,j)}, by Taylor series."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]

ORDER = 16
"""Degree of the Taylor polynomial: with steps of e⁻² of the radius of convergence its error is e⁻³², rounding."""

MOST_STEPS = 20_000
"""A sample that needs more steps runs into a pole: its values become NaN."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _series(series: Array, products: Array, weights: Array, target: Array, factors: Array, degree: Array) -> None:
    """Taylor coefficients series[c, n, cell] of the solution from series[c, 0, cell].

    products[k, j, n, cell] are those of the product of the first j + 2 factors of term k.
    """
    channels, _, cells = series.shape
    for n in range(ORDER):
        for c in range(channels):
            for i in range(cells):
                series[c, n + 1, i] = 0.0
        for k in range(weights.size):
            scale = weights[k] / (n + 1)
            c, d = target[k], degree[k]
            if d == 0:
                if n == 0:
                    for i in range(cells):
                        series[c, 1, i] += scale
                continue
            if d == 1:
                source = factors[k, 0]
                for i in range(cells):
                    series[c, n + 1, i] += scale * series[source, n, i]
                continue
            for j in range(d - 1):
                last = factors[k, j + 1]
                for i in range(cells):
                    products[k, j, n, i] = 0.0
                for m in range(n + 1):
                    if j == 0:
                        first = factors[k, 0]
                        for i in range(cells):
                            products[k, j, n, i] += series[first, m, i] * series[last, n - m, i]
                    else:
                        for i in range(cells):
                            products[k, j, n, i] += products[k, j - 1, m, i] * series[last, n - m, i]
            for i in range(cells):
                series[c, n + 1, i] += scale * products[k, d - 2, n, i]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _largest(series: Array, n: int) -> float:
    out = 0.0
    for c in range(series.shape[0]):
        for i in range(series.shape[2]):
            value = abs(series[c, n, i])
            if not value <= out:  # also if it is NaN
                out = value
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _step(series: Array) -> float:
    """A step of e⁻² of the radius of convergence, estimated from the last two coefficients (Jorba & Zou 2005)."""
    size = _largest(series, 0)
    radius = np.inf
    for n in (ORDER - 1, ORDER):
        last = _largest(series, n)
        if last > 0.0:
            radius = min(radius, (max(size, 1e-300) / last) ** (1.0 / n))
    return radius * math.exp(-2.0)


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _advance(u: Array, duration: Array, weights: Array, target: Array, factors: Array, degree: Array) -> None:
    samples, channels, cells = u.shape
    terms, longest = factors.shape
    for sample in numba.prange(samples):
        series = np.zeros((channels, ORDER + 1, cells))
        products = np.zeros((terms, max(1, longest - 1), ORDER, cells))
        rest = duration[sample]
        steps = 0
        while rest > 0.0:
            series[:, 0] = u[sample]
            _series(series, products, weights[sample], target, factors, degree)
            h = _step(series)
            steps += 1
            if not h > 0.0 or steps > MOST_STEPS:
                u[sample] = np.nan
                break
            h = min(h, rest)
            for c in range(channels):
                for i in range(cells):
                    value = series[c, ORDER, i]
                    for n in range(ORDER - 1, -1, -1):
                        value = value * h + series[c, n, i]
                    u[sample, c, i] = value
            rest = rest - h if h < rest else 0.0


def polynomial_kinetics(
    u: Array, duration: Array, weights: Array, target: Array, factors: Array, degree: Array
) -> Array:
    """The flow of u_c' = Σ_k weights[sample, k]·Π_j u[factors[k, j]], target[k] = c, to rounding.

    ``u`` is (batch, channel, *grid); ``factors`` (term, most factors) lists the channels of each product, of which the
    first ``degree[k]`` count.
    """
    out = np.array(u, dtype=np.float64, order="C").reshape(u.shape[0], u.shape[1], -1)
    with sharing(ORDER * ORDER * u.size):
        _advance(out, np.asarray(duration, dtype=np.float64), weights, target, factors, degree)
    return out.reshape(u.shape).astype(u.dtype, copy=False)
