"""Child processes with limits: none outlives its use, and none can hold up this process."""

from __future__ import annotations

import atexit
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Event
from typing import IO

from hycop.errors import InvalidInputError
from hycop.files import size_text
from hycop.primitives.foreign.npy import BadAnswer, Stopped

LONGEST_WAIT = 0.02
"""Seconds between two looks at a process or its pipes, at most, so that a request to stop is seen."""

LAST_BREATH = 0.2
"""Seconds within which a process that closed its output must have ended for its exit code to be known."""

LARGEST_FILE = 2**30
"""Most bytes that a program may write into one file."""


@dataclass(frozen=True)
class Limits:
    """Seconds for one answer, and bytes of memory (address space); None: without a limit."""

    timeout: float | None
    memory: int | None

    def deadline(self) -> float:
        return time.monotonic() + (float("inf") if self.timeout is None else self.timeout)

    def too_late(self) -> BadAnswer:
        return BadAnswer(f"gave no answer within {self.timeout:g} s and was killed; is timeout too short?")


class Child:
    """A process in a group of its own, so that ``end`` kills all that it started too.

    With a ``folder`` it works there and takes no requests. Without one it reads requests from its input and answers on
    its output. Its temporary files, if it has a place for them (``scratch``), go with it.
    """

    def __init__(
        self,
        command: Sequence[str],
        limits: Limits,
        folder: str | None = None,
        scratch: TemporaryDirectory[str] | None = None,
    ) -> None:
        self.limits, self.scratch = limits, scratch
        # a file without a name: even if this process is killed, nothing is left
        self.errors = TemporaryFile()  # noqa: SIM115
        pipe = subprocess.PIPE if folder is None else subprocess.DEVNULL
        try:
            # without preexec_fn, which is not safe beside Numba's threads; the limits are set from here
            self.process = subprocess.Popen(
                list(command),
                stdin=pipe,
                stdout=pipe if folder is None else self.errors,
                stderr=self.errors,
                cwd=folder,
                env=None if scratch is None else {**os.environ, "TMPDIR": scratch.name},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.errors.close()
            raise BadAnswer(f"cannot be started ({getattr(error, 'strerror', None) or error})") from None
        self._limit(once=folder is not None)

    def _limit(self, once: bool) -> None:
        wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: LARGEST_FILE}
        if self.limits.memory is not None:
            wanted[resource.RLIMIT_AS] = self.limits.memory
        if once and self.limits.timeout is not None:
            # if this process is killed, nobody watches the clock; then at least a busy program ends by itself
            wanted[resource.RLIMIT_CPU] = ceil(self.limits.timeout + 1) * (os.cpu_count() or 1)
        for kind, most in wanted.items():
            with suppress(ProcessLookupError, ValueError, PermissionError):  # it has ended, or has stricter limits
                resource.prlimit(self.process.pid, kind, (most, most))

    def wait(self, deadline: float, stop: Event) -> int:
        """The exit status. The process is not reaped, so that nobody else gets its number before its group is gone."""
        begin = time.monotonic()
        while (state := os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None:
            if time.monotonic() > deadline:
                raise self.limits.too_late()
            if stop.is_set():
                raise Stopped
            time.sleep(min(LONGEST_WAIT, max(2e-4, (time.monotonic() - begin) / 8)))
        return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status

    def failure(self, status: int) -> BadAnswer:
        """What the exit status and the last line that it printed tell."""
        how = f"ended with exit code {status}" if status >= 0 else f"was ended by {_signal_name(-status)}"
        if self.limits.memory is not None:
            how += f" (memory limit {size_text(self.limits.memory)})"
        said = self.last_words()
        return BadAnswer(f"{how}: {said}" if said else how)

    def last_words(self) -> str:
        """The last line that it printed."""
        size = os.fstat(self.errors.fileno()).st_size
        text = os.pread(self.errors.fileno(), 1000, max(0, size - 1000)).decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        return "".join(letter if letter.isprintable() else "?" for letter in lines[-1])[:300] if lines else ""

    def end(self) -> None:
        """Kills the process and all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        while others := _session(self.process.pid):
            for other in others:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(other, signal.SIGKILL)
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.errors):
            if file is not None:
                with suppress(OSError):
                    file.close()
        if self.scratch is not None:
            self.scratch.cleanup()

    def ask(self, request: Sequence[bytes], most: int, stop: Event, timeout: float | None = None) -> bytes:
        """The answer to a request. Each part, and the answer, is preceded by its length as 8 bytes, little-endian.

        It has ``timeout`` seconds, by default those of its limits.
        """
        limits = self.limits if timeout is None else replace(self.limits, timeout=timeout)
        pending = memoryview(b"".join(framed(part) for part in request))
        answer, deadline, wanted = bytearray(), limits.deadline(), 8
        incoming, outgoing = _open(self.process.stdout), _open(self.process.stdin)
        with selectors.DefaultSelector() as selector:
            selector.register(incoming, selectors.EVENT_READ)
            selector.register(outgoing, selectors.EVENT_WRITE)
            while len(answer) < wanted:
                if time.monotonic() > deadline:
                    raise limits.too_late()
                if stop.is_set():
                    raise Stopped
                for key, _ in selector.select(LONGEST_WAIT):
                    if key.fileobj is incoming:
                        answer += self._read(incoming)
                        wanted = _wanted(answer, most)
                    else:
                        pending = pending[self._write(outgoing, pending) :]
                        if not pending:
                            selector.unregister(outgoing)
        if len(answer) > wanted or pending:
            raise BadAnswer(f"gave more than its answer of {wanted - 8} bytes, or did not wait for the whole request")
        return bytes(answer[8:])

    def speaks(self) -> bool:
        """Whether it wrote something without being asked, or closed its output."""
        with selectors.DefaultSelector() as selector:
            selector.register(_open(self.process.stdout), selectors.EVENT_READ)
            return bool(selector.select(0))

    def _read(self, pipe: IO[bytes]) -> bytes:
        block = os.read(pipe.fileno(), 2**20)
        if not block:
            raise self._gone()
        return block

    def _write(self, pipe: IO[bytes], pending: memoryview) -> int:
        try:
            return os.write(pipe.fileno(), pending[: 2**16])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            raise self._gone() from None

    def _gone(self) -> BadAnswer:
        """Says why it closed its pipe: most often because it ended."""
        try:
            return self.failure(self.wait(time.monotonic() + LAST_BREATH, Event()))
        except BadAnswer:
            return BadAnswer("closed its output before its answer was complete")


def _session(leader: int) -> list[int]:
    """The living processes of a session that left the group of its leader; found on Linux only."""
    out = []
    for pid in (int(name) for name in (os.listdir("/proc") if os.path.isdir("/proc") else ()) if name.isdigit()):
        with suppress(OSError):
            if (
                pid != leader
                and os.getsid(pid) == leader
                and Path(f"/proc/{pid}/stat").read_text().split(")")[-1][1] != "Z"
            ):
                out.append(pid)
    return out


def framed(part: bytes) -> bytes:
    """A part of a request with its length before it."""
    return len(part).to_bytes(8, "little") + part


def _wanted(answer: bytearray, most: int) -> int:
    """Bytes that the answer has with its length."""
    if len(answer) < 8:
        return 8
    length = int.from_bytes(answer[:8], "little")
    if length > most:
        raise BadAnswer(f"announced an answer of {size_text(length)}, but at most {size_text(most)} are expected")
    return 8 + length


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None, "only a process that answers is asked"
    os.set_blocking(pipe.fileno(), False)
    return pipe


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def checked_memory(memory: int | None) -> None:
    """Refuses a limit that this system cannot set."""
    if memory is not None and sys.platform != "linux":
        raise InvalidInputError("memory: a limit can be set on Linux only; leave it out")


def _usable(idle: list[Child]) -> Child | None:
    """An idle process that still waits for requests; others are ended."""
    while idle:
        child = idle.pop()
        if not child.speaks():
            return child
        child.end()
    return None


class Crew:
    """Processes that stay alive between calls, by what they were started for; each serves one thread at a time."""

    def __init__(self) -> None:
        self._idle: dict[tuple[int, object], list[Child]] = {}
        atexit.register(self.close)

    def ask(self, key: object, start: Callable[[], Child], request: Sequence[bytes], most: int, stop: Event) -> bytes:
        """The answer of an idle process, or of a new one. One that fails is ended, and never used again."""
        idle = self._idle.setdefault((os.getpid(), key), [])  # a fork must not use the pipes of its parent
        child = _usable(idle) or start()
        try:
            answer = child.ask(request, most, stop)
        except BaseException:
            child.end()
            raise
        idle.append(child)
        return answer

    def close(self, key: object | None = None) -> None:
        """Ends the idle processes of a key, or all of them."""
        for place in [place for place in self._idle if place[0] == os.getpid() and key in (None, place[1])]:
            for child in self._idle.pop(place):
                child.end()
