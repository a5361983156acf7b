"""HTML for notebooks: tables, and programs as timelines. Self-contained, readable on light and dark pages.

Every text is escaped here, whoever has chosen it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from hycop.colours import by_name, ink

# text has the colour of the page around it, and lines are half transparent, so that both kinds of page suit
_BOX = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;color:inherit;max-width:60em"
_HEAD = "font-weight:600;margin:0 0 4px 0"
_TABLE = "font-size:inherit;border-collapse:collapse;margin:2px 0;color:inherit"
_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0;border:0;border-top:1px solid rgba(128,128,128,.35)"
_LABEL = f"{_CELL};opacity:.75;white-space:nowrap;font-weight:400"

WIDTH = 640
"""Width of a timeline, in the units of its SVG; it shrinks with the page."""

PER_DIGIT = 7
"""Width of a digit; a step shows its duration if it is wide enough."""

Html = str
"""Text that is markup already."""


def page(title: str, *parts: Html) -> Html:
    """A titled block."""
    return f'<div style="{_BOX}"><p style="{_HEAD}">{escape(title)}</p>{"".join(parts)}</div>'


def facts(entries: Iterable[tuple[str, str]]) -> Html:
    """Names and their values, a line each; a name may be empty where the value goes on."""
    lines = "".join(
        f'<tr><th scope="row" style="{_LABEL}">{escape(name)}</th><td style="{_CELL}">{escape(value)}</td></tr>'
        for name, value in entries
    )
    return f'<table style="{_TABLE}">{lines}</table>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table with a line of headings.

    >>> "&lt;b&gt;" in table(["name"], [["<b>"]])
    True
    """
    head = "".join(f'<th scope="col" style="{_LABEL}">{escape(name)}</th>' for name in columns)
    lines = [[f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def note(text: str) -> Html:
    return f'<p style="margin:4px 0;opacity:.8">{escape(text)}</p>'


def preformatted(text: str) -> Html:
    return f'<pre style="margin:4px 0;color:inherit;background:none;white-space:pre-wrap">{escape(text)}</pre>'


Steps = Sequence[tuple[str, float]]
"""Primitive and duration, first step first."""


def timelines(programs: Mapping[str, Steps], names: Sequence[str] = ()) -> Html:
    """Programs by label as an SVG: a bar for each step, as wide as it is long, with a colour for each primitive. Steps
    back in time have a dashed edge. ``names`` fixes the order of the colours."""
    used = [name for steps in programs.values() for name, _ in steps]
    colours = by_name([*names, *used])
    longest = max((sum(abs(duration) for _, duration in steps) for steps in programs.values()), default=0.0) or 1.0
    indent = min(180, 8 + 7 * max((len(label) for label in programs), default=0)) if any(programs) else 0
    scale, height, drawn = (WIDTH - indent) / longest, 22, []
    for row, (label, steps) in enumerate(programs.items()):
        top = 4 + row * (height + 8)
        if label:
            drawn.append(f'<text x="0" y="{top + 15}" font-size="12" fill="currentColor">{escape(label[:24])}</text>')
        left = float(indent)
        for name, duration in steps:
            drawn.append(_bar(left, top, abs(duration) * scale, height, name, duration, colours[name]))
            left += abs(duration) * scale
    size = 4 + len(programs) * (height + 8)
    said = escape("; ".join(f"{label}: {_text(steps)}" if label else _text(steps) for label, steps in programs.items()))
    return (
        f'<svg role="img" aria-label="{said}" viewBox="0 0 {WIDTH} {size}" '
        f'style="width:100%;max-width:{WIDTH}px;height:auto;display:block" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(drawn)}</svg>{_legend({name: colours[name] for name in dict.fromkeys(used)})}"
    )


def _bar(left: float, top: int, width: float, height: int, name: str, duration: float, colour: str) -> str:
    edge = 'stroke="#888" stroke-dasharray="3 2"' if duration < 0 else 'stroke="white" stroke-width="1"'
    number = f"{duration:.3g}"
    shown = (
        f'<text x="{left + width / 2:.1f}" y="{top + 15}" font-size="11" text-anchor="middle" '
        f'fill="{ink(colour)}">{number}</text>'
        if width >= PER_DIGIT * len(number) + 4
        else ""
    )
    return (
        f'<g><title>{escape(name)} {duration:.4g}</title><rect x="{left:.2f}" y="{top}" width="{width:.2f}" '
        f'height="{height}" fill="{colour}" {edge}/>{shown}</g>'
    )


def _legend(colours: Mapping[str, str]) -> Html:
    entry = "display:inline-block;margin-right:14px"
    square = "display:inline-block;width:11px;height:11px;margin-right:5px;background:"
    entries = "".join(
        f'<span style="{entry}"><span style="{square}{colour}"></span>{escape(name)}</span>'
        for name, colour in colours.items()
    )
    return f'<div style="margin:2px 0">{entries}</div>'


def _text(steps: Steps) -> str:
    return " → ".join(f"{name} {duration:.4g}" for name, duration in steps) or "no steps"
