"""Real Fourier transforms of short lines inside compiled loops: several lines side by side, without a call for each."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

RADICES = (4, 3, 2)

SINE_60 = sqrt(0.75)


class LinePlan(NamedTuple):
    """A transform of ``2·half`` real values as one of ``half`` complex ones: radices, their twiddle factors one after
    the other, and e^{−πik/half} for k ≤ half, which takes even and odd values apart."""

    half: int
    radices: Array
    twiddles: Array
    apart: Array


@lru_cache(maxsize=32)
def line_plan(fewest: int) -> LinePlan:
    """The plan of the shortest transform of at least ``fewest`` values that the radices 2, 3 and 4 can do."""
    half = max(1, -(-fewest // 2))
    while _factors(half) is None:
        half += 1
    radices, twiddles, rest = _factors(half) or [], [np.zeros(0, dtype=np.complex128)], half
    for radix in radices:
        rest //= radix
        angles = np.outer(np.arange(rest), np.arange(1, radix)) / (rest * radix)
        twiddles.append(np.exp(-2j * np.pi * angles).reshape(-1))
    apart = np.exp(-1j * np.pi * np.arange(half + 1) / half)
    return LinePlan(half, np.array(radices, dtype=np.int64), np.concatenate(twiddles), apart)


def _factors(n: int) -> list[int] | None:
    found = []
    for radix in RADICES:
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


@numba.njit(cache=True, nogil=True)
def transform(re: Array, im: Array, re2: Array, im2: Array, lanes: int, radices: Array, twiddles: Array) -> bool:
    """Discrete Fourier transform of ``lanes`` complex lines, point by point beside each other (Stockham's order).

    Works to and fro between the two pairs of buffers; returns whether the result is in the second. With real and
    imaginary parts exchanged it is the inverse transform, times the number of points. The sums of a lane are the same
    for every number of lanes. Indices are unsigned, because a sign to check would keep loops from being vectorised.
    """
    stride, rest, used, there = np.uint64(lanes), np.uint64(re.size // lanes), 0, False
    for radix in radices:
        r = np.uint64(radix)
        rest //= r
        jump = stride * rest
        a, b, c, d = (re2, im2, re, im) if there else (re, im, re2, im2)
        for p in range(rest):
            here, to, w1 = stride * p, stride * r * p, twiddles[used]
            if radix == 2:
                for q in range(stride):
                    i, o = here + q, to + q
                    x, y = a[i] - a[i + jump], b[i] - b[i + jump]
                    c[o], d[o] = a[i] + a[i + jump], b[i] + b[i + jump]
                    c[o + stride] = x * w1.real - y * w1.imag
                    d[o + stride] = x * w1.imag + y * w1.real
            elif radix == 3:
                w2 = twiddles[used + 1]
                for q in range(stride):
                    i, o = here + q, to + q
                    j, k = i + jump, i + jump + jump
                    sr, si = a[j] + a[k], b[j] + b[k]
                    tr, ti = SINE_60 * (b[j] - b[k]), SINE_60 * (a[k] - a[j])
                    mr, mi = a[i] - 0.5 * sr, b[i] - 0.5 * si
                    c[o], d[o] = a[i] + sr, b[i] + si
                    x, y = mr + tr, mi + ti
                    o += stride
                    c[o] = x * w1.real - y * w1.imag
                    d[o] = x * w1.imag + y * w1.real
                    x, y = mr - tr, mi - ti
                    o += stride
                    c[o] = x * w2.real - y * w2.imag
                    d[o] = x * w2.imag + y * w2.real
            else:
                w2, w3 = twiddles[used + 1], twiddles[used + 2]
                for q in range(stride):
                    i, o = here + q, to + q
                    j, k, m = i + jump, i + jump + jump, i + jump + jump + jump
                    sr, si, dr, di = a[i] + a[k], b[i] + b[k], a[i] - a[k], b[i] - b[k]
                    tr, ti, er, ei = a[j] + a[m], b[j] + b[m], b[j] - b[m], a[m] - a[j]
                    c[o], d[o] = sr + tr, si + ti
                    x, y = dr + er, di + ei
                    o += stride
                    c[o] = x * w1.real - y * w1.imag
                    d[o] = x * w1.imag + y * w1.real
                    x, y = sr - tr, si - ti
                    o += stride
                    c[o] = x * w2.real - y * w2.imag
                    d[o] = x * w2.imag + y * w2.real
                    x, y = dr - er, di - ei
                    o += stride
                    c[o] = x * w3.real - y * w3.imag
                    d[o] = x * w3.imag + y * w3.real
            used += radix - 1
        stride *= r
        there = not there
    return there
