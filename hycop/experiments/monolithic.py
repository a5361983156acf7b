"""Rows of monolithic baselines in a table: their errors, what they were trained with, and whether that was enough.

Every baseline is a part of its table, so that it is computed and kept by itself. The strongest of each problem has
three seeds, the others one. All seeds learn from the same solutions; what differs is their weights and the order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from hycop.baselines import Monolith, find_baseline
from hycop.data import Dataset
from hycop.evaluation import SPLITTING, Contender, Row, Variant, evaluate
from hycop.experiments.bench import Bench
from hycop.experiments.table import Part
from hycop.problems import find_problem

PASSES, SECONDS, HELD_OUT = "training forward passes", "training seconds", "held-out error"
HALF, SLOPE = "held-out error at half the budget", "slope of the curve"
EXPECTED = "factor expected at the paper's budget"

PAPER_PASSES: Mapping[str, float] = {"fixed": 5e6, "step": 1.33e7}
"""Forward passes of the source paper: 500 epochs of 10,000 samples; its table of costs for those that take steps."""

NOT_CONVERGED = "not converged"

STRONGEST: Mapping[str, tuple[str, ...]] = {
    "ad1d": ("local-no",),
    "burgers1d": ("local-no",),
    "swe1d": ("local-no",),
    "adr2d": ("fno", "pino", "ar-local-no"),
    "swe2d": ("local-no", "ar-local-no"),
    "ns2d-pdebench": ("pino",),
}
"""The strongest baselines of each problem, in or out of distribution: at a fixed time, and of those that
take steps."""

SEEDS = 3
"""Seeds of these in a table; the others have one."""

Datasets = Callable[[Bench, int], Sequence[Dataset]]
Paper = Mapping[tuple[str, Variant], Mapping[str, float]]
"""The source paper's numbers: by split and variant, then by metric."""


def seeds_of(problem: str, name: str) -> int:
    """How many seeds a baseline of a problem has in a table."""
    return SEEDS if find_baseline(name).name in STRONGEST.get(problem, ()) else 1


def contender(bench: Bench, problem: str, name: str, seed: int) -> Contender:
    """A baseline of a problem under its name in tables."""
    found = bench.baseline(problem, name, seed)
    return Contender(found.baseline.label, found)


def baseline_part(
    problem: str,
    name: str,
    datasets: Datasets,
    metrics: Sequence[str],
    paper: Paper | None = None,
    variant: Callable[[Dataset], Variant] = lambda data: Variant(),
) -> Part:
    """The rows of one baseline of a problem on some datasets, each of one query time, and those of its training."""
    plain = [metric for metric in metrics if metric != SPLITTING]
    chosen, known = find_baseline(name), paper or {}

    def rows(bench: Bench, seed: int) -> list[Row]:
        if seed >= seeds_of(problem, name):
            return []
        found = bench.baseline(problem, chosen.name, seed)
        out: list[Row] = []
        for data in datasets(bench, seed):
            about = variant(data)
            published = known.get((data.split, about), {})
            made = evaluate(
                [Contender(chosen.label, found, variant=about)],
                [data],
                metrics=plain,
                reported_variables=find_problem(problem).reported_variables,
            )
            out += [replace(row, paper=published.get(row.metric)) for row in made]
        return [*out, *training_rows(found, out[0])]

    return rows


def training_rows(found: Monolith, like: Row) -> list[Row]:
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
    bare = replace(like, split="train", variant=told, work=0.0, seconds_per_sample=0.0, truth="", paper=None)
    return [replace(bare, metric=metric, value=value) for metric, value in values.items() if isfinite(value)]
