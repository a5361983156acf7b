"""Pictures have something on them."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from hycop.plots import (
    Panel,
    Point,
    demo_figure,
    draw_field,
    error_figure,
    lines_figure,
    residual_figure,
    timeline_figure,
)
from hycop.program import Program


@pytest.mark.parametrize("shape", [(16,), (8, 12), (6, 5, 4)])
def test_fields_of_every_dimension(shape: tuple[int, ...]) -> None:
    axes = Figure().subplots()
    draw_field(axes, np.random.default_rng(0).random(shape), [1.0] * len(shape), "u")
    assert axes.lines or axes.images


def test_timelines_are_as_long_as_their_steps() -> None:
    program = Program.of(("a", 0.1), ("b", 0.3), ("a", 0.2))
    axes = timeline_figure({"one": program}, ("a", "b")).axes[0]
    widths = [bar.get_width() for bar in axes.patches if bar.get_width() > 0 and bar.get_height() == 0.62]
    assert widths == pytest.approx([0.1, 0.3, 0.2])


def test_error_against_work_shows_families_and_the_limit() -> None:
    points = [Point("Strang", 10, 1e-2), Point("Strang", 20, 1e-3), Point("Lie", 5, 1e-1)]
    axes = error_figure(points, 1e-4, "title").axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(labels) == {"Strang", "Lie", "limit of the dictionary"}


def test_demo_figure_can_be_saved(tmp_path) -> None:  # type: ignore[no-untyped-def]
    u = np.random.default_rng(0).random((8, 8))
    fields = {"initial": u, "truth": u, "error": u - u.mean()}
    program = Program.of(("a", 0.1), ("b", 0.3))
    figure = demo_figure(fields, [1, 1], {"x": program}, ("a", "b"), [Point("x", 1, 1e-3)], 1e-4, "t")
    figure.savefig(tmp_path / "demo.png")
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_panels_have_their_lines() -> None:
    panel = Panel("id", "cells", "error", {"one": ([1, 2], [0.1, 0.2]), "two": ([1, 4], [0.3, 0.1])}, log=True)
    figure = lines_figure([[panel, panel], [panel]], "title")
    first = figure.axes[0]
    assert [line.get_label() for line in first.lines] == ["one", "two"]
    assert (first.get_xscale(), first.get_yscale(), first.get_xlabel()) == ("log", "log", "cells")
    assert [len(axes.lines) for axes in figure.axes] == [2, 2, 2, 0]


def test_states_share_a_scale_of_colours_and_maps_have_their_own() -> None:
    u = np.random.default_rng(0).random((8, 8))
    figure = residual_figure({"reference": u, "enriched": 2 * u}, {"error reduction (%)": 100 * u}, [1.0, 1.0])
    drawn = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title() for axes in drawn] == ["reference", "enriched", "error reduction (%)"]
    limits = [axes.images[0].get_clim() for axes in drawn]
    assert limits[0] == limits[1] != limits[2]
