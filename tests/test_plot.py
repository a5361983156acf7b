"""The public pictures: what they take, what they show, and what they refuse."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import hycop
from hycop.errors import InvalidInputError, UnknownNameError
from tests.helpers import SMALL_MODEL, small_data


@pytest.fixture(scope="module")
def line() -> hycop.Dataset:
    return small_data(3, (0.05, 0.1, 0.2))


@pytest.fixture(scope="module")
def plane() -> hycop.Dataset:
    return hycop.problem("swe2d").sample(1, times=[0.05, 0.1], estimated=0)


@pytest.fixture(scope="module")
def answer(line: hycop.Dataset) -> hycop.Answer:
    return hycop.HyCOP.load(SMALL_MODEL).answer(line.query)


def legend_is_outside(axes: Axes) -> bool:
    axes.figure.canvas.draw()  # type: ignore[union-attr]
    legend = axes.get_legend()
    assert legend is not None
    return not axes.get_window_extent().padded(-1).overlaps(legend.get_window_extent())


def test_a_program_on_axes_of_ones_own() -> None:
    axes = Figure().subplots()
    drawn = hycop.plot.program(hycop.Program.of(("a", 0.1), ("b", 0.3)), ax=axes, names=("b", "a"))
    assert drawn is axes and [bar.get_width() for bar in axes.patches] == pytest.approx([0.1, 0.3])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["b", "a"]
    assert axes.patches[0].get_facecolor() != axes.patches[1].get_facecolor()


def test_programs_of_an_answer_have_a_line_each(answer: hycop.Answer) -> None:
    axes = hycop.plot.program(answer)
    assert [label.get_text() for label in axes.get_yticklabels()][:2] == ["query 0, T = 0.05", "query 1, T = 0.1"]
    assert len(axes.get_yticks()) == 9 and legend_is_outside(axes)
    assert len(hycop.plot.program(answer.programs).get_yticks()) == 9
    with pytest.raises(InvalidInputError, match="Program"):
        hycop.plot.program("advection 0.1")  # type: ignore[arg-type]


def test_steps_back_in_time_are_hatched() -> None:
    axes = hycop.plot.program(hycop.Program.of(("a", 0.2), ("a", -0.1)))
    assert [bar.get_hatch() for bar in axes.patches] == [None, "//"]


def test_fields_in_1d_are_lines(line: hycop.Dataset, answer: hycop.Answer) -> None:
    axes = hycop.plot.fields(line, sample=2)
    assert isinstance(axes, Axes) and len(axes.lines) == 4 and legend_is_outside(axes)
    assert np.array_equal(axes.lines[-1].get_ydata(), line.states[2, -1, 0])
    own = Figure().subplots()
    assert hycop.plot.fields(answer, ax=own) is own
    assert np.array_equal(own.lines[1].get_ydata(), answer.states[0, 0])


def test_fields_in_2d_share_a_scale_of_colours(plane: hycop.Dataset) -> None:
    panels = hycop.plot.fields(plane)
    assert isinstance(panels, np.ndarray) and panels.shape == (3, 3)
    for row in panels:
        assert len({axes.images[0].get_clim() for axes in row}) == 1
    assert panels[0, 0].get_title() == "h, t = 0"
    assert hycop.plot.fields(plane, channel="hu").shape == (1, 3)  # type: ignore[union-attr]


def test_space_and_time(line: hycop.Dataset, plane: hycop.Dataset) -> None:
    axes = hycop.plot.space_time(line)
    assert axes.get_xlim()[1] == line.setting.grid.lengths[0, 0] and axes.get_ylim() == (0.0, 0.2)
    assert axes.collections[0].get_array().size == 4 * line.states.shape[-1]  # type: ignore[union-attr]
    with pytest.raises(InvalidInputError, match="in 1D"):
        hycop.plot.space_time(plane)


def test_comparison_has_white_at_zero(plane: hycop.Dataset, answer: hycop.Answer, line: hycop.Dataset) -> None:
    truth, mine, difference = hycop.plot.comparison(plane, plane)
    assert truth.images[0].get_clim() == mine.images[0].get_clim()
    low, high = difference.images[0].get_clim()
    assert low == -high
    panels = hycop.plot.comparison(answer, line, sample=1)
    assert np.allclose(panels[2].lines[0].get_ydata(), answer.states[5, 0] - line.states[1, -1, 0])
    with pytest.raises(InvalidInputError, match="same grid"):
        hycop.plot.comparison(plane, line)


def test_error_against_work_of_evaluated_schemes(line: hycop.Dataset) -> None:
    dictionary = hycop.HyCOP.load(SMALL_MODEL).dictionary
    schemes = [hycop.splitting(name) for name in ("strang", "strang x2", "lie")]
    limit = hycop.DictionaryLimit(dictionary, "own")
    rows = hycop.evaluate(hycop.composed(schemes, dictionary, label="own"), [line.at(-1)], limit_of=limit)
    axes = hycop.plot.error_against_work(rows)
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"Strang", "Lie", "limit of the dictionary"}
    assert legend_is_outside(axes) and axes.get_ylabel() == "relative L2 error"
    with pytest.raises(InvalidInputError, match="rel_l2"):
        hycop.plot.error_against_work(rows, metric="nrmse")


def test_a_front_has_each_model_and_its_opponent() -> None:
    model = hycop.HyCOP.load(SMALL_MODEL)
    axes = hycop.plot.front([model])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["HyCOP", "best classical scheme"]
    with pytest.raises(InvalidInputError, match="at least one"):
        hycop.plot.front([])


def test_what_is_refused(line: hycop.Dataset, plane: hycop.Dataset) -> None:
    with pytest.raises(InvalidInputError, match="there are 3"):
        hycop.plot.fields(line, sample=3)
    with pytest.raises(UnknownNameError, match="did you mean hu"):
        hycop.plot.fields(plane, channel="hhu")
    with pytest.raises(InvalidInputError, match=r"1 axes are given, but 9 \(3 x 3\)"):
        hycop.plot.fields(plane, ax=Figure().subplots())
    with pytest.raises(InvalidInputError, match="Dataset is needed"):
        hycop.plot.fields(line.states)  # type: ignore[arg-type]


SCRIPT = """
import sys
import hycop
before = "matplotlib" in sys.modules
program = hycop.Program.of(("a", 0.1))
hycop.plot.program(program)
alone = "matplotlib.pyplot" in sys.modules
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
hycop.plot.program(program)
print(before, alone, len(plt.get_fignums()))
"""


def test_pyplot_has_the_figure_only_if_somebody_uses_it() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "1"]
