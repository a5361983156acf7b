"""Datasets in memory and in files: round trips, and files of other tools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hycop.data import Dataset, load, save
from hycop.errors import InvalidInputError
from hycop.grid import Grid
from hycop.query import Channel, Setting
from tests.helpers import SUFFIXES, assert_same, make, write_foreign

# In memory


def test_query_and_truth_are_sample_major() -> None:
    data = make(samples=2, times=4)
    query, truth = data.query, data.truth
    assert query.batch == 6 and truth.shape == (6, 1, 6)
    for row, (sample, time) in enumerate([(s, t) for s in range(2) for t in (1, 2, 3)]):
        np.testing.assert_array_equal(query.u0[row], data.states[sample, 0])
        np.testing.assert_array_equal(truth[row], data.states[sample, time])
        assert query.time[row] == data.times[sample, time]
        assert query.setting.param("cx")[row] == data.setting.param("cx")[sample]
        np.testing.assert_array_equal(query.grid.lengths[row], data.setting.grid.lengths[sample])


def test_query_time_is_counted_from_the_initial_state() -> None:
    data = make(samples=1, times=2)
    late = Dataset("toy", "train", data.states, [[2.0, 2.5]], data.setting)
    assert late.query.time.tolist() == [0.5]


def test_take_and_at() -> None:
    data = make(samples=4, times=3)
    some = data.take(np.array([2, 0]))
    assert some.samples == 2
    np.testing.assert_array_equal(some.states, data.states[[2, 0]])
    np.testing.assert_array_equal(some.setting.param("cx"), data.setting.param("cx")[[2, 0]])
    assert data.take(slice(1, 3)).samples == 2
    for index in (2, -1):
        last = data.at(index)
        np.testing.assert_array_equal(last.truth, data.states[:, 2])
        np.testing.assert_array_equal(last.query.time, data.times[:, 2])
    for index in (0, 3, -3):
        with pytest.raises(InvalidInputError, match=rf"time index {index}: .* 1 to 2"):
            data.at(index)


def test_initial_states_alone_are_allowed_but_cannot_be_asked(tmp_path: Path) -> None:
    data = make(times=1)
    save(data, tmp_path / "u0.nc")
    assert_same(load(tmp_path / "u0.nc"), data)
    with pytest.raises(InvalidInputError, match="no later time"):
        _ = data.query


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": np.zeros((3, 3, 1, 5))}, r"states have shape \(3, 3, 1, 5\).*\(3, time, 1, 6\)"),
        ({"states": np.zeros((3, 6))}, "states have shape"),
        ({"states": np.zeros((3, 0, 1, 6))}, "at least one sample, time"),
        ({"states": np.zeros((3, 3, 1, 6), dtype=complex)}, "states have dtype complex128"),
        ({"states": np.zeros((3, 3, 6, 1))}, r"the channels are the last axis here: np.moveaxis\(states, -1, 2\)"),
        ({"states": np.zeros((3, 3, 6))}, r"the axis of the channel is missing: states\[:, :, None\]"),
        ({"states": np.zeros((3, 1, 6))}, r"the axis of times is missing: states\[:, None\]"),
        ({"states": np.zeros((5, 3, 1, 6))}, "there are 5 samples: make the grid with batch=5"),
        ({"times": np.zeros((3, 2))}, r"times have shape \(3, 2\).* give \(3,\) if all .* else \(3, 3\)"),
        ({"times": [0.0, 1.0]}, r"times have shape \(2,\), but the states have 3 samples at 3 times"),
        ({"untrusted": np.zeros((3, 2))}, r"untrusted has shape \(3, 2\)"),
        ({"reasons": np.full((3, 2), "far")}, r"reasons have shape \(3, 2\)"),
        ({"reasons": np.zeros((3, 3))}, "reasons have .* dtype float64: texts"),
        ({"reasons": np.full((3, 3), "far"), "untrusted": np.zeros((3, 3))}, "where untrusted is not set"),
        ({"times": [[0, 1, 2], [0, 2, 1], [0, 1, 2]]}, "times: sample 1 goes back from 2.0 to 1.0 at time index 2"),
        ({"times": [[0, 1, 2], [0, 1, 2], [-1, 1, 2]]}, "times: -1.0 for sample 2, time index 0"),
        ({"times": [[0, 1, np.nan], [0, 1, 2], [0, 1, 2]]}, "times: nan for sample 0, time index 2"),
        ({"times": [["a", "b", "c"]] * 3}, "times have dtype"),
        ({"seed": -2}, "seed is -2"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": 2**63}, "seed is"),
        ({"reference_error": np.nan}, "reference_error is nan"),
        ({"problem": None}, "problem is None"),
    ],
)
def test_invalid_fields_are_named(change: dict[str, Any], message: str) -> None:
    data = make()
    fields = {"problem": "toy", "split": "id", "states": data.states, "times": data.times, "setting": data.setting}
    with pytest.raises(InvalidInputError, match=message):
        Dataset(**(fields | change))


def test_non_finite_state_is_located() -> None:
    data = make(channels=(Channel("h"), Channel("m", 0)))
    states = data.states.copy()
    states[2, 1, 1, 3] = np.inf
    with pytest.raises(InvalidInputError, match="channel 'm' has a NaN or infinite value in sample 2, time index 1"):
        Dataset("toy", "id", states, data.times, data.setting)


@pytest.mark.parametrize("name", ["time", "x", "seed", "a b", "a/b", "", "u"])
def test_names_that_no_file_could_hold_are_refused(name: str) -> None:
    setting = Setting(Grid.box((4,)), (Channel("u"),), {name: 1.0})
    with pytest.raises(InvalidInputError, match=f"parameter '{name}'"):
        Dataset("toy", "id", np.zeros((1, 2, 1, 4)), np.zeros((1, 2)), setting)


def test_other_real_numbers_become_float64() -> None:
    setting = Setting(Grid.box((4,)), (Channel("u"),), {})
    assert Dataset("toy", "id", np.ones((1, 1, 1, 4), int), [[0]], setting).states.dtype == np.float64
    assert Dataset("toy", "id", np.ones((1, 1, 1, 4), ">f4"), [[0]], setting).states.dtype == np.dtype("=f4")


# Round trips

MOMENTUM = (Channel("h"), Channel("hu", 0), Channel("hv", 1))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "boundary", "channels"),
    [
        ((6,), "periodic", (Channel("u"),)),
        ((1,), "outflow", (Channel("u"), Channel("v", 0))),
        ((4, 5), ("periodic", "wall"), MOMENTUM),
        ((2, 3, 4), ("wall", "outflow", "periodic"), (Channel("ρ"), Channel("w", 2))),
    ],
)
def test_round_trip(tmp_path: Path, suffix: str, dtype: Any, shape: Any, boundary: Any, channels: Any) -> None:
    data = make(shape, dtype=dtype, boundary=boundary, channels=channels)
    save(data, tmp_path / f"data{suffix}")
    assert_same(load(tmp_path / f"data{suffix}", problem="toy"), data)
    assert [path.name for path in tmp_path.iterdir()] == [f"data{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    samples=st.integers(1, 3),
    times=st.integers(1, 3),
    single=st.booleans(),
    text=st.text(st.characters(exclude_categories=["C"]), max_size=5),
    error=st.none() | st.floats(0, 1),
    seed=st.integers(0, 2**63 - 1),
)
def test_round_trip_of_anything(
    tmp_path: Path, suffix: str, shape: Any, samples: int, times: int, single: bool, text: str, error: Any, seed: int
) -> None:
    base = make(shape, samples=samples, times=times, dtype=np.float32 if single else np.float64)
    data = Dataset(text, text, base.states, base.times, base.setting, seed, text, error, text)
    save(data, tmp_path / f"any{suffix}")
    assert_same(load(tmp_path / f"any{suffix}"), data)


def shared() -> Dataset:
    """Samples with the same times and the same box, one of them flagged."""
    setting = Setting(Grid.box((4, 6), 2.0, batch=2), MOMENTUM, {"g": 9.81})
    states = np.random.default_rng(0).normal(size=(2, 3, 3, 4, 6))
    reasons = np.array([["", "", "Fr > 1, «très» fast"], ["", "", ""]])
    return Dataset("toy", "id", states, [0.0, 0.1, 0.2], setting, reasons=reasons)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("data", [make((4, 5), channels=MOMENTUM), shared()], ids=["own", "shared"])
def test_same_dataset_same_bytes(tmp_path: Path, suffix: str, data: Dataset) -> None:
    paths = [tmp_path / f"{name}{suffix}" for name in ("first", "second")]
    for path in paths:
        data.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_flags_and_their_reasons_are_kept(tmp_path: Path, suffix: str) -> None:
    data = shared()
    assert data.untrusted is not None and np.argwhere(data.untrusted).tolist() == [[0, 2]]
    data.save(tmp_path / f"data{suffix}")
    back = Dataset.load(tmp_path / f"data{suffix}", "other", also=["toy"])
    assert_same(back, data)
    assert np.array_equal(back.untrusted, data.untrusted) and np.array_equal(back.reasons, data.reasons)
    assert back.take(slice(0, 1)).at(2).reasons.tolist() == [["", "Fr > 1, «très» fast"]]
    silent = replace(data, reasons=np.full((2, 3), ""), untrusted=np.ones((2, 3)))
    silent.save(tmp_path / f"silent{suffix}")
    back = load(tmp_path / f"silent{suffix}")
    assert back.untrusted.all() and not back.reasons.any()


def test_shared_times_and_boxes_are_coordinates(tmp_path: Path) -> None:
    shared().save(tmp_path / "data.nc")
    with xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as file:
        one = file.sel(time=0.2, x=1.25, y=0.5)
        np.testing.assert_array_equal(one["h"], shared().states[:, 2, 0, 2, 1])
        assert one["untrusted_reason"].values.tolist() == ["Fr > 1, «très» fast", ""]
        assert [file[name].attrs["axis"] for name in ("time", "x", "y")] == ["T", "X", "Y"]
        assert all(file[name].attrs["units"] == "1" for name in ("time", "x", "y", "lengths", "h", "g"))
        assert file["untrusted"].attrs["flag_meanings"].split() == ["trusted", "untrusted"]
        assert file["untrusted"].attrs["flag_values"].tolist() == [0, 1]
    late = replace(shared(), times=np.array([[0.0, 0.1, 0.2], [0.0, 0.1, 0.3]]))
    late.save(tmp_path / "late.nc")
    assert_same(load(tmp_path / "late.nc"), late)


def test_files_of_the_first_version_are_read(tmp_path: Path) -> None:
    """Times of every sample, no coordinates, no conventions, no reasons."""
    data, path = shared(), tmp_path / "old.nc"
    data.save(path)
    with xr.open_dataset(path, engine="h5netcdf") as file:
        old = file.load().drop_vars(["time", "x", "y", "untrusted_reason"])
    old["time"] = (("sample", "time"), data.times)
    old.attrs.pop("Conventions")
    for variable in old.variables.values():
        variable.attrs = {key: value for key, value in variable.attrs.items() if key in ("role", "normal")}
    old.to_netcdf(tmp_path / "first.nc", engine="h5netcdf")
    back = load(tmp_path / "first.nc")
    assert_same(back, data)
    assert np.array_equal(back.untrusted, data.untrusted) and back.reasons is None


def test_file_reads_as_documented_without_hycop(tmp_path: Path) -> None:
    save(make((4, 5), boundary=("periodic", "wall"), channels=MOMENTUM, dtype=np.float32), tmp_path / "data.nc")
    with xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as file:
        assert file["hu"].dims == ("sample", "time", "x", "y") and file["hu"].dtype == np.float32
        notes = {"role": "channel", "units": "1", "cell_methods": "x: y: mean"}
        assert file["hu"].attrs == {**notes, "long_name": "hu", "normal": "x"}
        assert file["h"].attrs == {**notes, "long_name": "h"} and file.attrs["Conventions"] == "CF-1.11"
        assert file["time"].dims == ("sample", "time") and file["lengths"].dims == ("sample", "axis")
        assert not {"x", "y"} & set(file.variables)  # every sample has lengths of its own
        assert file["g"].dims == ("sample",) and file["g"].attrs["role"] == "parameter"
        assert file.attrs["boundary"] == "periodic,wall" and file.attrs["schema"] == 1 and file.attrs["seed"] == 7
    with h5netcdf.File(tmp_path / "data.nc") as raw:
        assert not any("_FillValue" in variable.attrs for variable in raw.variables.values())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_awkward_parameter_names(tmp_path: Path, suffix: str) -> None:
    setting = Setting(Grid.box((4,)), (Channel("u"),), {"file": 1.0, "allow_pickle": 2.0, "γ": 1.4})
    data = Dataset("toy", "id", np.zeros((1, 2, 1, 4)), [[0, 1]], setting)
    save(data, tmp_path / f"data{suffix}")
    assert_same(load(tmp_path / f"data{suffix}"), data)


# Files of other tools


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_file_of_another_tool(tmp_path: Path, suffix: str) -> None:
    data = load(write_foreign(tmp_path / f"data{suffix}"))
    assert data.setting.channels == (Channel("h"), Channel("m"))
    assert data.states.shape == (2, 3, 2, 4) and data.states.dtype == np.float32
    assert data.setting.params["g"].tolist() == [9.0, 10.0] and list(data.setting.params) == ["g"]
    assert data.setting.grid.boundary == ("periodic",) and data.setting.grid.lengths.tolist() == [[1.0], [2.0]]
    assert (data.problem, data.split, data.seed, data.reference, data.reference_error, data.version) == (
        ("unknown", "unknown", -1, "unknown", None, "unknown")
    )
    assert load(tmp_path / f"data{suffix}", problem="swe1d").problem == "swe1d"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_shared_times_lengths_and_scalars(tmp_path: Path, suffix: str) -> None:
    path = write_foreign(
        tmp_path / f"data{suffix}",
        attrs={"boundary": "wall"},
        time=(("time",), np.array([0.0, 0.5, 1.0])),
        lengths=(("axis",), np.array([3.0])),
        g=((), np.array(9.81)),
    )
    data = load(path)
    assert data.times.tolist() == [[0.0, 0.5, 1.0]] * 2 and data.setting.grid.lengths.tolist() == [[3.0]] * 2
    assert data.setting.params["g"].tolist() == [9.81] * 2 and data.setting.grid.boundary == ("wall",)


def test_time_units_of_another_tool_are_left_alone(tmp_path: Path) -> None:
    clock = np.tile([0.0, 0.5, 1.0], (2, 1))
    path = write_foreign(tmp_path / "data.nc", time=(("sample", "time"), clock, {"units": "days since 2000-01-01"}))
    np.testing.assert_array_equal(load(path).times, clock)


def test_unrelated_variables_are_left_aside(tmp_path: Path) -> None:
    path = write_foreign(tmp_path / "data.nc", x_bounds=(("x", "two"), np.zeros((4, 2))), crs=((), np.array("plane")))
    assert list(load(path).setting.params) == ["g"]
