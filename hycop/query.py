"""A query: an initial state, its setting, and the time at which the solution is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.boundary import sides_of
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import AXES, Array, Grid, all_finite, changed, of_one_sign, prolong, restrict, within_neighbours


@dataclass(frozen=True)
class Channel:
    """One component of the state. For a vector component, ``normal`` is the axis along which it points; a wall flips
    its sign."""

    name: str
    normal: int | None = None


def real_numbers(name: str, value: object) -> Array:
    """The value as a floating-point array, or an error that says why it is none."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    if np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked values, which are not known: fill them, as {name}.filled(0.0)")
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise InvalidInputError(f"{name} is ragged: give rows of equal length") from None
    if numbers.dtype.kind in "USO":
        shown = f" ({value!r:.40})" if numbers.ndim == 0 else ""
        raise InvalidInputError(f"{name} has dtype {numbers.dtype}{shown}: give real numbers, not text or objects")
    if numbers.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} has dtype {numbers.dtype}: give real numbers")
    return numbers if numbers.dtype in (np.float32, np.float64) else numbers.astype(np.float64)


def _column(name: str, column: Array, batch: int) -> Array:
    """Real numbers as one for each sample, or an error that says what is wrong with them."""
    if not column.ndim:
        column = np.full(batch, float(column))
    column = column.astype(np.float64, copy=False)
    if column.shape != (batch,):
        raise InvalidInputError(f"{name} has shape {column.shape}: give one number, or one per sample, ({batch},)")
    if not all_finite(column):
        bad = int(np.flatnonzero(~np.isfinite(column))[0])
        raise InvalidInputError(f"{name} is {column[bad]} for sample {bad}: it must be finite")
    return column


class FieldError(IncompatibleError):
    """A coefficient varies in space where a constant one is needed; ``run`` adds the primitive that needs it."""


def _coefficient(name: str, value: object, grid: Grid) -> Array:
    """One number per sample, (batch,), or a field, (batch, *grid)."""
    found = real_numbers(name, value)
    if found.ndim == 0 or found.shape == (grid.batch,):
        return _column(name, found, grid.batch)
    if found.shape not in (grid.shape, (grid.batch, *grid.shape)):
        raise InvalidInputError(
            f"{name} has shape {found.shape}: give one number, one per sample, ({grid.batch},), or a field of cell "
            f"averages, {grid.shape} or {(grid.batch, *grid.shape)}"
        )
    field = np.ascontiguousarray(np.broadcast_to(found.astype(np.float64, copy=False), (grid.batch, *grid.shape)))
    if not all_finite(field):
        bad = int(np.argwhere(~np.isfinite(field))[0, 0])
        raise InvalidInputError(f"{name} has a NaN or infinite value in sample {bad}: it must be finite")
    return field


def _regridded(field: Array, old: Grid, new: Grid) -> Array:
    """A field (batch, *grid) on other cells of the same boxes: its parts, or the means over blocks."""
    if old.shape == new.shape:
        return field
    factor = new.shape[0] // old.shape[0]
    if all(n % m == 0 for n, m in zip(old.shape, new.shape, strict=True)):
        return restrict(field, new.shape)
    if new.shape != tuple(n * factor for n in old.shape):
        raise InvalidInputError(f"a field cannot go from {old.shape} to {new.shape} cells: one must divide the other")
    # at the ends a field has neither the value nor the slope of the state: its own quartic is continued there
    ends = tuple(name if name == "periodic" else "outflow" for name in old.boundary)
    fine = within_neighbours(prolong(field[:, None], ends, factor)[:, 0], field, ends, factor)
    return of_one_sign(fine[:, None], field[:, None], factor)[:, 0]


def checked_channels(channels: object, axes: int) -> tuple[Channel, ...]:
    """Channels of a setting with that many axes; a name alone stands for a scalar channel.

    >>> checked_channels(("u", Channel("mx", normal=0)), axes=1)
    (Channel(name='u', normal=None), Channel(name='mx', normal=0))
    """
    if isinstance(channels, str | Channel):
        channels = (channels,)
    if not isinstance(channels, Iterable):
        raise InvalidInputError(f"channels {channels!r:.60}: give a tuple of channels, as (Channel('u'),)")
    found = tuple(Channel(each) if isinstance(each, str) else each for each in channels)
    for each in found:
        if not isinstance(each, Channel):
            raise InvalidInputError(f"channel {each!r:.60}: give a name or a Channel, as Channel('mx', normal=0)")
        if each.normal is not None and not 0 <= each.normal < axes:
            raise InvalidInputError(
                f"channel '{each.name}' points along axis {each.normal}, but the grid has {axes}; axes count from 0"
            )
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"channels {', '.join(names)}: each needs a name of its own")
    return found


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything a primitive may know besides the state: grid, channels and physical coefficients by name.

    A coefficient is one number per sample, one for all, or a field: cell averages (batch, *grid) or (*grid). One that
    belongs to an axis ends in its letter (``cx``, ``Dy``). Channels may be given by their names.

    >>> setting = Setting(Grid.box((8,), batch=2), (Channel("u"),), {"cx": 1.5})
    >>> setting.param("cx"), setting.batch
    (array([1.5, 1.5]), 2)
    >>> Setting(Grid.box((3,)), ("u",), {"Dx": [0.1, 0.2, 0.1]}).field("Dx")
    array([[0.1, 0.2, 0.1]])
    """

    grid: Grid
    channels: tuple[Channel, ...]
    params: Mapping[str, Array]

    def __post_init__(self) -> None:
        if not isinstance(self.grid, Grid):
            raise InvalidInputError(f"grid is {type(self.grid).__name__}: give a Grid, as Grid.box((64,), lengths=1.0)")
        if not isinstance(self.params, Mapping):
            raise InvalidInputError(
                f"params are {type(self.params).__name__}: give coefficients by name, as {{'cx': 1.0, 'Dx': 0.1}}"
            )
        known = {name: _coefficient(f"parameter '{name}'", value, self.grid) for name, value in self.params.items()}
        object.__setattr__(self, "channels", checked_channels(self.channels, self.grid.axes))
        object.__setattr__(self, "params", known)
        for letter, boundary in zip(AXES, self.grid.boundary, strict=False):
            for side in sides_of(boundary):
                if len(side.values) not in (0, 1, len(self.channels)):
                    raise InvalidInputError(
                        f"boundary {side} along {letter} has {len(side.values)} values for {len(self.channels)} "
                        "channels; give one for all, or one each"
                    )

    @property
    def batch(self) -> int:
        return self.grid.batch

    def _given(self, name: str) -> Array:
        if name not in self.params:
            known = ", ".join(self.params) or "none"
            raise InvalidInputError(f"parameter '{name}' is missing (given: {known}); add it to params")
        return self.params[name]

    def param(self, name: str) -> Array:
        """A constant coefficient, (batch,); one that varies in space is refused."""
        found = self._given(name)
        if found.ndim > 1:
            raise FieldError(f"parameter '{name}' varies in space, but a constant one is needed here")
        return found

    def field(self, name: str) -> Array:
        """A coefficient in every cell, (batch, *grid), whether it varies in space or not. Do not write into it."""
        found = self._given(name)
        if found.ndim > 1:
            return found
        return np.broadcast_to(found.reshape((-1,) + (1,) * self.grid.axes), (self.batch, *self.grid.shape))

    @property
    def fields(self) -> dict[str, Array]:
        """The coefficients that vary in space, by name."""
        return {name: value for name, value in self.params.items() if value.ndim > 1}

    def averaged(self) -> Setting:
        """The setting with one number for each field: the mean of its size, with the sign of its mean."""
        means = {}
        for name, value in self.fields.items():
            flat = value.reshape(self.batch, -1)
            means[name] = np.copysign(np.abs(flat).mean(axis=1), flat.mean(axis=1))
        return changed(self, params={**self.params, **means}) if means else self

    def per_axis(self, letter: str) -> Array:
        """The coefficients ``letter`` + x, y, z of the grid's axes as one array (batch, axis)."""
        out = np.empty((self.batch, self.grid.axes))
        for axis, name in zip(range(self.grid.axes), AXES, strict=False):
            out[:, axis] = self.param(letter + name)
        return out

    def wall_signs(self) -> Array:
        """(channel, axis): −1 where a wall mirrors a channel with the opposite sign, 1 elsewhere."""
        axes = range(self.grid.axes)
        return np.array([[-1.0 if channel.normal == axis else 1.0 for axis in axes] for channel in self.channels])

    def take(self, samples: Array | slice) -> Setting:
        params = {name: value[samples] for name, value in self.params.items()}
        return changed(self, grid=self.grid.take(samples), params=params)

    def with_grid(self, grid: Grid) -> Setting:
        """The setting on another grid of as many samples. Fields go to finer or coarser cells of the same boxes."""
        moved = {name: _regridded(value, self.grid, grid) for name, value in self.fields.items()}
        return replace(self, grid=grid, params={**self.params, **moved})

    def refined(self, factor: int) -> Setting:
        """The setting with ``factor`` times the cells along each axis."""
        grid = self.grid.refined(factor)
        moved = {name: _regridded(value, self.grid, grid) for name, value in self.fields.items()}
        return changed(self, grid=grid, params={**self.params, **moved})

    @classmethod
    def joined(cls, parts: Sequence[Setting]) -> Setting:
        """The samples of several settings that differ in coefficients and lengths only."""
        first = parts[0]
        lengths = np.concatenate([part.grid.lengths for part in parts])
        params = {name: np.concatenate([part.params[name] for part in parts]) for name in first.params}
        return cls(Grid(first.grid.shape, lengths, first.grid.boundary), first.channels, params)


def checked_state(u: object, setting: Setting, name: str = "u0") -> Array:
    """The state as a floating-point array of the setting's shape, or an error that says what is wrong with it."""
    state = real_numbers(name, u)
    expected = (setting.batch, len(setting.channels), *setting.grid.shape)
    if state.shape != expected:
        names = ", ".join(channel.name for channel in setting.channels)
        # the grid may have been made from this shape, so only the channels show the mistake
        if state.ndim == len(expected) and state.shape[1] != expected[1] == state.shape[-1]:
            raise InvalidInputError(
                f"{name} has shape {state.shape}, with channels [{names}] last: channels come second, "
                f"as np.moveaxis({name}, -1, 1)"
            )
        raise InvalidInputError(f"{name} has shape {state.shape}: give {expected}, (batch, channels [{names}], *grid)")
    if not all_finite(state):
        finite = np.isfinite(state.reshape(setting.batch, -1)).all(axis=1)
        raise InvalidInputError(f"{name} has a NaN or infinite value in sample {int(np.flatnonzero(~finite)[0])}")
    return state


@dataclass(frozen=True, eq=False)
class Query:
    """A batch of queries: the initial state ``u0``, its ``setting``, and the ``time`` at which the state is wanted."""

    u0: Array
    setting: Setting
    time: Array

    def __post_init__(self) -> None:
        if not isinstance(self.setting, Setting):
            raise InvalidInputError(
                f"setting is {type(self.setting).__name__}: give a Setting, as Setting(grid, channels, params)"
            )
        object.__setattr__(self, "u0", checked_state(self.u0, self.setting))
        time = _column("time", real_numbers("time", self.time), self.setting.batch)
        if np.minimum.reduce(time, initial=0.0) < 0:
            sample = int(np.flatnonzero(time < 0)[0])
            raise InvalidInputError(f"time is {time[sample]} for sample {sample}: it must not be negative")
        object.__setattr__(self, "time", time)

    @property
    def batch(self) -> int:
        return self.setting.batch

    @property
    def grid(self) -> Grid:
        return self.setting.grid

    def take(self, samples: Array | slice) -> Query:
        return changed(self, u0=self.u0[samples], setting=self.setting.take(samples), time=self.time[samples])

    def at(self, times: Sequence[float] | Array) -> Query:
        """Each initial state at each of several times: batch × len(times) queries, sample by sample."""
        times = real_numbers("times", times).reshape(-1)
        if not times.size:
            raise InvalidInputError("times is empty: give at least one time")
        samples = np.repeat(np.arange(self.batch), times.size)
        return Query(self.u0[samples], self.setting.take(samples), np.tile(times, self.batch))
