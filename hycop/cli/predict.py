"""The command that uses what was learned: predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from hycop.baselines import is_baseline
from hycop.cli.baseline import predict_baseline
from hycop.cli.common import (
    BoundaryOption,
    ExecutorOption,
    FramesOption,
    JsonOption,
    LayoutOption,
    OverwriteOption,
    ParamOption,
    SchedulerOption,
    WorkersOption,
    app,
    boundary_of,
    check_boundaries,
    check_file,
    chosen_executor,
    refuse_options,
    report_json,
    times_of,
)
from hycop.cli.pictures import MovieFramesOption, MovieOption, Pictures, PlotOption, SampleOption
from hycop.cli.reading import Reading, Stored, counted_from
from hycop.cli.terminal import counted, say, tell
from hycop.data import Dataset, dataset_writer
from hycop.data.blocks import outline
from hycop.data.layouts import checked_layout
from hycop.errors import InvalidInputError
from hycop.estimation import COVERED
from hycop.executors import Executor
from hycop.files import naming
from hycop.grid import Grid
from hycop.inspection import OWN_TIMES, Answered, AnswerJob, answers, common_times
from hycop.problems import problem_of, problems_with
from hycop.progress import counting
from hycop.surrogate import HyCOP
from hycop.tolerance import checked_tolerance

SourceArgument = Annotated[
    Path,
    typer.Argument(metavar="IN", help="Dataset, ours, PDEBench's or The Well's, with initial states and parameters."),
]
AfterOption = Annotated[
    str | None,
    typer.Option(
        help="Times after the initial state, as 0.1,0.2; by default the dataset's, if all its samples have the same."
    ),
]
FirstOption = Annotated[int | None, typer.Option(help="Answer only the first samples of the file; all by default.")]
EstimateOption = Annotated[
    bool,
    typer.Option("--error-estimate", help="Estimate the error of every answer; takes 5 to 8 times the work."),
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(help="Refine programs and grids until the estimated relative error is at most this, as 1e-3."),
]


@app.command()
def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    source: SourceArgument,
    target: Annotated[Path, typer.Argument(metavar="OUT.nc", help="File to write: .nc or .npz, .hdf5 with --layout.")],
    times: AfterOption = None,
    boundary: BoundaryOption = None,
    samples: FirstOption = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    error_estimate: EstimateOption = False,
    tol: ToleranceOption = None,
    plot: PlotOption = None,
    movie: MovieOption = None,
    sample: SampleOption = None,
    movie_frames: MovieFramesOption = None,
    layout: LayoutOption = "hycop",
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    overwrite: OverwriteOption = False,
    json_file: JsonOption = None,
) -> None:
    """Answer queries at any times, each straight from its initial state. Samples are read, answered and written a few
    at a time, so a file may be larger than memory.

    Example: hycop predict runs/adr queries.nc answers.nc --times 0.05,0.1,0.37
    Example: hycop predict runs/adr queries.nc answers.nc --times 0.2 --tol 1e-3
    Example: hycop predict runs/adr queries.nc answers.nc --times 0.2 --plot u.png --movie u.gif
    """
    if tol is not None:
        checked_tolerance(tol, "--tol")
    pictures = Pictures(plot, movie, sample, movie_frames)
    _check_outputs(source, target, layout, pictures, overwrite)
    workforce = chosen_executor(executor, workers, scheduler)
    reading, asked = Reading(samples, frames, None, tuple(param or ()), boundary), times_of(times)
    if is_baseline(folder):
        without: dict[str, object] = {
            "error_estimate": error_estimate or None,
            "tol": tol,
            "movie-frames": movie_frames,
        }
        without |= {"executor": None if executor == "local" else executor}
        refuse_options(f"for the baseline {folder}", **without)
        report_json(json_file, predict_baseline(folder, source, target, asked, reading, pictures, layout))
        return
    model = HyCOP.load(folder)
    equation = model.model.equation
    stored = reading.open(source, equation.name, later=asked is None, also=problems_with(equation))
    asking = _Asking(model, folder, stored, boundary_of(boundary), asked, error_estimate, tol)
    report_json(json_file, _predicted(asking, target, layout, reading, pictures, workforce))


def _check_outputs(source: Path, target: Path, layout: str, pictures: Pictures, overwrite: bool) -> None:
    checked_layout(layout, target)
    if target.exists() and source.exists() and target.samefile(source):
        raise InvalidInputError(f"{target}: is also the input, which would be lost; choose another file")
    check_file(target, overwrite)
    pictures.check(source, target, overwrite)


class _Block(NamedTuple):
    """Samples of a file from the ``first`` on, the times at which they were asked, and the answers."""

    first: int
    data: Dataset
    times: list[float]
    found: Answered


@dataclass(frozen=True)
class _Asking:
    """A model, and how it is asked about the samples of a file."""

    model: HyCOP
    folder: Path
    stored: Stored
    boundary: str | tuple[str, ...] | None
    times: list[float] | None
    error_estimate: bool
    tol: float | None

    def times_of(self, data: Dataset, known: list[float] | None) -> list[float]:
        """The times asked for: those given, or those that all samples of the file share."""
        if self.times is not None:
            return self.times
        own = common_times(data)
        if known is not None and own != known:
            raise InvalidInputError(OWN_TIMES)
        return own

    def grid_of(self, data: Dataset) -> Grid:
        grid = data.setting.grid.with_boundary(self.boundary or data.setting.grid.boundary)
        check_boundaries(problem_of(self.model.model.equation), self.model.dictionary, grid, run=self.folder)
        return grid

    def answers(self, executor: Executor) -> Iterator[_Block]:
        times: list[float] | None = None
        per_sample = self.stored.bytes_per_sample * (1 if self.times is None else 1 + len(self.times))
        for first, data in self.stored.blocks(per_sample):
            with counted_from(first), naming(self.stored.path):
                times = self.times_of(data, times)
                walls = self.grid_of(data).boundary
            with counted_from(first), naming(self.stored.path, each=len(times)):
                job = AnswerJob(self.model, data, tuple(times), walls, self.error_estimate, self.tol)
                found = job.run(executor)
            yield _Block(first, data, times, found)


def _predicted(
    asking: _Asking, target: Path, layout: str, reading: Reading, pictures: Pictures, executor: Executor
) -> dict[str, object]:
    """Writes the answers of a model to the initial states of a file; returns what is to be known of them."""
    stored, box = asking.stored, asking.model.model.box
    with naming(stored.path):
        pictures.check_sample(stored.samples)
    rows: list[dict[str, Any]] = []
    known: list[Answered] = []
    drawn: tuple[Dataset, Dataset] | None = None
    with (
        executor,
        counting(stored.samples, "answers") as advance,
        dataset_writer(target, stored.samples, layout) as out,
    ):
        for first, data, times, found in asking.answers(executor):
            out.append(replace(found.data, reference=f"HyCOP {asking.folder}"))
            rows += _rows(found.data, times, first)
            known.append(found._replace(data=outline(found.data)))
            if (shown := pictures.shown(first, data)) is not None:
                drawn = found.data.take(shown), data.take(shown)
            advance(data.samples)
    walls = found.data.setting.grid.boundary
    if reading.boundary is None and walls != box.boundary:
        own = ",".join(box.boundary)
        tell(f"{stored.path}: answered with its boundary, not with the model's; --boundary {own} is that")
    say(f"{target}: {counted(stored.samples, 'sample')} at {counted(len(times), 'time')}")
    if drawn is not None:
        pictures.draw(*drawn, lambda some, at: answers(asking.model, some, at, walls, tol=asking.tol))
    report: dict[str, object] = {"file": str(target), "rows": rows}
    if found.estimate_work is not None:
        report |= _told_estimate(known, rows, asking.tol)
    _tell_untrusted(rows)
    return report


def _rows(answer: Dataset, times: Sequence[float], first: int) -> list[dict[str, object]]:
    """One row for each answer: its sample, counted from ``first``, and time, why it is not to be trusted, if so, and
    its estimated error."""
    assert answer.untrusted is not None and answer.reasons is not None
    rows: list[dict[str, object]] = []
    for place in np.ndindex(answer.samples, len(times)):
        sample, index = place[0], place[1] + 1
        reasons = [reason for reason in str(answer.reasons[sample, index]).split(", ") if reason]
        row = {"sample": first + sample, "time": times[index - 1], "untrusted": bool(answer.untrusted[sample, index])}
        rows.append({**row, "reasons": reasons})
        if answer.error_estimate is not None:
            error = float(answer.error_estimate[sample, index])
            rows[-1]["error_estimate"] = error if isfinite(error) else None
        if answer.tolerance_met is not None:
            rows[-1]["tolerance_met"] = bool(answer.tolerance_met[sample, index])
    return rows


def _told_estimate(known: Sequence[Answered], rows: Sequence[dict[str, Any]], tol: float | None) -> dict[str, object]:
    """Tells what the errors are estimated to be, and which answers miss the tolerance; the same for JSON."""
    own = float(np.concatenate([each.work for each in known]).mean())
    more = float(np.concatenate([each.estimate_work for each in known if each.estimate_work is not None]).mean())
    errors = np.array([inf if row["error_estimate"] is None else row["error_estimate"] for row in rows])
    say(
        f"estimated relative error: median {np.median(errors):.1e}, largest {errors.max():.1e}; "
        f"the estimate took {more / own if own else 0.0:.1f} times the work of the answers"
    )
    calibrated = all(each.calibrated for each in known)
    tell(
        f"{COVERED:.0%} of queries like those of training err less than their estimate"
        if calibrated
        else "the estimate is not calibrated for this model and boundary: it is twice the distance to a refined answer"
    )
    tell("an error of the equation itself, such as missing physics, cannot be seen without data")
    told: dict[str, object] = {"calibrated": calibrated, "work": own, "estimate_work": more}
    if tol is None:
        return told
    missed = [row for row in rows if not row["tolerance_met"]]
    say(f"tolerance {tol:g}: met by {len(rows) - len(missed)} of {len(rows)} answers")
    if missed:
        tell(f"not refined to the tolerance: {_shown_samples(missed)}")
    return {**told, "tolerance": tol}


def _shown_samples(rows: Sequence[dict[str, Any]]) -> str:
    samples = list(dict.fromkeys(str(row["sample"]) for row in rows))
    return f"samples {', '.join(samples[:10])}{' …' if len(samples) > 10 else ''}"


def _tell_untrusted(rows: Sequence[dict[str, Any]]) -> None:
    flagged = [row for row in rows if row["untrusted"]]
    if flagged:
        reasons = dict.fromkeys(reason for row in flagged for reason in row["reasons"])
        tell(
            f"not to be trusted: {len(flagged)} of {len(rows)} answers lie outside the trained range of "
            f"{', '.join(reasons)} ({_shown_samples(flagged)})"
        )
