"""Errors: against work, against a number of the query, and during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hycop.colours import COLOURS
from hycop.grid import Array
from hycop.plots.figure import BESIDE, SMALLEST_SHOWN, Axes, Figure, new_figure

MARKERS = "osD^vPX<>"

OURS = "HyCOP"
"""Family with the mark that stands out."""


class Point(NamedTuple):
    """A method on the plane of work and error, with the family it belongs to and its spread."""

    family: str
    work: float
    error: float
    std: float = 0.0


def draw_error_against_work(axes: Axes, points: Sequence[Point], floor: float | None = None) -> None:
    """Each family of methods as a line from short to long programs; the dictionary's limit as a dashed line."""
    families = list(dict.fromkeys(point.family for point in points))
    for index, family in enumerate(families):
        members = sorted((point for point in points if point.family == family), key=lambda point: point.work)
        ours = family == OURS
        axes.errorbar(
            [point.work for point in members],
            [point.error for point in members],
            yerr=[point.std for point in members] if any(point.std for point in members) else None,
            marker="*" if ours else MARKERS[index % len(MARKERS)],
            markersize=15 if ours else 5,
            markeredgecolor="black" if ours else None,
            markeredgewidth=0.8 if ours else None,
            linewidth=1.2,
            capsize=2,
            color=COLOURS[index % len(COLOURS)],
            linestyle="-" if index < len(COLOURS) else ":",
            label=family,
            zorder=3 if ours else 2,
        )
    if floor is not None:
        axes.axhline(floor, color="0.4", linestyle="--", linewidth=1, label="limit of the dictionary", zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("work per sample (channel-cell updates)")
    axes.set_ylabel("relative L2 error")
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=8, **BESIDE)


def error_figure(points: Sequence[Point], floor: float | None, title: str) -> Figure:
    figure = new_figure(8.5, 5)
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    draw_error_against_work(axes, points, floor)
    return figure


def curve_figure(steps: Array, losses: Array, spread: Array, levels: Mapping[str, float], title: str) -> Figure:
    """A loss against the steps of a run, with its spread over seeds, and levels to compare it with."""
    figure = new_figure(8.5, 4.5)
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
        axes.legend(fontsize=8, **BESIDE)
    return figure


def scatter_figure(regime: Array, errors: Mapping[str, Array], label: str, title: str) -> Figure:
    """The error of every query against a dimensionless number of the query, for several methods."""
    figure = new_figure(8.5, 4.5)
    axes = figure.subplots()
    for index, (name, values) in enumerate(errors.items()):
        axes.scatter(regime, np.maximum(values, SMALLEST_SHOWN), s=12, color=COLOURS[index], label=name)
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel=f"relative L2 error, or {SMALLEST_SHOWN:g} if less")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=8, **BESIDE)
    return figure
