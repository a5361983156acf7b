"""What a residual consists of: its size, white noise, and structure that noise does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import fft

from hycop.grid import Array

WHITE = 0.5
"""Modes beyond this fraction of the highest one along every axis show the level of white noise."""

BANDS = (0.0, 0.125, 0.25, 0.5, 1.1)
"""Bands of modes, as fractions of the highest one, in which structure is looked for."""

SURE = 4.0
"""Standard deviations by which a band must exceed the noise to count as structure."""

REAL, COMPLEX = (0.4549, 5.5), (0.6931, 4.2)
"""Median of the squares of standard normal modes, and n times the relative variance of a median of n such squares:
of cosines, and of Fourier modes, which come in pairs."""


class Residual(NamedTuple):
    """Root mean squares over the samples: of the whole residual, of white noise in it, and of what is left."""

    size: float
    noise: float
    structure: float


def measured(residual: Array, boundary: Sequence[str]) -> Residual:
    """The parts of a weighted residual (batch, channel, *grid).

    White noise has equally large modes. Its level is the median of the squares of the highest ones, which smooth
    residuals do not reach; the excess of the lower modes is structure.
    """
    axes = tuple(range(2, residual.ndim))
    size = float(np.sqrt((residual**2).sum(axis=(1, *axes)).mean()))
    modes, highest, lowest = _squared_modes(residual, boundary)
    median, scatter = COMPLEX if "periodic" in boundary else REAL
    high = modes[..., lowest >= WHITE]
    if not high.shape[-1]:
        return Residual(size, 0.0, size)
    level = float((np.median(high, axis=-1).mean(axis=0) / median).sum())
    fields = residual.shape[0] * residual.shape[1]
    structure = 0.0
    for low, top in pairwise(BANDS):
        inside = (highest >= low) & (highest < top)
        count = int(inside.sum())
        if count:
            energy = float(modes[..., inside].sum(axis=(1, 2)).mean())
            doubt = SURE * np.sqrt(2.0 / (count * fields) + scatter / (high.shape[-1] * fields))
            structure += max(0.0, energy - level * count * (1 + doubt))
    return Residual(size, float(np.sqrt(level * highest.size)), float(np.sqrt(structure)))


def white_level(field: Array, boundary: Sequence[str]) -> Array:
    """Variance (batch, channel) of white noise in fields, from their highest modes; zero if the grid has too few."""
    modes, _, lowest = _squared_modes(field, boundary)
    high = modes[..., lowest >= WHITE]
    if not high.shape[-1]:
        return np.zeros(field.shape[:2])
    return np.asarray(np.median(high, axis=-1) / (COMPLEX if "periodic" in boundary else REAL)[0])


def _squared_modes(residual: Array, boundary: Sequence[str]) -> tuple[Array, Array, Array]:
    """Squares of the modes that fit the box, and the largest and smallest of their numbers along the axes, as fractions
    of the highest number."""
    modes, shape = residual, residual.shape[2:]
    highest, lowest = np.zeros(shape), np.ones(shape)
    for axis, (n, kind) in enumerate(zip(shape, boundary, strict=True)):
        number = np.arange(n)
        if kind == "periodic":
            modes = fft.fft(modes, axis=2 + axis, norm="ortho")
            fraction = np.minimum(number, n - number) / max(0.5 * n, 1.0)
        else:
            parts = [fft.dct(part, type=2, axis=2 + axis, norm="ortho") for part in (modes.real, modes.imag)]
            modes = parts[0] + 1j * parts[1]
            fraction = number / n
        along = fraction.reshape([-1 if other == axis else 1 for other in range(len(shape))])
        highest, lowest = np.maximum(highest, along), np.minimum(lowest, along)
    return np.abs(modes) ** 2, highest, lowest
