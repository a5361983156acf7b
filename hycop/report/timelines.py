"""Programs as timelines in SVG: one bar a program, as many boxes as it has steps, each as wide as the step is long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from hycop.program import Program
from hycop.report.blocks import number

WIDTH, LABEL, ROW, BAR = 720, 170, 30, 22

MOST_BOXES = 160
"""Boxes of a bar; the others of a longer program are said to be there."""

WIDE = 15.0
"""Width from which a box has room for the first letters of its primitive."""


def letters(names: Sequence[str]) -> dict[str, str]:
    """The shortest beginnings of the names that tell them apart, up to three letters.

    >>> letters(["advection", "diffusion", "reaction"])
    {'advection': 'a', 'diffusion': 'd', 'reaction': 'r'}
    >>> letters(["linear", "localized"])
    {'linear': 'li', 'localized': 'lo'}
    """
    for length in (1, 2, 3):
        short = {name: name[:length] for name in names}
        if len(set(short.values())) == len(names):
            break
    return short


def timelines(programs: Sequence[tuple[str, Program]], names: Sequence[str], alt: str) -> str:
    """Programs under each other, each with its label at the left."""
    short = letters(names)
    height = ROW * len(programs) + 8
    parts = []
    for row, (label, program) in enumerate(programs):
        y = 4 + ROW * row
        parts.append(f'<text class="tick" x="{LABEL - 10}" y="{y + 16}" text-anchor="end">{escape(label)}</text>')
        parts += _boxes(program, list(names), short, y)
    about = escape(alt, quote=True)
    return f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{about}">{"".join(parts)}</svg>'


def _boxes(program: Program, names: Sequence[str], short: Mapping[str, str], y: int) -> list[str]:
    whole = sum(abs(step.duration) for step in program) or 1.0
    shown, left, parts = program.steps[:MOST_BOXES], float(LABEL), []
    room = WIDTH - LABEL - 4
    for step in shown:
        width = room * abs(step.duration) / whole
        back = " back" if step.duration < 0 else ""
        kind = names.index(step.primitive) % 6
        parts.append(
            f'<rect class="step c{kind}{back}" x="{left:.2f}" y="{y}" width="{max(width, 0.3):.2f}" height="{BAR}">'
            f"<title>{escape(str(step))}</title></rect>"
        )
        if width >= WIDE:
            parts.append(
                f'<text class="letter" x="{left + width / 2:.1f}" y="{y + 15}" text-anchor="middle">'
                f"{escape(short[step.primitive])}</text>"
            )
        left += width
    hidden = len(program) - len(shown)
    if hidden:
        parts.append(f'<text class="note" x="{left + 6:.1f}" y="{y + 15}">… {hidden} more</text>')
    return parts


def legend(names: Sequence[str]) -> list[tuple[str, str]]:
    """A box for each primitive, with its letters, and its name."""
    short = letters(names)
    box = (
        '<svg class="swatch" viewBox="0 0 22 16" aria-hidden="true"><rect class="step c{kind}" x="1" y="1" width="20" '
        'height="14"/><text class="letter" x="11" y="12" text-anchor="middle">{text}</text></svg>'
    )
    return [(box.format(kind=index % 6, text=escape(short[name])), name) for index, name in enumerate(names)]


def described(program: Program) -> str:
    """A program in words, for who cannot see its picture.

    >>> described(Program.of(("advection", 0.1), ("reaction", 0.2)))
    'advection for 0.1, then reaction for 0.2'
    """
    shown = [f"{step.primitive} for {number(step.duration)}" for step in program.steps[:12]]
    more = [f"and {len(program) - 12} more steps"] if len(program) > 12 else []
    return ", then ".join([*shown, *more]) or "no steps"
