"""What lies between the transforms of u_t = −(½u²)_x: squares of point values, and a Runge–Kutta stage of modes."""

from __future__ import annotations

from typing import Any

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True)
def half_square(u: Array) -> None:
    """u ← ½u², in place."""
    flat = u.reshape(-1)
    for i in range(flat.size):
        flat[i] = 0.5 * flat[i] * flat[i]


@numba.njit(cache=True, nogil=True)
def stage(
    keep: float, base: Array, now: Array, square: Array, slope: Array, tau: Array, values: Array, to: Array
) -> None:
    """now ← keep·base + (1 − keep)·(now − τ·i·slope·square), and values ← to·now: the modes of its point values.

    Modes are (sample, mode), ``square`` may have more of them than are kept. In real numbers throughout, so that a
    result does not depend on its place in the array.
    """
    samples, modes = now.shape
    for s in range(samples):
        for j in range(modes):
            rate = tau[s] * slope[s, j]
            real = now[s, j].real + rate * square[s, j].imag
            imag = now[s, j].imag - rate * square[s, j].real
            real = keep * base[s, j].real + (1.0 - keep) * real
            imag = keep * base[s, j].imag + (1.0 - keep) * imag
            now[s, j] = complex(real, imag)
            values[s, j] = complex(to[j] * real, to[j] * imag)
