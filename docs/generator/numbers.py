"""The rows of ``results/*.json``: reading, choosing and printing them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


class PageError(Exception):
    """A template asks for something that the results do not have."""


def read_results(folder: Path) -> dict[str, dict[str, Any]]:
    """The content of every file, by its stem."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def chosen(rows: Sequence[Row], where: Mapping[str, str]) -> list[Row]:
    """The rows whose fields have these values. ``|`` separates alternatives, a leading ``!`` excludes them, a ``*`` at
    the end stands for any ending, and an empty text for an empty field.

    >>> rows = [{"split": "id", "value": 1.0}, {"split": "pyclaw id", "value": 2.0}]
    >>> [row["value"] for row in chosen(rows, {"split": "pyclaw*|x"})], len(chosen(rows, {"split": "!id"}))
    ([2.0], 1)
    """

    def fits(row: Row, field: str, wanted: str) -> bool:
        if field not in row and field != "part":
            raise PageError(f"rows have no field {field!r}: {', '.join(row)}")
        text, allowed = str(row.get(field) or ""), wanted.removeprefix("!").split("|")
        found = any(text.startswith(each[:-1]) if each.endswith("*") else text == each for each in allowed)
        return found != wanted.startswith("!")

    return [row for row in rows if all(fits(row, field, wanted) for field, wanted in where.items())]


def the_one(rows: Sequence[Row], where: Mapping[str, str]) -> Row:
    """The only row that fits."""
    found = chosen(rows, where)
    if len(found) != 1:
        told = "; ".join(f"{field}={value}" for field, value in where.items())
        raise PageError(f"{len(found)} rows instead of one for: {told}")
    return found[0]


def printed(value: float | None, digits: int = 2) -> str:
    """A number as tables show it.

    >>> [printed(x) for x in (0, 5.37e-6, 0.0123, 0.8666, 2.988, 187.4, 22528, None)]
    ['0', '5.4e-06', '1.2e-02', '0.87', '3.0', '187', '22,528', '']
    """
    if value is None:
        return ""
    size = abs(value)
    if isnan(size):
        return "NaN"
    if size == 0:
        return "0"
    if size < 0.1:
        return f"{value:.{digits - 1}e}"
    if size >= 100:
        return f"{value:,.0f}"
    whole = len(str(int(size))) if size >= 1 else 0
    return f"{value:.{max(0, digits - whole)}f}"


def with_spread(row: Row, digits: int = 2) -> str:
    """The value of a row, with its spread over seeds where there is one."""
    text, spread = printed(row["value"], digits), row.get("std") or 0.0
    # a spread at rounding means that all seeds agree
    if not text or spread < 1e-9 * abs(row["value"]) or not spread or row.get("seeds", 1) < 2:
        return text
    if "e" in text:
        return f"{text} ± {spread:.0e}"
    return f"{text} ± {spread:,.0f}" if spread >= 10 else f"{text} ± {spread:.1g}"
