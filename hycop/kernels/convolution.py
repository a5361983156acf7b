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

from hycop.kernels.lanes import LANES, aligned, load, of_any_layout, store
from hycop.kernels.small_products import product

Array = npt.NDArray[Any]

LARGEST = {1: 256, 2: 128}
"""Most cells along each of so many axes: beyond that transforms are faster."""


def convolves(shape: tuple[int, ...], transforms: tuple[str, ...]) -> bool:
    """Whether a state (batch, channel, *grid) is small enough, in one or two periodic axes."""
    return set(transforms) == {"fourier"} and max(shape[2:]) <= LARGEST.get(len(transforms), 0)


@lru_cache(maxsize=64)
def waves(n: int) -> Array:
    """(2 − δ)/n·cos and then −(2 − δ)/n·sin of 2πkd/n, one row each for every mode k = 0 … n/2: an inverse transform.
    Distances d go as far as a matrix needs them, and zeros on to the next whole vector."""
    modes = np.arange(n // 2 + 1)[:, None]
    distances = np.arange(n // parts_of(n))
    angle = 2.0 * np.pi * (modes * distances % n) / n
    weight = np.where((modes == 0) | (2 * modes == n), 1.0, 2.0) / n
    found = np.zeros((modes.size, 2, -(-distances.size // LANES) * LANES))
    found[:, 0, : distances.size], found[:, 1, : distances.size] = weight * np.cos(angle), -weight * np.sin(angle)
    return found


@lru_cache(maxsize=64)
def reversed_waves(n: int) -> Array:
    """``waves`` the other way round: a matrix of the rows multiplies from the left."""
    return waves(n) * np.array([1.0, -1.0])[:, None]


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
def exponents(
    rates: Array, sample: int, durations: Array, program: int, move: int, lines: Array, first: int, modes: int
) -> int:
    """Growth and turn, lines 0 and 1 from ``first`` on, of Σ_op durations[program, move, op]·rate[sample, op, mode];
    rates are (real or imaginary part, sample, op, mode). Returns where the next ones go.

    Arrays are whole, because Numba counts the references to every part of one, and that takes as long as the rest.
    """
    for k in range(modes):
        lines[0, first + k] = lines[1, first + k] = 0.0
    for op in range(durations.shape[2]):
        duration = durations[program, move, op]
        if duration != 0.0:  # a rate may be infinite
            for k in range(modes):
                lines[0, first + k] += duration * rates[0, sample, op, k]
                lines[1, first + k] += duration * rates[1, sample, op, k]
    return first + modes


@numba.njit(cache=True, nogil=True, error_model="numpy")
def fill(lines: Array, first: int, along: Array, ring: Array, values: Array) -> int:
    """The ``rings`` of amplitudes, lines 2 and 3 from ``first`` on, with the ``waves`` of that size; ``values`` is
    memory for them. Returns where the next amplitudes are."""
    modes, parts, half, row = along.shape[0], ring.shape[0], ring.shape[1] // 2, along.shape[2]
    for part in range(parts):  # even modes, and odd ones, which change their sign over half the box
        for d in range(0, half, LANES):
            at, k = 2 * part * row + d, first + part
            even, odd = lines[2, k] * load(along, at), lines[3, k] * load(along, at + row)
            for k in range(first + part + parts, first + modes, parts):
                at += 2 * parts * row
                even, odd = even + lines[2, k] * load(along, at), odd + lines[3, k] * load(along, at + row)
            store(values, d, even + odd)
        sign = 1.0 if part == 0 else -1.0
        for d in range(half):
            ring[part, half + d], ring[part, d] = values[d], sign * values[d]
    # what rounding took from the sum goes to a small value, which takes it best, so that many steps lose nothing
    rest = lines[2, first] / parts
    for d in range(half):
        rest -= ring[0, d]
    small = 0 if abs(ring[0, 0]) < abs(ring[0, half // 2]) else half // 2
    ring[0, small] += ring.dtype.type(rest)
    ring[0, half + small] = ring[0, small]
    return first + modes


@numba.njit(cache=True, nogil=True, error_model="numpy")
def workspace(channels: int, p: int, q: int, n: int, m: int, dtype: Any):  # type: ignore[no-untyped-def]
    """Memory for a state of p·n × q·m cells as its parts, the blocks (channel, column part, row part, row, column); the
    same memory as all values in a row, as (channel, part, value), as a stack of blocks and as a stack of column parts;
    and memory for the products of one column part as its blocks and as one matrix."""
    size = n * m
    flat, other = aligned(channels * q * p * size, dtype), aligned(p * size, dtype)
    parts, stack = flat.reshape(channels, q * p, size), flat.reshape(channels * q * p, n, m)
    tall, tall_other = flat.reshape(channels * q, p * n, m), other.reshape(1, p * n, m)
    blocks, of_blocks = flat.reshape(channels, q, p, n, m), other.reshape(p, n, m)
    # one product of blocks is compiled, also for the matrices on their left, and another one of column parts: each is
    # called in one place, and so it becomes a part of the loop
    return blocks, flat, parts, of_any_layout(stack), tall, of_any_layout(of_blocks), tall_other


@numba.njit(cache=True, nogil=True, error_model="numpy")
def butterfly(parts: Array, channel: int) -> None:
    """Sums and differences of the blocks of a channel, those of one axis or of two, of which the first is slower."""
    if parts.shape[1] == 4:
        for i in range(parts.shape[2]):
            a, b = parts[channel, 0, i], parts[channel, 1, i]
            c, d = parts[channel, 2, i], parts[channel, 3, i]
            s, t, v, w = a + b, a - b, c + d, c - d
            parts[channel, 0, i], parts[channel, 1, i] = s + v, t + w
            parts[channel, 2, i], parts[channel, 3, i] = s - v, t - w
    elif parts.shape[1] == 2:
        for i in range(parts.shape[2]):
            a, b = parts[channel, 0, i], parts[channel, 1, i]
            parts[channel, 0, i], parts[channel, 1, i] = a + b, a - b


@numba.njit(cache=True, nogil=True, error_model="numpy")
def multiply(
    parts: Array, stack: Array, tall: Array, other: Array, tall_other: Array, channel: int, left: Array, right: Array
) -> None:
    """blocks[j, i] ← left[i]·blocks[j, i]·right[j] between two butterflies: the convolution of a channel of a
    ``workspace``. Without matrices on the left, along the last axis alone."""
    p, n, m = other.shape
    q = right.shape[0]
    butterfly(parts, channel)
    for j in range(channel * q, (channel + 1) * q):
        if left.shape[0]:
            for i in range(p):
                product(left, i, stack, j * p + i, other, i)
        else:
            for i in range(p * n):
                for column in range(m):
                    tall_other[0, i, column] = tall[j, i, column]
        product(tall_other, np.int64(0), right, j - channel * q, tall, j)
    butterfly(parts, channel)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def into_blocks(u: Array, sample: int, blocks: Array) -> None:
    """State ``sample`` (channel, row, column) as its parts."""
    channels, q, p, n, m = blocks.shape
    for channel in range(channels):
        for j in range(q):
            for i in range(p):
                for row in range(n):
                    for column in range(m):
                        blocks[channel, j, i, row, column] = u[sample, channel, i * n + row, j * m + column]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def from_blocks(blocks: Array, u: Array, sample: int) -> None:
    """The other way round."""
    channels, q, p, n, m = blocks.shape
    for channel in range(channels):
        for j in range(q):
            for i in range(p):
                for row in range(n):
                    for column in range(m):
                        u[sample, channel, i * n + row, j * m + column] = blocks[channel, j, i, row, column]


def as_matrices(u: Array, axes: int) -> Array:
    """States (batch, channel, row, column); with one axis the channels are the rows of a single matrix."""
    shape = (u.shape[0], 1, *u.shape[1:]) if axes == 1 else u.shape
    return np.ascontiguousarray(u).reshape(shape)


def in_blocks(u: Array, axes: int) -> Array:
    """``into_blocks`` of all states: the same values in that order."""
    batch, channels, n, m = u.shape
    p, q = parts_of(n) if axes == 2 else 1, parts_of(m)
    blocks = u.reshape(batch, channels, p, n // p, q, m // q).transpose(0, 1, 4, 2, 3, 5)
    return np.ascontiguousarray(blocks).reshape(u.shape)  # a view may be left of boxes of two cells


def of_axes(rates: tuple[Array, ...]) -> tuple[Array, Array]:
    """Real and imaginary parts of the rates (sample, op, mode) of the last axis and of the one before it, which has no
    modes if there is only one."""
    *first, last = (np.stack([np.real(rate), np.imag(rate)]).astype(np.float64, copy=False) for rate in rates)
    return last, first[0] if first else np.empty((2, 0, 0, 0))
