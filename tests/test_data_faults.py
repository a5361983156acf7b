"""Datasets that cannot be read or written: every fault is one clear line, and nothing is left half-written."""

from __future__ import annotations

import errno
import gc
import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hycop import files
from hycop.data import load, save
from hycop.errors import DatasetError, InvalidInputError, OutputError
from tests.helpers import SUFFIXES, assert_same, foreign, make, write_foreign

# Faults on reading


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"time": None}, "variable 'time' is missing; the file has h, m"),
        ({"lengths": None}, "variable 'lengths' is missing"),
        ({"h": None, "m": None}, r"no channel, a variable \(sample, time, x"),
        ({"m": (("sample", "time", "x"), np.full((2, 3, 4), np.nan))}, "'m' has a NaN .* in sample 0, time index 0"),
        ({"g": (("sample",), np.array([1.0, np.nan]))}, "parameter 'g' is nan for sample 1"),
        ({"g": (("sample",), np.array(["a", "b"]))}, "variable 'g' has dtype"),
        ({"m": (("sample", "q"), np.zeros((2, 9)))}, "variable 'm' .* neither a channel .* nor a parameter"),
        ({"time": (("sample", "time", "q"), np.zeros((2, 3, 2)))}, r"variable 'time' has shape \(2, 3, 2\)"),
        ({"time": (("sample", "time"), np.array([[0, 1, 2], [0, 2, 1]]))}, "sample 1 goes back from 2.0 to 1.0"),
        ({"lengths": (("sample", "axis"), np.ones((2, 2)))}, r"variable 'lengths' has shape \(2, 2\)"),
        ({"lengths": (("sample", "axis"), np.zeros((2, 1)))}, "lengths"),
        ({"h": (("sample", "time", "x"), np.full((2, 3, 4), 1j))}, "variable 'h' has dtype complex128|not a whole"),
    ],
)
@pytest.mark.filterwarnings("ignore:You are writing invalid netcdf features")
def test_bad_contents(tmp_path: Path, suffix: str, replaced: dict[str, Any], message: str) -> None:
    path = tmp_path / f"data{suffix}"
    if suffix == ".nc" and any(value is not None and value[1].dtype.kind == "c" for value in replaced.values()):
        xr.Dataset(foreign(**replaced)).to_netcdf(path, engine="h5netcdf", invalid_netcdf=True)
    else:
        write_foreign(path, **replaced)
    assert_one_line(path, message)


def test_one_time_has_one_state(tmp_path: Path) -> None:
    """The same state twice is what a prediction at its initial time has."""
    data = make()
    states, times = data.states.copy(), data.times.copy()
    times[1, 2] = times[1, 1]
    states[1, 2] = states[1, 1]
    assert replace(data, states=states, times=times).times[1, 2] == times[1, 1]
    states[1, 2] += 1.0
    with pytest.raises(InvalidInputError, match="twice for sample 1, at time indices 1 and 2"):
        replace(data, states=states, times=times)


def test_npz_arrays_of_no_sample_and_of_many_values(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    save(make(), path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays, mesh=np.zeros((7, 3)))
    assert_same(load(path), make())
    np.savez(path, **{**arrays, "problem": np.array(["a", "b"])})
    with pytest.raises(DatasetError, match="array 'problem' has shape \\(2,\\)"):
        load(path)


def assert_one_line(path: Path, message: str, problem: str | None = None) -> None:
    with pytest.raises(DatasetError, match=message) as caught:
        load(path, problem)
    text = str(caught.value)
    assert text.startswith(str(path)) and "\n" not in text
    assert (caught.value.__cause__ is None and caught.value.__suppress_context__) or caught.value.__context__ is None


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"problem": "burgers"}, "attribute 'problem' is 'burgers', but 'toy' is asked for"),
        ({"boundary": "perodic"}, "unknown boundary 'perodic': did you mean periodic"),
        ({"boundary": "wall,wall"}, "2 names for 1 axes"),
        ({"schema": 2}, "attribute 'schema' is 2"),
        ({"seed": "many"}, "attribute 'seed' is 'many'"),
        ({"seed": 1.5}, "attribute 'seed' is"),
        ({"reference_error": "small"}, "attribute 'reference_error' is 'small'"),
        ({"reference_error": -1.0}, "reference_error is -1.0"),
    ],
)
def test_bad_attributes(tmp_path: Path, suffix: str, attrs: dict[str, Any], message: str) -> None:
    assert_one_line(write_foreign(tmp_path / f"data{suffix}", attrs), message, problem="toy")


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"role": "parameter"}, "variable 'm' .* neither"),
        ({"role": "channel", "normal": "y"}, "variable 'm': attribute 'normal' is 'y'"),
    ],
)
def test_bad_roles(tmp_path: Path, attrs: dict[str, str], message: str) -> None:
    path = write_foreign(tmp_path / "data.nc", m=(("sample", "time", "x"), np.zeros((2, 3, 4)), attrs))
    assert_one_line(path, message)


def test_npz_arrays_of_different_sizes(tmp_path: Path) -> None:
    assert_one_line(write_foreign(tmp_path / "data.npz", g=(("sample",), np.ones(5))), "sample")
    assert_one_line(write_foreign(tmp_path / "data.npz", m=((), np.ones((2, 3, 5)))), "'x'")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 0.99])
def test_truncated_file(tmp_path: Path, suffix: str, part: float) -> None:
    path = tmp_path / f"data{suffix}"
    save(make((16, 16)), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    assert_one_line(path, "not a whole (netCDF-4|npz) dataset .* damaged")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_garbage_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    assert_one_line(path, "not a whole (netCDF-4|npz) dataset")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("part", np.linspace(0, 0.98, 15).round(2).tolist())
def test_damaged_bytes_never_escape_as_another_error(tmp_path: Path, suffix: str, part: float) -> None:
    # At fixed places: a few wrong bytes in a netCDF file make HDF5 itself search for minutes.
    path = tmp_path / f"data{suffix}"
    save(make((4,), samples=2), path)
    damaged = bytearray(path.read_bytes())
    start = int(part * len(damaged))
    damaged[start : start + 40] = b"\xa5" * len(damaged[start : start + 40])
    path.write_bytes(damaged)
    try:
        load(path)
    except DatasetError as error:
        assert str(error).startswith(str(path)) and "\n" not in str(error)


def test_damaged_root_is_reported_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "data.nc"
    save(make(), path)
    path.write_bytes(path.read_bytes().replace(b"OHDR", b"oHDR", 1))
    assert_one_line(path, "not a whole netCDF-4 dataset")
    gc.collect()  # a traceback from a destructor would be an error here


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", h=np.array([{"a": 1}], dtype=object))
    assert_one_line(tmp_path / "data.npz", "array 'h' holds Python objects")
    (tmp_path / "bytes.npz").write_bytes(b"neither an archive nor an array")
    assert_one_line(tmp_path / "bytes.npz", "not a whole npz dataset .it is no zip archive")
    with open(tmp_path / "array.npz", "wb") as file:
        np.save(file, np.zeros(3))
    assert_one_line(tmp_path / "array.npz", "not a whole npz dataset")
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("hello.txt", "hello")
    assert_one_line(tmp_path / "other.npz", "not a whole npz dataset|no channel")


def write_members(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_that_lie_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.npz"
    twice = write_members(path, [("h.npy", npy(np.ones(3))), ("h.npy", npy(np.zeros(3)))])
    assert_one_line(twice, "array 'h' is stored 2 times")
    claim = npy(np.ones(3)).replace(b"(3,), }" + b" " * 12, b"(3000000000000,), }")
    assert_one_line(write_members(path, [("h.npy", claim)]), r"array 'h' claims 21\.8 TiB, but the archive holds")
    monkeypatch.setattr(files, "SMALL", 2**16)
    bomb = write_members(path, [("h.npy", npy(np.zeros(2**20)))], zipfile.ZIP_DEFLATED)
    assert_one_line(bomb, r"the archive claims 8\.0 MiB of data, but stores 8\.\d KiB")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, suffix: str) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    assert_one_line(tmp_path / f"pipe{suffix}", "not a regular file")
    (tmp_path / f"loop{suffix}").symlink_to(f"loop{suffix}")
    assert_one_line(tmp_path / f"loop{suffix}", "symbolic link that leads back to itself")
    assert_one_line(tmp_path / ("a" * 300 + suffix), "the name is too long")


def test_reasons_of_unknown_length_are_refused(tmp_path: Path) -> None:
    reasons = np.full((2, 3), "far", dtype=object)
    path = write_foreign(tmp_path / "data.nc", untrusted_reason=(("sample", "time"), reasons))
    assert_one_line(path, "variable 'untrusted_reason' has dtype object, of any length")


def test_missing_file_folder_and_suffix(tmp_path: Path) -> None:
    assert_one_line(tmp_path / "none.nc", "no such file")
    (tmp_path / "folder.nc").mkdir()
    assert_one_line(tmp_path / "folder.nc", "is a folder")
    assert_one_line(tmp_path / "data.csv", r"unknown suffix '.csv'.*\.nc or \.npz")


# Faults on writing


def assert_not_written(path: Path, message: str, folder: Path) -> None:
    before = {entry: entry.read_bytes() for entry in folder.rglob("*") if entry.is_file()}
    with pytest.raises(OutputError, match=message) as caught:
        save(make(), path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    assert {entry: entry.read_bytes() for entry in folder.rglob("*") if entry.is_file()} == before


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "folder.nc").mkdir()
    (tmp_path / "text").write_text("text")
    assert_not_written(tmp_path / "folder.nc", "is a folder", tmp_path)
    assert_not_written(tmp_path / "missing" / "data.nc", "there is no folder .*missing; create it", tmp_path)
    assert_not_written(tmp_path / "text" / "data.nc", "there is no folder", tmp_path)
    assert_not_written(tmp_path / "data.h5", r"unknown suffix '.h5'.*\.nc or \.npz", tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_folder_without_permission(tmp_path: Path, suffix: str) -> None:
    tmp_path.chmod(0o500)
    try:
        assert_not_written(tmp_path / f"data{suffix}", "cannot be written .*[Pp]ermission", tmp_path)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failure_before_the_rename_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, exists: bool, call: str
) -> None:
    path = tmp_path / f"data{suffix}"
    if exists:
        save(make(seed=1), path)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fail)
    assert_not_written(path, "cannot be written .No space left on device.", tmp_path)
    monkeypatch.undo()
    if exists:
        assert_same(load(path), make(seed=1))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_interrupt_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(make(), tmp_path / f"data{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_overwriting_what_was_loaded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"data{suffix}"
    save(make(seed=1), path)
    save(load(path).take(slice(0, 1)), path)
    assert_same(load(path), make(seed=1).take(slice(0, 1)))
