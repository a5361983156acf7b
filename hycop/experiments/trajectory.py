"""Table ``trajectory``: errors at snapshots 1, 5, 10 and 20 of a long run, each queried directly from the initial
state.

A trajectory has 21 snapshots: every 0.02 to T = 0.4 for ``adr2d``, every 0.05 to T = 1 for ``swe2d``. The models were
trained with query times over that whole range; shallow water repeats its learned program. Shallow water is also
compared with PyClaw's file at its own times, if ``HYCOP_FIXTURES`` has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.evaluation import Row, Variant
from hycop.experiments.bench import Bench, Learned
from hycop.experiments.fixtures import PYCLAW, pyclaw
from hycop.experiments.judging import compared, opponents, training_seconds, unsplit_rows
from hycop.experiments.monolithic import baseline_part
from hycop.experiments.table import Part, Table
from hycop.plots import Figure, trajectory_figure
from hycop.schemes import Classical

SNAPSHOTS = 20
"""Number of snapshots after the initial state."""

HORIZONS = (1, 5, 10, 20)
METRICS = ("rel_l2", "rmse")


@dataclass(frozen=True)
class Course:
    """A problem with the time between snapshots, settings of training over those of its preset, and the source paper's
    relative L2 error and RMSE at each of the horizons, by split."""

    problem: str
    interval: float
    settings: Mapping[str, Any]
    paper: Mapping[str, Sequence[tuple[float, float]]]

    @property
    def times(self) -> tuple[float, ...]:
        return tuple(float(time) for time in np.round(self.interval * np.arange(1, SNAPSHOTS + 1), 12))

    def learned(self, bench: Bench, seed: int) -> Learned:
        return bench.learned(self.problem, seed, horizon="trajectory", **self.settings)

    def datasets(self, bench: Bench, seed: int) -> list[Dataset]:
        """The queries of both splits at the horizons, and PyClaw's."""
        found = [bench.data(self.problem, split, seed, times=self.times).only(HORIZONS) for split in self.paper]
        return [*found, *(pyclaw().values() if self.problem == "swe2d" else ())]


COURSES = (
    Course(
        "adr2d",
        0.02,
        {"max_steps": 11},
        {
            "id": ((6.02e-3, 2.15e-3), (1.68e-2, 5.42e-3), (2.10e-2, 6.65e-3), (1.96e-2, 6.42e-3)),
            "ood": ((8.29e-3, 2.79e-3), (2.12e-2, 6.66e-3), (2.87e-2, 9.29e-3), (3.78e-2, 1.28e-2)),
        },
    ),
    Course(
        "swe2d",
        0.05,
        {"substeps": 3},
        {
            "id": ((7.12e-3, 8.65e-4), (1.91e-2, 6.37e-3), (4.06e-2, 1.03e-2), (6.94e-2, 1.26e-2)),
            "ood": ((1.01e-2, 4.84e-3), (4.54e-2, 2.83e-2), (8.30e-2, 4.20e-2), (1.21e-1, 7.80e-2)),
        },
    ),
)


BASELINES: Mapping[str, Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]] = {
    "adr2d": {
        "ar-unet": {
            "id": ((9.42e-2, 3.59e-2), (1.70e-1, 5.85e-2), (2.09e-1, 6.82e-2), (2.30e-1, 7.38e-2)),
            "ood": ((1.83e-1, 5.05e-2), (5.23e-1, 9.38e-2), (7.91e-1, 1.20e-1), (1.07, 1.45e-1)),
        },
        "step-local-no": {
            "id": ((2.87e-2, 1.03e-2), (7.78e-2, 2.48e-2), (1.11e-1, 3.44e-2), (1.51e-1, 4.85e-2)),
            "ood": ((1.56e-1, 3.09e-2), (5.65e-1, 7.88e-2), (9.17e-1, 1.26e-1), (1.30, 2.08e-1)),
        },
        "ar-local-no": {
            "id": ((3.86e-2, 1.38e-2), (8.24e-2, 2.57e-2), (1.02e-1, 3.15e-2), (1.02e-1, 3.30e-2)),
            "ood": ((1.49e-1, 3.48e-2), (3.97e-1, 6.77e-2), (5.23e-1, 8.24e-2), (5.72e-1, 8.58e-2)),
        },
    },
    "swe2d": {
        "ar-unet": {
            "id": ((2.75e-1, 2.25e-2), (1.04, 7.87e-2), (2.28, 1.46e-1), (4.20, 2.78e-1)),
            "ood": ((2.59e-1, 2.16e-1), (5.92e-1, 5.35e-1), (9.21e-1, 6.73e-1), (1.20, 8.51e-1)),
        },
        "step-local-no": {
            "id": ((9.01e-2, 6.64e-3), (4.95e-1, 6.26e-2), (1.37, 1.22e-1), (5.52, 2.26e-1)),
            "ood": ((3.10e-1, 1.55e-1), (6.93e-1, 5.03e-1), (1.32, 6.93e-1), (1.44, 9.40e-1)),
        },
        "ar-local-no": {
            "id": ((6.66e-2, 6.51e-3), (1.72e-1, 2.66e-2), (2.84e-1, 4.80e-2), (4.86e-1, 8.39e-2)),
            "ood": ((2.72e-1, 1.49e-1), (5.33e-1, 4.34e-1), (7.89e-1, 5.23e-1), (7.55e-1, 6.23e-1)),
        },
    },
}
"""The source paper's relative L2 error and RMSE of its baselines at each of the horizons, by problem and split."""


def _rows(
    bench: Bench,
    course: Course,
    learned: Learned,
    seed: int,
    data: Dataset,
    paper: Sequence[tuple[float, float]] | None = None,
    against: Classical | None = None,
) -> list[Row]:
    """At each of the later times."""
    found: list[Row] = []
    for index, time in enumerate(data.times[0, 1:]):
        known = None if paper is None else dict(zip(METRICS, paper[index], strict=True))
        at = compared(bench, learned, seed, data.at(index + 1), metrics=METRICS, against=against, paper=known)
        found += [replace(row, variant=Variant.of({"steps": round(time / course.interval)})) for row in at]
    return found


def _part(course: Course) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        learned = course.learned(bench, seed)
        model = learned.model
        rivals = opponents(model.model, bench.held_out(course.problem, seed, model.model.record.config))
        found: list[Row] = []
        for data in course.datasets(bench, seed):
            # one scheme of equal work over all times: a search for each time would cost more than the rest of the table
            one_for_all = course.settings.get("substeps", 1) > 1
            against = rivals.best(data.query, model.solve(data.query).work) if one_for_all else None
            found += _rows(bench, course, learned, seed, data, course.paper.get(data.split), against)
        return [*found, replace(training_seconds(learned, found[0]), variant=Variant())]

    return rows


def _unsplit(course: Course) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        learned = course.learned(bench, seed)
        found: list[Row] = []
        for data in course.datasets(bench, seed):
            for index, time in enumerate(data.times[0, 1:]):
                variant = {"steps": round(time / course.interval)}
                asked = [data.at(index + 1)]
                found += unsplit_rows(bench, learned, seed, asked, metrics=METRICS, variant=variant)
        return found

    return rows


def _baseline(course: Course, baseline: str) -> Part:
    """The baseline is rolled out."""

    def steps(data: Dataset) -> Variant:
        return Variant.of({"steps": round(float(data.times[0, 1]) / course.interval)})

    paper = {
        (split, Variant.of({"steps": count})): dict(zip(METRICS, values, strict=True))
        for split, each in BASELINES[course.problem][baseline].items()
        for count, values in zip(HORIZONS, each, strict=True)
    }

    def datasets(bench: Bench, seed: int) -> list[Dataset]:
        return [data.at(index) for data in course.datasets(bench, seed) for index in range(1, data.times.shape[1])]

    return baseline_part(course.problem, baseline, datasets, METRICS, paper, steps)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """The first sample of each split at the four horizons: truth, HyCOP, and the difference."""
    out = {}
    for course in COURSES:
        model = course.learned(bench, 0).model
        for split in course.paper:
            one = bench.data(course.problem, split, 0, times=course.times).take(slice(0, 1))
            asked = {f"{steps} steps, T={course.times[steps - 1]:g}": one.at(steps) for steps in HORIZONS}
            out[f"trajectory_{course.problem}_{split}"] = trajectory_figure(
                {label: data.truth[0, 0] for label, data in asked.items()},
                [model.solve(data.query).states[0, 0] for data in asked.values()],
                one.setting.grid.lengths[0].tolist(),
                f"{course.problem}, {split}: {one.setting.channels[0].name} after 1, 5, 10 and 20 steps",
            )
    return out


TABLE = Table(
    "trajectory",
    "1, 5, 10 and 20 steps by direct time query (adr2d, swe2d)",
    {
        **{course.problem: _part(course) for course in COURSES},
        **{f"{course.problem} unsplit": _unsplit(course) for course in COURSES},
        **{
            f"{course.problem} {baseline}": _baseline(course, baseline)
            for course in COURSES
            for baseline in BASELINES[course.problem]
        },
    },
    figures,
    (PYCLAW,),
    samples=50,
)
