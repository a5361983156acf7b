"""Transform pairs with a separable multiplier between them."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import scipy.fft

from hycop.kernels.convolution import convolves
from hycop.kernels.programs import convolve

Array = npt.NDArray[Any]

BLOCK = 2**17
"""Values that a thread takes through both transforms at a time: they stay in its cache, and calls cost little."""


@numba.njit(cache=True, nogil=True)
def _scale_modes(modes: Array, first: Array, second: Array, last: Array) -> None:
    """modes[s, c, i, j, :] *= first[s, i]·second[s, j]·last[s, :], in place."""
    samples, channels, n1, n2, n3 = modes.shape
    for sample in range(samples):
        for channel in range(channels):
            for i in range(n1):
                for j in range(n2):
                    factor = first[sample, i] * second[sample, j]
                    for k in range(n3):
                        modes[sample, channel, i, j, k] *= factor * last[sample, k]


@lru_cache(maxsize=64)
def _axes_with(transforms: tuple[str, ...], kind: str) -> tuple[int, ...]:
    return tuple(2 + axis for axis, name in enumerate(transforms) if name == kind)


def to_modes(u: Array, transforms: tuple[str, ...], workers: int = 1) -> Array:
    """The modes of u (batch, channel, *grid): cosines, then real Fourier modes, whose last axis has half of them."""
    cosine, fourier = _axes_with(transforms, "cosine"), _axes_with(transforms, "fourier")
    modes = scipy.fft.dctn(u, type=2, axes=cosine, workers=workers) if cosine else u
    if fourier:
        modes = scipy.fft.rfftn(modes, axes=fourier, workers=workers)
    return np.ascontiguousarray(modes)


def from_modes(modes: Array, transforms: tuple[str, ...], shape: tuple[int, ...], workers: int = 1) -> Array:
    """The inverse of ``to_modes``; may overwrite the modes."""
    cosine, fourier = _axes_with(transforms, "cosine"), _axes_with(transforms, "fourier")
    if fourier:
        sizes = tuple(shape[axis] for axis in fourier)
        modes = scipy.fft.irfftn(modes, s=sizes, axes=fourier, workers=workers, overwrite_x=True)
    if cosine:
        modes = scipy.fft.idctn(modes, type=2, axes=cosine, workers=workers, overwrite_x=True)
    return modes


def _multiplied(u: Array, transforms: tuple[str, ...], multipliers: tuple[Array, ...], workers: int) -> Array:
    modes = to_modes(u, transforms, workers)
    padding = 3 - len(transforms)
    ones = np.ones((u.shape[0], 1), dtype=modes.dtype)
    factors = [ones] * padding + [
        np.ascontiguousarray(multiplier[:, : modes.shape[2 + axis]], dtype=modes.dtype)
        for axis, multiplier in enumerate(multipliers)
    ]
    _scale_modes(modes.reshape(modes.shape[:2] + (1,) * padding + modes.shape[2:]), *factors)
    return from_modes(modes, transforms, u.shape, workers)


def weigh_modes(u: Array, transforms: tuple[str, ...], weights: tuple[Array, ...]) -> Array:
    """Transform each axis of u (batch, channel, *grid), multiply by Σ_axis weights[axis][sample, mode], and back."""
    modes = to_modes(u.astype(np.float64, copy=False), transforms)
    total: Array = np.zeros((1,) * modes.ndim)
    for axis, weight in enumerate(weights):
        shape = [u.shape[0], 1] + [1] * len(transforms)
        shape[2 + axis] = modes.shape[2 + axis]
        total = total + weight[:, : modes.shape[2 + axis]].reshape(shape)
    return from_modes(modes * total, transforms, u.shape).astype(u.dtype, copy=False)


def multiply_modes(u: Array, transforms: tuple[str, ...], multipliers: tuple[Array, ...]) -> Array:
    """Transform each axis of u (batch, channel, *grid), multiply by Π_axis multiplier[axis][sample, mode], and back."""
    if u.size <= BLOCK:
        return _multiplied(u, transforms, multipliers, 1)
    threads = numba.get_num_threads()
    samples = max(1, BLOCK // max(1, u[:1].size))
    if u.shape[0] <= samples or u.shape[0] < threads:
        return _multiplied(u, transforms, multipliers, threads)
    out = np.empty(u.shape, dtype=u.dtype)

    def advance(start: int) -> None:
        rows = slice(start, start + samples)
        out[rows] = _multiplied(u[rows], transforms, tuple(multiplier[rows] for multiplier in multipliers), 1)

    # threads of our own, because Numba's spin after their loops and so would slow SciPy's down; one pool a call
    # costs little and survives a fork
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(advance, range(0, u.shape[0], samples)):
            pass
    return out


def evolve(u: Array, transforms: tuple[str, ...], rates: tuple[Array, ...], durations: Array) -> Array:
    """exp(Σ_axis Σ_op durations[sample, op]·rates[axis][sample, op, mode]) applied to u in its transform space.

    A sample's result depends on the operators with a duration alone, not on those that others of the batch have.
    """
    if convolves(u.shape, transforms):
        return convolve(u, rates, durations)
    half = max((axis for axis, name in enumerate(transforms) if name == "fourier"), default=-1)
    if half >= 0 and u.size <= BLOCK:
        return _evolved(u, transforms, rates, durations)
    multipliers = []
    for axis, rate in enumerate(rates):
        modes = u.shape[2 + axis] // 2 + 1 if axis == half else u.shape[2 + axis]
        multipliers.append((_turned if half >= 0 else _grown)(rate[:, :, :modes], durations))
    return multiply_modes(u, transforms, tuple(multipliers))


NO_RATES = np.zeros((1, 1, 1), dtype=np.complex128)
"""Rates of an axis that is not there."""


def _evolved(u: Array, transforms: tuple[str, ...], rates: tuple[Array, ...], durations: Array) -> Array:
    """A small state, for which calls would take as long as the transforms: multipliers are made where they are used."""
    modes = to_modes(u, transforms)
    padding = 3 - len(transforms)
    # of one type and layout, so that the loop is compiled once
    along = [NO_RATES] * padding + [np.ascontiguousarray(rate, dtype=np.complex128) for rate in rates]
    taus = np.ascontiguousarray(durations, dtype=np.float64)
    _evolve_modes(modes.reshape(modes.shape[:2] + (1,) * padding + modes.shape[2:]), taus, *along)
    return from_modes(modes, transforms, u.shape)


def _turned(rates: Array, durations: Array) -> Array:
    """exp(Σ_op durations[sample, op]·rates[sample, op, mode]), complex even for real rates, because other operators of
    the batch decide whether they come as such."""
    out = np.empty((rates.shape[0], rates.shape[2]), dtype=np.complex128)
    _exponentials(np.ascontiguousarray(rates, dtype=np.complex128), np.ascontiguousarray(durations), out)
    return out


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exponential(rates: Array, durations: Array, sample: int, mode: int) -> complex:
    growth, turn, row = 0.0, 0.0, min(sample, rates.shape[0] - 1)
    for op in range(rates.shape[1]):
        tau = durations[sample, op]
        if tau != 0.0:  # a rate may be infinite
            growth += rates[row, op, mode].real * tau
            turn += rates[row, op, mode].imag * tau
    size = math.exp(growth)
    return complex(size * math.cos(turn), size * math.sin(turn)) if turn != 0.0 else complex(size, 0.0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _exponentials(rates: Array, durations: Array, out: Array) -> None:
    for sample in range(out.shape[0]):
        for mode in range(out.shape[1]):
            out[sample, mode] = _exponential(rates, durations, sample, mode)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _evolve_modes(modes: Array, durations: Array, first: Array, second: Array, last: Array) -> None:
    """``_scale_modes`` by exp(Σ_op durations[sample, op]·rates[sample, op, mode]) along each axis."""
    samples, channels, n1, n2, n3 = modes.shape
    a, b, c = np.empty(n1, modes.dtype), np.empty(n2, modes.dtype), np.empty(n3, modes.dtype)
    for sample in range(samples):
        for i in range(n1):
            a[i] = _exponential(first, durations, sample, i)
        for j in range(n2):
            b[j] = _exponential(second, durations, sample, j)
        for k in range(n3):
            c[k] = _exponential(last, durations, sample, k)
        for channel in range(channels):
            for i in range(n1):
                for j in range(n2):
                    factor = a[i] * b[j]
                    for k in range(n3):
                        modes[sample, channel, i, j, k] *= factor * c[k]


def _grown(rates: Array, durations: Array) -> Array:
    """The same for real rates."""
    exponents = np.zeros((rates.shape[0], rates.shape[2]))
    for op in range(rates.shape[1]):
        tau = durations[:, op, None]
        real = rates[:, op].astype(np.float64)  # NumPy warns of an imaginary part, which cosines do not have
        exponents += np.multiply(real, tau, out=np.zeros_like(exponents), where=tau != 0)
    return np.exp(exponents, out=exponents)
