"""Pictures: fields, program timelines, and error against work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from hycop.grid import Array
from hycop.program import Program

if TYPE_CHECKING:  # importing matplotlib takes half a second, so only drawing pays for it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as _Figure

Figure: TypeAlias = "_Figure"

COLOURS = ("#3b6fb6", "#e08a1e", "#4f9d55", "#b5468b", "#7a6f5d", "#5b4fa3")

SMALLEST_SHOWN = 1e-8
"""Smallest error that is drawn: errors at rounding would squeeze all others together."""


class Solution(NamedTuple):
    """One channel of one query: the initial state, the truth, and predictions by name."""

    initial: Array
    truth: Array
    predictions: Mapping[str, Array]


class Point(NamedTuple):
    """A method on the plane of work and error, with the family it belongs to and its spread."""

    family: str
    work: float
    error: float
    std: float = 0.0


class Panel(NamedTuple):
    """Lines by name, each as its abscissae and ordinates; abscissae are logarithmic, ordinates if ``log``."""

    title: str
    x: str
    y: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    log: bool = False


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, without a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_field(axes: Axes, u: Array, lengths: Sequence[float], title: str, **options: float | str) -> None:
    """One channel of one sample: a line in 1D, an image in 2D, the middle slice in 3D."""
    if u.ndim == 3:
        u = u[:, :, u.shape[2] // 2]
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
        figure = axes.figure
        assert figure is not None
        figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
        axes.set_xticks([])
        axes.set_yticks([])
    axes.set_title(title, fontsize=9)


def draw_states(panels: Sequence[Axes], states: Mapping[str, Array], lengths: Sequence[float]) -> None:
    """States side by side on one scale of colours."""
    low, high = min(u.min() for u in states.values()), max(u.max() for u in states.values())
    for axes, (label, u) in zip(panels, states.items(), strict=True):
        draw_field(axes, u, lengths, label, vmin=low, vmax=high, cmap="viridis")


def draw_difference(axes: Axes, u: Array, lengths: Sequence[float], title: str) -> None:
    """A difference of two states, white where there is none."""
    bound = float(np.abs(u).max()) or 1.0
    draw_field(axes, u, lengths, title, vmin=-bound, vmax=bound, cmap="RdBu_r")


def draw_lines(above: Axes, below: Axes, solution: Solution, length: float) -> None:
    """A solution in 1D: initial state, truth and predictions above, distance of the predictions to the truth below."""
    x = (np.arange(solution.truth.size) + 0.5) * length / solution.truth.size
    above.plot(x, solution.initial, color="0.6", linestyle=":", label="initial state")
    above.plot(x, solution.truth, color="black", linewidth=2, label="truth")
    for colour, (name, u) in zip(COLOURS, solution.predictions.items(), strict=False):
        above.plot(x, u, color=colour, linestyle="--", label=name)
        below.semilogy(x, np.maximum(np.abs(u - solution.truth), 1e-16), color=colour, label=name)
    above.legend(fontsize=7)
    below.set_xlabel("x")
    below.set_ylabel("|error|")


def draw_timelines(axes: Axes, programs: Mapping[str, Program], names: Sequence[str]) -> None:
    """Programs as bars from left to right, a colour a primitive, as wide as the step is long."""
    colour = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    for row, program in enumerate(programs.values()):
        left = 0.0
        for step in program:
            axes.barh(row, abs(step.duration), left=left, height=0.62, color=colour[step.primitive], edgecolor="white")
            left += abs(step.duration)
    axes.set_yticks(range(len(programs)), list(programs), fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("time spent, summed over the processes")
    from matplotlib.patches import Patch

    handles = [Patch(color=colour[name], label=name) for name in names]
    axes.legend(
        handles=handles, fontsize=8, ncols=len(names), loc="upper center", bbox_to_anchor=(0.5, 1.18), frameon=False
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw_error_against_work(axes: Axes, points: Sequence[Point], floor: float | None = None) -> None:
    """Each family of methods as a line from short to long programs; the dictionary's limit as a dashed line."""
    families = list(dict.fromkeys(point.family for point in points))
    markers = "osD^vP*X<>"
    for index, family in enumerate(families):
        members = sorted((point for point in points if point.family == family), key=lambda point: point.work)
        axes.errorbar(
            [point.work for point in members],
            [point.error for point in members],
            yerr=[point.std for point in members],
            marker=markers[index % len(markers)],
            markersize=4,
            linewidth=1,
            color=COLOURS[index % len(COLOURS)],
            linestyle="-" if index < len(COLOURS) else ":",
            label=family,
        )
    if floor is not None:
        axes.axhline(floor, color="0.4", linestyle="--", linewidth=1, label="limit of the dictionary")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("work per sample (channel-cell updates)")
    axes.set_ylabel("relative L2 error")
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=7, ncols=2)


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
    figure = new_figure(12.5, 7.2)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])
    top, bottom = halves
    top.suptitle(title, fontsize=11)
    panels = top.subplots(1, len(fields), squeeze=False)[0]
    *states, (label, difference) = fields.items()
    draw_states(panels[:-1], dict(states), lengths)
    draw_difference(panels[-1], difference, lengths, label)
    left, right = bottom.subplots(1, 2)
    draw_timelines(left, programs, names)
    draw_error_against_work(right, points, floor)
    return figure


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


def timeline_figure(programs: Mapping[str, Program], names: Sequence[str]) -> Figure:
    figure = new_figure(9, 1.6 + 0.4 * len(programs))
    draw_timelines(figure.subplots(), programs, names)
    return figure


def error_figure(points: Sequence[Point], floor: float | None, title: str) -> Figure:
    figure = new_figure(7, 5)
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    draw_error_against_work(axes, points, floor)
    return figure


def curve_figure(steps: Array, losses: Array, spread: Array, levels: Mapping[str, float], title: str) -> Figure:
    """A loss against the steps of a run, with its spread over seeds, and levels to compare it with."""
    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    axes.plot(steps, losses, color=COLOURS[0])
    axes.fill_between(steps, np.maximum(losses - spread, 0.2 * losses), losses + spread, color=COLOURS[0], alpha=0.2)
    for index, (label, level) in enumerate(levels.items()):
        axes.axhline(level, color=COLOURS[1 + index], linestyle="--", label=label)
    axes.set_yscale("log")
    axes.set_xlabel("generation")
    axes.set_ylabel("relative L2 error")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="both", alpha=0.2)
    if levels:
        axes.legend(fontsize=8)
    return figure


def lines_figure(panels: Sequence[Sequence[Panel]], title: str) -> Figure:
    """Rows of panels with lines, a colour a name."""
    from matplotlib.ticker import LogLocator, NullFormatter

    columns = max(len(row) for row in panels)
    figure = new_figure(4.0 * columns + 1.0, 3.2 * len(panels) + 0.6)
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
            axes.legend(fontsize=7)
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
    axes.set(xlabel="x", title=f"slice at y = {y[middle]:.3g}")
    axes.legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def scatter_figure(regime: Array, errors: Mapping[str, Array], label: str, title: str) -> Figure:
    """The error of every query against a dimensionless number of the query, for several methods."""
    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    for index, (name, values) in enumerate(errors.items()):
        axes.scatter(regime, np.maximum(values, SMALLEST_SHOWN), s=12, color=COLOURS[index], label=name)
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel=f"relative L2 error, or {SMALLEST_SHOWN:g} if less")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=8)
    return figure


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


def bars_figure(terms: Mapping[str, Array], floors: Mapping[str, float], title: str) -> Figure:
    """Terms of an error: their means as bars, with the levels below which nothing is blamed; and every query."""
    figure = new_figure(10, 4)
    left, right = figure.subplots(1, 2)
    order = np.argsort(terms["total"])
    for index, (name, values) in enumerate(terms.items()):
        colour = COLOURS[index % len(COLOURS)]
        left.bar(index, max(values.mean(), SMALLEST_SHOWN), color=colour)
        if name in floors:
            left.hlines(max(floors[name], SMALLEST_SHOWN), index - 0.4, index + 0.4, color="black", linestyle="--")
        right.plot(np.maximum(values[order], SMALLEST_SHOWN), ".", color=colour, label=name)
    left.set_xticks(range(len(terms)), list(terms))
    left.set(yscale="log", ylabel=f"mean relative L2 error, or {SMALLEST_SHOWN:g} if less")
    left.set_title("nothing below a dashed line is blamed", fontsize=9)
    right.set(yscale="log", xlabel="queries, by total error")
    right.legend(fontsize=8)
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
