"""Numbers for pairs of names or settings, as coloured cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hycop.grid import Array
from hycop.plots.figure import SMALLEST_SHOWN, Figure, new_figure


def heat_figure(
    maps: Mapping[str, Array], rows: tuple[str, Sequence[str]], columns: tuple[str, Sequence[str]]
) -> Figure:
    """Errors over two settings, each given by its name and its values: a panel a map, all on one logarithmic scale of
    colours, with the numbers in the cells."""
    figure = new_figure(4.6 * len(maps), 3.4)
    panels = figure.subplots(1, len(maps), squeeze=False)[0]
    every = np.log10(np.stack(list(maps.values())))
    low, high = float(every.min()), float(every.max())
    for axes, (title, values), colours in zip(panels, maps.items(), every, strict=True):
        image = axes.imshow(colours, vmin=low, vmax=high, cmap="viridis", aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            shade = "black" if colours[row, column] > 0.5 * (low + high) else "white"
            axes.text(column, row, f"{value:.2g}", ha="center", va="center", fontsize=8, color=shade)
        axes.set_xticks(range(len(columns[1])), columns[1])
        axes.set_yticks(range(len(rows[1])), rows[1])
        axes.set_xlabel(columns[0])
        axes.set_ylabel(rows[0])
        axes.set_title(title, fontsize=9)
    figure.colorbar(image, ax=panels, label="log₁₀ of the relative L2 error")
    return figure


def matrix_figure(names: Sequence[str], values: Array, title: str) -> Figure:
    """Numbers for pairs of names, on a logarithmic scale of colours."""
    figure = new_figure(1.4 * len(names) + 2, 1.1 * len(names) + 1.5)
    axes = figure.subplots()
    colours = np.log10(np.maximum(values, SMALLEST_SHOWN))
    axes.imshow(colours, cmap="viridis")
    for (row, column), value in np.ndenumerate(values):
        if row != column:
            shade = "black" if colours[row, column] > 0.5 * (colours.min() + colours.max()) else "white"
            axes.text(column, row, f"{value:.1e}", ha="center", va="center", fontsize=8, color=shade)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_title(title, fontsize=9)
    return figure
