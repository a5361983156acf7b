"""The judges of users' equations: they agree with the refined programs that they judge, and with exact solutions."""

from __future__ import annotations

import numpy as np
import pytest

from hycop.errors import HyCOPError
from hycop.experiments.own import CASES, JUDGES, TEXTS
from hycop.formula import equation
from hycop.grid import Grid
from hycop.query import Setting
from hycop.references.py_pde import py_pde_truth
from hycop.references.split_step import split_step


def test_split_step_knows_the_soliton() -> None:
    """ψ = sech(x) e^{it/2} keeps its shape, and so does mass."""
    n, length, time = 256, 40.0, 1.5
    x = (np.arange(n) + 0.5) * length / n - length / 2
    setting = Setting(Grid.box((n,), length), ("u", "v"), {"g": 1.0})
    shape = 1 / np.cosh(x)
    found = split_step(np.stack([shape, 0 * x])[None], setting, np.array([time]))[0]
    assert np.abs(found - shape * np.array([[np.cos(time / 2)], [np.sin(time / 2)]])).max() < 1e-7
    assert abs((found**2).sum() / (shape**2).sum() - 1) < 1e-9


@pytest.mark.parametrize(
    "name",
    ["schrodinger", *(pytest.param(each, marks=pytest.mark.validate) for each in TEXTS if each != "schrodinger")],
)
def test_judges_agree_with_refined_programs(name: str) -> None:
    if name != "schrodinger":
        pytest.importorskip("pde", reason="needs py-pde of the extra 'dev'")
    split = equation(TEXTS[name], name=name)
    truth, refinement = JUDGES[name]
    judge = split.problem(**CASES[name], truth=truth, refinement=refinement).sample(2, "id", 0, estimated=2)
    own = split.problem(**CASES[name]).sample(2, "id", 0, estimated=0)
    assert np.array_equal(judge.query.u0, own.query.u0) or np.abs(judge.query.u0 - own.query.u0).max() < 1e-9
    assert judge.reference_error is not None and judge.reference_error < 1e-4
    assert np.linalg.norm(judge.truth - own.truth) < 3e-4 * np.linalg.norm(own.truth)


def test_py_pde_solves_what_has_a_closed_form() -> None:
    """A wave that is carried, spread and damped; and samples that stand side by side do not see each other."""
    pytest.importorskip("pde", reason="needs py-pde of the extra 'dev'")

    def rates(u, k, on):
        return {"u": -k["c"] * on.slope(u["u"], 0) + k["D"] * on.laplace(u["u"]) - u["u"]}

    n, time = 64, np.array([0.5, 0.25])
    x, c, D = (np.arange(n) + 0.5) / n, np.array([0.4, -0.3]), np.array([4e-3, 2e-3])
    setting = Setting(Grid.box((n,), batch=2), ("u",), {"c": c, "D": D})
    start = np.stack([np.sin(2 * np.pi * x), 3 + np.cos(2 * np.pi * x)])[:, None]
    found = py_pde_truth(rates, ("D",))(start, setting, time)[:, 0]
    fade = np.exp(-time * (1 + 4 * np.pi**2 * D))
    assert np.abs(found[0] - fade[0] * np.sin(2 * np.pi * (x - c[0] * time[0]))).max() < 1e-4
    exact = 3 * np.exp(-time[1]) + fade[1] * np.cos(2 * np.pi * (x - c[1] * time[1]))
    assert np.abs(found[1] - exact).max() < 1e-4
    walled = Setting(Grid.box((n,), boundary="wall", batch=2), ("u",), {"c": c, "D": D})
    with pytest.raises(HyCOPError, match="periodic boxes"):
        py_pde_truth(rates, ("D",))(start, walled, time)
