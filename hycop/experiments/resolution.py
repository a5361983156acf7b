"""Table ``resolution``: a policy trained on 32² cells of shallow water answers on other grids; nothing is retrained.

The same initial states (the same functions, averaged over other cells) are solved to T = 0.3 on 32², 64², 128² and
256², on a grid that is not square and on odd ones, each compared with the truth on its own grid.

- ``HyCOP`` is the policy as learned, whatever its gate decided; beside it the classical scheme of that gate, cut into
  the same segments, and the unsplit solver. All run with the model's internal refinement.
- ``fall``: the mean error on the trained grid divided by that on another one, for the same samples.
- ``program change``: the largest relative difference between the duration of a step on the trained grid and on this
  one; 1 where the steps themselves differ. ``feature change``: the largest difference of a feature, as a share of the
  range over which it was trained.
- ``truth``: how far the truth moves when its own grid is doubled. It bounds what the other errors can mean.

The truth has four times as many cells along each axis. A sample of it takes 0.1 CPU seconds at 32², 0.8 at 64², 7 at
128² and 56 at 256², so of the table's 32 samples a half is asked on the odd grids and on 64², a quarter on 48x96 and
128², and a sixteenth, two, on 256². That is some 10 CPU minutes for a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod, sqrt

import numpy as np

from hycop.data import Dataset
from hycop.evaluation import Contender, Row, timed
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, UNSPLIT, classical_alone, label_of, ungated, unsplit
from hycop.experiments.table import Part, Table
from hycop.grid import Array, restrict
from hycop.metrics import find_metric, rel_l2
from hycop.model import Model
from hycop.plots import Figure, Panel, lines_figure
from hycop.program import ProgramBatch

NAME = "swe2d"
SPLITS = ("id", "ood")
METRICS = ("rel_l2", "rmse", "max_error")
SECONDS, FALL = "seconds per sample", "fall"
PROGRAM, FEATURES = "program change", "feature change"
TRUTH = "truth"

Shape = tuple[int, int]

GRIDS: Mapping[Shape, int] = {
    (32, 32): 1,
    (33, 33): 2,
    (45, 31): 2,
    (48, 96): 4,
    (64, 64): 2,
    (128, 128): 4,
    (256, 256): 16,
}
"""Every grid, the trained one first, and the divisor of its number of samples."""

PAPER: Mapping[Shape, Mapping[str, float]] = {
    (32, 32): {"rel_l2": 2.40e-2, "rmse": 1.03e-2, "max_error": 1.90e-1, SECONDS: 0.126},
    (128, 128): {"rel_l2": 3.37e-2, "rmse": 2.06e-2, "max_error": 6.89e-1, SECONDS: 0.645},
}
"""The source paper's figures in distribution."""


def contenders(model: Model) -> list[Contender]:
    label = label_of(model)
    return [
        Contender("HyCOP", ungated(model), label),
        Contender(CLASSICAL, classical_alone(model), label),
        unsplit(NAME, model.refinement),
    ]


def program_change(a: ProgramBatch, b: ProgramBatch) -> float:
    """The largest relative difference of the durations of two batches of programs; 1 where their steps differ."""
    if a.ops.shape != b.ops.shape:
        return 1.0
    longer = np.maximum(np.maximum(a.durations, b.durations), 1e-300)
    change = np.where(a.ops == b.ops, np.abs(a.durations - b.durations) / longer, 1.0)
    return float(change.max())


def feature_change(model: Model, a: Dataset, b: Dataset) -> float:
    """The largest difference of a feature, as a share of its trained range."""
    low, high = np.asarray(model.scope.view.ranges.low), np.asarray(model.scope.view.ranges.high)
    there, here = (model.scope.view.features(data.query) for data in (a, b))
    return float((np.abs(there - here) / np.where(high > low, high - low, 1.0)).max())


def _row(
    data: Dataset, method: str, dictionary: str, name: str, value: float, cost: Mapping[str, float] | None = None
) -> Row:
    shape = data.setting.grid.shape
    published = PAPER.get((shape[0], shape[1]), {}) if (method, data.split) == ("HyCOP", "id") else {}
    paper = published.get(name)
    return Row.of(data, method=method, metric=name, value=value, dictionary=dictionary, paper=paper, **(cost or {}))


def _measured(contender: Contender, data: Dataset, coarse: Array | None) -> tuple[Array, list[Row]]:
    """Errors (sample,) of a method on one grid, and its rows; ``coarse`` are those on the trained grid."""
    done = timed(contender, data.query)
    errors = {each: find_metric(each)(done.states, data.truth, data.setting) for each in METRICS}
    values = {**{each: float(error.mean()) for each, error in errors.items()}, SECONDS: done.seconds}
    if coarse is not None:
        values[FALL] = float(coarse[: data.samples].mean()) / values["rel_l2"]
    about = contender.method, contender.dictionary
    return errors["rel_l2"], [_row(data, *about, each, value, done.cost) for each, value in values.items()]


def _truth_rows(datasets: Mapping[Shape, Dataset]) -> list[Row]:
    """For every grid whose double is there too: the truth against that on the doubled grid."""
    rows: list[Row] = []
    for shape, data in datasets.items():
        finer = datasets.get((2 * shape[0], 2 * shape[1]))
        if finer is not None:
            both = data.take(slice(0, min(data.samples, finer.samples)))
            moved = rel_l2(both.truth, restrict(finer.truth[: both.samples], shape), both.setting)
            rows.append(_row(both, TRUTH, "", "rel_l2", float(moved.mean())))
    return rows


def _part(split: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        model = bench.learned(NAME, seed).model.model
        datasets = {
            shape: bench.data(NAME, split, seed, max(1, bench.samples // share), shape=shape, estimated=0)
            for shape, share in GRIDS.items()
        }
        trained, *others = datasets.values()
        found: list[Row] = []
        for contender in contenders(model):
            coarse, own = _measured(contender, trained, None)
            found += own
            for data in others:
                found += _measured(contender, data, coarse)[1]
        policy, label = ungated(model).model, label_of(model)
        for data in others:
            same = trained.take(slice(0, data.samples))
            change = program_change(policy.programs(same.query), policy.programs(data.query))
            found.append(_row(data, "HyCOP", label, PROGRAM, change))
            found.append(_row(data, "HyCOP", label, FEATURES, feature_change(model, same, data)))
        return found + _truth_rows(datasets)

    return rows


def _line(rows: Sequence[Row], value: Callable[[Row], float | None]) -> tuple[list[float], list[float]]:
    """Cells along an axis (of a square with as many cells), and a value there."""
    points = sorted((sqrt(prod(map(int, row.grid.split("x")))), value(row)) for row in rows if value(row) is not None)
    return [x for x, _ in points], [float(y) for _, y in points if y is not None]


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """Error against cells, and the source paper's two points."""
    panels = []
    for split in SPLITS:
        errors = [row for row in rows if row.metric == "rel_l2" and row.split == split]
        shown = {"HyCOP": "HyCOP", UNSPLIT: UNSPLIT, TRUTH: "truth, its grid doubled"}
        lines = {
            label: _line([row for row in errors if row.method == name], lambda row: row.value)
            for name, label in shown.items()
        }
        published = _line(errors, lambda row: row.paper)
        lines |= {"HyCOP in the source paper": published} if published[0] else {}
        panels.append(Panel(split, "cells along an axis", "relative L2 error", lines, log=True))
    return {"resolution": lines_figure([panels], "swe2d: a policy trained on 32² cells, asked on other grids")}


TABLE = Table(
    "resolution",
    "a policy trained on 32² cells asked on other grids (swe2d)",
    {split: _part(split) for split in SPLITS},
    figures,
    samples=32,
)
