"""Table ``estimates``: how good a model's error estimates are, and its answers to a tolerance.

A model is trained for every problem and seed and asked on the grid of its training, in distribution and out of it.

- Spearman's rank correlation of the estimate with the true error, over both splits together
- coverage: the fraction of queries that err less than their estimate; 90 % is the aim in distribution
- the work of the estimate, over that of the answer
- for each tolerance: the fraction of queries that claim it, how many of these claims are true, and the work of the
  answers with a true claim over that of the oracle, without the work of the estimates and with it; the oracle knows the
  truth and takes the cheapest level of the same ladder that meets the tolerance
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hycop.data import Dataset
from hycop.evaluation import Row, Variant, errors_of
from hycop.experiments.bench import Bench
from hycop.experiments.judging import label_of
from hycop.experiments.table import Part, Table
from hycop.grid import Array
from hycop.model import Answer, Model
from hycop.tolerance import levels_of

SPLITS = ("id", "ood")
BOTH = "+".join(SPLITS)
TOLERANCES = (1e-2, 1e-3, 1e-4)
FEWER: Mapping[str, int] = {"swe2d": 50, "ns2d": 40}
"""Samples per split and seed where their truth takes long."""

FEW: Mapping[str, int] = {"swe2d": 12, "ns2d": 12}
"""Samples per split and seed that are answered to a tolerance, where that takes long."""

SPEARMAN, COVERAGE, COST = "rank correlation", "coverage", "work of the estimate over the answer's"
CLAIMED, TRUE = "tolerance claimed", "claims that are true"
OVER_ORACLE, ALL_OVER_ORACLE = "work over the oracle's", "work with estimates over the oracle's"


def _part(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        model = bench.learned(name, seed).model.model
        if model.calibration is None:  # a kept model of an earlier version
            model = model.calibrated(bench.held_out(name, seed, model.record.config))
        count = min(bench.samples, FEWER.get(name, bench.samples))
        asked = {split: bench.data(name, split, seed, count, shape=model.record.config.shape) for split in SPLITS}
        return [*_estimates(model, asked), *(row for data in asked.values() for row in _tolerances(model, data))]

    return rows


def _estimates(model: Model, asked: Mapping[str, Dataset]) -> list[Row]:
    rows: list[Row] = []
    found: list[tuple[Array, Array]] = []
    for data in asked.values():
        answer = model.answer(data.query)
        found.append((true_errors(model, data, answer.states), answer.error))
        cost = float(answer.estimate.work.mean() / answer.work.mean())
        rows.append(_row(model, data, COVERAGE, float((found[-1][0] <= answer.error).mean())))
        rows.append(_row(model, data, COST, cost, work=float(answer.work.mean())))
    from scipy.stats import spearmanr  # takes a second to import

    errors, estimates = (np.concatenate(each) for each in zip(*found, strict=True))
    first = next(iter(asked.values()))
    together = {"split": BOTH, "samples": errors.size}
    return [_row(model, first, SPEARMAN, float(spearmanr(errors, estimates)[0]), **together), *rows]


def _tolerances(model: Model, data: Dataset) -> list[Row]:
    data = data.take(slice(0, FEW.get(data.problem, data.samples)))
    rows = []
    for tol in TOLERANCES:
        answer, variant = model.answer(data.query, tol), Variant.of({"tol": f"{tol:g}"})
        claimed = np.asarray(answer.tolerance_met)
        true = claimed & (true_errors(model, data, answer.states) <= tol)
        least = oracle(model, data, answer, np.flatnonzero(true))
        spent = {OVER_ORACLE: answer.work, ALL_OVER_ORACLE: answer.work + answer.estimate.work}
        values = {CLAIMED: claimed.mean()}
        if claimed.any():
            values[TRUE] = true.sum() / claimed.sum()
        if true.any():
            values |= {name: work[true].sum() / least.sum() for name, work in spent.items()}
        work = float(answer.work.mean())
        rows += [_row(model, data, name, float(value), variant=variant, work=work) for name, value in values.items()]
    return rows


def true_errors(model: Model, data: Dataset, states: Array) -> Array:
    return errors_of(model.record.config.metric, states, data.truth, data.query)


def oracle(model: Model, data: Dataset, answer: Answer, rows: Array) -> Array:
    """The least work on the model's ladder with which some queries meet the tolerance of an answer that meets it.

    Levels that cost more than one that is known to meet it are not tried: on each grid more cuts than meet the
    tolerance, or than cost less. Finer grids than the answer's are not tried either. One with fewer cuts may cost less,
    which was so for 1 of 1610 answers to fresh queries of three problems."""
    least, ladder = answer.work[rows], model.ladder
    levels = levels_of(ladder, data.query)
    for refinement in sorted({level.refinement for level in levels}):
        some = np.flatnonzero(answer.refinement[rows] >= refinement)
        for level in sorted(level for level in levels if level.refinement == refinement):
            if not some.size:
                break
            query, truth = data.query.take(rows[some]), data.truth[rows[some]]
            done = ladder.run(query, level)
            met = errors_of(ladder.metric, done.states, truth, query) <= np.asarray(answer.tolerance)
            least[some] = np.where(met, np.minimum(least[some], done.work), least[some])
            some = some[~met & (done.work < least[some])]
    return least


def _row(model: Model, data: Dataset, metric: str, value: float, **others: object) -> Row:
    return Row.of(data, method="HyCOP", metric=metric, value=value, dictionary=label_of(model), **others)


TABLE = Table(
    "estimates",
    "error estimates without a truth, and answers to a tolerance",
    {name: _part(name) for name in ("adr2d", "burgers1d", "swe1d", "swe2d", "ns2d")},
    samples=100,
    preset="quick",
)
