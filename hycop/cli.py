"""The command line: parse, call, print."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from hycop.conformance import check_primitive, load_primitive
from hycop.data import Dataset, load, save
from hycop.errors import HyCOPError, InvalidInputError
from hycop.evaluation import SPLITTING, ByHand, Method, Row, evaluate
from hycop.experiments import TABLES, table
from hycop.experiments.demo import demo
from hycop.files import checked_output, output_folder, provenance, replacing, write_json
from hycop.metrics import metric as find_metric
from hycop.plots import timeline_figure
from hycop.problems import PROBLEMS, Problem, problem
from hycop.program import Program, ProgramBatch, measure, simplify
from hycop.splitting import portfolio, splitting
from hycop.version import __version__

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

JsonOption = Annotated[Path | None, typer.Option("--json", help="Write the result to this file as JSON.")]
SplitOption = Annotated[str, typer.Option(help="Distribution of queries: train, id or ood.")]
SeedOption = Annotated[int, typer.Option(help="Seed; the same seed gives the same bits.")]
ShapeOption = Annotated[str | None, typer.Option(help="Grid, as 48x40; the problem's own by default.")]
BoundaryOption = Annotated[
    str | None, typer.Option(help="periodic, wall or outflow; one for all axes or one per axis: periodic,wall.")
]
DictionaryOption = Annotated[str | None, typer.Option(help="Named dictionary of the problem: spectral, muscl, upwind.")]
DataOption = Annotated[Path | None, typer.Option("--data", help="Dataset file to use instead of drawing samples.")]
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


def _numbers(text: str | None, name: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{name} '{text}': numbers with commas between them are needed, as 0.1,0.2") from None


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InvalidInputError(f"--shape '{text}': whole numbers with x between them are needed, as 48x40") from None


def _boundary(text: str | None) -> str | tuple[str, ...] | None:
    return text if text is None or "," not in text else tuple(part.strip() for part in text.split(","))


def _program(text: str) -> Program:
    if not text.endswith(".json"):
        return Program.parse(text)
    try:
        return Program.from_json(json.loads(Path(text).read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInputError(f"--program {text}: cannot be read ({error.strerror})") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"--program {text}: not JSON (line {error.lineno}: {error.msg})") from None


@contextmanager
def _bar(total: float, label: str) -> Iterator[tuple[Progress, Any]]:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    counts = (MofNCompleteColumn(),) if total > 1 else ()
    with Progress(*columns, *counts, console=err, transient=True) as bar:
        yield bar, bar.add_task(label, total=total)


def _write_json(path: Path | None, content: dict[str, object]) -> None:
    if path is not None:
        write_json(path, {**content, "meta": provenance("hycop " + " ".join(sys.argv[1:]))})
        err.print(f"wrote {path}")


def _print_rows(rows: Sequence[Row]) -> None:
    """One line per method, a column per metric, cheapest first."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    for problem_name, split, dictionary in dict.fromkeys((row.problem, row.split, row.dictionary) for row in rows):
        chosen = [row for row in rows if (row.problem, row.split, row.dictionary) == (problem_name, split, dictionary)]
        first = chosen[0]
        grid = RichTable(
            title=f"{problem_name}, {split}, dictionary {dictionary}, {first.grid}, T={first.time}, "
            f"{first.samples} samples x {first.seeds} seeds"
        )
        grid.add_column("method")
        for name in metrics:
            grid.add_column(name, justify="right")
        grid.add_column("work", justify="right")
        grid.add_column("ms/sample", justify="right")
        methods = sorted({row.method: row.work or float("inf") for row in chosen}.items(), key=lambda item: item[1])
        for method, _ in methods:
            mine = {row.metric: row for row in chosen if row.method == method}
            any_row = next(iter(mine.values()))
            values = [
                ""
                if name not in mine
                else f"{mine[name].value:.3g}" + (f" ± {mine[name].std:.1g}" if first.seeds > 1 else "")
                for name in metrics
            ]
            cost = (f"{any_row.work:.4g}", f"{1e3 * any_row.seconds_per_sample:.3g}") if any_row.work else ("", "")
            grid.add_row(method, *values, *cost)
        out.print(grid)


@app.command()
def problems(
    name: Annotated[str | None, typer.Argument(help="A problem, for its ranges and families.")] = None,
    json_file: JsonOption = None,
) -> None:
    """List the problems, or describe one.

    Example: hycop problems adr2d
    """
    chosen = [problem(name)] if name else list(PROBLEMS.values())
    if name is None:
        grid = RichTable("problem", "equation", "grid", "dictionaries")
        for entry in chosen:
            grid.add_row(entry.name, entry.equation, "x".join(map(str, entry.shape)), ", ".join(entry.dictionaries))
        out.print(grid)
    else:
        _describe(chosen[0])
    _write_json(json_file, {"problems": [_as_json(entry) for entry in chosen]})


def _describe(entry: Problem) -> None:
    out.print(f"[bold]{entry.name}[/]: {entry.equation}\n{entry.behaviour}", highlight=False)
    out.print(f"grid {'x'.join(map(str, entry.shape))}, box {entry.lengths}, boundary {', '.join(entry.boundary)}")
    for name, split in entry.splits.items():
        ranges = "; ".join(
            f"{parameter} in {' or '.join(f'[{low:g}, {high:g}]' for low, high in intervals)}"
            for parameter, intervals in split.params.items()
        )
        out.print(f"[bold]{name}[/]: T in [{split.time[0]:g}, {split.time[1]:g}]; {ranges}", highlight=False)
        out.print(f"  initial states: {', '.join(split.initial)}", highlight=False)
    for name, dictionary in entry.dictionaries.items():
        out.print(f"dictionary [bold]{name}[/]: {dictionary!r}", highlight=False)


def _as_json(entry: Problem) -> dict[str, object]:
    return {
        "name": entry.name,
        "equation": entry.equation,
        "processes": list(entry.processes),
        "channels": [channel.name for channel in entry.channels],
        "grid": list(entry.shape),
        "lengths": list(entry.lengths),
        "boundary": list(entry.boundary),
        "dictionaries": {name: repr(dictionary) for name, dictionary in entry.dictionaries.items()},
        "splits": {
            name: {"params": dict(split.params), "initial": list(split.initial), "time": list(split.time)}
            for name, split in entry.splits.items()
        },
    }


@app.command()
def data(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    file: Annotated[Path, typer.Argument(metavar="OUT.nc", help="File to write, .nc or .npz.")],
    split: SplitOption = "train",
    samples: Annotated[int, typer.Option(help="Number of samples.")] = 1000,
    seed: SeedOption = 0,
    shape: ShapeOption = None,
    times: TimesOption = None,
    boundary: BoundaryOption = None,
    json_file: JsonOption = None,
) -> None:
    """Draw queries from a split, solve them with the reference, and write a dataset.

    Example: hycop data adr2d train.nc --split train --samples 1000 --seed 0
    """
    chosen = problem(name)
    checked_output(file)
    with _bar(samples, f"truth of {name}") as (bar, task):
        made = chosen.sample(
            samples,
            split,
            seed,
            shape=_shape(shape),
            times=_numbers(times, "--times"),
            boundary=_boundary(boundary),
            progress=lambda count: bar.update(task, advance=count),
        )
    save(made, file)
    out.print(
        f"{file}: {made.samples} samples of {name}/{split} on {'x'.join(map(str, made.setting.grid.shape))}, "
        f"truth by {made.reference} with an estimated error of {made.reference_error:.1e}",
        highlight=False,
    )
    _write_json(
        json_file,
        {
            "file": str(file),
            "problem": name,
            "split": split,
            "samples": samples,
            "seed": seed,
            "reference": made.reference,
            "reference_error": made.reference_error,
        },
    )


def _datasets(
    chosen: Problem, file: Path | None, split: str, samples: int, seed: int, seeds: int, **options: Any
) -> list[Dataset]:
    if file is not None:
        return [load(file, problem=chosen.name)]
    with _bar(samples * seeds, f"truth of {chosen.name}/{split}") as (bar, task):
        return [
            chosen.sample(samples, split, each, progress=lambda count: bar.update(task, advance=count), **options)
            for each in range(seed, seed + seeds)
        ]


@app.command(name="evaluate")
def evaluate_command(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    split: SplitOption = "id",
    scheme: SchemeOption = None,
    program: ProgramOption = None,
    dictionary: DictionaryOption = None,
    metric: Annotated[
        list[str] | None, typer.Option(help=f"Metric, repeatable; rel_l2 and {SPLITTING} by default.")
    ] = None,
    data_file: DataOption = None,
    samples: Annotated[int, typer.Option(help="Samples per seed.")] = 100,
    seed: SeedOption = 0,
    seeds: Annotated[int, typer.Option(help="Number of datasets, for the spread.")] = 3,
    shape: ShapeOption = None,
    times: TimesOption = None,
    boundary: BoundaryOption = None,
    json_file: JsonOption = None,
) -> None:
    """Error and work of classical schemes, or of a program written by hand, against the truth and the limit.

    Example: hycop evaluate adr2d --scheme all --split id --json schemes.json
    """
    chosen = problem(name)
    parts = chosen.named_dictionary(dictionary)
    if json_file is not None:
        checked_output(json_file)
    if seeds < 1:
        raise InvalidInputError(f"--seeds is {seeds}: at least 1 is needed")
    # what can be refused is refused before anything is computed
    asked = [splitting(each) for each in scheme or () if each != "all"]
    for rule in asked:
        rule.check(parts)
    if data_file is None:
        parts.check_boundaries(parts.names, chosen.grid(_shape(shape), _boundary(boundary)))
    for each in metric or ():
        if each != SPLITTING:
            find_metric(each)
    by_hand = [] if program is None else [ByHand(_program(program))]
    for hand in by_hand:
        ProgramBatch.of([hand.program], parts.names)
    datasets = _datasets(
        chosen,
        data_file,
        split,
        samples,
        seed,
        seeds,
        shape=_shape(shape),
        times=_numbers(times, "--times"),
        boundary=_boundary(boundary),
    )
    methods: list[Method] = [*by_hand, *asked]
    if scheme and "all" in scheme:
        methods += portfolio(parts, datasets[0].setting)
    if not methods:
        methods = list(portfolio(parts, datasets[0].setting, copies=(1,)))
    with _bar(len(methods), "methods") as (bar, task):
        rows = evaluate(
            methods,
            parts,
            datasets,
            metrics=metric or ("rel_l2", SPLITTING),
            label=dictionary or next(iter(chosen.dictionaries)),
            progress=lambda count: bar.update(task, advance=count),
        )
    _print_rows(rows)
    _write_json(json_file, {"rows": [row.to_json() for row in rows]})


@app.command(name="program")
def program_command(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    scheme: Annotated[str, typer.Option(help="Scheme, as in evaluate.")] = "strang",
    sample: Annotated[int, typer.Option(help="Which sample of the split.")] = 0,
    time: Annotated[float | None, typer.Option(help="Query time; the split's own by default.")] = None,
    split: SplitOption = "id",
    seed: SeedOption = 0,
    dictionary: DictionaryOption = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the timeline to this file (png, pdf, svg).")] = None,
    json_file: JsonOption = None,
) -> None:
    """Print the program that a scheme writes for one query, as written and as run.

    Example: hycop program adr2d --scheme ababa --sample 3 --time 0.25
    """
    chosen = problem(name)
    parts = chosen.named_dictionary(dictionary)
    rule = splitting(scheme)
    for path in (figure, json_file):
        if path is not None:
            checked_output(path)
    if sample < 0:
        raise InvalidInputError(f"--sample is {sample}: it must not be negative")
    one = chosen.sample(sample + 1, split, seed, times=None if time is None else [time]).take(slice(sample, sample + 1))
    programs = rule.programs(one.query, parts)
    reduced = simplify(programs, parts, one.setting)
    work = float(measure(programs, parts, one.query).work[0])
    values = ", ".join(f"{key}={float(value[0]):.4g}" for key, value in one.setting.params.items())
    out.print(f"query     {name}/{split} sample {sample}: T={float(one.query.time[0]):.4g}, {values}", highlight=False)
    out.print(f"{rule!s:9} {programs[0]}", highlight=False)
    out.print(f"as run    {reduced[0]}", highlight=False)
    out.print(f"work      {work:.6g} channel-cell updates", highlight=False)
    if figure is not None:
        with replacing(figure) as temporary:
            timeline_figure({str(rule): programs[0], "as run": reduced[0]}, parts.names).savefig(temporary, dpi=120)
        err.print(f"wrote {figure}")
    _write_json(
        json_file,
        {
            "scheme": str(rule),
            "program": programs[0].to_json(),
            "as_run": reduced[0].to_json(),
            "work": work,
            "time": float(one.query.time[0]),
            "params": {key: float(value[0]) for key, value in one.setting.params.items()},
        },
    )


@app.command()
def check(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:NAME", help="Primitive, as package.module:Name or file.py:Name.")
    ],
    seed: SeedOption = 0,
    json_file: JsonOption = None,
) -> None:
    """Prove a primitive: identity, semigroup, declared order, conservation, boundaries, work.

    Example: hycop check hycop.primitives:MusclAdvection
    """
    report = check_primitive(load_primitive(target), seed)
    out.print(str(report), highlight=False, markup=False)
    _write_json(json_file, {"target": target, "passed": report.passed, "checks": [each._asdict() for each in report]})
    if not report.passed:
        raise typer.Exit(2)


@app.command(name="table")
def table_command(
    name: Annotated[str | None, typer.Argument(help="Table, see --list.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the tables.")] = False,
    samples: Annotated[int | None, typer.Option(help="Samples per split and seed; the table's own by default.")] = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds.")] = 3,
    figures: Annotated[Path | None, typer.Option(help="Folder for the table's figures.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Compute a table and its figures.

    Example: hycop table schemes --json schemes.json --figures figures
    """
    if list_all or name is None:
        for entry in TABLES.values():
            out.print(f"{entry.name:14} {entry.title}", highlight=False)
        return
    chosen = table(name)
    if json_file is not None:
        checked_output(json_file)
    folder = output_folder(figures) if figures is not None else None
    with _bar(1.0, name) as (bar, task):
        rows = chosen.build(
            samples or chosen.samples, seeds, lambda text, share: bar.update(task, description=text, completed=share)
        )
    _print_rows(rows)
    if folder is not None:
        for stem, figure in chosen.figures(rows).items():
            with replacing(folder / f"{stem}.png") as temporary:
                figure.savefig(temporary, dpi=120)
            err.print(f"wrote {folder / stem}.png")
    _write_json(json_file, {"rows": [row.to_json() for row in rows]})


@app.command(name="demo")
def demo_command(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the dataset and the figure.")] = Path("demo"),
    samples: Annotated[int, typer.Option(help="Number of samples.")] = 64,
    json_file: JsonOption = None,
) -> None:
    """Make a small dataset, run the classical schemes at several lengths, print the table and draw the figure.

    Example: hycop demo --out demo
    """
    folder = output_folder(folder)
    with _bar(1.0, "demo") as (bar, task):
        made = demo(folder, samples, lambda text, share: bar.update(task, description=text, completed=share))
    _print_rows(made.rows)
    out.print(f"a program: {made.program}", highlight=False)
    out.print(f"dataset {made.dataset}, figure {made.figure}", highlight=False)
    _write_json(json_file, {"rows": [row.to_json() for row in made.rows]})


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
    """Runs the command line: a user's mistake is one line and exit code 2, any other failure one line and 1."""
    try:
        app()
    except HyCOPError as error:
        if "--debug" in sys.argv:
            raise
        print(f"hycop: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("hycop: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        print(f"hycop: {type(error).__name__}: {error} (a fault of hycop; --debug shows where)", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
