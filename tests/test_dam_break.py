"""Exact dam breaks: balances that the equations demand, and the solvers against them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.data import load, save
from hycop.errors import DatasetError, InvalidInputError
from hycop.execution import refined_query
from hycop.experiments.dam_break import exact_dam
from hycop.grid import prolong, restrict
from hycop.problems import problems_with
from hycop.references.dam_break import middle_depth, straight_dam
from tests.helpers import hycop_command

G = 9.81
WENO5 = hycop.problem("dambreak2d").dictionaries["weno5"]


@pytest.mark.parametrize("shallow", [1.0, 0.1, 0.0])
def test_mass_and_momentum_balance(shallow: float) -> None:
    """Mass is kept, and momentum grows by the difference of the pressures at both ends."""
    faces, t = np.linspace(-60, 60, 241), 4.0
    h, hu = straight_dam(faces, t, 2.0, shallow, G)
    assert h.sum() * 0.5 == pytest.approx(60 * (2.0 + shallow), rel=1e-13)
    assert hu.sum() * 0.5 == pytest.approx(t * G / 2 * (4.0 - shallow**2), rel=1e-12)
    assert (np.diff(h) <= 1e-12).all() and h.min() >= 0


def test_shock_and_rarefaction_meet_on_the_plateau() -> None:
    h = middle_depth(2.0, 1.0, G)
    assert h == pytest.approx(1.45384, abs=1e-5)
    still = straight_dam(np.linspace(-1, 1, 5), 0.0, 2.0, 1.0, G)
    np.testing.assert_allclose(still, [[2, 2, 1, 1], [0, 0, 0, 0]])


@pytest.mark.parametrize(("deep", "shallow"), [(1.0, 2.0), (1.0, -0.1), (1.0, 1.0)])
def test_depths_that_are_no_dam_are_refused(deep: float, shallow: float) -> None:
    with pytest.raises(InvalidInputError, match="deep > shallow"):
        straight_dam(np.linspace(-1, 1, 5), 1.0, deep, shallow, G)


def test_the_unsplit_primitive_breaks_a_dam_onto_a_dry_bed() -> None:
    cells, t = 160, 3.0
    faces = np.linspace(-50, 50, cells + 1)
    exact = straight_dam(faces, t, 2.0, 0.0, G)
    problem = hycop.problem("swe1d")
    grid = hycop.Grid.box((cells,), (100.0,), "wall")
    setting = hycop.Setting(grid, problem.channels, {"g": G})
    u0 = np.stack([np.where(faces[:-1] < 0, 2.0, 0.0), np.zeros(cells)])[None]
    query = hycop.Query(u0, setting, np.array([t]))
    parts = problem.dictionaries["unsplit"]
    state = hycop.run(hycop.Program.of(("shallow water", t)), parts, query)[0]
    assert state[0].min() >= 0
    assert np.linalg.norm(state[0] - exact[0]) < 2e-2 * np.linalg.norm(exact[0])
    assert state[0].sum() == pytest.approx(u0[0, 0].sum(), rel=1e-12)


def test_a_file_with_a_dry_bed_goes_to_the_dictionary_that_bears_it(tmp_path: Path) -> None:
    """And to a model's, though its problem has another name, since the equation is the same."""
    save(exact_dam(0.0, "ritter", 24), tmp_path / "dry.nc")
    asked = ("evaluate", "dambreak2d", "--data", "dry.nc", "--scheme", "Lie")
    split = hycop_command(*asked, folder=tmp_path)
    assert split.returncode == 2 and split.stderr.count("\n") == 1
    assert "dry.nc: sample 0 has a dry bed" in split.stderr and "'unsplit'" in split.stderr
    whole = hycop_command(*asked, "--dictionary", "unsplit", "--json", "e.json", folder=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert 0 < json.loads((tmp_path / "e.json").read_text())["rows"][0]["value"] < 0.15
    with pytest.raises(DatasetError, match="'dambreak2d', but 'swe2d' is asked for"):
        load(tmp_path / "dry.nc", "swe2d")
    assert load(tmp_path / "dry.nc", "swe2d", problems_with(hycop.problem("swe2d").equation)).problem == "dambreak2d"
    gas = hycop.problem("ns2d").equation
    assert problems_with(gas) == ("ns2d", "ns2d-pdebench")
    assert problems_with(replace(gas, processes=("somebody's",))) == ()


def test_errors_name_the_sample_of_the_file(tmp_path: Path) -> None:
    """Which is not that of the query, where a sample is asked at several times, nor that of a batch in its order."""
    data = hycop.problem("swe1d").sample(3, "id", seed=1, times=[0.1, 0.2], shape=(16,))
    states = data.states.copy()
    states[1, 0, :, 4:8] = 0.0
    save(replace(data, states=states), tmp_path / "dry.nc")
    asked = ("evaluate", "swe1d", "--data", "dry.nc")
    split = hycop_command(*asked, "--scheme", "Strang", folder=tmp_path)
    assert split.returncode == 2 and "dry.nc: sample 1 has a dry bed" in split.stderr
    refused = hycop_command("train", "swe1d", "--data", "dry.nc", "--out", "run", folder=tmp_path)
    assert refused.returncode == 2 and "dry.nc: sample 1 has a dry bed" in refused.stderr
    assert not (tmp_path / "run").exists()
    states[1, 0, 1, 5] = 0.1
    save(replace(data, states=states), tmp_path / "dry.nc")
    moving = hycop_command(*asked, "--dictionary", "unsplit", "--scheme", "Lie", folder=tmp_path)
    assert moving.returncode == 2 and "h of sample 1, time index 0, is 0 where there is momentum" in moving.stderr


@pytest.mark.parametrize("shallow", [0.25, 0.01])
def test_internal_refinement_does_not_drain_the_shallow_side(shallow: float) -> None:
    data = exact_dam(shallow, "stoker", 24)
    fine = refined_query(data.query, 2)
    assert fine.u0[:, 0].min() > 0
    np.testing.assert_allclose(restrict(fine.u0, (24, 24)), data.query.u0, rtol=0, atol=1e-14)
    smooth = hycop.problem("swe2d").queries(2)
    signs = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    np.testing.assert_array_equal(refined_query(smooth, 2).u0, prolong(smooth.u0, smooth.grid.boundary, 2, signs))
    states = hycop.run(hycop.splitting("Strang x8").programs(data.query, WENO5), WENO5, data.query, refinement=2)
    assert states[0, 0].min() > 0.9 * shallow


def test_the_reference_agrees_with_stoker_before_waves_return() -> None:
    data = hycop.problem("dambreak2d").sample(1, "straight", shape=(64, 64), times=[4.0])
    h, hu = straight_dam(np.linspace(-50, 50, 65), 4.0, 2.0, 1.0, G)
    found = data.truth[0, :, :, 0]
    assert np.linalg.norm(found[0] - h) < 3e-3 * np.linalg.norm(h)
    assert np.linalg.norm(found[1] - hu) < 4e-2 * np.linalg.norm(hu)
    assert np.abs(found[2]).max() < 1e-12 and np.ptp(data.truth[0], axis=2).max() < 1e-12
