"""Unsplit solvers as classical schemes: their steps and work, and what the gate and the model do with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import hycop
from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, UnknownNameError
from hycop.evaluation import EQUAL_WORK, Composed, Opponents, errors_of
from hycop.execution import measure, run, trace
from hycop.experiments.trial import Trial
from hycop.grid import Array, Grid
from hycop.primitive import update_work
from hycop.primitives import ExponentialRungeKutta, KuramotoSivashinskyNonlinear, SpectralDiffusion
from hycop.program import Program
from hycop.query import Channel, Query, Setting
from hycop.schemes import Scheme, Unsplit, classical, splitting
from hycop.surrogate import HyCOP

KS = hycop.problem("ks1d")
SMALL: dict[str, Any] = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "max_steps": 5, "verbose": False}
NONLINEAR = KuramotoSivashinskyNonlinear()
NAME = "ETDRK4x2(linear+nonlinear)"


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Chaos on few cells; the truth is the limit of the dictionary."""
    query = KS.queries(96, "id", 0, shape=(48,))
    states = Composed(splitting("SABA4 x32"), KS.dictionary).solve(query).states
    times = np.stack([np.zeros(query.batch), query.time], axis=1)
    return Dataset("ks1d", "train", np.stack([query.u0, states], axis=1), times, query.setting, 0, "limit")


@pytest.fixture(scope="module")
def model(data: Dataset) -> HyCOP:
    return HyCOP(KS.dictionary, KS.equation).fit(data, refinement=1, **SMALL)


@dataclass(frozen=True)
class StepFlow:
    """The flow of another primitive, without its rate."""

    advances: ClassVar[frozenset[str]] = frozenset({"nonlinear"})
    order: ClassVar[float] = 3

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return NONLINEAR.flow(u, duration, setting)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return NONLINEAR.work(u, duration, setting)


def test_names_of_unsplit_solvers() -> None:
    assert str(classical(" etdrk4 x8 ")) == "ETDRK4 x8" and classical("ETDRK2") == Unsplit(2)
    assert classical("strang x2") == splitting("strang x2")
    for wrong in ("etdrk5", "etdrk4 x0", "etdrk4 x99999"):
        with pytest.raises(HyCOPError):
            classical(wrong)
    found = KS.dictionary[NAME]
    assert isinstance(found, ExponentialRungeKutta) and (found.stages, found.steps) == (4, 2)
    assert NAME not in KS.dictionary and len(KS.dictionary) == 2
    for wrong in ("ETDRK4x2(linear+other)", "ETDRK4x0(linear+nonlinear)", "ETDRK4x2"):
        with pytest.raises(UnknownNameError):
            KS.dictionary[wrong]


def test_its_steps_are_not_merged() -> None:
    query, method = KS.queries(3, "id", 0, shape=(48,)), KS.dictionary[NAME]
    programs = Unsplit(4, 2).programs(query, KS.dictionary).with_substeps(3)
    expected = query.u0
    for _ in range(3):
        expected = method.flow(expected, query.time / 3, query.setting)
    found = measure(programs, KS.dictionary, query)
    np.testing.assert_array_equal(found.states, expected)
    np.testing.assert_allclose(found.work, 3 * method.work(query.u0, query.time / 3, query.setting))
    np.testing.assert_array_equal(trace(programs, KS.dictionary, query).states[:, -1], expected)
    mixed = programs.durations.copy()
    mixed[0, 2] = 0.0  # samples with programs of their own
    np.testing.assert_array_equal(run(replace(programs, durations=mixed), KS.dictionary, query)[1:], expected[1:])
    by_hand = Program.parse(f"{NAME} 0.5")
    np.testing.assert_array_equal(
        run(by_hand, KS.dictionary, query), method.flow(query.u0, np.full(3, 0.5), query.setting)
    )


def test_equal_work() -> None:
    query = KS.queries(8, "id", 0, shape=(48,))
    opponents = Opponents(KS.dictionary, query, query.u0, covers=[KS.dictionary.names])
    for work in (2e4, 1e5):
        found = opponents.unsplit(query, np.full(8, work))
        for stages in (2, 4):
            finest = max((each for each in found if each.stages == stages), key=lambda each: each.steps)
            for steps, fits in ((finest.steps, True), (finest.steps + 1, False)):
                solver = Composed(replace(finest, steps=steps), KS.dictionary)
                assert (solver.solve(query).work.mean() <= EQUAL_WORK * work) == fits
    assert not opponents.unsplit(query, np.full(8, 10.0))
    exact, walled = hycop.problem("ad1d"), hycop.problem("swe1d")
    for other in (exact, walled):  # all symbols, none
        asked = other.queries(2)
        assert not Opponents(other.dictionary, asked, asked.u0).unsplit(asked, np.full(2, 1e9))


def test_the_gate_answers_with_the_unsplit_solver_that_wins(model: HyCOP) -> None:
    gate, query = model.model.gate, KS.queries(3, "id", 5, shape=(48,))
    assert not gate.kept and isinstance(gate.scheme, Unsplit) and gate.splitting is not None
    assert gate.classical_work <= EQUAL_WORK * gate.learned_work and gate.classical_error < gate.learned_error
    assert f"the programs are those of {gate.classical}" in gate.explained()[1] and "unsplit" in gate.explained()[0]
    assert model.dictionary.names == KS.dictionary.names == model.model.policy.allotment.names
    answer = model.answer(query)
    assert str(answer.programs[0]).startswith("ETDRK") and (answer.estimate.distance > 1e-9).all()
    np.testing.assert_array_equal(run(answer.programs, model.dictionary, query), answer.states)
    finer = model.answer(query, tol=0.2 * float(answer.error.min()))
    assert (finer.error <= answer.error).all()
    assert [len(model.model.ladder.programs(query, cut)[0]) for cut in (1, 2, 4)] == [1, 2, 4]
    for part in (1, 2):
        np.testing.assert_array_equal(model.answer(query.take(slice(part, part + 1))).states[0], answer.states[part])


def test_queries_outside_training_stay_stable(model: HyCOP) -> None:
    query = KS.queries(3, "id", 5, shape=(48,))
    far = replace(query, u0=40.0 * query.u0)
    answer = model.answer(far)
    assert answer.untrusted.all() and (answer.programs.lengths() > 4).all() and np.isfinite(answer.states).all()
    assert (model.answer(query).programs.lengths() == 1).all()


def test_what_works_with_splittings_works_with_it(model: HyCOP, data: Dataset, tmp_path: Path) -> None:
    query = KS.queries(3, "id", 5, shape=(48,))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(HyCOP.load(tmp_path / "model").solve(query).states, model.solve(query).states)
    again = HyCOP(KS.dictionary, KS.equation).fit(data, refinement=1, warm_start=model, **SMALL)
    assert again.model.policy.allotment.names == KS.dictionary.names
    found = hycop.diagnose(model, data.take(slice(0, 4)))
    assert found.budget.means()["total"] > 0
    names = [each.method for each in Trial.of(KS, model, compare=True).contenders(data.take(slice(0, 4)))]
    assert any(name.startswith("ETDRK4") for name in names) and any(name.startswith("Strang") for name in names)
    other = hycop.swap(model, primitives={"nonlinear": KuramotoSivashinskyNonlinear(cfl=0.3)}).model
    assert str(other.programs(query)[0]).startswith("ETDRK")
    part = other.dictionary[other.model.names[-1]].parts[1]  # type: ignore[attr-defined]
    assert part.cfl == 0.3


def test_a_splitting_stands_in_where_it_cannot_be_made(model: HyCOP, tmp_path: Path) -> None:
    query = KS.queries(3, "id", 5, shape=(48,))
    swapped = hycop.swap(model, primitives={"nonlinear": StepFlow()}).model
    assert {step.primitive for step in swapped.programs(query)[0]} == {"linear", "nonlinear"}
    assert (swapped.answer(query).error > 0).all() and swapped.model.names == KS.dictionary.names
    swapped.save(tmp_path / "model")
    loaded = HyCOP.load(tmp_path / "model", primitives={"nonlinear": StepFlow()})
    np.testing.assert_array_equal(loaded.solve(query).states, swapped.solve(query).states)


def test_a_damaged_gate_is_refused(model: HyCOP) -> None:
    for wrong in ({"classical": "ETDRK9 x2"}, {"splitting": "nonsense"}, {"cover": ("linear", "other")}):
        with pytest.raises(HyCOPError):
            replace(model.model.gate, **wrong).check(KS.dictionary)  # type: ignore[arg-type]


@dataclass(frozen=True)
class DoubleWell:
    """u_t = u − u³, exactly."""

    advances: ClassVar[frozenset[str]] = frozenset({"wells"})
    order: ClassVar[float] = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        growth = np.exp(duration).reshape((-1,) + (1,) * (u.ndim - 1))
        return np.asarray(u * growth / np.sqrt(1 + u**2 * (growth**2 - 1)))

    def rate(self, u: Array, setting: Setting) -> Array:
        return u - u**3

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1)


def test_a_users_own_equation_gets_unsplit_solvers() -> None:
    """Allen–Cahn, u_t = D u_xx + u − u³, from a symbol and a pointwise rate."""
    rng = np.random.default_rng(0)
    grid = Grid.box((32,), lengths=(10.0,), batch=96)
    waves = sum(np.sin(2 * np.pi * k * grid.centres()[0] / 10 + rng.uniform(0, 6, (96, 1))) for k in (1, 2))
    setting = Setting(grid, (Channel("u"),), {"Dx": rng.uniform(0.5, 1.0, 96)})
    query = Query(0.5 * waves[:, None], setting, np.full(96, 1.0))
    dictionary = Dictionary({"diffusion": SpectralDiffusion(), "wells": DoubleWell()})
    truth = Composed(splitting("SABA4 x64"), dictionary).solve(query).states
    opponents = Opponents(dictionary, query, truth, covers=[dictionary.names])
    best, other, _ = opponents.rivals(query, np.full(96, 2e4))
    assert isinstance(best, Unsplit) and best.stages == 4 and isinstance(other, Scheme)
    errors = [
        errors_of("rel_l2", Composed(each, dictionary).solve(query).states, truth, query).mean()
        for each in (best, other)
    ]
    assert errors[0] < 0.1 * errors[1]
