"""Error budgets, and errors against the numbers of a query."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hycop.colours import COLOURS, colour
from hycop.grid import Array
from hycop.plots.figure import ABOVE, BESIDE, SMALLEST_SHOWN, Axes, Figure, new_figure


def draw_budget(axes: Axes, means: Mapping[str, float], floors: Mapping[str, float]) -> None:
    """Terms of an error as bars on a logarithmic scale, with the levels below which nothing is blamed."""
    marked = False
    for index, (name, mean) in enumerate(means.items()):
        axes.bar(index, max(mean, SMALLEST_SHOWN), color=colour(index))
        if name in floors:
            level = max(floors[name], SMALLEST_SHOWN)
            label = "_" if marked else "nothing below is blamed"  # a name that begins so stays out of the legend
            axes.hlines(level, index - 0.4, index + 0.4, color="black", linestyle="--", label=label)
            marked = True
    axes.set_xticks(range(len(means)), list(means))
    axes.set(yscale="log", ylabel="mean relative L2 error")
    if min(means.values(), default=1.0) < SMALLEST_SHOWN:
        axes.set_ylabel(f"mean relative L2 error, or {SMALLEST_SHOWN:g} if less")
    axes.grid(True, axis="y", alpha=0.2)
    axes.set_axisbelow(True)
    if marked:
        axes.legend(fontsize=8, **ABOVE)


def bars_figure(terms: Mapping[str, Array], floors: Mapping[str, float], title: str) -> Figure:
    """Terms of an error: their means as bars, with the levels below which nothing is blamed; and every query."""
    figure = new_figure(11, 4)
    left, right = figure.subplots(1, 2)
    draw_budget(left, {name: float(values.mean()) for name, values in terms.items()}, floors)
    order = np.argsort(terms["total"])
    for index, (name, values) in enumerate(terms.items()):
        right.plot(np.maximum(values[order], SMALLEST_SHOWN), ".", color=colour(index), label=name)
    right.set(yscale="log", xlabel="queries, by total error")
    right.legend(fontsize=8, **BESIDE)
    figure.suptitle(title, fontsize=11)
    return figure


def trends_figure(numbers: Mapping[str, Array], errors: Array, title: str) -> Figure:
    """The error of every query against each of its numbers."""
    columns = min(4, len(numbers))
    rows = -(-len(numbers) // columns)
    figure = new_figure(3.0 * columns, 2.6 * rows + 0.5)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, values) in zip(panels, numbers.items(), strict=False):
        axes.plot(values, np.maximum(errors, SMALLEST_SHOWN), ".", color=COLOURS[0])
        axes.set(yscale="log", xlabel=name)
    for axes in panels[len(numbers) :]:
        axes.set_visible(False)
    figure.suptitle(title, fontsize=11)
    return figure
