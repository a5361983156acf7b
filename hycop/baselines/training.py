"""Trains a baseline on solutions of the whole equation: drawn from a problem, or those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from hycop.baselines.baseline import Baseline, BaselineError
from hycop.baselines.monolith import BOUNDARY, LENGTHS, SAME_TIME, Monolith
from hycop.baselines.registry import find_baseline
from hycop.baselines.residual import ResidualLesson, residual_of
from hycop.data import Dataset
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.networks import find_family, imported
from hycop.pretraining import Lesson, PretrainingConfig, Task, configured, pretrain, trained
from hycop.primitives.learned import NeuralOperator
from hycop.problems import Problem
from hycop.progress import counting
from hycop.storage.network import BASELINE, is_network
from hycop.training.checkpoint import RunFolderError

SNAPSHOTS = 20
"""Later frames of a drawn trajectory, as in the source paper."""

TRAJECTORIES = "trajectories"
"""The setting that is not one of ``PretrainingConfig``: how many solutions are drawn, a sixth of them to judge by."""

PRESETS: Mapping[str, Mapping[str, int | float]] = {
    "quick": {TRAJECTORIES: 600, "rounds": 20, "batch": 16},
    "laptop": {TRAJECTORIES: 2400, "rounds": 24, "batch": 16},
    "paper": {TRAJECTORIES: 12_000, "rounds": 500, "batch": 32, "rate": 1e-3, "weight_decay": 1e-4},
}
"""``quick``: minutes, to try it out; ``laptop``: those of the tables; ``paper``: the source paper's budget, some
340 CPU hours for all its baselines together."""

LAPTOP_ROUNDS: Mapping[str, int] = {"local-no": 40, "uno-direct": 16, "deeponet": 144}
"""Rounds of the preset ``laptop`` where a network is much dearer or cheaper than the others."""

RATES: Mapping[str, float] = {"fno": 4e-3, "local-no": 4e-3, "uno-direct": 4e-3, "deeponet": 5e-4}
"""Largest rates of learning of the presets ``quick`` and ``laptop`` that are not 2e-3: those that led furthest in short
trials on held-out solutions of ``adr2d``. At 2e-3 DeepONet stays at the mean of all solutions."""

LAPTOP_CELLS = 32 * 32
"""Cells up to which the preset ``laptop`` draws all its solutions; on a finer grid as many times fewer, so that
training takes as long."""

FEWER = 4
"""Where a solution has many frames, so many times fewer are drawn: each round takes one pair of frames of every
solution. The preset ``paper`` takes as many times more rounds, ``laptop`` half of that."""

IDLE = ("samples", "held_out", "midway", "longest", "rough")
"""Settings of ``pretrain`` that mean nothing here."""


def train_baseline(
    problem: Problem,
    name: str,
    *,
    preset: str = "quick",
    seed: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    data: Dataset | None = None,
    begin: Monolith | None = None,
    verbose: bool = True,
    **settings: Any,
) -> Monolith:
    """A baseline, trained on ``data`` or on solutions that are drawn from the problem's split ``train``.

    Baselines for one time learn the map from the initial state to that of split ``id`` (or to the last frame of the
    data); those that take steps learn from neighbouring frames. ``begin`` is the trained baseline from which one with a
    residual goes on. ``settings`` change those of the preset.
    """
    chosen = find_baseline(name)
    imported(chosen.family)  # before anything is computed or written
    if folder is not None and is_network(folder):
        raise RunFolderError(f"{folder}: holds a network already; choose another folder")
    config, count = baseline_settings(chosen, problem, preset, settings)
    lesson, about = _lesson(chosen, problem, begin)
    if data is not None:
        data = _checked(chosen, data)
        config = config.model_copy(update={"shape": data.setting.grid.shape})
    else:
        data = _drawn(chosen, problem, count, seed, config.shape, verbose)
    if chosen.residual and set(data.setting.grid.boundary) != {"periodic"}:
        ends = data.setting.grid.boundary_name
        raise BaselineError(f"{chosen.label} knows the residual in periodic boxes only, but the data have {ends} ends")
    held_out = max(1, data.samples // 6)
    each_once = {"samples": data.samples - held_out, "held_out": max(2, held_out)}
    task = Task(problem, problem.processes, config.model_copy(update=each_once), chosen.family, seed, data)
    about = {BASELINE: chosen.name, TRAJECTORIES: data.samples, **_box(data), **about}
    return Monolith(chosen, trained(task, folder, resume, verbose, lesson, about))


def any_time(problem: Problem, name: str, **options: Any) -> NeuralOperator:
    """The network of a baseline, trained for every duration up to half the query time: a primitive that advances all
    processes of the problem. ``options`` are those of ``pretrain``."""
    chosen = find_baseline(name)
    if chosen.residual:
        wanted = chosen.begins_from or "another baseline"
        raise BaselineError(
            f"{chosen.label} learns one query time, and not any: take {wanted}, which has the same network"
        )
    return pretrain(problem, problem.processes, network=chosen.family, **{**chosen.options, **options})


def baseline_settings(
    chosen: Baseline, problem: Problem, preset: str, settings: Mapping[str, Any]
) -> tuple[PretrainingConfig, int]:
    """The settings of training, and how many solutions are drawn."""
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    for key in IDLE:
        if key in settings:
            raise InvalidInputError(
                f"setting {key}: has no effect on a baseline; {TRAJECTORIES}=… is the number of solutions"
            )
    base: dict[str, Any] = {"cycles": 2, "patience": 10**6, "rate": RATES.get(chosen.family, 2e-3), **PRESETS[preset]}
    shape = settings.get("shape") or problem.settings.get("shape") or problem.shape
    if preset == "laptop":
        base["rounds"] = LAPTOP_ROUNDS.get(chosen.family, base["rounds"])
        base[TRAJECTORIES] = base[TRAJECTORIES] * LAPTOP_CELLS // max(LAPTOP_CELLS, prod(shape))
    if chosen.protocol == "step" and preset != "quick":
        longer = FEWER if preset == "paper" else max(1, FEWER // 2)
        base |= {TRAJECTORIES: base[TRAJECTORIES] // FEWER, "rounds": longer * base["rounds"]}
    asked = {**base, **chosen.options, **chosen.settings, **settings}
    count = asked.pop(TRAJECTORIES)
    if isinstance(count, bool) or not isinstance(count, int) or not 6 <= count <= 10**6:
        raise InvalidInputError(f"setting {TRAJECTORIES} is {count!r:.40}: a whole number from 6 to 1000000 is needed")
    own = problem.settings.get("shape")
    given: dict[str, Any] = {} if own is None else {"shape": own}
    if "cells" in find_family(chosen.family).options:  # local kernels are made for one grid
        given["cells"] = shape[0]
    return configured("paper", chosen.family, {**given, **asked}), count


def _drawn(
    chosen: Baseline, problem: Problem, count: int, seed: int, shape: tuple[int, ...] | None, verbose: bool
) -> Dataset:
    """Solutions of the problem in its training range."""
    options: dict[str, Any] = {"times": baseline_times(chosen, problem), "shape": shape, "estimated": 0}
    if not verbose:
        return problem.sample(count, "train", seed + 2**33, **options)
    with counting(count, f"truth of {problem.name}") as advance:
        return problem.sample(count, "train", seed + 2**33, progress=advance, **options)


def baseline_times(chosen: Baseline, problem: Problem) -> list[float]:
    """The times of the solutions that a baseline learns from: that of split ``id``, or 20 snapshots."""
    if chosen.protocol == "fixed":
        asked = problem.splits.get("id") or next(iter(problem.splits.values()))
        return [asked.time[1]]
    if "trajectory" not in problem.splits:
        raise BaselineError(f"{chosen.label} takes steps, but problem {problem.name} has no split 'trajectory'")
    last = problem.splits["trajectory"].time[1]
    return [float(time) for time in np.round(last / SNAPSHOTS * np.arange(1, SNAPSHOTS + 1), 12)]


def _lesson(chosen: Baseline, problem: Problem, begin: Monolith | None) -> tuple[Lesson, dict[str, object]]:
    """What a baseline learns beside its data, and what is to be noted about it."""
    if chosen.begins_from is None:
        if begin is not None:
            raise BaselineError(f"{chosen.label} does not begin from another baseline")
        return Lesson(), {}
    residual = residual_of(problem.equation)
    if begin is None:
        return ResidualLesson(None, residual, chosen.residual, 0.5), {}
    if begin.baseline.name != chosen.begins_from or begin.network.problem != problem.name:
        wanted = find_baseline(chosen.begins_from).label
        other = f"{begin.baseline.label} of {begin.network.problem}"
        raise BaselineError(f"{chosen.label} begins from {wanted} of {problem.name}, not from {other}")
    about: dict[str, object] = {"passes_before": begin.passes, "seconds_before": round(begin.seconds, 3)}
    return ResidualLesson(begin.primitive.arrays(), residual, chosen.residual, 0.0), about


def _box(data: Dataset) -> dict[str, object]:
    """The boundaries of the box, and its lengths if they do not vary."""
    grid = data.setting.grid
    varies = bool(np.ptp(grid.lengths, axis=0).any())
    lengths = {} if varies else {LENGTHS: [float(length) for length in grid.lengths[0]]}
    return {BOUNDARY: grid.boundary_name, **lengths}


def _checked(chosen: Baseline, data: Dataset) -> Dataset:
    """The frames of a dataset that a baseline learns from."""
    data.check_later()
    if data.samples < 12:
        raise InvalidInputError(f"the data have {data.samples} samples: at least 12 are needed to hold some back")
    if chosen.protocol == "fixed":
        data = data.at(-1)
    steps = np.diff(data.times, axis=1)
    if np.ptp(steps) > SAME_TIME * steps.max():
        what = "query time" if chosen.protocol == "fixed" else "step between frames"
        raise InvalidInputError(
            f"times: {chosen.label} learns one {what}, but the data have {steps.min():g} to {steps.max():g}"
        )
    if chosen.protocol == "step" and not np.allclose(data.times[:, 0], data.times[0, 0]):
        data = replace(data, times=data.times - data.times[:, :1])
    return data
