"""Dictionaries with more than an equation needs: redundant primitives, and several that advance the same process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import hycop
from hycop.grid import Array
from hycop.policy import SlotPolicy
from hycop.primitives import MusclAdvection
from hycop.query import Setting
from hycop.surrogate import HyCOP

PROBLEM = hycop.problem("ad1d")
SMALL = {"samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4}


@dataclass(frozen=True)
class Damping:
    """u_t = −2u, which is no part of the equation."""

    advances: ClassVar[frozenset[str]] = frozenset({"damping"})
    order: ClassVar[float] = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-2.0 * duration).reshape((-1,) + (1,) * (u.ndim - 1))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(u[0].size))


def test_the_opponent_of_a_dictionary_with_a_redundant_primitive_leaves_it_out() -> None:
    """It is as good as without it, so the gate can keep the learned programs from being worse than the textbook."""
    dictionary = hycop.Dictionary({**PROBLEM.dictionary, "damping": Damping()})
    model = HyCOP(dictionary).fit(PROBLEM, **SMALL).model
    assert model.gate.cover == ("advection", "diffusion")
    assert model.gate.classical_error < 1e-3 and model.gate.error < 1.01 * model.gate.classical_error
    data = PROBLEM.sample(4, "train", seed=5)
    late = hycop.Query(data.query.u0, data.setting, 4.0 * data.query.time)
    mass = HyCOP.of(model).solve(late).states.mean(axis=(1, 2))
    np.testing.assert_allclose(mass, data.query.u0.mean(axis=(1, 2)), rtol=1e-2)


def test_a_redundant_primitive_is_left_out_of_what_is_learned() -> None:
    """Neither the choice of the pattern nor the error suffers from it; one step more makes room for it."""
    held_out = PROBLEM.sample(200, "train", seed=2**32)
    data = PROBLEM.sample(SMALL["samples"], "train", seed=0)
    own = HyCOP(PROBLEM.dictionary).fit(data, held_out, **SMALL).model
    extended = PROBLEM.dictionary.adding("damping", Damping())
    model = HyCOP(extended).fit(data, held_out, **{**SMALL, "max_steps": SMALL["max_steps"] + 1}).model
    assert isinstance(own.policy, SlotPolicy) and isinstance(model.policy, SlotPolicy)
    assert [pattern.ops for pattern in model.policy.patterns] == [pattern.ops for pattern in own.policy.patterns]
    assert model.gate.learned_error < 1.05 * own.gate.learned_error


def test_a_redundant_primitive_that_helps_is_kept() -> None:
    """Here the truth decays half as fast as the primitive would have it, so half the time is right."""
    data = PROBLEM.sample(120, "train", seed=0)
    decayed = data.states * np.exp(-data.times)[:, :, None, None]
    dictionary = PROBLEM.dictionary.adding("damping", Damping())
    model = HyCOP(dictionary).fit(replace(data, states=decayed), **SMALL)
    asked = data.query.take(slice(0, 4))
    time = model.model.policy.programs(model.model.theta[None], model.model.scope.view(asked)).time_per_primitive()
    np.testing.assert_allclose(time[:, 2], 0.5 * asked.time, rtol=0.05)


def test_overlapping_primitives_train_save_and_load(tmp_path: Path) -> None:
    dictionary = hycop.Dictionary({**PROBLEM.dictionary, "muscl": MusclAdvection()})
    model = HyCOP(dictionary).fit(PROBLEM, **SMALL)
    assert model.model.gate.cover in (("advection", "diffusion"), ("diffusion", "muscl"))
    model.save(tmp_path / "run")
    data = PROBLEM.sample(4, "train", seed=5)
    again = HyCOP.load(tmp_path / "run")
    np.testing.assert_array_equal(again.solve(data.query).states, model.solve(data.query).states)


def test_single_precision_learns_as_double_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(hycop.problems.adr.FINEST, 2, 32)  # an exact truth is not needed here
    problem = hycop.problem("adr2d")
    settings = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4}
    errors = []
    for dtype in (np.float64, np.float32):
        data = problem.sample(120, "train", seed=0, shape=(8, 8))
        states = data.states.astype(dtype)
        model = HyCOP(problem.dictionary).fit(hycop.Dataset(**{**vars(data), "states": states}), **settings)
        errors.append(model.model.gate.learned_error)
    assert errors[1] == pytest.approx(errors[0], rel=0.05)
