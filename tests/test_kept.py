"""What is kept from call to call changes no answer: symbols and engines, found again by the content of a setting."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hycop import engine, primitive
from hycop.dictionary import Dictionary
from hycop.engine import Engine
from hycop.execution import measure, run, run_and_meter
from hycop.grid import Grid
from hycop.primitive import EXACT, Symbol, may_be_kept, symbol_of, transform_work
from hycop.primitives import ExactLogistic, SpectralAdvection, SpectralDiffusion
from hycop.program import Program, ProgramBatch
from hycop.query import Query, Setting
from tests.helpers import query_of

ADR = Dictionary({"advection": SpectralAdvection(), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()})
PROGRAM = Program.of(("advection", 0.1), ("diffusion", 0.1), ("reaction", 0.2), ("diffusion", 0.1))


@pytest.fixture(autouse=True)
def forget() -> None:
    primitive._kept.cache_clear()
    engine._kept.cache_clear()


def a_query(cx: float = 0.5, cells: int = 16, boundary: str = "periodic") -> Query:
    rng = np.random.default_rng(3)
    params = {"cx": cx, "cy": -0.3, "Dx": 0.01, "Dy": 0.02, "r": 1.3}
    setting = Setting(Grid.box((cells, cells), boundary=boundary), ("u",), params)
    return Query(rng.uniform(0.1, 0.9, (1, 1, cells, cells)), setting, np.array([0.2]))


def test_answers_do_not_depend_on_what_was_asked_before() -> None:
    asked = [a_query(0.5), a_query(-0.7), a_query(0.5, 8), a_query(0.5)]
    alone = []
    for query in asked:
        primitive._kept.cache_clear()
        engine._kept.cache_clear()
        alone.append(measure(PROGRAM, ADR, query))
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 0, 2]):
        for index in order:
            states, work = measure(PROGRAM, ADR, asked[index])
            np.testing.assert_array_equal(states, alone[index].states)
            np.testing.assert_array_equal(work, alone[index].work)
    assert engine._kept.cache_info().hits


@pytest.mark.parametrize("cells", [16, 96])  # from first step to last in cache, and step by step
def test_work_that_is_asked_for_later_is_the_same(cells: int) -> None:
    query = a_query(cells=cells).at([0.1, 0.2])
    programs = ProgramBatch.of([PROGRAM, Program.of(("reaction", 0.1), ("diffusion", 0.1))], ADR.names)
    states, meter = run_and_meter(programs, ADR, query)
    wanted = measure(programs, ADR, query)
    np.testing.assert_array_equal(states, wanted.states)
    np.testing.assert_array_equal(meter(), wanted.work)
    assert wanted.work[0] > wanted.work[1] > 0


def test_what_is_kept_is_bounded() -> None:
    for cx in np.linspace(-1.0, 1.0, 3 * primitive.SYMBOLS):
        query = a_query(float(cx), 4)
        run(PROGRAM, ADR, query)
        symbol_of(SpectralAdvection(), query.setting)
    assert primitive._kept.cache_info().currsize == primitive.SYMBOLS
    assert engine._kept.cache_info().currsize == engine.ENGINES


def test_large_batches_are_not_kept() -> None:
    many = query_of(1 + primitive.MOST_KEPT // (6 + 5))
    assert many.batch * sum(many.grid.shape) > primitive.MOST_KEPT
    symbol_of(SpectralAdvection(), many.setting)
    Engine.tied(ADR.names, dict(enumerate(ADR.values())), many.setting)
    assert not primitive._kept.cache_info().currsize and not engine._kept.cache_info().currsize


def test_a_caller_may_write_into_its_arrays() -> None:
    speed = np.array([0.5])
    query = a_query()
    setting = replace(query.setting, params={**query.setting.params, "r": speed})
    query = replace(query, setting=setting)
    before = run(PROGRAM, ADR, query)
    speed[0] = 3.0
    changed = run(PROGRAM, ADR, query)
    assert np.abs(changed - before).max() > 1e-3
    speed[0] = 0.5
    np.testing.assert_array_equal(run(PROGRAM, ADR, query), before)


class Turning:
    """Advection that somebody may change between two calls."""

    advances = frozenset({"advection"})
    order = EXACT

    def __init__(self) -> None:
        self.factor = 1.0

    def symbol(self, setting: Setting) -> Symbol:
        rates = SpectralAdvection().symbol(setting).rates
        return Symbol(SpectralAdvection().symbol(setting).transforms, tuple(self.factor * rate for rate in rates))

    def flow(self, u: np.ndarray, duration: np.ndarray, setting: Setting) -> np.ndarray:
        raise AssertionError("run takes the symbol")

    def work(self, u: np.ndarray, duration: np.ndarray, setting: Setting) -> np.ndarray:
        return transform_work(setting)


@dataclass(frozen=True)
class WithList(SpectralAdvection):
    """Frozen, but what it holds is not."""

    factors: list[float]


def test_what_may_change_is_not_kept() -> None:
    query, own = a_query(), Turning()
    dictionary = Dictionary({"advection": own})
    once = run(Program.of(("advection", 0.1)), dictionary, query)
    own.factor = 2.0
    twice = run(Program.of(("advection", 0.1)), dictionary, query)
    assert np.abs(once - twice).max() > 1e-3
    assert may_be_kept(SpectralAdvection(), query.setting)
    assert not may_be_kept(own, query.setting) and not may_be_kept(WithList([1.0]), query.setting)


def test_a_class_that_only_inherits_from_a_frozen_one_is_never_kept() -> None:
    class Slower(SpectralAdvection):
        def __init__(self, factor: float) -> None:
            super().__init__()
            object.__setattr__(self, "factor", factor)

        def symbol(self, setting: Setting) -> Symbol:
            own = super().symbol(setting)
            return Symbol(own.transforms, tuple(self.factor * rate for rate in own.rates))

    setting = a_query().setting
    assert Slower(0.5) == Slower(0.1)  # equality does not see the factor
    one, two = (symbol_of(Slower(factor), setting) for factor in (0.5, 0.1))
    assert not np.array_equal(one.rates[0], two.rates[0])
    assert may_be_kept(SpectralAdvection(), setting) and not may_be_kept(Slower(0.5), setting)
