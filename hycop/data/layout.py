"""Datasets in xarray, the layout of dataset files:

- each channel (sample, time, x[, y[, z]]): role = "channel", and normal = "x" for a vector component along x
- each parameter (sample,): role = "parameter"; one that varies in space is (sample, x[, y[, z]])
- ``time`` (time,) if all samples share their times, else (sample, time): index 0 is the initial state
- ``lengths`` (sample, axis): the size of the box
- ``x`` (x,), ``y`` (y,), ``z`` (z,): cell centres, along each axis on which all samples share the length
- ``untrusted`` (sample, time) and ``untrusted_reason`` (sample, time), a text, if the data are predictions of a model
- ``error_estimate`` (sample, time), a relative error, and ``tolerance_met`` (sample, time), if they were asked for
- attributes: problem, split, boundary (one name per axis, with commas), seed, reference, reference_error, version,
  schema = 1, Conventions = "CF-1.11" (units, axis, cell_methods, flag_values and the like follow these)

Data of other tools need no roles: a variable on (sample, time, space) is a channel; one on (sample,) or (sample,
space), or a single number, is a parameter. ``lengths`` may also be (axis,), the same for every sample, and all
attributes may be missing (then the boundary is periodic). Coordinates must increase evenly and agree with the lengths.
Other variables without the dimension ``sample`` are ignored.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hycop.data.dataset import NO_SEED, REAL, RESERVED, Dataset, box_length
from hycop.errors import InvalidInputError
from hycop.files import check_claim
from hycop.grid import AXES, Array, Grid
from hycop.query import Channel, Setting

if TYPE_CHECKING:
    import xarray as xr

XarrayDataset: TypeAlias = "xr.Dataset"
"""The type, for modules that must not import xarray."""

SCHEMA = 1
CONVENTIONS = "CF-1.11"

AGREES = 1e-4
"""Relative difference between a length and that of its coordinate: points from end to end are more than this apart."""

Guard = Callable[[], AbstractContextManager[None]]
"""Makes a context in which values are read."""

Variables = dict[str, tuple[tuple[str, ...], Array, dict[str, Any]]]


def to_xarray(dataset: Dataset) -> xr.Dataset:
    # xarray imports pandas, which takes most of a second, so only files pay for it.
    import xarray as xr

    setting = dataset.setting
    space = AXES[: setting.grid.axes]
    variables: Variables = {}
    for position, channel in enumerate(setting.channels):
        notes = {"role": "channel", "units": "1", "long_name": channel.name}
        notes["cell_methods"] = f"{' '.join(f'{letter}:' for letter in space)} mean"
        if channel.normal is not None:
            notes["normal"] = AXES[channel.normal]
        variables[channel.name] = (("sample", "time", *space), dataset.states[:, :, position], notes)
    variables |= _coordinates(dataset) | _of_answers(dataset)
    for name, value in setting.params.items():
        dims = ("sample", *space) if value.ndim > 1 else ("sample",)
        variables[name] = (dims, value, {"role": "parameter", "units": "1", "long_name": name})
    attrs: dict[str, str | int | float] = {
        "Conventions": CONVENTIONS,
        "problem": dataset.problem,
        "split": dataset.split,
        "boundary": ",".join(setting.grid.boundary),
        "seed": dataset.seed,
        "reference": dataset.reference,
        "version": dataset.version,
        "schema": SCHEMA,
    }
    if dataset.reference_error is not None:
        attrs["reference_error"] = dataset.reference_error
    return xr.Dataset(variables, attrs=attrs)


def _coordinates(dataset: Dataset) -> Variables:
    """Times and lengths of all samples; one-dimensional coordinates where the samples share them."""
    times, grid = dataset.times, dataset.setting.grid
    notes = {"units": "1", "long_name": "time, from the initial state on"}
    # the conventions want coordinates that increase
    if (times == times[0]).all() and (np.diff(times[0]) > 0).all():
        variables: Variables = {"time": (("time",), times[0], {**notes, "axis": "T"})}
    else:
        variables = {"time": (("sample", "time"), times, notes)}
    variables["lengths"] = (("sample", "axis"), grid.lengths, {"units": "1", "long_name": "size of the box"})
    for letter, cells, lengths in zip(AXES, grid.shape, grid.lengths.T, strict=False):
        if (lengths == lengths[0]).all():
            notes = {"units": "1", "long_name": f"{letter}, cell centres", "axis": letter.upper()}
            variables[letter] = ((letter,), (np.arange(cells) + 0.5) * (lengths[0] / cells), notes)
    return variables


def _of_answers(dataset: Dataset) -> Variables:
    """What is known about a model's answers."""
    dims, variables = ("sample", "time"), Variables()

    def mark(name: str, marks: Array | None, meaning: str, no: str, yes: str) -> None:
        if marks is not None:
            values = {"flag_values": np.array([0, 1], np.int8), "flag_meanings": f"{no} {yes}"}
            variables[name] = (dims, marks.astype(np.int8), {"long_name": meaning, **values})

    mark("untrusted", dataset.untrusted, "whether the model was asked outside its training", "trusted", "untrusted")
    if dataset.reasons is not None:
        why = {"long_name": "why the answer is not to be trusted, empty where it is"}
        variables["untrusted_reason"] = (dims, dataset.reasons, why)
    if dataset.error_estimate is not None:
        notes = {"units": "1", "long_name": "estimated relative error; physics that the model lacks is not seen"}
        variables["error_estimate"] = (dims, dataset.error_estimate, notes)
    mark("tolerance_met", dataset.tolerance_met, "whether error_estimate is within the tolerance", "missed", "met")
    return variables


def from_xarray(
    file: xr.Dataset,
    problem: str | None = None,
    also: Collection[str] = (),
    guard: Guard = nullcontext,
) -> Dataset:
    """The dataset that is laid out in ``file``, of ``problem`` or one of the others in ``also``. Values are read under
    ``guard``, since those of a damaged file may not be there."""
    schema = _integer(file.attrs, "schema", SCHEMA)
    if schema > SCHEMA:
        raise InvalidInputError(f"attribute 'schema' is {schema}, this version reads up to {SCHEMA}; update hycop")
    named = _text(file.attrs, "problem", problem or "unknown")
    if problem is not None and named != problem and named not in also:
        raise InvalidInputError(f"attribute 'problem' is '{named}', but '{problem}' is asked for; give its own data")
    channels, parameters = _sorted_variables(file)
    states, times = _read_states(file, guard, list(channels))
    samples, space = states.shape[0], states.shape[3:]
    lengths = _read(file, guard, "lengths")
    if lengths.shape not in ((len(space),), (samples, len(space))):
        raise InvalidInputError(
            f"variable 'lengths' has shape {lengths.shape}: ({samples}, {len(space)}), one per sample and axis, "
            "is needed"
        )
    _check_coordinates(file, guard, lengths)
    boundary = [name.strip() for name in _text(file.attrs, "boundary", "periodic").split(",")]
    grid = Grid(
        space,
        np.broadcast_to(lengths, (samples, len(space))).copy(),
        tuple(boundary * len(space) if len(boundary) == 1 else boundary),
    )
    params = {name: _read(file, guard, name) for name in parameters}
    return Dataset(
        problem=named,
        split=_text(file.attrs, "split", "unknown"),
        states=states,
        times=times,
        setting=Setting(grid, tuple(channels.values()), params),
        seed=_integer(file.attrs, "seed", NO_SEED),
        reference=_text(file.attrs, "reference", "unknown"),
        reference_error=_number(file.attrs, "reference_error"),
        version=_text(file.attrs, "version", "unknown"),
        reasons=_read_reasons(file, guard) if "untrusted_reason" in file.variables else None,
        **{
            name: _read(file, guard, name) if name in file.variables else None
            for name in ("untrusted", "error_estimate", "tolerance_met")
        },
    )


def is_xarray(value: object) -> bool:
    """Whether it is an xarray Dataset, found out without importing xarray."""
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(value, xarray.Dataset)


def from_memory(contents: xr.Dataset, problem: str | None = None) -> Dataset:
    """The dataset of an xarray Dataset that somebody has worked with: dimensions in any order, and without ``sample``
    if there is only one."""
    import xarray as xr

    if not isinstance(contents, xr.Dataset):
        raise InvalidInputError(
            f"a {type(contents).__name__} is no xarray Dataset: give one, as data.to_xarray() makes it"
        )
    if "sample" not in contents.dims:
        contents = contents.drop_vars("sample", errors="ignore").expand_dims("sample")
    order = [name for name in ("sample", "time", *AXES, "axis") if name in contents.dims]
    return from_xarray(contents.transpose(*order, ...), problem)


def _check_coordinates(file: xr.Dataset, guard: Guard, lengths: Array) -> None:
    """Refuses cell centres that contradict the grid, which ``lengths`` alone describe. Indices 0, 1, 2, …, as xarray
    gives them to axes without coordinates, are not cell centres."""
    for axis, letter in enumerate(AXES[: lengths.shape[-1]]):
        if letter not in file.variables or file.variables[letter].dims != (letter,) or file.sizes[letter] < 2:
            continue
        name = f"coordinate '{letter}'"
        centres = _read(file, guard, letter)
        if np.array_equal(centres, np.arange(centres.size)):
            continue
        found = box_length(name, centres.astype(np.float64))
        for sample, length in enumerate(np.atleast_2d(lengths)[:, axis]):
            if abs(found - length) > AGREES * length:
                raise InvalidInputError(
                    f"{name} has {centres.size} cells of {found / centres.size:g}, but lengths of sample {sample} is "
                    f"{length:g}, not {found:g}: give cell centres, or leave the coordinate out"
                )


def _sorted_variables(file: xr.Dataset) -> tuple[dict[str, Channel], list[str]]:
    """The channels and the names of the parameters, by role if the file tells it, else by dimensions."""
    channels: dict[str, Channel] = {}
    parameters: list[str] = []
    for name, variable in file.variables.items():
        dims, role = tuple(map(str, variable.dims)), variable.attrs.get("role")
        foreign = "sample" not in dims if dims else variable.dtype.kind not in REAL
        if name in RESERVED or (role is None and foreign):
            continue
        on_cells = len(dims) > 2 and dims == ("sample", "time", *AXES[: len(dims) - 2])
        if on_cells and role in (None, "channel"):
            channels[str(name)] = Channel(str(name), _normal(str(name), variable.attrs, len(dims) - 2))
        elif dims in ((), ("sample", *AXES[: len(dims) - 1])) and role in (None, "parameter"):
            parameters.append(str(name))
        else:
            raise InvalidInputError(
                f"variable '{name}' has dimensions ({', '.join(dims)}) and shape {variable.shape}: it is neither a "
                "channel (sample, time, x[, y[, z]]) nor a parameter (sample,) or (sample, x[, y[, z]])"
            )
    if not channels:
        found = ", ".join(map(str, file.variables)) or "nothing"
        raise InvalidInputError(f"there is no channel, a variable (sample, time, x[, y[, z]]); the file has {found}")
    return channels, parameters


def _normal(name: str, attrs: Mapping[str, Any], axes: int) -> int | None:
    letter = _text(attrs, "normal", "")
    if letter and letter not in AXES[:axes]:
        raise InvalidInputError(f"variable '{name}': attribute 'normal' is '{letter}', not one of {AXES[:axes]}")
    return AXES.index(letter) if letter else None


def _read_states(file: xr.Dataset, guard: Guard, channels: list[str]) -> tuple[Array, Array]:
    """All channels in one array, (sample, time, channel, *grid), and the times, (sample, time)."""
    first = file.variables[channels[0]]
    for name in channels:
        variable = file.variables[name]
        if variable.dims != first.dims:
            raise InvalidInputError(
                f"variable '{name}' has dimensions {variable.dims}, but '{channels[0]}' has {first.dims}"
            )
        if variable.dtype.kind not in REAL:
            raise InvalidInputError(f"variable '{name}' has dtype {variable.dtype}: real numbers are needed")
    samples, count, *space = first.shape
    dtype = np.result_type(*(file.variables[name].dtype for name in channels)).newbyteorder("=")
    check_claim("this dataset", samples * count * len(channels) * prod(space) * dtype.itemsize)
    states = np.empty((samples, count, len(channels), *space), dtype)
    for position, name in enumerate(channels):
        states[:, :, position] = _read(file, guard, name)
    times = _read(file, guard, "time")
    if times.shape not in ((count,), (samples, count)):
        raise InvalidInputError(
            f"variable 'time' has shape {times.shape}: ({count},), for all samples, or ({samples}, {count}) is needed"
        )
    return states, np.broadcast_to(times, (samples, count)).copy()


def _read(file: xr.Dataset, guard: Guard, name: str) -> Array:
    if name not in file.variables:
        found = ", ".join(map(str, file.variables))
        raise InvalidInputError(f"variable '{name}' is missing; the file has {found}")
    variable = file.variables[name]
    if variable.dtype.kind not in REAL:
        raise InvalidInputError(f"variable '{name}' has dtype {variable.dtype}: real numbers are needed")
    with guard():
        values: Array = np.asarray(variable.values)
    return values


def _read_reasons(file: xr.Dataset, guard: Guard) -> Array:
    variable = file.variables["untrusted_reason"]
    if variable.dtype.kind not in "OSU":
        raise InvalidInputError(f"variable 'untrusted_reason' has dtype {variable.dtype}: texts are needed")
    with guard():
        return np.asarray(variable.values).astype(str)


def _text(attrs: Mapping[str, Any], name: str, default: str) -> str:
    value = attrs.get(name, default)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _number(attrs: Mapping[str, Any], name: str) -> float | None:
    if name not in attrs:
        return None
    try:
        return float(attrs[name])
    except (TypeError, ValueError):
        raise InvalidInputError(f"attribute '{name}' is {attrs[name]!r}: a number is needed") from None


def _integer(attrs: Mapping[str, Any], name: str, default: int) -> int:
    value = attrs.get(name, default)
    try:
        whole = int(value)
        if whole == value or isinstance(value, str):
            return whole
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInputError(f"attribute '{name}' is {value!r}: a whole number is needed")
