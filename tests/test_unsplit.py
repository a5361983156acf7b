"""Unsplit opponents: a ladder of time steps, and the cheapest that is no worse."""

from __future__ import annotations

import numpy as np
import pytest

from hycop.errors import InvalidInputError
from hycop.evaluation import Rung, UnsplitOpponents, ladder
from hycop.grid import Array
from hycop.primitives import ExactLogistic, ExponentialRungeKutta, ShallowWater, SpectralAdvection, SpectralDiffusion
from hycop.problems import find_problem
from hycop.query import Setting


class Blind:
    """Has no rate and no symbol."""

    advances = frozenset({"light"})
    order = None

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ones(len(u))


def test_ladders() -> None:
    waters = ladder([], ShallowWater(cfl=0.5))
    assert [rung.value for rung in waters] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    assert [rung.value for rung in ladder([], ShallowWater(cfl=1.0))] == [1.0, 0.5, 0.25, 0.125]
    assert ladder([Blind()]) == ()
    (exact,) = ladder([SpectralAdvection(), SpectralDiffusion()])
    assert exact.knob == "exact"
    every = ladder([SpectralDiffusion(), ExactLogistic()])
    assert {rung.knob for rung in every} == {"ETDRK2 steps", "ETDRK2 reach", "ETDRK4 steps", "ETDRK4 reach"}
    assert all(isinstance(rung.primitive, ExponentialRungeKutta) for rung in every)


def test_the_cheapest_that_is_no_worse() -> None:
    chosen = find_problem("adr2d")
    data = chosen.sample(6, "id", 0, shape=(16, 16), estimated=0)
    rivals = UnsplitOpponents(ladder(list(chosen.dictionary.values())), data.query, data.truth)
    errors = {rung: rivals.mean_error(rung) for rung in rivals.rungs}
    rough, fine = rivals.best(0.5 * max(errors.values())), rivals.best(1.1 * min(errors.values()))
    assert rough.reached and fine.reached and fine.error <= 1.02 * 1.1 * min(errors.values())
    cost = {rung: float(rung.solver().solve(data.query).work.mean()) for rung in rivals.rungs}
    assert cost[rough.rung] <= cost[fine.rung]
    enough = [rung for rung, error in errors.items() if error <= 1.02 * 1.1 * min(errors.values())]
    assert cost[fine.rung] == pytest.approx(min(cost[rung] for rung in enough), rel=0.05)
    never = rivals.best(0.0)
    assert not never.reached and never.error == min(errors.values())


def test_a_step_that_is_lost_is_infinitely_wrong() -> None:
    chosen = find_problem("ks1d")
    data = chosen.sample(2, "id", 0, shape=(32,), estimated=0)
    wild = Rung(ExponentialRungeKutta(tuple(chosen.dictionary.values())), "ETDRK4 steps", 1.0)
    assert UnsplitOpponents([wild], data.query, data.truth * np.nan).best(1.0).error == np.inf
    with pytest.raises(InvalidInputError, match="there is no unsplit solver"):
        UnsplitOpponents((), data.query, data.truth).best(1.0)
