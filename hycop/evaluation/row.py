"""The rows of a table, in memory and as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import nan
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.evaluation.variant import Variant

LIMIT = "limit"
"""Method name of a dictionary's limit; the scheme that reached it follows in brackets."""

CURVE = "training loss"
"""Metric of rows that are points of a learning curve."""


@dataclass(frozen=True)
class Row:
    """One number of a table; the same fields for every table that is printed or written as JSON.

    ``value`` and ``work`` are means over samples, ``std`` is the spread over seeds. ``seconds_per_sample`` is the best
    of several runs after a warm-up, from the query to the states; it includes the policy. ``part`` is the part of the
    table that it belongs to.
    """

    problem: str
    split: str
    method: str
    dictionary: str
    variant: Variant
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
    part: str = ""

    @classmethod
    def of(cls, data: Dataset, *, method: str, metric: str, value: float, **others: Any) -> Row:
        """A row about one dataset. Fields that ``others`` does not give come from the dataset, or are empty."""
        elapsed = data.times[:, 1:] - data.times[:, :1]
        same = np.ptp(elapsed) == 0
        known = {
            "problem": data.problem,
            "split": data.split,
            "dictionary": "",
            "variant": Variant(),
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

    @property
    def place(self) -> tuple[object, ...]:
        """What tells it apart from the other rows of a table; each seed reaches a limit in its own way."""
        method = LIMIT if self.is_limit else self.method
        return (
            self.problem,
            self.split,
            method,
            self.dictionary,
            self.variant,
            self.grid,
            self.boundary,
            self.metric,
        )

    @property
    def is_limit(self) -> bool:
        """Whether it is the limit of a dictionary."""
        return self.method.partition(" (")[0] == LIMIT

    def to_json(self) -> dict[str, object]:
        """The fields. The variant is text; a number that does not exist (a band that the grid lacks) is null."""
        content: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        numbers = {name: None for name, value in content.items() if isinstance(value, float) and not np.isfinite(value)}
        return {**content, **numbers, "variant": str(self.variant)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Row:
        """The row of a file. Rows of old files have no boundary, as they are of periodic boxes, and no part."""
        known: dict[str, Any] = {name: nan if value is None else value for name, value in content.items()}
        return cls(**{**known, "variant": Variant.parse(content["variant"]), "paper": content["paper"]})


def family(method: str) -> str:
    """A method's name without its number of substeps.

    >>> family("Strang x4(outer=reaction)")
    'Strang(outer=reaction)'
    """
    base, _, outer = method.partition("(")
    return base.split(" x")[0] + (f"({outer}" if outer else "")


def merged(tables: Sequence[Sequence[Row]]) -> list[Row]:
    """Merges the tables of several seeds: means, the spread of the values, and the fewest seconds."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in (row for rows in tables for row in rows):
        groups.setdefault(row.place, []).append(row)
    return [_mean(rows) for rows in groups.values()]


def pooled(tables: Sequence[Sequence[Row]]) -> list[Row]:
    """Merges the tables of the blocks of one dataset: means over all samples."""
    if len(tables) == 1:
        return list(tables[0])
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in (row for rows in tables for row in rows):
        groups.setdefault(row.place, []).append(row)
    return [_over_samples(rows) for rows in groups.values()]


def _over_samples(rows: Sequence[Row]) -> Row:
    weights = [row.samples for row in rows]

    def mean(field: str) -> float:
        return float(np.average([getattr(row, field) for row in rows], weights=weights))

    means: dict[str, Any] = {field: mean(field) for field in ("value", "work", "limit", "seconds_per_sample")}
    ends = [float(end) for row in rows for end in str(row.time).split("..")]
    time = rows[0].time if min(ends) == max(ends) else f"{min(ends):g}..{max(ends):g}"
    method = max((row.method for row in rows), key=_limit_order)
    return replace(rows[0], method=method, samples=sum(weights), time=time, **means)


def _mean(rows: Sequence[Row]) -> Row:
    if len(rows) == 1:
        return rows[0]
    values = [row.value for row in rows]
    return replace(
        rows[0],
        method=max((row.method for row in rows), key=_limit_order),
        value=float(np.mean(values)),
        std=float(np.std(values, ddof=1)),
        seeds=len(rows),
        work=float(np.mean([row.work for row in rows])),
        limit=float(np.mean([row.limit for row in rows])),
        seconds_per_sample=min(row.seconds_per_sample for row in rows),
    )


def _limit_order(method: str) -> tuple[bool, int]:
    """Sort key of limits: converged ones first, then by the number of substeps."""
    substeps = re.search(r" x(\d+)", method)
    return "not converged" in method, int(substeps[1]) if substeps else 0
