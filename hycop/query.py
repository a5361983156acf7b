"""What is asked: an initial state, its setting, and the time at which the solution is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array, Grid, changed


@dataclass(frozen=True)
class Channel:
    """One component of the state; ``normal`` is the axis along which a vector component points (a wall flips it)."""

    name: str
    normal: int | None = None


def _real(name: str, value: object) -> Array:
    try:
        numbers = np.asarray(value)
    except ValueError:
        raise InvalidInputError(f"{name} is ragged: rows of one length are needed") from None
    if numbers.dtype.kind not in "fiub":
        raise InvalidInputError(f"{name} has dtype {numbers.dtype}: real numbers are needed")
    return numbers if numbers.dtype in (np.float32, np.float64) else numbers.astype(np.float64)


def _column(name: str, value: object, batch: int) -> Array:
    column = _real(name, value)
    if column.ndim == 0:
        column = np.full(batch, float(column))
    column = column.astype(np.float64, copy=False)
    if column.shape != (batch,):
        raise InvalidInputError(f"{name} has shape {column.shape}: a number or ({batch},), one per sample, is needed")
    bad = np.flatnonzero(~np.isfinite(column))
    if bad.size:
        raise InvalidInputError(f"{name} is {column[bad[0]]} for sample {bad[0]}: it must be finite")
    return column


@dataclass(frozen=True, eq=False)
class Setting:
    """Everything a primitive may know besides the state: grid, channels and physical coefficients by name.

    A coefficient is one number per sample; one that belongs to an axis ends in its letter (``cx``, ``Dy``).

    >>> setting = Setting(Grid.box((8,), batch=2), (Channel("u"),), {"cx": 1.5})
    >>> setting.param("cx"), setting.batch
    (array([1.5, 1.5]), 2)
    """

    grid: Grid
    channels: tuple[Channel, ...]
    params: Mapping[str, Array]

    def __post_init__(self) -> None:
        columns = {name: _column(f"parameter '{name}'", value, self.grid.batch) for name, value in self.params.items()}
        names = [channel.name for channel in self.channels]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"channels {', '.join(names)}: each needs a name of its own")
        for channel in self.channels:
            if channel.normal is not None and not 0 <= channel.normal < self.grid.axes:
                raise InvalidInputError(
                    f"channel '{channel.name}' points along axis {channel.normal}, which is not there"
                )
        object.__setattr__(self, "channels", tuple(self.channels))
        object.__setattr__(self, "params", columns)

    @property
    def batch(self) -> int:
        return self.grid.batch

    def param(self, name: str) -> Array:
        """A coefficient (batch,); an error names the ones there are."""
        if name not in self.params:
            known = ", ".join(self.params) or "none"
            raise InvalidInputError(f"parameter '{name}' is missing from the setting (given: {known})")
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


def checked_state(u: object, setting: Setting, name: str = "u0") -> Array:
    """The state as a floating array of the setting's shape, or an error that names what is wrong with it."""
    state = _real(name, u)
    expected = (setting.batch, len(setting.channels), *setting.grid.shape)
    if state.shape != expected:
        names = ", ".join(channel.name for channel in setting.channels)
        raise InvalidInputError(
            f"{name} has shape {state.shape}, but the setting needs {expected}: (batch, channels [{names}], *grid)"
        )
    finite = np.isfinite(state.reshape(setting.batch, -1)).all(axis=1)
    if not finite.all():
        raise InvalidInputError(f"{name} has a NaN or infinite value in sample {int(np.flatnonzero(~finite)[0])}")
    return state


@dataclass(frozen=True, eq=False)
class Query:
    """A batch of questions: the state at ``time`` that follows from ``u0`` in its ``setting``."""

    u0: Array
    setting: Setting
    time: Array

    def __post_init__(self) -> None:
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
        """The same initial states asked at each of several times: sample-major, batch × len(times) questions."""
        times = _real("times", times).reshape(-1)
        if not times.size:
            raise InvalidInputError("times: at least one is needed")
        samples = np.repeat(np.arange(self.batch), times.size)
        return Query(self.u0[samples], self.setting.take(samples), np.tile(times, self.batch))
