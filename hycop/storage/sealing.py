"""Hashes of the files that a folder lists."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from hycop.storage.document import ModelError, refusal

LARGEST = 4 * 2**30
"""Most bytes in a file that a folder lists."""


def check_files(path: Path, files: Mapping[str, str]) -> None:
    """Every file that ``path`` lists lies beside it and is as it was written."""
    for file, wanted in zip(listed_files(path, files), files.values(), strict=True):
        if file_hash(file) != wanted:
            raise ModelError(f"{file}: damaged (its sha256 is not the one in {path.name}); restore it or train again")


def listed_files(path: Path, files: Collection[str]) -> list[Path]:
    """The files beside ``path`` that it lists by plain names, of a possible size; none is opened."""
    out = []
    for name in files:
        plain = name[:1].isalnum() and all(letter.isalnum() or letter in "._-" for letter in name)
        if not (plain and name.isascii() and ".." not in name and len(name) <= 100):
            raise refusal(path, f"field 'files': {name!r} is not the plain name of a file in the folder")
        file = path.with_name(name)
        check_inside(file)
        if not file.is_file():
            raise ModelError(f"{file}: is missing, but {path.name} lists it; restore it or train again")
        if file.stat().st_size > LARGEST:
            raise ModelError(f"{file}: has {file.stat().st_size} bytes, more than the {LARGEST} that are possible")
        out.append(file)
    return out


def check_inside(file: Path) -> None:
    """Refuses a link to a file outside the folder: a model folder is whole by itself."""
    try:
        if file.is_symlink() and not file.resolve().is_relative_to(file.parent.resolve()):
            raise refusal(file, "is a link to a file outside its folder; replace it by the file itself")
    except RuntimeError as error:  # a link to itself
        raise refusal(file, f"cannot be read ({error}); restore it or train again") from None


def file_hash(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as stream:
            while block := stream.read(2**20):
                digest.update(block)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None
    return digest.hexdigest()
