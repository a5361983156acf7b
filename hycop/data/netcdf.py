"""Dataset files: netCDF-4 (``.nc``) through xarray and h5netcdf, or NumPy's ``.npz`` with the same names.

- each channel (sample, time, x[, y[, z]]): role = "channel", and normal = "x" for a vector component along x
- each parameter (sample,): role = "parameter"
- ``time`` (sample, time): index 0 is the initial state
- ``lengths`` (sample, axis): the size of the box
- attributes: problem, split, boundary (one name per axis, with commas), seed, reference, reference_error, version,
  schema = 1

In an ``.npz`` an attribute is a scalar array of its name, and the attribute ``a`` of a variable ``v`` is ``v.a``.
Files of other tools need no roles: what lies on (sample, time, space) is a channel, and what lies on (sample,) or is
one number is a parameter. There ``time`` may also be (time,) and ``lengths`` (axis,), the same for every sample,
and all attributes may be missing (then the boundary is periodic). Coordinates ``x`` (x,), ``y`` (y,), ``z`` (z,) may be
there: cell centres, which must ascend evenly and agree with the lengths. What else does not lie on ``sample`` is left
aside.

The same dataset gives the same bytes as long as the versions of h5netcdf, h5py and HDF5, which netCDF-4
wants inside the file, stay the same; there are no dates in it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hycop.data.dataset import ATTRIBUTES, NO_SEED, REAL, RESERVED, Dataset, box_length
from hycop.errors import DatasetError, HyCOPError, InvalidInputError, OutputError
from hycop.files import checked_output, replacing
from hycop.grid import AXES, Array, Grid
from hycop.query import Channel, Setting

if TYPE_CHECKING:
    import xarray as xr

SCHEMA = 1
SUFFIXES = (".nc", ".npz")

AGREES = 1e-4
"""Relative difference between a length and that of its coordinate: points from end to end are more than this apart."""


def checked_dataset_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a dataset can be written there."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: unknown suffix '{Path(path).suffix}'; datasets are written as .nc or .npz")
    return checked_output(path)


def save(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset to an ``.nc`` or ``.npz`` file: whole, or not at all."""
    path = checked_dataset_path(path)
    write = _write_npz if path.suffix.lower() == ".npz" else _write_netcdf
    with replacing(path) as temporary:
        write(_to_xarray(dataset), temporary)


def load(path: str | os.PathLike[str], problem: str | None = None, kin: Collection[str] = ()) -> Dataset:
    """Read a dataset from an ``.nc`` or ``.npz`` file; with ``problem``, refuse the data of another one, unless it is
    among the ``kin``.

    A file that does not name its problem is taken to be of the one asked for.
    """
    path = Path(path)
    if path.is_dir():
        raise DatasetError(f"{path}: is a folder; give the name of a file in it")
    if path.suffix.lower() not in SUFFIXES:
        raise DatasetError(
            f"{path}: unknown suffix '{path.suffix}'; datasets are read from .nc or .npz, PDEBench's from .hdf5 or .h5"
        )
    if not path.exists():
        raise DatasetError(f"{path}: no such file")
    opened = _read_npz if path.suffix.lower() == ".npz" else _open_netcdf
    try:
        with _readable(path):
            file = opened(path)
        with file:
            return _from_xarray(file, path, problem, kin)
    except DatasetError:
        raise
    except HyCOPError as error:
        raise DatasetError(f"{path}: {error}") from None
    except MemoryError:
        raise DatasetError(f"{path}: too large for the memory of this machine; take fewer samples or times") from None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn whatever a damaged file provokes into one line."""
    try:
        yield
    except (HyCOPError, MemoryError):
        raise
    except PermissionError:
        raise DatasetError(f"{path}: cannot be read (permission denied)") from None
    # h5py, zipfile and NumPy's header parser raise nearly every kind of exception for broken bytes.
    except Exception as error:
        if _is_classic(path):
            raise DatasetError(
                f"{path}: is in netCDF's classic format; convert it to netCDF-4 (nccopy -k nc4 {path.name} new.nc)"
            ) from None
        kind = "npz" if path.suffix.lower() == ".npz" else "netCDF-4"
        raise DatasetError(
            f"{path}: not a whole {kind} dataset ({_first_line(error)}); it may be damaged, make or copy it again"
        ) from None


def _is_classic(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(3) == b"CDF"


def _to_xarray(dataset: Dataset) -> xr.Dataset:
    # pandas comes with xarray and takes most of a second, which only the use of files should cost.
    import xarray as xr

    setting = dataset.setting
    dims = ("sample", "time", *AXES[: setting.grid.axes])
    variables: dict[str, tuple[tuple[str, ...], Array, dict[str, str]]] = {}
    for position, channel in enumerate(setting.channels):
        normal = {} if channel.normal is None else {"normal": AXES[channel.normal]}
        variables[channel.name] = (dims, dataset.states[:, :, position], {"role": "channel", **normal})
    variables["time"] = (("sample", "time"), dataset.times, {})
    variables["lengths"] = (("sample", "axis"), setting.grid.lengths, {})
    if dataset.untrusted is not None:
        meaning = {"long_name": "1 where the model was asked outside the range on which it was trained"}
        variables["untrusted"] = (("sample", "time"), dataset.untrusted.astype(np.int8), meaning)
    for name, value in setting.params.items():
        variables[name] = (("sample",), value, {"role": "parameter"})
    attrs: dict[str, str | int | float] = {
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


def _write_netcdf(contents: xr.Dataset, path: Path) -> None:
    no_fill = {name: {"_FillValue": None} for name in contents.variables}
    contents.to_netcdf(path, engine="h5netcdf", format="NETCDF4", encoding=no_fill)


def _write_npz(contents: xr.Dataset, path: Path) -> None:
    arrays: dict[str, Any] = {}
    for name, variable in contents.variables.items():
        arrays[str(name)] = variable.values
        arrays.update({f"{name}.{key}": value for key, value in variable.attrs.items()})
    arrays.update({str(key): value for key, value in contents.attrs.items()})
    # np.savez cannot hold a parameter named "file", as that is the name of its own argument.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def _open_netcdf(path: Path) -> xr.Dataset:
    import h5netcdf
    import xarray as xr

    # A damaged file can stop the constructor of h5netcdf.File before it has set _writable; its destructor then
    # prints a traceback about that. This first look has the attribute from its class and fails in silence.
    with type("FirstLook", (h5netcdf.File,), {"_writable": False})(path, "r"):
        pass
    # Times here are plain numbers, whatever units another tool has noted; each channel is read once, so no cache.
    return xr.open_dataset(path, engine="h5netcdf", decode_times=False, decode_timedelta=False, cache=False)


def _read_npz(path: Path) -> xr.Dataset:
    """The arrays of an npz with the dimensions that their names and ranks imply."""
    import xarray as xr

    if not zipfile.is_zipfile(path):  # np.load would take it for a pickle, and advise to open that
        raise ValueError("it is no zip archive")
    # np.load leaves a file open that it cannot parse, so it gets one that is closed here.
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
        arrays = {name: _plain_array(file, name) for name in file.files}
    attrs = {name: _single(name, arrays.pop(name)) for name in ATTRIBUTES if name in arrays}
    counts = {array.shape[0] for array in arrays.values() if array.ndim > 2}
    variables = {}
    for name, array in arrays.items():
        coordinate = name in AXES and array.ndim == 1
        if "." in name or (name in RESERVED and name not in ("time", "lengths", "untrusted") and not coordinate):
            continue
        if array.ndim == 2 and name not in ("time", "lengths", "untrusted") and array.shape[0] not in counts:
            continue  # it does not lie on the samples
        noted = {key: f"{name}.{key}" for key in ("role", "normal")}
        notes = {key: _single(place, arrays[place]) for key, place in noted.items() if place in arrays}
        variables[name] = (_implied_dims(name, array.ndim), array, notes)
    try:
        return xr.Dataset(variables, attrs=attrs)
    except ValueError as error:  # sizes that contradict each other
        raise InvalidInputError(f"the arrays do not go together: {_first_line(error)}") from None


def _single(name: str, array: Array) -> Any:
    if array.size != 1:
        raise InvalidInputError(f"array '{name}' has shape {array.shape}: a single value is needed")
    return array.item()


def _plain_array(file: Any, name: str) -> Array:
    try:
        array: Array = file[name]
    except ValueError as error:
        # NumPy advises to allow pickles, which can run any code
        if "pickle" not in str(error):
            raise
        raise InvalidInputError(f"array '{name}' holds Python objects: save it as an array of numbers") from None
    return array


def _implied_dims(name: str, rank: int) -> tuple[str, ...]:
    if name in AXES:
        return (name,)
    if name in ("time", "lengths", "untrusted"):
        last = "axis" if name == "lengths" else "time"
        return (last,) if rank == 1 else ("sample", last, *(f"{name}_{extra}" for extra in range(2, rank)))[:rank]
    if rank == 2:  # neither a channel nor a parameter: refused where the variables are sorted
        return ("sample", f"{name}_1")
    space = (*AXES, *(f"{name}_{extra}" for extra in range(2 + len(AXES), rank)))
    return ("sample", "time", *space)[:rank]


def _from_xarray(file: xr.Dataset, path: Path, problem: str | None, kin: Collection[str]) -> Dataset:
    schema = _integer(file.attrs, "schema", SCHEMA)
    if schema > SCHEMA:
        raise InvalidInputError(f"attribute 'schema' is {schema}, this version reads up to {SCHEMA}; update hycop")
    named = _text(file.attrs, "problem", problem or "unknown")
    if problem is not None and named != problem and named not in kin:
        raise InvalidInputError(f"attribute 'problem' is '{named}', but '{problem}' is asked for; give its own data")
    channels, parameters = _sorted_variables(file)
    states, times = _read_states(file, path, list(channels))
    samples, space = states.shape[0], states.shape[3:]
    lengths = _read(file, path, "lengths")
    if lengths.shape not in ((len(space),), (samples, len(space))):
        raise InvalidInputError(
            f"variable 'lengths' has shape {lengths.shape}: ({samples}, {len(space)}), one per sample and axis, "
            "is needed"
        )
    _check_coordinates(file, path, lengths)
    boundary = [name.strip() for name in _text(file.attrs, "boundary", "periodic").split(",")]
    grid = Grid(
        space,
        np.broadcast_to(lengths, (samples, len(space))).copy(),
        tuple(boundary * len(space) if len(boundary) == 1 else boundary),
    )
    params = {name: _read(file, path, name) for name in parameters}
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
        untrusted=_read(file, path, "untrusted") if "untrusted" in file.variables else None,
    )


def _check_coordinates(file: xr.Dataset, path: Path, lengths: Array) -> None:
    """Refuses cell centres that contradict the grid, which only ``lengths`` describe; numbers of cells, as xarray
    gives them to axes without coordinates, are none."""
    for axis, letter in enumerate(AXES[: lengths.shape[-1]]):
        if letter not in file.variables or file.variables[letter].dims != (letter,) or file.sizes[letter] < 2:
            continue
        name = f"coordinate '{letter}'"
        centres = _read(file, path, letter)
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
        elif dims in ((), ("sample",)) and role in (None, "parameter"):
            parameters.append(str(name))
        else:
            raise InvalidInputError(
                f"variable '{name}' has dimensions ({', '.join(dims)}) and shape {variable.shape}: it is neither a "
                "channel (sample, time, x[, y[, z]]) nor a parameter (sample,)"
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


def _read_states(file: xr.Dataset, path: Path, channels: list[str]) -> tuple[Array, Array]:
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
    states = np.empty((samples, count, len(channels), *space), dtype)
    for position, name in enumerate(channels):
        states[:, :, position] = _read(file, path, name)
    times = _read(file, path, "time")
    if times.shape not in ((count,), (samples, count)):
        raise InvalidInputError(
            f"variable 'time' has shape {times.shape}: ({samples}, {count}), one per sample and time, is needed"
        )
    return states, np.broadcast_to(times, (samples, count)).copy()


def _read(file: xr.Dataset, path: Path, name: str) -> Array:
    if name not in file.variables:
        found = ", ".join(map(str, file.variables))
        raise InvalidInputError(f"variable '{name}' is missing; the file has {found}")
    with _readable(path):
        values: Array = np.asarray(file.variables[name].values)
    if values.dtype.kind not in REAL:
        raise InvalidInputError(f"variable '{name}' has dtype {values.dtype}: real numbers are needed")
    return values


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
