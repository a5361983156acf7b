"""PDEBench's HDF5 files: read in parts, without conversion, and written.

Three layouts, told apart by their keys:

- compressible flow: ``density``, ``Vx``[, ``Vy``[, ``Vz``]], ``pressure``, each (sample, time, x[, y[, z]]), read as
  the conserved state (density, momenta, energy)
- ``tensor`` (sample, time, x[, y[, z]]) of a scalar, one axis for each of ``x-coordinate``, ``y-coordinate``, …; a
  further axis at the end holds channels
- a group for each sample, ``0000``, ``0001``, …, with ``data`` (time, x[, y], channel) and ``grid/x``, ``grid/t``, …

Coordinates are cell centres; ``t-coordinate`` may have one entry more than there are frames, as PDEBench writes it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from operator import index as as_index
from pathlib import Path
from typing import Any

import numpy as np

from hycop.channels import gas_channels
from hycop.data.dataset import REAL, RESERVED, Dataset, box_length
from hycop.data.gas import decode, encode
from hycop.data.hdf5 import checked_hdf5
from hycop.errors import DatasetError, HyCOPError, InvalidInputError
from hycop.files import check_claim, checked_output, naming, replacing
from hycop.grid import AXES, Array, Grid, restrict
from hycop.query import Channel, Setting

GAMMA = 5.0 / 3.0
"""Ratio of specific heats of PDEBench's two- and three-dimensional flows."""

PDEBENCH = (".hdf5", ".h5")
"""Suffixes of such files."""


class PDEBenchFile:
    """A PDEBench file: its contents, known without loading them, and any part of it as a ``Dataset``.

    ``channels`` are those of the datasets. Numbers among the ``attributes`` of the file become parameters; ``params``
    adds to them or replaces them. Files of a compressible flow have no γ unless this package wrote them: ``gamma`` is
    used if there is none. A file names neither its ``boundary`` (reaction–diffusion has walls, the radial dam break
    outflow) nor its ``problem``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        gamma: float = GAMMA,
        params: Mapping[str, float] | None = None,
        boundary: str | Sequence[str] = "periodic",
        problem: str = "unknown",
    ) -> None:
        self.path, self.problem = Path(path), problem
        with _opened(self.path) as file:
            self.attributes = {str(name): _plain(value) for name, value in file.attrs.items()}
            self._layout = _layout_of(file)
            self.times = self._layout.times
            self.lengths = self._layout.lengths
        self.samples, self.shape = self._layout.samples, self._layout.shape
        self.is_gas = isinstance(self._layout, _Gas)
        self.channels = gas_channels(len(self.shape)) if self.is_gas else _numbered(len(self._layout.names))
        self.params = {
            name: float(value)
            for name, value in self.attributes.items()
            if isinstance(value, float) and name.isidentifier() and name not in RESERVED and name != "M"
        }
        self.params |= params or {}
        if self.is_gas:
            if "gamma" in self.attributes and "gamma" not in self.params:
                raise DatasetError(
                    f"{self.path}: attribute 'gamma' is {self.attributes['gamma']!r}: a number is needed"
                )
            self.params = {"gamma": gamma, **self.params}
        if self.is_gas and not self.params["gamma"] > 1.0:
            raise InvalidInputError(f"{self.path}: gamma is {self.params['gamma']}: it must be above 1")
        with naming(self.path):
            self._boundary = Grid.box(self.shape, 1.0, boundary).boundary

    def read(
        self,
        samples: slice = slice(None),
        frames: Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
    ) -> Dataset:
        """Some samples at some frames (all by default), on a coarser grid of ``shape`` cells if asked."""
        with naming(self.path):
            return self._read(samples, frames, shape)

    def _read(self, samples: slice, frames: Sequence[int] | None, shape: Sequence[int] | None) -> Dataset:
        chosen = range(self.samples)[samples]
        if not len(chosen) or chosen.step < 0:
            raise InvalidInputError(f"samples {samples}: some of the {self.samples} are needed, in their order")
        at = _checked_frames(frames, len(self.times))
        values = len(chosen) * at.size * len(self._layout.names) * prod(self.shape)
        check_claim("this part of the file", values * np.dtype(np.float64).itemsize)
        with _opened(self.path) as file:
            states = self._layout.read(file, chosen, at)
        if self.is_gas:
            self._check_positive(states, chosen, at)
            flat = states.reshape(-1, *states.shape[2:])
            states = encode(flat, self.params["gamma"]).reshape(states.shape)
        cells = self.shape if shape is None else tuple(shape)
        if len(cells) != len(self.shape):
            raise InvalidInputError(f"shape {cells}: the file has {len(self.shape)} axes")
        params = {name: np.full(len(chosen), value) for name, value in self.params.items()}
        grid = Grid(cells, np.tile(self.lengths, (len(chosen), 1)), self._boundary)
        return Dataset(
            problem=self.problem,
            split=self.path.stem,
            states=restrict(states, cells),
            times=np.tile(self.times[at], (len(chosen), 1)),
            setting=Setting(grid, self.channels, params),
            reference="PDEBench",
        )

    def _check_positive(self, values: Array, samples: range, frames: Array) -> None:
        for channel in (0, -1):
            bad = (values[:, :, channel] <= 0).reshape(*values.shape[:2], -1).any(axis=2)
            if bad.any():
                sample, frame = (int(position[0]) for position in np.nonzero(bad))
                raise DatasetError(
                    f"{self.path}: {self._layout.names[channel]} of sample {samples[sample]}, frame {frames[frame]}, "
                    "is zero or negative somewhere"
                )


def check_writable(setting: Setting, times: Array) -> None:
    """Refuses what a PDEBench file cannot hold."""
    if setting.channels != gas_channels(setting.grid.axes):
        names = ", ".join(channel.name for channel in gas_channels(setting.grid.axes))
        raise InvalidInputError(f"PDEBench files of other states than {names} are not written")
    for name, values in {"times": times, "lengths": setting.grid.lengths, **setting.params}.items():
        if (values != values[:1]).any():
            raise InvalidInputError(f"'{name}' differs between samples, which a PDEBench file cannot hold")


def write_pdebench(dataset: Dataset, path: str | os.PathLike[str], mach: float | None = None) -> None:
    """Write a compressible dataset as PDEBench does: float32, parameters as attributes, one time more than frames.

    Such a file has one grid, one series of times and one set of parameters for all its samples.
    """
    path = checked_output(path)
    setting = dataset.setting
    check_writable(setting, dataset.times)
    flat = dataset.states.reshape(-1, *dataset.states.shape[2:])
    values = decode(flat, setting.param("gamma")[0]).reshape(dataset.states.shape).astype(np.float32)
    times = dataset.times[0]
    step = times[-1] - times[-2] if times.size > 1 else 1.0
    import h5py

    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        for position, name in enumerate(_gas_names(setting.grid.axes)):
            file[name] = values[:, :, position]
        file["t-coordinate"] = np.append(times, times[-1] + step).astype(np.float32)
        for letter, cells, length in zip(AXES, setting.grid.shape, setting.grid.lengths[0], strict=False):
            file[f"{letter}-coordinate"] = ((np.arange(cells) + 0.5) * length / cells).astype(np.float32)
        for name in setting.params:
            file.attrs[name] = float(setting.param(name)[0])
        if mach is not None:
            file.attrs["M"] = mach


@dataclass(frozen=True, eq=False)
class _Layout(ABC):
    """How a kind of file stores its states; ``names`` has the key of each channel."""

    names: tuple[str, ...]
    samples: int
    shape: tuple[int, ...]
    times: Array
    lengths: Array

    @classmethod
    @abstractmethod
    def of(cls, file: Any) -> _Layout: ...

    @abstractmethod
    def read(self, file: Any, samples: range, frames: Array) -> Array:
        """Values (sample, frame, channel, *grid) in double precision."""


class _Gas(_Layout):
    @classmethod
    def of(cls, file: Any) -> _Gas:
        axes = len(_array(file, "density", *(2 + axes for axes in range(1, 1 + len(AXES)))).shape) - 2
        names = _gas_names(axes)
        shapes = {name: _array(file, name, 2 + axes).shape for name in names}
        for name, shape in shapes.items():
            if shape != shapes["density"]:
                raise DatasetError(f"{file.filename}: {name} has shape {shape}, but density has {shapes['density']}")
        samples, frames, *space = shapes["density"]
        return cls(names, samples, tuple(space), *_coordinates(file, frames, space, "{}-coordinate"))

    def read(self, file: Any, samples: range, frames: Array) -> Array:
        return np.stack([_part(file, name, samples, frames) for name in self.names], axis=2)


class _Tensor(_Layout):
    @classmethod
    def of(cls, file: Any) -> _Tensor:
        axes = sum(f"{letter}-coordinate" in file for letter in AXES)
        if not axes:
            raise DatasetError(f"{file.filename}: x-coordinate is missing, so the axes of 'tensor' are not known")
        shape = _array(file, "tensor", 2 + axes, 3 + axes).shape
        samples, frames, *space = shape[: 2 + axes]
        names = ("tensor",) * (shape[-1] if len(shape) == 3 + axes else 1)
        return cls(names, samples, tuple(space), *_coordinates(file, frames, space, "{}-coordinate"))

    def read(self, file: Any, samples: range, frames: Array) -> Array:
        values = _part(file, "tensor", samples, frames)
        values = values.reshape(*values.shape[: 2 + len(self.shape)], len(self.names))
        return np.moveaxis(values, -1, 2)


@dataclass(frozen=True, eq=False)
class _Groups(_Layout):
    keys: tuple[str, ...]

    @classmethod
    def of(cls, file: Any) -> _Groups:
        keys = tuple(sorted(file))
        frames, *space, channels = _array(file, f"{keys[0]}/data", 3, 4, 5).shape
        grid = _coordinates(file, frames, space, keys[0] + "/grid/{}")
        return cls(("data",) * channels, len(keys), tuple(space), *grid, keys)

    def read(self, file: Any, samples: range, frames: Array) -> Array:
        out = np.empty((len(samples), frames.size, len(self.names), *self.shape))
        for row, sample in enumerate(samples):
            name = f"{self.keys[sample]}/data"
            held = _array(file, name, 2 + len(self.shape))
            if held.shape != (self.times.size, *self.shape, len(self.names)):
                raise DatasetError(f"{file.filename}: {name} has shape {held.shape}, not that of sample 0")
            self._check_coordinates(file, self.keys[sample])
            values = _finite(file, name, held[frames][None], samples[row : row + 1], frames)
            out[row] = np.moveaxis(values[0], -1, 1)
        return out

    def _check_coordinates(self, file: Any, key: str) -> None:
        """Refuses a group with other times or another box than the first has."""
        if f"{key}/grid" not in file:
            return
        times, lengths = _coordinates(file, self.times.size, self.shape, key + "/grid/{}")
        for what, theirs, ours in (("times", times, self.times), ("lengths of the box", lengths, self.lengths)):
            if not np.allclose(theirs, ours, rtol=1e-5, atol=0):
                raise DatasetError(f"{file.filename}: {key}/grid has other {what} than {self.keys[0]}/grid")


def _layout_of(file: Any) -> _Layout:
    layout: type[_Tensor] | type[_Groups] | type[_Gas]
    if not len(file):
        raise DatasetError(f"{file.filename}: the file is empty")
    if "tensor" in file:
        layout = _Tensor
    elif all(key.isdigit() and "data" in file[key] for key in file):
        layout = _Groups
    elif any(name in file for name in ("density", "pressure", "Vx")):
        layout = _Gas
    else:
        raise DatasetError(
            f"{file.filename}: unknown layout, with the keys {', '.join(sorted(file)[:8])}; 'tensor', "
            "'density' with 'Vx' and 'pressure', or groups with 'data' are read"
        )
    out = layout.of(file)
    if not (out.samples and out.times.size and min(out.shape) and out.names):
        raise DatasetError(f"{file.filename}: there is no sample, frame, cell or channel in it")
    return out


def _gas_names(axes: int) -> tuple[str, ...]:
    return ("density", *(f"V{letter}" for letter in AXES[:axes]), "pressure")


def _numbered(channels: int) -> tuple[Channel, ...]:
    return (Channel("u"),) if channels == 1 else tuple(Channel(f"u{number}") for number in range(channels))


def _plain(value: Any) -> float | str:
    number = np.asarray(value)
    return float(number.item()) if number.size == 1 and number.dtype.kind in REAL else str(value)


def _array(file: Any, name: str, *ranks: int) -> Any:
    """A dataset of the file, not loaded, of one of the ranks and of real numbers."""
    if name not in file:
        raise DatasetError(f"{file.filename}: {name} is missing; the file has {', '.join(sorted(file)[:8])}")
    held = file[name]
    if not hasattr(held, "dtype") or held.dtype.kind not in REAL:
        raise DatasetError(f"{file.filename}: {name} does not hold real numbers")
    if held.ndim not in ranks:
        raise DatasetError(
            f"{file.filename}: {name} has shape {held.shape}; {' or '.join(map(str, ranks))} axes are needed"
        )
    return held


def _coordinates(file: Any, frames: int, space: Sequence[int], key: str) -> tuple[Array, Array]:
    """The times of the frames and the lengths of the box."""
    name = key.format("t")
    held = _array(file, name, 1)
    if held.size not in (frames, frames + 1):
        raise DatasetError(
            f"{file.filename}: {name} has {held.size} times for {frames} frames; one each, or one too many"
        )
    times = np.asarray(held[...], dtype=np.float64)
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all() and (times >= 0).all()):
        raise DatasetError(f"{file.filename}: {name} must be finite, increasing and not negative")
    lengths = np.ones(len(space))
    for axis, (letter, cells) in enumerate(zip(AXES, space, strict=False)):
        name = key.format(letter)
        held = _array(file, name, 1)
        if held.size != cells or cells < 2:
            raise DatasetError(f"{file.filename}: {name} has {held.size} entries for {cells} cells; two at least")
        lengths[axis] = box_length(name, np.asarray(held[...], dtype=np.float64))
    return times[:frames], lengths


def _finite(file: Any, name: str, values: Array, samples: range, frames: Array) -> Array:
    bad = ~np.isfinite(values).reshape(*values.shape[:2], -1).all(axis=2)
    if bad.any():
        sample, frame = (int(position[0]) for position in np.nonzero(bad))
        raise DatasetError(
            f"{file.filename}: {name} has a NaN or infinite value in sample {samples[sample]}, frame {frames[frame]}"
        )
    return values.astype(np.float64)


def _part(file: Any, name: str, samples: range, frames: Array) -> Array:
    """Some samples and frames of a dataset; nothing else is read from the disk."""
    return _finite(file, name, file[name][samples.start : samples.stop : samples.step, frames], samples, frames)


def _checked_frames(frames: Sequence[int] | None, count: int) -> Array:
    try:
        out = np.array(range(count) if frames is None else [as_index(frame) for frame in frames], dtype=np.int64)
    except TypeError:
        raise InvalidInputError(f"frames {frames}: a series of whole numbers is needed") from None
    if not (out.size and (np.diff(out) > 0).all() and out[0] >= 0 and out[-1] < count):
        raise InvalidInputError(f"frames {frames}: increasing numbers from 0 to {count - 1} are needed")
    return out


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The open file; any exception about a damaged one becomes an error of one line."""
    try:
        with checked_hdf5(path) as file:
            yield file
    except DatasetError:
        raise
    except HyCOPError as error:
        raise DatasetError(f"{path}: {error}") from None
    except MemoryError:
        raise DatasetError(f"{path}: too large for the memory of this machine; take fewer samples or frames") from None
    except PermissionError:
        raise DatasetError(f"{path}: cannot be read (permission denied)") from None
    # h5py raises nearly every kind of exception for broken bytes
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise DatasetError(f"{path}: not a whole HDF5 file ({reason}); it may be damaged, copy it again") from None
