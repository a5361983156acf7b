"""Small periodic boxes: a process that is diagonal in Fourier space is a convolution along each axis, and there two
products with small circulant matrices cost less than two transforms.

A circulant of even size n falls into two matrices of half the size: sums x[j] + x[j + n/2] see the even modes alone,
differences the odd ones. That halves the multiplications.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from hycop.kernels.complex_exponentials import complex_exponentials
from hycop.kernels.small_products import product

Array = npt.NDArray[Any]

LARGEST = {1: 256, 2: 128}
"""Most cells along each of so many axes: beyond that transforms are faster."""


def convolves(shape: tuple[int, ...], transforms: tuple[str, ...]) -> bool:
    """Whether a state (batch, channel, *grid) is small enough, in one or two periodic axes."""
    return set(transforms) == {"fourier"} and max(shape[2:]) <= LARGEST.get(len(transforms), 0)


@lru_cache(maxsize=64)
def waves(n: int) -> Array:
    """(2 − δ)/n·cos and then −(2 − δ)/n·sin of 2πkd/n for modes k = 0 … n/2, (1, cosine or sine, distance d): half
    of an inverse transform."""
    modes = np.arange(n // 2 + 1)[:, None]
    angle = 2.0 * np.pi * (modes * np.arange(n) % n) / n
    weight = np.where((modes == 0) | (2 * modes == n), 1.0, 2.0) / n
    return np.concatenate([weight * np.cos(angle), -weight * np.sin(angle)])[None]


@lru_cache(maxsize=64)
def reversed_waves(n: int) -> Array:
    """``waves`` the other way round: a matrix of the rows multiplies from the left."""
    cosines, sines = np.split(waves(n), 2, axis=1)
    return np.concatenate([cosines, -sines], axis=1)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def parts_of(n: int) -> int:
    """Into how many matrices a circulant of size n falls."""
    return 1 if n % 2 else 2


@numba.njit(cache=True, nogil=True, error_model="numpy")
def rings(n: int, dtype: Any) -> tuple[Array, Array]:
    """Memory of the circulants of size n: what a value adds to the one d − n/parts cells on, (part, d), and matrices
    (part, n/parts, n/parts) that look into it, each row one value before the one above. There are none for n = 0."""
    parts = parts_of(n) if n else 0
    half = n // max(parts, 1)
    ring = np.empty((parts, 2 * half), dtype)
    size = ring.itemsize
    return ring, as_strided(ring[:, half:], (parts, half, half), (2 * half * size, -size, size))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def spaces(n: int) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Memory for ``fill``: growth, turn, both parts of the amplitudes and all of them in a row, and the kernel."""
    modes = n // 2 + 1
    amplitudes = np.empty((1, 1, 2 * modes))
    return (
        np.empty(modes),
        np.empty(modes),
        amplitudes[0, 0, :modes],
        amplitudes[0, 0, modes:],
        amplitudes,
        np.empty((1, 1, max(1, n))),
    )


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill(  # type: ignore[no-untyped-def]
    rates: Array, sample: int, durations: Array, program: int, move: int, along: Array, space, ring: Array
) -> None:
    """The ``rings`` of exp(Σ_op durations[program, move, op]·rates[sample, op, mode]), with the ``waves`` of that size.

    Arrays are whole, because Numba counts the references to every part of one, and that takes as long as the rest.
    """
    growth, turn, real, imaginary, amplitudes, kernel = space
    for k in range(growth.size):
        decay, angle = 0.0, 0.0
        for op in range(durations.shape[2]):
            if durations[program, move, op] != 0.0:  # a rate may be infinite
                decay += rates[sample, op, k].real * durations[program, move, op]
                angle += rates[sample, op, k].imag * durations[program, move, op]
        growth[k], turn[k] = decay, angle
    complex_exponentials(growth, turn, real, imaginary)
    product(amplitudes, 0, along, 0, kernel, 0)
    parts, half = ring.shape[0], ring.shape[1] // 2
    if parts == 1:
        for d in range(half):
            ring[0, half + d] = ring[0, d] = kernel[0, 0, d]
    else:
        for d in range(half):
            a, b = 0.5 * kernel[0, 0, d], 0.5 * kernel[0, 0, half + d]
            ring[0, half + d] = ring[0, d] = a + b
            ring[1, half + d], ring[1, d] = a - b, b - a  # odd modes change their sign over half the box
    # what rounding took from the sum goes to the smallest value, which takes it best, so that many steps lose nothing
    rest, least = real[0] / parts, 0
    for d in range(half):
        rest -= ring[0, d]
        least = d if abs(ring[0, d]) < abs(ring[0, least]) else least
    ring[0, least] += ring.dtype.type(rest)
    ring[0, half + least] = ring[0, least]


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
    flat, small = blocks.reshape(q * p, n * m), blocks.reshape(q * p, n, m)
    tall, tall_scratch = blocks.reshape(q, p * n, m), scratch.reshape(1, p * n, m)
    butterfly(flat)
    for j in range(q):
        if left.shape[0]:
            for i in range(p):
                product(left, i, small, j * p + i, scratch, i)
        else:
            for i in range(p * n):
                for column in range(m):
                    tall_scratch[0, i, column] = tall[j, i, column]
        product(tall_scratch, 0, right, j, tall, j)
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
