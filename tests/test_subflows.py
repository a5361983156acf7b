"""Trusted sub-flows: references of the parts of an equation that stay on the fine grid."""

from __future__ import annotations

import numpy as np
import pytest

import hycop
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.execution import refined_query
from hycop.grid import restrict
from hycop.primitive import conserved_channels
from hycop.problems import PROBLEMS
from hycop.query import Query
from hycop.references import FourierReference, ShallowWaterReference, Subflows


def small_query(problem: hycop.Problem, boundary: str | None = None) -> Query:
    """Two queries on a few cells, at a tenth of their time."""
    query = problem.queries(2, "id", seed=0, shape=(16,) * len(problem.shape), boundary=boundary)
    return Query(query.u0, query.setting, query.time / 10)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_part_is_a_primitive_on_the_fine_grid(name: str) -> None:
    problem = PROBLEMS[name]
    query = small_query(problem)
    parts = problem.subflows(query.grid)
    assert parts.dictionary.names == problem.processes
    assert parts.trusted == (name != "ns2d-pdebench") == (parts.reason == "")
    fine = refined_query(query, parts.refinement)
    for process, part in parts.dictionary.items():
        assert part.advances == {process}
        np.testing.assert_array_equal(part.flow(fine.u0, np.zeros(2), fine.setting), fine.u0)
        later = part.flow(fine.u0, query.time, fine.setting)
        assert later.shape == fine.u0.shape and np.isfinite(later).all()
        for channel in conserved_channels(part, fine.setting):
            before, after = (u[:, channel].mean(axis=tuple(range(1, u.ndim - 1))) for u in (fine.u0, later))
            np.testing.assert_allclose(after, before, rtol=1e-11, atol=1e-11 * np.abs(fine.u0[:, channel]).max())
        alone = hycop.ProgramBatch((process,), np.zeros((2, 1), dtype=int), query.time[:, None])
        reached = hycop.run(alone, parts.dictionary, query, refinement=parts.refinement)
        np.testing.assert_array_equal(reached, restrict(later, query.grid.shape))


def test_parts_bear_the_names_of_a_dictionary_that_does_not_split() -> None:
    problem = hycop.problem("swe1d")
    query = small_query(problem)
    parts = problem.subflows(query.grid, problem.dictionaries["unsplit"])
    assert {name: part.advances for name, part in parts.dictionary.items()} == {
        "shallow water": {"gravity", "momentum"}
    }
    programs = hycop.splitting("lie").programs(query, problem.dictionaries["unsplit"])
    trusted = hycop.run(programs, parts.dictionary, query, refinement=parts.refinement)
    ours = hycop.run(programs, problem.dictionaries["unsplit"], query)
    assert 0 < np.abs(trusted - ours).max() < 2e-2


def test_parts_have_the_boundaries_of_the_grid() -> None:
    problem = hycop.problem("adr2d")
    query = small_query(problem, "wall")
    parts = problem.subflows(query.grid)
    for name, part in parts.dictionary.items():
        fine = refined_query(query, parts.refinement)
        change = part.flow(fine.u0, query.time, fine.setting).mean(axis=(2, 3)) - fine.u0.mean(axis=(2, 3))
        assert (np.abs(change) < 1e-12).all() == (name != "reaction")
    with pytest.raises(IncompatibleError, match="'trusted advection' cannot handle the wall boundary along x"):
        hycop.problem("burgers1d").subflows(hycop.Grid.box((16,), boundary="wall"))


def test_the_error_of_the_parts_is_estimated() -> None:
    """The distance to parts that are much finer, within a factor of three; it tells poor parts from good ones."""
    problem = hycop.problem("swe1d")
    query = small_query(problem)
    good = problem.subflows(query.grid)
    poor = Subflows({name: ShallowWaterReference({name}, 2) for name in problem.processes})
    programs = hycop.splitting("strang").programs(query, good.dictionary)
    reached, best = (
        hycop.run(programs, parts.dictionary, query, refinement=parts.refinement).reshape(2, -1)
        for parts in (poor, good)
    )
    off = np.linalg.norm(reached - best, axis=1) / np.linalg.norm(best, axis=1)
    estimate = poor.error_estimate(programs, query)
    assert ((off / 3 < estimate) & (estimate < 3 * off)).all()
    assert (good.error_estimate(programs, query) < 0.1 * estimate).all()
    assert poor.finer().refinement == 4


def test_what_cannot_be_trusted_is_refused() -> None:
    grid = hycop.Grid.box((16, 16))
    with pytest.raises(UnknownNameError, match="unknown process 'reaction'"):
        hycop.problem("ad2d").subflows(grid, hycop.problem("adr2d").dictionary)
    with pytest.raises(InvalidInputError, match=r"refinements \[2, 4\], but must share one"):
        Subflows({"a": FourierReference({"advection"}, 2), "d": FourierReference({"diffusion"}, 4)})
