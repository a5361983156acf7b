"""Pictures of fields as PNG, drawn with matplotlib on light cards that suit a light and a dark page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hycop.grid import Array
from hycop.plots import COLOURS, draw_difference, draw_field, new_figure

if TYPE_CHECKING:  # importing matplotlib takes half a second, so only drawing pays for it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 120
WIDTH = 9.6
"""Width of a picture in inches; letters are legible when the page shows it about as wide as its text."""

MOST_CHANNELS = 4
"""Channels of a query that are drawn."""


class Fields(NamedTuple):
    """One query: ``initial`` state, ``truth`` and ``prediction``, each (channel, *grid), in a box of these
    ``lengths``."""

    channels: Sequence[str]
    lengths: Sequence[float]
    initial: Array
    truth: Array
    prediction: Array


class SpaceTime(NamedTuple):
    """One channel of one query on a line: states (time, x) of the prediction and, if it is known, of the truth."""

    times: Array
    length: float
    prediction: Array
    truth: Array | None


def png(figure: Figure) -> str:
    """The figure as an address within the page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def fields_png(fields: Fields) -> str:
    """Initial state, truth, prediction and error: a row of images for each channel, or lines in 1D."""
    return png(_lines(fields) if fields.truth.ndim == 2 else _images(fields))


def _images(fields: Fields) -> Figure:
    shown = min(len(fields.channels), MOST_CHANNELS)
    aspect = float(np.clip(fields.lengths[1] / fields.lengths[0], 0.4, 2.0))
    figure = new_figure(WIDTH, (1.75 * aspect + 0.35) * shown)
    for row, axes in enumerate(figure.subplots(shown, 4, squeeze=False)):
        name = fields.channels[row]
        truth, prediction = fields.truth[row], fields.prediction[row]
        finite = [u[np.isfinite(u)] for u in (truth, prediction)]
        low, high = (float(least(np.concatenate(finite))) for least in (np.min, np.max))
        draw_field(axes[0], fields.initial[row], fields.lengths, f"{name}: initial state", cmap="viridis")
        for place, u, label in ((axes[1], truth, "truth"), (axes[2], prediction, "prediction")):
            draw_field(place, u, fields.lengths, f"{name}: {label}", vmin=low, vmax=high, cmap="viridis")
        draw_difference(axes[3], prediction - truth, fields.lengths, f"{name}: prediction − truth")
    return figure


def _lines(fields: Fields) -> Figure:
    shown = min(len(fields.channels), MOST_CHANNELS)
    figure = new_figure(WIDTH, 2.3 * shown + 0.3)
    x = (np.arange(fields.truth.shape[-1]) + 0.5) * fields.lengths[0] / fields.truth.shape[-1]
    for row, (left, right) in enumerate(figure.subplots(shown, 2, squeeze=False, width_ratios=[1.6, 1.0])):
        truth, prediction = fields.truth[row], fields.prediction[row]
        left.plot(x, fields.initial[row], color="0.55", linestyle=":", label="initial state")
        left.plot(x, truth, color="black", linewidth=2.2, label="truth")
        left.plot(x, prediction, color=COLOURS[1], linestyle="--", linewidth=1.6, label="prediction")
        right.plot(x, prediction - truth, color=COLOURS[0])
        right.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
        left.set_title(f"{fields.channels[row]}", fontsize=10)
        right.set_title(f"{fields.channels[row]}: prediction − truth", fontsize=10)
        for axes in (left, right):
            axes.set_xlabel("x")
            axes.grid(True, alpha=0.2)
        if not row:
            left.legend(fontsize=8, ncols=3, loc="best")
    return figure


def space_time_png(picture: SpaceTime) -> str:
    """A channel over space and time: truth, prediction and error on shared axes, or the prediction alone."""
    known = {"prediction": picture.prediction}
    if picture.truth is not None:
        known = {"truth": picture.truth, **known}
    panels = len(known) + (picture.truth is not None)
    figure = new_figure(WIDTH if panels > 1 else WIDTH / 2, 3.0)
    places = figure.subplots(1, panels, squeeze=False, sharey=True)[0]
    every = np.concatenate([u[np.isfinite(u)] for u in known.values()])
    scale = {"vmin": float(every.min()), "vmax": float(every.max())}
    for axes, (name, u) in zip(places, known.items(), strict=False):
        _strip(axes, picture, u, name, "viridis", scale)
    if picture.truth is not None:
        error = picture.prediction - picture.truth
        bound = float(np.nanmax(np.abs(error))) or 1.0
        _strip(places[-1], picture, error, "prediction − truth", "RdBu_r", {"vmin": -bound, "vmax": bound})
    places[0].set_ylabel("time")
    return png(figure)


def _strip(axes: Axes, picture: SpaceTime, u: Array, title: str, colours: str, scale: Mapping[str, float]) -> None:
    """States (time, x), time upwards."""
    cells = u.shape[1]
    x = np.arange(cells + 1) * picture.length / cells
    edges = np.concatenate([picture.times[:1], (picture.times[1:] + picture.times[:-1]) / 2, picture.times[-1:]])
    image = axes.pcolormesh(x, edges, u, cmap=colours, rasterized=True, **scale)  # type: ignore[arg-type]
    figure = axes.figure
    assert figure is not None
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("x")


def maps_png(maps: Mapping[str, Array], lengths: Sequence[float]) -> str:
    """Non-negative maps (*grid) by name, each on a scale of its own."""
    lines = next(iter(maps.values())).ndim == 1
    columns = min(3, len(maps))
    rows = -(-len(maps) // columns)
    figure = new_figure(max(WIDTH / 2, WIDTH * columns / 3), (2.2 if lines else 2.7) * rows)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (name, u) in zip(panels, maps.items(), strict=False):
        options: dict[str, Any] = {} if lines else {"cmap": "cividis", "vmin": 0.0}
        draw_field(axes, u, lengths, "", **options)
        axes.set_title(name, fontsize=8, loc="left")
    for axes in panels[len(maps) :]:
        axes.set_visible(False)
    return png(figure)
