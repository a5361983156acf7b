"""The pictures of the page, as Bokeh figures that change without being drawn anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    FactorRange,
    HoverTool,
    LinearColorMapper,
    Range1d,
    TapTool,
)
from bokeh.palettes import BuRd9, Viridis256, interp_palette
from bokeh.plotting import figure

from hycop.grid import AXES, Array
from hycop.program import Program

COLOURS = ("#0072B2", "#B34700", "#00755A", "#8F4A7A", "#6B5900", "#4B4F9E", "#5A5A5A")
"""One per primitive; white letters are legible on each, and lanes say the same without colour."""

LIGHT, DARK = {"ink": "#1f2328", "faint": "#d0d7de"}, {"ink": "#e6edf3", "faint": "#444c56"}
MOST_PIXELS = 256
"""Cells along an axis that are sent to the page; finer fields are thinned out."""

LABELLED = 0.09
"""Fraction of the timeline from which a step has room for its duration."""

STATE, DIFFERENCE = tuple(Viridis256), tuple(interp_palette(BuRd9, 256))


def _bare(**options: Any) -> Any:
    plot = figure(toolbar_location=None, sizing_mode="stretch_width", tools="", **options)
    plot.background_fill_alpha = plot.border_fill_alpha = 0.0
    plot.outline_line_color = None
    plot.axis.major_label_text_font_size = plot.axis.axis_label_text_font_size = "12px"
    plot.axis.axis_label_text_font_style = "normal"
    return plot


def paint(plot: Any, dark: bool) -> None:
    """Gives axes and letters the colours of a light or a dark page."""
    tone = DARK if dark else LIGHT
    for axis in plot.axis:
        axis.axis_line_color = axis.major_tick_line_color = tone["ink"]
        axis.minor_tick_line_color = None
        axis.major_label_text_color = axis.axis_label_text_color = tone["ink"]
    plot.grid.grid_line_color = tone["faint"]
    plot.title.text_color = tone["ink"]


class Timeline:
    """A program as steps in lanes, one lane per primitive; the step that is looked at has an edge."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.steps = ColumnDataSource(
            {key: [] for key in ("lane", "left", "right", "colour", "number", "lasts", "text")}
        )
        self.chosen = ColumnDataSource({"lane": [], "left": [], "right": []})
        self.totals = ColumnDataSource({"lane": [], "at": [], "text": []})
        lanes = FactorRange(*reversed(self.names))
        self.plot = _bare(height=70 + 34 * len(self.names), y_range=lanes, x_range=Range1d(0.0, 1.0))
        self.plot.xaxis.axis_label = "durations, one step after the other"
        bars = self.plot.hbar(
            y="lane", left="left", right="right", height=0.72, color="colour", line_color="white", source=self.steps,
            nonselection_fill_alpha=1.0, nonselection_line_color="white",
        )  # fmt: skip
        self.edge = self.plot.hbar(
            y="lane", left="left", right="right", height=0.86, fill_alpha=0.0, line_width=3, source=self.chosen
        )
        self.plot.text(
            x="left", y="lane", text="text", x_offset=5, text_baseline="middle", text_color="white",
            text_font_size="12px", source=self.steps, level="annotation",
        )  # fmt: skip
        self.sums = self.plot.text(
            x="at", y="lane", text="text", x_offset=8, text_baseline="middle", text_font_size="12px", source=self.totals
        )
        self.plot.ygrid.grid_line_color = None
        tips = [("step", "@number"), ("primitive", "@lane"), ("duration", "@lasts")]
        self.plot.add_tools(HoverTool(renderers=[bars], tooltips=tips), TapTool(renderers=[bars]))

    def show(self, program: Program) -> None:
        ends = np.cumsum([abs(step.duration) for step in program])
        starts = np.concatenate([[0.0], ends[:-1]]) if len(program) else np.zeros(0)
        total = float(ends[-1]) if len(program) and ends[-1] > 0 else 1.0
        colour = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(self.names)}
        wide = [end - start > LABELLED * total for start, end in zip(starts, ends, strict=True)]
        self.steps.data = {
            "lane": [step.primitive for step in program],
            "left": starts.tolist(),
            "right": ends.tolist(),
            "colour": [colour[step.primitive] for step in program],
            "number": [index + 1 for index in range(len(program))],
            "lasts": [f"{step.duration:.4g}" for step in program],
            "text": [f"{step.duration:.3g}" if room else "" for step, room in zip(program, wide, strict=True)],
        }
        sums = [sum(step.duration for step in program if step.primitive == name) for name in self.names]
        texts = [f"total {each:.4g}" for each in sums]
        self.totals.data = {"lane": list(self.names), "at": [total] * len(self.names), "text": texts}
        self.plot.x_range.end = 1.16 * total

    def choose(self, step: int) -> None:
        """Marks a step; 0, the initial state, marks none."""
        data = self.steps.data
        keep = [step - 1] if 0 < step <= len(data["lane"]) else []
        self.chosen.data = {key: [data[key][index] for index in keep] for key in ("lane", "left", "right")}

    def paint(self, dark: bool) -> None:
        paint(self.plot, dark)
        self.plot.ygrid.grid_line_color = None
        ink = (DARK if dark else LIGHT)["ink"]
        self.edge.glyph.line_color = ink
        self.sums.glyph.text_color = ink


class LineField:
    """A field on a line: the initial state, the state after the step, and the best known solution at the end."""

    NAMES = ("initial state", "after the step", "best known solution at T")

    def __init__(self, lengths: Sequence[float]) -> None:
        self.plot = _bare(height=330)
        self.plot.xaxis.axis_label = "x"
        self.sources = [ColumnDataSource({"x": [], "u": []}) for _ in self.NAMES]
        styles = (("#8c8c8c", "dotted", 2), ("#0072B2", "solid", 2.5), ("#D55E00", "dashed", 2))
        for name, source, (colour, dash, width) in zip(self.NAMES, self.sources, styles, strict=True):
            self.plot.line("x", "u", source=source, color=colour, line_dash=dash, line_width=width, legend_label=name)
        self.plot.add_tools(HoverTool(tooltips=[("x", "@x{0.000}"), ("value", "@u{0.0000}")], mode="vline"))
        self.plot.add_layout(self.plot.legend[0], "above")
        self.legend = self.plot.legend[0]
        self.legend.orientation, self.legend.background_fill_alpha = "horizontal", 0.0
        self.legend.border_line_color, self.legend.label_text_font_size = None, "12px"

    def show(self, state: Array, lengths: Sequence[float], limits: tuple[float, float], difference: bool) -> None:
        self._line(1, state, lengths)
        if difference:
            self.beside(None, None, lengths)

    def beside(self, initial: Array | None, best: Array | None, lengths: Sequence[float]) -> None:
        self._line(0, initial, lengths)
        self._line(2, best, lengths)

    def _line(self, place: int, field: Array | None, lengths: Sequence[float]) -> None:
        values = np.zeros(0) if field is None else field
        x = (np.arange(values.size) + 0.5) * lengths[0] / max(1, values.size)
        self.sources[place].data = {"x": x, "u": values}

    def paint(self, dark: bool) -> None:
        paint(self.plot, dark)
        self.legend.label_text_color = (DARK if dark else LIGHT)["ink"]


class PlaneField:
    """A field on a plane, or the middle slice of one in a box, in colours that stay the same along a program."""

    def __init__(self, lengths: Sequence[float]) -> None:
        wide, high = float(lengths[0]), float(lengths[1])
        tall = int(np.clip(60 + 340 * high / wide, 200, 480))
        self.plot = _bare(height=tall, max_width=480, x_range=Range1d(0, wide), y_range=Range1d(0, high))
        self.plot.xaxis.axis_label, self.plot.yaxis.axis_label = AXES[0], AXES[1]
        self.source = ColumnDataSource({"image": [np.zeros((2, 2))], "dw": [wide], "dh": [high]})
        self.mapper = LinearColorMapper(palette=STATE, low=0.0, high=1.0)
        image = self.plot.image(
            "image", x=0, y=0, dw="dw", dh="dh", color_mapper=self.mapper, source=self.source, level="image"
        )
        self.bar = ColorBar(color_mapper=self.mapper, width=14, padding=4, label_standoff=6, background_fill_alpha=0.0)
        self.plot.add_layout(self.bar, "right")
        self.plot.grid.visible = False
        tips = [("x, y", "$x{0.00}, $y{0.00}"), ("value", "@image{0.0000}")]
        self.plot.add_tools(HoverTool(renderers=[image], tooltips=tips))

    def show(self, state: Array, lengths: Sequence[float], limits: tuple[float, float], difference: bool) -> None:
        flat = state[:, :, state.shape[2] // 2] if state.ndim == 3 else state
        thin = tuple(slice(None, None, -(-n // MOST_PIXELS)) for n in flat.shape)
        # the first axis of an array is x, that of an image is y
        image = np.ascontiguousarray(flat[thin].T, dtype=np.float32)
        low, high = limits
        room = 0.0 if high > low else max(1e-12, 1e-6 * abs(high))
        palette = list(DIFFERENCE if difference else STATE)
        self.mapper.update(low=low - room, high=high + room, palette=palette)
        self.source.data = {"image": [image], "dw": [float(lengths[0])], "dh": [float(lengths[1])]}
        self.plot.x_range.end, self.plot.y_range.end = float(lengths[0]), float(lengths[1])

    def paint(self, dark: bool) -> None:
        paint(self.plot, dark)
        self.bar.major_label_text_color = (DARK if dark else LIGHT)["ink"]


class Costs:
    """Error against work, a point for each program; both axes are logarithmic."""

    MARKS = ("circle", "square", "triangle", "diamond", "inverted_triangle")

    def __init__(self) -> None:
        self.source = ColumnDataSource({key: [] for key in ("work", "error", "name", "colour", "mark", "side", "away")})
        self.plot = _bare(
            height=230, x_axis_type="log", y_axis_type="log", x_range=Range1d(1.0, 10.0), y_range=Range1d(1e-3, 1.0)
        )
        self.plot.xaxis.axis_label, self.plot.yaxis.axis_label = "work", "error"
        points = self.plot.scatter(
            "work", "error", marker="mark", size=12, color="colour", line_color="white", source=self.source
        )
        self.labels = self.plot.text(
            "work",
            "error",
            text="name",
            x_offset="away",
            y_offset=-4,
            text_align="side",
            text_font_size="12px",
            source=self.source,
        )
        tips = [("program", "@name"), ("work", "@work"), ("error", "@error")]
        self.plot.add_tools(HoverTool(renderers=[points], tooltips=tips))

    def show(self, points: Sequence[tuple[str, float, float]]) -> None:
        known: dict[tuple[float, float], str] = {}
        for name, *place in points:
            at = place[0], place[1]
            if np.isfinite(at[1]) and at[1] > 0:  # equal points share a label
                known[at] = f"{known[at]} = {name}" if at in known else name
        if not known:
            return
        work, error = [at[0] for at in known], [at[1] for at in known]
        least, most = min(work), max(work)
        right = [each**2 > least * most for each in work]  # whose label stands on the left, where there is room
        self.source.data = {
            "work": work,
            "error": error,
            "name": list(known.values()),
            "colour": [COLOURS[index % len(COLOURS)] for index in range(len(known))],
            "mark": [self.MARKS[index % len(self.MARKS)] for index in range(len(known))],
            "side": ["right" if each else "left" for each in right],
            "away": [-10 if each else 10 for each in right],
        }
        room = max(1.3, (most / least) ** 0.3)
        self.plot.x_range.update(start=least / room, end=most * room)
        self.plot.y_range.update(start=min(error) / 3, end=max(error) * 3)
        self.plot.xaxis.ticker = [least, most] if most > 1.2 * least else [most]
        self.plot.xaxis.major_label_overrides = {each: f"{each:.3g}" for each in (least, most)}

    def paint(self, dark: bool) -> None:
        paint(self.plot, dark)
        self.labels.glyph.text_color = (DARK if dark else LIGHT)["ink"]


Field = LineField | PlaneField


def field_figure(lengths: Sequence[float]) -> Field:
    return LineField(lengths) if len(lengths) == 1 else PlaneField(lengths)
