"""How good a method is: error against the truth, against the dictionary's limit, and the work it took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from time import perf_counter
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.execution import Outcome, measure
from hycop.grid import Array
from hycop.metrics import metric, rel_l2
from hycop.program import Program, ProgramBatch
from hycop.query import Query, Setting
from hycop.schemes import splitting

LIMIT = "limit"
LIMIT_SCHEME = "SABA4"
CURVE = "training loss"
"""Metric of rows that are points of a learning curve."""

SPLITTING = "splitting_rel_l2"
"""Relative L2 distance to the dictionary's limit: the error of the composition alone."""


class Method(Protocol):
    """Anything that writes programs: a classical scheme, a program written by hand, a policy."""

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch: ...


@runtime_checkable
class Answering(Protocol):
    """A method that runs its programs in a way of its own, such as on a finer grid."""

    def measure(self, query: Query, dictionary: Dictionary) -> Outcome: ...


def answered(method: Method, query: Query, dictionary: Dictionary, refinement: int = 1) -> Outcome:
    """States and work of a method's programs."""
    if isinstance(method, Named):
        method = method.method
    if isinstance(method, Answering):
        return method.measure(query, dictionary)
    return measure(method.programs(query, dictionary), dictionary, query, refinement=refinement, strict=False)


@dataclass(frozen=True)
class ByHand:
    """One program for every query, as it was written."""

    program: Program

    def __str__(self) -> str:
        return str(self.program)

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        return ProgramBatch.of([self.program], dictionary.names).take(np.zeros(query.batch, dtype=np.int64))


@dataclass(frozen=True)
class Named:
    """A method under another name."""

    name: str
    method: Method

    def __str__(self) -> str:
        return self.name

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        return self.method.programs(query, dictionary)


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
    boundary: str = "periodic"

    @classmethod
    def of(cls, data: Dataset, *, method: str, metric: str, value: float, **others: Any) -> Row:
        """A figure of one dataset, which says all that is not given among ``others``; no work, limit or variant."""
        elapsed = data.times[:, 1:] - data.times[:, :1]
        same = np.ptp(elapsed) == 0
        known = {
            "problem": data.problem,
            "split": data.split,
            "dictionary": "",
            "variant": "",
            "time": float(elapsed[0, 0]) if same else f"{elapsed.min():g}..{elapsed.max():g}",
            "grid": "x".join(map(str, data.setting.grid.shape)),
            "std": 0.0,
            "seeds": 1,
            "samples": data.samples,
            "work": 0.0,
            "seconds_per_sample": 0.0,
            "truth": data.reference,
            "limit": 0.0,
            "boundary": data.setting.grid.boundary_name,
        }
        return cls(method=method, metric=metric, value=value, **{**known, **others})

    def to_json(self) -> dict[str, object]:
        """The fields; a number that does not exist (a band that the grid lacks) is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Row:
        """The row of a file; one from before rows had a boundary is of periodic boxes."""
        known: dict[str, Any] = {name: nan if value is None else value for name, value in content.items()}
        return cls(**{**known, "paper": content["paper"]})


class Limit(NamedTuple):
    """States of the program refined until it stops changing; ``change`` is what the last doubling still moved."""

    states: Array
    copies: int
    change: float


def limit(
    dictionary: Dictionary,
    query: Query,
    truth: Array | None = None,
    *,
    most: int = 64,
    refinement: int = 1,
    cover: Sequence[str] | None = None,
) -> Limit:
    """What the dictionary converges to on the query's grid (or one ``refinement`` times finer): SABA4 cut into 4, 8,
    16, … until the mean relative change of the states is below 1e-7, or half a per cent of the error against the
    ``truth`` (or ``most`` copies are reached). ``cover`` names the primitives of a dictionary that has more than the
    equation needs. A program may still beat the limit by luck of cancelling biases."""
    scheme = splitting(LIMIT_SCHEME).within(cover)

    def states_of(copies: int) -> Array:
        programs = scheme.with_substeps(copies).programs(query, dictionary)
        return measure(programs, dictionary, query, refinement=refinement, strict=False).states

    copies, change, tolerance = 4, np.inf, 1e-7
    states = states_of(copies)
    if truth is not None:
        tolerance = max(tolerance, 0.005 * float(rel_l2(states, truth, query.setting).mean()))
    while change > tolerance and copies < most:
        copies *= 2
        finer = states_of(copies)
        change = float(rel_l2(states, finer, query.setting).mean())
        states = finer
    return Limit(states, copies, change)


ROUNDING = 1e-12
"""Changes below it are none."""

Border = Callable[[Array, Setting], tuple[Array, Setting]]
"""Gives states in the channels in which errors are reported."""


def _error(name: str, states: Array, truth: Array, reached: Array, query: Query, border: Border | None) -> float:
    against, setting = reached if name == SPLITTING else truth, query.setting
    if border is not None:
        (states, setting), (against, _) = border(states, setting), border(against, setting)
    return float((rel_l2 if name == SPLITTING else metric(name))(states, against, setting).mean())


def evaluate(
    methods: Sequence[Method],
    dictionary: Dictionary,
    datasets: Sequence[Dataset],
    *,
    metrics: Sequence[str] = ("rel_l2", SPLITTING),
    label: str = "",
    refinement: int = 1,
    border: Border | None = None,
    cover: Sequence[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """One row per method and metric: mean over samples, then mean and spread over datasets, one per seed.

    The last rows are the dictionary's limit. ``label`` is the dictionary's name in the rows. Schemes and the limit run
    on a grid ``refinement`` times finer than the data's; a trained model knows its own. Errors are those of the states
    in their ``border`` channels. The limit is that of ``cover``, if the dictionary has more than the equation needs.
    """
    if not datasets:
        raise InvalidInputError("evaluate needs at least one dataset")
    for name in metrics:
        if name != SPLITTING:
            metric(name)
    few = datasets[0].query.take(slice(0, 2))
    for method in methods:  # compilation and caches are not part of a method's seconds
        answered(method, few, dictionary, refinement)
    reached = [limit(dictionary, data.query, data.truth, refinement=refinement, cover=cover) for data in datasets]
    rows = merged(
        [
            _evaluated(methods, dictionary, data, bottom, metrics, label, refinement, border, progress)
            for data, bottom in zip(datasets, reached, strict=True)
        ]
    )
    # one name for all seeds, although each has a limit of its own
    moving = any(
        bottom.change > max(ROUNDING, 0.01 * row.value) for bottom in reached for row in rows if row.method == LIMIT
    )
    name = f"{LIMIT} ({LIMIT_SCHEME} x{max(each.copies for each in reached)}{', not converged' if moving else ''})"
    return [replace(row, method=name) if row.method == LIMIT else row for row in rows]


def _evaluated(
    methods: Sequence[Method],
    dictionary: Dictionary,
    data: Dataset,
    reached: Limit,
    metrics: Sequence[str],
    label: str,
    refinement: int,
    border: Border | None,
    progress: Callable[[int], None] | None,
) -> list[Row]:
    query, truth = data.query, data.truth
    floor = {name: _error(name, reached.states, truth, reached.states, query, border) for name in metrics}
    rows: list[Row] = []
    for method in methods:
        start = perf_counter()
        states, work = answered(method, query, dictionary, refinement)
        seconds = (perf_counter() - start) / query.batch
        for name in metrics:
            value = _error(name, states, truth, reached.states, query, border)
            cost = {"work": float(work.mean()), "seconds_per_sample": seconds}
            rows.append(_row(data, label, str(method), name, value, floor[name], **cost))
        if progress is not None:
            progress(1)
    rows += [_row(data, label, LIMIT, name, floor[name], floor[name]) for name in metrics if name != SPLITTING]
    return rows


def _row(data: Dataset, label: str, method: str, name: str, value: float, floor: float, **cost: float) -> Row:
    truth = LIMIT if name == SPLITTING else data.reference
    return Row.of(data, method=method, metric=name, value=value, dictionary=label, truth=truth, limit=floor, **cost)


def merged(tables: Sequence[Sequence[Row]]) -> list[Row]:
    """The same table from several seeds as one: means, the spread of the values, and the best of the seconds."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in (row for rows in tables for row in rows):
        same = (row.problem, row.split, row.method, row.dictionary, row.variant, row.grid, row.boundary, row.metric)
        groups.setdefault(same, []).append(row)
    return [_mean(rows) for rows in groups.values()]


def _mean(rows: Sequence[Row]) -> Row:
    values = [row.value for row in rows]
    return replace(
        rows[0],
        value=float(np.mean(values)),
        std=float(np.std(values, ddof=1)) if len(rows) > 1 else 0.0,
        seeds=len(rows),
        work=float(np.mean([row.work for row in rows])),
        limit=float(np.mean([row.limit for row in rows])),
        seconds_per_sample=min(row.seconds_per_sample for row in rows),
    )
