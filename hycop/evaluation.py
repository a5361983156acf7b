"""How good a method is: error against the truth, against the dictionary's limit, and the work it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.metrics import metric, rel_l2
from hycop.program import Program, ProgramBatch, measure, run
from hycop.query import Query
from hycop.splitting import splitting

LIMIT_SCHEME = "SABA4"
SPLITTING = "splitting_rel_l2"
"""Relative L2 distance to the dictionary's limit: the error of the composition alone."""


class Method(Protocol):
    """Anything that writes programs: a classical scheme, a program written by hand, a policy."""

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch: ...


@dataclass(frozen=True)
class ByHand:
    """One program for every query, as it was written."""

    program: Program

    def __str__(self) -> str:
        return str(self.program)

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        return ProgramBatch.of([self.program], dictionary.names).take(np.zeros(query.batch, dtype=np.int64))


@dataclass(frozen=True)
class Row:
    """One figure of a table; the same fields for every table that is printed or written as JSON."""

    problem: str
    split: str
    method: str
    dictionary: str
    variant: str
    time: float | str
    grid: str
    metric: str
    value: float
    std: float
    seeds: int
    samples: int
    work: float
    seconds_per_sample: float
    truth: str
    limit: float
    paper: float | None = None

    def to_json(self) -> dict[str, object]:
        """The fields; a number that does not exist (a band that the grid lacks) is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in asdict(self).items()
        }


class Limit(NamedTuple):
    """States of the program refined until it stops changing; ``change`` is what the last doubling still moved."""

    states: Array
    copies: int
    change: float


def limit(dictionary: Dictionary, query: Query, tolerance: float = 1e-7, most: int = 64) -> Limit:
    """What the dictionary converges to on the query's grid: SABA4 cut into 4, 8, 16, … until the mean relative change
    of the states is below ``tolerance`` (or ``most`` copies are reached). A program may still beat it by luck of
    cancelling biases."""
    scheme = splitting(LIMIT_SCHEME)
    copies = 4
    states = run(scheme.times(copies).programs(query, dictionary), dictionary, query)
    change = np.inf
    while change > tolerance and copies < most:
        copies *= 2
        finer = run(scheme.times(copies).programs(query, dictionary), dictionary, query)
        change = float(rel_l2(states, finer, query.setting).mean())
        states = finer
    return Limit(states, copies, change)


class _Score(NamedTuple):
    errors: dict[str, float]
    work: float
    seconds: float


def _score(method: Method, dictionary: Dictionary, data: Dataset, reached: Array, metrics: Sequence[str]) -> _Score:
    query, truth = data.query, data.truth
    start = perf_counter()
    programs = method.programs(query, dictionary)
    states, work = measure(programs, dictionary, query)
    seconds = (perf_counter() - start) / query.batch
    errors = {name: _error(name, states, truth, reached, query) for name in metrics}
    return _Score(errors, float(work.mean()), seconds)


def _error(name: str, states: Array, truth: Array, reached: Array, query: Query) -> float:
    if name == SPLITTING:
        return float(rel_l2(states, reached, query.setting).mean())
    return float(metric(name)(states, truth, query.setting).mean())


def evaluate(
    methods: Sequence[Method],
    dictionary: Dictionary,
    datasets: Sequence[Dataset],
    *,
    metrics: Sequence[str] = ("rel_l2", SPLITTING),
    label: str = "",
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """One row per method and metric (mean over samples, then mean and spread over datasets, one per seed).

    The last rows are the dictionary's limit. ``label`` is the dictionary's name in the rows.
    """
    if not datasets:
        raise InvalidInputError("evaluate needs at least one dataset")
    for name in metrics:
        if name != SPLITTING:
            metric(name)
    first = datasets[0]
    limits = [limit(dictionary, data.query) for data in datasets]
    floor = {
        name: [
            _error(name, reached.states, data.truth, reached.states, data.query)
            for data, reached in zip(datasets, limits, strict=True)
        ]
        for name in metrics
    }
    for method in methods:  # compilation and caches are not part of a method's seconds
        run(method.programs(first.query.take(slice(0, 2)), dictionary), dictionary, first.query.take(slice(0, 2)))
    rows: list[Row] = []
    for method in methods:
        scores = [
            _score(method, dictionary, data, reached.states, metrics)
            for data, reached in zip(datasets, limits, strict=True)
        ]
        for name in metrics:
            values = [score.errors[name] for score in scores]
            rows.append(
                _row(
                    datasets,
                    label,
                    str(method),
                    name,
                    values,
                    floor[name],
                    float(np.mean([score.work for score in scores])),
                    min(score.seconds for score in scores),
                )
            )
        if progress is not None:
            progress(1)
    copies = max(reached.copies for reached in limits)
    for name in metrics:
        if name != SPLITTING:
            rows.append(
                _row(datasets, label, f"limit ({LIMIT_SCHEME} x{copies})", name, floor[name], floor[name], 0, 0)
            )
    return rows


def _row(
    datasets: Sequence[Dataset],
    label: str,
    method: str,
    name: str,
    values: Sequence[float],
    floor: Sequence[float],
    work: float,
    seconds: float,
) -> Row:
    data = datasets[0]
    times = data.times[:, 1:]
    return Row(
        problem=data.problem,
        split=data.split,
        method=method,
        dictionary=label,
        variant="",
        time=float(times[0, 0]) if np.ptp(times) == 0 else f"{times.min():g}..{times.max():g}",
        grid="x".join(map(str, data.setting.grid.shape)),
        metric=name,
        value=float(np.mean(values)),
        std=float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        seeds=len(datasets),
        samples=data.samples,
        work=work,
        seconds_per_sample=seconds,
        truth="limit" if name == SPLITTING else data.reference,
        limit=float(np.mean(floor)),
    )
