"""A solver of the whole equation that errs less than the composition at no more work answers instead of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.data import Dataset
from hycop.diagnosis.naming import base_dictionary
from hycop.economy import rivals_of
from hycop.errors import HyCOPError, IncompatibleError, InvalidInputError
from hycop.evaluation import SPLITTING
from hycop.execution import measure, run
from hycop.experiments.trial import Trial
from hycop.primitives import MusclAdvection
from hycop.surrogate import HyCOP
from hycop.training.config import TrainingConfig
from hycop.training.unsplit import taking_over
from hycop.transfer import compared

PROBLEM = hycop.problem("swe1d")
SMALL = {"samples": 12, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4, "shape": (32,)}


@pytest.fixture(scope="module")
def model() -> HyCOP:
    return HyCOP(PROBLEM.dictionary).fit(PROBLEM, refinement=1, verbose=False, **SMALL)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return PROBLEM.sample(6, "id", seed=4, shape=(32,), estimated=0)


def test_it_writes_the_programs_and_errs_less(model: HyCOP, data: Dataset) -> None:
    gate, query = model.model.gate, data.query
    assert gate.instead is not None and not gate.learned and gate.whole_error is not None
    assert gate.error == gate.whole_error < min(gate.learned_error, gate.classical_error)
    assert gate.work == gate.whole_work and "the programs are its steps" in gate.explained()[-1]
    assert model.model.record.metrics["held_out_error"] == gate.error and model.model.typical_program() is None
    answer = model.answer(query)
    assert [str(each) for each in answer.programs] == [f"{gate.instead} {time:.4g}" for time in query.time]
    assert (answer.refinement == gate.whole_refinement).all()
    alone = hycop.Dictionary({gate.instead: PROBLEM.dictionaries[str(gate.whole)][gate.instead]})
    lie = hycop.splitting("lie").programs(query, alone)
    np.testing.assert_array_equal(answer.states, run(lie, alone, query, refinement=model.model.refinement))
    composed = measure(model.model.composition().programs(query), PROBLEM.dictionary, query)
    errors = [hycop.metrics.rel_l2(states, data.truth, query.setting) for states in (answer.states, composed.states)]
    assert errors[0].mean() < errors[1].mean() and (answer.error > 0).all()
    assert model.model.calibration is not None


def test_its_composition_is_what_is_trained_when_it_must_not_answer(model: HyCOP, data: Dataset) -> None:
    told = HyCOP(PROBLEM.dictionary).fit(PROBLEM, refinement=1, verbose=False, unsplit=False, **SMALL).model
    parts = model.model.composition()
    assert told.gate.instead is None and told.gate.whole == model.model.gate.whole
    assert parts.gate == told.gate and parts.dictionary.fingerprint() == told.dictionary.fingerprint()
    np.testing.assert_array_equal(parts.solve(data.query).states, told.solve(data.query).states)
    assert "is the better choice" in told.gate.explained()[-1]
    opened = model.model.opened()
    assert {step.primitive for step in opened.programs(data.query)[0]} <= set(PROBLEM.dictionary)
    static = model.model.static()
    assert static is not None and set(static.dictionary) == set(PROBLEM.dictionary)


def test_its_dictionary_finds_it_but_composes_without_it(model: HyCOP, data: Dataset, tmp_path: Path) -> None:
    query, instead = data.query, str(model.model.gate.instead)
    model.save(tmp_path / "model")
    for each in (model, HyCOP.load(tmp_path / "model")):
        assert set(each.dictionary) == set(PROBLEM.dictionary) and list(each.dictionary.beside) == [instead]
        programs = each.programs(query)
        states = run(programs, each.dictionary, query, refinement=each.model.refinement)
        np.testing.assert_array_equal(states, model.solve(query).states)
        assert hycop.Program.parse(str(programs[0])) == hycop.Program.of((instead, 0.3))
        other = each.programs(query, PROBLEM.dictionaries["muscl"])
        assert {step.primitive for step in other[0]} <= set(PROBLEM.dictionary)
    again = HyCOP(model.dictionary).fit(PROBLEM, refinement=1, verbose=False, warm_start=model, **SMALL)
    assert again.model.composition().dictionary.names == PROBLEM.dictionary.names


def test_evaluation_compares_with_compositions(model: HyCOP, data: Dataset) -> None:
    trial = Trial.of(PROBLEM, model, compare=True, schemes=["strang"])
    rows = {(row.method, row.metric): row for row in trial.rows([[data]])}
    static = model.model.static()
    assert static is not None
    error = hycop.metrics.rel_l2(HyCOP.of(static).solve(data.query).states, data.truth, data.query.setting).mean()
    assert rows["static", "rel_l2"].value == error and ("static", SPLITTING) in rows
    assert rows["HyCOP", "rel_l2"].dictionary == model.model.gate.whole and ("HyCOP", SPLITTING) not in rows
    assert len({method for method, _ in rows} - {"HyCOP", "static", "Strang"}) > 3
    assert rows["Strang", "rel_l2"].dictionary == "weno5" == PROBLEM.name_of(model.dictionary)


def test_other_grids_are_those_of_compositions_too(model: HyCOP, data: Dataset) -> None:
    """As are the schemes beside them, and what a swap is compared with."""
    finer = {row.method: row for row in Trial.of(PROBLEM, model, refinement=2, compare=True).rows([[data]])}
    static = model.model.static()
    assert static is not None and finer["HyCOP"].work != model.solve(data.query).work.mean()
    assert finer["static"].work == HyCOP.of(replace(static, refinement=2)).solve(data.query).work.mean()
    swapped = hycop.swap(model, primitives={"gravity": "weno5-hancock"}).model
    before = compared(model, swapped).before
    assert before is not None and before > 0
    other = hycop.swap(model, primitives={str(model.model.gate.instead): "unsplit"}).model
    rows = {row.method: row for row in Trial.of(PROBLEM, other).rows([[data]])}
    assert rows["HyCOP"].dictionary == "unsplit"
    assert not any("without splitting" in line for line in other.model.gate.explained())


def test_nothing_moves_in_no_time(model: HyCOP, data: Dataset) -> None:
    params = dict(data.query.setting.params)
    states = model.solve(model.query(data.query.u0, params, [0.0, 0.1])).states.reshape(6, 2, 2, 32)
    np.testing.assert_array_equal(states[:, 0], data.query.u0)
    still = model.query(data.query.u0, params, 0.0)
    np.testing.assert_array_equal(model.trace(still).states[:, -1], model.solve(still).states)
    assert model.answer(still.take(slice(0, 0))).states.shape == (0, 2, 32)


def test_folders_keep_it(model: HyCOP, data: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = HyCOP.load(tmp_path / "model")
    assert again.model.gate == model.model.gate
    np.testing.assert_array_equal(again.solve(data.query).states, model.solve(data.query).states)
    file = tmp_path / "model" / "model.json"
    document = json.loads(file.read_text())
    document["gate"]["instead"] = "gravity"
    file.write_text(json.dumps(document))
    with pytest.raises(HyCOPError):
        HyCOP.load(tmp_path / "model")


def test_walls_keep_it_and_other_primitives_do_not(model: HyCOP, data: Dataset) -> None:
    instead = str(model.model.gate.instead)
    walled = hycop.swap(model, boundary="wall").model
    assert {step.primitive for step in walled.programs(data.query)[0]} == {instead}
    swapped, changes = hycop.swap(model, primitives={"gravity": "muscl"})
    assert (
        instead not in swapped.dictionary and swapped.model.gate.instead is None and any(instead in c for c in changes)
    )
    assert {step.primitive for step in swapped.programs(data.query)[0]} <= set(PROBLEM.dictionary)
    assert swapped.model.refinement == 1 and np.isfinite(swapped.solve(data.query).states).all()
    with pytest.raises(InvalidInputError, match="nothing to swap"):
        hycop.swap(model, primitives={"gravity": "weno5"})
    with pytest.raises(IncompatibleError, match="swap it alone"):
        hycop.swap(model, primitives={"gravity": "muscl", instead: "unsplit"})
    assert hycop.swap(model, boundary="wall", primitives={}).model.model.economical == walled.model.economical
    assert len(rivals_of(model.model, ("wall",))) == 2


def test_boundaries_that_it_does_not_know_are_composed(model: HyCOP, data: Dataset) -> None:
    """As if its solver knew periodic boxes alone."""
    inner, instead = model.model, str(model.model.gate.instead)

    class Periodic(type(inner.dictionary[instead])):  # type: ignore[misc]
        boundaries = frozenset({"periodic"})

    poor = Periodic(**{key: getattr(inner.dictionary[instead], key) for key in ("reconstruction", "cfl")})
    limited = HyCOP.of(replace(inner, dictionary=inner.dictionary.swapping(instead, poor), economical=False))
    h = data.states[:, 0]
    asked = limited.query(h, {"g": data.setting.params["g"]}, 0.1, boundary="wall")
    assert np.isfinite(limited.solve(asked).states).all() and instead not in str(limited.programs(asked)[0])
    walled, changes = hycop.swap(limited, boundary="wall")
    assert instead not in walled.dictionary and any("compositions" in line for line in changes)


def test_diagnosis_and_naming_know_it(model: HyCOP, data: Dataset) -> None:
    found = hycop.diagnose(model, data.take(slice(0, 3)))
    means = found.budget.means()
    assert means["total"] > 0 and means.get("splitting", 0.0) < 1e-3 * means["total"] + 1e-12
    assert set(base_dictionary(model.model)) == set(PROBLEM.dictionary)


def test_networks_are_not_passed_over(model: HyCOP) -> None:
    """Nor is there anything to take over where its solver is in the dictionary."""
    gate = replace(model.model.gate, instead=None)

    class Network(MusclAdvection):
        order = None  # type: ignore[assignment]

    assert taking_over(gate, PROBLEM.dictionary.adding("net", Network()), PROBLEM.equation) is None
    assert taking_over(gate, PROBLEM.dictionaries[str(gate.whole)], PROBLEM.equation) is None
    assert taking_over(replace(gate, whole=None), PROBLEM.dictionary, PROBLEM.equation) is None
    assert TrainingConfig().unsplit


def test_a_front_says_what_its_models_take(tmp_path: Path) -> None:
    models = HyCOP(PROBLEM.dictionary).front(PROBLEM, points=2, refinement=1, verbose=False, **SMALL)
    errors, work = ([getattr(each.model.gate, key) for each in models] for key in ("error", "work"))
    assert errors == sorted(errors, reverse=True) and work == sorted(work)
    assert models[-1].model.gate.instead is not None
