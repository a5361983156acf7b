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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from hycop.channels import gas_channels
from hycop.data.blocks import BlockWriter
from hycop.data.dataset import REAL, RESERVED, Dataset, box_length
from hycop.data.gas import decode, encode
from hycop.data.hdf5 import array_of, checked_frames, finite_values, opened
from hycop.errors import DatasetError, InvalidInputError
from hycop.files import check_claim, naming
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
        with opened(self.path) as file:
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
        at = checked_frames(frames, len(self.times))
        values = len(chosen) * at.size * len(self._layout.names) * prod(self.shape)
        check_claim("this part of the file", values * np.dtype(np.float64).itemsize)
        with opened(self.path) as file:
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
    """Refuses what a PDEBench file cannot hold: one grid, one series of times and one set of parameters for all its
    samples."""
    for name, values in {"times": times, "lengths": setting.grid.lengths, **setting.params}.items():
        if (values != values[:1]).any():
            raise InvalidInputError(
                f"'{name}' differs between samples, which a PDEBench file cannot hold; The Well's can (--layout well)"
            )


def write_pdebench(dataset: Dataset, path: str | os.PathLike[str], mach: float | None = None) -> None:
    """Write a dataset as PDEBench does, see ``PDEBenchWriter``."""
    with PDEBenchWriter(path, dataset.samples, mach) as target:
        target.append(dataset)


class PDEBenchWriter(BlockWriter):
    """Writes a PDEBench file block by block: float32, parameters as attributes, one time more than frames.

    A compressible flow is written as density, velocities and pressure; any other state as ``tensor``, with an axis of
    channels at its end if there are several.
    """

    def __init__(self, path: str | os.PathLike[str], samples: int, mach: float | None = None) -> None:
        super().__init__(path, samples)
        self.mach = mach

    def begin(self, block: Dataset) -> None:
        import h5py

        self.file = self.held.enter_context(h5py.File(self.temporary, "w"))
        grid, channels = block.setting.grid, block.setting.channels
        self.is_gas = channels == gas_channels(grid.axes) and "gamma" in block.setting.params
        leading = (self.samples, block.times.shape[1], *grid.shape)
        for name in _gas_names(grid.axes) if self.is_gas else ():
            self.file.create_dataset(name, leading, "f4")
        if not self.is_gas:
            self.file.create_dataset("tensor", leading + ((len(channels),) if len(channels) > 1 else ()), "f4")

    def states(self, first: int, block: Dataset) -> None:
        setting, rows = block.setting, slice(first, first + block.samples)
        check_writable(setting, block.times)
        if not self.is_gas:
            last = np.moveaxis(block.states, 2, -1)
            self.file["tensor"][rows] = last if last.shape[-1] > 1 else last[..., 0]
            return
        flat = block.states.reshape(-1, *block.states.shape[2:])
        values = decode(flat, setting.param("gamma")[0]).reshape(block.states.shape)
        for position, name in enumerate(_gas_names(setting.grid.axes)):
            self.file[name][rows] = values[:, :, position]

    def finish(self, outline: Dataset) -> None:
        check_writable(outline.setting, outline.times)
        times, grid = outline.times[0], outline.setting.grid
        step = times[-1] - times[-2] if times.size > 1 else 1.0
        self.file["t-coordinate"] = np.append(times, times[-1] + step).astype(np.float32)
        for letter, cells, length in zip(AXES, grid.shape, grid.lengths[0], strict=False):
            self.file[f"{letter}-coordinate"] = ((np.arange(cells) + 0.5) * length / cells).astype(np.float32)
        for name in outline.setting.params:
            self.file.attrs[name] = float(outline.setting.param(name)[0])
        if self.mach is not None:
            self.file.attrs["M"] = self.mach


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
        axes = len(array_of(file, "density", *(2 + axes for axes in range(1, 1 + len(AXES)))).shape) - 2
        names = _gas_names(axes)
        shapes = {name: array_of(file, name, 2 + axes).shape for name in names}
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
        shape = array_of(file, "tensor", 2 + axes, 3 + axes).shape
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
        frames, *space, channels = array_of(file, f"{keys[0]}/data", 3, 4, 5).shape
        grid = _coordinates(file, frames, space, keys[0] + "/grid/{}")
        return cls(("data",) * channels, len(keys), tuple(space), *grid, keys)

    def read(self, file: Any, samples: range, frames: Array) -> Array:
        out = np.empty((len(samples), frames.size, len(self.names), *self.shape))
        for row, sample in enumerate(samples):
            name = f"{self.keys[sample]}/data"
            held = array_of(file, name, 2 + len(self.shape))
            if held.shape != (self.times.size, *self.shape, len(self.names)):
                raise DatasetError(f"{file.filename}: {name} has shape {held.shape}, not that of sample 0")
            self._check_coordinates(file, self.keys[sample])
            values = finite_values(file, name, held[frames][None], samples[row : row + 1], frames)
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


def _coordinates(file: Any, frames: int, space: Sequence[int], key: str) -> tuple[Array, Array]:
    """The times of the frames and the lengths of the box."""
    name = key.format("t")
    held = array_of(file, name, 1)
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
        held = array_of(file, name, 1)
        if held.size != cells or cells < 2:
            raise DatasetError(f"{file.filename}: {name} has {held.size} entries for {cells} cells; two at least")
        lengths[axis] = box_length(name, np.asarray(held[...], dtype=np.float64))
    return times[:frames], lengths


def _part(file: Any, name: str, samples: range, frames: Array) -> Array:
    """Some samples and frames of a dataset; nothing else is read from the disk."""
    return finite_values(file, name, file[name][samples.start : samples.stop : samples.step, frames], samples, frames)
