"""Rows of panels with lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hycop.colours import COLOURS
from hycop.plots.figure import BESIDE, Figure, new_figure


class Panel(NamedTuple):
    """Lines by name, each as its abscissae and ordinates; abscissae are logarithmic, ordinates if ``log``."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    log: bool = False


def lines_figure(panels: Sequence[Sequence[Panel]], title: str) -> Figure:
    """Rows of panels with lines, a colour a name."""
    from matplotlib.ticker import LogLocator, NullFormatter

    columns = max(len(row) for row in panels)
    figure = new_figure(5.4 * columns, 3.2 * len(panels) + 0.6)
    for places, row in zip(figure.subplots(len(panels), columns, squeeze=False), panels, strict=True):
        for axes, panel in zip(places, row, strict=False):
            for index, (name, (x, y)) in enumerate(panel.lines.items()):
                colour, style = COLOURS[index % len(COLOURS)], "-" if index < len(COLOURS) else "--"
                axes.plot(x, y, style, color=colour, marker="o", markersize=4, linewidth=1, label=name)
            axes.set(xscale="log", yscale="log" if panel.log else "linear", xlabel=panel.x, ylabel=panel.y)
            # a range of less than two decades has too few powers of ten for its labels
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.tick_params(axis="x", labelsize=8)
            axes.set_title(panel.title, fontsize=9)
            axes.grid(True, which="both", alpha=0.2)
            axes.legend(fontsize=7, **BESIDE)
        for axes in places[len(row) :]:
            axes.set_visible(False)
    figure.suptitle(title, fontsize=11)
    return figure
