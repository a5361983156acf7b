"""Files in general: inputs without end or name, and outputs that must not destroy anything."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hycop.errors import DatasetError, InvalidInputError, OutputError
from hycop.files import (
    check_claim,
    checked_folder,
    checked_input,
    checked_report,
    provenance,
    read_text,
    remove_leftovers,
    replacing,
    write_report,
)


def bound(path: Path) -> None:
    """A socket; its address has few letters."""
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(before)


INPUTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: None, "no such file"),
    "folder": (Path.mkdir, "is a folder; give the name of a file in it"),
    "pipe": (os.mkfifo, "not a regular file"),
    "socket": (bound, "not a regular file|cannot be used"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "loop": (lambda path: path.symlink_to(path), "symbolic link that leads back to itself"),
    "large": (lambda path: path.write_text("a" * 1001), r"has 1001 bytes, but at most 1000 bytes are read"),
    "endless": (lambda path: path.symlink_to("/proc/self/smaps"), "has more than 1000 bytes"),
    "not text": (lambda path: path.write_bytes(b"ab\xff"), r"is not UTF-8 text \(byte 2\)"),
    "under a file": (lambda path: path.parent.rmdir() or path.parent.write_text(""), "a part of the path is a file"),
}


@pytest.mark.parametrize("kind", INPUTS)
def test_inputs_are_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    make, message = INPUTS[kind]
    path = tmp_path / "folder" / "input"
    path.parent.mkdir()
    make(path)
    with pytest.raises(InvalidInputError, match=message) as caught:
        read_text(path, most=1000)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
    if kind not in ("not text", "endless"):
        with pytest.raises(DatasetError, match="not a regular file" if kind == "socket" else message):
            checked_input(path, 1000, DatasetError)


@pytest.mark.parametrize("name", ["a" * 300, "a\0b"])
def test_names_that_no_disk_takes_are_refused(tmp_path: Path, name: str) -> None:
    for use in (read_text, checked_input):
        with pytest.raises(InvalidInputError, match="name"):
            use(tmp_path / name)
    with pytest.raises(OutputError, match="name"):
        checked_report(tmp_path / name)


def test_a_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("é" * 500, encoding="utf-8")
    (tmp_path / "link").symlink_to("real")
    assert read_text(tmp_path / "link", most=1000) == "é" * 500


def test_claims_beyond_the_memory_are_refused() -> None:
    check_claim("it", 2**20, 1)
    with pytest.raises(InvalidInputError, match=r"it claims 1048576.0 TiB, but this machine has .* of memory"):
        check_claim("it", 2**60)
    with pytest.raises(InvalidInputError, match=r"it claims 300.0 MiB of data, but stores 1.0 MiB"):
        check_claim("it", 300 * 2**20, 2**20)


REPORT = {"rows": [], "meta": provenance("hycop problems")}


def test_a_report_replaces_reports_only(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for rows in ([], [1]):
        write_report(path, {**REPORT, "rows": rows})
        assert json.loads(path.read_text())["rows"] == rows
    others = [b"", b"\x89HDF\r\n", b"[1, 2]", b'{"meta": 3}', b'{"meta": {"command": "ls"}}', b"[" * 100_000, b"{"]
    for content in [*others, b'{"rows": [], "meta": {"versions": {}}}']:
        path.write_bytes(content)
        with pytest.raises(OutputError, match=r"^[^\n]*a\.json: exists and is not a report of hycop[^\n]*--overwrite$"):
            write_report(path, REPORT)
        assert path.read_bytes() == content
    write_report(path, REPORT, overwrite=True)
    assert checked_report(path) == path and json.loads(path.read_text()) == REPORT


def test_temporary_neighbours_of_odd_names_fit_and_are_found(tmp_path: Path) -> None:
    for name in ("ä" * 120 + ".nc", "a[b]*.nc"):
        with replacing(tmp_path / name) as temporary:
            temporary.write_text("new")
        assert (tmp_path / name).read_text() == "new"
        temporary.write_text("left by a kill")
        remove_leftovers(tmp_path / name)
        assert not temporary.exists()


def test_a_folder_is_checked_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for good in (tmp_path, tmp_path / "new", tmp_path / "new" / "deeper"):
        assert checked_folder(good) == good and not (tmp_path / "new").exists()
    for bad in (tmp_path / "file", tmp_path / "file" / "in" / "it"):
        with pytest.raises(OutputError, match=r"^[^\n]*file is a file; give a folder$"):
            checked_folder(bad)
    with pytest.raises(OutputError, match="cannot be made a folder"):
        checked_folder(tmp_path / ("long" * 100))
