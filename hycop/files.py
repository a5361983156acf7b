"""Reads regular files of bounded size, writes whole files or none, and records what made them."""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
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
"""Errors that the content of a file can cause after it was read."""

MOST_TEXT = 2**26
"""Largest text file that is read, in bytes (64 MiB): settings, programs and reports are far smaller."""

SMALL = 2**28
"""A file may claim this many bytes (256 MiB) of data, however few it stores."""

MOST_RATIO = 200
"""Largest ratio of claimed to stored bytes above ``SMALL``: fields compress far less."""

LONGEST_STEM = 40
"""Letters of a file's name that its temporary neighbour keeps: a longer name could be too long for the disk."""


@contextmanager
def naming(path: str | os.PathLike[str] | None, each: int = 1) -> Iterator[None]:
    """Adds the name of the file to errors about its data, unless they name it already. ``each`` is the number of
    queries per sample of the file."""
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


def checked_input(
    path: str | os.PathLike[str], most: int | None = None, refused: type[HyCOPError] = InvalidInputError
) -> Path:
    """The path of a regular file of at most ``most`` bytes. Refuses FIFOs, devices and sockets, which have no end."""
    path = Path(path)
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise refused(f"{path}: {_reason(error)}") from None
    _check_regular(path, found, most, refused)
    return path


def read_bytes(path: str | os.PathLike[str], most: int, refused: type[HyCOPError] = InvalidInputError) -> bytes:
    """The content of a regular file, if it has at most ``most`` bytes."""
    try:
        # without O_NONBLOCK, opening a FIFO waits for a writer
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            _check_regular(path, os.fstat(file.fileno()), most, refused)
            content = file.read(most + 1)  # some files, as in /proc, do not tell their size
    except HyCOPError:
        raise
    except (OSError, ValueError) as error:
        raise refused(f"{path}: {_reason(error)}") from None
    if len(content) > most:
        raise refused(f"{path}: has more than {size_text(most)}, the most that is read here; give another file")
    return content


def read_text(
    path: str | os.PathLike[str], most: int = MOST_TEXT, refused: type[HyCOPError] = InvalidInputError
) -> str:
    """The text of a regular UTF-8 file of at most ``most`` bytes."""
    try:
        return read_bytes(path, most, refused).decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None


def _check_regular(
    path: str | os.PathLike[str], found: os.stat_result, most: int | None, refused: type[HyCOPError]
) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise refused(f"{path}: {_reason(IsADirectoryError(errno.EISDIR, ''))}")
    if not stat.S_ISREG(found.st_mode):
        raise refused(f"{path}: is not a regular file (a pipe, device or socket); give the name of one")
    if most is not None and found.st_size > most:
        raise refused(
            f"{path}: has {size_text(found.st_size)}, but at most {size_text(most)} are read here; give another file"
        )


def _reason(error: Exception) -> str:
    """Why a path cannot be used, and what to do."""
    number = getattr(error, "errno", None)
    reasons = {
        errno.ENOENT: "no such file; check the name",
        errno.ENOTDIR: "no such file; a part of the path is a file, not a folder",
        errno.EISDIR: "is a folder; give the name of a file in it",
        errno.ELOOP: "is a symbolic link that leads back to itself; give the file itself",
        errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
        errno.EACCES: "cannot be read (permission denied); change its permissions",
        None: "is not the name of a file; choose another",
    }
    return reasons.get(number) or f"cannot be used ({os.strerror(number or 0)}); give another file"


def size_text(count: int) -> str:
    """A number of bytes as text.

    >>> size_text(7), size_text(3 * 2**30)
    ('7 bytes', '3.0 GiB')
    """
    power = min((count.bit_length() - 1) // 10, 4)
    return f"{count} bytes" if power < 1 else f"{count / 1024**power:.1f} {('KiB', 'MiB', 'GiB', 'TiB')[power - 1]}"


def check_claim(what: str, claimed: int, stored: int | None = None) -> None:
    """Refuses data that claim more bytes than the memory of this machine, or far more than are ``stored``. Call it
    before anything is allocated."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if claimed > memory:
        raise InvalidInputError(
            f"{what} claims {size_text(claimed)}, but this machine has {size_text(memory)} of memory; take fewer "
            "samples or times"
        )
    if stored is not None:
        check_ratio(what, claimed, stored)


def check_ratio(what: str, claimed: int, stored: int) -> None:
    """Refuses data that claim far more bytes than are stored."""
    if claimed > max(SMALL, MOST_RATIO * stored):
        raise InvalidInputError(
            f"{what} claims {size_text(claimed)} of data, but stores {size_text(stored)}, less than 1 byte for "
            f"{MOST_RATIO}; it may be damaged, make or copy it again"
        )


def checked_output(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there. Commands check this before they compute."""
    path = Path(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except (OSError, ValueError) as error:
        if isinstance(error, NotADirectoryError):
            raise OutputError(f"{path}: there is no folder {path.parent}; create it or choose another") from None
        raise OutputError(f"{path}: {_reason(error)}") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise OutputError(f"{path}: is a folder; give the name of a file in it")
    if mode is not None and not stat.S_ISREG(mode):
        raise OutputError(f"{path}: is not a regular file; give the name of one")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}; create it or choose another")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: folder {path.parent} cannot be written; choose another or change its permissions")
    return path


def _is_there(path: Path) -> bool:
    """Whether there is a file or folder; errors of names that no system accepts are raised."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def checked_folder(path: str | os.PathLike[str]) -> Path:
    """The path, if it is a folder that can be written or one can be made there. Commands check this before they
    compute."""
    path = Path(path)
    try:
        there = next(part for part in (path, *path.absolute().parents) if _is_there(part))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: cannot be made a folder ({_reason(error)}); choose another") from None
    if not there.is_dir():
        raise OutputError(f"{path}: {there} is a file; give a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OutputError(f"{path}: folder {there} cannot be written; choose another or change its permissions")
    return path


def output_folder(path: str | os.PathLike[str]) -> Path:
    """The folder; it is made if needed."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{path}: cannot be made a folder ({reason}); choose another") from None
    return path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file in the same folder. At the end it is flushed and replaces ``path``, unless anything failed."""
    path = checked_output(path).resolve()  # a link stays a link, and its target is replaced
    # the suffix stays, because libraries choose the format by it
    temporary = path.with_name(f".{path.stem[:LONGEST_STEM]}.{secrets.token_hex(4)}.tmp{path.suffix}")
    try:
        with writing(path):
            yield temporary
            flush(temporary)
            os.replace(temporary, path)
        # The file is in place now, so a disk that cannot flush a folder is no failure.
        with suppress(OSError):
            flush(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns any failure of the disk while ``path`` is written into an error of one line."""
    try:
        yield
    # HDF5 reports some failures of the disk as RuntimeError
    except (OSError, RuntimeError) as error:
        if isinstance(error, HyCOPError):
            raise
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number else next(iter(str(error).splitlines()), type(error).__name__)
        raise OutputError(f"{path}: cannot be written ({reason}); choose a folder with space and permission") from None


def flush(path: str | os.PathLike[str]) -> None:
    """Waits until the disk holds what was written to a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Removes the temporary neighbours of ``path`` that killed processes left; nobody may be writing it."""
    path = Path(path)
    for leftover in path.parent.glob(f".{escape(path.stem[:LONGEST_STEM])}.*.tmp{escape(path.suffix)}"):
        leftover.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def write_report(path: str | os.PathLike[str], content: dict[str, object], overwrite: bool = False) -> None:
    """Writes the result of a command as JSON; ``content["meta"]`` is its ``provenance``."""
    write_json(checked_report(path, overwrite), content)


def checked_report(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """The path, if a report can be written there: a new file, or in place of an older report. Any other file is
    replaced with ``overwrite`` only."""
    path = checked_output(path)
    if path.exists() and not overwrite and not _is_report(path):
        raise OutputError(f"{path}: exists and is not a report of hycop; choose another file, or give --overwrite")
    return path


def _is_report(path: Path) -> bool:
    try:
        content = json.loads(read_text(path))
        return str(content["meta"]["command"]).startswith("hycop")
    # whatever else the file holds, it is not a report
    except (HyCOPError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return False


def provenance(command: str) -> dict[str, object]:
    """What it takes to reproduce a result: command, versions and machine."""
    packages = ("hycop", "numpy", "scipy", "numba")
    return {
        "command": command,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
