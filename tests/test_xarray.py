"""xarray in and out: datasets, answers and predictions; rows as pandas frames."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hycop
from hycop.answer import times_per_sample
from hycop.errors import InvalidInputError
from hycop.surrogate import UntrustedWarning
from tests.helpers import SMALL_MODEL, small_data


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP.load(SMALL_MODEL)


@pytest.fixture(scope="module")
def data() -> hycop.Dataset:
    return small_data()


@pytest.fixture(autouse=True)
def quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedWarning)
        yield


def same(one: hycop.Dataset, other: hycop.Dataset) -> bool:
    params = all(np.array_equal(one.setting.params[name], other.setting.params[name]) for name in other.setting.params)
    grids = one.setting.grid.boundary == other.setting.grid.boundary
    return params and grids and np.array_equal(one.states, other.states) and np.array_equal(one.times, other.times)


def test_there_and_back(data: hycop.Dataset) -> None:
    contents = data.to_xarray()
    assert contents["u"].dims == ("sample", "time", "x") and contents.attrs["problem"] == "adr1d"
    back = hycop.Dataset.from_xarray(contents, "adr1d")
    assert same(back, data) and (back.split, back.seed) == (data.split, data.seed)
    with pytest.raises(InvalidInputError, match="'adr1d', but 'swe1d'"):
        hycop.Dataset.from_xarray(contents, "swe1d")
    with pytest.raises(InvalidInputError, match="DataArray"):
        hycop.Dataset.from_xarray(contents["u"])


def test_a_file_and_memory_have_the_same_layout(data: hycop.Dataset, tmp_path: Path) -> None:
    data.save(tmp_path / "data.nc")
    with xr.open_dataset(tmp_path / "data.nc", engine="h5netcdf") as file:
        assert same(hycop.Dataset.from_xarray(file), data)
        assert set(file.variables) == set(data.to_xarray().variables)


def test_what_people_do_to_xarray(data: hycop.Dataset) -> None:
    contents = data.to_xarray()
    assert same(hycop.Dataset.from_xarray(contents.transpose("x", "time", "sample", "axis")), data)
    assert same(hycop.Dataset.from_xarray(contents.isel(sample=1)), data.take(slice(1, 2)))
    assert same(hycop.Dataset.from_xarray(contents.isel(sample=[0, 2])), data.take(np.array([0, 2])))
    with pytest.raises(InvalidInputError, match="'lengths' is missing"):
        hycop.Dataset.from_xarray(contents.drop_vars("lengths"))


def test_predictions_are_xarray_if_the_question_is(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    found = model.predict(data.to_xarray(), times=[0.03, 0.1, 0.15])
    assert isinstance(found, xr.Dataset) and found["u"].shape == (3, 4, 64) and found["time"].values[1] == 0.03
    lengths = data.setting.grid.lengths
    expected = model.predict(data.states[:, 0], data.setting.params, [0.03, 0.1, 0.15], lengths)
    assert np.array_equal(found["u"].values[:, 1:], expected[:, :, 0])
    assert np.array_equal(found["u"].values[:, 0], data.states[:, 0, 0])
    at_own_times = model.predict(data.to_xarray())
    assert np.array_equal(at_own_times["time"], [0.0, 0.05, 0.2])
    again = hycop.Dataset.from_xarray(found)
    assert again.untrusted is not None and again.problem == "adr1d"


def test_times_count_from_the_initial_states(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    later = data.to_xarray().assign_coords(time=[1.0, 1.05, 1.2])
    found = model.predict(later)
    assert found["time"].values == pytest.approx([1.0, 1.05, 1.2])
    assert found["u"].values == pytest.approx(model.predict(data.to_xarray())["u"].values)


def test_an_answer_to_xarray_and_as_xarray(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    query = model.query(data.states[:, 0], data.setting.params, [0.05, 0.2], data.setting.grid.lengths)
    answer = model.answer(query)
    contents = answer.to_xarray()
    assert contents["u"].shape == (3, 3, 64) and "error_estimate" not in contents
    assert np.array_equal(contents["u"].values[:, 1:].reshape(6, 1, 64), answer.states)
    asked = model.answer(data.to_xarray())
    assert np.array_equal(asked.states, answer.states)
    estimated = answer.to_xarray(error_estimate=True)["error_estimate"].values
    assert np.array_equal(estimated[:, 1:].reshape(-1), answer.error) and not estimated[:, 0].any()


def test_only_times_of_one_state_become_one_sample(data: hycop.Dataset) -> None:
    query = data.query
    assert times_per_sample(query) == 2 and times_per_sample(query.take(slice(0, 1))) == 1
    assert times_per_sample(query.take(np.array([0, 2, 4]))) == 1
    assert times_per_sample(query.take(np.array([1, 0]))) == 1  # back in time
    assert times_per_sample(query.take(np.array([0, 1, 2]))) == 1  # two times, then one


def test_what_is_refused(model: hycop.HyCOP, data: hycop.Dataset) -> None:
    with pytest.raises(InvalidInputError, match="has its own; leave them out"):
        model.predict(data.to_xarray(), data.setting.params, [0.1])  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="params is a NoneType"):
        model.predict(data.states[:, 0], times=[0.1])  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="initial states only"):
        model.predict(data.to_xarray().isel(time=[0]))


def test_rows_become_frames(data: hycop.Dataset, tmp_path: Path) -> None:
    schemes = [hycop.splitting("lie"), hycop.splitting("strang")]
    rows = hycop.evaluate(hycop.composed(schemes, hycop.HyCOP.load(SMALL_MODEL).dictionary), [data.at(-1)])
    frame = hycop.frame(rows)
    assert list(frame["method"]) == ["Lie", "Strang"] and frame["value"].tolist() == [row.value for row in rows]
    (tmp_path / "rows.json").write_text(json.dumps({"rows": [row.to_json() for row in rows]}))
    assert hycop.frame(tmp_path / "rows.json").equals(frame)
    assert hycop.frame([]).empty and "work" in hycop.frame([]).columns
    (tmp_path / "other.json").write_text('{"lines": []}')
    with pytest.raises(InvalidInputError, match=r"other\.json: holds no rows"):
        hycop.frame(tmp_path / "other.json")
    with pytest.raises(InvalidInputError, match="NoneType holds none"):
        hycop.frame(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="no row"):
        hycop.frame([{"value": 1.0}])  # type: ignore[list-item]
