"""Unsplit solvers as covers beside splittings: their steps, the work they take, and what the gate does with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import hycop
from hycop.conformance import check_primitive
from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import EQUAL_WORK, Composed, unsplit_at_work
from hycop.execution import measure, trace
from hycop.experiments.trial import Trial
from hycop.grid import Array, Grid
from hycop.pde import Coefficient, Equation
from hycop.policy import exact_covers
from hycop.primitive import fingerprint, update_work
from hycop.primitives import (
    ExponentialRungeKutta,
    KuramotoSivashinskyLinear,
    KuramotoSivashinskyNonlinear,
    SpectralBurgersAdvection,
    SpectralDiffusion,
    SpectralViscosity,
)
from hycop.query import Channel, Query, Setting
from hycop.schemes import portfolio, splitting
from hycop.surrogate import HyCOP
from hycop.training import Gate

KS = hycop.problem("ks1d")
PARTS = (KuramotoSivashinskyLinear(), KuramotoSivashinskyNonlinear())
SMALL: dict[str, Any] = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "max_steps": 5, "verbose": False}


def unsplit(steps: int, stages: int = 4) -> Any:
    return ExponentialRungeKutta(PARTS, stages, steps)


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


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_the_order_of_methods_that_stay_in_modes(stages: int) -> None:
    query = KS.queries(3, "id", 0, shape=(64,))

    def states(steps: int) -> Array:
        return np.asarray(unsplit(steps, stages).flow(query.u0, 0.2 * query.time, query.setting))

    errors = [np.abs(states(steps) - states(160)).max() for steps in (10, 20)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(stages, abs=0.35)


@pytest.mark.parametrize("cells", [31, 48, 64, 100])
def test_in_modes_it_is_the_same_method(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    query = KS.queries(19, "id", 1, shape=(cells,))
    method = unsplit(7)
    fast = method.flow(query.u0, query.time, query.setting)
    one = slice(17, 18)
    alone = method.flow(query.u0[one], query.time[one], query.setting.take(one))
    np.testing.assert_array_equal(alone, fast[one])
    monkeypatch.setattr(ExponentialRungeKutta, "_in_modes", lambda self, setting: False)
    plain = replace(method, reach=1e9, steps=7).flow(query.u0, query.time * (1 + 1e-15), query.setting)
    np.testing.assert_allclose(fast, plain, atol=1e-9 * np.abs(plain).max())


def test_tableaus_are_kept_for_the_same_coefficients_only() -> None:
    method = ExponentialRungeKutta((SpectralBurgersAdvection(), SpectralViscosity()), steps=3)
    check_primitive(method, seed=2).raise_if_failed()
    u, setting = method.example(0)
    duration = np.full(setting.batch, 0.1)
    first = method.flow(u, duration, setting)
    other = Setting(setting.grid, setting.channels, {"nu": 2 * setting.param("nu")})
    assert np.abs(method.flow(u, duration, other) - first).max() > 1e-6
    assert np.abs(method.flow(u, 2 * duration, setting) - first).max() > 1e-6
    np.testing.assert_array_equal(method.flow(u, duration, setting), first)


def test_steps_of_an_unsplit_solver_are_not_merged() -> None:
    query, method = KS.queries(3, "id", 0, shape=(48,)), unsplit(2)
    dictionary = Dictionary({**KS.dictionary, "all": method})
    programs = splitting("lie x3").within(["all"]).programs(query, dictionary)
    assert programs.ops.shape == (3, 3)
    expected = query.u0
    for _ in range(3):
        expected = method.flow(expected, query.time / 3, query.setting)
    found = measure(programs, dictionary, query)
    np.testing.assert_array_equal(found.states, expected)
    np.testing.assert_allclose(found.work, 3 * method.work(query.u0, query.time / 3, query.setting))
    np.testing.assert_array_equal(trace(programs, dictionary, query).states[:, -1], expected)
    # samples with programs of their own
    mixed = programs.durations.copy()
    mixed[0, 2] = 0.0
    short = replace(programs, durations=mixed)
    np.testing.assert_array_equal(measure(short, dictionary, query).states[1:], expected[1:])
    assert len(portfolio(Dictionary({"all": method}), query.setting)) == 4
    assert exact_covers(dictionary, KS.processes) == (("linear", "nonlinear"), ("all",))


def test_solvers_of_some_work() -> None:
    query = KS.queries(4, "id", 0, shape=(48,))
    for work in (2e4, 1e5):
        found = unsplit_at_work(KS.dictionary, KS.processes, query, work)
        assert {name[:6] for name in found} == {"etdrk2", "etdrk4"}
        for name, method in found.items():
            assert isinstance(method, ExponentialRungeKutta) and name.endswith(f"x{method.steps}")
            finer = replace(method, steps=method.steps + 1)
            theirs, more = (float(one.work(query.u0, query.time, query.setting).mean()) for one in (method, finer))
            assert theirs <= EQUAL_WORK * work < more
    assert not unsplit_at_work(KS.dictionary, KS.processes, query, 10.0)
    linear = hycop.problem("ad1d")
    assert not unsplit_at_work(linear.dictionary, linear.processes, linear.queries(2), 1e9)


def test_the_gate_answers_with_the_unsplit_solver_that_wins(model: HyCOP) -> None:
    gate = model.model.gate
    assert not gate.kept and gate.cover is not None and gate.cover[0].startswith("etdrk")
    assert gate.opponent == f"{gate.cover[0]} alone" and gate.classical_work <= EQUAL_WORK * gate.learned_work
    assert f"the programs are those of {gate.opponent}" in gate.explained()[1]
    assert set(model.dictionary) >= {"linear", "nonlinear", *gate.cover}
    query = KS.queries(3, "id", 5, shape=(48,))
    assert str(model.programs(query)[0]).startswith(gate.cover[0])
    answer = model.answer(query)
    assert (answer.estimate.distance > 1e-6).all()  # twice as many steps, not the same ones merged


def test_folders_and_resumed_runs_have_the_same_bits(model: HyCOP, data: Dataset, tmp_path: Path) -> None:
    query = KS.queries(3, "id", 5, shape=(48,))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(HyCOP.load(tmp_path / "model").solve(query).states, model.solve(query).states)
    for resume in (False, True):
        again = HyCOP(KS.dictionary, KS.equation)
        again.fit(data, refinement=1, folder=tmp_path / "run", resume=resume, **SMALL)
        np.testing.assert_array_equal(again.solve(query).states, model.solve(query).states)


def test_comparisons_have_the_unsplit_solvers(model: HyCOP, data: Dataset) -> None:
    trial = Trial.of(KS, model, compare=True)
    names = [contender.method for contender in trial.contenders(data.take(slice(0, 4)))]
    assert any(name.startswith("etdrk4x") and name.endswith("alone") for name in names)
    assert any(name.startswith("Strang") for name in names) and len(names) == len(set(names))


def test_a_swapped_part_is_swapped_in_the_unsplit_solver_too(model: HyCOP) -> None:
    other = KuramotoSivashinskyNonlinear(cfl=0.3)
    swapped = hycop.swap(model, primitives={"nonlinear": other}).model
    name = model.model.gate.cover[0]  # type: ignore[index]
    (part,) = (part for part in swapped.dictionary[name].parts if "nonlinear" in part.advances)  # type: ignore[attr-defined]
    assert fingerprint(part) == fingerprint(other)


def test_labels_of_opponents() -> None:
    facts = dict.fromkeys(("learned_error", "classical_error", "learned_extreme", "classical_extreme"), 1.0)
    facts |= {"learned_work": 1.0, "classical_work": 1.0}
    made = Gate(kept=False, classical="Lie x2", classical_when_clipped=False, samples=9, cover=("etdrk4x8",), **facts)
    assert made.opponent == "etdrk4x8 alone x2" and made.scheme.cover == ("etdrk4x8",)
    assert replace(made, cover=("a", "b")).opponent == "Lie x2"


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


def test_a_users_own_equation_gets_unsplit_solvers(tmp_path: Path) -> None:
    """Allen–Cahn, u_t = D u_xx + u − u³, from a symbol and a pointwise rate."""
    rng = np.random.default_rng(0)
    grid = Grid.box((32,), lengths=(10.0,), batch=96)
    waves = sum(np.sin(2 * np.pi * k * grid.centres()[0] / 10 + rng.uniform(0, 6, (96, 1))) for k in (1, 2))
    setting = Setting(grid, (Channel("u"),), {"Dx": rng.uniform(0.5, 1.0, 96)})
    query = Query(0.5 * waves[:, None], setting, np.full(96, 1.0))
    dictionary = Dictionary({"diffusion": SpectralDiffusion(), "wells": DoubleWell()})
    truth = Composed(splitting("SABA4 x64"), dictionary).solve(query).states
    times = np.stack([np.zeros(96), query.time], axis=1)
    data = Dataset("allen-cahn", "train", np.stack([query.u0, truth], axis=1), times, setting, 0, "limit")
    coefficients = {"Dx": Coefficient("diffusivity", at_least=0.0)}
    equation = Equation("allen-cahn", ("diffusion", "wells"), (Channel("u"),), coefficients)
    found = unsplit_at_work(dictionary, equation.processes, query, 2e4)
    assert {name[:6] for name in found} == {"etdrk2", "etdrk4"}
    fine = next(one for name, one in found.items() if name.startswith("etdrk4"))
    states = Composed(splitting("lie"), Dictionary({"all": fine})).solve(query).states
    assert np.abs(states - truth).max() < 1e-5
    fitted = HyCOP(dictionary, equation).fit(data, max_work=2e4, **{**SMALL, "max_steps": 3})
    gate = fitted.model.gate
    assert gate.cover is not None and gate.cover[0].startswith("etdrk") and not gate.kept
    fitted.save(tmp_path / "model")
    loaded = HyCOP.load(tmp_path / "model", primitives={"wells": DoubleWell()})
    np.testing.assert_array_equal(loaded.solve(query).states, fitted.solve(query).states)
