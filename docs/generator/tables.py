"""Markdown tables of rows: what stands in the lines, what in the columns, and the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docs.generator.numbers import PageError, Row, chosen, printed, with_spread
from hycop.metrics import METRICS

LABELS = {
    "problem": "problem",
    "split": "split",
    "method": "method",
    "variant": "case",
    "dictionary": "dictionary",
    "grid": "grid",
    "boundary": "boundary",
    "metric": "measure",
    "truth": "truth",
    "time": "T",
    "part": "part",
}
FIRST = ("HyCOP", "HyCOP (walls)", "HyCOP (periodic)", "static", "classical at equal work", "unsplit")
"""Methods in the order in which readers look for them; others follow, and limits come last."""

NO_WORSE = 1.02
"""Errors of at most this many times the lowest are as good."""

EXTRAS = {"work": "work", "seconds_per_sample": "s per query", "seeds": "seeds", "samples": "samples", "time": "T"}


def markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table; columns that are empty in every line are left out.

    >>> print(markdown(["method", "id", "ood"], [["HyCOP", "1", ""], ["Lie", "2", ""]]))
    | method | id |
    |---|---|
    | HyCOP | 1 |
    | Lie | 2 |
    """
    lines = [list(line) for line in body]
    kept = [index for index, _ in enumerate(head) if index == 0 or any(line[index] for line in lines)]
    rows = [[_cell(line[index]) for index in kept] for line in [list(head), *lines]]
    texts = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([texts[0], "|" + "---|" * len(kept), *texts[1:]])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<=", "≤")


def shown(field: str, row: Row) -> str:
    """A field of a row in words."""
    text = row.get(field)
    if field in ("problem", "dictionary") and text and " " not in str(text):
        return f"`{text}`"
    if field == "time" and isinstance(text, float):
        return f"{text:.3g}"
    if field == "grid":
        return str(text).replace("x", " × ")
    return "" if text is None else str(text)


def _order(row: Row) -> tuple[int, int]:
    method = str(row.get("method", ""))
    return method.startswith("limit"), FIRST.index(method) if method in FIRST else len(FIRST)


def _method(row: Row) -> Row:
    """Each seed reaches a limit in its own way, so its name says how; a table needs only that it is the limit."""
    return {**row, "method": "limit"} if str(row.get("method", "")).startswith("limit") else row


def pivot(
    rows: Sequence[Row],
    lines: Sequence[str],
    columns: Sequence[str],
    extras: Sequence[str] = (),
    digits: int = 2,
) -> str:
    """The values of rows as a table. ``lines`` and ``columns`` are fields; ``extras`` are further fields of the first
    row of a line. Columns of the paper's numbers follow where there are any. Where methods stand below each other, the
    lowest error is bold, and what is no worse."""
    unknown = [field for field in (*lines, *columns) if field not in LABELS]
    if unknown:
        raise PageError(f"rows have no field {unknown[0]!r}: {', '.join(LABELS)}")
    rows = [_method(row) for row in rows]
    lines = [field for field in lines if len({str(row.get(field, "")) for row in rows}) > 1] or list(lines[:1])
    if "method" in lines or "method" in columns:
        rows = sorted(rows, key=_order)
    others = [field for field in lines if field != "method"]
    groups: dict[tuple[str, ...], dict[tuple[str, ...], Row]] = {}
    for outer in dict.fromkeys(tuple(shown(field, row) for field in others) for row in rows):
        for row in rows:
            if tuple(shown(field, row) for field in others) == outer:
                line = groups.setdefault(tuple(shown(field, row) for field in lines), {})
                place = tuple(shown(field, row) for field in columns)
                if place in line and line[place]["value"] != row["value"]:
                    told = ", ".join((*(str(row.get(field)) for field in lines), *place))
                    raise PageError(f"two values for one cell ({told}): give more fields as lines")
                line.setdefault(place, row)
    heads = list(dict.fromkeys(place for line in groups.values() for place in line))
    papers = [head for head in heads if any(line[head].get("paper") for line in groups.values() if head in line)]
    best = _best(groups, lines) if "method" in lines else set()
    head = [
        *(LABELS[field] for field in lines),
        *(", ".join(filter(None, place)) or "value" for place in heads),
        *(", ".join(("paper", *filter(None, place))) for place in papers),
        *(EXTRAS[field] for field in extras),
    ]
    body = [
        [
            *names,
            *(_value(line[place], digits, best) if place in line else "" for place in heads),
            *(printed(line[place].get("paper")) if place in line else "" for place in papers),
            *(_extra(field, next(iter(line.values()))) for field in extras),
        ]
        for names, line in groups.items()
    ]
    return markdown(head, body)


Lines = Mapping[tuple[str, ...], Mapping[tuple[str, ...], Row]]


def _best(groups: Lines, lines: Sequence[str]) -> set[int]:
    """The rows (by identity) with the lowest error of their column, or one that is no worse, of all methods whose other
    fields agree. A limit takes no part."""
    contests: dict[tuple[object, ...], list[Row]] = {}
    for names, line in groups.items():
        others = tuple(name for field, name in zip(lines, names, strict=True) if field != "method")
        for place, row in line.items():
            if row.get("metric") in METRICS and row["method"] != "limit" and row["value"] is not None:
                contests.setdefault((others, place), []).append(row)
    return {
        id(row)
        for rows in contests.values()
        for row in rows
        if len(rows) > 1 and row["value"] <= NO_WORSE * min(other["value"] for other in rows)
    }


def _value(row: Row, digits: int, best: set[int]) -> str:
    # JSON has no NaN: a run that blew up, or a measure that is not defined there
    text = "NaN" if row["value"] is None else with_spread(row, digits)
    return f"**{text}**" if id(row) in best else text


def _extra(field: str, row: Row) -> str:
    value = row.get(field) or None
    return f"{value:,}" if isinstance(value, int) else shown(field, row) if field == "time" else printed(value)


def everything(rows: Sequence[Row]) -> str:
    """All rows: a heading for each problem, and below it a table for each measure that opens with a click."""
    if rows and "what" in rows[0]:
        return benchmarks(rows)
    out = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        out.append(f"### {problem}")
        for metric in dict.fromkeys(row["metric"] for row in mine):
            some = chosen(mine, {"metric": metric})
            lines = ("variant", "method", "dictionary", "grid", "boundary")
            table = pivot(some, lines, ("split",), ("work", "seconds_per_sample"))
            out.append(f"<details>\n<summary>{metric}</summary>\n\n{table}\n\n</details>")
    return "\n\n".join(out)


def benchmarks(rows: Sequence[Mapping[str, Any]]) -> str:
    """Ratios with their goals, and who wins, as ``python -m benchmarks`` measures them; a table for each topic."""
    topics = list(dict.fromkeys(str(row["topic"]) for row in rows))
    tables = [_topic([row for row in rows if row["topic"] == topic]) for topic in topics]
    parts = zip(topics, tables, strict=True) if len(topics) > 1 else [("", *tables)]
    return "\n\n".join(f"## {topic}\n\n{table}" if topic else table for topic, table in parts)


def _topic(rows: Sequence[Mapping[str, Any]]) -> str:
    head = ("what", "HyCOP", "opponent", "ratio", "goal", "met", "ahead", "errors", "detail")
    body = []
    for row in rows:
        low, high = row.get("low"), row.get("high")
        spread = "" if low is None or low == high else f" ({printed(low)}–{printed(high)})"
        errors = [printed(each) for each in (row.get("error"), row.get("their_error")) if each is not None]
        body.append(
            (
                str(row["what"]),
                _duration(row.get("ours")),
                _duration(row.get("theirs")),
                f"{printed(row['value'])}{spread}",
                f"{'at least' if row['at_least'] else 'at most'} {printed(row['goal'])}",
                "yes" if row["met"] else "**no**",
                _ahead(row),
                " / ".join(errors),
                str(row["detail"]),
            )
        )
    return markdown(head, body)


def _duration(timing: Mapping[str, float] | None) -> str:
    """CPU seconds in a unit that suits them.

    >>> _duration({"cpu": 0.00042}), _duration({"cpu": 12.0}), _duration(None)
    ('420 µs', '12 s', '')
    """
    if timing is None:
        return ""
    seconds = timing["cpu"]
    unit, scale = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{scale * seconds:.3g} {unit}"


def _ahead(row: Mapping[str, Any]) -> str:
    """Who takes less time, where two are compared."""
    if row.get("ours") is None or row.get("theirs") is None:
        return ""
    ours, theirs = row["ours"]["cpu"], row["theirs"]["cpu"]
    return "HyCOP" if ours <= theirs else str(row["opponent"])
