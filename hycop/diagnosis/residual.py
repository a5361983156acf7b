"""What a residual consists of: its size, white noise, and structure that noise does not explain."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import fft

from hycop.grid import Array

WHITE = 0.75
"""Modes beyond this fraction of the highest one along every axis show the level of white noise."""

BANDS = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Bands of modes, as fractions of the highest one, in which structure is looked for."""

SURE = 4.0
"""Standard deviations by which a band must exceed the noise to count as structure."""

MEDIAN = 0.4549
"""The median of the square of a standard normal number."""


class Residual(NamedTuple):
    """Root mean squares over the samples: of the whole residual, of white noise in it, and of what is left."""

    size: float
    noise: float
    structure: float


def measured(residual: Array) -> Residual:
    """The parts of a weighted residual (batch, channel, *grid).

    White noise has equally large modes. Its level is the median of the squares of the highest ones, which smooth
    residuals do not reach; the excess of the lower modes is structure.
    """
    axes = tuple(range(2, residual.ndim))
    size = float(np.sqrt((residual**2).sum(axis=(1, *axes)).mean()))
    modes = fft.dctn(residual, type=2, axes=axes, norm="ortho") ** 2
    fraction = np.zeros(residual.shape[2:])
    least = np.ones(residual.shape[2:])
    for axis, n in enumerate(residual.shape[2:]):
        along = (np.arange(n) / n).reshape([-1 if other == axis else 1 for other in range(len(axes))])
        fraction, least = np.maximum(fraction, along), np.minimum(least, along)
    high = modes[..., least >= WHITE]
    level = np.median(high, axis=-1).mean(axis=0) / MEDIAN if high.shape[-1] else np.zeros(residual.shape[1])
    noise = float(level.sum()) * fraction.size
    structure = 0.0
    for low, top in pairwise(BANDS):
        inside = (fraction >= low) & (fraction < top)
        count = int(inside.sum())
        if count:
            energy = float(modes[..., inside].sum(axis=(1, 2)).mean())
            expected = float(level.sum()) * count
            doubt = SURE * expected * np.sqrt(2.0 / (count * residual.shape[0] * residual.shape[1]))
            structure += max(0.0, energy - expected - doubt)
    return Residual(size, float(np.sqrt(noise)), float(np.sqrt(structure)))
