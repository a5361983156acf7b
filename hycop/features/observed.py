"""A query as features see it: coefficients, and statistics of the state that do not depend on the grid."""

from __future__ import annotations

from functools import cached_property, lru_cache, partial

import numpy as np
import scipy.fft

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.pde import Equation
from hycop.primitive import transforms_of
from hycop.query import Query

LOWEST_MODES = 6
"""Highest mode number along each axis in the statistics of a state."""

TINY = 1e-12
"""Keeps logarithms and ratios of absent effects finite."""


def log(values: Array) -> Array:
    return np.log10(np.maximum(np.abs(values), TINY))


class Observed:
    """A query with statistics of its state from its lowest modes, corrected for the smoothing by cell averages. Each is
    computed once, however many features need it. ``equation`` gives the time scales of the coefficients."""

    def __init__(self, query: Query, equation: Equation | None = None) -> None:
        self.query = query
        self.equation = equation
        self.params = query.setting.params
        self.grid = query.grid
        self.time = query.time
        self.batch = query.batch
        self._energies: dict[int, Array] = {}

    def param(self, name: str) -> Array:
        return self.query.setting.param(name)

    def length(self, axis: int) -> Array:
        if axis >= self.grid.axes:
            raise InvalidInputError(f"there is no axis {AXES[axis]} on a grid of {self.grid.axes} axes")
        return self.grid.lengths[:, axis]

    def channel(self, name: str) -> int:
        """The position of a channel."""
        names = [entry.name for entry in self.query.setting.channels]
        if name not in names:
            raise InvalidInputError(f"there is no channel '{name}' (there are {', '.join(names)})")
        return names.index(name)

    def mean(self, position: int) -> Array:
        """Mean of a channel over the box."""
        out: Array = self.query.u0[:, position].reshape(self.batch, -1).mean(axis=1)
        return out

    @cached_property
    def squares(self) -> tuple[Array, ...]:
        """Squared mode numbers of the lowest modes along each axis, ready to broadcast over ``energies``."""
        return tuple(axis[3] for axis in self._axes)

    def energies(self, position: int = 0) -> Array:
        """Energies (batch, modes…) of a channel's lowest modes."""
        if position not in self._energies:
            u = self.query.u0[:, position].astype(np.float64)
            for axis, (modes, kept, smoothing, _) in enumerate(self._axes):
                u = np.take(modes(u, axis=1 + axis, norm="ortho"), kept, axis=1 + axis)
                u = u / smoothing
            self._energies[position] = np.abs(u) ** 2 / self.grid.cells
        return self._energies[position]

    @cached_property
    def _axes(self) -> list[tuple[partial[Array], Array, Array, Array]]:
        grid = self.grid
        return [
            _lowest_modes(n, transform, axis, grid.axes)
            for axis, (n, transform) in enumerate(zip(grid.shape, transforms_of(grid), strict=True))
        ]

    def mean_and_variance(self, position: int = 0) -> tuple[Array, Array]:
        """Size of the mean of a channel, and its variance over the lowest modes."""
        flat = self.energies(position).reshape(self.batch, -1)
        return np.sqrt(flat[:, 0]), flat[:, 1:].sum(axis=1)

    def squared_slope(self, axis: int, position: int = 0) -> Array:
        """⟨u_i²⟩ (L/2π)²: energies weighted by the squared mode numbers along an axis."""
        self.length(axis)
        weighted: Array = self.energies(position) * self.squares[axis]
        out: Array = weighted.reshape(self.batch, -1).sum(axis=1)
        return out

    def rms(self, position: int) -> Array:
        """Root mean square of a channel's lowest modes, the mean among them."""
        return np.sqrt(self.energies(position).reshape(self.batch, -1).sum(axis=1))


@lru_cache(maxsize=256)
def _lowest_modes(n: int, transform: str, axis: int, axes: int) -> tuple[partial[Array], Array, Array, Array]:
    """For an axis of n cells: its transform, the kept modes, the factors by which cell averages smooth them, and their
    squared numbers."""
    number = np.fft.fftfreq(n, 1.0 / n) if transform == "fourier" else np.arange(n, dtype=np.float64)
    kept = np.flatnonzero(np.abs(number) <= min(LOWEST_MODES, (n - 1) // 2))
    modes = partial(scipy.fft.fft) if transform == "fourier" else partial(scipy.fft.dct, type=2)
    # a cosine of number j has half the wavenumber of a Fourier mode of the same number
    wave = number[kept] if transform == "fourier" else 0.5 * number[kept]
    view = (1,) * (1 + axis) + (-1,) + (1,) * (axes - axis - 1)
    return modes, kept, np.sinc(wave / n).reshape(view), (wave**2).reshape(view)
