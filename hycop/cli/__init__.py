"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from hycop.cli import baseline, diagnose, enrich, explore, learn, networks, score, studio, table, transfer
from hycop.cli.common import app
from hycop.cli.terminal import fail, tell, tolerate_encodings
from hycop.errors import HyCOPError
from hycop.training import Stopped
from hycop.version import __version__

INTERRUPTED = 130
"""The shell's code for a command that was told to stop."""

USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]
"""The base of what Typer raises for a command that it cannot parse; it has no public name."""

REMAINS = {
    "train": "finished steps, if any, are in the run folder, and the same command with --resume continues",
    "pretrain": "finished rounds, if any, are in the network folder, and the same command with --resume continues",
    "baseline": "finished rounds, if any, are in the folder of --out, and the same command with --resume continues",
    "table": "finished parts, if any, are in the folder of --keep, and the same command continues",
}
"""What an interrupted command leaves behind; all others leave nothing half-written."""

__all__ = [
    "app",
    "baseline",
    "diagnose",
    "enrich",
    "explore",
    "learn",
    "main",
    "networks",
    "score",
    "studio",
    "table",
    "transfer",
]


def _version(shown: bool) -> None:
    if shown:
        typer.echo(__version__)
        raise typer.Exit()


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Solve families of PDEs by readable compositions of simple solvers."""


def main() -> None:
    """Runs the command line. A mistake of the user is one line and exit code 2, an interrupt 130, a fault of ours 1."""
    tolerate_encodings()
    with _plain_warnings():
        try:
            code = app(prog_name="hycop", standalone_mode=False)
            if code == INTERRUPTED:  # what Typer makes of Ctrl-C
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
            fail(f"interrupted; {REMAINS.get(command, 'nothing is left half-written')}")
            code = INTERRUPTED
        except Exception as error:
            if "--debug" in sys.argv and not isinstance(error, USAGE_ERROR):
                raise
            code, line = _explained(error)
            if line:
                fail(line)
    sys.exit(code)


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code and the line for a command that failed; the line is empty where the help was shown instead."""
    if isinstance(error, USAGE_ERROR):
        message = " ".join(error.format_message().split()).rstrip(".")
        context = error.ctx
        return 2, message and f"{message} (see '{'hycop' if context is None else context.command_path} --help')"
    if isinstance(error, Stopped):
        return INTERRUPTED, str(error)
    if isinstance(error, HyCOPError):
        return 2, str(error)
    if isinstance(error, MemoryError):
        return 2, f"too large for the memory of this machine ({error}); ask for fewer cells or samples"
    if isinstance(error, OSError) and error.strerror:
        if error.filename is None:
            _give_up_stdout()
            return 2, f"the output cannot be written ({error.strerror})"
        return 2, f"{error.filename}: {error.strerror}; give another path"
    # Path.resolve reports a loop of links in this way before Python 3.13
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):
        return 2, f"{error}; give another path"
    return 1, f"{type(error).__name__}: {error} (a fault of hycop; --debug shows where)"


def _give_up_stdout() -> None:
    """Sends what is still in the buffer of stdout nowhere, or Python would fail once more when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings are one line without source code. Those of NumPy about overflow are dropped: states that become NaN or
    infinite are errors with a place of their own."""

    def show(message: Warning | str, category: type[Warning], *place: object, **more: object) -> None:
        tell(f"hycop: {' '.join(str(message).split())}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        yield
