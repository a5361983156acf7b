"""Programs with somebody's own primitives, and what is said when these fail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from hycop.conformance import check_primitive
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, NonFiniteStateError
from hycop.execution import measure, run
from hycop.grid import Array
from hycop.primitive import EXACT
from hycop.primitives import ExactLogistic
from hycop.primitives.examples import scalar_example
from hycop.program import EMPTY, Program, ProgramBatch
from hycop.query import Query, Setting
from tests.helpers import DICTIONARY, query_of


@dataclass(frozen=True)
class LinearDrag:
    """Somebody's own primitive, with nothing optional: u_t = −k u."""

    rate: float = 2.0
    advances = frozenset({"drag"})
    order = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-self.rate * duration)[:, None, None, None]

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(setting.grid.cells))


@dataclass(frozen=True)
class DoubleWell:
    """u_t = u − u³, whose states forget where they came from."""

    advances = frozenset({"double well"})
    order = EXACT
    reversible = True

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u / np.sqrt(u**2 + (1 - u**2) * np.exp(-2 * duration)[:, None, None, None])

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(setting.grid.cells))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ())


@dataclass(frozen=True)
class Blending(DoubleWell):
    """u_t = ū − u with the mean ū over the box, whatever its ends are."""

    reversible = False
    boundaries = frozenset({"periodic", "wall"})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        mean = u.mean(axis=(2, 3), keepdims=True)
        return mean + (u - mean) * np.exp(-duration)[:, None, None, None]


@pytest.mark.parametrize("primitive", [DoubleWell(), Blending()])
def test_conforms(primitive: DoubleWell) -> None:
    check_primitive(primitive).raise_if_failed()


@dataclass(frozen=True)
class Amplifier(LinearDrag):
    """Overflows at once where the parameter ``r`` is negative, and changes nothing elsewhere."""

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.where((setting.param("r") < 0)[:, None, None, None], np.inf, u)


@dataclass(frozen=True)
class Cropper(LinearDrag):
    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u[..., 1:]


class TestForeignPrimitives:
    @pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
    def test_four_members_are_enough(self, boundary: str) -> None:
        query, dictionary = query_of(2, boundary), DICTIONARY.adding("drag", LinearDrag())
        outcome = measure(Program.parse("drag 0.5, drag 0.5"), dictionary, query)
        np.testing.assert_allclose(outcome.states, query.u0 * np.exp(-2.0), rtol=1e-14)
        np.testing.assert_array_equal(outcome.work, [30.0, 30.0])
        with pytest.raises(IncompatibleError, match="'drag' cannot run backwards"):
            run(Program.parse("drag -0.5"), dictionary, query)

    def test_a_wrong_shape_is_named(self) -> None:
        dictionary = DICTIONARY.adding("cropper", Cropper())
        with pytest.raises(IncompatibleError, match=r"'cropper' returned shape \(2, 1, 6, 4\) for a state of shape"):
            run(Program.parse("reaction 0.1, cropper 0.1"), dictionary, query_of(2))

    @pytest.mark.parametrize("memory", [1, 2**30])
    def test_a_lost_state_is_named_by_sample_step_and_primitive(self, memory: int) -> None:
        query, dictionary = query_of(4), DICTIONARY.adding("amplifier", Amplifier())
        params = {**query.setting.params, "r": np.array([1.0, 1.0, -1.0, 1.0])}
        query = Query(query.u0, Setting(query.grid, query.setting.channels, params), query.time)
        programs = ProgramBatch.of([Program.parse("muscl 0.1, amplifier 0.25, muscl 0.1")] * 4, dictionary.names)
        with pytest.raises(NonFiniteStateError, match=r"^sample 2: .* at step 2 of 3 \(amplifier 0.25\)$"):
            run(programs, dictionary, query, memory=memory)
        outcome = measure(programs, dictionary, query, memory=memory, strict=False)
        assert np.isfinite(outcome.states).all(axis=(1, 2, 3)).tolist() == [True, True, False, True]
        others = np.array([0, 1, 3])
        assert np.isfinite(run(programs.take(others), dictionary, query.take(others))).all()

    def test_empty_slots_are_not_counted_as_steps(self) -> None:
        dictionary = Dictionary({"amplifier": Amplifier(), "reaction": ExactLogistic()})
        query = query_of(1)
        query = Query(query.u0, Setting(query.grid, query.setting.channels, {"r": -1.0}), query.time)
        programs = ProgramBatch(dictionary.names, np.array([[1, EMPTY, 0]]), np.array([[0.1, 0.0, 0.2]]))
        with pytest.raises(NonFiniteStateError, match=r"at step 2 of 2 \(amplifier 0.2\)"):
            run(programs, dictionary, query)
