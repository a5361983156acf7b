"""Reference pages of the command line, the settings of a training run, and the problems."""

from __future__ import annotations

import inspect
from typing import Any

from docs.generator.tables import markdown
from hycop.cli.lazy import COMMANDS, command
from hycop.problems import PROBLEMS
from hycop.training.config import settings_table


def commands_page() -> str:
    """Every command: what it does, examples, arguments and options."""
    return "\n\n".join(_command(name, command(name)) for name in COMMANDS)


def _command(name: str, command: Any) -> str:
    text = inspect.cleandoc(command.help or "").replace("\f", "")
    examples = [line.removeprefix("Example: ") for line in text.splitlines() if line.startswith("Example: ")]
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("Example: ")).strip()
    shown = [each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"]
    body = [[_names(each), _told(each)] for each in shown]
    block = "```bash\n" + "\n".join(examples) + "\n```"
    return f"## hycop {name}\n\n{prose}\n\n{block}\n\n{markdown(('argument or option', 'meaning'), body)}"


def _names(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"`{param.metavar or param.name.upper()}`"
    return ", ".join(f"`{each}`" for each in param.opts)


def _told(param: Any) -> str:
    text = (getattr(param, "help", None) or "").replace("<", "&lt;")
    default = param.default
    if param.required:
        return f"{text} Required."
    if default in (None, False, True, ()) or callable(default):
        return text
    return f"{text} Default: `{default}`."


def settings_page() -> str:
    """Every setting of a training run, with the defaults of the preset ``quick``."""
    body = [[f"`{each.name}`", each.meaning, str(each.default), each.allowed] for each in settings_table()]
    return markdown(("setting", "meaning", "default", "allowed"), body)


def problems_page() -> str:
    """Every problem that comes with the package."""
    body = []
    for name, problem in PROBLEMS.items():
        grid = " × ".join(map(str, problem.shape))
        parts = ", ".join(f"`{each}`" for each in problem.dictionaries)
        body.append([f"`{name}`", problem.equation.formula, grid, ", ".join(problem.processes), parts])
    return markdown(("problem", "equation", "grid", "processes", "dictionaries"), body)
