"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from hycop.cli import explore, learn, score, transfer
from hycop.cli.common import app
from hycop.errors import HyCOPError
from hycop.training import Stopped
from hycop.version import __version__

INTERRUPTED = 130
"""The shell's code for a command that was told to stop."""

USAGE_ERROR: type[Any] = typer.BadParameter.__bases__[0]
"""What typer raises for a command that it cannot parse; it offers only this one of its kinds by name."""

__all__ = ["app", "explore", "learn", "main", "score", "transfer"]


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


def _explain(error: Any) -> None:
    """One line about a command that cannot be parsed; nothing but the help was shown if there was nothing to parse."""
    message = " ".join(error.format_message().split()).rstrip(".")
    if message:
        where = "hycop" if error.ctx is None else error.ctx.command_path
        print(f"hycop: {message} (see '{where} --help')", file=sys.stderr)


def main() -> None:
    """Runs the command line: a mistake of the user is one line and exit code 2, a stop 130, any other failure 1."""
    try:
        code = app(prog_name="hycop", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code)
    except USAGE_ERROR as error:
        _explain(error)
        sys.exit(2)
    except HyCOPError as error:
        if "--debug" in sys.argv:
            raise
        print(f"hycop: {error}", file=sys.stderr)
        sys.exit(INTERRUPTED if isinstance(error, Stopped) else 2)
    except KeyboardInterrupt:
        print("hycop: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except MemoryError as error:
        if "--debug" in sys.argv:
            raise
        print(
            f"hycop: too large for the memory of this machine ({error}); ask for fewer cells or samples",
            file=sys.stderr,
        )
        sys.exit(2)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        print(f"hycop: {type(error).__name__}: {error} (a fault of hycop; --debug shows where)", file=sys.stderr)
        sys.exit(1)
