"""Three dimensions: what does not vary along an axis is the 2D solution, on grids of unequal sides, and commands and
pictures take a 3D state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.data import Dataset
from hycop.grid import Array, Grid
from hycop.plots.fields import draw_field
from hycop.plots.figure import new_figure
from hycop.query import Channel, Query, Setting
from hycop.surrogate import HyCOP
from tests.helpers import hycop_command

PROBLEM = hycop.problem("adr3d")
SHAPE = (10, 8, 6)
LENGTHS = (1.0, 0.8, 0.6)


def flat(axis: int, boundary: str = "periodic") -> tuple[Query, Query]:
    """Two queries in 2D, and the same in 3D where nothing varies along an axis, whatever the coefficients there."""
    rng = np.random.default_rng(axis)
    kept = [other for other in range(3) if other != axis]
    names = ("x", "y", "z")
    given = {kind + letter: rng.uniform(0.02, 0.2, 2) for kind in "cD" for letter in names}
    given |= {"r": np.array([0.5, 1.0])}
    if boundary != "periodic":  # what flows against a wall does not stay flat, and the wind decides the sub-steps
        given["c" + names[axis]] = np.zeros(2)
    params: Mapping[str, Array] = {
        **{kind + names[place]: given[kind + names[other]] for kind in "cD" for place, other in enumerate(kept)},
        "r": given["r"],
    }
    plane = Grid.box([SHAPE[other] for other in kept], [LENGTHS[other] for other in kept], boundary, batch=2)
    u = rng.random((2, 1, *plane.shape))
    time = np.array([0.1, 0.2])
    space = Grid.box(SHAPE, LENGTHS, boundary, batch=2)
    lifted = np.broadcast_to(np.expand_dims(u, 2 + axis), (2, 1, *SHAPE)).copy()
    channels = (Channel("u"),)
    return Query(u, Setting(plane, channels, params), time), Query(lifted, Setting(space, channels, given), time)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("name", "boundary"), [("spectral", "periodic"), ("muscl", "wall"), ("upwind", "outflow")])
def test_a_state_that_is_flat_along_an_axis_is_that_of_2d(axis: int, name: str, boundary: str) -> None:
    below, above = flat(axis, boundary)
    answers = []
    for query, problem in ((below, hycop.problem("adr2d")), (above, PROBLEM)):
        parts = problem.named_dictionary(name)
        answers.append(hycop.run(hycop.splitting("strang").programs(query, parts), parts, query))
    lifted = np.broadcast_to(np.expand_dims(answers[0], 2 + axis), answers[1].shape)
    np.testing.assert_allclose(answers[1], lifted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 2])
def test_so_is_the_truth(axis: int) -> None:
    below, above = flat(axis)
    states = []
    for query, problem in ((below, hycop.problem("adr2d")), (above, PROBLEM)):
        reference = replace(problem.subflow(problem.processes), refinement=2)
        states.append(reference.flow(query.u0, query.time, query.setting))
    lifted = np.broadcast_to(np.expand_dims(states[0], 2 + axis), states[1].shape)
    np.testing.assert_allclose(states[1], lifted, rtol=0, atol=1e-7)  # that of the time step of each


def made(samples: int, seed: int, shape: tuple[int, ...] = SHAPE) -> Dataset:
    """Queries of training, answered by many steps of a classical scheme: a truth in no time."""
    query = PROBLEM.queries(samples, "train", seed, shape=shape)
    fine = hycop.splitting("saba4 x4").programs(query, PROBLEM.dictionary)
    states = hycop.run(fine, PROBLEM.dictionary, query)
    times = np.stack([np.zeros(samples), query.time], axis=1)
    return Dataset("adr3d", "train", np.stack([query.u0, states], axis=1), times, query.setting, reference="SABA4 x4")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("space")
    least = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 6}
    model = HyCOP(PROBLEM.dictionary).fit(made(32, 0), made(32, 1), verbose=False, **least)  # type: ignore[arg-type]
    model.save(folder / "run")
    made(3, 2).save(folder / "in.nc")
    return folder


def test_predict_and_its_pictures(run: Path) -> None:
    words = ("predict", "run", "in.nc", "out.nc", "--times", "0.1,0.2", "--plot", "out.png", "--movie", "out.gif")
    done = hycop_command(*words, folder=run)
    assert done.returncode == 0, done.stderr
    assert hycop.load(run / "out.nc").states.shape == (3, 3, 1, *SHAPE)
    assert min((run / name).stat().st_size for name in ("out.png", "out.gif")) > 1000


def test_evaluate(run: Path) -> None:
    judged = hycop_command("evaluate", "run", "--data", "in.nc", "--metric", "frmse_paper_low", folder=run)
    assert judged.returncode == 0 and "10x8x6" in judged.stdout, judged.stderr


def test_a_picture_says_that_it_is_a_slice() -> None:
    figure = new_figure(3, 3)
    axes = figure.subplots()
    u = np.arange(24.0).reshape(4, 3, 2)
    draw_field(axes, u, (1.0, 1.0, 1.0), "u")
    assert axes.get_xlabel() == "middle slice along z"
    assert np.array_equal(axes.images[0].get_array(), u[:, :, 1].T)


@pytest.mark.validate
def test_report(run: Path) -> None:
    done = hycop_command("report", "run", "--data", "in.nc", "--out", "page.html", folder=run)
    assert done.returncode == 0 and (run / "page.html").stat().st_size > 100_000, done.stderr


@pytest.mark.validate
def test_diagnose(run: Path) -> None:
    found = hycop_command("diagnose", "run", "--data", "in.nc", "--samples", "2", "--figures", "figures", folder=run)
    assert found.returncode == 0 and list((run / "figures").iterdir()), found.stderr
