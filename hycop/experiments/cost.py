"""Table ``cost``: what training and answers cost on 2D shallow water, at 1, 5, 10 and 20 snapshots of a trajectory.

Seconds per sample are from the query to the state, alone (``batch=1``) and in a batch of 64, all in one process with
the same threads. HyCOP, its classical opponent and the unsplit solver at equal error answer every time straight from
the initial state; the networks are rolled out. Errors stand beside. Forward passes of training: for HyCOP programs that
were run, each for one query; for networks samples that went through. The source paper does not say in which batches it
measured; its numbers stand beside those alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hycop.data import Dataset
from hycop.evaluation import Contender, Row, Variant, timed
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, UnsplitRival, classical_alone, label_of, training_seconds
from hycop.experiments.monolithic import PASSES, contender, seeds_of, training_rows
from hycop.experiments.table import Table
from hycop.experiments.trajectory import COURSES, HORIZONS
from hycop.metrics import rel_l2

(COURSE,) = (course for course in COURSES if course.problem == "swe2d")
BATCHES = (1, 64)
SECONDS = "seconds per sample"
NETWORKS = ("AR-U-Net", "AR-LocalNO")
PAPER: Mapping[str, Sequence[float]] = {
    "HyCOP": (0.680, 1.005, 1.205, 1.341),
    "AR-U-Net": (0.042, 0.026, 0.049, 0.100),
    "AR-LocalNO": (0.173, 0.258, 0.289, 0.327),
}
"""Seconds per sample at each of the horizons."""

PAPER_PASSES: Mapping[str, float] = {"HyCOP": 5.00e5, "AR-U-Net": 1.33e7, "AR-LocalNO": 1.33e7}


def answers(contenders: Sequence[Contender], data: Dataset) -> list[Row]:
    """Seconds of every contender at every horizon, alone and in a batch, and its error."""
    rows: list[Row] = []
    for index, steps in enumerate(HORIZONS):
        asked = data.at(index + 1)
        for each in contenders:
            for batch in BATCHES:
                some = asked.take(slice(0, batch))
                done = timed(each, some.query)
                error = float(rel_l2(done.states, some.truth, some.setting).mean())
                published = PAPER[each.method][index] if each.method in PAPER and batch == 1 else None
                for metric, value, paper in ((SECONDS, done.seconds, published), ("rel_l2", error, None)):
                    row = Row.of(some, method=each.method, metric=metric, value=value, paper=paper, **done.cost)
                    variant = Variant.of({"steps": steps, "batch": batch})
                    rows.append(replace(row, dictionary=each.dictionary, variant=variant))
    return rows


def _data(bench: Bench, seed: int) -> Dataset:
    return bench.data(COURSE.problem, "id", seed, max(BATCHES), times=COURSE.times).only(HORIZONS)


def _composed(bench: Bench, seed: int) -> list[Row]:
    learned = COURSE.learned(bench, seed)
    inner = learned.model.model
    rival = UnsplitRival.of(learned, bench.held_out(COURSE.problem, seed, inner.record.config))
    everyone = [
        Contender("HyCOP", learned.model, label_of(inner)),
        Contender(CLASSICAL, classical_alone(inner), label_of(inner)),
        *([] if rival is None else [rival.contender]),
    ]
    rows = answers(everyone, _data(bench, seed))
    took = replace(training_seconds(learned, rows[0]), variant=Variant())
    passes = replace(took, metric=PASSES, value=float(learned.passes), paper=PAPER_PASSES["HyCOP"])
    return [*rows, took, passes]


def _baselines(bench: Bench, seed: int) -> list[Row]:
    rows: list[Row] = []
    for name in NETWORKS:
        if seed >= seeds_of(COURSE.problem, name):
            continue
        rows += answers([contender(bench, COURSE.problem, name, seed)], _data(bench, seed))
        took = training_rows(bench.baseline(COURSE.problem, name, seed), rows[-1])
        rows += [replace(row, paper=PAPER_PASSES[name] if row.metric == PASSES else None) for row in took]
    return rows


TABLE = Table(
    "cost",
    "training and inference cost at 1, 5, 10 and 20 steps (swe2d)",
    {COURSE.problem: _composed, f"{COURSE.problem} baselines": _baselines},
    samples=max(BATCHES),
)
