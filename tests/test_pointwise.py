"""Formulas on a tape, and rates in each cell: against SciPy, from text and from functions, and in model folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from hycop.conformance import check_primitive
from hycop.errors import HyCOPError
from hycop.expression import tape_of
from hycop.grid import Grid
from hycop.primitives import ExactLogistic
from hycop.primitives.pointwise import NotCompiledWarning, PointwiseRate
from hycop.query import Setting
from tests.helpers import hycop_command

LEAVES = st.sampled_from(["u", "v", "k", "0.5", "2", "pi"])
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from(["2", "-1", "(-2)", "3"])).map(lambda p: f"({p[0]})^{p[1]}"),
        st.tuples(st.sampled_from(["sin", "cos", "exp", "tanh", "sinh", "cosh", "abs"]), inner).map(
            lambda p: f"{p[0]}({p[1]})"
        ),
        inner.map(lambda text: f"-{text}"),
    ),
    max_leaves=6,
)
U = np.array([[0.3, 0.8, 1.4], [0.9, 0.2, 0.6]])


def numpy_value(text: str, u, v, k):
    """Python's own opinion, in a test only."""
    names = {name: getattr(np, name) for name in ("sin", "cos", "exp", "tanh", "sinh", "cosh", "abs", "pi")}
    with np.errstate(all="ignore"):
        return np.broadcast_to(
            eval(text.replace("^", "**"), {"__builtins__": {}}, {**names, "u": u, "v": v, "k": k}), 3
        )


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(FORMULAS)
def test_a_tape_is_its_formula_and_knows_its_derivative(text: str) -> None:
    tape = tape_of((text,), ("u", "v"), along="u")
    k = np.full(len(tape.coefficients), 0.7)
    value, slope = tape.values(U, k)
    expected = numpy_value(text, U[0], U[1], 0.7)
    fine = np.isfinite(expected) & (np.abs(expected) < 1e6)
    assert np.allclose(value[fine], expected[fine], rtol=1e-11, atol=1e-11)
    h = 1e-5
    ends = [numpy_value(text, U[0] + shift, U[1], 0.7) for shift in (-2 * h, -h, h, 2 * h)]
    with np.errstate(all="ignore"):
        difference = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
    tame = fine & (np.abs(difference) < 1e4) & (np.abs(expected) < 1e2)
    assert np.allclose(slope[tame], difference[tame], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "text", ["", "u+", "u_x", "f(u)", "u.real", "__import__(u)", "u^99", "u**2", "sin", "u,v", "u=1"]
)
def test_what_is_no_formula_is_refused_in_one_line(text: str) -> None:
    if text == "u_x":  # a coefficient as any other, for which a setting must have a value
        assert PointwiseRate(("u",), (text,)).coefficients == ("u_x",)
        return
    with pytest.raises(HyCOPError, match=r"^rate") as found:
        PointwiseRate(("u",), (text,))
    assert "\n" not in str(found.value)


TWO = PointwiseRate(("u", "v"), ("u*(1-u) - a*u*v/(1+b*u)", "tanh(u)*v - v*sqrt(u+v)*exp(-u)"))


def gray_scott(u, v, F, k):
    return F * (1 - u) - u * v**2, u * v**2 - (F + k) * v


def gated(u, r):
    return r * u * (1 - u) if u > 0.1 else 0.1 * r


def tabled(u, r):
    """Numba knows no dictionaries of functions."""
    return {"rate": lambda value: r * np.tanh(value)}["rate"](u)


def test_rates_are_those_of_scipy() -> None:
    u, setting = TWO.example(3)
    duration = np.array([0.3, 2.0, 5.0])
    found = TWO.flow(u, duration, setting)
    for i in range(3):
        a, b = setting.param("a")[i], setting.param("b")[i]

        def rate(_, y, a=a, b=b):
            p, q = y.reshape(2, -1)
            return np.concatenate(
                [p * (1 - p) - a * p * q / (1 + b * p), np.tanh(p) * q - q * np.sqrt(p + q) * np.exp(-p)]
            )

        exact = solve_ivp(rate, (0, duration[i]), u[i].ravel(), "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        assert np.abs(found[i].ravel() - exact).max() < 1e-10


def test_a_closed_form_is_met_to_rounding() -> None:
    rate = PointwiseRate(("u",), ("r*u*(1-u)",))
    u, setting = rate.example(1)
    assert (
        np.abs(rate.flow(u, np.full(3, 4.0), setting) - ExactLogistic().flow(u, np.full(3, 4.0), setting)).max() < 1e-12
    )


CHECKED = {"text": TWO, "loose": PointwiseRate(tolerance=1e-6), "function": PointwiseRate(("u", "v"), gray_scott)}


@pytest.mark.parametrize("primitive", CHECKED.values(), ids=CHECKED)
def test_conformance(primitive: PointwiseRate) -> None:
    report = check_primitive(primitive)
    assert report.passed, str(report)


def test_functions_are_compiled_or_say_why_not() -> None:
    compiled, branched, plain = (
        PointwiseRate(("u", "v"), gray_scott),
        PointwiseRate(("u",), gated),
        PointwiseRate(("u",), tabled),
    )
    assert compiled.interpreted == branched.interpreted == ""
    texts = PointwiseRate(("u", "v"), ("F*(1-u) - u*v^2", "u*v^2 - (F+k)*v"))
    u, setting = texts.example(2)
    duration = np.array([0.5, 1.0, 2.0])
    assert np.abs(compiled.flow(u, duration, setting) - texts.flow(u, duration, setting)).max() < 1e-11
    u, setting = plain.example(2)
    with pytest.warns(NotCompiledWarning, match="runs in NumPy, more slowly, because Numba cannot compile it"):
        found = plain.flow(u, duration, setting)
    expected = PointwiseRate(("u",), ("r*tanh(u)",)).flow(u, duration, setting)
    assert plain.interpreted and np.abs(found - expected).max() < 1e-11


def test_a_pole_is_nan_and_no_endless_loop() -> None:
    u, setting = PointwiseRate(("u",), ("u^2",)).example(0)
    assert np.isnan(PointwiseRate(("u",), ("u^2/1",)).flow(u, np.full(3, 10.0), setting)).any()
    below = Setting(Grid.box((4,)), ("u",), {})
    assert np.isnan(PointwiseRate(("u",), ("sqrt(u)",)).flow(np.full((1, 1, 4), -1.0), np.ones(1), below)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": ("u", "v")}, "2 rates for 1 channels"),
        ({"tolerance": 1.0}, "tolerance is 1.0"),
        ({"state": ("u", "u"), "rates": ("u", "u")}, "each once"),
        ({"rates": lambda r, u: r}, "first arguments must be the channels"),
    ],
)
def test_mistakes_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(HyCOPError, match=message) as found:
        PointwiseRate(**options)  # type: ignore[arg-type]
    assert "\n" not in str(found.value)


FILE = """
import hycop
from hycop.primitives import PointwiseRate
from hycop.problems import own_problem
from hycop.problems.initial_conditions import Wave

split = hycop.equation("u_t = D*u_xx + r*u/(1+u)", name="saturated")
options = dict(
    ranges={"D": (1e-3, 4e-3), "r": (0.5, 1.0)}, initial={"u": Wave(1, 2)}, time=(0.2, 0.8), shape=(16,),
    settings={"max_steps": 5, "tries": 1, "patterns": 1, "samples": 30},
)
text = split.problem(**options)


def growth(u, r):
    return r * u / (1 + u)


function = own_problem(
    hycop.Equation("saturated-function", split.equation.processes, ("u",), split.equation.coefficients),
    split.dictionary.swapping("reaction", PointwiseRate(("u",), growth)),
    **options,
)
"""


def test_text_is_stored_and_functions_come_with_their_file(tmp_path: Path) -> None:
    from hycop.primitives import HELD
    from hycop.surrogate import HyCOP

    (tmp_path / "own.py").write_text(FILE)
    for name in ("text", "function"):
        words = ("train", f"own.py:{name}", "--out", name, "--set", "rounds=1")
        trained = hycop_command(*words, folder=tmp_path)
        assert trained.returncode == 0, trained.stderr
    HELD.clear()  # commands of the tests share a process
    model = HyCOP.load(tmp_path / "text")
    assert model.model.dictionary["reaction"] == PointwiseRate(("u",), ("r*u/(1 + u)",))
    made = hycop_command("data", "own.py:text", "id.nc", "--split", "id", "--samples", "3", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    HELD.clear()
    words = ("predict", "function", "id.nc", "out.nc", "--times", "0.3")
    refused = hycop_command(*words, folder=tmp_path)
    assert refused.returncode == 2 and "--with FILE.py" in refused.stderr
    answered = hycop_command(*words, "--with", "own.py", folder=tmp_path)
    assert answered.returncode == 0, answered.stderr
