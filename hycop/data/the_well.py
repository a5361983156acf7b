"""Files of The Well (Ohana et al. 2024, HDF5), read in parts, without conversion.

- attributes: ``dataset_name``, ``n_trajectories``, ``n_spatial_dims``, ``grid_type``, ``simulation_parameters`` and a
  number of each of these names
- ``dimensions``: ``time`` and the coordinates that its attribute ``spatial_dims`` names
- ``t0_fields``, ``t1_fields``, ``t2_fields``: scalars, vectors and tensors (sample, time, x[, y[, z]], components),
  with the attributes ``sample_varying``, ``time_varying`` and ``dim_varying``, which say what axes a field has
- ``scalars``: numbers, (sample,) if they vary with the sample
- ``boundary_conditions``: groups with ``associated_dims`` and ``bc_type``, which is PERIODIC, WALL or OPEN

A field that varies in time is a channel: a vector ``v`` becomes ``v_x`` and ``v_y``, normal to x and y. Scalars and
simulation parameters that do not vary in time become coefficients. ``hycop/data/well_writer.py`` writes such files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hycop.data.dataset import REAL, RESERVED, Dataset, box_length
from hycop.data.hdf5 import array_of, checked_frames, finite_values, opened
from hycop.errors import DatasetError, InvalidInputError
from hycop.files import check_claim, naming
from hycop.grid import AXES, Array, Grid, restrict
from hycop.query import Channel, Setting

GROUPS = ("t0_fields", "t1_fields", "t2_fields")
BOUNDARIES = {"PERIODIC": "periodic", "WALL": "wall", "OPEN": "outflow"}
"""Our names of The Well's boundaries."""


def is_well(path: str | os.PathLike[str]) -> bool:
    """Whether an HDF5 file has the groups of The Well."""
    with opened(Path(path)) as file:
        return "dimensions" in file and GROUPS[0] in file


class _Field(NamedTuple):
    """A field of the file: its place, its channels, and which axes it has."""

    place: str
    channels: tuple[Channel, ...]
    per_sample: bool
    per_frame: bool
    per_axis: tuple[bool, ...]


class WellFile:
    """A file of The Well: its contents, known without loading them, and any part of it as a ``Dataset``.

    ``channels`` are those of the datasets: all fields, or those that ``only`` names. ``params`` are the coefficients:
    one number, or one per sample; those given here are added or replace the file's. ``boundary`` replaces the file's,
    which need not have one for each axis. ``left_out`` names what a dataset does not hold: fields that do not vary in
    time, and scalars that do.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        params: Mapping[str, float] | None = None,
        boundary: str | Sequence[str] | None = None,
        problem: str | None = None,
        only: Collection[str] = (),
    ) -> None:
        self.path = Path(path)
        with opened(self.path) as file:
            _check_layout(file)
            self.name = _text(file.attrs.get("dataset_name", "unknown"))
            self.samples = int(file.attrs["n_trajectories"])
            dims = _texts(file["dimensions"].attrs.get("spatial_dims", ()))
            self.times = _times(file, self.samples)
            self.shape, self.lengths = _box(file, dims, self.samples)
            fields = [field for order in range(len(GROUPS)) for field in _fields(file, order, dims)]
            self._fields = [field for field in fields if field.per_frame]
            self.params, changing = _coefficients(file, self.samples)
            walls = _boundary(file, dims) if boundary is None else boundary
            for field in self._fields:
                self._check_shape(file, field)
        if not self._fields:
            raise DatasetError(f"{self.path}: has no field that varies in time, so there is no channel")
        self.problem = self.name if problem is None else problem
        held = [channel for field in self._fields for channel in field.channels]
        self._kept = [place for place, channel in enumerate(held) if not only or channel.name in only]
        self.channels = tuple(held[place] for place in self._kept)
        self.left_out = tuple(field.place for field in fields if not field.per_frame) + changing
        self.params = {**self.params, **(params or {})}
        with naming(self.path):
            self._boundary = Grid.box(self.shape, 1.0, walls).boundary

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
        at = checked_frames(frames, self.times.shape[-1])
        cells = self.shape if shape is None else tuple(shape)
        if len(cells) != len(self.shape):
            raise InvalidInputError(f"shape {cells}: the file has {len(self.shape)} axes")
        components = sum(len(field.channels) for field in self._fields)
        check_claim("this part of the file", 8 * len(chosen) * at.size * components * prod(self.shape))
        with opened(self.path) as file:
            values = [self._values(file, field, chosen, at) for field in self._fields]
        states = np.concatenate(values, axis=2)[:, :, self._kept]
        rows = np.arange(self.samples)[samples]
        times = np.broadcast_to(self.times, (self.samples, self.times.shape[-1]))[np.ix_(rows, at)]
        lengths = np.broadcast_to(self.lengths, (self.samples, len(cells)))[rows]
        params = {name: np.broadcast_to(value, self.samples)[rows] for name, value in self.params.items()}
        return Dataset(
            problem=self.problem,
            split=self.path.stem,
            states=restrict(states, cells),
            times=times,
            setting=Setting(Grid(cells, lengths.copy(), self._boundary), self.channels, params),
            reference=f"The Well, {self.name}",
        )

    def _values(self, file: Any, field: _Field, samples: range, frames: Array) -> Array:
        """Values (sample, frame, component, *grid) of a field; axes that it does not have are repeated."""
        steady = frames[-1] - frames[0] + 1 == frames.size
        some = slice(int(frames[0]), int(frames[-1]) + 1) if steady else frames
        rows = slice(samples.start, samples.stop, samples.step)
        values = file[field.place][(rows, some) if field.per_sample else some]
        values = values if field.per_sample else values[None]
        values = finite_values(file, field.place, values, samples, frames)
        for axis, varies in enumerate(field.per_axis):
            values = values if varies else np.expand_dims(values, 2 + axis)
        values = values.reshape(*values.shape[: 2 + len(self.shape)], len(field.channels))
        whole = (len(samples), frames.size, *self.shape, len(field.channels))
        return np.moveaxis(np.broadcast_to(values, whole), -1, 2)

    def _check_shape(self, file: Any, field: _Field) -> None:
        held = array_of(file, field.place, *range(1, 9))
        leading = ((self.samples,) if field.per_sample else ()) + (self.times.shape[-1],)
        leading += tuple(n for n, varies in zip(self.shape, field.per_axis, strict=True) if varies)
        if held.shape[: len(leading)] != leading or prod(held.shape[len(leading) :]) != len(field.channels):
            raise DatasetError(
                f"{self.path}: {field.place} has shape {held.shape}, but its attributes and 'dimensions' need {leading}"
                + (f" and {len(field.channels)} components" if len(field.channels) > 1 else "")
            )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _texts(value: Any) -> list[str]:
    return [_text(each) for each in np.atleast_1d(np.asarray(value, dtype=object)).ravel()]


def _check_layout(file: Any) -> None:
    for name in ("dimensions", *GROUPS):
        if name not in file:
            raise DatasetError(f"{file.filename}: group '{name}' is missing; files of The Well have it")
    kind = _text(file.attrs.get("grid_type", "cartesian"))
    if kind != "cartesian":
        raise DatasetError(f"{file.filename}: grid_type is '{kind}'; grids here are cartesian")
    count = np.asarray(file.attrs.get("n_trajectories", 0))
    if count.size != 1 or count.dtype.kind not in "iu" or int(count) < 1:
        raise DatasetError(f"{file.filename}: attribute 'n_trajectories' is {count}: a number of samples is needed")


def _varies(held: Any, name: str) -> bool:
    """An attribute ``…_varying``, which is False where it is missing."""
    return bool(np.asarray(held.attrs.get(name, False)).any())


def _times(file: Any, samples: int) -> Array:
    """(frame,), or (sample, frame) if samples have times of their own."""
    held = array_of(file, "dimensions/time", 1, 2)
    if held.ndim == 2 and held.shape[0] != samples:
        raise DatasetError(f"{file.filename}: dimensions/time has shape {held.shape} for {samples} samples")
    times = np.asarray(held[...], dtype=np.float64)
    if not (times.size and np.isfinite(times).all() and (np.diff(times) > 0).all() and (times >= 0).all()):
        raise DatasetError(f"{file.filename}: dimensions/time must be finite, increasing and not negative")
    return times


def _box(file: Any, dims: Sequence[str], samples: int) -> tuple[tuple[int, ...], Array]:
    """Cells along each axis, and the lengths (axis,) or (sample, axis) of the box."""
    if not 1 <= len(dims) <= len(AXES):
        raise DatasetError(f"{file.filename}: dimensions has the spatial_dims {dims}: one to three names are needed")
    shape, lengths = [], []
    for name in dims:
        place = f"dimensions/{name}"
        held = array_of(file, place, 1, 2)
        if _varies(held, "time_varying"):
            raise DatasetError(f"{file.filename}: {place} varies in time, which no grid here does")
        if held.shape[-1] < 2 or (held.ndim == 2 and held.shape[0] != samples):
            raise DatasetError(f"{file.filename}: {place} has shape {held.shape}; two cells at least are needed")
        rows = np.atleast_2d(np.asarray(held[...], dtype=np.float64))
        shape.append(held.shape[-1])
        lengths.append([box_length(place, row) for row in rows])
    columns = np.broadcast_arrays(*map(np.asarray, lengths))
    return tuple(shape), np.stack(columns, axis=1)


def _fields(file: Any, order: int, dims: Sequence[str]) -> list[_Field]:
    """The fields of one tensor order, in the order of the attribute ``field_names``."""
    group, found = file[GROUPS[order]], []
    for name in _texts(group.attrs.get("field_names", ())):
        if name not in group:
            raise DatasetError(f"{file.filename}: {GROUPS[order]} names the field '{name}', but has none")
        held = group[name]
        axes = np.asarray(held.attrs.get("dim_varying", [True] * len(dims)), dtype=bool).ravel()
        if axes.size != len(dims):
            raise DatasetError(f"{file.filename}: {GROUPS[order]}/{name}: dim_varying needs one entry for each axis")
        channels = _components(held, name, order, len(dims))
        varying = (_varies(held, "sample_varying"), _varies(held, "time_varying"), tuple(axes.tolist()))
        found.append(_Field(f"{GROUPS[order]}/{name}", channels, *varying))
    return found


def _components(held: Any, name: str, order: int, axes: int) -> tuple[Channel, ...]:
    """The channels of a field: those that we noted when we wrote it, else its name with the letters of the axes."""
    stem = re.sub(r"\W", "_", name)
    ends = list(product(range(axes), repeat=order))
    names = [stem + "".join(["_", *(AXES[axis] for axis in end)]) if order else stem for end in ends]
    noted = _texts(held.attrs.get("components", ()))
    if len(noted) == len(names):
        names = noted
    return tuple(Channel(each, end[0] if order == 1 else None) for each, end in zip(names, ends, strict=True))


def _coefficients(file: Any, samples: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Numbers, or one per sample, by name; and the scalars that change in time."""
    out: dict[str, Any] = {}
    for name in _texts(file.attrs.get("simulation_parameters", ())):
        number = np.asarray(file.attrs.get(name, "missing"))
        if name.isidentifier() and name not in RESERVED and number.size == 1 and number.dtype.kind in REAL:
            out[name] = float(number.reshape(()))
    changing = []
    scalars = file.get("scalars", {})
    for name in _texts(scalars.attrs.get("field_names", ())) if scalars else ():
        held = array_of(file, f"scalars/{name}", 0, 1, 2)
        if _varies(held, "time_varying"):
            changing.append(f"scalars/{name}")
        elif name.isidentifier() and name not in RESERVED:
            values = np.asarray(held[...], dtype=np.float64)
            if values.size not in (1, samples):
                raise DatasetError(f"{file.filename}: scalars/{name} has shape {held.shape} for {samples} samples")
            out[name] = values.reshape(-1) if values.size > 1 else float(values.reshape(()))
    return out, tuple(changing)


def _boundary(file: Any, dims: Sequence[str]) -> tuple[str, ...]:
    """The boundary of each axis; one that the file does not name is open, as The Well has it."""
    found: dict[str, set[str]] = {name: set() for name in dims}
    conditions = file.get("boundary_conditions", {})
    for name in conditions:
        kind = _text(conditions[name].attrs.get("bc_type", "")).upper()
        for dim in _texts(conditions[name].attrs.get("associated_dims", ())):
            found.setdefault(dim, set()).add(BOUNDARIES.get(kind, kind))
    out = []
    for name in dims:
        kinds = sorted(found[name]) or ["outflow"]
        if len(kinds) > 1 or kinds[0] not in BOUNDARIES.values():
            raise DatasetError(
                f"{file.filename}: the boundary along {name} is {' and '.join(kinds)}; an axis has one of "
                f"{', '.join(BOUNDARIES.values())} here: give the one that is meant, as boundary (--boundary)"
            )
        out.append(kinds[0])
    return tuple(out)
