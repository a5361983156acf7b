"""What the commands share: the application, options and parsing."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from itertools import pairwise
from math import inf, prod
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from hycop.boundary import checked_boundary
from hycop.cli.terminal import tell
from hycop.cli.workers import CarryingExecutor
from hycop.conformance.loading import lacks, load_module
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, OutputError, UnknownNameError
from hycop.executors import Executor
from hycop.executors import executor as find_executor
from hycop.files import checked_report, provenance, read_text, write_report
from hycop.grid import Grid
from hycop.primitives import offer, offer_instance
from hycop.problems import Problem, register
from hycop.program import Program

MOST = 10**9
"""Largest whole number that an option takes: no machine holds more samples or cells."""

MOST_SEED = 2**63 - 1
"""Largest seed: counters of random streams have 64 bits."""

JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the result to this file as JSON.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the file if there is one already.")]
_ReportOverwrite = Annotated[
    bool, typer.Option("--overwrite", help="Let --json replace a file that is no report of hycop.")
]
MOST_REFINED = 64
"""How many times finer than the data's a grid may be on which programs run."""

_WithFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--with", metavar="FILE.py", help="Python file with problems and primitives of your own; it is run. Repeatable."
    ),
]
ASKED = ("folder", "name", "problem", "source")
"""Arguments that may need problems and primitives of one's own: commands with one of them take --with."""

_overwriting: ContextVar[bool] = ContextVar("overwriting", default=False)
_files: ContextVar[tuple[Path, ...]] = ContextVar("files", default=())
"""Python files of the user's that this command has run."""


class _Commands(typer.Typer):
    """An application that checks the options that its commands share before a command computes anything."""

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        register = super().command(*args, **options)

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            register(_guarded(function))
            return function

        return decorate


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, after its whole numbers are known to be of a possible size and its report to be writable, and files
    of one's own were read. One that writes a report and has no --overwrite gets one."""
    signature = inspect.signature(command, eval_str=True)
    parameters = dict(signature.parameters)
    added = "json_file" in parameters and "overwrite" not in parameters
    if added:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters["overwrite"] = inspect.Parameter("overwrite", kind, default=False, annotation=_ReportOverwrite)
    if own := bool(set(ASKED) & set(parameters)):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters["with_files"] = inspect.Parameter("with_files", kind, default=None, annotation=_WithFiles)

    @wraps(command)
    def guarded(**given: Any) -> None:
        for name, value in given.items():
            if isinstance(value, int) and not isinstance(value, bool):
                check_size(f"--{name.replace('_', '-')}", value, MOST_SEED if name == "seed" else MOST)
        if own:
            given = _adopted(given.pop("with_files", None) or (), given)
        overwrite = bool(given.pop("overwrite") if added else given.get("overwrite"))
        if given.get("json_file") is not None:
            _check_report(checked_report(given["json_file"], overwrite), given)
        _overwriting.set(overwrite)
        command(**given)

    guarded.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    guarded.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return guarded


def _adopted(files: Sequence[Path], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with ``file.py:name`` replaced by the name of the problem that it means. Files are run only
    because the user names them; what a folder says is never imported."""
    _files.set(())
    for file in files:
        adopt(file)
    for name in ASKED:
        place, sign, what = str(given.get(name) or "").rpartition(":")
        if sign and place.endswith(".py"):
            given[name] = own_problem_at(place, what).name
    return given


def adopt(file: Path) -> ModuleType:
    """Runs a Python file; the problems in it are then known by their names, its primitives to model folders."""
    module = load_module(str(file))
    _files.set((*_files.get(), file))
    for value in vars(module).values():
        if isinstance(value, Problem):
            register(value)
            for dictionary in value.dictionaries.values():
                for primitive in dictionary.values():
                    offer_instance(primitive)
        elif isinstance(value, type) and value.__module__ == module.__name__ and not lacks(value):
            offer(value)
    return module


def own_problem_at(place: str, name: str) -> Problem:
    """The problem of that name in a Python file."""
    held = vars(adopt(Path(place)))
    known = [key for key, value in held.items() if isinstance(value, Problem)]
    if name not in held:
        raise UnknownNameError("problem", name, known, f"(in {place})")
    if not isinstance(held[name], Problem):
        kind = type(held[name]).__name__
        raise InvalidInputError(
            f"{place}:{name} is a {kind}, not a problem; make one, as {name}.problem(ranges=…, initial=…, time=…)"
        )
    return register(held[name])


def _check_report(path: Path, given: Mapping[str, object]) -> None:
    for name, other in given.items():
        if name != "json_file" and isinstance(other, Path) and os.path.realpath(other) == os.path.realpath(path):
            raise InvalidInputError(f"--json {path}: is also another file of this command; choose another name")


def check_size(option: str, number: int, most: int = MOST) -> None:
    if abs(number) > most:
        raise InvalidInputError(f"{option} is too large: at most {most:,} is possible")


app = _Commands(rich_markup_mode="rich")
"""Where commands register themselves; ``hycop.cli.app`` is what is run."""


@app.callback()
def _group() -> None:
    """Even a single command is one of a group."""


SplitOption = Annotated[
    str, typer.Option(help="Distribution of queries: train, id, ood, …; 'hycop problems PROBLEM' lists them.")
]
SplitsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Split of the problem, repeatable; id by default, id and ood with --compare; "
        "'hycop problems PROBLEM' lists them."
    ),
]
SeedOption = Annotated[int, typer.Option(help="Seed; the same seed gives the same bits.")]
ShapeOption = Annotated[str | None, typer.Option(help="Grid, as 48x40; the problem's own by default.")]
BoundaryOption = Annotated[
    str | None, typer.Option(help="periodic, wall or outflow; one for all axes or one per axis: periodic,wall.")
]
DictionaryOption = Annotated[
    str | None,
    typer.Option(help="Named dictionary, the problem's first by default; 'hycop problems PROBLEM' lists them."),
]
DataOption = Annotated[Path | None, typer.Option("--data", help="Dataset file to use instead of drawing samples.")]
FramesOption = Annotated[
    str | None,
    typer.Option(
        help="Frames of a file of PDEBench or The Well, as 0,5,10: the initial state, then what is asked for."
    ),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", help="Coefficient that a file of PDEBench or The Well does not name, nu=0.1; repeatable."),
]
TimesOption = Annotated[
    str | None, typer.Option(help="Times to ask every sample at, as 0.1,0.2; else the split's own.")
]
SchemeOption = Annotated[
    list[str] | None,
    typer.Option(help="Scheme such as strang, 'strang x4', saba7, 'ababa(outer=diffusion)', 'etdrk4 x8', or all."),
]
ProgramOption = Annotated[
    str | None, typer.Option(help="Program written by hand: 'advection 0.1 → reaction 0.2', or a JSON file of steps.")
]


def times_of(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        times = [float(part) for part in text.split(",")]
    except ValueError:
        times = []
    rising = all(before < after for before, after in pairwise([*times, inf]))
    if not times or not rising or times[0] < 0:
        raise InvalidInputError(f"--times '{text}': give increasing numbers with commas between them, as 0.1,0.2")
    return times


def shape_of(text: str | None, option: str = "--shape") -> tuple[int, ...] | None:
    if text is None:
        return None
    shape = whole_numbers(text.lower(), "x", option, "48x40")
    if all(n > 0 for n in shape):  # what has no cells is refused where the grid is made
        check_size(f"{option} '{text}'", prod(shape))
    return shape


def whole_numbers(text: str, between: str, option: str, example: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(between))
    except ValueError:
        raise InvalidInputError(
            f"{option} '{text}': give whole numbers with '{between}' between them, as {example}"
        ) from None
    for number in numbers:
        check_size(f"{option} '{text}'", number)
    return numbers


def texts_of(pairs: list[str] | None, option: str, example: str) -> dict[str, str]:
    """``key=value`` pairs as they stand."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise InvalidInputError(f"{option} '{pair}': give key=value, as {example}")
        if key in found:
            raise InvalidInputError(f"{option} '{pair}': {key} is given twice; leave one out")
        found[key] = value
    return found


def pairs_of(pairs: list[str] | None, option: str, example: str) -> dict[str, object]:
    """``key=value`` pairs; a value that is valid JSON is read as JSON (7, 0.5, null), any other as text."""
    found: dict[str, object] = {}
    for key, value in texts_of(pairs, option, example).items():
        try:
            found[key] = json.loads(value)
        except ValueError:  # no JSON, or a number of thousands of digits
            found[key] = value
        except RecursionError:
            raise InvalidInputError(f"{option} {key}: its value is nested too deeply") from None
    return found


def with_shape(settings: Mapping[str, object]) -> dict[str, object]:
    """Settings whose shape may be written as 48x40, or as 64 on a line."""
    shape = settings.get("shape")
    if not isinstance(shape, str | int):
        return dict(settings)
    return {**settings, "shape": shape_of(str(shape), "setting shape")}


def boundary_of(text: str | None) -> str | tuple[str, ...] | None:
    """The boundary of --boundary: one for all axes, or one per axis."""
    if text is None:
        return None
    parts = tuple(part.strip() for part in text.split(","))
    try:
        checked_boundary(parts, len(parts))
    except (InvalidInputError, UnknownNameError) as error:
        raise InvalidInputError(f"--boundary: {error}") from None
    return parts if len(parts) > 1 else parts[0]


def check_boundaries(
    chosen: Problem | None, parts: Dictionary, grid: Grid, *, run: Path | None = None, option: str = "--dictionary "
) -> None:
    """Refuses boundaries that the dictionary cannot handle, and names a remedy: another dictionary through ``option``,
    or a swap for the model of a ``run``."""
    try:
        parts.check_boundaries(parts.names, grid)
    except IncompatibleError as error:
        if chosen is None:
            raise
        remedy = f"no dictionary of {chosen.name} can"
        able = chosen.able(grid)
        if able and run is None:
            remedy = f"{' or '.join(f'{option}{name}' for name in able)} can"
        elif able:
            remedy = f"'hycop swap {run} OUT --boundary {grid.boundary_name} --auto' makes a model that can"
        raise IncompatibleError(f"{error}; {remedy}") from None


def check_file(path: Path, overwrite: bool) -> None:
    """Refuses to replace a file without --overwrite."""
    if path.exists() and not overwrite:
        raise OutputError(f"{path}: exists already; choose another name, or replace it with --overwrite")


ExecutorOption = Annotated[str, typer.Option(help="Who computes: local, processes or dask; the result is the same.")]
WorkersOption = Annotated[int | None, typer.Option(help="Number of worker processes.")]
SchedulerOption = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, as tcp://host:8786.")]


def chosen_executor(name: str, workers: int | None, scheduler: str | None) -> Executor:
    """The executor of that name; its workers know the user's own problems and primitives."""
    options = {key: value for key, value in (("workers", workers), ("scheduler", scheduler)) if value is not None}
    found = find_executor(name, **options)
    return CarryingExecutor(found, _files.get()) if _files.get() and name != "local" else found


LayoutOption = Annotated[
    str, typer.Option(help="Layout of the file: hycop (.nc, .npz), well (The Well's .hdf5) or pdebench (.hdf5).")
]

DRAWN = "with --data: the file holds what was drawn"


def refuse_options(why: str, **options: object) -> None:
    """Refuses options that were given but would have no effect."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(f"--{name} has no meaning {why}; leave it out")


def program_of(text: str) -> Program:
    """A program from its text, or from a JSON file: a list of steps, or what 'hycop program --json' writes."""
    if not text.endswith(".json"):
        return Program.parse(text)
    try:
        content = json.loads(read_text(Path(text)))
        return Program.from_json(content["program"] if isinstance(content, dict) and "program" in content else content)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"--program {text}: not JSON (line {error.lineno}: {error.msg})") from None
    except InvalidInputError as error:
        raise InvalidInputError(f"--program {error if str(error).startswith(text) else f'{text}: {error}'}") from None
    except (ValueError, OverflowError):
        raise InvalidInputError(f"--program {text}: a number in it is too large") from None
    except RecursionError:
        raise InvalidInputError(f"--program {text}: it is nested too deeply") from None


def check_counts(**counts: int | None) -> None:
    """Refuses counts below 1, and a refinement that no machine can hold."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise InvalidInputError(f"{name} is {count}: at least 1 is needed")
    refinement = counts.get("--refinement")
    if refinement is not None and refinement > MOST_REFINED:
        raise InvalidInputError(f"--refinement is {refinement}: at most {MOST_REFINED} is possible")


def report_json(path: Path | None, content: dict[str, object]) -> None:
    """Writes the result of a command with its provenance, where --json asks for it."""
    if path is not None:
        meta = provenance("hycop " + " ".join(sys.argv[1:]))
        write_report(path, {**content, "meta": meta}, overwrite=_overwriting.get())
        tell(f"wrote {path}")
