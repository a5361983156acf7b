"""Commands for monolithic baselines: baseline, and what evaluate and predict do with the folder of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hycop.baselines import BASELINES, NOT_AVAILABLE, Monolith, find_baseline, load_baseline, train_baseline
from hycop.baselines.monolith import FEWEST_ROUNDS
from hycop.baselines.training import any_time
from hycop.cli.common import JsonOption, SeedOption, app, pairs_of, report_json, with_shape
from hycop.cli.pictures import Pictures
from hycop.cli.reading import Reading, counted_from
from hycop.cli.rows import print_rows
from hycop.cli.terminal import counted, say, tell
from hycop.data import Dataset, dataset_writer
from hycop.errors import InvalidInputError
from hycop.evaluation import Contender, Row, evaluate
from hycop.files import naming
from hycop.inspection import common_times
from hycop.problems import Problem, find_problem, problems_with
from hycop.progress import counting
from hycop.query import Query
from hycop.version import __version__

HORIZONS = (1, 5, 10, 20)
"""Steps after which a baseline that is rolled out is judged."""


def _list(asked: bool) -> None:
    if asked:
        for baseline in BASELINES.values():
            remark = f" ({baseline.remark})" if baseline.remark else ""
            how = "one query time" if baseline.protocol == "fixed" else "steps, rolled out"
            say(f"{baseline.name:14} {baseline.label}: {how}{remark}. {baseline.source}")
        for label, reason in NOT_AVAILABLE.items():
            say(f"{label:14} not available: {reason}")
        raise typer.Exit()


@app.command(name="baseline")
def baseline_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"Baseline: {', '.join(BASELINES)}.")],
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder of the baseline: checkpoints, then its network.")],
    preset: Annotated[str, typer.Option(help="quick, laptop or paper.")] = "quick",
    data_file: Annotated[
        Path | None, typer.Option("--data", help="Solutions to learn from; else they are drawn from split train.")
    ] = None,
    begin: Annotated[
        Path | None, typer.Option("--from", help="Folder of the trained FNO from which PINO goes on.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--any-time", help="Learn every duration instead: a primitive for dictionaries.")
    ] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value, over the preset; repeatable.")] = None,
    seed: SeedOption = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    list_all: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="List the baselines and where they come from.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Train a monolithic neural operator on solutions of a problem, to compare with (extra 'learned').

    Example: hycop baseline fno adr2d --out runs/fno --preset quick
    Then: hycop evaluate runs/fno --split id --split ood
    """
    chosen, task = find_baseline(name), find_problem(problem)
    given: dict[str, Any] = with_shape(pairs_of(settings, "--set", "rounds=100"))
    if seed < 0:
        raise InvalidInputError(f"--seed is {seed}: a whole number, at least 0, is needed")
    data = None if data_file is None else Reading().load(data_file, problem, also=problems_with(task.equation))
    options: dict[str, Any] = {"preset": preset, "seed": seed, "folder": folder, "resume": resume, "data": data}
    with naming(data_file):
        if every:
            if begin is not None:
                raise InvalidInputError("--from: has no effect with --any-time; leave it out")
            made = any_time(task, chosen.name, **options, **given)
            say(f"{folder}: {made!r}; use it with 'hycop train {problem} --primitive NAME={folder}'")
            report_json(json_file, {"folder": str(folder), "baseline": chosen.name, "measured": dict(made.measured)})
            return
        start = None if begin is None else load_baseline(begin)
        monolith = train_baseline(task, chosen.name, begin=start, **options, **given)
    _tell(folder, monolith)
    report_json(json_file, {"folder": str(folder), **summary(monolith)})


def summary(monolith: Monolith) -> dict[str, object]:
    """What is to be known of a trained baseline."""
    return {
        "baseline": monolith.baseline.name,
        "network": monolith.primitive.plan.to_json(),
        "parameters": sum(array.size for array in monolith.primitive.arrays().values()),
        "time": monolith.time,
        "error": min(monolith.curve),
        "passes": monolith.passes,
        "seconds": monolith.seconds,
        "slope": monolith.slope if np.isfinite(monolith.slope) else None,
        "converged": monolith.converged,
        "curve": [error if np.isfinite(error) else None for error in monolith.curve],
    }


def _tell(folder: Path, monolith: Monolith) -> None:
    how = "at T =" if monolith.baseline.protocol == "fixed" else "in steps of"
    say(f"{folder}: {monolith.baseline.label} {how} {monolith.time:g}, {monolith.primitive!r}")
    fell = "converged" if monolith.converged else "not converged"
    if len(monolith.curve) >= FEWEST_ROUNDS:
        fell += f": the second half of training lowered it {2**monolith.slope:.2f} times"
    else:
        fell += f": {counted(len(monolith.curve), 'round')} do not tell"
    say(
        f"held-out error {min(monolith.curve):.2e} after {monolith.passes:.3g} forward passes and "
        f"{monolith.seconds:.0f} CPU s; {fell}"
    )
    say(f"see 'hycop evaluate {folder} --split id --split ood'")


def evaluate_baseline(
    folder: str,
    splits: Sequence[str] | None,
    samples: int,
    seeds: Sequence[int],
    times: Sequence[float] | None,
    metrics: Sequence[str] | None,
    data_file: Path | None,
    reading: Reading,
    where: dict[str, Any],
    json_file: Path | None,
) -> None:
    """Prints the error of a trained baseline on splits of its problem, or on a file."""
    monolith = load_baseline(folder)
    problem = find_problem(monolith.network.problem)
    asked = list(times) if times else _own_times(monolith)
    rows: list[Row] = []
    if data_file is not None:
        data = reading.load(data_file, problem.name, also=problems_with(problem.equation))
        with naming(data_file):
            for index in range(1, data.times.shape[1]):
                rows += _judged(monolith, problem, [data.at(index)], metrics)
    else:
        for split in splits or ["id"]:
            with counting(samples * len(seeds), f"truth of {problem.name}/{split}") as advance:
                drawn = [problem.sample(samples, split, seed, times=asked, progress=advance, **where) for seed in seeds]
            for index in range(1, len(asked) + 1):
                rows += _judged(monolith, problem, [each.at(index) for each in drawn], metrics)
    print_rows(rows)
    report_json(json_file, {"rows": [row.to_json() for row in rows], **summary(monolith)})


def _own_times(monolith: Monolith) -> list[float]:
    steps = (1,) if monolith.baseline.protocol == "fixed" else HORIZONS
    return [float(np.round(monolith.time * count, 12)) for count in steps]


def _judged(
    monolith: Monolith, problem: Problem, datasets: Sequence[Dataset], metrics: Sequence[str] | None
) -> list[Row]:
    contender = Contender(monolith.baseline.label, monolith)
    return evaluate([contender], datasets, metrics=metrics, reported_variables=problem.reported_variables)


def predict_baseline(
    folder: Path,
    source: Path,
    target: Path,
    times: Sequence[float] | None,
    reading: Reading,
    pictures: Pictures,
    layout: str = "hycop",
) -> dict[str, object]:
    """Writes the answers of a trained baseline to the initial states of a file, block by block; returns what is to be
    known of them."""
    monolith = load_baseline(folder)
    problem = find_problem(monolith.network.problem)
    stored = reading.open(source, problem.name, later=times is None, also=problems_with(problem.equation))
    with naming(source):
        pictures.check_sample(stored.samples)
    untrusted, drawn = 0, None
    with counting(stored.samples, "answers") as advance, dataset_writer(target, stored.samples, layout) as out:
        for first, data in stored.blocks(stored.bytes_per_sample * (1 if times is None else 1 + len(times))):
            with counted_from(first), naming(source):
                asked = list(common_times(data) if times is None else times)
                answer = _answered(monolith, data.arranged(problem.channels), asked, folder)
            out.append(answer)
            untrusted += 0 if answer.untrusted is None else int(answer.untrusted.sum())
            if (shown := pictures.shown(first, data)) is not None:
                drawn = answer.take(shown), data.take(shown)
            advance(data.samples)
    say(f"{target}: {counted(stored.samples, 'sample')} at {counted(len(asked), 'time')}")
    if drawn is not None:
        pictures.draw(*drawn)
    answers = stored.samples * len(asked)
    if untrusted:
        tell(f"not to be trusted: {untrusted} of {answers} answers lie outside the trained range")
    return {"file": str(target), "untrusted": untrusted, "answers": answers}


def _answered(monolith: Monolith, data: Dataset, times: Sequence[float], folder: Path) -> Dataset:
    """The initial states of some data, and a baseline's answers."""
    query = Query(data.states[:, 0], data.setting, np.zeros(data.samples)).at(times)
    done = monolith.solve(query)
    outside = monolith.primitive.outside(query.u0, query.setting).reshape(data.samples, -1)
    states = done.states.reshape(data.samples, len(times), *done.states.shape[1:])
    return replace(
        data,
        states=np.concatenate([data.states[:, :1], states], axis=1),
        times=data.times[:, :1] + np.array([0.0, *times]),
        reference=f"{monolith.baseline.label} {folder}",
        reference_error=None,
        version=__version__,
        untrusted=np.pad(outside, ((0, 0), (1, 0))),
        reasons=np.concatenate(
            [np.full((data.samples, 1), ""), np.where(outside, "states or coefficients", "")], axis=1
        ),
    )
