"""Commands that learn and use what was learned: train and predict."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hycop.cli.common import (
    BoundaryOption,
    FramesOption,
    JsonOption,
    ParamOption,
    Reading,
    SeedOption,
    app,
    boundary_of,
    err,
    numbers,
    out,
    pairs_of,
    report_json,
    training,
)
from hycop.data import Dataset, checked_dataset_path, save
from hycop.errors import InvalidInputError
from hycop.executors import executor as find_executor
from hycop.files import checked_output, replacing
from hycop.plots import Point, error_figure
from hycop.problems import Problem, problem
from hycop.surrogate import HyCOP, UntrustedWarning
from hycop.training import Gate, Progress, Report, configured
from hycop.training.config import settings_from
from hycop.version import __version__


@app.command()
def train(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    folder: Annotated[Path, typer.Option("--out", help="Run folder: checkpoints, history and the model.")],
    data_file: Annotated[
        Path | None, typer.Option("--data", help="Dataset to learn from instead of drawing one.")
    ] = None,
    held_out_file: Annotated[
        Path | None, typer.Option("--held-out", help="Dataset for the gate; else a third of --data is held back.")
    ] = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    preset: Annotated[str | None, typer.Option(help="quick (default), laptop or paper.")] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="YAML file of settings, over those of the preset.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value, over both; repeatable.")] = None,
    seed: SeedOption = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Resume even if configuration or data changed.")] = False,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="Models for several amounts of work: front.json, front.png, point0, …")
    ] = False,
    executor: Annotated[str, typer.Option(help="local, processes or dask.")] = "local",
    workers: Annotated[int | None, typer.Option(help="Number of worker processes.")] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, as tcp://host:8786.")] = None,
    callback: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Function that is told the progress after every step, for a logger."),
    ] = None,
    json_file: JsonOption = None,
) -> None:
    """Learn a policy that writes programs, checkpointed after every step.

    Example: hycop train adr2d --out runs/adr --preset quick --set max_steps=11
    Example: hycop train adr2d --out runs/front --pareto
    """
    chosen = problem(name)
    written = {} if config_file is None else settings_from(config_file)
    base = preset or str(written.pop("preset", "quick"))
    overrides = {**written, **pairs_of(settings, "--set", "population=100")}
    config = configured(base, {**chosen.suited(base), **overrides})
    parts = HyCOP(chosen.named_dictionary(config.dictionary))
    if json_file is not None:
        checked_output(json_file)
    listener = None if callback is None else _listener(callback)
    for given in (data_file, held_out_file):
        if given is not None and given.resolve().parent == folder.resolve():
            raise InvalidInputError(
                f"--out {folder}: {given} lies there and could be overwritten; choose another folder"
            )
    reading = Reading(frames=frames, params=tuple(param or ()))
    source: Problem | Dataset = chosen if data_file is None else reading.load(data_file, name)
    held_out = None if held_out_file is None else reading.load(held_out_file, name)
    options = {key: value for key, value in (("workers", workers), ("scheduler", scheduler)) if value is not None}
    crew = find_executor(executor, **options)
    with training("data") as show:

        def report(entry: Progress) -> None:
            show(entry)
            if listener is not None:
                _told(listener, entry, str(callback))

        how: dict[str, Any] = {**overrides, "preset": base, "seed": seed, "resume": resume, "force": force}
        how |= {"folder": folder, "executor": crew, "report": report}
        models = parts.front(source, held_out, **how) if pareto else [parts.fit(source, held_out, **how)]
    if pareto:
        _write_front(models, folder, json_file)
        return
    model = models[0]
    model.save(folder, overwrite=True)
    gate = model.model.gate
    out.print(f"{folder}: {model.model.theta.size} parameters; {_verdict(gate)}", highlight=False)
    report_json(json_file, {"folder": str(folder), "gate": gate.to_json(), "metrics": dict(model.model.metrics)})


def _verdict(gate: Gate) -> str:
    kept = "kept" if gate.kept else f"not better: programs are those of {gate.classical}"
    return (
        f"held-out error {gate.learned_error:.3e}, best classical at equal work ({gate.classical}) "
        f"{gate.classical_error:.3e}; {kept}"
    )


def _listener(target: str) -> Report:
    """A function of the user's, as module:name; the current folder is looked in first."""
    module, _, attribute = target.partition(":")
    if not (module and attribute):
        raise InvalidInputError(f"--callback '{target}': module:name is needed")
    sys.path.insert(0, "")
    try:
        found: Report = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInputError(f"--callback '{target}': {error}") from None
    if not callable(found):
        raise InvalidInputError(f"--callback '{target}': a function of one argument is needed")
    return found


def _told(listener: Report, entry: Progress, name: str) -> None:
    try:
        listener(entry)
    except Exception as error:  # whatever a function of the user's raises is the user's to mend
        raise InvalidInputError(f"--callback '{name}' failed: {type(error).__name__}: {error}") from None


def _write_front(models: Sequence[HyCOP], folder: Path, json_file: Path | None) -> None:
    """The models of a Pareto front, its numbers and its picture."""
    entries: list[dict[str, object]] = []
    points = []
    for index, model in enumerate(models):
        gate = model.model.gate
        model.save(folder / f"point{index}", overwrite=True)
        out.print(f"{folder}/point{index}: work {gate.learned_work:.4g}; {_verdict(gate)}", highlight=False)
        entries.append({"folder": f"point{index}", **gate.to_json()})
        points += [
            Point("HyCOP", gate.learned_work, gate.learned_error),
            Point("best classical at equal work", gate.classical_work, gate.classical_error),
        ]
    with replacing(folder / "front.png") as temporary:
        error_figure(points, None, f"{models[0].model.problem}: error on held-out queries").savefig(temporary, dpi=120)
    err.print(f"wrote {folder / 'front.png'}")
    report_json(folder / "front.json", {"front": entries})
    report_json(json_file, {"front": entries})


@app.command()
def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained model.")],
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="Dataset, ours or PDEBench's, whose initial states and parameters to use."),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT.nc", help="File to write, .nc or .npz.")],
    times: Annotated[str | None, typer.Option(help="Times, as 0.1,0.2; those of the dataset by default.")] = None,
    boundary: BoundaryOption = None,
    samples: Annotated[
        int | None, typer.Option(help="Samples of a PDEBench file, from its first; all by default.")
    ] = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    json_file: JsonOption = None,
) -> None:
    """Answer queries at any times, each straight from its initial state.

    Example: hycop predict runs/adr queries.nc answers.nc --times 0.05,0.1,0.37
    """
    checked_dataset_path(target)
    if json_file is not None:
        checked_output(json_file)
    if target.exists() and source.exists() and target.samefile(source):
        raise InvalidInputError(f"{target}: is also the input, which would be lost; choose another file")
    model = HyCOP.load(folder)
    reading = Reading(samples, frames, None, tuple(param or ()), boundary)
    data = reading.load(source, model.model.problem)
    data = data.arranged(model.model.channels)
    asked = numbers(times, "--times")
    if asked is None:
        if np.ptp(data.times, axis=0).any():
            raise InvalidInputError(f"{source}: its samples have times of their own; give --times")
        asked = data.times[0, 1:].tolist()
    grid = data.setting.grid
    where = boundary_of(boundary) or grid.boundary
    own = model.model.boundary
    if grid.with_boundary(where).boundary != own:
        err.print(f"{source}: answered with its boundary, not with the model's; --boundary {','.join(own)} is that")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedWarning)
        states = model.predict(data.states[:, 0], data.setting.params, asked, grid.lengths, where)
        flags = model.untrusted(data.states[:, 0], data.setting.params, asked, grid.lengths, where)
    answer = Dataset(
        problem=data.problem,
        split=data.split,
        states=np.concatenate([data.states[:, :1], states], axis=1),
        times=np.tile([0.0, *asked], (data.samples, 1)),
        setting=data.setting.with_grid(grid.with_boundary(where)),
        reference=f"HyCOP {folder}",
        version=__version__,
        untrusted=np.pad(flags, ((0, 0), (1, 0))),
    )
    save(answer, target)
    untrusted = np.argwhere(flags)
    out.print(f"{target}: {data.samples} samples at {len(asked)} times", highlight=False)
    if untrusted.size:
        outside = sorted({int(sample) for sample, _ in untrusted})
        err.print(
            f"not to be trusted: {len(untrusted)} of {flags.size} answers lie outside the trained range "
            f"(samples {', '.join(map(str, outside[:10]))}{' …' if len(outside) > 10 else ''})"
        )
    report_json(
        json_file, {"file": str(target), "untrusted": [{"sample": int(s), "time": asked[int(t)]} for s, t in untrusted]}
    )
