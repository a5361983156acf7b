"""Primitives of shallow water against a public solver."""

from __future__ import annotations

import numpy as np
import pytest

import hycop
from hycop.dictionary import Dictionary
from hycop.grid import Array, Grid, prolong, restrict
from hycop.primitives import GravityWave, MomentumAdvection, ShallowWater
from hycop.query import Query, Setting
from tests.helpers import CHANNELS, DATA, SIGNS, G, relative


@pytest.fixture(scope="module")
def pyclaw() -> dict[str, Array]:
    path = DATA / "swe2d_periodic_pyclaw.npz"
    if not path.exists():
        pytest.skip(f"fixture {path} is not there")
    with np.load(path) as file:
        return {name: np.asarray(file[name], dtype=np.float64) for name in ("u0_32", "u_32", "g", "times")}


@pytest.mark.parametrize(
    ("scheme", "refinement", "within", "beyond"),
    [("muscl", 1, 1.8e-2, 6.6e-2), ("weno5", 1, 9.4e-3, 4.5e-2), ("weno5", 2, 3.5e-3, 1.8e-2)],
)
def test_strang_against_pyclaw(
    pyclaw: dict[str, Array], scheme: str, refinement: int, within: float, beyond: float
) -> None:
    """Strang x8 with gravity outside at T = 0.3: six states of the training families, two beyond them."""
    dictionary = Dictionary({"gravity": GravityWave(scheme), "momentum": MomentumAdvection(scheme)})  # type: ignore[arg-type]
    u0 = prolong(pyclaw["u0_32"], ("periodic", "periodic"), refinement, SIGNS)
    grid = Grid.box(u0.shape[2:], 10.0, batch=8)
    query = Query(u0, Setting(grid, CHANNELS, {"g": pyclaw["g"]}), np.full(8, pyclaw["times"][2]))
    programs = hycop.splitting("strang(outer=gravity)").with_substeps(8).programs(query, dictionary)
    out, truth = restrict(hycop.run(programs, dictionary, query), (32, 32)), pyclaw["u_32"][:, 2]
    errors = [relative(u, exact) for u, exact in zip(out, truth, strict=True)]
    assert np.mean(errors[:6]) < within and np.mean(errors[6:]) < beyond


def test_dam_breaks_between_walls_against_pyclaw() -> None:
    path = DATA / "dambreak_walls_pyclaw.npz"
    if not path.exists():
        pytest.skip(f"fixture {path} is not there")
    with np.load(path) as file:
        u0, truth, times = (np.asarray(file[name], dtype=np.float64) for name in ("u0_320", "u_320", "times"))
    setting = Setting(Grid.box((80, 80), 100.0, "wall", batch=2), CHANNELS, {"g": G})
    u, before = restrict(u0, (80, 80)), 0.0
    for index, time in enumerate(times):
        u, before = ShallowWater().flow(u, np.full(2, time - before), setting), time
        assert relative(u, restrict(truth[:, index], (80, 80))) < 4e-2
