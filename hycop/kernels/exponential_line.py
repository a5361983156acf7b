"""Exponential Runge–Kutta steps of v' = λ v + N(v) on periodic lines, where N is −(½u²)_x: all in modes, in cache."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import scipy.fft

from hycop.kernels.exponential import Tableau
from hycop.kernels.lanes import LANES, aligned, load, store
from hycop.kernels.line_transform import LinePlan, line_plan, transform
from hycop.kernels.threads import in_parts

Array = npt.NDArray[Any]


class Quadratic(NamedTuple):
    """N in modes: N̂ = −i·slope·F[½(F⁻¹ to·v)²], without aliases. ``to`` (modes,) turns the modes of averages into those
    of point values, ``slope`` (batch, modes) is the wavenumber times its inverse; a Nyquist mode has none of either."""

    to: Array
    slope: Array


@numba.njit(cache=True, nogil=True)
def _square(v, out, place, to, slope, buffers, half, radices, twiddles, apart):  # type: ignore[no-untyped-def]
    """out ← N(v), from ``place`` on, for modes (part, mode × lane). The half-length transform takes even values as real
    and odd ones as imaginary parts; v and ``to`` are zero beyond the modes that are kept."""
    imaginary, beyond, kept = half * LANES, (half + 1) * LANES, slope.size // LANES
    first, second = 0, 2 * imaginary
    for k in range(half):
        w, up, down, o, m = apart[k], to[k], to[half - k], k * LANES, (half - k) * LANES
        ar, ai, br, bi = up * load(v, o), up * load(v, beyond + o), down * load(v, m), down * load(v, beyond + m)
        x, y = ar - br, ai + bi
        # a + b + i·conj(w)·(a − b), b conjugate; real and imaginary parts exchanged for the inverse transform
        store(buffers, imaginary + o, ar + br - (y * w.real - x * w.imag))
        store(buffers, o, ai - bi + (x * w.real + y * w.imag))
    if transform(buffers, first, second, half, radices, twiddles):
        first, second = second, first
    for o in range(first, first + imaginary, LANES):
        x, y = load(buffers, o), load(buffers, o + imaginary)
        store(buffers, o + imaginary, 0.5 * x * x)  # parts exchanged again
        store(buffers, o, 0.5 * y * y)
    if transform(buffers, first, second, half, radices, twiddles):
        first, second = second, first
    scale = 0.25 / half
    for k in range(kept):
        w, o, m = apart[k], first + k * LANES, first + (half - k) % half * LANES
        ar, ai, br, bi = load(buffers, o), load(buffers, imaginary + o), load(buffers, m), load(buffers, imaginary + m)
        rates, dr, di = scale * load(slope, k * LANES), ar - br, ai + bi
        # X = ½(a + b − i·w·(a − b)), b conjugate, and N = −i·slope·X
        store(out, place + k * LANES, rates * (ai - bi - (dr * w.real - di * w.imag)))
        store(out, place + slope.size + k * LANES, 0.0 - rates * (ar + br + (dr * w.imag + di * w.real)))


@numba.njit(cache=True, nogil=True)
def _combine(out, size, beyond, weights, number, parts, x, place, next_part, new):  # type: ignore[no-untyped-def]
    """out ← w·x, or out + w·x unless it is ``new``, for complex numbers in two parts; weights have one if they are
    real."""
    own = number * parts * size
    for o in range(0, size, LANES):
        wr, xr, xi = load(weights, own + o), load(x, place + o), load(x, place + next_part + o)
        yr, yi = wr * xr, wr * xi
        if parts == 2:
            wi = load(weights, own + size + o)
            yr, yi = yr - wi * xi, yi + wi * xr
        if not new:
            yr, yi = load(out, o) + yr, load(out, beyond + o) + yi
        store(out, o, yr)
        store(out, beyond + o, yi)


@numba.njit(cache=True, nogil=True)
def _march(v, steps, weights, terms, to, slope, half, radices, twiddles, apart):  # type: ignore[no-untyped-def]
    """Steps of the modes v (part, mode × lane), in place. ``terms`` are rows (stage, source, weight): source −1 is v,
    others are the rates of earlier stages; weights are (number, part, mode × lane)."""
    stages, size, beyond, parts = terms[-1, 0] + 1, v.shape[1], (half + 1) * LANES, weights.shape[1]
    rates = aligned(2 * stages * size, np.float64).reshape(stages, 2, size)
    stage = aligned(2 * beyond, np.float64).reshape(2, beyond)
    buffers = aligned(4 * half * LANES, np.float64).reshape(4, half * LANES)
    stage[:] = 0.0
    for _ in range(steps):
        for part in range(2):
            stage[part, :size] = v[part]
        for i in range(stages):
            _square(stage, rates, 2 * size * i, to, slope, buffers, half, radices, twiddles, apart)
            for row in range(terms.shape[0]):
                source = terms[row, 1]
                if terms[row, 0] == i and source < 0:
                    _combine(stage, size, beyond, weights, terms[row, 2], parts, v, 0, size, True)
                elif terms[row, 0] == i:
                    place = 2 * size * source
                    _combine(stage, size, beyond, weights, terms[row, 2], parts, rates, place, size, False)
        for part in range(2):
            v[part] = stage[part, :size]


@numba.njit(cache=True, nogil=True)
def _advance(first, last, modes, steps, weights, terms, to, slope, half, radices, twiddles, apart):  # type: ignore[no-untyped-def]
    """Modes (sample, mode) of samples first … last − 1 after the steps (sample,) of each, in place: neighbours with
    equal numbers of steps side by side, in lanes of which the last may be empty."""
    numbers, parts, _, kept = weights.shape
    size = kept * LANES
    v, slopes = aligned(2 * size, np.float64).reshape(2, size), aligned(size, np.float64)
    own, start = aligned(numbers * parts * size, np.float64).reshape(numbers, parts, size), first
    while start < last:
        end = start + 1
        while end < last and end - start < LANES and steps[end] == steps[start]:
            end += 1
        for lane in range(LANES):
            sample = min(start + lane, end - 1)
            for k in range(kept):
                o = k * LANES + lane
                v[0, o], v[1, o], slopes[o] = modes[sample, k].real, modes[sample, k].imag, slope[sample, k]
                for number in range(numbers):
                    for part in range(parts):
                        own[number, part, o] = weights[number, part, sample, k]
        _march(v, steps[start], own, terms, to, slopes, half, radices, twiddles, apart)
        for sample in range(start, end):
            for k in range(kept):
                o = k * LANES + sample - start
                modes[sample, k] = complex(v[0, o], v[1, o])
        start = end


class Lines(NamedTuple):
    """Lines with the tableau of their steps: ``terms`` and ``weights`` as in ``_march``, but (number, part, sample,
    mode); ``rest`` (sample, mode) are the factors of modes that are not kept."""

    terms: Array
    weights: Array
    rest: Array
    to: Array
    slope: Array
    plan: LinePlan

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
        laid = np.ascontiguousarray(np.stack(arrays)[..., :kept])
        slope = np.ascontiguousarray(quadratic.slope, dtype=np.float64)
        rest = tableau.factors[-1][:, 0, kept:]
        return cls(np.array(terms, dtype=np.int64), laid, rest, to, slope, plan)

    def advanced(self, u: Array, steps: Array) -> Array:
        """The lines u (sample, n) after the steps (sample,) of each; those with equal numbers are neighbours."""
        modes, kept = scipy.fft.rfft(u, axis=1, norm="forward"), self.weights.shape[-1]
        if self.rest.size:
            modes[:, kept:] *= self.rest ** steps[:, None]
        own, counts = np.ascontiguousarray(modes[:, :kept]), np.ascontiguousarray(steps, dtype=np.int64)
        arguments = (own, counts, self.weights, self.terms, self.to, self.slope, *self.plan)
        updates = 100.0 * counts.sum() * self.weights.shape[0] * kept
        in_parts(lambda first, last: _advance(first, last, *arguments), len(u), updates, LANES)
        modes[:, :kept] = own
        out: Array = scipy.fft.irfft(modes, u.shape[1], axis=1, norm="forward")
        return out


def _parted(values: Array) -> Array:
    """Real and imaginary parts (2, …) of complex values; (1, …) of real ones."""
    return np.stack([values.real, values.imag]) if np.iscomplexobj(values) else values[None]
