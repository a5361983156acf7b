"""What the commands share: the application, consoles, options, parsing and printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from hycop.data import Dataset, load
from hycop.data.pdebench import PDEBENCH, PDEBenchFile
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, OutputError
from hycop.evaluation import CURVE, Row
from hycop.files import checked_output, naming, provenance, write_json
from hycop.grid import Grid
from hycop.problems import PROBLEMS, Problem
from hycop.program import Program
from hycop.training import Progress as Standing
from hycop.training import Report

app = typer.Typer(
    name="hycop",
    help="Solve families of PDEs by readable compositions of simple solvers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console(soft_wrap=True)
err = Console(stderr=True, soft_wrap=True)


def _writable(path: Path | None) -> Path | None:
    return None if path is None else checked_output(path)


JsonOption = Annotated[
    Path | None, typer.Option("--json", callback=_writable, help="Write the result to this file as JSON.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the file if there is one already.")]
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
    str | None, typer.Option(help="Frames of a PDEBench file, as 0,5,10: the initial state, then what is asked for.")
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", help="Coefficient that a PDEBench file does not name, nu=0.1; repeatable."),
]
TimesOption = Annotated[
    str | None, typer.Option(help="Times to ask every sample at, as 0.1,0.2; else the split's own.")
]
SchemeOption = Annotated[
    list[str] | None,
    typer.Option(help="Scheme such as strang, 'strang x4', saba7, 'ababa(outer=diffusion)', or all; repeatable."),
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
        raise InvalidInputError(f"--times '{text}': increasing numbers with commas between are needed, as 0.1,0.2")
    return times


def shape_of(text: str | None, option: str = "--shape") -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InvalidInputError(f"{option} '{text}': whole numbers with x between them are needed, as 48x40") from None


def pairs_of(pairs: list[str] | None, option: str, example: str) -> dict[str, object]:
    """``key=value`` pairs; a value that reads as JSON is one (7, 0.5, null), any other is a text."""
    found: dict[str, object] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InvalidInputError(f"{option} '{pair}': key=value is needed, as {example}")
        if key.strip() in found:
            raise InvalidInputError(f"{option} '{pair}': {key.strip()} is given twice; leave one out")
        try:
            found[key.strip()] = json.loads(value)
        except json.JSONDecodeError:
            found[key.strip()] = value.strip()
    return found


@dataclass(frozen=True)
class Reading:
    """What of a PDEBench file is read, and what such a file does not say; files of our own say everything."""

    samples: int | None = None
    frames: str | None = None
    shape: str | None = None
    params: tuple[str, ...] = ()
    boundary: str | None = None

    def load(self, path: Path, problem: str | None, *, later: bool = True, kin: Collection[str] = ()) -> Dataset:
        """The data of a file, if they are such as the problem, where it is known, needs; with times ``later`` than that
        of the initial states, unless those are all that is wanted. Data of the problem's ``kin`` are as good."""
        data, known = self._read(path, problem, kin), PROBLEMS.get(problem or "")
        with naming(path):
            data = data if known is None else known.checked(data)
            if later:
                data.check_later()
        return data

    def _read(self, path: Path, problem: str | None, kin: Collection[str]) -> Dataset:
        if self.samples is not None and self.samples < 1:
            raise InvalidInputError(f"--samples is {self.samples}: at least 1 is needed")
        if path.suffix.lower() not in PDEBENCH:
            for name, given in (("--frames", self.frames), ("--param", self.params)):
                if given:
                    raise InvalidInputError(f"{name} is for PDEBench files ({', '.join(PDEBENCH)}), not for {path}")
            data = load(path, problem, kin)
            return data if self.samples is None else data.take(slice(0, self.samples))
        named = pairs_of(list(self.params), "--param", "nu=0.1")
        for name, value in named.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InvalidInputError(f"--param {name}={value}: a number is needed")
        file = PDEBenchFile(
            path,
            params={name: float(value) for name, value in named.items() if isinstance(value, int | float)},
            boundary=boundary_of(self.boundary) or "periodic",
            problem=problem or "unknown",
        )
        try:
            frames = None if self.frames is None else [int(part) for part in self.frames.split(",")]
        except ValueError:
            raise InvalidInputError(f"--frames {self.frames}: whole numbers are needed, as 0,1") from None
        chosen = PROBLEMS.get(problem or "")
        if chosen is not None and file.is_gas and "gamma" not in chosen.parameters:
            raise InvalidInputError(f"{path}: compressible flow, but {chosen.name} is none; take ns2d or ns2d-pdebench")
        known = tuple(file.params) if chosen is None else chosen.parameters
        # a file's other numbers are no coefficients, but one given by hand is meant to be
        file.params = {name: value for name, value in file.params.items() if name in known or name in named}
        return file.read(slice(0, self.samples), frames, shape_of(self.shape))


def boundary_of(text: str | None) -> str | tuple[str, ...] | None:
    return text if text is None or "," not in text else tuple(part.strip() for part in text.split(","))


def check_boundaries(
    chosen: Problem | None, parts: Dictionary, grid: Grid, *, run: Path | None = None, option: str = "--dictionary "
) -> None:
    """Refuses boundaries that a dictionary cannot handle, and says what can: an ``option`` that names another one, or
    for the model of a ``run`` a swap."""
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
    """Refuses to replace a file unasked."""
    if path.exists() and not overwrite:
        raise OutputError(f"{path}: exists already; choose another name, or replace it with --overwrite")


DRAWN = "with --data: the file holds what was drawn"


def refuse_options(why: str, **options: object) -> None:
    """Refuses options that would have no effect, if they were given."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(f"--{name} has no meaning {why}; leave it out")


def counted(count: int, noun: str) -> str:
    """As many of a thing, in words.

    >>> counted(1, "sample"), counted(3, "seed")
    ('1 sample', '3 seeds')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def program_of(text: str) -> Program:
    if not text.endswith(".json"):
        return Program.parse(text)
    try:
        content = json.loads(Path(text).read_text(encoding="utf-8"))
        # a list of steps, or what 'hycop program --json' writes
        return Program.from_json(content["program"] if isinstance(content, dict) and "program" in content else content)
    except InvalidInputError as error:
        raise InvalidInputError(f"--program {text}: {error}") from None
    except OSError as error:
        raise InvalidInputError(f"--program {text}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"--program {text}: not a text ({error.reason})") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"--program {text}: not JSON (line {error.lineno}: {error.msg})") from None


Advance = Callable[[float], None]
Describe = Callable[[str, float], None]


@contextmanager
def counting(total: int, label: str) -> Iterator[Advance]:
    """A bar that counts to a total; what it yields is told how many more are done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(label, total=total)
        yield lambda count: bar.update(task, advance=count)


@contextmanager
def describing(label: str) -> Iterator[Describe]:
    """A bar from 0 to 1; what it yields is told what is being done and the share that is finished."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(label, total=1.0)
        yield lambda text, share: bar.update(task, description=text, completed=share)


@contextmanager
def training(label: str) -> Iterator[Report]:
    """A live view of a run: its stage, its best loss beside the best classical scheme's, programs per second."""
    start = perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(label, total=1.0)

        def report(entry: Standing) -> None:
            rate = entry.evaluations / max(perf_counter() - start, 1e-9)
            bar.update(
                task,
                completed=entry.share,
                description=f"{entry.stage} {entry.step}/{entry.of}  best {entry.best:.2e}  "
                f"{entry.classical} {entry.classical_loss:.2e}  {rate:,.0f} programs/s",
            )

        yield report


def report_json(path: Path | None, content: dict[str, object]) -> None:
    if path is not None:
        write_json(path, {**content, "meta": provenance("hycop " + " ".join(sys.argv[1:]))})
        err.print(f"wrote {path}")


MANY = 5
"""Metrics beyond which they are lines, not columns."""


def print_rows(rows: Sequence[Row]) -> None:
    """One table per problem, split, dictionary, boundary and time, the source paper's figures in brackets; learning
    curves are for files. Rows without a method are facts."""
    tables: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.metric != CURVE:
            # times in single precision are shown without what that adds to their digits
            shown = row.time if isinstance(row.time, str) else f"{row.time:.6g}"
            parts = row.dictionary if row.method else ""
            tables.setdefault((row.problem, row.split, parts, row.grid, row.boundary, shown), []).append(row)
    for (name, split, dictionary, cells, boundary, time), chosen in tables.items():
        first = chosen[0]
        if not first.method:
            out.print(_facts(f"{name}, {cells}", chosen))
            continue
        ends = "" if boundary == "periodic" else f"boundary {boundary}, "
        title = (
            f"{name}, {split}, dictionary {dictionary}, {cells}, {ends}T={time}, "
            f"{counted(first.samples, 'sample')} x {counted(first.seeds, 'seed')}"
        )
        metrics, methods = len({row.metric for row in chosen}), len(_by_method(chosen))
        layout = _metrics_as_columns if metrics <= MANY else _metrics_as_lines if methods <= MANY else _one_by_one
        out.print(layout(title, chosen))


def _value(row: Row) -> str:
    spread = f" ± {row.std:.1g}" if row.seeds > 1 else ""
    return f"{row.value:.3g}{spread}" + ("" if row.paper is None else f" [{row.paper:.3g}]")


def _cost(row: Row) -> tuple[str, str]:
    return (f"{row.work:.4g}", f"{1e3 * row.seconds_per_sample:.3g}") if row.work else ("", "")


def _facts(title: str, rows: Sequence[Row]) -> RichTable:
    grid = RichTable("fact", "value", "dictionary", "what", title=title)
    for row in rows:
        grid.add_row(row.metric, escape(_value(row)), row.dictionary, str(row.variant))
    return grid


def _by_method(rows: Sequence[Row]) -> dict[tuple[str, str], dict[str, Row]]:
    """Rows by variant and method, then metric; cheapest first."""
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in sorted(rows, key=lambda row: (str(row.variant), row.work or float("inf"))):
        lines.setdefault((str(row.variant), row.method), {})[row.metric] = row
    return lines


def _metrics_as_columns(title: str, rows: Sequence[Row]) -> RichTable:
    metrics = list(dict.fromkeys(row.metric for row in rows))
    variants = any(row.variant for row in rows)
    grid = RichTable(title=title)
    for heading in ("method", *(("variant",) if variants else ())):
        grid.add_column(heading, overflow="fold")
    for heading in (*metrics, "work", "ms/sample"):
        grid.add_column(heading, justify="right")
    for (variant, method), mine in _by_method(rows).items():
        values = [escape(_value(mine[metric])) if metric in mine else "" for metric in metrics]
        cost = _cost(next(iter(mine.values())))
        grid.add_row(method, *((variant,) if variants else ()), *values, *cost)
    return grid


def _one_by_one(title: str, rows: Sequence[Row]) -> RichTable:
    """Neither all metrics nor all methods fit side by side."""
    grid = RichTable("method", "variant", "metric", title=title)
    grid.add_column("value", justify="right")
    for (variant, method), mine in _by_method(rows).items():
        for metric, row in mine.items():
            grid.add_row(method, variant, metric, escape(_value(row)))
    return grid


def _metrics_as_lines(title: str, rows: Sequence[Row]) -> RichTable:
    columns = _by_method(rows)
    grid = RichTable("metric", title=title)
    for variant, method in columns:
        grid.add_column(f"{method} {variant}".strip(), justify="right", overflow="fold")
    for metric in dict.fromkeys(row.metric for row in rows):
        values = [escape(_value(mine[metric])) if metric in mine else "" for mine in columns.values()]
        grid.add_row(metric, *values)
    costs = [_cost(next(iter(mine.values()))) for mine in columns.values()]
    for label, line in zip(("work", "ms/sample"), zip(*costs, strict=True), strict=True):
        grid.add_row(label, *line)
    return grid
