"""Dense linear flows exp(A) of many samples, and their products with states."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, prod

import numpy as np

from hycop.grid import Array

TILE = 64
LARGEST_PRODUCT = 2**18
LARGEST_VECTOR_PRODUCT = 2**13
"""Multiply-adds of one call to BLAS, with matrices and with vectors. OpenBLAS keeps products of this size on one
thread; larger ones it shares out, to threads that hold each other up by orders of magnitude on busy cores."""

TAYLOR_TERMS = 16
LARGEST_NORM = 0.5
"""Largest norm of a matrix for which the Taylor series is exact to rounding."""


def product(left: Array, right: Array) -> Array:
    """The matrix products (…, m, k) × (…, k, n), in tiles that are small enough for one thread."""
    m, k = left.shape[-2:]
    n = right.shape[-1]
    rows = _divisor(m, TILE)
    columns = _divisor(n, (LARGEST_PRODUCT if rows > 1 else LARGEST_VECTOR_PRODUCT) // (rows * k))
    strips = left.reshape(*left.shape[:-2], m // rows, 1, rows, k)
    panels = right.reshape(*right.shape[:-1], n // columns, columns).swapaxes(-2, -3)[..., None, :, :, :]
    tiles: Array = (strips @ panels).swapaxes(-2, -3)
    return tiles.reshape(*tiles.shape[:-4], m, n)


def exponential(matrices: Array) -> Array:
    """exp(A) of each matrix (batch, n, n), by a Taylor series of A/2^s, squared s times.

    What is squared is E = exp − 1, by (1 + E)² − 1 = 2 E + E²: that keeps small rates, and so the sums that a
    conservative A leaves alone, to rounding, while squaring 1 + E would double their error each time.
    """
    norm = np.abs(matrices).sum(axis=1).max(axis=1)
    squarings = np.maximum(0, np.ceil(np.log2(np.maximum(norm / LARGEST_NORM, 1.0)))).astype(np.int64)
    scaled = matrices / (2.0**squarings)[:, None, None]
    out = _series(scaled)
    for done in range(int(squarings.max(initial=0))):
        left = np.flatnonzero(squarings > done)
        part = out[left]
        out[left] = 2.0 * part + product(part, part)
    diagonal = np.arange(out.shape[1])
    out[:, diagonal, diagonal] += 1.0
    return out


def applied(matrices: Array, u: Array, axis: int) -> Array:
    """A matrix per sample, (batch, m, n), or one for all, (1, m, n), times the lines of a state along an axis."""
    before, after = u.shape[1:axis], u.shape[axis + 1 :]
    if after:
        out = product(matrices[:, None], u.reshape(u.shape[0], prod(before), u.shape[axis], prod(after)))
    else:
        lines = u.reshape(u.shape[0], prod(before), u.shape[axis])
        out = product(lines, matrices.transpose(0, 2, 1).copy())
    return out.reshape(u.shape[0], *before, matrices.shape[1], *after)


def linear_flow(propagators: Sequence[Array], u: Array) -> Array:
    """(E_x ⊗ E_y ⊗ …) u for propagators E (batch, n, n) of each axis."""
    for axis, matrices in enumerate(propagators):
        u = applied(matrices, u, 2 + axis)
    return u


def _series(matrices: Array) -> Array:
    """Σ A^p / p! for p = 1, 2, …, by Horner's rule in A⁴ (Paterson & Stockmeyer 1973)."""
    square = product(matrices, matrices)
    cube = product(square, matrices)
    fourth = product(square, square)
    identity = np.eye(matrices.shape[1])

    def group(first: int) -> Array:
        start = identity / factorial(first) if first else 0.0
        out: Array = (
            start + matrices / factorial(first + 1) + square / factorial(first + 2) + cube / factorial(first + 3)
        )
        return out

    out = group(TAYLOR_TERMS - 4)
    for first in range(TAYLOR_TERMS - 8, -1, -4):
        out = group(first) + product(fourth, out)
    return out


def _divisor(number: int, most: int) -> int:
    """The largest divisor that is not above ``most``."""
    return next(d for d in range(max(1, min(number, most)), 0, -1) if number % d == 0)
