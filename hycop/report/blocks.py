"""What a page is made of, as plain data: sections of texts, tables, pictures and facts. The template draws them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import ClassVar

PLAIN = (1e-3, 1e5)
"""Numbers between these are written with digits alone, others with a power of ten."""

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 3) -> str:
    """A number as a reader wants it: a few digits, and a power of ten if it is very small or very large.

    >>> number(0.01234), number(4.5012e-5), number(1.0), number(0.0), number(float("inf"))
    ('0.0123', '4.5 × 10⁻⁵', '1', '0', '∞')
    >>> number(123456.0), number(-2.0e-4), number(None), number(65536, 5)
    ('1.23 × 10⁵', '−2 × 10⁻⁴', '–', '65536')
    >>> number(100.0), number(20.0, 2), number(1230.0)
    ('100', '20', '1230')
    """
    if value is None or value != value:
        return "–"
    if not isfinite(value):
        return "∞" if value > 0 else "−∞"
    sign, size = "−" if value < 0 else "", abs(float(value))
    if size == 0:
        return "0"
    # rounding may carry into the next power of ten
    size = float(f"{size:.{digits - 1}e}")
    power = floor(log10(size) + 1e-12)
    if PLAIN[0] <= size < PLAIN[1]:
        decimals = max(0, digits - 1 - power)
        shown = f"{size:.{decimals}f}"
        return sign + (shown.rstrip("0").rstrip(".") if decimals else shown)
    mantissa = f"{size / 10.0**power:.{digits - 1}f}".rstrip("0").rstrip(".")
    return f"{sign}{mantissa} × 10{str(power).translate(SUPERSCRIPTS)}"


def percent(part: float) -> str:
    """
    >>> percent(0.846)
    '85 %'
    """
    return f"{100 * part:.0f} %"


def readable(text: str) -> str:
    """A sentence whose numbers are written as elsewhere on the page.

    >>> readable("splitting 6.4e-05 of the error 2e-03, 67% of it")
    'splitting 6.4 × 10⁻⁵ of the error 0.002, 67 % of it'
    """
    text = re.sub(r"(?<=\d)%", " %", text)
    return re.sub(r"\d(?:\.\d+)?e[+-]\d+", lambda found: number(float(found[0])), text)


def ratio(ours: float, theirs: float) -> str:
    """How two errors compare, in words.

    >>> ratio(1.0, 2.5), ratio(3.0, 1.5), ratio(1.0, 1.01)
    ('2.5 times smaller', '2 times larger', 'equal within 2 %')
    >>> ratio(1.0, 1.25)
    '20 % smaller'
    """
    if not (isfinite(ours) and isfinite(theirs)) or min(ours, theirs) <= 0:
        return "not comparable"
    if max(ours, theirs) <= 1.02 * min(ours, theirs):
        return "equal within 2 %"
    way = "smaller" if ours < theirs else "larger"
    if max(ours, theirs) < 1.5 * min(ours, theirs):
        return f"{percent(abs(1 - ours / theirs))} {way}"
    return f"{number(max(ours, theirs) / min(ours, theirs), 2)} times {way}"


def sentence(text: str) -> str:
    """The text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "query"), counted(3, "query")
    ('1 query', '3 queries')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"


@dataclass(frozen=True)
class Text:
    """A paragraph. With ``strong`` it is set off, as the result of a section."""

    text: str
    strong: bool = False

    kind: ClassVar[str] = "text"


@dataclass(frozen=True)
class Facts:
    """Names and what they are."""

    entries: Sequence[tuple[str, str]]

    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings; the first cell of a row is its name. ``marked`` rows are set off. Cells of a
    ``numeric`` table are aligned at the right, except those of the columns ``words``."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = frozenset()
    numeric: bool = True
    words: frozenset[int] = frozenset()

    kind: ClassVar[str] = "table"


@dataclass(frozen=True)
class Picture:
    """A picture: ``source`` is SVG code that this package has written, or the address of a PNG within the page. ``alt``
    says what it shows to who cannot see it. ``legend`` gives the class of a mark and its meaning."""

    source: str
    alt: str
    caption: str
    legend: Sequence[tuple[str, str]] = ()
    drawn: bool = True
    """Whether it is SVG."""

    kind: ClassVar[str] = "picture"


@dataclass(frozen=True)
class Code:
    """Commands or programs, as they are typed."""

    text: str
    label: str

    kind: ClassVar[str] = "code"


Block = Text | Facts | Table | Picture | Code


@dataclass(frozen=True)
class Section:
    """A part of the page. ``lead`` explains in one sentence what it shows. Where it cannot be made, ``missing`` says
    why."""

    key: str
    title: str
    lead: str
    blocks: Sequence[Block] = ()
    missing: str = ""


@dataclass(frozen=True)
class Page:
    """All of a report: its ``figures`` of merit stand at the top, each a number with what it means."""

    title: str
    subtitle: str
    figures: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    footer: str
