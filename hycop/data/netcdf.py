"""Dataset files: netCDF-4 (``.nc``) through xarray and h5netcdf, or NumPy's ``.npz`` with the same names.

``hycop/data/layout.py`` says which variables there are. In an ``.npz`` an attribute is a scalar array of its name, and
the attribute ``a`` of a variable ``v`` is ``v.a``.

The same dataset gives the same bytes as long as the versions of h5netcdf, h5py and HDF5 stay the same: netCDF-4 wants
these inside the file. There are no dates in it.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hycop.data.dataset import REAL, Dataset
from hycop.data.hdf5 import checked_hdf5
from hycop.data.layout import from_xarray, to_xarray
from hycop.data.npz import read_npz, write_npz
from hycop.errors import DatasetError, HyCOPError, InvalidInputError, OutputError
from hycop.files import checked_input, checked_output, replacing

if TYPE_CHECKING:
    import xarray as xr

HEADERS = 2**16
"""Bytes that a netCDF-4 file may take beside its values."""

SUFFIXES = (".nc", ".npz")


def checked_dataset_path(path: str | os.PathLike[str]) -> Path:
    """The path, if a dataset can be written there."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise OutputError(f"{path}: unknown suffix '{Path(path).suffix}'; datasets are written as .nc or .npz")
    return checked_output(path)


def save(dataset: Dataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset to an ``.nc`` or ``.npz`` file: whole, or not at all."""
    path = checked_dataset_path(path)
    write = write_npz if path.suffix.lower() == ".npz" else _write_netcdf
    with replacing(path) as temporary:
        write(to_xarray(dataset), temporary)


def load(path: str | os.PathLike[str], problem: str | None = None, also: Collection[str] = ()) -> Dataset:
    """Read a dataset from an ``.nc`` or ``.npz`` file. With ``problem``, refuse data of any other problem; ``also``
    names other problems whose data are as good.

    A file that does not name its problem is taken to be of the one asked for.
    """
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
            return from_xarray(file, problem, also, lambda: _readable(path))
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


def _write_netcdf(contents: xr.Dataset, path: Path) -> None:
    encoding: dict[str, dict[str, Any]] = {str(name): {"_FillValue": None} for name in contents.variables}
    if "untrusted_reason" in encoding:
        encoding["untrusted_reason"]["dtype"] = "S1"  # characters, whose size is known before they are read
    # HDF5 crashes the interpreter as it ends if a disk filled up while it wrote, so the space is checked before
    values = sum(each.nbytes for each in contents.variables.values() if each.dtype.kind in REAL)
    if shutil.disk_usage(path.parent).free < values + HEADERS:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    contents.to_netcdf(path, engine="h5netcdf", format="NETCDF4", encoding=encoding)


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
