"""External programs."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.primitives.foreign.contract import Foreign, checked_limit
from hycop.primitives.foreign.npy import BadAnswer, decoded, encoded, most_bytes
from hycop.primitives.foreign.process import Child, Crew, Limits, checked_memory
from hycop.query import Setting

_SERVERS = Crew()


@dataclass(frozen=True, kw_only=True)
class ExternalProgram(Foreign):
    """A program of any language, driven by files: ``command… INPUT OUTPUT argument…``, without a shell.

    INPUT is a ``.npy`` file of float64 (channel, *grid), one sample; the program writes the state after the duration to
    OUTPUT in the same form and exits with code 0. The values of ``arguments`` follow as decimal numbers. It runs in a
    temporary folder. Samples run in parallel.

    A ``persistent`` program is started as ``command…`` and stays alive. It reads requests from its standard input: the
    state and then the values of ``arguments`` (n,), each as the bytes of a ``.npy`` array of float64 after their number
    as 8 bytes, little-endian. It writes the new state to its standard output in the same form and waits for the next
    request, until its input ends. ``close()`` ends it, as does the end of this process.

    ``timeout`` is in seconds and for one sample, ``memory`` in bytes (address space; Linux). ``sha256`` is the hash of
    the program and of every file in the command: a program that has changed since is refused.
    """

    command: tuple[str, ...]
    persistent: bool = False
    timeout: float = 60.0
    memory: int | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_limit("timeout", self.timeout)
        checked_limit("memory", self.memory)
        checked_memory(self.memory)
        object.__setattr__(self, "command", _resolved(self.command))
        found = _files_hash(self.command)
        if self.sha256 not in ("", found):
            raise InvalidInputError(f"{self.label} is not the program that was meant: its sha256 is {found}")
        object.__setattr__(self, "sha256", found)

    @property
    def label(self) -> str:
        # of an interpreter and its script, the script
        return f"program {Path([part for part in self.command if os.path.isabs(part)][-1]).name}"

    @property
    def limits(self) -> Limits:
        return Limits(self.timeout, self.memory)

    def prepare(self) -> None:
        if _files_hash(self.command) != self.sha256:
            raise InvalidInputError(f"{self.label} has changed since the primitive was made; make it again")

    def advance(self, u: Array, duration: float, setting: Setting, stop: Event) -> object:
        run = self._ask if self.persistent else self._run
        return run(u[0], self.numbers(duration, setting), stop)[None]

    def _ask(self, u: Array, numbers: list[float], stop: Event) -> Array:
        request = [encoded(u), encoded(np.array(numbers, dtype=np.float64))]
        answer = _SERVERS.ask(self, self._start, request, most_bytes(u.shape), stop)
        return decoded(answer, u.shape)

    def _start(self) -> Child:
        return Child(self.command, self.limits)

    def _run(self, u: Array, numbers: list[float], stop: Event) -> Array:
        with TemporaryDirectory(prefix="hycop-", ignore_cleanup_errors=True) as folder:
            given, wanted = Path(folder, "input.npy"), Path(folder, "output.npy")
            given.write_bytes(encoded(u))
            values = [repr(float(value)) for value in numbers]
            child = Child([*self.command, str(given), str(wanted), *values], self.limits, folder)
            try:
                status = child.wait(self.limits.deadline(), stop)
                if status != 0:
                    raise child.failure(status)
            finally:
                child.end()
            return decoded(_read(wanted, most_bytes(u.shape)), u.shape)

    def close(self) -> None:
        """Ends the processes of a persistent program; the next call starts new ones."""
        _SERVERS.close(self)


def _resolved(command: object) -> tuple[str, ...]:
    """The command with the full paths of the program and of all arguments that are files."""
    parts = [command] if isinstance(command, str | os.PathLike) else command
    if not isinstance(parts, list | tuple) or not parts:
        raise InvalidInputError(f"command is {command!r:.60}: give the program and its arguments, as ('./solver',)")
    texts = [os.fspath(part) for part in parts if isinstance(part, str | os.PathLike)]
    if len(texts) != len(parts) or not all(isinstance(text, str) and text and "\0" not in text for text in texts):
        raise InvalidInputError(f"command is {command!r:.60}: give texts, or paths")
    program = shutil.which(texts[0])
    if program is None:
        raise InvalidInputError(f"command: there is no program '{texts[0]}' that can be executed; check its path")
    return os.path.abspath(program), *(os.path.abspath(text) if os.path.isfile(text) else text for text in texts[1:])


def _files_hash(command: tuple[str, ...]) -> str:
    """SHA-256 of all files in a command; each is read again only if it was written to."""
    hashes = []
    for part in command:
        try:
            about = os.stat(part)
            if stat.S_ISREG(about.st_mode):
                hashes.append(_file_hash(part, about.st_mtime_ns, about.st_size, about.st_ino))
        except OSError:
            if part == command[0]:
                raise InvalidInputError(f"{part}: the program is gone; restore it") from None
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


@lru_cache(maxsize=64)
def _file_hash(path: str, *_written: int) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def _read(path: Path, most: int) -> bytes:
    """The content of the output, if it is a plain file of a size that can be right."""
    try:
        # neither a link to elsewhere nor a pipe that nobody writes to
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise BadAnswer("ended with exit code 0, but wrote no output") from None
    except OSError as error:
        raise BadAnswer(f"wrote an output that cannot be read ({error.strerror})") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise BadAnswer("wrote an output that is not a plain file")
        if about.st_size > most:
            raise BadAnswer(f"wrote {about.st_size} bytes, but at most {most} are expected")
        return file.read(most)
