"""Table ``interpretation``: how the programs of a policy change with the dimensionless numbers of a query.

Queries of ``id`` and ``ood`` together are put in order of a number and cut into five bins of equal size; the variant
says the budget, the number, the bin and the process. A row whose metric is the number itself has its mean over the bin
(geometric). Numbers: Damköhler, r / Σ c_i/L_i; Péclet, c L/D, the geometric mean over the axes; Froude, the speed of
the water over that of its waves, where still water counts as 10⁻³. Means over a bin, for each process:

- ``steps``: as the program runs, equal neighbours merged.
- ``work share``: of the work of all steps, each counted as if it ran alone (``run`` takes advection and diffusion
  through one transform).
- ``gain``: durations together over T. 1 with the ``consistent`` budget, which gives every process exactly T.
- ``time share``: of all durations together. Not with the ``consistent`` budget, where it is the same for all processes
  by construction; with ``literal`` it is the gain, because all durations together sum to T.
- ``trend`` of each: its rank correlation with the number over all queries, 1 if it always rises, −1 if it always falls,
  0 if it does not depend on it. Constant quantities have 0.

The source paper says that the allocation of reaction rises with the Damköhler number, and that of advection with
Péclet's; its allocation is time, so rows of ``literal`` are what it can be compared with. Programs are the policy's,
whatever its gate decided. A query that is faster than those of training repeats its program (``program^m``), which
shows in ``steps``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hycop.evaluation import Row, Variant
from hycop.execution import refined_query, simplify, trace
from hycop.experiments.bench import Bench
from hycop.experiments.judging import label_of, ungated
from hycop.experiments.table import Part, Table
from hycop.features import FEATURES
from hycop.grid import Array
from hycop.model import Model
from hycop.plots import Figure, Panel, lines_figure
from hycop.query import Query

SPLITS = ("id", "ood")
BINS = 5
STEPS, WORK, TIME, GAIN = "steps", "work share", "time share", "gain"
TOGETHER = 8
"""Queries that are traced at a time: a trace holds every intermediate state."""


def _power(name: str, query: Query) -> Array:
    """A number whose logarithm is a feature."""
    out: Array = 10.0 ** FEATURES[name](query)
    return out


NUMBERS: Mapping[str, Callable[[Query], Array]] = {
    "damkohler": lambda query: _power("damkohler", query),
    "peclet": lambda query: np.sqrt(_power("peclet_x", query) * _power("peclet_y", query)),
    "froude": lambda query: np.hypot(_power("froude_x", query), _power("froude_y", query)),
}


@dataclass(frozen=True)
class Subject:
    """A model to interpret: its problem, the numbers that order its queries, and its training settings."""

    problem: str
    numbers: tuple[str, ...]
    budget: str = "consistent"
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def quantities(self) -> tuple[str, ...]:
        return (STEPS, WORK, GAIN) if self.budget == "consistent" else (STEPS, WORK, GAIN, TIME)


ADR = ("damkohler", "peclet")
SUBJECTS = (
    Subject("adr2d", ADR),
    Subject("adr2d", ADR, "gain", {"dictionary": "upwind"}),
    Subject("adr2d", ADR, "literal"),
    Subject("swe2d", ("froude",)),
)


def quantities(model: Model, query: Query) -> dict[str, Array]:
    """Steps, shares of work and time, and gains of every query's program, (batch, primitive) each."""
    parts = [_traced(model, query.take(slice(at, at + TOGETHER))) for at in range(0, query.batch, TOGETHER)]
    steps, work, time = (np.concatenate(each) for each in zip(*parts, strict=True))
    return {
        STEPS: steps,
        WORK: work / work.sum(axis=1, keepdims=True),
        GAIN: time / query.time[:, None],
        TIME: time / time.sum(axis=1, keepdims=True),
    }


def _traced(model: Model, query: Query) -> tuple[Array, Array, Array]:
    """Steps, work and time of each primitive on the grid on which the model runs."""
    fine = query if model.refinement == 1 else refined_query(query, model.refinement)
    programs = simplify(model.programs(query), model.dictionary, fine.setting)
    work = trace(programs, model.dictionary, fine).work
    mine = programs.ops[:, :, None] == np.arange(len(programs.names))
    return mine.sum(axis=1), (work[:, :, None] * mine).sum(axis=1), programs.time_per_primitive()


def _rank_correlation(number: Array, values: Array) -> float:
    from scipy.stats import spearmanr  # takes a second to import

    # shares that differ by rounding alone do not vary
    return 0.0 if np.ptp(values) < 1e-9 else float(spearmanr(number, values).statistic)


def _values(
    subject: Subject, names: Sequence[str], number: str, x: Array, found: Mapping[str, Array]
) -> Iterator[tuple[Variant, str, float]]:
    """Variant, metric and value of every row that belongs to one number."""
    bins = np.array_split(np.argsort(x, kind="stable"), min(BINS, x.size))
    for index, members in enumerate(bins, start=1):
        place = Variant.of({"budget": subject.budget, number: f"{index}/{len(bins)}"})
        yield place, number, float(np.exp(np.log(x[members]).mean()))
        for column, name in enumerate(names):
            for quantity in subject.quantities:
                yield place.adding({name: ""}), quantity, float(found[quantity][members, column].mean())
    for column, name in enumerate(names):
        for quantity in subject.quantities:
            everywhere = Variant.of({"budget": subject.budget, number: "", name: ""})
            yield everywhere, f"{quantity} trend", _rank_correlation(x, found[quantity][:, column])


def _part(subject: Subject) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        model = ungated(
            bench.learned(subject.problem, seed, budget=subject.budget, **subject.settings).model.model
        ).model
        datasets = [bench.data(subject.problem, split, seed) for split in SPLITS]
        asked = [data.query for data in datasets]
        each = [quantities(model, query) for query in asked]
        found = {name: np.concatenate([part[name] for part in each]) for name in subject.quantities}
        return [
            Row.of(
                datasets[0],
                method="HyCOP",
                metric=metric,
                value=value,
                split="+".join(SPLITS),
                dictionary=label_of(model),
                variant=variant,
                samples=sum(query.batch for query in asked),
                truth="",
            )
            for number in subject.numbers
            for variant, metric, value in _values(
                subject,
                model.dictionary.names,
                number,
                np.concatenate([NUMBERS[number](query) for query in asked]),
                found,
            )
        ]

    return rows


def _panel(rows: Sequence[Row], subject: Subject, number: str, quantity: str) -> Panel:
    """One line for each process against the number."""
    mine = [
        row
        for row in rows
        if (row.problem, row.variant.get("budget")) == (subject.problem, subject.budget) and row.variant.get(number)
    ]
    at = {row.variant: row.value for row in mine if row.metric == number}
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for row in mine:
        if row.metric == quantity:
            *_, process = row.variant
            x, y = lines.setdefault(process, ([], []))
            x.append(at[row.variant.without(process)])
            y.append(row.value)
    return Panel("", number, quantity, lines)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """For each model: a row of panels for each number."""
    return {
        f"interpretation_{subject.problem}_{subject.budget}": lines_figure(
            [[_panel(rows, subject, number, each) for each in subject.quantities] for number in subject.numbers],
            f"{subject.problem}, budget {subject.budget}: what each process gets",
        )
        for subject in SUBJECTS
    }


TABLE = Table(
    "interpretation",
    "programs against Damköhler, Péclet and Froude numbers (adr2d, swe2d)",
    {f"{subject.problem} {subject.budget}": _part(subject) for subject in SUBJECTS},
    figures,
    samples=100,
)
