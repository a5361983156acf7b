"""Economy: outside training a large query is solved by what is worth its work, whatever else is asked beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.economy import UNSTABLE
from hycop.errors import InvalidInputError, NonFiniteStateError
from hycop.evaluation import Composed
from hycop.grid import Array
from hycop.program import EMPTY, Program, ProgramBatch, merged
from hycop.query import Query
from hycop.references.dam_break import straight_dam
from hycop.surrogate import HyCOP, UntrustedWarning

CELLS, TIME = 512, 8.0
PROBLEM = hycop.problem("swe1d")


@pytest.fixture(scope="module")
def walls() -> Iterator[HyCOP]:
    """A model of one dimension, little trained, with walls swapped in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(hycop.problems.shallow_water.FINEST, 1, 64)
        small = {"samples": 8, "tries": 1, "rounds": 1, "iterations": 1, "max_steps": 3, "shape": (16,), "substeps": 1}
        model = HyCOP(PROBLEM.dictionary).fit(PROBLEM, verbose=False, refinement=2, **small)
    yield hycop.swap(model, boundary="wall").model


def question(model: HyCOP, depths: list[Array]) -> Query:
    h = np.stack(depths)
    return model.query(np.stack([h, 0 * h], axis=1), {"g": 9.81}, TIME, lengths=(100.0,))


def dam(cells: int = CELLS) -> Array:
    return np.where(np.arange(cells) < cells // 2, 3.0, 1.0)


def hill(cells: int = CELLS) -> Array:
    x = (np.arange(cells) + 0.5) / cells
    return np.asarray(1 + 0.01 * np.exp(-(((x - 0.5) / 0.1) ** 2)))


def test_a_jump_is_not_refined_and_a_smooth_state_is(walls: HyCOP) -> None:
    query = question(walls, [dam(), hill()])
    answer = walls.answer(query)
    assert answer.refinement.tolist() == [1, 2]
    assert {step.primitive for step in answer.programs[0]} <= {"shallow water", "shallow water (unsplit-hancock)"}
    np.testing.assert_allclose(sum(each.duration for each in answer.programs[0]), TIME)
    own = replace(walls.model.composition(), economical=False).solve(query)
    assert answer.work[0] < 0.1 * own.work[0]
    stoker = straight_dam(np.linspace(-50.0, 50.0, CELLS + 1), TIME, 3.0, 1.0, 9.81)
    fine = Composed(hycop.splitting("Lie"), PROBLEM.dictionaries["unsplit"], 4).solve(query).states[1]
    errors = hycop.metrics.rel_l2(answer.states, np.stack([stoker, fine]), query.setting)
    assert errors[0] < 1e-2 and errors[1] < 1e-4
    assert np.isfinite(answer.error).all() and answer.untrusted.all()


def test_a_jump_is_not_refined_by_a_model_of_fine_grids(walls: HyCOP) -> None:
    """Between fine grids errors fall fast, because jumps hide within the cells of the coarse query."""
    fine = HyCOP.of(replace(walls.model, refinement=4))
    assert fine.answer(question(fine, [dam(), hill()])).refinement.tolist() == [1, 4]


def test_queries_do_not_depend_on_their_neighbours(walls: HyCOP) -> None:
    query = question(walls, [hill(), dam(), hill()])
    together = walls.answer(query)
    np.testing.assert_array_equal(together.states, walls.solve(query).states)
    for row in range(3):
        alone = walls.answer(query.take(slice(row, row + 1)))
        np.testing.assert_array_equal(alone.states[0], together.states[row])
        assert alone.programs[0] == together.programs[row] == walls.programs(query)[row]
        assert alone.error[0] == together.error[row]
    with pytest.raises(InvalidInputError, match="different solvers: ask them one by one"):
        walls.trace(query)
    one = query.take(slice(1, 2))
    np.testing.assert_array_equal(walls.trace(one).states[:, -1], together.states[1:2])


def test_small_queries_and_what_was_asked_for_stay(walls: HyCOP) -> None:
    small = question(walls, [dam(128)])
    np.testing.assert_array_equal(walls.solve(small).states, walls.model.solve(small).states)
    told = hycop.swap(walls, substeps=1).model
    assert not told.model.economical
    np.testing.assert_array_equal(told.solve(large := question(walls, [dam()])).states, told.model.solve(large).states)


def test_a_saved_model_stays_economical(walls: HyCOP, tmp_path: Path) -> None:
    walls.save(tmp_path / "walls")
    query = question(walls, [dam()])
    again = HyCOP.load(tmp_path / "walls")
    assert again.model.economical
    np.testing.assert_array_equal(again.solve(query).states, walls.solve(query).states)


def test_a_dry_bed_is_solved_by_what_can(walls: HyCOP) -> None:
    query = question(walls, [np.where(np.arange(CELLS) < CELLS // 2, 3.0, 0.0)])
    states = walls.solve(query).states
    assert (states[:, 0] >= 0).all() and np.isfinite(states).all()


def test_programs_of_parts_are_joined_by_name() -> None:
    first = ProgramBatch.of([Program.of(("a", 1.0), ("b", 2.0))], ("a", "b"))
    second = ProgramBatch.of([Program.of(("c", 3.0)), Program.of(("b", 4.0))], ("b", "c"))
    both = merged([(np.array([1]), first), (np.array([0, 2]), second)])
    assert both.names == ("a", "b", "c") and both.ops[0, 1] == EMPTY
    assert [str(each) for each in both] == ["c 3", "a 1 → b 2", "b 4"]


def test_a_state_that_becomes_nan_is_solved_again_in_finer_steps() -> None:
    """Burgers' equation by two exponential steps: too long for a strong wave, not for a weak one."""
    problem = hycop.problem("burgers1d")
    small = {"samples": 8, "tries": 1, "rounds": 1, "iterations": 1, "max_steps": 3, "shape": (64,), "refinement": 1}
    fitted = HyCOP(problem.dictionary).fit(problem, verbose=False, **small).model
    gate = replace(fitted.gate, kept=False, classical="ETDRK4 x2", cover=None, reach=None)
    model = HyCOP.of(replace(fitted, gate=gate, calibration=None))
    x = (np.arange(64) + 0.5) / 64
    waves = np.stack([size * np.sin(2 * np.pi * x) for size in (0.1, 40.0, 0.2)])[:, None]
    query = model.query(waves, {"nu": 0.02}, 1.0)
    with pytest.raises(NonFiniteStateError, match="sample 1"):
        model.model.solve(query)
    answer = model.answer(query)
    assert answer.outside[UNSTABLE].tolist() == [False, True, False] and UNSTABLE in answer.reasons[1]
    assert len(answer.programs[1]) > len(answer.programs[0]) and np.isfinite(answer.states).all()
    np.testing.assert_array_equal(model.solve(query).states, answer.states)
    with pytest.warns(UntrustedWarning, match=UNSTABLE):
        np.testing.assert_array_equal(model.predict(waves, {"nu": 0.02}, 1.0)[:, 0], answer.states)
    alone = model.answer(query.take(slice(0, 1)))
    np.testing.assert_array_equal(alone.states[0], answer.states[0])
    with pytest.MonkeyPatch.context() as patch, pytest.raises(NonFiniteStateError, match="sample 1"):
        patch.setattr("hycop.economy.FINEST_CUT", 1)
        model.answer(query)
