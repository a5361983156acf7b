"""Fields: states, differences and maps, in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hycop.colours import COLOURS
from hycop.grid import Array
from hycop.plots.figure import ABOVE, Axes, Figure, new_figure


class Solution(NamedTuple):
    """One channel of one query: the initial state, the truth, and predictions by name."""

    initial: Array
    truth: Array
    predictions: Mapping[str, Array]


def draw_field(
    axes: Axes, u: Array, lengths: Sequence[float], title: str, *, colorbar: bool = True, **options: float | str
) -> None:
    """One channel of one sample: a line in 1D, an image in 2D, the middle slice in 3D, which says so."""
    if u.ndim == 3:
        axes.set_xlabel("middle slice along z", fontsize=7)
    u = slice_of(u)
    if u.ndim == 1:
        axes.plot((np.arange(u.size) + 0.5) * lengths[0] / u.size, u, color=COLOURS[0])
        axes.set_xlabel("x")
    else:
        image = axes.imshow(
            u.T,
            origin="lower",
            extent=(0.0, float(lengths[0]), 0.0, float(lengths[1])),
            aspect="equal",
            **options,  # type: ignore[arg-type]
        )
        if colorbar:
            figure = axes.figure
            assert figure is not None
            largest = float(np.abs(image.get_clim()).max())
            # a power of ten above the bar would move the bar out of line with its neighbours
            numbers = None if 1e-2 <= largest < 1e4 else "%.1e"
            bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, format=numbers)
            bar.ax.tick_params(labelsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
    axes.set_title(title, fontsize=9)


def slice_of(u: Array) -> Array:
    """What is drawn of a field: all of it in 1D and 2D, the middle slice in 3D."""
    return u[:, :, u.shape[2] // 2] if u.ndim == 3 else u


def draw_states(panels: Sequence[Axes], states: Mapping[str, Array], lengths: Sequence[float]) -> None:
    """States side by side on one scale of colours."""
    low, high = min(u.min() for u in states.values()), max(u.max() for u in states.values())
    for axes, (label, u) in zip(panels, states.items(), strict=True):
        draw_field(axes, u, lengths, label, vmin=low, vmax=high, cmap="viridis")


def draw_difference(axes: Axes, u: Array, lengths: Sequence[float], title: str) -> None:
    """A difference of two states, on a scale with zero in the middle: white in 2D, a thin line in 1D."""
    bound = float(np.abs(u).max()) or 1.0
    draw_field(axes, u, lengths, title, vmin=-bound, vmax=bound, cmap="RdBu_r")
    if u.ndim == 1:
        axes.axhline(0.0, color="0.6", linewidth=0.8, zorder=1)
        axes.set_ylim(-1.05 * bound, 1.05 * bound)
        axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 4))


def draw_lines(above: Axes, below: Axes, solution: Solution, length: float) -> None:
    """A solution in 1D: initial state, truth and predictions above, distance of the predictions to the truth below."""
    x = (np.arange(solution.truth.size) + 0.5) * length / solution.truth.size
    above.plot(x, solution.initial, color="0.6", linestyle=":", label="initial state")
    above.plot(x, solution.truth, color="black", linewidth=2, label="truth")
    for colour, (name, u) in zip(COLOURS, solution.predictions.items(), strict=False):
        above.plot(x, u, color=colour, linestyle="--", label=name)
        below.semilogy(x, np.maximum(np.abs(u - solution.truth), 1e-16), color=colour, label=name)
    above.legend(fontsize=7, ncols=2, **ABOVE)
    below.set_xlabel("x")
    below.set_ylabel("|error|")


def solutions_figure(solutions: Sequence[Solution], lengths: Sequence[float], title: str) -> Figure:
    """Several queries: a column of lines each in 1D, a row of images each in 2D."""
    count = len(solutions)
    if solutions[0].truth.ndim == 1:
        figure = new_figure(4.2 * count, 5.2)
        panels = figure.subplots(2, count, squeeze=False, height_ratios=[2, 1], sharex=True)
        for (above, below), solution in zip(panels.T, solutions, strict=True):
            draw_lines(above, below, solution, lengths[0])
    else:
        names = list(solutions[0].predictions)
        figure = new_figure(2.9 * (2 + 2 * len(names)), 2.7 * count)
        panels = figure.subplots(count, 2 + 2 * len(names), squeeze=False)
        for row, solution in zip(panels, solutions, strict=True):
            states = {"initial state": solution.initial, "truth": solution.truth, **solution.predictions}
            draw_states(row[: len(states)], states, lengths)
            for axes, (name, u) in zip(row[len(states) :], solution.predictions.items(), strict=True):
                draw_difference(axes, u - solution.truth, lengths, f"{name} − truth")
    figure.suptitle(title, fontsize=11)
    return figure


def trajectory_figure(
    truths: Mapping[str, Array], predictions: Sequence[Array], lengths: Sequence[float], title: str
) -> Figure:
    """A state at several times, each a column: the truth, the prediction, and the difference."""
    figure = new_figure(3.1 * len(truths), 8.4)
    columns = figure.subplots(3, len(truths), squeeze=False).T
    for (above, middle, below), (label, truth), u in zip(columns, truths.items(), predictions, strict=True):
        draw_states((above, middle), {f"truth, {label}": truth, f"HyCOP, {label}": u}, lengths)
        draw_difference(below, u - truth, lengths, "HyCOP − truth")
    figure.suptitle(title, fontsize=11)
    return figure


def dam_figure(truth: Array, states: Mapping[str, Array], lengths: Sequence[float], title: str) -> Figure:
    """A depth as a surface, and its slice through the middle beside those of predictions."""
    figure = new_figure(11, 4.5)
    surface: Any = figure.add_subplot(1, 2, 1, projection="3d")
    x, y = ((np.arange(n) + 0.5) * length / n for n, length in zip(truth.shape, lengths, strict=True))
    few = tuple(slice(None, None, max(1, n // 80)) for n in truth.shape)
    surface.plot_surface(x[few[0], None], y[None, few[1]], truth[few], cmap="viridis", linewidth=0)
    surface.set(xlabel="x", ylabel="y", zlabel="depth", title="truth")
    axes = figure.add_subplot(1, 2, 2)
    middle = truth.shape[1] // 2
    axes.plot(x, truth[:, middle], color="black", linewidth=2, label="truth")
    for colour, (name, u) in zip(COLOURS, states.items(), strict=False):
        axes.plot(x, u[:, middle], color=colour, linestyle="--", label=name)
    axes.set(xlabel="x", ylabel=f"depth at y = {y[middle]:.3g}")
    axes.legend(fontsize=8, ncols=3, **ABOVE)
    figure.suptitle(title, fontsize=11)
    return figure


def maps_figure(maps: Mapping[str, Array], channels: Sequence[str], lengths: Sequence[float], title: str) -> Figure:
    """Maps (channel, *grid) by name, each a column, with a row for every channel."""
    figure = new_figure(3.4 * len(maps), 2.7 * len(channels) + 0.5)
    panels = figure.subplots(len(channels), len(maps), squeeze=False).T
    for column, (name, field) in zip(panels, maps.items(), strict=True):
        for axes, channel, u in zip(column, channels, field, strict=True):
            draw_field(axes, u, lengths, f"{name}, {channel}", cmap="viridis")
    figure.suptitle(title, fontsize=11)
    return figure


def residual_figure(states: Mapping[str, Array], maps: Mapping[str, Array], lengths: Sequence[float]) -> Figure:
    """States (*grid) on one scale of colours, and maps (*grid) each on its own."""
    figure = new_figure(2.9 * (len(states) + len(maps)), 2.7)
    panels = figure.subplots(1, len(states) + len(maps))
    draw_states(panels[: len(states)], states, lengths)
    for axes, (name, u) in zip(panels[len(states) :], maps.items(), strict=True):
        draw_field(axes, u, lengths, name, cmap="magma")
    return figure
