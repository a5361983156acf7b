"""The ``hycop`` command.

It stands outside the package, because importing any part of the package takes a second in which Ctrl-C may come.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130
"""The shell's code for a command that was told to stop."""


def main() -> None:
    """Runs the command line; Ctrl-C and SIGTERM end it at any time with one line and exit code 130."""
    heard: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        from hycop.cli import main as command

        if heard:  # a library has swallowed the interrupt while it was imported
            raise KeyboardInterrupt
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        command()
    except KeyboardInterrupt:
        with suppress(OSError):
            print("hycop: interrupted before it began", file=sys.stderr)
        _leave()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            _leave()
        raise


def _leave() -> None:
    """Ends the process at once: what it wrote is whole and its workers are gone. Waiting for threads that were
    interrupted inside C++ code can end in "terminate called without an active exception"."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):
            stream.flush()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
