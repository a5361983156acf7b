"""Hashes of the files that a folder lists."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from hycop.storage.document import ModelError, refusal


def check_files(path: Path, files: Mapping[str, str]) -> None:
    """Every file that ``path`` lists lies beside it and is as it was written."""
    for name, wanted in files.items():
        plain = name[:1].isalnum() and all(letter.isalnum() or letter in "._-" for letter in name)
        if not (plain and name.isascii() and ".." not in name and len(name) <= 100):
            raise refusal(path, f"field 'files': {name!r} is not the plain name of a file in the folder")
        file = path.with_name(name)
        if not file.is_file():
            raise ModelError(f"{file}: is missing, but {path.name} lists it; restore it or train again")
        if file_hash(file) != wanted:
            raise ModelError(f"{file}: damaged (its sha256 is not the one in {path.name}); restore it or train again")


def file_hash(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as stream:
            while block := stream.read(2**20):
                digest.update(block)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None
    return digest.hexdigest()
