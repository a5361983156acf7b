"""A query as features see it: coefficients, and statistics of the state that do not depend on the grid."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from math import prod

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array, changed
from hycop.kernels.small_products import COLUMNS as TILE
from hycop.kernels.small_products import times, times_from_left
from hycop.pde import Equation
from hycop.primitive import Content, is_small, transforms_of
from hycop.query import Query

LOWEST_MODES = 6
"""Highest mode number along each axis in the statistics of a state."""

SETTINGS = 64
"""How many settings are kept with what features have found out about them."""

TINY = 1e-12
"""Keeps logarithms and ratios of absent effects finite."""


def log(values: Array) -> Array:
    return np.log10(np.maximum(np.abs(values), TINY))


class Observed:
    """A query with statistics of its state from its lowest modes, corrected for the smoothing by cell averages. Each is
    computed once, however many features need it. ``equation`` gives the time scales of the coefficients. A coefficient
    that varies in space counts by the mean of its size; ``fields`` has all of it."""

    def __init__(self, query: Query, equation: Equation | None = None) -> None:
        self.fields = query.setting.fields
        self.query = changed(query, setting=query.setting.averaged()) if self.fields else query
        self.equation = equation
        self.params = self.query.setting.params
        self.grid = query.grid
        self.time = query.time
        self.batch = query.batch
        self._energies: dict[int, Array] = {}
        self._moments: dict[int, tuple[Array, Array]] = {}
        self._slopes: dict[int, Array] = {}
        self._found = _found(Content(query.setting), query.time.tobytes()) if is_small(query.setting) else {}

    def once(self, key: Hashable, compute: Callable[[], Array]) -> Array:
        """What does not depend on the state, made before if possible for a query with this setting and time. Do not
        write into it."""
        if key not in self._found:
            self._found[key] = compute()
            self._found[key].setflags(write=False)
        return self._found[key]

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
        u = self.query.u0[:, position].reshape(self.batch, -1)
        return np.add.reduce(u, axis=1, dtype=u.dtype) / u.dtype.type(self.grid.cells)

    def energies(self, position: int = 0) -> Array:
        """Energies (batch, modes…) of a channel's lowest modes: a cosine and a sine for each mode number of a periodic
        axis, a cosine for each of any other."""
        if position not in self._energies:
            u = np.ascontiguousarray(self.query.u0[:, position], dtype=np.float64)  # whatever view the user gave
            kept = [slice(None)]
            for axis in reversed(range(self.grid.axes)):
                n, transform = self.grid.shape[axis], transforms_of(self.grid)[axis]
                u = _in_modes(u, n, transform, 1 + axis)
                kept.insert(1, slice(_lowest_modes(n, transform)[1].size))
            u = u[tuple(kept)]
            self._energies[position] = u * u / self.grid.cells
        return self._energies[position]

    def mean_and_variance(self, position: int = 0) -> tuple[Array, Array]:
        """Size of the mean of a channel, and its variance over the lowest modes."""
        if position not in self._moments:
            flat = self.energies(position).reshape(self.batch, -1)
            self._moments[position] = np.sqrt(flat[:, 0]), np.add.reduce(flat[:, 1:], axis=1)
        return self._moments[position]

    def squared_slope(self, axis: int, position: int = 0) -> Array:
        """⟨u_i²⟩ (L/2π)²: energies weighted by the squared mode numbers along an axis."""
        self.length(axis)
        if position not in self._slopes:
            flat = self.energies(position).reshape(self.batch, 1, -1)
            self._slopes[position] = np.add.reduce(flat * _squares(self.grid.shape, transforms_of(self.grid)), axis=2)
        return self._slopes[position][:, axis]

    def rms(self, position: int) -> Array:
        """Root mean square of a channel's lowest modes, the mean among them."""
        return np.sqrt(np.add.reduce(self.energies(position).reshape(self.batch, -1), axis=1))


@lru_cache(maxsize=SETTINGS)
def _found(content: Content, times: bytes) -> dict[Hashable, Array]:
    return {}


def _in_modes(u: Array, n: int, transform: str, axis: int) -> Array:
    """u (batch, …, n, …) with an axis in its lowest modes and zeros after them, sample by sample, so that a sample's
    bits depend on nothing else."""
    modes, transposed = _matrices(n, transform)
    if axis == u.ndim - 1:
        rows = u if u.ndim == 3 else u.reshape(u.shape[0], -1, n)
        out = np.empty((*rows.shape[:2], modes.shape[2]))
        times(rows, modes, out)
    else:
        columns = u if u.ndim == 3 else u.reshape(-1, n, prod(u.shape[axis + 1 :]))
        out = np.empty((columns.shape[0], transposed.shape[1], columns.shape[2]))
        times_from_left(transposed, columns, out)
    return out.reshape(*u.shape[:axis], -1, *u.shape[axis + 1 :])


@lru_cache(maxsize=256)
def _matrices(n: int, transform: str) -> tuple[Array, Array]:
    """The lowest modes of an axis as (1, cell, mode) and (1, mode, cell), with zeros for modes up to a multiple of the
    numbers that products take at a time."""
    modes = _lowest_modes(n, transform)[0]
    padded = np.zeros((n, -(-modes.shape[1] // TILE) * TILE))
    padded[:, : modes.shape[1]] = modes
    return padded[None], np.ascontiguousarray(padded.T)[None]


@lru_cache(maxsize=64)
def _squares(shape: tuple[int, ...], transforms: tuple[str, ...]) -> Array:
    """Squared mode numbers along each axis of the lowest modes, (axis, mode)."""
    along = [_lowest_modes(n, each)[1] for n, each in zip(shape, transforms, strict=True)]
    return np.stack([each.ravel() for each in np.meshgrid(*along, indexing="ij")])


@lru_cache(maxsize=256)
def _lowest_modes(n: int, transform: str) -> tuple[Array, Array]:
    """For an axis of n cells: its lowest modes as the columns of an orthonormal matrix (cell, mode), divided by the
    factors by which cell averages smooth them, and their squared numbers."""
    number = np.arange(min(LOWEST_MODES, (n - 1) // 2) + 1, dtype=np.float64)
    # a cosine of number j has half the wavenumber of a Fourier mode of the same number
    wave = number if transform == "fourier" else 0.5 * number
    angle = 2.0 * np.pi / n * (np.arange(n)[:, None] + (0.0 if transform == "fourier" else 0.5)) * wave
    modes = np.cos(angle) * np.sqrt(np.where(number == 0, 1.0, 2.0) / n)
    if transform == "fourier":
        modes = np.hstack([modes, np.sqrt(2.0 / n) * np.sin(angle[:, 1:])])
        wave = np.concatenate([wave, wave[1:]])
    modes = modes / np.sinc(wave / n)
    modes.setflags(write=False)
    return modes, wave**2
