"""Terms as text and on grids, and the primitive that is made of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.conformance import check_primitive
from hycop.errors import InvalidInputError
from hycop.grid import Array, Grid
from hycop.primitive import EXACT
from hycop.primitives import ExactLogistic, SpectralDiffusion
from hycop.primitives.symbolic import SymbolicTerms
from hycop.query import Channel, Setting
from hycop.terms import Evaluator, Factor, Term

CHANNELS = ("u", "hv", "momentum_x")


@st.composite
def terms(draw: st.DrawFn) -> Term:
    names = draw(st.lists(st.sampled_from(["r", "k", "gamma"]), max_size=2))
    pairs = draw(
        st.lists(
            st.tuples(st.sampled_from(CHANNELS), st.sampled_from(["", "x", "xy", "yy", "xxyy"])),
            max_size=3,
            unique=True,
        )
    )
    factors = tuple(Factor(*pair, draw(st.integers(1, 3))) for pair in sorted(pairs))
    return Term(tuple(sorted(names)), factors)


@given(terms())
def test_a_term_is_its_text(term: Term) -> None:
    assert Term.parse(str(term), CHANNELS) == term


@pytest.mark.parametrize("text", ["u^", "u+1", "sin(u)", "", "u**2", "u_xxxxx", "u^99", "2u", "u*__import__('os')"])
def test_what_is_no_term_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Term.parse(text, ("u",))
    assert "\n" not in str(caught.value) and "term" in str(caught.value)


def box(shape: tuple[int, ...], boundary: tuple[str, ...], channels: tuple[Channel, ...], **params: float) -> Setting:
    return Setting(Grid.box(shape, (2.0, 1.0)[: len(shape)], boundary, batch=2), channels, params)


@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
@pytest.mark.parametrize(("text", "order"), [("u_x", 1), ("u_xx", 2), ("u_xxx", 3), ("u_xxxx", 4), ("u*u_x", 1)])
def test_derivatives_converge_with_at_least_fourth_order(text: str, order: int, boundary: str) -> None:
    """cos(kx) has no slope at walls; its averages over cells are known."""
    k, errors = np.pi, []
    for n in (32, 64, 128) if text == "u*u_x" else (16, 32, 64):
        setting = box((n,), (boundary,), (Channel("u"),))
        dx = 2.0 / n
        edges = np.linspace(0, 2.0, n + 1)
        u = np.diff(np.sin(k * edges) / k) / dx
        (got,) = Evaluator([Term.parse(text, ("u",))], setting).values(np.tile(u, (2, 1, 1)))
        if text == "u*u_x":
            exact = np.diff(0.5 * np.cos(k * edges) ** 2) / dx
        else:
            antiderivative = [np.sin, np.cos, lambda z: -np.sin(z), lambda z: -np.cos(z)]
            exact = np.diff(k ** (order - 1) * antiderivative[order % 4](k * edges)) / dx
        errors.append(float(np.abs(got[0] - exact).max()))
    least = 1.9 if text == "u*u_x" else 3.8  # the square of averages is of second order
    floor = 1e-9 * k**order * 64**order / 64  # rounding of high derivatives
    assert errors[2] < floor or np.log2(errors[1] / errors[2]) > least, errors


def test_momentum_normal_to_a_wall_is_mirrored_with_the_other_sign() -> None:
    channels = (Channel("m", normal=0),)
    setting = box((32,), ("wall",), channels)
    x = (np.arange(32) + 0.5) / 16
    u = np.tile(np.sin(np.pi * x / 2), (2, 1, 1))
    (slope,) = Evaluator([Term.parse("m_x", ("m",))], setting).values(u)
    assert np.abs(slope[0] - np.pi / 2 * np.cos(np.pi * x / 2)).max() < 1e-4


SETS = {
    "pointwise": SymbolicTerms(("u",), ("u", "u", "u"), ("u", "u^2", "u^3"), (-1.6, 6.8, -5.2)),
    "coefficient": SymbolicTerms(("u",), ("u", "u"), ("r*u", "1"), (0.5, 0.3)),
    "two species": SymbolicTerms(("a", "b"), ("a", "b"), ("a*b", "a^2*b"), (-0.8, 0.5)),
    "diffusion": SymbolicTerms(("u",), ("u", "u"), ("u_xx", "u_yyyy"), (0.02, -1e-5)),
    "wind": SymbolicTerms(("u",), ("u",), ("u_x",), (-0.4,)),
    "mixed": SymbolicTerms(("u",), ("u", "u"), ("u*u_x", "u_xx"), (-0.8, 0.01)),
    "drag": SymbolicTerms(("h", "hu", "hv"), ("hu", "hv"), ("hu", "hv"), (-0.3, -0.3), normals=(None, 0, 1)),
}


@pytest.mark.parametrize("name", ["diffusion", "wind", "drag", "coefficient"])
def test_primitives_of_terms_keep_the_contract(name: str) -> None:
    report = check_primitive(SETS[name])
    assert report.passed, report


@pytest.mark.validate
@pytest.mark.parametrize("name", SETS)
def test_all_sets_of_terms_keep_the_contract(name: str) -> None:
    report = check_primitive(SETS[name])
    assert report.passed, report


def test_named_terms_are_the_primitives_that_have_them_in_closed_form() -> None:
    u, setting = ExactLogistic().example(0)
    growth = SymbolicTerms(("u",), ("u", "u"), ("r*u", "r*u^2"), (1.0, -1.0))
    tau = np.array([0.1, 1.0, 3.0])
    assert np.abs(growth.flow(u, tau, setting) - ExactLogistic().flow(u, tau, setting)).max() < 1e-13
    u, setting = SpectralDiffusion().example(0)
    spreading = SymbolicTerms(("u",), ("u", "u"), ("Dx*u_xx", "Dy*u_yy"), (1.0, 1.0))
    assert np.abs(spreading.flow(u, tau, setting) - SpectralDiffusion().flow(u, tau, setting)).max() < 1e-13
    assert growth.order == spreading.order == EXACT and spreading.conserves == {"u"} and not growth.conserves


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 3.0), st.floats(0.05, 0.95), st.floats(0.0, 5.0))
def test_a_solution_that_runs_to_infinity_becomes_nan_in_its_own_cells_sample_only(
    rate: float, start: float, tau: float
) -> None:
    """u' = a u²: u = u0/(1 − a u0 t)."""
    setting = box((4,), ("periodic",), (Channel("u"),))
    u = np.stack([np.full((1, 4), start), np.full((1, 4), 0.01)])
    primitive = SymbolicTerms(("u",), ("u",), ("u^2",), (rate,))
    out: Array = primitive.flow(u, np.array([tau, 0.1]), setting)
    left = 1 - rate * start * tau
    if left > 1e-3:
        assert out[0] == pytest.approx(start / left, rel=1e-11)
    elif left < 0:
        assert np.isnan(out[0]).all()
    assert out[1] == pytest.approx(0.01 / (1 - rate * 0.001), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"terms": ("u",)}, "as many"),
        ({"amounts": (1.0, float("nan"))}, "finite"),
        ({"targets": ("u", "v")}, "'v'"),
        ({"terms": ("u", "u + 1")}, "term"),
        ({"process": ""}, "process"),
        ({"normals": (0, 1)}, "normals"),
        ({"normals": (7,)}, "normals"),
        ({"normals": ("x",)}, "normals"),
        ({"state": ("u", "u"), "normals": ()}, "not different"),
        ({"amounts": (True, 1.0)}, "finite"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        SymbolicTerms(**options)  # type: ignore[arg-type]


def test_a_derivative_along_an_axis_that_is_not_there_is_refused() -> None:
    primitive = SymbolicTerms(("u",), ("u",), ("u*u_z",), (1.0,))
    setting = Setting(Grid.box((8, 8), batch=1), (Channel("u"),), {})
    with pytest.raises(InvalidInputError, match="derivative along z"):
        primitive.flow(np.ones((1, 1, 8, 8)), np.ones(1), setting)


def test_a_state_without_the_channel_is_refused() -> None:
    u, setting = ExactLogistic().example(0)
    with pytest.raises(InvalidInputError, match="'T'"):
        SymbolicTerms(("T",), ("T",), ("T^2",), (1.0,)).flow(u, np.ones(3), setting)
