"""Real Fourier transforms of short lines inside compiled loops: several lines side by side, without a call for each."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.lanes import LANES, load, store

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
def transform(buffers: Array, first: int, second: int, points: int, radices: Array, twiddles: Array) -> bool:
    """Discrete Fourier transform of ``LANES`` complex lines, point by point beside each other (Stockham's order).

    Real and imaginary parts are one after the other, from ``first`` or ``second`` on in ``buffers``. Works to and fro
    between these two places; returns whether the result is in the second. With the parts exchanged it is the inverse
    transform, times the number of points.
    """
    imaginary, stride, rest, used, there = points * LANES, LANES, points, 0, False
    for radix in radices:
        rest //= radix
        jump = stride * rest
        here, to = (second, first) if there else (first, second)
        if radix == 2:
            _twos(buffers, here, to, imaginary, stride, rest, jump, twiddles, used)
        elif radix == 3:
            _threes(buffers, here, to, imaginary, stride, rest, jump, twiddles, used)
        else:
            _fours(buffers, here, to, imaginary, stride, rest, jump, twiddles, used)
        used += rest * (radix - 1)
        stride *= radix
        there = not there
    return there


@numba.njit(cache=True, nogil=True)
def _put(buffers, place, imaginary, x, y, w):  # type: ignore[no-untyped-def]
    """(x + iy)·w."""
    store(buffers, place, x * w.real - y * w.imag)
    store(buffers, place + imaginary, x * w.imag + y * w.real)


@numba.njit(cache=True, nogil=True)
def _twos(u, here, to, imaginary, stride, rest, jump, twiddles, used):  # type: ignore[no-untyped-def]
    for p in range(rest):
        w1 = twiddles[used + p]
        for q in range(stride * p, stride * (p + 1), LANES):
            i, o = here + q, to + q + stride * p
            ar, ai = load(u, i), load(u, i + imaginary)
            br, bi = load(u, i + jump), load(u, i + jump + imaginary)
            store(u, o, ar + br)
            store(u, o + imaginary, ai + bi)
            _put(u, o + stride, imaginary, ar - br, ai - bi, w1)


@numba.njit(cache=True, nogil=True)
def _threes(u, here, to, imaginary, stride, rest, jump, twiddles, used):  # type: ignore[no-untyped-def]
    for p in range(rest):
        w1, w2 = twiddles[used + 2 * p], twiddles[used + 2 * p + 1]
        for q in range(stride * p, stride * (p + 1), LANES):
            i, o = here + q, to + q + 2 * stride * p
            ar, ai = load(u, i), load(u, i + imaginary)
            br, bi = load(u, i + jump), load(u, i + jump + imaginary)
            cr, ci = load(u, i + 2 * jump), load(u, i + 2 * jump + imaginary)
            sr, si = br + cr, bi + ci
            tr, ti = SINE_60 * (bi - ci), SINE_60 * (cr - br)
            mr, mi = ar - 0.5 * sr, ai - 0.5 * si
            store(u, o, ar + sr)
            store(u, o + imaginary, ai + si)
            _put(u, o + stride, imaginary, mr + tr, mi + ti, w1)
            _put(u, o + 2 * stride, imaginary, mr - tr, mi - ti, w2)


@numba.njit(cache=True, nogil=True)
def _fours(u, here, to, imaginary, stride, rest, jump, twiddles, used):  # type: ignore[no-untyped-def]
    for p in range(rest):
        w1, w2, w3 = twiddles[used + 3 * p], twiddles[used + 3 * p + 1], twiddles[used + 3 * p + 2]
        for q in range(stride * p, stride * (p + 1), LANES):
            i, o = here + q, to + q + 3 * stride * p
            ar, ai = load(u, i), load(u, i + imaginary)
            br, bi = load(u, i + jump), load(u, i + jump + imaginary)
            cr, ci = load(u, i + 2 * jump), load(u, i + 2 * jump + imaginary)
            er, ei = load(u, i + 3 * jump), load(u, i + 3 * jump + imaginary)
            sr, si, dr, di = ar + cr, ai + ci, ar - cr, ai - ci
            tr, ti, fr, fi = br + er, bi + ei, bi - ei, er - br
            store(u, o, sr + tr)
            store(u, o + imaginary, si + ti)
            _put(u, o + stride, imaginary, dr + fr, di + fi, w1)
            _put(u, o + 2 * stride, imaginary, sr - tr, si - ti, w2)
            _put(u, o + 3 * stride, imaginary, dr - fr, di - fi, w3)
