"""Settings and queries: what they accept, what they refuse, and how they are taken apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.errors import InvalidInputError
from hycop.grid import Grid
from hycop.query import Channel, Query, Setting, checked_state

properties = settings(max_examples=30, deadline=None, derandomize=True, database=None)
GRID = Grid.box((4, 3), lengths=(1.0, 2.0), batch=3)
SETTING = Setting(GRID, (Channel("h"), Channel("mx", normal=0)), {"g": 9.81, "cx": [1.0, 2.0, 3.0], "cy": [0, 1, 2]})
STATE = np.arange(72.0).reshape(3, 2, 4, 3)
QUERY = Query(STATE, SETTING, [0.1, 0.2, 0.3])  # type: ignore[arg-type]


def spoilt(value: float, sample: int) -> np.ndarray:
    state = STATE.copy()
    state[sample, 1, 2, 0] = value
    return state


BAD_INPUT: dict[str, tuple[Callable[[], object], str]] = {
    "parameter of another batch": (
        lambda: Setting(GRID, (), {"r": np.ones(2)}),
        r"parameter 'r' has shape \(2,\).*\(3,\)",
    ),
    "parameter as a field": (lambda: Setting(GRID, (), {"r": np.ones((3, 4))}), "parameter 'r' has shape"),
    "NaN parameter": (lambda: Setting(GRID, (), {"r": [1.0, np.nan, 1.0]}), "parameter 'r' is nan for sample 1"),
    "infinite parameter": (lambda: Setting(GRID, (), {"r": np.inf}), "parameter 'r' is inf for sample 0"),
    "missing parameter": (lambda: SETTING.param("D"), "parameter 'D' is missing.*given: g, cx, cy"),
    "missing parameter of none": (lambda: Setting(GRID, (), {}).param("D"), "parameter 'D'.*given: none"),
    "missing axis": (lambda: SETTING.per_axis("D"), "parameter 'Dx' is missing"),
    "grid of another batch": (lambda: SETTING.with_grid(Grid.box((4, 3), batch=2)), "parameter 'g'.*has shape"),
    "state of another batch": (lambda: Query(STATE[:2], SETTING, 0.1), r"u0 has shape \(2, 2, 4, 3\).*\[h, mx\]"),
    "state without channels": (lambda: Query(STATE[:, 0], SETTING, 0.1), "u0 has shape"),
    "state of another grid": (lambda: Query(STATE[..., :2], SETTING, 0.1), r"u0 has shape .*give \(3, 2, 4, 3\)"),
    "complex state": (lambda: Query(STATE * 1j, SETTING, 0.1), "u0 has dtype complex128: give real numbers"),
    "text as state": (lambda: Query(STATE.astype(str), SETTING, 0.1), "u0 has dtype <U"),
    "NaN in the state": (lambda: Query(spoilt(np.nan, 2), SETTING, 0.1), "u0 has a NaN or infinite value in sample 2"),
    "infinity in the state": (lambda: Query(spoilt(-np.inf, 1), SETTING, 0.1), "u0 .*in sample 1"),
    "named state": (lambda: checked_state(spoilt(np.nan, 0), SETTING, "truth"), "truth has a NaN"),
    "negative time": (lambda: Query(STATE, SETTING, [0.1, -0.1, 0.1]), "time is -0.1 for sample 1: .*not be negative"),
    "NaN time": (lambda: Query(STATE, SETTING, np.nan), "time is nan for sample 0"),
    "infinite time": (lambda: Query(STATE, SETTING, np.inf), "time is inf for sample 0"),
    "times of another batch": (lambda: Query(STATE, SETTING, np.ones(2)), r"time has shape \(2,\)"),
    "channels last": (
        lambda: Query(np.moveaxis(STATE, 1, -1), SETTING, 0.1),
        r"u0 has shape \(3, 4, 3, 2\).*channels come second, as np.moveaxis\(u0, -1, 1\)",
    ),
    "channels last on a grid made of them": (
        lambda: Query(np.ones((3, 64, 1)), Setting(Grid.box((1,), batch=3), ("u",), {}), 0.1),
        r"channels come second, as np.moveaxis",
    ),
    "parameters without names": (lambda: Setting(GRID, (), (1.0, 2.0)), "params are tuple: give coefficients by name"),
    "parameter as text": (lambda: Setting(GRID, (), {"r": "fast"}), r"parameter 'r' .*'fast'.*not text"),
    "number as channel": (lambda: Setting(GRID, ("u", 3), {}), "channel 3: give a name or a Channel"),
    "number of channels": (lambda: Setting(GRID, 2, {}), "channels 2: give a tuple of channels"),
    "two of a name": (lambda: Setting(GRID, ("u", Channel("u")), {}), "channels u, u: each needs a name of its own"),
    "shape as grid": (lambda: Setting((4, 3), (), {}), "grid is tuple: give a Grid"),
    "grid as setting": (lambda: Query(STATE, GRID, 0.1), "setting is Grid: give a Setting"),
    "text as time": (lambda: QUERY.at("0.5"), "times has dtype <U3 .*'0.5'.*give real numbers, not text"),
    "text among times": (lambda: QUERY.at(["0.5", "1"]), "times has dtype <U3: give real numbers"),
    "no time": (lambda: QUERY.at([]), "times is empty: give at least one"),
    "negative later time": (lambda: QUERY.at([0.1, -1.0]), "time is -1.0 for sample 1"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_refused_by_name(case: str) -> None:
    build, message = BAD_INPUT[case]
    with pytest.raises(InvalidInputError, match=message):
        build()


def test_channels_are_given_by_name_or_one_alone() -> None:
    for given_channels in (("u",), ["u"], "u", Channel("u"), (Channel("u"),)):
        assert Setting(GRID, given_channels, {}).channels == (Channel("u"),)  # type: ignore[arg-type]


def test_numbers_become_one_value_per_sample() -> None:
    assert SETTING.batch == 3
    np.testing.assert_array_equal(SETTING.param("g"), [9.81, 9.81, 9.81])
    np.testing.assert_array_equal(SETTING.per_axis("c"), [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]])
    np.testing.assert_array_equal(Query(STATE, SETTING, 0.25).time, [0.25] * 3)  # type: ignore[arg-type]
    assert Query(STATE, SETTING, 0.0).time.dtype == np.float64  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given_type", "kept"), [(np.float32, np.float32), (np.float64, np.float64), (np.int32, np.float64)]
)
def test_states_keep_their_precision_and_integers_become_real(given_type: type, kept: type) -> None:
    state = checked_state(STATE.astype(given_type), SETTING)
    assert state.dtype == kept
    np.testing.assert_array_equal(state, STATE)


def test_lists_are_states_too() -> None:
    assert Query(STATE.tolist(), SETTING, 0.1).u0.shape == (3, 2, 4, 3)  # type: ignore[arg-type]


def test_queries_and_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        QUERY.time = np.zeros(3)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        SETTING.params = {}  # type: ignore[misc]


@properties
@given(st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_take_chooses_samples_everywhere(samples: list[int]) -> None:
    part = QUERY.take(np.array(samples))
    assert part.batch == part.grid.batch == len(samples)
    np.testing.assert_array_equal(part.u0, STATE[samples])
    np.testing.assert_array_equal(part.time, QUERY.time[samples])
    np.testing.assert_array_equal(part.setting.param("cx"), SETTING.param("cx")[samples])
    assert part.setting.channels == SETTING.channels


def test_take_of_a_slice_copies_no_state() -> None:
    assert np.shares_memory(QUERY.take(slice(1, 3)).u0, QUERY.u0)


@properties
@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=4))
def test_at_asks_every_sample_at_every_time(times: list[float]) -> None:
    many = QUERY.at(times)
    assert many.batch == 3 * len(times)
    np.testing.assert_array_equal(many.time.reshape(3, -1), np.tile(times, (3, 1)))
    grouped = many.u0.reshape(3, len(times), *STATE.shape[1:])
    for column in range(len(times)):
        np.testing.assert_array_equal(grouped[:, column], STATE)
    np.testing.assert_array_equal(many.setting.param("cx"), np.repeat(SETTING.param("cx"), len(times)))


def test_at_takes_one_number() -> None:
    np.testing.assert_array_equal(QUERY.at(0.5).time, [0.5] * 3)  # type: ignore[arg-type]


def test_with_grid_replaces_the_grid_only() -> None:
    walled = SETTING.with_grid(GRID.with_boundary("wall"))
    assert walled.grid.boundary == ("wall", "wall")
    assert SETTING.grid.boundary == ("periodic", "periodic")
    np.testing.assert_array_equal(walled.param("cx"), SETTING.param("cx"))
