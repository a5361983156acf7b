"""A table as data, and the driver that computes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.evaluation import Row, merged
from hycop.experiments.bench import Bench
from hycop.experiments.fixtures import FOLDER, fixture_version
from hycop.files import read_text
from hycop.plots import Figure
from hycop.problems import PROBLEMS, find_problem

Part = Callable[[Bench, int], list[Row]]
"""The rows of a part of a table for a seed."""

Figures = Callable[[Bench, Sequence[Row]], Mapping[str, Figure]]
"""The figures of a table's rows, by the stems of their files."""


Summary = Callable[[Sequence[Row]], list[Row]]
"""Rows that follow from those of all parts."""

SUMMARY = "summary"
"""The part that such rows belong to."""


def no_figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    return {}


def no_summary(rows: Sequence[Row]) -> list[Row]:
    return []


@dataclass(frozen=True)
class Table:
    """A table as data: named parts, which are computed for every seed and kept one by one, and figures of their rows.

    ``fixtures`` are files of other solvers, used if ``HYCOP_FIXTURES`` has them. ``samples`` (per split and seed),
    ``preset`` and ``seeds`` are its own unless told otherwise. A ``summary`` compares parts with each other.
    ``any_problem`` makes parts about a problem by its name, for tables that are not about some problems only.
    """

    name: str
    title: str
    parts: Mapping[str, Part]
    figures: Figures = no_figures
    fixtures: tuple[str, ...] = ()
    samples: int = 1
    preset: str = "laptop"
    seeds: int = 3
    summary: Summary = no_summary
    any_problem: Callable[[str], Mapping[str, Part]] | None = None

    def about(self, problem: str) -> Table:
        """The table with parts about a problem, also one of one's own, if it can be about any."""
        if self.any_problem is None or problem not in PROBLEMS:
            return self
        return replace(self, parts={**self.any_problem(problem), **self.parts})

    def named_parts(self, names: Sequence[str] | None) -> Mapping[str, Part]:
        """Some of the parts, in their order; all of them for None."""
        for name in names or ():
            if name not in self.parts:
                raise UnknownNameError("part", name, self.parts, f"(of table {self.name})")
        return {name: part for name, part in self.parts.items() if names is None or name in names}

    def parts_about(self, problem: str) -> list[str]:
        """Names of the parts about a problem: those that begin with its name."""
        found = [name for name in self.parts if name == problem or name.startswith(f"{problem} ")]
        if not found:
            if problem.endswith(".py"):
                find_problem(problem)  # which says what is missing
            raise UnknownNameError("part", problem, self.parts, f"(of table {self.name})")
        return found


def assembled(table: Table, bench: Bench, parts: Sequence[str] | None = None) -> list[Row]:
    """The rows of all parts, or of some, for all seeds; parts that the bench has kept are not computed again."""
    there = {name: version for name in table.fixtures if (version := fixture_version(name)) is not None}
    chosen = table.named_parts(parts)
    rows: list[Row] = []
    for index, (name, part) in enumerate(chosen.items()):
        tables = []
        for seed in range(bench.seeds):
            bench.progress(f"{name}, seed {seed}", (index + seed / bench.seeds) / len(chosen))
            # rows that were computed without a file that exists now, or with another one, do not count
            key = (table.name, name, seed, there)
            tables.append(bench.rows(key, partial(part, bench, seed), part.__module__))
        rows += [replace(row, part=name) for row in merged(tables)]
    bench.progress("done", 1.0)
    missing = [name for name in table.fixtures if name not in there]
    if missing:
        bench.remark(
            f"table {table.name}: rows are missing, because {FOLDER} names no folder that has {', '.join(missing)}"
        )
    return rows


def summarised(table: Table, rows: Sequence[Row]) -> list[Row]:
    """The rows of a table with its summary, which is made again from all of them."""
    own = [row for row in rows if row.part != SUMMARY]
    return [*own, *(replace(row, part=SUMMARY) for row in table.summary(own))]


def with_others(table: Table, fresh: Sequence[Row], parts: Sequence[str], known: Sequence[Row]) -> list[Row]:
    """The rows of the ``parts`` that were computed, among the ``known`` rows of the other parts, in the order of the
    table. Rows of old files do not name their part: those that were computed again are left out."""
    again = {row.place for row in fresh}
    kept = [row for row in known if row.part not in parts and not (row.part == "" and row.place in again)]
    order = {name: index for index, name in enumerate(table.parts)}
    return sorted([*kept, *fresh], key=lambda row: order.get(row.part, -1))


def read_rows(path: Path) -> list[Row]:
    """The rows of a table that was written as JSON."""
    try:
        return [Row.from_json(row) for row in json.loads(read_text(path))["rows"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInputError(f"{path}: not a table of 'hycop table' ({type(error).__name__}: {error})") from None
