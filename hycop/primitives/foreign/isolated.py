"""Python code in a process of its own, which can be killed when it hangs and may crash.

Run as ``python -m hycop.primitives.foreign.isolated SCRATCH``, it takes pickled calls from the process that started
it. It answers each with the bytes of a ``.npy`` array, or with FAILED and a line that says what went wrong.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from collections.abc import Callable, Hashable
from multiprocessing import spawn
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import IO, Any, Protocol

from hycop.grid import Array
from hycop.primitives.foreign.npy import BadAnswer, as_state, decoded, encoded, most_bytes
from hycop.primitives.foreign.process import Child, Crew, Limits, framed
from hycop.query import Setting

FAILED = b"failed: "

MOST_TEXT = 2**12
"""Most bytes of a message that is not a state."""

STARTUP = 120.0
"""Seconds within which a new process must have imported what it calls."""

_WORKERS = Crew()


class Callee(Hashable, Protocol):
    """What can be called in another process; it must be picklable."""

    def warm_up(self) -> None:
        """Does what the first call would take long for."""

    def call(self, u: Array, duration: float, setting: Setting) -> object: ...


def call_isolated(callee: Callee, u: Array, duration: float, setting: Setting, limits: Limits, stop: Event) -> Array:
    """``callee.call(u, duration, setting)`` in another process, which stays for the next call."""

    def start() -> Child:
        try:
            work = pickle.dumps(callee)
        except Exception as error:  # a lambda or local function, most often
            raise BadAnswer(f"cannot be sent to a process of its own ({error}); define it in a module") from None
        scratch = TemporaryDirectory(prefix="hycop-", ignore_cleanup_errors=True)
        child = Child([sys.executable, "-m", __name__, scratch.name], limits, scratch=scratch)
        try:
            _checked(child.ask([pickle.dumps(_preparation()), work], MOST_TEXT, stop, STARTUP))
        except BaseException:
            child.end()
            raise
        return child

    most = max(MOST_TEXT, most_bytes(u.shape))
    return decoded(_checked(_WORKERS.ask(callee, start, [pickle.dumps((u, duration, setting))], most, stop)), u.shape)


def _checked(answer: bytes) -> bytes:
    if answer.startswith(FAILED):
        raise BadAnswer(answer[len(FAILED) :].decode(errors="replace"))
    return answer


def close_isolated(callee: Callee) -> None:
    """Ends the processes of a callee."""
    _WORKERS.close(callee)


def _preparation() -> dict[str, Any]:
    """What makes a new interpreter find the same modules, and the functions of the main script, as this one."""
    data: dict[str, Any] = spawn.get_preparation_data("hycop-isolated")
    # the key is for processes of multiprocessing only; the folder is the child's own
    return {name: value for name, value in data.items() if name not in ("authkey", "dir", "orig_dir")}


def _received(file: IO[bytes]) -> bytes:
    length = file.read(8)
    if len(length) < 8:
        _leave()  # the one who asks is gone
    return file.read(int.from_bytes(length, "little"))


def _attempt(work: Callable[[], bytes]) -> bytes:
    """The bytes that some work gives, or what went wrong."""
    from hycop.primitives.foreign.contract import one_line

    try:
        return work()
    except BadAnswer as error:
        return FAILED + str(error).encode()
    except (Exception, SystemExit) as error:
        return FAILED + f"raised {one_line(error)}".encode()


def _watch_parent(parent: int) -> None:
    """Ends this process when the one that started it has died, even while a call hangs."""
    nap = Event()
    while os.getppid() == parent:
        nap.wait(1.0)
    _leave()


def _leave() -> None:
    """Ends this process at once, with the temporary files that the one who started it can no longer remove."""
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    os._exit(0)


def main() -> None:
    # what the code prints must not mix with the answers
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    prepared, work = _received(requests), _received(requests)
    callee: list[Callee] = []

    def begin() -> bytes:
        spawn.prepare(pickle.loads(prepared))
        callee.append(pickle.loads(work))
        callee[0].warm_up()
        return b"ready"

    def answer() -> bytes:
        u, duration, setting = pickle.loads(request)
        return encoded(as_state(callee[0].call(u, duration, setting), u.shape))

    _send(answers, _attempt(begin))
    while True:
        request = _received(requests)
        _send(answers, _attempt(answer))


def _send(file: IO[bytes], answer: bytes) -> None:
    file.write(framed(answer))
    file.flush()


if __name__ == "__main__":
    main()
