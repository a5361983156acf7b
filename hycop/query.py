"""A query: an initial state, its setting, and the time at which the solution is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array, Grid, changed


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


def _column(name: str, value: object, batch: int) -> Array:
    column = real_numbers(name, value)
    if not column.ndim:
        column = np.full(batch, float(column))
    column = column.astype(np.float64, copy=False)
    if column.shape != (batch,):
        raise InvalidInputError(f"{name} has shape {column.shape}: give one number, or one per sample, ({batch},)")
    if not np.isfinite(column).all():
        bad = int(np.flatnonzero(~np.isfinite(column))[0])
        raise InvalidInputError(f"{name} is {column[bad]} for sample {bad}: it must be finite")
    return column


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

    A coefficient is one number per sample, or one for all. One that belongs to an axis ends in its letter (``cx``,
    ``Dy``). Channels may be given by their names.

    >>> setting = Setting(Grid.box((8,), batch=2), (Channel("u"),), {"cx": 1.5})
    >>> setting.param("cx"), setting.batch
    (array([1.5, 1.5]), 2)
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
        columns = {name: _column(f"parameter '{name}'", value, self.grid.batch) for name, value in self.params.items()}
        object.__setattr__(self, "channels", checked_channels(self.channels, self.grid.axes))
        object.__setattr__(self, "params", columns)

    @property
    def batch(self) -> int:
        return self.grid.batch

    def param(self, name: str) -> Array:
        """A coefficient, (batch,)."""
        if name not in self.params:
            known = ", ".join(self.params) or "none"
            raise InvalidInputError(f"parameter '{name}' is missing (given: {known}); add it to params")
        return self.params[name]

    def per_axis(self, letter: str) -> Array:
        """The coefficients ``letter`` + x, y, z of the grid's axes as one array (batch, axis)."""
        return np.stack([self.param(letter + axis) for axis in AXES[: self.grid.axes]], axis=1)

    def wall_signs(self) -> Array:
        """(channel, axis): −1 where a wall mirrors a channel with the opposite sign, 1 elsewhere."""
        axes = range(self.grid.axes)
        return np.array([[-1.0 if channel.normal == axis else 1.0 for axis in axes] for channel in self.channels])

    def take(self, samples: Array | slice) -> Setting:
        params = {name: value[samples] for name, value in self.params.items()}
        return changed(self, grid=self.grid.take(samples), params=params)

    def with_grid(self, grid: Grid) -> Setting:
        return replace(self, grid=grid)

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
    if not np.isfinite(state).all():
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
        time = _column("time", self.time, self.setting.batch)
        if (time < 0).any():
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
