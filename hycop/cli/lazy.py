"""The commands by name. The module of a command, with all that it needs, is imported when the command is run."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """The module of a command, and what the list of commands says about it; its own help says more."""

    module: str
    summary: str


COMMANDS = {
    "demo": Entry("score", "Train a small model, compare it with classical schemes, draw the result."),
    "problems": Entry("explore", "List the problems, or describe one."),
    "data": Entry("score", "Draw queries of a problem, solve them with its reference, write a dataset."),
    "train": Entry("learn", "Learn a policy that writes programs."),
    "predict": Entry("predict", "Answer queries at any time, with error bars or to a tolerance."),
    "evaluate": Entry("score", "Error, work and seconds of a model, a network, or classical schemes."),
    "report": Entry("report", "Write one self-contained HTML page about a run."),
    "studio": Entry("studio", "Open an interactive page about a model in the browser (extra 'studio')."),
    "program": Entry("explore", "Print the program that a model or a scheme writes for one query."),
    "diagnose": Entry("diagnose", "Say why a model errs, and what to do about it."),
    "enrich": Entry("enrich", "Find what a model lacks to explain data, add it, relearn the policy."),
    "swap": Entry("transfer", "Give a model other boundaries or primitives; nothing is retrained."),
    "pretrain": Entry("networks", "Train a network that advances some processes (extra 'learned')."),
    "baseline": Entry("baseline", "Train a monolithic neural operator to compare with (extra 'learned')."),
    "check": Entry("explore", "Prove a primitive, or the network of a baseline."),
    "table": Entry("table", "Compute a table of results."),
}


def command(name: str) -> TyperCommand:
    """A command, ready to be run.

    >>> command("swap").name
    'swap'
    """
    from hycop.cli.common import app

    import_module(f"hycop.cli.{COMMANDS[name].module}")
    return typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]


class LazyCommands(TyperGroup):
    """Lists all commands by their summaries, and imports the one that is run."""

    def __init__(self, **options: Any) -> None:
        listed = {name: TyperCommand(name, help=entry.summary) for name, entry in COMMANDS.items()}
        super().__init__(**{**options, "commands": listed})

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else command(name), rest
