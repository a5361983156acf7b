"""Exponential Runge–Kutta steps of v' = λ v + N(v) on periodic lines, where N is −(½u²)_x: all in modes, in cache."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import scipy.fft

from hycop.kernels.exponential import Tableau
from hycop.kernels.line_transform import LinePlan, line_plan, transform

Array = npt.NDArray[Any]

LANES = 16
"""Samples that are advanced side by side: a few vectors of numbers, and their weights still stay in the cache."""


class Quadratic(NamedTuple):
    """N in modes: N̂ = −i·slope·F[½(F⁻¹ to·v)²], without aliases. ``to`` (modes,) turns the modes of averages into those
    of point values, ``slope`` (batch, modes) is the wavenumber times its inverse; a Nyquist mode has none of either."""

    to: Array
    slope: Array


@numba.njit(cache=True, nogil=True)
def _square(v, n, to, slope, buffers, lanes, half, radices, twiddles, apart):  # type: ignore[no-untyped-def]
    """n ← N(v) for modes (part, mode × lane). The half-length transform takes even values as real and odd ones as
    imaginary parts; v and ``to`` are zero beyond the modes that are kept."""
    re, im, re2, im2 = buffers[0], buffers[1], buffers[2], buffers[3]
    for k in range(half):
        w, up, down = apart[k], to[k], to[half - k]
        ar, ai = v[0, k * lanes : (k + 1) * lanes], v[1, k * lanes : (k + 1) * lanes]
        br, bi = v[0, (half - k) * lanes : (half - k + 1) * lanes], v[1, (half - k) * lanes : (half - k + 1) * lanes]
        outr, outi = re[k * lanes : (k + 1) * lanes], im[k * lanes : (k + 1) * lanes]
        for q in range(lanes):
            x, y = up * ar[q] - down * br[q], up * ai[q] + down * bi[q]
            # a + b + i·conj(w)·(a − b), b conjugate; real and imaginary parts exchanged for the inverse transform
            outi[q] = up * ar[q] + down * br[q] - (y * w.real - x * w.imag)
            outr[q] = up * ai[q] - down * bi[q] + (x * w.real + y * w.imag)
    if transform(re, im, re2, im2, lanes, radices, twiddles):
        re, im, re2, im2 = re2, im2, re, im
    re, im, re2, im2 = im, re, im2, re2
    for o in range(half * lanes):
        re[o] = 0.5 * re[o] * re[o]
        im[o] = 0.5 * im[o] * im[o]
    if transform(re, im, re2, im2, lanes, radices, twiddles):
        re, im = re2, im2
    scale = 0.25 / half
    for k in range(slope.size // lanes):
        w, m = apart[k], (half - k) % half * lanes
        ar, ai = re[k * lanes : (k + 1) * lanes], im[k * lanes : (k + 1) * lanes]
        br, bi = re[m : m + lanes], im[m : m + lanes]
        rates = slope[k * lanes : (k + 1) * lanes]
        outr, outi = n[0, k * lanes : (k + 1) * lanes], n[1, k * lanes : (k + 1) * lanes]
        for q in range(lanes):
            dr, di = ar[q] - br[q], ai[q] + bi[q]
            # X = ½(a + b − i·w·(a − b)), b conjugate, and N = −i·slope·X
            outr[q] = scale * rates[q] * (ai[q] - bi[q] - (dr * w.real - di * w.imag))
            outi[q] = -scale * rates[q] * (ar[q] + br[q] + (dr * w.imag + di * w.real))


@numba.njit(cache=True, nogil=True)
def _scaled(out, w, x):  # type: ignore[no-untyped-def]
    """out ← w·x for complex numbers in two parts; weights have one part if they are real."""
    outr, outi, wr, wi, xr, xi = out[0], out[1], w[0], w[-1], x[0], x[1]
    if w.shape[0] == 1:
        for q in range(xr.size):
            outr[q] = wr[q] * xr[q]
            outi[q] = wr[q] * xi[q]
    else:
        for q in range(xr.size):
            outr[q] = wr[q] * xr[q] - wi[q] * xi[q]
            outi[q] = wr[q] * xi[q] + wi[q] * xr[q]


@numba.njit(cache=True, nogil=True)
def _add_scaled(out, w, x):  # type: ignore[no-untyped-def]
    """out ← out + w·x."""
    outr, outi, wr, wi, xr, xi = out[0], out[1], w[0], w[-1], x[0], x[1]
    if w.shape[0] == 1:
        for q in range(xr.size):
            outr[q] += wr[q] * xr[q]
            outi[q] += wr[q] * xi[q]
    else:
        for q in range(xr.size):
            outr[q] += wr[q] * xr[q] - wi[q] * xi[q]
            outi[q] += wr[q] * xi[q] + wi[q] * xr[q]


@numba.njit(cache=True, nogil=True)
def _march(v, steps, weights, terms, to, slope, lanes, half, radices, twiddles, apart):  # type: ignore[no-untyped-def]
    """Steps of the modes v (part, mode × lane), in place. ``terms`` are rows (stage, source, weight): source −1 is v,
    others are the rates of earlier stages; weights are (number, part, mode × lane)."""
    stages = terms[-1, 0] + 1
    rates = np.empty((stages, 2, v.shape[1]))
    padded = np.zeros((2, (half + 1) * lanes))
    stage = padded[:, : v.shape[1]]
    buffers = np.empty((4, half * lanes))
    for _ in range(steps):
        stage[:] = v
        for i in range(stages):
            _square(padded, rates[i], to, slope, buffers, lanes, half, radices, twiddles, apart)
            for row in range(terms.shape[0]):
                if terms[row, 0] == i and terms[row, 1] < 0:
                    _scaled(stage, weights[terms[row, 2]], v)
                elif terms[row, 0] == i:
                    _add_scaled(stage, weights[terms[row, 2]], rates[terms[row, 1]])
        v[:] = stage


class Lines(NamedTuple):
    """Lines with the tableau of their steps: ``terms`` and ``weights`` as in ``_march``, but (number, part, sample,
    mode); ``rest`` (sample, mode) are the factors of modes that are not kept; ``laid`` keeps weights of groups."""

    terms: Array
    weights: Array
    rest: Array
    to: Array
    slope: Array
    plan: LinePlan
    laid: dict[tuple[int, int], tuple[Array, Array]]

    @classmethod
    def of(cls, tableau: Tableau, quadratic: Quadratic) -> Lines:
        """From a tableau whose arrays are (sample, 1, mode)."""
        found: dict[int, int] = {}
        arrays: list[Array] = []
        terms: list[tuple[int, int, int]] = []
        for i, (factor, weights) in enumerate(zip(tableau.factors, tableau.weights, strict=True)):
            for source, array in ((-1, factor), *weights.items()):
                if id(array) not in found:
                    found[id(array)] = len(arrays)
                    arrays.append(_parted(array[:, 0]))
                terms.append((i, source, found[id(array)]))
        kept = quadratic.to.size
        plan = line_plan(3 * kept - 2)  # aliases of the highest product end above the modes that are kept
        to = np.zeros(plan.half + 1)
        to[:kept] = quadratic.to
        rest = tableau.factors[-1][:, 0, kept:]
        return cls(np.array(terms, dtype=np.int64), np.stack(arrays)[..., :kept], rest, to, quadratic.slope, plan, {})

    def _side_by_side(self, start: int, end: int) -> tuple[Array, Array]:
        """Weights and slopes of a group of samples, (…, mode × lane); made once."""
        if (start, end) not in self.laid:
            weights = self.weights[:, :, start:end].transpose(0, 1, 3, 2)
            weights = np.ascontiguousarray(weights).reshape(*weights.shape[:2], -1)
            self.laid[start, end] = weights, self.slope[start:end].T.reshape(-1)
        return self.laid[start, end]

    def advanced(self, u: Array, steps: Array) -> Array:
        """The lines u (sample, n) after the steps (sample,) of each; those with equal numbers are neighbours."""
        modes, kept = scipy.fft.rfft(u, axis=1, norm="forward"), self.weights.shape[-1]
        if self.rest.size:
            modes[:, kept:] *= self.rest ** steps[:, None]

        def advance(start: int, end: int) -> None:
            lanes = end - start
            v = _parted(modes[start:end, :kept]).transpose(0, 2, 1).reshape(2, -1)
            weights, slope = self._side_by_side(start, end)
            _march(v, int(steps[start]), weights, self.terms, self.to, slope, lanes, *self.plan)
            modes[start:end, :kept] = (v[0] + 1j * v[1]).reshape(kept, lanes).T

        _over_groups(advance, steps)
        out: Array = scipy.fft.irfft(modes, u.shape[1], axis=1, norm="forward")
        return out


def _parted(values: Array) -> Array:
    """Real and imaginary parts (2, …) of complex values; (1, …) of real ones."""
    return np.stack([values.real, values.imag]) if np.iscomplexobj(values) else values[None]


def _over_groups(advance: Callable[[int, int], None], steps: Array) -> None:
    """Calls ``advance(start, end)`` for neighbours with the same number of steps, at most ``LANES`` at a time."""
    edges = [0, *(np.flatnonzero(np.diff(steps)) + 1).tolist(), steps.size]
    groups = [(start, min(start + LANES, end)) for first, end in pairwise(edges) for start in range(first, end, LANES)]
    threads = 1 if len(groups) < 2 else min(numba.get_num_threads(), len(groups))
    if threads <= 1:  # starting a thread takes as long as a few steps
        for group in groups:
            advance(*group)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda group: advance(*group), groups))
