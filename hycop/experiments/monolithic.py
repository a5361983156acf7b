"""Monolithic operators (FNO, U-Net, …) in the tables: the one place where they are asked for, and their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

from hycop.data import Dataset
from hycop.evaluation import SPLITTING, Contender, Row, Solver, evaluate
from hycop.experiments.table import Bench
from hycop.problems import find_problem

FIXED_TIME = ("DeepONet", "FNO", "PINO", "LocalNO", "U-NO", "U-Net")
AUTOREGRESSIVE = ("AR-LocalNO", "AR-U-Net")

SECONDS, PASSES = "training seconds", "training forward passes"

Published = Mapping[tuple[str, str], Mapping[str, float]]
"""The source paper's numbers by metric, for a name and a split."""


class Trained(Protocol):
    """A trained operator, the seconds and forward passes that training took, and the loss after every step of it."""

    @property
    def solver(self) -> Solver: ...

    @property
    def seconds(self) -> float: ...

    @property
    def passes(self) -> float: ...

    @property
    def curve(self) -> Sequence[float]: ...


class _Baselines(Protocol):
    """The bench, as it trains and keeps baselines."""

    def baseline(self, problem: str, name: str, seed: int = 0) -> Trained: ...


def trained(bench: Bench, problem: str, name: str, seed: int) -> Trained:
    """A baseline by its name, trained on the data of a problem."""
    return cast(_Baselines, bench).baseline(problem, name, seed)


def contender(bench: Bench, problem: str, name: str, seed: int) -> Contender:
    return Contender(name, trained(bench, problem, name, seed).solver)


def baseline_rows(
    bench: Bench,
    problem: str,
    names: Sequence[str],
    seed: int,
    datasets: Sequence[Dataset],
    *,
    metrics: Sequence[str] = ("rel_l2",),
    paper: Published | None = None,
) -> list[Row]:
    """The rows of some baselines of a problem on some datasets, and what their training took."""
    chosen, rows = find_problem(problem), []
    plain = [metric for metric in metrics if metric != SPLITTING]
    for name in names:
        done = trained(bench, problem, name, seed)
        mine = []
        for data in datasets:
            known = (paper or {}).get((name, data.split), {})
            found = evaluate(
                [Contender(name, done.solver)], [data], metrics=plain, reported_variables=chosen.reported_variables
            )
            mine += [replace(row, paper=known.get(row.metric)) for row in found]
        rows += [*mine, *training_rows(done, mine[0])]
    return rows


def training_rows(done: Trained, like: Row) -> list[Row]:
    """What training took, with the other fields of a row of that operator."""
    plain = replace(like, split="train", truth="", limit=0.0, work=0.0, seconds_per_sample=0.0, paper=None)
    values = {SECONDS: done.seconds, PASSES: float(done.passes)}
    return [replace(plain, metric=metric, value=value) for metric, value in values.items()]
