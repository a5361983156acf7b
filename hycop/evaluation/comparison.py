"""Evaluates contenders: error against the truth, error against the dictionary's limit, and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import nan
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.errors import InvalidInputError, SampleError
from hycop.evaluation.contender import Contender, timed
from hycop.evaluation.limits import LIMIT_SCHEME, DictionaryLimit, Limit
from hycop.evaluation.row import LIMIT, Row, merged, pooled
from hycop.executors import Executor
from hycop.grid import Array
from hycop.metrics import find_metric, rel_l2
from hycop.query import Setting

SPLITTING = "splitting_rel_l2"
"""Relative L2 distance to the dictionary's limit: the error of the composition alone."""

ROUNDING = 1e-12
"""A limit that moved by less than this has converged."""

ReportedVariables = Callable[[Array, Setting], tuple[Array, Setting]]
"""(states, setting) → the same in the variables in which errors are reported."""


def evaluate(
    contenders: Sequence[Contender],
    datasets: Sequence[Dataset],
    *,
    limit_of: DictionaryLimit | None = None,
    metrics: Sequence[str] | None = None,
    reported_variables: ReportedVariables | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """One row per contender and metric: mean over samples, then mean and spread over datasets, one per seed.

    The last rows are the limit of the dictionary ``limit_of``. Contenders with another dictionary have no limit in
    their rows, and no distance to it. The default metrics are ``rel_l2`` and, if there is a limit, the distance to it.
    Errors are measured in the ``reported_variables``, by default the channels.
    """
    if not datasets:
        raise InvalidInputError("evaluate needs at least one dataset")
    metrics = check_metrics(metrics, limit_of)
    tables, reached = [], []
    for data in datasets:
        bottom = None if limit_of is None else limit_of.reached(data.query, data.truth)
        tables.append(_evaluated(contenders, data, limit_of, bottom, metrics, reported_variables, progress))
        reached += [] if bottom is None else [bottom]
    rows = merged(tables)
    name = _limit_name(reached, [row.value for row in rows if row.is_limit])
    return [replace(row, method=name) if row.is_limit else row for row in rows]


@dataclass(frozen=True)
class Judging:
    """``evaluate`` on each of some blocks of data: what an executor spreads over its workers."""

    contenders: tuple[Contender, ...]
    blocks: tuple[Dataset, ...]
    limit_of: DictionaryLimit | None = None
    metrics: tuple[str, ...] | None = None
    reported_variables: ReportedVariables | None = None
    before: int = 0
    """Queries before those of the blocks, from which errors count."""

    def __call__(self, first: int, count: int) -> Array:
        """The rows of some of the blocks, one list each."""
        out = np.full(count, None, dtype=object)
        how: dict[str, Any] = {"metrics": self.metrics, "reported_variables": self.reported_variables}
        for place in range(count):
            try:
                out[place] = evaluate(self.contenders, [self.blocks[first + place]], limit_of=self.limit_of, **how)
            except SampleError as error:
                before = self.before + sum(map(_queries, self.blocks[: first + place]))
                raise error.at(before + error.sample, error.place) from None
        return out


def _queries(data: Dataset) -> int:
    return data.samples * (data.times.shape[1] - 1)


def evaluate_blocks(
    contenders: Sequence[Contender],
    blocks: Iterable[Dataset],
    executor: Executor,
    *,
    together: int = 1,
    limit_of: DictionaryLimit | None = None,
    metrics: Sequence[str] | None = None,
    reported_variables: ReportedVariables | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """``evaluate`` for one dataset that is larger than memory: the means over the samples of all its blocks, of which
    ``together`` are held at a time, one for each worker."""
    tables: list[list[Row]] = []
    waiting, before = iter(blocks), 0
    chosen = None if metrics is None else tuple(metrics)
    while some := tuple(islice(waiting, together)):
        job = Judging(tuple(contenders), some, limit_of, chosen, reported_variables, before)
        tables += list(executor.map(job, len(some)))
        before += sum(map(_queries, some))
        if progress is not None:
            progress(sum(block.samples for block in some))
    return pooled(tables)


def check_metrics(metrics: Sequence[str] | None, limit_of: DictionaryLimit | None) -> tuple[str, ...]:
    """The metrics without duplicates. Refuses unknown ones, and the distance to a limit where there is none."""
    if metrics is None:
        return ("rel_l2",) if limit_of is None else ("rel_l2", SPLITTING)
    for name in metrics:
        if name != SPLITTING:
            find_metric(name)
        elif limit_of is None:
            raise InvalidInputError(f"metric {SPLITTING} is the distance to a dictionary's limit: give limit_of")
    return tuple(dict.fromkeys(metrics))


def _limit_name(reached: Sequence[Limit], values: Sequence[float]) -> str:
    """One name for the limits of all seeds: the most substeps, and whether any did not converge."""
    moving = any(bottom.change > max(ROUNDING, 0.01 * value) for bottom in reached for value in values)
    most = max((bottom.substeps for bottom in reached), default=0)
    return f"{LIMIT} ({LIMIT_SCHEME} x{most}{', not converged' if moving else ''})"


def _evaluated(
    contenders: Sequence[Contender],
    data: Dataset,
    limit_of: DictionaryLimit | None,
    bottom: Limit | None,
    metrics: Sequence[str],
    reported: ReportedVariables | None,
    progress: Callable[[int], None] | None,
) -> list[Row]:
    """The rows of one dataset."""
    floor = {} if bottom is None else {name: _error(name, bottom.states, data, bottom, reported) for name in metrics}
    rows: list[Row] = []
    for contender in contenders:
        done = timed(contender, data.query)
        own = limit_of is not None and contender.dictionary == limit_of.label
        about: dict[str, Any] = {"variant": contender.variant, **done.cost}
        for name in metrics:
            if name == SPLITTING and not own:  # it is not what the limit is composed of
                continue
            value = _error(name, done.states, data, bottom, reported)
            below = 0.0 if limit_of is None else floor[name] if own else nan
            rows.append(_row(data, contender.method, contender.dictionary, name, value, limit=below, **about))
        if progress is not None:
            progress(1)
    if limit_of is not None:
        shown = {name: value for name, value in floor.items() if name != SPLITTING}
        rows += [_row(data, LIMIT, limit_of.label, name, value, limit=value) for name, value in shown.items()]
    return rows


def _error(name: str, states: Array, data: Dataset, bottom: Limit | None, reported: ReportedVariables | None) -> float:
    against, setting = data.truth, data.query.setting
    if name == SPLITTING:
        assert bottom is not None
        against = bottom.states
    if reported is not None:
        (states, setting), (against, _) = reported(states, setting), reported(against, setting)
    return float((rel_l2 if name == SPLITTING else find_metric(name))(states, against, setting).mean())


def _row(data: Dataset, method: str, dictionary: str, name: str, value: float, **others: Any) -> Row:
    truth = LIMIT if name == SPLITTING else data.reference
    return Row.of(data, method=method, metric=name, value=value, dictionary=dictionary, truth=truth, **others)
