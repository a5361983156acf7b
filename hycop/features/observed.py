"""A query as features see it: coefficients, and statistics of the state that do not depend on the grid."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from math import prod

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array, changed
from hycop.kernels.lowest_modes import moments
from hycop.kernels.small_products import COLUMNS as TILE
from hycop.kernels.small_products import times_from_left
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
        self._moments: dict[int, Array] = {}
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
        return self._moments_of(position)[:, 0]

    def mean_and_variance(self, position: int = 0) -> tuple[Array, Array]:
        """Size of the mean of a channel, and its variance over the lowest modes."""
        found = self._moments_of(position)
        return np.abs(found[:, 0]), found[:, 1]

    def squared_slope(self, axis: int, position: int = 0) -> Array:
        """⟨u_i²⟩ (L/2π)²: energies weighted by the squared mode numbers along an axis."""
        self.length(axis)
        return self._moments_of(position)[:, axis - self.grid.axes]

    def rms(self, position: int) -> Array:
        """Root mean square of a channel's lowest modes, the mean among them."""
        found = self._moments_of(position)
        return np.sqrt(found[:, 0] ** 2 + found[:, 1])

    def _moments_of(self, position: int) -> Array:
        """Mean and variance of a channel, and its squared slopes along three axes, those of the grid last."""
        if position not in self._moments:
            u = np.ascontiguousarray(self.query.u0[:, position], dtype=np.float64)  # whatever view the user gave
            self._moments[position] = moments_of(u, transforms_of(self.grid))
        return self._moments[position]


@lru_cache(maxsize=SETTINGS)
def _found(content: Content, times: bytes) -> dict[Hashable, Array]:
    return {}


def moments_of(u: Array, transforms: tuple[str, ...]) -> Array:
    """Of states u (batch, *grid), what ``Observed._moments_of`` says, (batch, 5)."""
    first, left, right, planes, rows, columns = _matrices(u.shape[1:], transforms)
    if u.ndim == 4:
        stack = np.empty((u.shape[0], first.shape[1], u.shape[2] * u.shape[3]))
        times_from_left(first, u.reshape(*u.shape[:2], -1), stack)
        stack = stack.reshape(-1, *u.shape[2:])
    else:
        stack = u.reshape(u.shape[0], prod(u.shape[1:-1]), u.shape[-1])
    out = np.empty((u.shape[0], 2 + len(AXES)))
    moments(stack, left, right, planes, rows, columns, prod(u.shape[1:]), out)
    return out


@lru_cache(maxsize=64)
def _matrices(shape: tuple[int, ...], transforms: tuple[str, ...]) -> tuple[Array, ...]:
    """The lowest modes of three axes, (1, mode, cell) of the first two and (1, cell, mode) of the last, and their
    squared numbers. An axis that is missing in front has one cell."""
    missing = [(np.ones((1, 1)), np.zeros(1))] * (len(AXES) - len(shape))
    (first, left, right), squares = zip(*missing, *map(_lowest_modes, shape, transforms), strict=True)
    return np.ascontiguousarray(first.T)[None], np.ascontiguousarray(left.T)[None], right[None], *squares


def _lowest_modes(n: int, transform: str) -> tuple[Array, Array]:
    """For an axis of n cells: its lowest modes as columns (cell, mode) of squares n, a cosine and a sine for each mode
    number of a periodic axis, a cosine for each of any other; and their squared numbers. Modes are divided by the
    factors by which cell averages smooth them, and zeros follow up to a multiple of what products take at a time."""
    number = np.arange(min(LOWEST_MODES, (n - 1) // 2) + 1, dtype=np.float64)
    # a cosine of number j has half the wavenumber of a Fourier mode of the same number
    wave = number if transform == "fourier" else 0.5 * number
    angle = 2.0 * np.pi / n * (np.arange(n)[:, None] + (0.0 if transform == "fourier" else 0.5)) * wave
    modes = np.cos(angle) * np.sqrt(np.where(number == 0, 1.0, 2.0))
    if transform == "fourier":
        modes = np.hstack([modes, np.sqrt(2.0) * np.sin(angle[:, 1:])])
        wave = np.concatenate([wave, wave[1:]])
    missing = -wave.size % TILE
    return np.pad(modes / np.sinc(wave / n), ((0, 0), (0, missing))), np.pad(wave**2, (0, missing))
