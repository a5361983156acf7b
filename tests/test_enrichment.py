"""Enrichment: named terms join a model as a primitive, coefficients are corrected, only the policy is learned again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.corrections import Correction
from hycop.data import Dataset
from hycop.enrichment import Enriched, enrich
from hycop.errors import HyCOPError
from hycop.grid import Array, prolong, restrict
from hycop.metrics import rel_l2
from hycop.primitives import MusclAdvection
from hycop.primitives.symbolic import SymbolicTerms
from hycop.query import Channel
from hycop.surrogate import HyCOP
from tests.helpers import hycop_command
from tests.worlds import LINEAR, column, composing, known, world

SAMPLES = 100
QUICK = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2}


def coefficients(samples: int) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {"cx": rng.uniform(0.2, 1.5, samples), "Dx": rng.uniform(0.01, 0.03, samples)}


def growing(samples: int, rate: float = 0.9) -> Dataset:
    params = coefficients(samples)
    rest = known(params)
    return world(lambda u, derivative: rest(u, derivative) + rate * u * (1 - u), params, samples)


@pytest.fixture(scope="module")
def linear() -> HyCOP:
    return composing(dict(LINEAR), (Channel("u"),), "cx", "Dx")


@pytest.fixture(scope="module")
def enriched(linear: HyCOP) -> Enriched:
    return enrich(linear, growing(SAMPLES), verbose=False, **QUICK)


def test_the_named_terms_become_a_primitive_that_mends_the_model(linear: HyCOP, enriched: Enriched) -> None:
    model = enriched.model.model
    closure = model.dictionary["closure"]
    assert isinstance(closure, SymbolicTerms) and closure.terms == ("u", "u^2")
    assert closure.amounts == pytest.approx((0.9, -0.9), rel=1e-3)
    assert model.equation.processes == (*linear.model.equation.processes, "closure")
    assert enriched.before > 0.05 and enriched.after < 1e-3 and enriched.correlation > 0.999
    assert model.gate.error == pytest.approx(enriched.after, rel=1e-9) and model.gate.samples == SAMPLES - 66
    assert "enriched with closure" in str(enriched.model)


def test_an_enriched_model_is_data_and_holds_on_other_states_grids_and_times(
    enriched: Enriched, tmp_path: Path
) -> None:
    enriched.model.save(tmp_path / "run")
    again = HyCOP.load(tmp_path / "run")
    text = json.loads((tmp_path / "run" / "model.json").read_text())
    part = next(part for part in text["dictionary"] if part["name"] == "closure")
    assert part["primitive"] == "SymbolicTerms" and part["options"]["terms"] == ["u", "u^2"]
    other = growing(8)
    query = other.query
    np.testing.assert_array_equal(again.solve(query).states, enriched.model.solve(query).states)
    fine = again.predict(prolong(query.u0, ("periodic",), 3), other.setting.params, [0.2])
    assert rel_l2(restrict(fine[:, 0], (32,)), other.truth, other.setting).max() < 1e-3
    walled = hycop.swap(again, boundary="wall", primitives={"advection": MusclAdvection()}).model
    grown = walled.answer(walled.query(np.full((1, 1, 32), 0.5), {"cx": 0.0, "Dx": 0.1}, 0.3)).states
    assert grown == pytest.approx(1 / (1 + np.exp(-0.9 * 0.3)), rel=1e-3)


def test_few_pairs_are_enough_to_name_and_leave_the_policy_as_it_was(linear: HyCOP) -> None:
    made = enrich(linear, growing(24), verbose=False)
    assert made.after < 0.1 * made.before and made.model.model.gate.samples == 8
    model = made.model.model
    assert model.calibration is None  # eight pairs are too few, and that of the old model is not true of this one
    assert model.trained is not None and model.trained.errors.size == 16
    assert model.held_out is not None and model.held_out.errors.mean() == pytest.approx(made.after)
    assert "too few to learn a policy" in made.reasons[-1]
    with pytest.raises(HyCOPError, match="foo"):
        enrich(linear, growing(24), verbose=False, foo=1)
    again = enrich(linear, growing(24), verbose=False)
    np.testing.assert_array_equal(again.model.model.theta, made.model.model.theta)


def windy(samples: int) -> Dataset:
    params = coefficients(samples)
    blown = known({**params, "cx": params["cx"] + 0.4})
    return world(blown, params, samples)


def test_a_wrong_wind_is_corrected_and_predictions_apply_it(linear: HyCOP, tmp_path: Path) -> None:
    data = windy(24)
    with pytest.raises(HyCOPError, match="--coefficients"):
        enrich(linear, data, verbose=False)
    made = enrich(linear, data, coefficients=True, verbose=False)
    assert made.closure is None and made.after < 1e-4 < 0.05 < made.before
    assert made.corrections["cx"].plus == pytest.approx(0.4, rel=1e-3)
    made.model.save(tmp_path / "run")
    again = HyCOP.load(tmp_path / "run")
    assert again.model.corrections == made.corrections
    told = again.answer(data.query).states
    assert rel_l2(told, data.truth, data.setting).max() < 1e-4
    np.testing.assert_array_equal(told, again.trace(data.query).states[:, -1])
    assert "cx + 0.4" in str(again)
    # corrected once more with the same data: nothing is left
    with pytest.raises(HyCOPError, match="nothing is missing"):
        enrich(again, data, coefficients=True, verbose=False)


def test_corrections_add_up() -> None:
    both = Correction("k", 1.0, 2.0).after(Correction("k", 3.0, 5.0))
    assert both.applied(7.0) == Correction("k", 1.0, 2.0).applied(Correction("k", 3.0, 5.0).applied(7.0))


def test_a_correction_must_not_make_the_equation_ill_posed(linear: HyCOP) -> None:
    made = hycop.HyCOP.of(replace(linear.model, corrections={"Dx": Correction("Dx", -1.0)}))
    with pytest.raises(HyCOPError, match=r"'Dx' is -0.9 .* not be negative; .* the model's correction, Dx - 1$"):
        made.predict(np.ones((1, 1, 32)), {"cx": 1.0, "Dx": 0.1}, [0.1])


def unexplained(samples: int) -> Dataset:
    params = coefficients(samples)
    rest = known(params)
    mean = {"axis": 2, "keepdims": True}
    return world(lambda u, derivative: rest(u, derivative) - 1.5 * u * u.mean(**mean) ** 2, params, samples)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (lambda: world(known(coefficients(12)), coefficients(12), 12), {}, "nothing is missing"),
        (lambda: growing(12), {"coefficients": True}, "no coefficient of the model is off"),
        (lambda: unexplained(16), {"closure": "symbolic"}, "no candidate explains it"),
        (lambda: growing(12), {"closure": "magic"}, "unknown closure"),
    ],
)
def test_what_cannot_be_enriched_is_refused_in_one_line(data: object, options: dict[str, object], words: str) -> None:
    model = composing(dict(LINEAR), (Channel("u"),), "cx", "Dx")
    with pytest.raises(HyCOPError) as caught:
        enrich(model, data(), verbose=False, **options)  # type: ignore[operator, arg-type]
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_coefficient_in_front_of_terms_becomes_one_of_the_equation(linear: HyCOP) -> None:
    params = coefficients(24)
    params["r"] = np.random.default_rng(2).uniform(0.2, 2.0, 24)
    rest = known(params)
    growth = column(params["r"])
    data = world(lambda u, derivative: rest(u, derivative) + growth * u * (1 - u), params, 24)
    made = enrich(linear, data, verbose=False)
    equation = made.model.model.equation
    assert equation.coefficients["r"].kind == "rate" and made.after < 0.1 * made.before
    with pytest.raises(HyCOPError, match="'r'"):
        made.model.predict(data.states[:1, 0], {"cx": 1.0, "Dx": 0.1}, [0.1])


def test_the_command_writes_a_model_or_nothing(linear: HyCOP, tmp_path: Path) -> None:
    linear.save(tmp_path / "run")
    windy(24).save(tmp_path / "wind.nc")
    run, out, report = tmp_path / "run", tmp_path / "out", tmp_path / "report.json"
    bad = hycop_command("enrich", run, out, "--data", tmp_path / "wind.nc")
    assert bad.returncode == 2 and not out.exists() and bad.stderr.strip().count("\n") == 0
    good = hycop_command("enrich", run, out, "--data", tmp_path / "wind.nc", "--coefficients", "--json", report)
    assert good.returncode == 0, good.stderr
    told = json.loads(report.read_text())
    assert told["missing"][0]["term"] == "u_x" and told["missing"][0]["as"].startswith("cx + 0.4")
    assert told["after"] < 1e-3 * told["before"] and HyCOP.load(out).model.corrections
    again = hycop_command("enrich", run, out, "--data", tmp_path / "wind.nc", "--coefficients")
    assert again.returncode == 2 and "exists already" in again.stderr
    missing = hycop_command("enrich", run, tmp_path / "none", "--data", tmp_path / "nowhere.nc")
    assert missing.returncode == 2 and not (tmp_path / "none").exists()
