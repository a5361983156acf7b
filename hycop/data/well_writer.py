"""Writes files of The Well (``hycop/data/the_well.py`` says what is in them)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from hycop.data.blocks import BlockWriter
from hycop.data.dataset import Dataset
from hycop.data.the_well import BOUNDARIES, GROUPS
from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.query import Channel


def write_well(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset as a file of The Well, see ``WellWriter``."""
    with WellWriter(path, dataset.samples) as target:
        target.append(dataset)


class WellWriter(BlockWriter):
    """Writes a file of The Well block by block: states in single precision, as all its files have them.

    Channels that are the components of a vector along all axes become one vector field, the others scalars.
    """

    def begin(self, block: Dataset) -> None:
        import h5py

        self.file = self.held.enter_context(h5py.File(self.temporary, "w"))
        frames, grid = block.times.shape[1], block.setting.grid
        held = [*(f"the coefficient '{name}', which varies in space," for name in block.setting.fields)]
        held += [f"the boundary {name}" for name in grid.boundary if name not in BOUNDARIES.values()]
        if held:
            raise InvalidInputError(f"{held[0]} has no place in The Well's layout; write .nc instead")
        self.fields = _grouped(block.setting.channels, grid.axes)
        for order, group in enumerate(GROUPS):
            names = [stem for stem, members in self.fields.items() if (len(members) > 1) == order and order < 2]
            self.file.create_group(group).attrs["field_names"] = _listed(names)
            for stem in names:
                members = self.fields[stem]
                components = (len(members),) if order else ()
                shape = (self.samples, frames, *grid.shape, *components)
                field = self.file.create_dataset(f"{group}/{stem}", shape, "f4")
                field.attrs.update({"sample_varying": True, "time_varying": True})
                field.attrs["dim_varying"] = [True] * grid.axes
                field.attrs["components"] = _listed([block.setting.channels[member].name for member in members])

    def states(self, first: int, block: Dataset) -> None:
        rows = slice(first, first + block.samples)
        for stem, members in self.fields.items():
            values = np.moveaxis(block.states[:, :, list(members)], 2, -1)
            if len(members) > 1:
                self.file[f"t1_fields/{stem}"][rows] = values
            else:
                self.file[f"t0_fields/{stem}"][rows] = values[..., 0]

    def finish(self, outline: Dataset) -> None:
        file, setting = self.file, outline.setting
        file.attrs.update({"dataset_name": outline.problem, "grid_type": "cartesian"})
        file.attrs.update({"n_spatial_dims": setting.grid.axes, "n_trajectories": outline.samples})
        for name in ("split", "reference", "version", "seed"):
            file.attrs[name] = getattr(outline, name)
        if outline.reference_error is not None:
            file.attrs["reference_error"] = outline.reference_error
        common = [name for name, values in setting.params.items() if (values == values[0]).all()]
        file.attrs["simulation_parameters"] = _listed(common)
        file.attrs.update({name: float(setting.params[name][0]) for name in common})
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = _listed(setting.params)
        for name, values in setting.params.items():
            _put(scalars, name, values.astype(np.float64), name not in common)
        _write_dimensions(file.create_group("dimensions"), outline)
        conditions = file.create_group("boundary_conditions")
        for axis, kind in enumerate(setting.grid.boundary):
            _write_boundary(conditions, AXES[axis], kind, setting.grid.shape[axis])


def _write_dimensions(group: Any, outline: Dataset) -> None:
    grid, times = outline.setting.grid, outline.times
    group.attrs["spatial_dims"] = _listed(AXES[: grid.axes])
    _put(group, "time", times.astype(np.float32), bool((times != times[0]).any()))
    for axis, cells in enumerate(grid.shape):
        lengths = grid.lengths[:, axis, None]
        centres = (np.arange(cells) + 0.5) * (lengths / cells)
        _put(group, AXES[axis], centres.astype(np.float32), bool((lengths != lengths[0]).any()))


def _write_boundary(group: Any, letter: str, kind: str, cells: int) -> None:
    theirs = {ours: name for name, ours in BOUNDARIES.items()}[kind]
    made = group.create_group(f"{letter}_{theirs.lower()}")
    made.attrs.update({"associated_dims": _listed([letter]), "associated_fields": _listed([]), "bc_type": theirs})
    made.attrs.update({"sample_varying": False, "time_varying": False})
    ends = np.zeros(cells, dtype=bool)
    ends[[0, -1]] = True
    made["mask"] = ends
    made["values"] = np.zeros(int(ends.sum()), dtype=np.float32)


def _put(group: Any, name: str, rows: Array, varies: bool) -> None:
    """Values (sample, …), or those of the first sample if all are the same."""
    group[name] = rows if varies else rows[0]
    group[name].attrs.update({"sample_varying": varies, "time_varying": False})


def _listed(names: Any) -> Any:
    """Texts as the array attribute that The Well expects, also of none."""
    import h5py

    return np.array(list(names), dtype=h5py.string_dtype())


def _grouped(channels: Sequence[Channel], axes: int) -> dict[str, tuple[int, ...]]:
    """Fields by name, each with its channels: a vector where neighbouring channels are normal to the axes in turn.

    >>> _grouped((Channel("h"), Channel("mx", 0), Channel("my", 1)), 2)
    {'h': (0,), 'm': (1, 2)}
    >>> _grouped((Channel("h"), Channel("hu", 0), Channel("hv", 1)), 2)
    {'h': (0,), 'hu_hv': (1, 2)}
    """
    names = [channel.name for channel in channels]
    out: dict[str, tuple[int, ...]] = {}
    place = 0
    while place < len(channels):
        some = channels[place : place + axes]
        count = axes if axes > 1 and [channel.normal for channel in some] == list(range(axes)) else 1
        out[_field_name(names[place : place + count], [*names, *out])] = tuple(range(place, place + count))
        place += count
    return out


def _field_name(members: Sequence[str], taken: Sequence[str]) -> str:
    """The name of a scalar, or what the components of a vector have in common: m for mx and my."""
    stem = members[0][:-1]
    if len(members) > 1 and all(name == stem + letter for name, letter in zip(members, AXES, strict=False)):
        stem = stem.rstrip("_")
        if stem and stem not in taken:
            return stem
    return "_".join(members)
