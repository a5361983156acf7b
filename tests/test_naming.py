"""Naming what an equation lacks, from pairs of states that an independent solver made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hycop.corrections import Correction
from hycop.data import Dataset
from hycop.diagnosis import Missing, MissingTerm, name_missing
from hycop.diagnosis.library import Library
from hycop.diagnosis.missing import percent, rounded, written
from hycop.diagnosis.selection import Normal, certainty, select
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError
from hycop.grid import Array, Grid
from hycop.primitive import Primitive
from hycop.primitives import ExactLogistic, SpectralDiffusion, UpwindAdvection
from hycop.primitives.symbolic import SymbolicTerms
from hycop.query import Channel, Setting
from hycop.surrogate import HyCOP
from tests.worlds import CELLS, LINEAR, TIME, Rate, column, composing, known, steps, world


@pytest.fixture(scope="module")
def params() -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {"cx": rng.uniform(0.2, 1.5, 24), "Dx": rng.uniform(0.01, 0.03, 24)}


@pytest.fixture(scope="module")
def linear() -> HyCOP:
    return composing(dict(LINEAR), (Channel("u"),), "cx", "Dx")


HIDDEN: dict[str, tuple[Rate, dict[str, float]]] = {
    "logistic": (lambda u, derivative: 0.9 * u * (1 - u), {"u": 0.9, "u^2": -0.9}),
    "bistable": (lambda u, derivative: 4 * u * (1 - u) * (u - 0.3), {"u": -1.2, "u^2": 5.2, "u^3": -4.0}),
    "source": (lambda u, derivative: 0.3 + 0 * u, {"1": 0.3}),
    "wind": (lambda u, derivative: -0.4 * derivative(u, 1), {"u_x": -0.4}),
    "less diffusion": (lambda u, derivative: -0.004 * derivative(u, 2), {"u_xx": -0.004}),
    "steepening": (lambda u, derivative: -0.7 * u * derivative(u, 1), {"u*u_x": -0.7}),
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_the_hidden_term_is_named_with_its_constant(kind: str, linear: HyCOP, params: dict[str, Array]) -> None:
    hidden, expected = HIDDEN[kind]
    rest = known(params)
    data = world(lambda u, derivative: rest(u, derivative) + hidden(u, derivative), params)
    missing = name_missing(linear, data)
    assert missing.verdict == "named" and {term.term for term in missing.terms} == set(expected), missing
    for term in missing.terms:
        assert term.coefficient == pytest.approx(expected[term.term], rel=1e-2)
        assert abs(term.coefficient - expected[term.term]) <= 4 * term.error
    assert missing.explained > 0.999 and missing.certainty > 0.9
    shift = {"wind": Correction("cx", 0.4), "less diffusion": Correction("Dx", -0.004)}.get(kind)
    found = missing.corrections
    assert [each.name for each in found] == ([] if shift is None else [shift.name])
    if shift is not None:
        assert found[0].plus == pytest.approx(shift.plus, rel=1e-2)


def test_nothing_is_missing_with_and_without_noise(linear: HyCOP, params: dict[str, Array]) -> None:
    data = world(known(params), params)
    assert name_missing(linear, data).verdict == "nothing"
    noisy = data.states.copy()
    noisy[:, 1] += 0.005 * np.random.default_rng(0).standard_normal(noisy[:, 1].shape)
    found = name_missing(linear, replace(data, states=noisy))
    assert found.verdict == "nothing" and found.noise == pytest.approx(0.005 / 0.5, rel=0.3), found


def test_initial_states_that_are_noisy_or_unresolved_lack_nothing(linear: HyCOP, params: dict[str, Array]) -> None:
    """Their error at the end is smooth: it is told from physics by its estimated size."""
    data = world(known(params), params)
    noisy = data.states.copy()
    noisy[:, 0] += 0.005 * np.random.default_rng(0).standard_normal(noisy[:, 0].shape)
    found = name_missing(linear, replace(data, states=noisy))
    assert found.verdict == "nothing" and found.before > 1e-3, found
    found = name_missing(linear, world(known(params), params, initial=steps))
    assert found.verdict == "nothing" and found.before > 1e-4, found


def test_a_rival_outside_the_library_takes_the_certainty() -> None:
    """Noise hides that a cubic polynomial is not u⁵, but u⁵ alone explains the data with one term."""
    rng = np.random.default_rng(0)
    u = rng.uniform(0.0, 1.0, (24, 400))
    responses = np.stack([u**power for power in (0, 1, 2, 3, 5)])
    normal = Normal.of(responses, u**5 + 0.2 * rng.standard_normal(u.shape))
    tolerance, noise = 1e-3, 400 * 0.2**2
    among = [0, 1, 2, 3]
    chosen = select(normal.whole, among, tolerance, noise).chosen
    assert certainty(normal, among, chosen, (), tolerance, noise) > 0.5
    assert certainty(normal, among, chosen, [4], tolerance, noise) < 0.1


def test_a_source_that_changes_in_time_shows_in_the_middle_frames(linear: HyCOP, params: dict[str, Array]) -> None:
    """0.1 in the first half and 0.5 in the second look like 0.3 at the end."""

    def source(amount: float, time: float) -> Dataset:
        rest = known(params)
        return world(lambda u, derivative: rest(u, derivative) + amount, params, time=time)

    end, steady, early = source(0.3, TIME), source(0.3, TIME / 2), source(0.1, TIME / 2)
    times = np.array([0.0, TIME / 2, TIME])
    frames = [np.stack([end.states[:, 0], middle.states[:, 1], end.states[:, 1]], 1) for middle in (steady, early)]
    found = [name_missing(linear, Dataset("own", "planted", each, times, end.setting)) for each in frames]
    assert [each.verdict for each in found] == ["named", "unknown"], found


def test_a_nonlocal_term_is_not_named(linear: HyCOP, params: dict[str, Array]) -> None:
    rest = known(params)
    data = world(lambda u, derivative: rest(u, derivative) - 1.5 * u * u.mean(axis=2, keepdims=True) ** 2, params)
    missing = name_missing(linear, data)
    assert missing.verdict == "unknown" and not missing.terms and 0 < missing.explained < 1
    assert "no candidate explains it" in str(missing)


def test_a_coefficient_of_the_file_stands_in_front_of_terms(linear: HyCOP, params: dict[str, Array]) -> None:
    """The model does not know r; one value for the whole file is not told from none."""
    r = np.random.default_rng(2).uniform(0.2, 2.0, 24)
    rest, growth = known(params), column(r)
    data = world(lambda u, derivative: rest(u, derivative) + growth * u * (1 - u), {**params, "r": r})
    missing = name_missing(linear, data)
    assert {term.term: round(term.coefficient, 2) for term in missing.terms} == {"r*u": 1.0, "r*u^2": -1.0}
    data = world(lambda u, derivative: rest(u, derivative) + 0.8 * u * (1 - u), {**params, "r": np.full(24, 0.8)})
    missing = name_missing(linear, data)
    assert {term.term: round(term.coefficient, 2) for term in missing.terms} == {"u": 0.8, "u^2": -0.8}


def test_a_growth_rate_that_is_off_is_named_by_its_terms_and_by_itself(params: dict[str, Array]) -> None:
    model = composing({**LINEAR, "reaction": ExactLogistic()}, (Channel("u"),), "cx", "Dx", "r")
    rest, r = known(params), np.random.default_rng(3).uniform(0.2, 1.0, 24)
    data = world(lambda u, derivative: rest(u, derivative) + column(r + 0.5) * u * (1 - u), {**params, "r": r})
    missing = name_missing(model, data)
    assert {term.term for term in missing.terms} == {"u", "u^2"}
    assert missing.to_json()["missing"][0]["as"].startswith("r + 0.5"), missing  # type: ignore[index]


def test_two_species_of_which_one_lacks_its_diffusion() -> None:
    """a and b annihilate, a diffuses in the model, b does in truth too."""
    rng = np.random.default_rng(4)
    params = {"D": rng.uniform(0.01, 0.03, 24), "k": rng.uniform(0.5, 2.0, 24)}
    parts: dict[str, Primitive] = {
        "diffusion": SymbolicTerms(("a", "b"), ("a",), ("D*a_xx",), (1.0,), "diffusion"),
        "annihilation": SymbolicTerms(("a", "b"), ("a", "b"), ("k*a*b",) * 2, (-1.0, -1.0), "annihilation"),
    }
    model = composing(parts, (Channel("a"), Channel("b")), "D", "k")
    spread, k = params["D"][:, None], params["k"][:, None]

    def rate(u: Array, derivative: Callable[[Array, int], Array]) -> Array:
        a, b = u[:, 0], u[:, 1]
        return np.stack([spread * derivative(a, 2) - k * a * b, 0.015 * derivative(b, 2) - k * a * b], axis=1)

    missing = name_missing(model, world(rate, params, channels=2))
    assert [(term.channel, term.term) for term in missing.terms] == [("b", "b_xx")], missing
    assert missing.terms[0].coefficient == pytest.approx(0.015, rel=1e-2)
    assert str(missing).startswith("b_t = … + 0.01")


def test_numerical_diffusion_is_not_taken_for_physics(params: dict[str, Array]) -> None:
    """The upwind scheme errs by more than the data do; its error is that of the grid, not of the equation."""
    model = composing({**LINEAR, "advection": UpwindAdvection()}, (Channel("u"),), "cx", "Dx")
    missing = name_missing(model, world(known(params), params))
    assert missing.verdict == "nothing" and missing.floor > 1e-4, missing


@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
def test_a_shift_of_a_coefficient_is_its_term_at_every_boundary(boundary: str, linear: HyCOP) -> None:
    grid = Grid.box((CELLS,), 1.0, boundary, batch=8)
    setting = Setting(grid, (Channel("u"),), {"Dx": np.linspace(0.01, 0.03, 8)})
    dictionary = Dictionary({"diffusion": SpectralDiffusion()})
    (direction,) = Library.of(linear.model.equation, dictionary, setting).directions
    (((_, term), weight),) = direction.weights.items()
    assert str(term) == "u_xx" and weight == pytest.approx(1.0, rel=1e-3)


def test_equal_seeds_give_equal_results(linear: HyCOP, params: dict[str, Array]) -> None:
    hidden, rest = HIDDEN["source"][0], known(params)
    data = world(lambda u, derivative: rest(u, derivative) + hidden(u, derivative), params)
    assert name_missing(linear, data, seed=3) == name_missing(linear, data, seed=3)


def bad_data(fault: str, data: Dataset) -> object:
    setting, states = data.setting, data.states
    if fault == "one sample":
        return data.take(slice(0, 1))
    if fault == "initial states only":
        return replace(data, states=states[:, :1], times=data.times[:, :1])
    if fault == "times all zero":
        return replace(data, states=states[:, [0, 0]], times=np.zeros((data.samples, 2)))
    if fault == "other channel":
        return replace(data, setting=Setting(setting.grid, (Channel("T"),), setting.params))
    if fault == "other axes":
        grid = Grid.box((4, 8), 1.0, batch=data.samples)
        return replace(data, states=states.reshape(data.samples, 2, 1, 4, 8), setting=replace(setting, grid=grid))
    if fault == "no wind":
        return replace(data, setting=replace(setting, params={"Dx": setting.params["Dx"]}))
    return states


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("one sample", "pairs"),
        ("initial states only", "initial states only"),
        ("times all zero", "pairs"),
        ("other channel", "channel"),
        ("other axes", "axes"),
        ("no wind", "'cx'"),
        ("array", "Dataset"),
    ],
)
def test_bad_data_are_refused_in_one_line(fault: str, word: str, linear: HyCOP, params: dict[str, Array]) -> None:
    data = world(known(params), params)
    with pytest.raises(HyCOPError) as caught:
        name_missing(linear, bad_data(fault, data))  # type: ignore[arg-type]
    assert word in str(caught.value) and "\n" not in str(caught.value)


def test_the_result_reads_as_an_equation_and_as_json() -> None:
    terms = (MissingTerm("u", "u", 0.96671, 0.001), MissingTerm("u", "u^2", -0.96671, 0.001))
    missing = Missing("named", terms, (), 0.99991, 1.0, 0.14, 4e-5, 3e-5, 0.0, 48, ("u",))
    assert str(missing) == "u_t = … + 0.967 u − 0.967 u²  (± 0.001; explains 99.991 % of the residual)"
    shifted = MissingTerm("u", "u_x", -0.4, 1e-4, Correction("cx", 0.4), ("cx*u_x",))
    assert shifted.to_json()["as"] == "cx + 0.4" and str(shifted) == "− 0.4000 (u_x or cx u_x)"
    assert (written("r*u^2*u_x"), percent(0.5), rounded(0.12345, 0.01)) == ("r u² u_x", "50.0 %", "0.123")
