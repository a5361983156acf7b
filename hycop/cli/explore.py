"""Commands that show what there is: problems, programs, and whether a primitive keeps its word."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from hycop.baselines import find_baseline
from hycop.baselines.selftest import self_test
from hycop.cli.common import (
    DictionaryOption,
    JsonOption,
    SeedOption,
    SplitOption,
    app,
    report_json,
)
from hycop.cli.terminal import say, show, tell
from hycop.conformance import check_primitive, load_primitive
from hycop.errors import InvalidInputError
from hycop.files import checked_output, replacing
from hycop.inspection import Inspection, inspected
from hycop.plots import timeline_figure
from hycop.problems import PROBLEMS, Problem, find_problem
from hycop.progress import waiting
from hycop.schemes import splitting
from hycop.storage.network import is_network, load_network
from hycop.surrogate import HyCOP


@app.command()
def problems(
    name: Annotated[str | None, typer.Argument(help="A problem, for its ranges and families.")] = None,
    json_file: JsonOption = None,
) -> None:
    """List the problems, or describe one.

    Example: hycop problems adr2d
    """
    chosen = [find_problem(name)] if name else list(PROBLEMS.values())
    if name is None:
        grid = RichTable("problem", "equation", "grid", "dictionaries")
        for entry in chosen:
            grid.add_row(
                entry.name, entry.equation.formula, "x".join(map(str, entry.shape)), ", ".join(entry.dictionaries)
            )
        show(grid)
    else:
        _describe(chosen[0])
    report_json(json_file, {"problems": [_as_json(entry) for entry in chosen]})


def _describe(entry: Problem) -> None:
    say(f"{entry.name}: {entry.equation.formula}\n{entry.behaviour}")
    say(f"grid {'x'.join(map(str, entry.shape))}, box {entry.lengths}, boundary {', '.join(entry.boundary)}")
    for name, split in entry.splits.items():
        ranges = "; ".join(
            f"{parameter} in {' or '.join(f'[{low:g}, {high:g}]' for low, high in intervals)}"
            for parameter, intervals in split.params.items()
        )
        say(f"{name}: T in [{split.time[0]:g}, {split.time[1]:g}]; {ranges}")
        say(f"  initial states: {', '.join(split.initial)}")
    for name, dictionary in entry.dictionaries.items():
        say(f"dictionary {name}: {dictionary!r}")


def _as_json(entry: Problem) -> dict[str, object]:
    return {
        "name": entry.name,
        "equation": entry.equation.formula,
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


LAST_SAMPLE = 9_999
"""Number of the last query that may be asked for: those before it are drawn, too."""


@app.command(name="program")
def program_command(
    name: Annotated[str, typer.Argument(metavar="PROBLEM|RUN", help="Problem, or the folder of a trained model.")],
    scheme: Annotated[
        str | None, typer.Option(help="Scheme, as in evaluate; strang by default, or what a RUN has learned.")
    ] = None,
    sample: Annotated[int, typer.Option(help="Which sample of the split.")] = 0,
    time: Annotated[float | None, typer.Option(help="Query time; the split's own by default.")] = None,
    split: SplitOption = "id",
    seed: SeedOption = 0,
    dictionary: DictionaryOption = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the timeline to this file (png, pdf, svg).")] = None,
    json_file: JsonOption = None,
) -> None:
    """Print the program that a scheme or a trained model writes for one query, as written and as run.

    Example: hycop program adr2d --scheme ababa --sample 3 --time 0.25
    Example: hycop program runs/adr --sample 3 --figure timeline.png
    """
    model = HyCOP.load(name) if Path(name).is_dir() else None
    chosen = find_problem(name if model is None else model.model.equation.name)
    for path in (figure, json_file):
        if path is not None:
            checked_output(path)
    if figure is not None and figure.suffix not in (".png", ".pdf", ".svg"):
        raise InvalidInputError(f"--figure {figure}: the suffix must be .png, .pdf or .svg")
    if not 0 <= sample <= LAST_SAMPLE:
        raise InvalidInputError(f"--sample is {sample}: a number from 0 to {LAST_SAMPLE} is needed")
    parts = chosen.named_dictionary(dictionary) if model is None or dictionary else model.dictionary
    where = None if model is None else model.model.box.boundary
    asked = None if time is None else [time]
    query = chosen.queries(sample + 1, split, seed, times=asked, boundary=where).take(slice(sample, sample + 1))
    writer = splitting(scheme or "strang") if model is None or scheme else model
    refinement = chosen.refinement if model is None else model.model.composition().refinement
    found = inspected(writer, query, parts, refinement)
    _show_program(found, f"{chosen.name}/{split} sample {sample}")
    if figure is not None:
        with replacing(figure) as temporary:
            shown = {found.method: found.written, "as run": found.as_run}
            timeline_figure(shown, parts.names).savefig(temporary, dpi=120)
        tell(f"wrote {figure}")
    report_json(json_file, found.to_json())


def _show_program(found: Inspection, query: str) -> None:
    values = ", ".join(f"{key}={value:.4g}" for key, value in found.params.items())
    say(f"query     {query}: T={found.time:.4g}{', ' if values else ''}{values}")
    for line in found.changes:
        say(f"changed   {line}")
    if found.features:
        say(f"features  {', '.join(f'{key} {value:.3g}' for key, value in found.features.items())}")
    say(f"{found.method:9} {found.written}")
    say(f"as run    {found.as_run}")
    say(f"work      {found.work:.6g} channel-cell updates")


@app.command()
def check(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME|NET|baseline:NAME",
            help="Primitive, as package.module:Name, file.py:Name or a network folder; or a baseline, as baseline:fno.",
        ),
    ],
    seed: SeedOption = 0,
    json_file: JsonOption = None,
) -> None:
    """Prove a primitive (identity, semigroup, declared order, conservation, boundaries, work), or the network of a
    baseline (it fits eight samples, and learns two flows whose answer is known).

    Example: hycop check hycop.primitives:MusclAdvection
    Example: hycop check baseline:fno
    """
    if seed < 0:
        raise InvalidInputError(f"--seed is {seed}: a whole number, at least 0, is needed")
    kind, _, name = target.partition(":")
    with waiting(f"checking {target}"):
        if kind == "baseline":
            report = self_test(find_baseline(name).family)
        else:
            is_folder = is_network(target) or Path(target).is_dir()
            report = check_primitive(load_network(target).primitive if is_folder else load_primitive(target), seed)
    say(str(report))
    report_json(json_file, {"target": target, "passed": report.passed, "checks": [each._asdict() for each in report]})
    if not report.passed:
        raise typer.Exit(2)
