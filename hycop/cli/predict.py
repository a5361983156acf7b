"""The command that uses what was learned: predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hycop.answer import Answer
from hycop.baselines import is_baseline
from hycop.cli.baseline import predict_baseline
from hycop.cli.common import (
    BoundaryOption,
    FramesOption,
    JsonOption,
    OverwriteOption,
    ParamOption,
    Reading,
    app,
    boundary_of,
    check_boundaries,
    check_file,
    refuse_options,
    report_json,
    times_of,
)
from hycop.cli.pictures import MovieFramesOption, MovieOption, Pictures, PlotOption, SampleOption
from hycop.cli.terminal import counted, say, tell
from hycop.data import Dataset, checked_dataset_path, save
from hycop.errors import InvalidInputError
from hycop.estimation import COVERED
from hycop.files import naming
from hycop.inspection import answers, as_dataset, common_times, query_of
from hycop.problems import problem_of, problems_with
from hycop.surrogate import HyCOP
from hycop.tolerance import checked_tolerance

SourceArgument = Annotated[
    Path,
    typer.Argument(metavar="IN", help="Dataset, ours or PDEBench's, whose initial states and parameters to use."),
]
AfterOption = Annotated[
    str | None, typer.Option(help="Times after the initial state, as 0.1,0.2; the dataset's by default.")
]
FirstOption = Annotated[int | None, typer.Option(help="Samples of a PDEBench file, from its first; all by default.")]
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
    target: Annotated[Path, typer.Argument(metavar="OUT.nc", help="File to write, .nc or .npz.")],
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
    overwrite: OverwriteOption = False,
    json_file: JsonOption = None,
) -> None:
    """Answer queries at any times, each straight from its initial state.

    Example: hycop predict runs/adr queries.nc answers.nc --times 0.05,0.1,0.37
    Example: hycop predict runs/adr queries.nc answers.nc --tol 1e-3
    Example: hycop predict runs/adr queries.nc answers.nc --plot fields.png --movie fields.gif --movie-frames 60
    """
    if tol is not None:
        checked_tolerance(tol, "--tol")
    pictures = Pictures(plot, movie, sample, movie_frames)
    _check_outputs(source, target, pictures, overwrite)
    reading, asked = Reading(samples, frames, None, tuple(param or ()), boundary), times_of(times)
    if is_baseline(folder):
        without = {"error_estimate": error_estimate or None, "tol": tol, "movie-frames": movie_frames}
        refuse_options(f"for the baseline {folder}", **without)
        report_json(json_file, predict_baseline(folder, source, target, asked, reading, pictures))
        return
    report_json(json_file, _predicted(folder, source, target, asked, reading, error_estimate, tol, pictures))


def _check_outputs(source: Path, target: Path, pictures: Pictures, overwrite: bool) -> None:
    checked_dataset_path(target)
    if target.exists() and source.exists() and target.samefile(source):
        raise InvalidInputError(f"{target}: is also the input, which would be lost; choose another file")
    check_file(target, overwrite)
    pictures.check(source, target, overwrite)


def _predicted(
    folder: Path,
    source: Path,
    target: Path,
    asked: list[float] | None,
    reading: Reading,
    error_estimate: bool,
    tol: float | None,
    pictures: Pictures,
) -> dict[str, object]:
    """Writes the answers of a model to the initial states of a file; returns what is to be known of them."""
    model = HyCOP.load(folder)
    equation, box = model.model.equation, model.model.box
    data = reading.load(source, equation.name, later=asked is None, also=problems_with(equation))
    grid = data.setting.grid.with_boundary(boundary_of(reading.boundary) or data.setting.grid.boundary)
    with naming(source):
        pictures.check_sample(data)
        if asked is None:
            asked = common_times(data)
        check_boundaries(problem_of(equation), model.dictionary, grid, run=folder)
    with naming(source, each=len(asked)):
        found = model.answer(query_of(model, data, asked, grid.boundary), tol)
        answer = as_dataset(found, data, asked, error_estimate or tol is not None)
    save(replace(answer, reference=f"HyCOP {folder}"), target)
    if reading.boundary is None and grid.boundary != box.boundary:
        own = ",".join(box.boundary)
        tell(f"{source}: answered with its boundary, not with the model's; --boundary {own} is that")
    say(f"{target}: {counted(data.samples, 'sample')} at {counted(len(asked), 'time')}")
    pictures.draw(answer, data, lambda some, at: answers(model, some, at, grid.boundary, tol=tol))
    rows = _rows(answer, asked)
    report: dict[str, object] = {"file": str(target), "rows": rows}
    if answer.error_estimate is not None:
        report |= _told_estimate(found, rows)
    _tell_untrusted(rows)
    return report


def _rows(answer: Dataset, times: Sequence[float]) -> list[dict[str, object]]:
    """One row for each answer: its sample and time, why it is not to be trusted, if so, and its estimated error."""
    assert answer.untrusted is not None and answer.reasons is not None
    rows: list[dict[str, object]] = []
    for place in np.ndindex(answer.samples, len(times)):
        sample, index = place[0], place[1] + 1
        reasons = [reason for reason in str(answer.reasons[sample, index]).split(", ") if reason]
        row = {"sample": sample, "time": times[index - 1], "untrusted": bool(answer.untrusted[sample, index])}
        rows.append({**row, "reasons": reasons})
        if answer.error_estimate is not None:
            error = float(answer.error_estimate[sample, index])
            rows[-1]["error_estimate"] = error if isfinite(error) else None
        if answer.tolerance_met is not None:
            rows[-1]["tolerance_met"] = bool(answer.tolerance_met[sample, index])
    return rows


def _told_estimate(answer: Answer, rows: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Tells what the errors are estimated to be, and which answers miss the tolerance; the same for JSON."""
    estimate, own = answer.estimate, float(answer.work.mean())
    more = float(estimate.work.mean()) / own if own else 0.0
    say(
        f"estimated relative error: median {np.median(estimate.error):.1e}, largest {estimate.error.max():.1e}; "
        f"the estimate took {more:.1f} times the work of the answers"
    )
    tell(
        f"{COVERED:.0%} of queries like those of training err less than their estimate"
        if estimate.calibrated
        else "the estimate is not calibrated for this model and boundary: it is twice the distance to a refined answer"
    )
    tell("an error of the equation itself, such as missing physics, cannot be seen without data")
    told: dict[str, object] = {
        "calibrated": estimate.calibrated,
        "work": own,
        "estimate_work": float(estimate.work.mean()),
    }
    if answer.tolerance_met is None:
        return told
    missed = [row for row in rows if not row["tolerance_met"]]
    say(f"tolerance {answer.tolerance:g}: met by {len(rows) - len(missed)} of {len(rows)} answers")
    if missed:
        tell(f"not refined to the tolerance: {_shown_samples(missed)}")
    return {**told, "tolerance": answer.tolerance}


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
