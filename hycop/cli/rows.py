"""Tables of rows: how the commands print errors and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isfinite

from rich.table import Table as RichTable
from rich.text import Text

from hycop.cli.terminal import counted, show
from hycop.evaluation import CURVE, Row
from hycop.metrics import METRICS

MANY = 5
"""Metrics beyond which they are lines, not columns."""


def print_rows(rows: Sequence[Row]) -> None:
    """One table per problem, split, boundary and time, the source paper's figures in brackets, the lowest error of each
    metric in bold; learning curves are for files. Rows without a method are facts."""
    tables: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.metric != CURVE:
            # times in single precision are shown without what that adds to their digits
            shown = row.time if isinstance(row.time, str) else f"{row.time:.6g}"
            tables.setdefault((row.problem, row.split, bool(row.method), row.grid, row.boundary, shown), []).append(row)
    for (name, split, contest, cells, boundary, time), chosen in tables.items():
        first = chosen[0]
        if not contest:
            show(_facts(f"{name}, {cells}", chosen))
            continue
        ends = "" if boundary == "periodic" else f"boundary {boundary}, "
        parts = {row.dictionary for row in chosen}
        with_parts = f"dictionary {first.dictionary}, " if len(parts) == 1 and first.dictionary else ""
        title = (
            f"{name}, {split}, {with_parts}{cells}, {ends}T={time}, "
            f"{counted(first.samples, 'sample')} x {counted(max(row.seeds for row in chosen), 'seed')}"
        )
        metrics, methods = len({row.metric for row in chosen}), len(_by_method(chosen))
        layout = _metrics_as_columns if metrics <= MANY else _metrics_as_lines if methods <= MANY else _one_by_one
        show(layout(title, chosen))


def _best(rows: Sequence[Row]) -> set[int]:
    """The rows (by identity) with the lowest error of a variant and metric, where there is a contest; the limit of a
    dictionary takes no part."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.metric in METRICS and not row.is_limit and isfinite(row.value):
            groups.setdefault((str(row.variant), row.metric), []).append(row)
    return {id(min(mine, key=lambda row: row.value)) for mine in groups.values() if len(mine) > 1}


def _value(row: Row, best: Collection[int] = ()) -> Text:
    spread = f" ± {row.std:.1g}" if row.seeds > 1 else ""
    text = f"{row.value:.3g}{spread}" + ("" if row.paper is None else f" [{row.paper:.3g}]")
    return Text(text, style="bold" if id(row) in best else "")


def _cost(row: Row) -> tuple[str, str]:
    return (f"{row.work:.4g}", f"{1e3 * row.seconds_per_sample:.3g}") if row.work else ("", "")


def _facts(title: str, rows: Sequence[Row]) -> RichTable:
    grid = RichTable("fact", "value", "dictionary", "what", title=title)
    for row in rows:
        grid.add_row(row.metric, _value(row), row.dictionary, str(row.variant))
    return grid


Line = tuple[str, str, str]
"""Variant, method and dictionary: the last is empty where all rows of a table have the same."""


def _by_method(rows: Sequence[Row]) -> dict[Line, dict[str, Row]]:
    """Rows by variant, method and dictionary, then metric; cheapest first."""
    lines: dict[Line, dict[str, Row]] = {}
    several = len({row.dictionary for row in rows}) > 1
    for row in sorted(rows, key=lambda row: (str(row.variant), row.work or float("inf"))):
        parts = row.dictionary if several else ""
        lines.setdefault((str(row.variant), row.method, parts), {})[row.metric] = row
    return lines


def _metrics_as_columns(title: str, rows: Sequence[Row]) -> RichTable:
    metrics, lines, best = list(dict.fromkeys(row.metric for row in rows)), _by_method(rows), _best(rows)
    variants, several = any(row.variant for row in rows), any(parts for _, _, parts in lines)
    grid = RichTable(title=title)
    for heading in ("method", *(("dictionary",) if several else ()), *(("variant",) if variants else ())):
        grid.add_column(heading, overflow="fold")
    for heading in (*metrics, "work", "ms/sample"):
        grid.add_column(heading, justify="right")
    for (variant, method, parts), mine in lines.items():
        values = [_value(mine[metric], best) if metric in mine else "" for metric in metrics]
        cost = _cost(next(iter(mine.values())))
        about = (*((parts,) if several else ()), *((variant,) if variants else ()))
        grid.add_row(method, *about, *values, *cost)
    return grid


def _one_by_one(title: str, rows: Sequence[Row]) -> RichTable:
    """Neither all metrics nor all methods fit side by side."""
    grid, best = RichTable("method", "dictionary", "variant", "metric", title=title), _best(rows)
    grid.add_column("value", justify="right")
    for (variant, method, parts), mine in _by_method(rows).items():
        for metric, row in mine.items():
            grid.add_row(method, parts, variant, metric, _value(row, best))
    return grid


def _metrics_as_lines(title: str, rows: Sequence[Row]) -> RichTable:
    columns, best = _by_method(rows), _best(rows)
    grid = RichTable("metric", title=title)
    for line in columns:
        variant, method, parts = line
        grid.add_column(" ".join(filter(None, (method, parts, variant))), justify="right", overflow="fold")
    for metric in dict.fromkeys(row.metric for row in rows):
        values = [_value(mine[metric], best) if metric in mine else "" for mine in columns.values()]
        grid.add_row(metric, *values)
    costs = [_cost(next(iter(mine.values()))) for mine in columns.values()]
    for label, numbers in zip(("work", "ms/sample"), zip(*costs, strict=True), strict=True):
        grid.add_row(label, *numbers)
    return grid
