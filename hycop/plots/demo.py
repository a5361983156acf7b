"""The overview that 'hycop demo' draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hycop.grid import Array
from hycop.plots.errors import Point, draw_error_against_work
from hycop.plots.fields import draw_difference, draw_states
from hycop.plots.figure import Figure, new_figure
from hycop.plots.timelines import draw_timelines
from hycop.program import Program


def demo_figure(
    fields: Mapping[str, Array],
    lengths: Sequence[float],
    programs: Mapping[str, Program],
    names: Sequence[str],
    points: Sequence[Point],
    floor: float,
    title: str,
) -> Figure:
    """Fields in the first row; timelines and error against work in the second. The last field is an error."""
    figure = new_figure(12.5, 7.0)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.15], hspace=0.04)
    top, bottom = halves
    top.suptitle(title, fontsize=11)
    panels = top.subplots(1, len(fields), squeeze=False)[0]
    *states, (label, difference) = fields.items()
    draw_states(panels[:-1], dict(states), lengths)
    draw_difference(panels[-1], difference, lengths, label)
    left, right = bottom.subplots(1, 2, width_ratios=[1.0, 0.95])
    draw_timelines(left, programs, names)
    draw_error_against_work(right, points, floor)
    return figure
