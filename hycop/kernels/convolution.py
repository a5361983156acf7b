"""Small periodic boxes: a process that is diagonal in Fourier space is a convolution along each axis, and there two
products with small circulant matrices cost less than two transforms."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.threads import sharing

Array = npt.NDArray[Any]

LARGEST = 2**17
"""Multiplications in one product at most. BLAS then works in one thread, in an order that depends on nothing else; from
twice as many on it may use several, and beyond that transforms are faster anyway."""

BLOCK = 16
"""Samples per task."""


def convolves(shape: tuple[int, ...], transforms: tuple[str, ...]) -> bool:
    """Whether a state (batch, channel, *grid) is small enough, in one or two periodic axes."""
    if len(transforms) > 2 or set(transforms) != {"fourier"}:
        return False
    rows, columns = shape[-2:]
    return rows * columns * max(shape[2:]) <= LARGEST


@lru_cache(maxsize=64)
def _waves(n: int) -> tuple[Array, Array]:
    """(2 −δ)/n·cos and sin of 2πkd/n for modes k = 0 … n/2, (mode, distance): half of an inverse transform."""
    modes = np.arange(n // 2 + 1)[:, None]
    angle = 2.0 * np.pi * (modes * np.arange(n) % n) / n
    weight = np.where((modes == 0) | (2 * modes == n), 1.0, 2.0) / n
    return weight * np.cos(angle), weight * np.sin(angle)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _circulant(rates: Array, durations: Array, cosines: Array, sines: Array, kernel: Array, matrix: Array) -> None:
    """matrix[i, j] = kernel[j − i] for the kernel of exp(Σ_op durations[op]·rates[op, mode])."""
    n = matrix.shape[0]
    kernel[:n] = 0.0
    total = 0.0
    for k in range(cosines.shape[0]):
        decay, turn = 0.0, 0.0
        for op in range(durations.size):
            if durations[op] != 0.0:  # a rate may be infinite
                decay += rates[op, k].real * durations[op]
                turn += rates[op, k].imag * durations[op]
        size = math.exp(decay)
        a, b = size * math.cos(turn), size * math.sin(turn)
        if k == 0:
            total = a
        for d in range(n):
            kernel[d] += a * cosines[k, d] - b * sines[k, d]
    for d in range(n):
        total -= kernel[d]
    kernel[0] += total  # what rounding took from the sum, so that nothing is lost over many steps
    kernel[n:] = kernel[:n]
    for i in range(n):
        for j in range(n):
            matrix[i, j] = kernel[n - i + j]


@numba.njit(parallel=True, cache=True, error_model="numpy")
def _convolve(
    u: Array,
    out: Array,
    durations: Array,
    rates: Array,
    waves: tuple[Array, Array],
    first_rates: Array,
    first_waves: tuple[Array, Array],
) -> None:
    """Along the last axis of u (sample, channel, row, column), and first along its rows if they have rates."""
    samples, channels, n, m = u.shape
    for task in numba.prange((samples + BLOCK - 1) // BLOCK):
        rows, columns = np.empty((n, n), u.dtype), np.empty((m, m), u.dtype)
        kernel, half = np.empty(2 * max(n, m)), np.empty((n, m), u.dtype)
        for sample in range(task * BLOCK, min(samples, (task + 1) * BLOCK)):
            _circulant(rates[sample], durations[sample], waves[0], waves[1], kernel[: 2 * m], columns)
            if first_rates.shape[0]:
                _circulant(
                    first_rates[sample], durations[sample], first_waves[0], first_waves[1], kernel[: 2 * n], rows
                )
            for channel in range(channels):
                if first_rates.shape[0]:
                    np.dot(rows, u[sample, channel], half)
                    np.dot(half, columns, out[sample, channel])
                else:
                    np.dot(u[sample, channel], columns, out[sample, channel])


def convolve(u: Array, rates: tuple[Array, ...], durations: Array, *, overwrite: bool = False) -> Array:
    """exp(Σ_op durations[sample, op]·rates[axis][sample, op, mode]) along every axis of u (batch, channel, *grid)."""
    if overwrite and not u.flags.c_contiguous:
        raise ValueError("only a contiguous state can be overwritten")
    # one axis: the channels are the rows of a single matrix
    shape = (u.shape[0], 1, *u.shape[1:]) if len(rates) == 1 else u.shape
    states = np.ascontiguousarray(u).reshape(shape)
    # two axes go through a matrix in between, so the result may take the place of the state
    out = states if overwrite and len(rates) == 2 else np.empty_like(states)
    cosines, sines = _waves(shape[2])
    *first, last = (np.ascontiguousarray(rate, dtype=np.complex128) for rate in rates)
    none = np.empty((0, 1, 1), dtype=np.complex128)
    with sharing(16 * u.size):
        _convolve(
            states,
            out,
            np.ascontiguousarray(durations, dtype=np.float64),
            last,
            _waves(shape[3]),
            first[0] if first else none,
            (cosines, -sines),  # the other way round, as the matrix of the rows multiplies from the left
        )
    return u if out is states else out.reshape(u.shape)
