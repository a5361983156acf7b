"""A declared equation has the rights of a shipped one: bounds, flags, long times, features, swaps, storage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import hycop
from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError
from hycop.features import Observed, dimensionless_times, guessed_equation
from hycop.grid import AXES, Array
from hycop.pde import Coefficient, Equation, same_equation
from hycop.primitives import SpectralDiffusion
from hycop.problems import PROBLEMS, problems_with
from hycop.problems.definition import Settings
from hycop.query import Query, Setting
from hycop.scope import Scope, View
from hycop.training import PRESETS, TrainingConfig, configured

CHANNELS = (hycop.Channel("T"),)


@dataclass(frozen=True)
class Conduction:
    """Conduction T_t = k ΔT, exact: diffusion with another name for its coefficient."""

    advances: ClassVar[frozenset[str]] = frozenset({"conduction"})
    order: ClassVar[float] = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        named = {"D" + axis: setting.param("k") for axis in AXES[: setting.grid.axes]}
        return SpectralDiffusion().flow(u, duration, replace(setting, params=named))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return SpectralDiffusion().work(u, duration, setting)


@dataclass(frozen=True)
class Heating:
    """Heating T_t = q T (1 − T) at a rate q, exact."""

    advances: ClassVar[frozenset[str]] = frozenset({"heating"})
    order: ClassVar[float] = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        growth = np.exp(duration * setting.param("q"))[:, None, None]
        return u * growth / (1 + u * (growth - 1))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(setting.grid.cells))


DICTIONARY = hycop.Dictionary({"conduction": Conduction(), "heating": Heating()})
EQUATION = Equation(
    "heating",
    ("conduction", "heating"),
    ("T",),  # type: ignore[arg-type]
    {"k": Coefficient("diffusivity", at_least=0.0), "q": Coefficient("rate")},
    positive=("T",),
    formula="T_t = k ΔT + q T (1 − T)",
)
SMALL = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 3, "verbose": False}


def heated(samples: int, seed: int, problem: str = "heating") -> hycop.Dataset:
    """Queries on a line of 32 cells, solved by many Strang steps."""
    rng = np.random.default_rng(seed)
    grid = hycop.Grid.box((32,), 1.0, batch=samples)
    setting = Setting(grid, CHANNELS, {"k": rng.uniform(0.01, 0.05, samples), "q": rng.uniform(1.0, 3.0, samples)})
    u0 = 0.5 + 0.3 * np.sin(2 * np.pi * grid.centres()[0] + rng.uniform(0, 6, (samples, 1)))[:, None]
    query = Query(u0, setting, rng.uniform(0.2, 0.4, samples))
    later = hycop.run(hycop.splitting("strang x64").programs(query, DICTIONARY), DICTIONARY, query)
    times = np.stack([np.zeros(samples), query.time], axis=1)
    return hycop.Dataset(problem, "train", np.stack([u0, later], axis=1), times, setting)


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP(DICTIONARY, EQUATION).fit(heated(120, 0), **SMALL)


def test_its_coefficients_are_seen_by_whatever_name(model: hycop.HyCOP) -> None:
    names = model.model.scope.view.features.names
    assert {"spreads", "foldings"} <= set(names)
    data = heated(40, 1)
    errors = hycop.metrics.rel_l2(model.solve(data.query).states, data.truth, data.query.setting)
    classical = model.model.classical().solve(data.query).states
    assert model.model.gate.kept
    assert errors.mean() < 0.85 * hycop.metrics.rel_l2(classical, data.truth, data.query.setting).mean()


def test_what_is_outside_training_is_flagged_with_its_reason(model: hycop.HyCOP) -> None:
    data = heated(3, 2)
    u0, params = data.states[:, 0], data.setting.params
    inside = model.answer(model.query(u0, params, 0.3))
    assert not inside.untrusted.any() and inside.reasons == ((), (), ())
    hot = model.answer(model.query(u0, {**params, "q": np.array([2.0, 2.0, 60.0])}, 0.3))
    assert hot.untrusted.tolist() == [False, False, True] and "foldings" in hot.reasons[2]
    cold = model.answer(model.query(u0, {**params, "q": -2.0}, 0.3))
    assert all("q" in reasons for reasons in cold.reasons)
    walled = model.answer(model.query(u0, params, 0.3, boundary="wall"))
    assert all("boundary wall" in reasons for reasons in walled.reasons)


def test_long_times_are_cut_by_its_time_scales(model: hycop.HyCOP) -> None:
    data = heated(1, 2)
    u0, params = data.states[:, 0], data.setting.params
    lengths = [len(model.program(u0, params, t)) for t in (0.3, 3.0)]
    assert lengths[1] >= 5 * lengths[0]
    fast = {**params, "q": 10 * params["q"]}
    assert len(model.program(u0, fast, 0.3)) >= 5 * lengths[0]


def test_its_bounds_are_checked() -> None:
    data = heated(120, 0)
    wrong = replace(data, setting=replace(data.setting, params={**data.setting.params, "k": -1.0}))
    with pytest.raises(InvalidInputError, match="'k' is -1 for sample 0: it must not be negative"):
        hycop.HyCOP(DICTIONARY, EQUATION).fit(wrong, **SMALL)
    with pytest.raises(InvalidInputError, match=r"T of sample 0, time index 0, is .* it must be above zero"):
        hycop.HyCOP(DICTIONARY, EQUATION).fit(replace(data, states=data.states - 5.0), **SMALL)
    with pytest.raises(UnknownNameError, match="unknown parameter 'kk'"):
        EQUATION.check_names({"kk": 1.0})
    with pytest.raises(InvalidInputError, match="parameter 'q' of heating is missing"):
        EQUATION.check_names({"k": 1.0})


def test_it_is_stored_swapped_and_trained_further(model: hycop.HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    again = hycop.HyCOP.load(tmp_path / "m", dict(DICTIONARY))
    assert again.model.equation == EQUATION
    query = heated(4, 3).query
    assert np.array_equal(again.solve(query).states, model.solve(query).states)
    walled = hycop.swap(again, boundary="wall").model
    data = heated(4, 3)
    flags = walled.untrusted(data.states[:, 0], data.setting.params, 0.3)
    assert walled.model.substeps == 2 and flags.all()
    further = hycop.HyCOP(DICTIONARY, EQUATION).fit(heated(120, 0), warm_start=model, **SMALL)
    assert further.model.record.metrics["train_loss"] <= model.model.record.metrics["train_loss"]
    assert str(EQUATION.formula) in str(further)


def test_nonsense_is_refused_where_it_is_declared() -> None:
    with pytest.raises(UnknownNameError, match="kind of coefficient 'speed'"):
        Coefficient("speed")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="processes of equation e"):
        Equation("e", (), ("u",))  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="channels of equation e is 'u': a tuple is needed"):
        Equation("e", ("p",), "u")  # type: ignore[arg-type]
    with pytest.raises(HyCOPError, match="unknown feature 'growht'"):
        hycop.HyCOP(DICTIONARY, replace(EQUATION, features=("growht",))).fit(heated(120, 0), **SMALL)


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_every_problem_declares_what_its_queries_have(name: str) -> None:
    chosen = PROBLEMS[name]
    for split in chosen.splits.values():
        assert list(split.params) == list(chosen.equation.coefficients)
    assert chosen.equation.processes and chosen.equation.features and chosen.equation.formula
    assert name in problems_with(chosen.equation)


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_every_problem_suits_its_training(name: str) -> None:
    assert set(Settings.__annotations__) <= set(TrainingConfig.model_fields)
    for preset in PRESETS:
        config = configured(preset, PROBLEMS[name].suited(preset))
        assert config.refinement == PROBLEMS[name].refinement or preset != "quick"
        assert config.refinement >= PROBLEMS[name].refinement


def test_models_of_one_equation_answer_for_its_other_problems() -> None:
    assert problems_with(PROBLEMS["swe2d"].equation) == ("swe2d", "dambreak2d")
    assert not same_equation(PROBLEMS["ad2d"].equation, PROBLEMS["adr2d"].equation)


def test_a_guess_from_names_has_the_times_of_the_declared_equation() -> None:
    for name in ("adr2d", "swe1d", "burgers1d", "ks1d"):
        chosen = PROBLEMS[name]
        query = chosen.queries(3, "id", 0)
        guess = guessed_equation("mine", chosen.processes, query)
        declared, guessed = (dimensionless_times(Observed(query, each)) for each in (chosen.equation, guess))
        assert np.array_equal(declared, guessed) and guess.guessed


def test_scope_of_an_ablation_without_features_flags_signs_only() -> None:
    chosen = PROBLEMS["adr2d"]
    scope = Scope.of(chosen.equation, View.nothing(), [chosen.queries(20, "train", 0)])
    assert scope.coefficients.keys() == {"Dx", "Dy", "r"} and scope.longest_time is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"channels": ("a", "a")},
        {"channels": (3,)},
        {"processes": None},
        {"processes": (1,)},
        {"coefficients": ["k"]},
        {"coefficients": {"k": "rate"}},
        {"features": "peclet_x"},
        {"unit_rate": float("nan")},
        {"unit_rate": "a"},
    ],
)
def test_an_equation_that_is_declared_wrongly_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        Equation(**{"name": "mine", "processes": ("p",), "channels": ("a",), **wrong})
