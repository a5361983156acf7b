"""HDF5 files that refer to other files, or claim what they do not hold, are refused by every reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from hycop import files
from hycop.data import PDEBenchFile, load, save
from hycop.data.hdf5 import checked_hdf5
from hycop.errors import DatasetError, InvalidInputError
from tests.helpers import assert_same, make, write_gas

SECRET = np.arange(72.0, dtype=np.float32) + 1.0


def netcdf(path: Path) -> None:
    save(make((6,)), path.with_suffix(".nc"))
    path.with_suffix(".nc").rename(path)


READERS: dict[str, tuple[Callable[[Path], None], Callable[[Path], object], str]] = {
    ".nc": (netcdf, load, "u"),
    ".hdf5": (write_gas, lambda path: PDEBenchFile(path).read(), "density"),
}


def external_link(file: h5py.File, name: str, other: Path) -> None:
    file[name] = h5py.ExternalLink(other, "/secret")


def external_link_in_a_group(file: h5py.File, name: str, other: Path) -> None:
    file["deep/er/link"] = h5py.ExternalLink(other, "/secret")
    file[name] = h5py.SoftLink("/deep/er/link")


def external_storage(file: h5py.File, name: str, other: Path) -> None:
    file.create_dataset(name, (3, 3, 8), np.float32, external=[(str(other), 0, SECRET.nbytes)])


def virtual(file: h5py.File, name: str, other: Path) -> None:
    layout = h5py.VirtualLayout((72,), np.float32)
    layout[:] = h5py.VirtualSource(other, "secret", (72,))
    file.create_virtual_dataset(name, layout)


def unlimited_virtual(file: h5py.File, name: str, other: Path) -> None:
    """Its extent is that of its source, which HDF5 opens to tell it."""
    layout = h5py.VirtualLayout((72,), np.float32, maxshape=(None,))
    source = h5py.VirtualSource(other, "secret", (72,), maxshape=(None,))
    layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize(
    ("refer", "message"),
    [
        (external_link, "is a link to another file"),
        (external_link_in_a_group, "deep/er/link' is a link to another file"),
        (external_storage, "keeps its values in another file"),
        (virtual, "is a virtual dataset over other files"),
        (unlimited_virtual, "is a virtual dataset over other files"),
    ],
)
def test_other_files_are_not_read(
    tmp_path: Path, suffix: str, refer: Callable[[h5py.File, str, Path], None], message: str
) -> None:
    write, read, name = READERS[suffix]
    path, other = tmp_path / f"data{suffix}", tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["secret"] = SECRET
    write(path)
    read(path)
    with h5py.File(path, "r+") as file:
        del file[name]
        refer(file, name, other)
    with pytest.raises(DatasetError, match=rf"^{path}: '[^\n]*{message}; copy the data into this one$"):
        read(path)


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("chunks", [None, (1000, 1000)])
def test_claims_are_checked_before_anything_is_allocated(
    tmp_path: Path, suffix: str, chunks: tuple[int, ...] | None
) -> None:
    write, read, _ = READERS[suffix]
    path = tmp_path / f"data{suffix}"
    write(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("claim", (10**6, 10**6), np.float64, chunks=chunks)
    with pytest.raises(DatasetError, match=rf"^{path}: the file claims 7.3 TiB of data, but stores .* KiB"):
        read(path)


def test_a_chunk_larger_than_its_dataset_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("u", (2,), np.float64, chunks=(10**8,), maxshape=(None,))
    with pytest.raises(DatasetError, match=r"claims 762\.9 MiB"):
        checked_hdf5(tmp_path / "a.h5")


def test_a_part_larger_than_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gas.hdf5"
    write_gas(path)
    file = PDEBenchFile(path)
    monkeypatch.setattr(files.os, "sysconf", lambda name: 40)  # 1,600 bytes
    assert file.read(slice(0, 1), [0]).samples == 1
    with pytest.raises(InvalidInputError, match=rf"^{path}: this part of the file claims 2.2 KiB[^\n]*take fewer"):
        file.read(slice(0, 1))


def test_links_within_the_file_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "data.nc"
    save(make(), path)
    with h5py.File(path, "r+") as file:
        file["group/again"] = file["u"]
        file["group/circle"] = file["/"]
    assert_same(load(path), make())
    gas = tmp_path / "gas.hdf5"
    write_gas(gas)
    expected = PDEBenchFile(gas).read().states
    with h5py.File(gas, "r+") as file:
        file.move("density", "moved")
        file["density"] = h5py.SoftLink("/moved")
    assert np.array_equal(PDEBenchFile(gas).read().states, expected)


def test_a_file_that_changes_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "gas.hdf5"
    write_gas(path)
    file = PDEBenchFile(path)
    with h5py.File(path, "r+") as raw:
        raw["link"] = h5py.ExternalLink("/etc/passwd", "/")
    with pytest.raises(DatasetError, match="link to another file"):
        file.read()


@pytest.mark.parametrize("gamma", ["5/3", [1.4, 1.6], np.nan])
def test_a_gamma_that_is_no_number_is_refused_unless_one_is_given(tmp_path: Path, gamma: object) -> None:
    path = tmp_path / "gas.hdf5"
    write_gas(path)
    with h5py.File(path, "r+") as raw:
        raw.attrs["gamma"] = gamma
    with pytest.raises((DatasetError, ValueError), match="gamma"):
        PDEBenchFile(path)
    assert PDEBenchFile(path, params={"gamma": 1.4}).params["gamma"] == 1.4
