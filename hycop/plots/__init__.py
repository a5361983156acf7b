"""Pictures from arrays and programs: fields, timelines, errors, budgets and movies. The only home of matplotlib.

Importing matplotlib takes half a second, so only drawing does it. ``hycop.plot`` is the public face of this folder.
"""

from hycop.colours import COLOURS
from hycop.plots.budgets import bars_figure, draw_budget, trends_figure
from hycop.plots.demo import demo_figure
from hycop.plots.errors import (
    Point,
    curve_figure,
    draw_error_against_work,
    error_figure,
    scatter_figure,
)
from hycop.plots.fields import (
    Solution,
    dam_figure,
    draw_difference,
    draw_field,
    draw_lines,
    draw_states,
    maps_figure,
    residual_figure,
    solutions_figure,
    trajectory_figure,
)
from hycop.plots.figure import SMALLEST_SHOWN, Axes, Figure, new_axes, new_figure
from hycop.plots.frames import Frames, check_movie, draw_frames, draw_space_time, frames_figure, write_movie
from hycop.plots.matrices import heat_figure, matrix_figure
from hycop.plots.panels import Panel, lines_figure
from hycop.plots.timelines import draw_timelines, timeline_figure

__all__ = [
    "COLOURS",
    "SMALLEST_SHOWN",
    "Axes",
    "Figure",
    "Frames",
    "Panel",
    "Point",
    "Solution",
    "bars_figure",
    "check_movie",
    "curve_figure",
    "dam_figure",
    "demo_figure",
    "draw_budget",
    "draw_difference",
    "draw_error_against_work",
    "draw_field",
    "draw_frames",
    "draw_lines",
    "draw_space_time",
    "draw_states",
    "draw_timelines",
    "error_figure",
    "frames_figure",
    "heat_figure",
    "lines_figure",
    "maps_figure",
    "matrix_figure",
    "new_axes",
    "new_figure",
    "residual_figure",
    "scatter_figure",
    "solutions_figure",
    "timeline_figure",
    "trajectory_figure",
    "trends_figure",
    "write_movie",
]
