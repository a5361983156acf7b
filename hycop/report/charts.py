"""Charts as SVG: points and lines on linear or logarithmic axes. Colours are variables of the page, so that a chart
follows its light or dark colours, and every series has a mark of its own besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

from hycop.report.blocks import SUPERSCRIPTS, number

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 88, 16, 14, 52
"""The chart and its margins, in units of its own."""

MARKS: Sequence[Callable[[float, float], str]] = (
    lambda x, y: f"M{x - 4.5:.1f} {y:.1f}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    lambda x, y: f"M{x - 4.2:.1f} {y - 4.2:.1f}h8.4v8.4h-8.4z",
    lambda x, y: f"M{x:.1f} {y - 5.5:.1f}l5.2 9h-10.4z",
    lambda x, y: f"M{x:.1f} {y - 5.8:.1f}l5.8 5.8l-5.8 5.8l-5.8 -5.8z",
    lambda x, y: f"M{x:.1f} {y + 5.5:.1f}l5.2 -9h-10.4z",
    lambda x, y: f"M{x - 5:.1f} {y - 1.6:.1f}h3.4v-3.4h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4z",
)
"""Outlines of the marks around a point: disc, square, triangle, diamond, triangle upside down, plus."""


@dataclass(frozen=True)
class Series:
    """Points with a name; ``joined`` ones are a line too."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    joined: bool = False


@dataclass(frozen=True)
class Axis:
    """One axis: its label, the values from ``low`` to ``high``, where they are on the page, and the ticks."""

    label: str
    log: bool
    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], label: str, log: bool, start: float, end: float) -> Axis:
        """An axis that has room for all values; on a logarithmic one only those above zero count."""
        shown = [value for value in values if isfinite(value) and (value > 0 or not log)] or [1.0]
        low, high = min(shown), max(shown)
        if log:
            low, high = low / 1.25, high * 1.25
            if high / low < 10.0:  # fewer ticks than a reader needs
                middle = (low * high) ** 0.5
                low, high = middle / 10**0.5, middle * 10**0.5
        else:
            room = 0.04 * (high - low) or 0.5
            low, high = low - room, high + room
        return cls(label, log, low, high, start, end)

    def at(self, value: float) -> float:
        """Where a value is; values beyond the ends are at the ends."""
        low, high = (log10(self.low), log10(self.high)) if self.log else (self.low, self.high)
        place = log10(max(value, self.low)) if self.log else value
        share = min(1.0, max(0.0, (place - low) / (high - low)))
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        if not self.log:
            step = _step((self.high - self.low) / 6)
            return [k * step for k in range(ceil(self.low / step), floor(self.high / step) + 1)]
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        decades = log10(self.high / self.low)
        parts = (1, 2, 5) if decades < 2.5 else (1,)
        every = max(1, ceil(decades / 8))
        found = [part * 10.0**power for power in powers if power % every == 0 for part in parts]
        return [value for value in found if self.low <= value <= self.high]

    def written(self, value: float) -> str:
        """A tick as text: all of an axis that reaches far have powers of ten."""
        text = number(value, 6)
        if self.log and (self.low < 1e-3 or self.high > 1e5):
            power = floor(log10(value) + 1e-9)
            text = f"{number(value / 10.0**power)} × 10{str(power).translate(SUPERSCRIPTS)}"
        return text.removeprefix("1 × ")


def _step(least: float) -> float:
    """The next of 1, 2, 5, 10, … times a power of ten."""
    unit = 10.0 ** floor(log10(least))
    return next(unit * part for part in (1, 2, 5, 10) if unit * part >= least * (1 - 1e-9))


def chart(
    series: Sequence[Series],
    x: str,
    y: str,
    *,
    alt: str,
    log_x: bool = False,
    log_y: bool = True,
    levels: Mapping[str, float] | None = None,
    diagonal: bool = False,
) -> str:
    """A chart. ``levels`` are dashed lines across it, each with a name; ``diagonal`` is the line where both are
    equal."""
    levels = {name: value for name, value in (levels or {}).items() if isfinite(value) and (value > 0 or not log_y)}
    xs = [value for each in series for value in each.x]
    ys = [*(value for each in series for value in each.y), *levels.values()]
    if diagonal:
        xs = ys = [*xs, *ys]
    across = Axis.over(xs, x, log_x, LEFT, WIDTH - RIGHT)
    up = Axis.over(ys, y, log_y, HEIGHT - BOTTOM, TOP)
    parts = [*_frame(across, up)]
    if diagonal:
        parts.append(f'<path class="level" d="M{across.start:.1f} {up.start:.1f}L{across.end:.1f} {up.end:.1f}"/>')
    for name, value in levels.items():
        height = up.at(value)
        parts.append(f'<path class="level" d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="note" x="{WIDTH - RIGHT - 4}" y="{height - 5:.1f}" text-anchor="end">{escape(name)}</text>'
        )
    for index, each in enumerate(series):
        parts += _drawn(each, index, across, up)
    label = escape(alt, quote=True)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def swatch(index: int, joined: bool = False) -> str:
    """The mark of a series, for a legend."""
    line = '<path class="line" d="M0 8H22"/>' if joined else ""
    mark = MARKS[index % len(MARKS)](11.0, 8.0)
    kind = f'class="swatch c{index % 6}" viewBox="0 0 22 16" aria-hidden="true"'
    return f'<svg {kind}>{line}<path class="mark" d="{mark}"/></svg>'


def legend(series: Sequence[Series]) -> list[tuple[str, str]]:
    return [(swatch(index, each.joined), each.name) for index, each in enumerate(series)]


def _frame(across: Axis, up: Axis) -> list[str]:
    """The ticks with their grid lines, and the labels of the axes."""
    parts = []
    for value in across.ticks():
        place = across.at(value)
        parts.append(f'<path class="grid" d="M{place:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(
            f'<text class="tick" x="{place:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
            f"{across.written(value)}</text>"
        )
    for value in up.ticks():
        place = up.at(value)
        parts.append(f'<path class="grid" d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{up.written(value)}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
        f"{escape(across.label)}</text>"
    )
    parts.append(
        f'<text class="axis" transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(up.label)}</text>"
    )
    return parts


def _drawn(each: Series, index: int, across: Axis, up: Axis) -> list[str]:
    shown = [(across.at(a), up.at(b)) for a, b in zip(each.x, each.y, strict=True) if isfinite(a) and isfinite(b)]
    if not shown:
        return []
    parts = []
    if each.joined and len(shown) > 1:
        parts.append(f'<path class="line" d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in shown)}"/>')
    mark = MARKS[index % len(MARKS)]
    if not each.joined or len(shown) <= 60:  # more marks than that hide their line
        parts.append(f'<path class="mark" d="{"".join(mark(a, b) for a, b in shown)}"/>')
    return [f'<g class="c{index % 6}">', *parts, "</g>"]


def bars(values: Mapping[str, float], floors: Mapping[str, float], *, x: str, alt: str) -> str:
    """Horizontal bars on a logarithmic axis, with a tick at the ``floors`` of some of them."""
    row, top = 34, 8
    height = top + row * len(values) + 46
    left = 130
    known = [value for value in (*values.values(), *floors.values()) if value > 0 and isfinite(value)] or [1.0]
    low, high = 10.0 ** floor(log10(min(known)) - 0.3), 1.4 * max(known)
    axis = Axis(x, True, low, max(high, 10 * low), left, WIDTH - 90)
    parts = []
    for value in axis.ticks():
        place = axis.at(value)
        parts.append(f'<path class="grid" d="M{place:.1f} {top}V{height - 40}"/>')
        parts.append(
            f'<text class="tick" x="{place:.1f}" y="{height - 24}" text-anchor="middle">{axis.written(value)}</text>'
        )
    for index, (name, value) in enumerate(values.items()):
        y, end = top + row * index + 5, axis.at(value) if value > 0 else left
        parts.append(f'<text class="axis" x="{left - 10}" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<rect class="bar c{index % 6}" x="{left}" y="{y}" width="{max(0.0, end - left):.1f}" height="24"/>'
        )
        parts.append(f'<text class="tick" x="{end + 8:.1f}" y="{y + 17}">{number(value, 2)}</text>')
        if name in floors and floors[name] > 0:
            place = axis.at(floors[name])
            parts.append(f'<path class="floor" d="M{place:.1f} {y - 4}V{y + 28}"/>')
    parts.append(
        f'<text class="axis" x="{(left + WIDTH - 90) / 2:.0f}" y="{height - 5}" text-anchor="middle">{escape(x)}</text>'
    )
    label = escape(alt, quote=True)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
