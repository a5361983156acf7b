"""NumPy's ``.npz`` archives: each array once, no pickles, and no more bytes than are stored and fit in memory."""

from __future__ import annotations

import zipfile
from collections import Counter
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from hycop.data.dataset import ATTRIBUTES, OF_ANSWERS, RESERVED
from hycop.errors import InvalidInputError
from hycop.files import check_claim, size_text
from hycop.grid import AXES, Array

if TYPE_CHECKING:
    import xarray as xr

OF_SAMPLES = ("time", "lengths", *OF_ANSWERS)
"""Arrays of a dataset that are neither channels nor parameters."""

HEADERS: dict[tuple[int, int], Any] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_arrays(file: BinaryIO) -> dict[str, Array]:
    """The arrays of an archive by their names; what it claims is checked before anything is allocated."""
    size = file.seek(0, 2)
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no zip archive")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        for name, count in Counter(member.filename for member in members).items():
            if count > 1:
                raise InvalidInputError(f"array '{name.removesuffix('.npy')}' is stored {count} times; keep one")
        stored = min(size, sum(member.compress_size for member in members))
        check_claim("the archive", sum(member.file_size for member in members), stored)
        arrays = [member for member in members if member.filename.endswith(".npy")]
        return {member.filename.removesuffix(".npy"): _read_member(archive, member) for member in arrays}


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in HEADERS:
            raise InvalidInputError(f"array '{name}' has an unknown format {version}: save it as an array of numbers")
        shape, _, dtype = HEADERS[version](file)
    if dtype.hasobject:  # a pickle, which can run any code
        raise InvalidInputError(f"array '{name}' holds Python objects: save it as an array of numbers")
    claimed = prod(shape) * dtype.itemsize
    if claimed > member.file_size:
        raise InvalidInputError(
            f"array '{name}' claims {size_text(claimed)}, but the archive holds {size_text(member.file_size)} of it; "
            "make or copy the file again"
        )
    with archive.open(member) as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
    return array


def write_npz(contents: xr.Dataset, path: Path) -> None:
    """Variables by their names, attributes as scalars, the attribute ``a`` of a variable ``v`` as ``v.a``."""
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


def read_npz(path: Path) -> xr.Dataset:
    """The arrays of an npz with the dimensions that their names and ranks imply."""
    import xarray as xr

    with open(path, "rb") as file:
        arrays = read_arrays(file)
    attrs = {name: _single(name, arrays.pop(name)) for name in ATTRIBUTES if name in arrays}
    counts = {array.shape[0] for array in arrays.values() if array.ndim > 2}
    variables = {}
    for name, array in arrays.items():
        coordinate = name in AXES and array.ndim == 1
        if "." in name or (name in RESERVED and name not in OF_SAMPLES and not coordinate):
            continue
        if array.ndim == 2 and name not in OF_SAMPLES and array.shape[0] not in counts:
            continue  # it has no axis of samples
        noted = {key: f"{name}.{key}" for key in ("role", "normal")}
        notes = {key: _single(place, arrays[place]) for key, place in noted.items() if place in arrays}
        variables[name] = (_implied_dims(name, array.ndim, notes.get("role")), array, notes)
    try:
        return xr.Dataset(variables, attrs=attrs)
    except ValueError as error:  # sizes that contradict each other
        raise InvalidInputError(f"the arrays do not go together: {next(iter(str(error).splitlines()), '')}") from None


def _single(name: str, array: Array) -> Any:
    if array.size != 1:
        raise InvalidInputError(f"array '{name}' has shape {array.shape}: a single value is needed")
    return array.item()


def _implied_dims(name: str, rank: int, role: str | None = None) -> tuple[str, ...]:
    if name in AXES:
        return (name,)
    if role == "parameter" and 1 < rank <= 1 + len(AXES):
        return ("sample", *AXES)[:rank]
    if name in OF_SAMPLES:
        last = "axis" if name == "lengths" else "time"
        return (last,) if rank == 1 else ("sample", last, *(f"{name}_{extra}" for extra in range(2, rank)))[:rank]
    if rank == 2:  # neither a channel nor a parameter: refused where the variables are sorted
        return ("sample", f"{name}_1")
    space = (*AXES, *(f"{name}_{extra}" for extra in range(2 + len(AXES), rank)))
    return ("sample", "time", *space)[:rank]
