"""The one door to HDF5 files (netCDF-4 is HDF5): a file may only hold values of its own.

HDF5 can refer to other files: by external links, by raw external storage (the values of a dataset lie in any file, at
any offset) and by virtual datasets. So a foreign file could make this program read any file of its user.
All three are refused before any value is read. Soft links are allowed: they lead to objects of the same file, all of
which are checked. So is the size that a dataset claims, before anything is allocated.
"""

from __future__ import annotations

import os
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from hycop.errors import DatasetError, InvalidInputError
from hycop.files import check_ratio, checked_input


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
