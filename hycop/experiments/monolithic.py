"""Rows of monolithic baselines in a table: their errors, what they were trained with, and whether that was enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

from hycop.baselines import Monolith
from hycop.data import Dataset
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.experiments.table import Bench
from hycop.problems import find_problem

PASSES, SECONDS, HELD_OUT = "training forward passes", "training seconds", "held-out error"
HALF, SLOPE, EXPECTED = (
    "held-out error at half the budget",
    "slope of the curve",
    "factor expected at the paper's budget",
)

PAPER_PASSES: Mapping[str, float] = {"fixed": 5e6, "step": 1.33e7}
"""Forward passes of the source paper: 500 epochs of 10,000 samples; its table of costs for those that take steps."""

NOT_CONVERGED = "not converged"

Paper = Mapping[str, float]
"""The source paper's numbers by metric."""


def judged_baselines(
    bench: Bench, names: Sequence[str], data: Dataset, metrics: Sequence[str], paper: Mapping[str, Paper], seed: int
) -> list[Row]:
    """The rows of baselines on a dataset; ``paper`` has the source paper's numbers by baseline."""
    reported = find_problem(data.problem).reported_variables
    rows = []
    for name in names:
        found = bench.baseline(data.problem, name, seed)
        label = found.baseline.label
        known = paper.get(label, {})
        made = evaluate([Contender(label, found)], [data], metrics=metrics, reported_variables=reported)
        rows += [replace(row, paper=known.get(row.metric), limit=0.0) for row in made]
    return rows


def training_facts(found: Monolith, like: Row) -> list[Row]:
    """How a baseline was trained: its cost, and its curve where half and all of the budget were spent."""
    half = max(1, len(found.curve) // 2)
    values = {
        PASSES: found.passes,
        SECONDS: found.seconds,
        HELD_OUT: min(found.curve),
        HALF: min(found.curve[:half]),
        SLOPE: found.slope,
        EXPECTED: found.extrapolated(PAPER_PASSES[found.baseline.protocol]),
    }
    told = Variant.of({} if found.converged else {"training": NOT_CONVERGED})
    bare = replace(like, method=found.baseline.label, split="train", variant=told, work=0.0, seconds_per_sample=0.0)
    return [
        replace(bare, metric=metric, value=value, truth="", paper=None)
        for metric, value in values.items()
        if isfinite(value)
    ]
