"""Small periodic boxes: a process that is diagonal in Fourier space is a convolution along each axis, and there two
products with small circulant matrices cost less than two transforms.

A circulant of even size n falls into two matrices of half the size: sums x[j] + x[j + n/2] see the even modes alone,
differences the odd ones. That halves the multiplications.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LARGEST = 2**17
"""Multiplications in one product at most. BLAS then works in one thread, in an order that depends on nothing else; from
twice as many on it may use several, and beyond that transforms are faster anyway."""

FADED = -40.0
"""Exponent, beside the largest one, of a mode that has faded to less than what rounding adds in any case."""


def convolves(shape: tuple[int, ...], transforms: tuple[str, ...]) -> bool:
    """Whether a state (batch, channel, *grid) is small enough, in one or two periodic axes."""
    if len(transforms) > 2 or set(transforms) != {"fourier"}:
        return False
    rows, columns = shape[-2:]
    return rows * columns * max(shape[2:]) <= LARGEST


@lru_cache(maxsize=64)
def waves(n: int) -> tuple[Array, Array]:
    """(2 − δ)/n·cos and sin of 2πkd/n for modes k = 0 … n/2, (mode, distance): half of an inverse transform."""
    modes = np.arange(n // 2 + 1)[:, None]
    angle = 2.0 * np.pi * (modes * np.arange(n) % n) / n
    weight = np.where((modes == 0) | (2 * modes == n), 1.0, 2.0) / n
    return weight * np.cos(angle), weight * np.sin(angle)


@lru_cache(maxsize=64)
def reversed_waves(n: int) -> tuple[Array, Array]:
    """``waves`` the other way round: a matrix of the rows multiplies from the left."""
    cosines, sines = waves(n)
    return cosines, -sines


@numba.njit(cache=True, nogil=True, error_model="numpy")
def parts_of(n: int) -> int:
    """Into how many matrices a circulant of size n falls."""
    return 1 if n % 2 else 2


@numba.njit(cache=True, nogil=True, error_model="numpy")
def circulants(rates: Array, durations: Array, cosines: Array, sines: Array, kernel: Array, matrices: Array) -> None:
    """The matrices (part, n/parts, n/parts) of exp(Σ_op durations[op]·rates[op, mode]); kernel[part, n/parts + d] is
    what a value adds to the one d cells on."""
    parts, half = matrices.shape[0], matrices.shape[1]
    for part in range(parts):
        for d in range(2 * half):
            kernel[part, d] = 0.0
    total, largest = 0.0, -math.inf
    for k in range(cosines.shape[0]):
        decay = 0.0
        for op in range(durations.size):
            if durations[op] != 0.0:
                decay += rates[op, k].real * durations[op]
        largest = max(largest, decay)
    for k in range(cosines.shape[0]):
        decay, turn = 0.0, 0.0
        for op in range(durations.size):
            if durations[op] != 0.0:  # a rate may be infinite
                decay += rates[op, k].real * durations[op]
                turn += rates[op, k].imag * durations[op]
        if decay < largest + FADED:
            continue
        size = math.exp(decay)
        a, b = size * math.cos(turn), size * math.sin(turn)
        if k == 0:
            total = a / parts
        part = k % parts
        for d in range(half):
            kernel[part, half + d] += a * cosines[k, d] - b * sines[k, d]
    # what rounding took from the sum goes to the smallest value, which takes it best, so that many steps lose nothing
    least = half
    for d in range(half):
        kernel[0, half + d] = matrices.dtype.type(kernel[0, half + d])
        total -= kernel[0, half + d]
        if abs(kernel[0, half + d]) < abs(kernel[0, least]):
            least = half + d
    kernel[0, least] += total
    for part in range(parts):
        sign = -1.0 if part else 1.0  # odd modes change theirs over half the box
        for d in range(half):
            kernel[part, d] = sign * kernel[part, half + d]
        for i in range(half):
            for j in range(half):
                matrices[part, i, j] = kernel[part, half - i + j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def butterfly(blocks: Array) -> None:
    """Sums and differences of blocks (part, value), of one axis or of two, of which the first is the slower part."""
    if blocks.shape[0] == 4:
        for i in range(blocks.shape[1]):
            a, b, c, d = blocks[0, i], blocks[1, i], blocks[2, i], blocks[3, i]
            s, t, v, w = a + b, a - b, c + d, c - d
            blocks[0, i], blocks[1, i], blocks[2, i], blocks[3, i] = s + v, t + w, s - v, t - w
    elif blocks.shape[0] == 2:
        for i in range(blocks.shape[1]):
            a, b = blocks[0, i], blocks[1, i]
            blocks[0, i], blocks[1, i] = a + b, a - b


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply(blocks: Array, left: Array, right: Array, scratch: Array) -> None:
    """blocks[j, i] ← left[i]·blocks[j, i]·right[j] between two butterflies: the convolution of a state whose parts are
    the blocks (column part, row part, row, column). Without matrices on the left, along the last axis alone."""
    q, p, n, m = blocks.shape
    flat, tall, tall_scratch = blocks.reshape(q * p, n * m), blocks.reshape(q, p * n, m), scratch.reshape(p * n, m)
    butterfly(flat)
    for j in range(q):
        if left.shape[0]:
            for i in range(p):
                np.dot(left[i], blocks[j, i], scratch[i])
        else:
            for i in range(p * n):
                for column in range(m):
                    tall_scratch[i, column] = tall[j, i, column]
        np.dot(tall_scratch, right[j], tall[j])
    butterfly(flat)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def into_blocks(u: Array, blocks: Array) -> None:
    """A state (row, column) as its parts (column part, row part, row, column)."""
    q, p, n, m = blocks.shape
    for j in range(q):
        for i in range(p):
            for row in range(n):
                for column in range(m):
                    blocks[j, i, row, column] = u[i * n + row, j * m + column]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def from_blocks(blocks: Array, u: Array) -> None:
    q, p, n, m = blocks.shape
    for j in range(q):
        for i in range(p):
            for row in range(n):
                for column in range(m):
                    u[i * n + row, j * m + column] = blocks[j, i, row, column]


def as_matrices(u: Array, axes: int) -> Array:
    """States (batch, channel, row, column); with one axis the channels are the rows of a single matrix."""
    shape = (u.shape[0], 1, *u.shape[1:]) if axes == 1 else u.shape
    return np.ascontiguousarray(u).reshape(shape)


def of_axes(rates: tuple[Array, ...]) -> tuple[Array, Array]:
    """Rates of the last axis and of the one before it, none if there is only one."""
    *first, last = (np.ascontiguousarray(rate, dtype=np.complex128) for rate in rates)
    return last, first[0] if first else np.empty((0, 1, 1), dtype=np.complex128)
