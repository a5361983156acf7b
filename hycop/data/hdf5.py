"""The one door to HDF5 files (netCDF-4 is HDF5): a file may only hold values of its own.

HDF5 can refer to other files: by external links, by raw external storage (the values of a dataset lie in any file, at
any offset) and by virtual datasets. So a foreign file could make this program read any file of its user.
All three are refused before any value is read. Soft links are allowed: they lead to objects of the same file, all of
which are checked. So is the size that a dataset claims, before anything is allocated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from operator import index as as_index
from pathlib import Path
from typing import Any

import numpy as np

from hycop.data.dataset import REAL
from hycop.errors import DatasetError, HyCOPError, InvalidInputError
from hycop.files import check_ratio, checked_input
from hycop.grid import Array


def checked_hdf5(path: str | os.PathLike[str]) -> Any:
    """The open ``h5py.File``, if it holds all its values itself and claims no more bytes than it can hold."""
    import h5py

    path = checked_input(path, refused=DatasetError)
    found = path.stat()
    try:
        _check_file(path.resolve(), found.st_ino, found.st_size, found.st_mtime_ns)
    except InvalidInputError as error:
        raise DatasetError(f"{path}: {error}") from None
    return h5py.File(path, "r")


@lru_cache(maxsize=16)
def _check_file(path: Path, *version: int) -> None:
    """A large file is opened for each part of it that is read; as long as it stays the same, one check is enough."""
    import h5py

    with h5py.File(path, "r") as file:
        _check_objects(file)


def _check_objects(file: Any) -> None:
    """Visits every object once, by its hard links, and reads no value."""
    from h5py import h5d, h5g, h5l, h5o

    claimed = 0
    seen, waiting = {h5o.get_info(file.id).addr}, [("", file.id)]
    while waiting:
        place, group = waiting.pop()
        for name in group:
            link = group.links.get_info(name)
            where = f"{place}{name.decode(errors='replace')}"
            if link.type not in (h5l.TYPE_HARD, h5l.TYPE_SOFT):
                raise InvalidInputError(f"'{where}' is a link to another file; copy the data into this one")
            if link.type == h5l.TYPE_SOFT or link.u in seen:
                continue
            seen.add(link.u)  # the address: hard links may form a circle
            found = h5o.open(group, name)
            if isinstance(found, h5d.DatasetID):
                claimed += _claimed(where, found)
            elif isinstance(found, h5g.GroupID):
                waiting.append((f"{where}/", found))
    check_ratio("the file", claimed, file.id.get_filesize())


def _claimed(name: str, dataset: Any) -> int:
    """How many bytes a dataset of the file itself takes when it is read."""
    from h5py import h5d

    stored_as = dataset.get_create_plist()
    # the layout first: asking a virtual dataset for its extent opens its sources
    if stored_as.get_layout() == h5d.VIRTUAL:
        raise InvalidInputError(f"'{name}' is a virtual dataset over other files; copy the data into this one")
    if stored_as.get_external_count():
        raise InvalidInputError(f"'{name}' keeps its values in another file; copy the data into this one")
    cells = prod(dataset.get_space().get_simple_extent_dims())
    if stored_as.get_layout() == h5d.CHUNKED:
        cells = max(cells, prod(stored_as.get_chunk()))  # a chunk is read whole
    return cells * int(dataset.get_type().get_size())


def array_of(file: Any, name: str, *ranks: int) -> Any:
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


def finite_values(file: Any, name: str, values: Array, samples: range, frames: Array) -> Array:
    """Values (sample, frame, …) in double precision, if all are finite."""
    bad = ~np.isfinite(values).reshape(*values.shape[:2], -1).all(axis=2)
    if bad.any():
        sample, frame = (int(position[0]) for position in np.nonzero(bad))
        raise DatasetError(
            f"{file.filename}: {name} has a NaN or infinite value in sample {samples[sample]}, frame {frames[frame]}"
        )
    return values.astype(np.float64)


def checked_frames(frames: Sequence[int] | None, count: int) -> Array:
    """Indices of frames in increasing order; all ``count`` of them for None."""
    try:
        out = np.array(range(count) if frames is None else [as_index(frame) for frame in frames], dtype=np.int64)
    except TypeError:
        raise InvalidInputError(f"frames {frames}: a series of whole numbers is needed") from None
    if not (out.size and (np.diff(out) > 0).all() and out[0] >= 0 and out[-1] < count):
        raise InvalidInputError(f"frames {frames}: increasing numbers from 0 to {count - 1} are needed")
    return out


@contextmanager
def opened(path: Path) -> Iterator[Any]:
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
