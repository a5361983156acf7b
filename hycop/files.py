"""Writing files: whole or not at all, and with a note of what made them."""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from hycop.errors import (
    HyCOPError,
    IncompatibleError,
    InvalidInputError,
    NonFiniteStateError,
    OutputError,
    SampleError,
    UnknownNameError,
)

ABOUT_DATA = (InvalidInputError, UnknownNameError, IncompatibleError, NonFiniteStateError)
"""Errors that the content of a file can cause wherever it is used."""


@contextmanager
def naming(path: str | os.PathLike[str] | None, each: int = 1) -> Iterator[None]:
    """Errors about data name the file that they came from, if they came from one; what names it already stays. Of
    ``each`` sample in the file so many were asked about."""
    try:
        yield
    except SampleError as error:
        if path is None or error.place:
            raise
        raise error.at(error.sample // each, f"{path}: ") from None
    except ABOUT_DATA as error:
        if path is not None and not str(error).startswith(str(path)):
            error.args = (f"{path}: {error}",)
        raise


def checked_output(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there; commands ask before they begin to compute."""
    path = Path(path)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; give the name of a file in it")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path}: is not a plain file; give the name of one")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}; create it or choose another")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: folder {path.parent} cannot be written; choose another or change its permissions")
    return path


def output_folder(path: str | os.PathLike[str]) -> Path:
    """The folder, made if it is not there."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be made a folder ({error.strerror}); choose another") from None
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary neighbour to write to, which takes the place of ``path`` at the end, unless anything fails."""
    path = checked_output(path).resolve()  # a link stays a link, and its target is replaced
    # the suffix stays, because libraries choose the format by it
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.tmp{path.suffix}")
    try:
        yield temporary
        with open(temporary, "r+b") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    # HDF5 reports some failures of the disk as RuntimeError
    except (OSError, RuntimeError) as error:
        if isinstance(error, HyCOPError):
            raise
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else next(iter(str(error).splitlines()), type(error).__name__)
        raise OutputError(f"{path}: cannot be written ({reason}); choose a folder with space and permission") from None
    finally:
        temporary.unlink(missing_ok=True)


MOST_TEXT = 2**24
"""Bytes of a text file that is read whole."""


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a regular file of at most ``most`` bytes; pipes, devices and endless files are refused."""
    try:
        if not path.is_file():
            raise InvalidInputError(f"{path}: {'is not a regular file' if path.exists() else 'no such file'}")
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise InvalidInputError(f"{path}: larger than {most} bytes; give a smaller file")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: not UTF-8 text ({error.reason}); save it as UTF-8") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror})") from None


def checked_report(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """The path, if a report may be written there: a new file, or one that holds an earlier report."""
    path = checked_output(path)
    if path.exists() and not overwrite and not _is_report(path):
        raise OutputError(f"{path}: exists and is no report of hycop; choose another name, or give --overwrite")
    return path


def _is_report(path: Path) -> bool:
    try:
        content = json.loads(read_text(path, 2**30))
        return str(content["meta"]["command"]).startswith("hycop")
    except (InvalidInputError, ValueError, RecursionError, KeyError, TypeError):
        return False


def write_report(path: str | os.PathLike[str], content: object, overwrite: bool = False) -> None:
    """Writes JSON where ``checked_report`` allows it."""
    write_json(checked_report(path, overwrite), content)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes the temporary neighbours of ``path`` that killed processes left; nobody may be writing it."""
    path = Path(path)
    for leftover in path.parent.glob(f".{path.stem}.*.tmp{path.suffix}"):
        leftover.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def provenance(command: str) -> dict[str, object]:
    """What a result needs to be made again: command, versions and machine."""
    packages = ("hycop", "numpy", "scipy", "numba")
    return {
        "command": command,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
