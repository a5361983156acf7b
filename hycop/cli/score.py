"""Commands that make data and numbers: datasets, evaluations and the demonstration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hycop.baselines import is_baseline
from hycop.cli.baseline import evaluate_baseline
from hycop.cli.common import (
    DRAWN,
    BoundaryOption,
    DataOption,
    DictionaryOption,
    ExecutorOption,
    FramesOption,
    JsonOption,
    LayoutOption,
    OverwriteOption,
    ParamOption,
    ProgramOption,
    SchedulerOption,
    SchemeOption,
    SeedOption,
    ShapeOption,
    SplitOption,
    SplitsOption,
    TimesOption,
    WorkersOption,
    app,
    boundary_of,
    check_boundaries,
    check_counts,
    check_file,
    chosen_executor,
    program_of,
    refuse_options,
    report_json,
    shape_of,
    times_of,
)
from hycop.cli.networks import evaluate_network
from hycop.cli.reading import Reading
from hycop.cli.rows import print_rows
from hycop.cli.terminal import counted, say, tell
from hycop.data import Dataset, dataset_writer
from hycop.data.blocks import regrouped
from hycop.data.layouts import checked_layout
from hycop.data.pdebench import PDEBENCH, check_writable
from hycop.errors import InvalidInputError
from hycop.evaluation import SPLITTING, Row
from hycop.executors import Executor
from hycop.experiments.demo import demo
from hycop.experiments.trial import Trial
from hycop.files import naming, output_folder
from hycop.grid import Array, Grid
from hycop.problems import find_problem, problems_with
from hycop.progress import counting, describing
from hycop.storage.network import is_network
from hycop.surrogate import HyCOP


@app.command()
def data(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    file: Annotated[Path, typer.Argument(metavar="OUT.nc", help="File to write: .nc or .npz, .hdf5 with --layout.")],
    split: SplitOption = "train",
    samples: Annotated[int, typer.Option(help="Number of samples.")] = 1000,
    seed: SeedOption = 0,
    shape: ShapeOption = None,
    times: TimesOption = None,
    boundary: BoundaryOption = None,
    layout: LayoutOption = "hycop",
    overwrite: OverwriteOption = False,
    json_file: JsonOption = None,
) -> None:
    """Draw queries from a split, solve them with the reference, and write a dataset.

    Example: hycop data adr2d train.nc --split train --samples 1000 --seed 0
    """
    chosen = find_problem(name)
    check_file(checked_layout(layout, file), overwrite)
    check_counts(**{"--samples": samples})
    where: dict[str, Any] = {"shape": shape_of(shape), "times": times_of(times), "boundary": boundary_of(boundary)}
    if layout == "pdebench":  # before hours of solving
        few = chosen.queries(min(samples, 2), split, seed, **where)
        check_writable(few.setting, few.time)
    with counting(samples, f"truth of {name}") as advance, dataset_writer(file, samples, layout) as target:
        for made in chosen.blocks(samples, split, seed, progress=advance, **where):
            target.append(made)
    cells, error = "x".join(map(str, made.setting.grid.shape)), made.reference_error
    say(
        f"{file}: {counted(samples, 'sample')} of {name}/{split} on {cells}, truth by {made.reference} with "
        + ("no estimate of its error" if error is None else f"an estimated error of {error:.1e}"),
    )
    if error is not None and error > DOUBTFUL:
        say(f"this truth is {error:.0%} wrong by its own estimate: take a shorter time, more cells or another truth")
    report_json(
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


DOUBTFUL = 0.01
"""Estimated error of a truth of which ``hycop data`` warns."""

MetricOption = Annotated[list[str] | None, typer.Option(help=f"Metric, repeatable; rel_l2 and {SPLITTING} by default.")]
RefinementOption = Annotated[
    int | None, typer.Option(help="Run programs on a grid this many times finer; the model's or problem's own.")
]
CompareOption = Annotated[
    bool, typer.Option("--compare", help="With a RUN: also every classical scheme of no more work.")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Judge a --program in which some process does not run for T.")
]


@app.command(name="evaluate")
def evaluate_command(
    name: Annotated[
        str,
        typer.Argument(metavar="PROBLEM|RUN", help="Problem, or folder of a trained model, network or baseline."),
    ],
    split: SplitsOption = None,
    scheme: SchemeOption = None,
    program: ProgramOption = None,
    dictionary: DictionaryOption = None,
    metric: MetricOption = None,
    data_file: DataOption = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    samples: Annotated[int | None, typer.Option(help="Samples per seed, 100 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="First seed, 0 by default.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of datasets, for the spread; 3 by default.")] = None,
    shape: ShapeOption = None,
    times: TimesOption = None,
    boundary: BoundaryOption = None,
    refinement: RefinementOption = None,
    compare: CompareOption = False,
    force: ForceOption = False,
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    json_file: JsonOption = None,
) -> None:
    """Error, work and time of a trained model, classical schemes, or a program by hand, beside the dictionary's limit.

    Data of more than 16 MiB are read or drawn, and judged, block by block; workers get a block each.

    Example: hycop evaluate adr2d --scheme all --split id --json schemes.json
    Example: hycop evaluate runs/adr --compare
    """
    check_counts(**{"--samples": samples, "--seeds": seeds, "--refinement": refinement})
    reading = Reading(samples, frames, shape, tuple(param or ()), boundary)
    workforce = chosen_executor(executor, workers, scheduler)
    if is_network(name):
        own: dict[str, object] = {"scheme": scheme, "program": program, "dictionary": dictionary}
        own["executor"] = None if executor == "local" else executor
        own |= {"refinement": refinement, "compare": compare or None, "force": force or None}
        refuse_options(f"for the {'baseline' if is_baseline(name) else 'network'} {name}", **own)
        _evaluate_learned(name, split, metric, data_file, reading, seed, seeds, times_of(times), json_file)
        return
    model = HyCOP.load(name) if Path(name).is_dir() else None
    chosen = find_problem(name if model is None else model.model.equation.name)
    _refuse_idle(name, model, compare, program, force)
    # what can be refused is refused before anything is computed
    trial = Trial.of(
        chosen,
        None if model is None else HyCOP.of(model.model.uncorrected),  # opponents see corrected coefficients too
        dictionary=dictionary,
        refinement=refinement,
        metrics=metric,
        schemes=scheme or (),
        program=None if program is None else program_of(program),
        compare=compare,
    )
    asked = _asked(trial, data_file, reading, split, seed=seed, seeds=seeds, times=times)
    if not force:
        _check_durations(trial, asked.times)
    with workforce, naming(data_file, asked.per_sample):
        check_boundaries(chosen, trial.dictionary, asked.grid, run=None if model is None or dictionary else Path(name))
        rows = list(_judged(trial, asked, model, workforce))
    _tell_differences(model, name, data_file, asked.grid, chosen.name)
    print_rows(rows)
    report_json(json_file, {"rows": [row.to_json() for row in rows]})


def _evaluate_learned(
    name: str,
    split: list[str] | None,
    metric: list[str] | None,
    data_file: Path | None,
    reading: Reading,
    seed: int | None,
    seeds: int | None,
    times: Sequence[float] | None,
    json_file: Path | None,
) -> None:
    """Evaluates a baseline, which answers queries, or a network, which advances some processes."""
    count = reading.samples or 100
    if not is_baseline(name):
        idle: dict[str, object] = {"metric": metric, "data": data_file, "frames": reading.frames, "seeds": seeds}
        idle |= {"param": list(reading.params) or None, "shape": reading.shape, "boundary": reading.boundary}
        refuse_options(f"for the network {name}", **idle)
        evaluate_network(name, split, count, seed or 0, times, json_file)
        return
    every = range(seed or 0, (seed or 0) + (seeds or 3))
    box: dict[str, Any] = {"shape": shape_of(reading.shape), "boundary": boundary_of(reading.boundary)}
    evaluate_baseline(name, split, count, every, times, metric, data_file, reading, box, json_file)


def _refuse_idle(name: str, model: HyCOP | None, compare: bool, program: str | None, force: bool) -> None:
    """Refuses switches that would have no effect."""
    if model is None:
        refuse_options(f"for the problem {name}: it is for the folder of a trained model", compare=compare or None)
    if program is None:
        refuse_options("without --program", force=force or None)


def _tell_differences(model: HyCOP | None, name: str, data_file: Path | None, grid: Grid, problem: str) -> None:
    """Says where the question is not the one that the model was trained for."""
    if model is not None and grid.boundary != model.model.box.boundary:
        tell(f"{data_file or name}: answered with another boundary ({grid.boundary_name}) than the model's")
    if model is not None and data_file is None and (changes := model.model.record.changes):
        tell(f"{name}: {'; '.join(changes)}. The drawn truth is that of {problem}; --data gives other data")


@dataclass(frozen=True)
class Asked:
    """Queries to judge by: for each split a dataset per seed, block by block; their grid and times, the samples of a
    split, and how many queries a sample has."""

    datasets: Iterable[Iterable[Iterable[Dataset]]]
    grid: Grid
    times: Array
    samples: int
    per_sample: int = 1


def _asked(
    trial: Trial,
    file: Path | None,
    reading: Reading,
    split: list[str] | None,
    *,
    seed: int | None,
    seeds: int | None,
    times: str | None,
) -> Asked:
    """The queries of a file, or else drawn ones; options that have no meaning for these are refused."""
    shape, boundary = reading.shape, reading.boundary
    if file is not None:
        ours = {} if file.suffix.lower() in PDEBENCH else {"shape": shape, "boundary": boundary}
        refuse_options(DRAWN, split=split, seed=seed, seeds=seeds, times=times, **ours)
        return _in_file(trial, file, reading)
    refuse_options("without --data", frames=reading.frames, param=reading.params or None)
    splits = split or (["id", "ood"] if trial.compare else ["id"])
    where: dict[str, Any] = {"shape": shape_of(shape), "times": times_of(times), "boundary": boundary_of(boundary)}
    return _drawn(trial, splits, reading.samples or 100, seed or 0, seeds or 3, **where)


def _in_file(trial: Trial, file: Path, reading: Reading) -> Asked:
    name = trial.problem.name
    stored = reading.open(file, name, also=() if trial.model is None else problems_with(trial.problem.equation))
    blocks = (data for _, data in stored.blocks())
    first = next(blocks)
    return Asked([[chain([first], blocks)]], first.setting.grid, first.query.time, stored.samples, _later(first))


def _later(data: Dataset) -> int:
    return data.times.shape[1] - 1


def _drawn(
    trial: Trial,
    splits: Sequence[str],
    samples: int,
    seed: int,
    seeds: int,
    *,
    shape: tuple[int, ...] | None,
    times: list[float] | None,
    boundary: str | tuple[str, ...] | None,
) -> Asked:
    """Datasets are drawn when their turn comes; a model is asked in its own box, unless told otherwise."""
    chosen = trial.problem
    own = [time for split in splits for time in chosen.split(split).time]
    where: dict[str, Any] = {"shape": shape, "boundary": boundary or trial.boundary}
    drawn = (
        [regrouped(chosen.blocks(samples, split, each, times=times, **where)) for each in range(seed, seed + seeds)]
        for split in splits
    )
    return Asked(drawn, chosen.grid(**where), np.array(own if times is None else times), samples * seeds)


def _check_durations(trial: Trial, times: Array) -> None:
    try:
        trial.check_durations(times)
    except InvalidInputError as error:
        raise InvalidInputError(f"--program: {error}; correct its durations, or use --force") from None


def _judged(trial: Trial, asked: Asked, model: HyCOP | None, executor: Executor) -> Iterator[Row]:
    """The rows of all splits; a model's corrections of coefficients hold for its opponents too."""
    for datasets in asked.datasets:
        if model is not None:
            datasets = [map(model.model.corrected_data, blocks) for blocks in datasets]
        with counting(asked.samples, "samples judged") as advance:
            yield from trial.rows(datasets, executor, advance)


@app.command(name="demo")
def demo_command(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the dataset and the figure.")] = Path("demo"),
    samples: Annotated[int, typer.Option(help="Number of samples.")] = 64,
    json_file: JsonOption = None,
) -> None:
    """Make a small dataset, train a policy, compare it with the classical schemes, print the table, draw the figures.

    Example: hycop demo --out demo
    """
    if samples < 2:
        raise InvalidInputError(f"--samples is {samples}: at least 2 are needed")
    folder = output_folder(folder)
    with describing("demo") as describe:
        made = demo(folder, samples, describe)
    print_rows(made.rows)
    say(f"a program that it wrote: {made.program}")
    say(f"wrote {', '.join(map(str, made.files))}")
    report_json(json_file, {"rows": [row.to_json() for row in made.rows]})
