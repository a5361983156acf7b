"""Statistics of a state from its lowest modes, freed of the smoothing by cell averages, so that no grid shows."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.fft

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.primitive import mode_numbers, transforms_of
from hycop.query import Query

LOWEST = 6
"""Modes up to this number along each axis count for the statistics of a state."""

TINY = 1e-12
"""Keeps logarithms and ratios of absent effects finite."""


def length(axis: int, query: Query) -> Array:
    if axis >= query.grid.axes:
        raise InvalidInputError(f"there is no axis {AXES[axis]} on a grid of {query.grid.axes} axes")
    return query.grid.lengths[:, axis]


def log(values: Array) -> Array:
    return np.log10(np.maximum(np.abs(values), TINY))


def channel(name: str, query: Query) -> int:
    """The position of a channel."""
    names = [entry.name for entry in query.setting.channels]
    if name not in names:
        raise InvalidInputError(f"there is no channel '{name}' (there are {', '.join(names)})")
    return names.index(name)


def low_energies(query: Query, position: int = 0) -> tuple[Array, list[Array]]:
    """Energies (batch, modes…) of a channel's lowest modes, and per axis the squared mode numbers."""
    u = query.u0[:, position].astype(np.float64)
    squares: list[Array] = []
    for axis, (n, transform) in enumerate(zip(query.grid.shape, transforms_of(query.grid), strict=True)):
        number = mode_numbers(query.grid, axis)
        kept = np.flatnonzero(np.abs(number) <= min(LOWEST, (n - 1) // 2))
        modes = scipy.fft.fft if transform == "fourier" else partial(scipy.fft.dct, type=2)
        u = np.take(modes(u, axis=1 + axis, norm="ortho"), kept, axis=1 + axis)
        # a cosine of number j has half the wavenumber of a Fourier mode of the same number
        wave = number[kept] if transform == "fourier" else 0.5 * number[kept]
        view = (1,) * (1 + axis) + (-1,) + (1,) * (query.grid.axes - axis - 1)
        u = u / np.sinc(wave / n).reshape(view)
        squares.append((wave**2).reshape(view))
    return np.abs(u) ** 2 / query.grid.cells, squares


def mean_and_variance(energies: Array) -> tuple[Array, Array]:
    flat = energies.reshape(energies.shape[0], -1)
    mean = flat[:, 0]
    return np.sqrt(mean), flat[:, 1:].sum(axis=1)


def mean(query: Query, position: int) -> Array:
    """Mean of a channel over the box."""
    out: Array = query.u0[:, position].reshape(query.batch, -1).mean(axis=1)
    return out


def rms(query: Query, position: int) -> Array:
    """Root mean square of a channel's lowest modes, the mean among them."""
    energies, _ = low_energies(query, position)
    return np.sqrt(energies.reshape(query.batch, -1).sum(axis=1))
