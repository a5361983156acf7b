"""Datasets: states at several times, with the times and the setting."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from operator import index as as_index
from typing import TYPE_CHECKING, Any

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.query import Channel, Query, Setting

if TYPE_CHECKING:
    import xarray as xr

# Every name that a file uses for something else, so that a dataset in memory can always be written.
ATTRIBUTES = (
    *("problem", "split", "boundary", "seed", "reference", "reference_error", "version", "schema"),
    "Conventions",
)
OF_ANSWERS = ("untrusted", "untrusted_reason", "error_estimate", "tolerance_met")
"""Variables (sample, time) of a model's answers, beside the states."""

RESERVED = frozenset({"sample", "time", "axis", "lengths", *OF_ANSWERS, *AXES, *ATTRIBUTES})
NO_SEED = -1
REAL = "fiub"  # kinds of dtype

CHECKED_VALUES = 2**22
"""Values that are checked at a time: the check must not take much more memory than the data."""

UNEVEN = 1e-2
"""Largest relative deviation of a spacing from the mean: single precision leaves some 1e-4."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples of a problem at a few times each; time index 0 is the initial state.

    ``states`` is (sample, time, channel, *grid) in float32 or float64 (any other real numbers become float64),
    ``times`` is (sample, time), or (time,) if all samples share them, and the batch of ``setting`` is the samples.
    ``reference`` names the solver that made the truth and ``reference_error`` is its own estimate of its error, if
    there is one. ``seed`` is -1 for data that were not made from a seed; ``version`` is that of the software that made
    them. ``untrusted`` (sample, time) marks predictions of a model outside its training, and ``reasons``
    (sample, time) says why, as a text that is empty elsewhere. ``error_estimate`` (sample, time) is the estimated
    relative error of predictions, infinite where a refinement of them failed, and ``tolerance_met`` (sample, time)
    marks those within the tolerance that was asked for.

    >>> from hycop.grid import Grid
    >>> from hycop.query import Channel
    >>> setting = Setting(Grid.box((4,), batch=2), (Channel("u"),), {"cx": 1.0})
    >>> data = Dataset("advection", "train", np.ones((2, 3, 1, 4)), [0.0, 0.1, 0.2], setting, 0, "exact")
    >>> data.query.time.tolist(), data.truth.shape, data.at(-1).query.time.tolist()
    ([0.1, 0.2, 0.1, 0.2], (4, 1, 4), [0.2, 0.2])
    """

    problem: str
    split: str
    states: Array
    times: Array
    setting: Setting
    seed: int = NO_SEED
    reference: str = "unknown"
    reference_error: float | None = None
    version: str = "unknown"
    untrusted: Array | None = None
    reasons: Array | None = None
    error_estimate: Array | None = None
    tolerance_met: Array | None = None

    def __post_init__(self) -> None:
        _check_names(self.setting)
        for field in ("problem", "split", "reference", "version"):
            if not isinstance(getattr(self, field), str):
                raise InvalidInputError(f"{field} is {getattr(self, field)!r}: a text is needed")
        states = _checked_states(self.states, self.setting)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "times", _checked_times(self.times, *states.shape[:2]))
        _check_repeated(states, self.times)
        object.__setattr__(self, "seed", _checked_seed(self.seed))
        object.__setattr__(self, "reference_error", _checked_error(self.reference_error))
        flags, reasons = _checked_flags(self.untrusted, self.reasons, states.shape[:2])
        object.__setattr__(self, "untrusted", flags)
        object.__setattr__(self, "reasons", reasons)
        object.__setattr__(self, "error_estimate", _checked_estimate(self.error_estimate, states.shape[:2]))
        if self.tolerance_met is not None:
            marks = _checked_marks("tolerance_met", self.tolerance_met, states.shape[:2])
            object.__setattr__(self, "tolerance_met", marks)

    @staticmethod
    def load(path: str | os.PathLike[str], problem: str | None = None, also: Collection[str] = ()) -> Dataset:
        """Read an ``.nc`` or ``.npz`` file. With ``problem``, refuse data of any other problem; ``also`` names other
        problems whose data are as good."""
        from hycop.data.netcdf import load  # which needs this class

        return load(path, problem, also)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.nc`` or ``.npz`` file: whole, or not at all."""
        from hycop.data.netcdf import save

        save(self, path)

    @staticmethod
    def from_xarray(contents: xr.Dataset, problem: str | None = None) -> Dataset:
        """The data of an xarray Dataset with the names and dimensions of a file (``hycop/data/layout.py``). With
        ``problem``, refuse data of any other problem."""
        from hycop.data.layout import from_memory  # which needs this class

        return from_memory(contents, problem)

    def to_xarray(self) -> xr.Dataset:
        """The same as an xarray Dataset: a variable (sample, time, x, …) for each channel, (sample,) for each
        coefficient."""
        from hycop.data.layout import to_xarray

        return to_xarray(self)

    @property
    def samples(self) -> int:
        return self.setting.batch

    @property
    def query(self) -> Query:
        """Every sample at every later time: samples × (times - 1) queries, those of the first sample first.

        The time of a query counts from the initial state.
        """
        self.check_later()
        samples = np.repeat(np.arange(self.samples), self.times.shape[1] - 1)
        elapsed = self.times[:, 1:] - self.times[:, :1]
        return Query(self.states[samples, 0], self.setting.take(samples), elapsed.reshape(-1))

    @property
    def truth(self) -> Array:
        """The states that answer ``query``, (batch, channel, *grid)."""
        self.check_later()
        return self.states[:, 1:].reshape(-1, *self.states.shape[2:])

    def arranged(self, channels: Sequence[Channel]) -> Dataset:
        """The same data with their channels in this order, found by their names."""
        have = [channel.name for channel in self.setting.channels]
        wanted = [channel.name for channel in channels]
        if sorted(have) != sorted(wanted):
            raise InvalidInputError(
                f"the data have the channels {', '.join(have)}, but {', '.join(wanted)} are needed; rename or leave out"
            )
        order = [have.index(name) for name in wanted]
        setting = Setting(self.setting.grid, tuple(channels), self.setting.params)
        return replace(self, states=self.states[:, :, order], setting=setting)

    def take(self, samples: Array | slice) -> Dataset:
        """Some of the samples, at all their times."""
        return replace(
            self,
            states=self.states[samples],
            times=self.times[samples],
            setting=self.setting.take(samples),
            **self._of_answers(lambda values: values[samples]),
        )

    def at(self, index: int) -> Dataset:
        """The initial states and only one of the later times; a negative index counts from the last."""
        return self.only([index])

    def only(self, indices: Sequence[int]) -> Dataset:
        """The initial states and only some of the later times."""
        times = self.times.shape[1]
        chosen = [0]
        for index in map(as_index, indices):
            chosen.append(index + times if index < 0 else index)
            if not 1 <= chosen[-1] < times:
                raise InvalidInputError(f"time index {index}: the later times of this dataset are 1 to {times - 1}")
        return replace(
            self,
            states=self.states[:, chosen],
            times=self.times[:, chosen],
            **self._of_answers(lambda values: values[:, chosen]),
        )

    def _of_answers(self, part: Callable[[Array], Array]) -> dict[str, Any]:
        """A part of what is known about the answers, if they are answers of a model."""
        known = {name: getattr(self, name) for name in ("untrusted", "reasons", "error_estimate", "tolerance_met")}
        return {name: None if values is None else part(values) for name, values in known.items()}

    def check_later(self) -> None:
        """Refuses data that hold initial states only."""
        if self.times.shape[1] == 1:
            raise InvalidInputError("states: the dataset has initial states only, so there is no later time to ask for")


def box_length(name: str, centres: Array) -> float:
    """n·Δ, the length of the box whose n cell centres these are, if they ascend by equal steps Δ.

    >>> box_length("x", np.array([0.5, 1.5, 2.5]))
    3.0
    """
    if not (np.isfinite(centres).all() and (np.diff(centres) > 0).all()):
        raise InvalidInputError(f"{name} must be finite and increasing")
    spacing = float(centres[-1] - centres[0]) / (centres.size - 1)
    if np.abs(np.diff(centres) - spacing).max() > UNEVEN * spacing:
        raise InvalidInputError(f"{name} is not uniform, which every grid here is")
    return centres.size * spacing


def _check_names(setting: Setting) -> None:
    seen: set[str] = set()
    roles = [("channel", channel.name) for channel in setting.channels]
    for role, name in roles + [("parameter", name) for name in setting.params]:
        if not name.isidentifier() or name in RESERVED:
            raise InvalidInputError(f"{role} '{name}': the name is reserved or not a plain word; choose another")
        if name in seen:
            raise InvalidInputError(
                f"{role} '{name}': the name is used twice; each channel and parameter needs its own"
            )
        seen.add(name)


def _checked_states(states: object, setting: Setting) -> Array:
    array = np.asarray(states)
    if array.dtype.kind not in REAL:
        raise InvalidInputError(f"states have dtype {array.dtype}: real numbers are needed")
    single = array.dtype.kind == "f" and array.dtype.itemsize == 4
    array = np.asarray(array, dtype=np.float32 if single else np.float64)
    tail = (len(setting.channels), *setting.grid.shape)
    if array.ndim != 2 + len(tail) or array.shape[0] != setting.batch or array.shape[2:] != tail:
        names = ", ".join(channel.name for channel in setting.channels)
        needed = f"({setting.batch}, time, {', '.join(map(str, tail))})"
        raise InvalidInputError(
            f"states have shape {array.shape}, but the setting needs {needed}: "
            f"(sample, time, channels [{names}], *grid){_shape_advice(array.shape, setting)}"
        )
    if not array.size:
        raise InvalidInputError(f"states have shape {array.shape}: at least one sample, time and channel is needed")
    _check_finite(array, [channel.name for channel in setting.channels])
    return array


def _shape_advice(shape: tuple[int, ...], setting: Setting) -> str:
    """What to do about the usual mistakes in the shape of states."""
    batch, channels, grid = setting.batch, len(setting.channels), setting.grid.shape
    if shape == (batch, channels, *grid):
        return "; the axis of times is missing: states[:, None] for one time"
    if shape[2:] == (*grid, channels) and shape[:1] == (batch,):
        return "; the channels are the last axis here: np.moveaxis(states, -1, 2)"
    if shape[2:] == grid and channels == 1 and shape[:1] == (batch,):
        return "; the axis of the channel is missing: states[:, :, None]"
    if shape[2:] == (channels, *grid):
        return f"; there are {shape[0]} samples: make the grid with batch={shape[0]}"
    return ""


def _check_finite(states: Array, channels: Collection[str]) -> None:
    some = max(1, CHECKED_VALUES // states[0].size)
    for first in range(0, states.shape[0], some):
        part = states[first : first + some]
        finite = np.isfinite(part).reshape(*part.shape[:3], -1).all(axis=-1)
        if not finite.all():
            sample, time, channel = (int(position[0]) for position in np.nonzero(~finite))
            raise InvalidInputError(
                f"states: channel '{list(channels)[channel]}' has a NaN or infinite value in sample {first + sample}, "
                f"time index {time}"
            )


def _check_repeated(states: Array, times: Array) -> None:
    """Refuses a time with two different states."""
    for sample, time in np.argwhere(np.diff(times, axis=1) == 0):
        if not np.array_equal(states[sample, time], states[sample, time + 1]):
            raise InvalidInputError(
                f"times: {times[sample, time]} twice for sample {sample}, at time indices {time} and {time + 1}, with "
                "different states; leave one out"
            )


def _checked_times(times: object, samples: int, count: int) -> Array:
    array = np.asarray(times)
    if array.dtype.kind not in REAL:
        raise InvalidInputError(f"times have dtype {array.dtype}: real numbers are needed")
    array = np.asarray(array, dtype=np.float64)
    if array.shape == (count,):
        array = np.tile(array, (samples, 1))
    if array.shape != (samples, count):
        raise InvalidInputError(
            f"times have shape {array.shape}, but the states have {samples} samples at {count} times: give ({count},) "
            f"if all samples share them, else ({samples}, {count})"
        )
    valid = np.isfinite(array) & (array >= 0)
    if not valid.all():
        sample, time = (int(position[0]) for position in np.nonzero(~valid))
        raise InvalidInputError(
            f"times: {array[sample, time]} for sample {sample}, time index {time}; it must be finite and not negative"
        )
    falls = np.diff(array, axis=1) < 0
    if falls.any():
        sample, time = (int(position[0]) for position in np.nonzero(falls))
        raise InvalidInputError(
            f"times: sample {sample} goes back from {array[sample, time]} to {array[sample, time + 1]} at time index "
            f"{time + 1}; they must not decrease"
        )
    return array


def _checked_flags(
    untrusted: Array | None, reasons: Array | None, shape: tuple[int, ...]
) -> tuple[Array | None, Array | None]:
    """The flags as booleans and the reasons as texts; reasons alone imply their flags."""
    texts = None if reasons is None else np.asarray(reasons)
    if texts is not None and (texts.shape != shape or texts.dtype.kind != "U"):
        raise InvalidInputError(
            f"reasons have shape {texts.shape} and dtype {texts.dtype}: texts (sample, time) = {shape} are needed"
        )
    if untrusted is None:
        return (None, None) if texts is None else (texts != "", texts)
    flags = _checked_marks("untrusted", untrusted, shape)
    if texts is not None and (texts[~flags] != "").any():
        raise InvalidInputError("reasons: a reason is given where untrusted is not set; leave it empty there")
    return flags, texts


def _checked_marks(name: str, marks: object, shape: tuple[int, ...]) -> Array:
    flags = np.asarray(marks).astype(bool)
    if flags.shape != shape:
        raise InvalidInputError(f"{name} has shape {flags.shape}, but (sample, time) = {shape} is needed")
    return flags


def _checked_estimate(estimate: object, shape: tuple[int, ...]) -> Array | None:
    if estimate is None:
        return None
    errors = np.asarray(estimate)
    if errors.dtype.kind not in REAL or errors.shape != shape:
        raise InvalidInputError(
            f"error_estimate has shape {errors.shape} and dtype {errors.dtype}: numbers (sample, time) = {shape} are "
            "needed"
        )
    if not (errors >= 0).all():
        raise InvalidInputError("error_estimate has a NaN or negative value: relative errors are needed")
    return errors.astype(np.float64)


def _checked_seed(seed: object) -> int:
    if isinstance(seed, (int, np.integer)) and NO_SEED <= seed < 2**63:
        return int(seed)
    raise InvalidInputError(f"seed is {seed!r}: a whole number from 0 to 2^63 - 1 is needed, or {NO_SEED} for none")


def _checked_error(error: object) -> float | None:
    if error is None:
        return None
    if isinstance(error, (int, float, np.integer, np.floating)) and 0 <= error < np.inf:
        return float(error)
    raise InvalidInputError(f"reference_error is {error!r}: a finite number that is not negative is needed, or None")
