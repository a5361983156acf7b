"""Dataset files: netCDF-4 (``.nc``) through xarray and h5netcdf, or NumPy's ``.npz`` with the same names.

``hycop/data/layout.py`` says which variables there are. In an ``.npz`` an attribute is a scalar array of its name, and
the attribute ``a`` of a variable ``v`` is ``v.a``.

The same dataset gives the same bytes as long as the versions of h5netcdf, h5py and HDF5 stay the same: netCDF-4 wants
these inside the file. There are no dates in it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hycop.data.blocks import BlockWriter, outline
from hycop.data.dataset import Dataset
from hycop.data.hdf5 import checked_hdf5
from hycop.data.layout import Guard, from_xarray, to_xarray
from hycop.data.npz import read_npz, write_npz
from hycop.errors import DatasetError, HyCOPError, InvalidInputError, OutputError
from hycop.files import checked_input, checked_output
from hycop.grid import Array

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = (".nc", ".npz")


def checked_dataset_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a dataset can be written there."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: unknown suffix '{Path(path).suffix}'; datasets are written as .nc or .npz")
    return checked_output(path)


def save(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset to an ``.nc`` or ``.npz`` file: whole, or not at all."""
    with writer(path, dataset.samples) as target:
        target.append(dataset)


def writer(path: str | os.PathLike[str], samples: int) -> BlockWriter:
    """Writes an ``.nc`` or ``.npz`` file block by block; an ``.npz`` is held in memory until its last block."""
    path = checked_dataset_path(path)
    return (_NpzWriter if path.suffix.lower() == ".npz" else _NetcdfWriter)(path, samples)


def load(
    path: str | os.PathLike[str],
    problem: str | None = None,
    also: Collection[str] = (),
    samples: slice | None = None,
) -> Dataset:
    """Read a dataset from an ``.nc`` or ``.npz`` file, or only some of its ``samples``. With ``problem``, refuse data
    of any other problem; ``also`` names other problems whose data are as good.

    A file that does not name its problem is taken to be of the one asked for.
    """
    with _opened(path) as (file, guard):
        part = file if samples is None or "sample" not in file.sizes else file.isel(sample=samples)
        return from_xarray(part, problem, also, guard)


def size_of(path: str | os.PathLike[str]) -> tuple[int, int]:
    """The number of samples in an ``.nc`` or ``.npz`` file, and the bytes of one; nothing is loaded from an ``.nc``."""
    with _opened(path) as (file, _):
        samples = file.sizes.get("sample", 1)
        held = (each for each in file.variables.values() if "sample" in each.dims)
        return samples, sum(each.size * each.dtype.itemsize for each in held) // max(1, samples)


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[xr.Dataset, Guard]]:
    """The open file, and the guard under which its values are read."""
    path = Path(path)
    if not os.path.isdir(path) and path.suffix.lower() not in SUFFIXES:
        raise DatasetError(
            f"{path}: unknown suffix '{path.suffix}'; datasets are read from .nc or .npz, PDEBench's from .hdf5 or .h5"
        )
    checked_input(path, refused=DatasetError)
    opened = read_npz if path.suffix.lower() == ".npz" else _open_netcdf
    try:
        with _readable(path):
            file = opened(path)
        with file:
            yield file, lambda: _readable(path)
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
    """Turns any exception about a damaged file into an error of one line."""
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


class _NetcdfWriter(BlockWriter):
    """The channels first, block by block; then, in the same file, all that is small."""

    def begin(self, block: Dataset) -> None:
        import h5netcdf

        described = to_xarray(outline(block))
        self.names = [channel.name for channel in block.setting.channels]
        self.file = self.held.enter_context(h5netcdf.File(self.temporary, "w"))
        variables = {name: described.variables[name] for name in self.names}
        sizes = dict(variables[self.names[0]].sizes)
        self.file.dimensions = {str(name): n for name, n in {**sizes, "sample": self.samples}.items()}
        for name, variable in variables.items():
            made = self.file.create_variable(name, tuple(map(str, variable.dims)), variable.dtype)
            made.attrs.update(variable.attrs)

    def states(self, first: int, block: Dataset) -> None:
        for position, name in enumerate(self.names):
            self.file.variables[name][first : first + block.samples] = block.states[:, :, position]

    def finish(self, outline: Dataset) -> None:
        self.held.close()
        rest = to_xarray(outline).drop_vars(self.names)
        encoding: dict[str, dict[str, Any]] = {str(name): {"_FillValue": None} for name in rest.variables}
        if "untrusted_reason" in encoding:
            encoding["untrusted_reason"]["dtype"] = "S1"  # characters, whose size is known before they are read
        rest.to_netcdf(self.temporary, mode="a", engine="h5netcdf", format="NETCDF4", encoding=encoding)


class _NpzWriter(BlockWriter):
    """An archive has whole arrays, so all blocks are kept until the last."""

    def begin(self, block: Dataset) -> None:
        self.kept: list[Array] = []

    def states(self, first: int, block: Dataset) -> None:
        self.kept.append(block.states)

    def finish(self, outline: Dataset) -> None:
        write_npz(to_xarray(replace(outline, states=np.concatenate(self.kept))), self.temporary)


def _open_netcdf(path: Path) -> xr.Dataset:
    import h5netcdf
    import xarray as xr

    with checked_hdf5(path) as raw:
        unbounded = [name for name, item in raw.items() if hasattr(item, "dtype") and item.dtype.hasobject]
    # A damaged file can stop the constructor of h5netcdf.File before it has set _writable; its destructor then
    # prints a traceback about that. This first look has the attribute from its class and fails in silence.
    with type("FirstLook", (h5netcdf.File,), {"_writable": False})(path, "r") as look:
        for name in unbounded:
            if "sample" in look.variables[name].dimensions:
                raise InvalidInputError(f"variable '{name}' has dtype object, of any length: real numbers are needed")
    # Texts of variable length could all point to the same long one, and xarray reads them as it opens a file.
    # Times here are plain numbers, whatever units another tool has noted; each channel is read once, so no cache.
    return xr.open_dataset(
        path, engine="h5netcdf", decode_times=False, decode_timedelta=False, cache=False, drop_variables=unbounded
    )
