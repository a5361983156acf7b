"""The command that learns: train."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hycop.cli.common import (
    DRAWN,
    ExecutorOption,
    FramesOption,
    JsonOption,
    ParamOption,
    SchedulerOption,
    SeedOption,
    WorkersOption,
    app,
    check_boundaries,
    chosen_executor,
    pairs_of,
    refuse_options,
    report_json,
    with_shape,
)
from hycop.cli.networks import OnlyOption, PrimitiveOption, with_primitives
from hycop.cli.reading import Reading
from hycop.cli.terminal import say, tell
from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, InvalidInputError
from hycop.execution import probe
from hycop.files import naming, replacing
from hycop.operating import FILE as FRONT
from hycop.operating import seconds_per_work
from hycop.plots import Point, error_figure
from hycop.problems import Problem, find_problem
from hycop.query import Query
from hycop.surrogate import HyCOP
from hycop.training import Progress, Report, configured
from hycop.training.checkpoint import HISTORY
from hycop.training.config import settings_from, settings_table

TIMED = 8
"""Queries on which the speed of the models of a front is measured."""


def _show_settings(asked: bool) -> None:
    if asked:
        for setting in settings_table():
            allowed = f" ({setting.allowed})" if setting.allowed else ""
            say(f"{setting.name:20} {setting.default:14} {setting.meaning}{allowed}")
        raise typer.Exit()


@app.command()
def train(
    name: Annotated[str, typer.Argument(metavar="PROBLEM", help="Problem, see 'hycop problems'.")],
    folder: Annotated[Path, typer.Option("--out", help="Run folder: checkpoints, history and the model.")],
    data_file: Annotated[Path | None, typer.Option("--data", help="Dataset to learn from; else one is drawn.")] = None,
    held_out_file: Annotated[
        Path | None, typer.Option("--held-out", help="Dataset for the gate; else a third of --data is held back.")
    ] = None,
    frames: FramesOption = None,
    param: ParamOption = None,
    preset: Annotated[str | None, typer.Option(help="quick (default), laptop or paper.")] = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="YAML file of settings, over the preset's.")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="key=value, over both; repeatable.")] = None,
    seed: SeedOption = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Resume even if configuration or data changed.")] = False,
    primitive: PrimitiveOption = None,
    only: OnlyOption = None,
    pareto: Annotated[
        bool, typer.Option("--pareto", help="Models for several amounts of work: front.json, front.png, point0, …")
    ] = False,
    executor: ExecutorOption = "local",
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    callback: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Function that is told the progress after every step, for a logger."),
    ] = None,
    list_settings: Annotated[
        bool, typer.Option("--settings", callback=_show_settings, is_eager=True, help="List what --set can change.")
    ] = False,
    json_file: JsonOption = None,
) -> None:
    """Learn a policy that writes programs, checkpointed after every step.

    Example: hycop train adr2d --out runs/adr --preset quick --set max_steps=11
    Example: hycop train adr2d --out runs/front --pareto
    Example: hycop train adr2d --out runs/hybrid --primitive ad=nets/ad --only ad,reaction
    """
    chosen = find_problem(name)
    base, overrides = _settings(preset, config_file, settings)
    overrides = overrides if only is None else {"unsplit": False, **overrides}  # nothing else is used then
    config = configured(base, {**chosen.suited(base), **overrides})
    parts = HyCOP(with_primitives(chosen, chosen.named_dictionary(config.dictionary), primitive, only))
    listener = None if callback is None else _listener(callback)
    files = [given for given in (data_file, held_out_file) if given is not None]
    _check_folder(folder, pareto, files)
    _check_files(files, data_file is not None, overrides, frames=frames, param=param)
    reading = Reading(frames=frames, params=tuple(param or ()))
    read = {given: _checked_data(given, reading, chosen, parts.dictionary, config.refinement) for given in files}
    how: dict[str, Any] = {**overrides, "preset": base, "seed": seed, "resume": resume, "force": force}
    how |= {"folder": folder, "executor": chosen_executor(executor, workers, scheduler)}
    if resume and not any((place / HISTORY).exists() for place in (folder, *folder.glob("point*"))):
        tell(f"{folder}: holds no run to resume; one is started")
    with naming(" or ".join(map(str, files)) or None):
        how["report"] = None if listener is None else _told(listener, str(callback))
        source = chosen if data_file is None else read[data_file]
        held_out = None if held_out_file is None else read[held_out_file]
        models = parts.front(source, held_out, **how) if pareto else [parts.fit(source, held_out, **how)]
    if pareto:
        _write_front(models, chosen.queries(TIMED, "train", shape=config.shape), folder, json_file)
    else:
        _write_model(models, folder, json_file)


def _settings(preset: str | None, file: Path | None, pairs: list[str] | None) -> tuple[str, dict[str, object]]:
    """The preset, and what a file and pairs set otherwise."""
    written = {} if file is None else settings_from(file)
    base = preset or str(written.pop("preset", "quick"))
    return base, with_shape({**written, **pairs_of(pairs, "--set", "population=100")})


def _check_folder(folder: Path, pareto: bool, files: Sequence[Path]) -> None:
    """Refuses a run folder that holds a front, unless it is to hold one, or a file that is read."""
    if not pareto and (folder / FRONT).exists():
        raise InvalidInputError(f"--out {folder}: holds a front; go on with --pareto, or choose another folder")
    for given in files:
        if given.resolve().parent == folder.resolve():
            raise InvalidInputError(
                f"--out {folder}: {given} lies there and could be overwritten; choose another folder"
            )


def _check_files(files: Sequence[Path], learned_from: bool, overrides: Mapping[str, object], **reading: object) -> None:
    """Refuses settings of data that are read from a file, and options that only files need."""
    if learned_from:
        refuse_options(DRAWN, **{f"set {key}": overrides.get(key) for key in ("samples", "shape")})
    if files:
        refuse_options("with a file of data", **{"set validation": overrides.get("validation")})
    else:
        refuse_options("without --data or --held-out", **reading)


def _checked_data(path: Path, reading: Reading, chosen: Problem, parts: Dictionary, refinement: int) -> Dataset:
    """Data to learn from or for the gate, once it is known that every primitive can take them."""
    data = reading.load(path, chosen.name)
    with naming(path):
        check_boundaries(chosen, parts, data.setting.grid, option="--set dictionary=")
        probe(parts, data.at(-1).query, refinement)
    return data


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


def _told(listener: Report, name: str) -> Report:
    """Progress for a function of the user's, whose failure is the user's to mend."""

    def report(entry: Progress) -> None:
        try:
            listener(entry)
        except Exception as error:
            raise HyCOPError(f"--callback '{name}' failed: {type(error).__name__}: {error}") from None

    return report


def _write_model(models: Sequence[HyCOP], folder: Path, json_file: Path | None) -> None:
    """The one model of a run."""
    (model,) = models
    model.save(folder, overwrite=True)
    inner = model.model
    say(f"{folder}: {inner.theta.size} parameters")
    for line in inner.gate.explained():
        say(line)
    report_json(json_file, {"folder": str(folder), "gate": inner.gate.to_json(), "metrics": dict(inner.record.metrics)})


def _write_front(models: Sequence[HyCOP], timed: Query, folder: Path, json_file: Path | None) -> None:
    """The models of a Pareto front, its numbers and its picture; their speed on some queries."""
    entries: list[dict[str, object]] = []
    points = []
    for index, model in enumerate(models):
        gate = model.model.gate
        model.save(folder / f"point{index}", overwrite=True)
        say(f"{folder}/point{index}: work {gate.work:.4g}; {'; '.join(gate.explained()[:2])}")
        entries.append({"folder": f"point{index}", "work": gate.work, "error": gate.error, **gate.to_json()})
        points += [
            Point("HyCOP", gate.work, gate.error),
            Point("best classical at equal work", gate.classical_work, gate.classical_error),
        ]
    with replacing(folder / "front.png") as temporary:
        error_figure(points, None, f"{models[0].model.equation.name}: error on held-out queries").savefig(
            temporary, dpi=120
        )
    tell(f"wrote {folder / 'front.png'}")
    speeds = {f"point{index}": seconds_per_work(model.model, timed) for index, model in enumerate(models)}
    for path in (folder / FRONT, json_file):
        report_json(path, {"front": entries, "seconds_per_work": speeds})
