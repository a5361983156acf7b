"""Files of The Well: ours open with its own package, theirs open here, and damaged ones are refused in one line."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hycop
from hycop.data import Dataset, WellFile, write_well
from hycop.data.blocks import blocks
from hycop.data.the_well import is_well
from hycop.data.well_writer import WellWriter
from hycop.errors import DatasetError, InvalidInputError
from hycop.grid import Grid
from hycop.query import Channel, Setting
from tests.helpers import hycop_command

h5py = pytest.importorskip("h5py")


def water(samples: int = 5, times: int = 3) -> Dataset:
    """A scalar and a vector on a walled box of unequal sides, with a coefficient per sample and a common one."""
    rng = np.random.default_rng(1)
    grid = Grid.box((6, 4), (2.0, 1.0), ("wall", "periodic"), batch=samples)
    channels = (Channel("h"), Channel("mx", 0), Channel("my", 1))
    setting = Setting(grid, channels, {"g": 9.81, "nu": rng.random(samples)})
    states = rng.random((samples, times, 3, 6, 4)).astype(np.float32)
    return Dataset("swe2d", "id", states, np.linspace(0.0, 1.0, times), setting, 3, "made here", 1e-6, "1")


def foreign(path: Path, change: Any = None) -> Path:
    """A file as The Well's are, written without this package: a field, a vector that does not vary along y, a tensor,
    a steady field, and scalars that do and do not vary in time."""
    rng = np.random.default_rng(2)
    with h5py.File(path, "w") as file:
        file.attrs.update({"dataset_name": "active_matter", "grid_type": "cartesian", "n_spatial_dims": 2})
        file.attrs.update({"n_trajectories": 2, "simulation_parameters": ["alpha"], "alpha": -1.0})
        dims = file.create_group("dimensions")
        dims.attrs["spatial_dims"] = ["x", "y"]
        for name, count, length in (("time", 4, 2.0), ("x", 8, 10.0), ("y", 6, 5.0)):
            dims[name] = np.linspace(0.0, length, count, endpoint=False, dtype=np.float32)
            dims[name].attrs.update({"sample_varying": False, "time_varying": False})
        shapes = {
            "t0_fields": {"concentration": ((2, 4, 8, 6), True, True, [True, True])},
            "t1_fields": {"velocity": ((2, 4, 8, 2), True, True, [True, False])},
            "t2_fields": {"D": ((4, 8, 6, 2, 2), False, True, [True, True])},
        }
        shapes["t0_fields"]["mask"] = ((8, 6), False, False, [True, True])
        for group, fields in shapes.items():
            file.create_group(group).attrs["field_names"] = list(fields)
            for name, (shape, sample, time, varying) in fields.items():
                held = file.create_dataset(f"{group}/{name}", data=rng.random(shape).astype(np.float32))
                held.attrs.update({"sample_varying": sample, "time_varying": time, "dim_varying": varying})
        scalars = file.create_group("scalars")
        scalars.attrs["field_names"] = ["alpha", "zeta", "drift"]
        for name, value, sample, time in (
            ("alpha", -1.0, 0, 0),
            ("zeta", [1.0, 3.0], 1, 0),
            ("drift", [0.0] * 4, 0, 1),
        ):
            scalars[name] = np.asarray(value, dtype=np.float32)
            scalars[name].attrs.update({"sample_varying": bool(sample), "time_varying": bool(time)})
        conditions = file.create_group("boundary_conditions")
        for letter, cells in (("x", 8), ("y", 6)):
            group = conditions.create_group(f"{letter}_boundary")
            group.attrs.update({"associated_dims": [letter], "associated_fields": [], "bc_type": "PERIODIC"})
            group.attrs.update({"sample_varying": False, "time_varying": False})
            group["mask"] = np.ones(cells, dtype=bool)
        if change is not None:
            change(file)
    return path


def test_a_file_that_we_write_opens_with_the_well_and_here(tmp_path: Path) -> None:
    data = water()
    with WellWriter(tmp_path / "ours.hdf5", data.samples) as target:
        for some in blocks(data.samples, 2):
            target.append(data.take(some))
    again = WellFile(tmp_path / "ours.hdf5").read()
    assert again.setting.channels == data.setting.channels and again.setting.grid.boundary == ("wall", "periodic")
    assert np.array_equal(again.states, data.states) and again.problem == "swe2d"
    np.testing.assert_allclose(again.times, data.times, rtol=1e-6)
    np.testing.assert_allclose(again.setting.grid.lengths, data.setting.grid.lengths, rtol=1e-6)
    assert np.array_equal(again.setting.param("nu"), data.setting.param("nu"))
    write_well(data, tmp_path / "whole.hdf5")
    assert (tmp_path / "whole.hdf5").read_bytes() == (tmp_path / "ours.hdf5").read_bytes()  # whatever the blocks

    (tmp_path / "whole.hdf5").unlink()
    the_well = pytest.importorskip("the_well.data", reason="needs the-well, of the extra 'dev'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of another package
        theirs = the_well.WellDataset(path=str(tmp_path), n_steps_input=1, n_steps_output=2)
        sample = theirs[4]
        arrays = theirs.to_xarray(backend="numpy")
    assert theirs.metadata.dataset_name == "swe2d" and theirs.metadata.spatial_resolution == (6, 4)
    assert theirs.metadata.field_names == {0: ["h"], 1: ["m_x", "m_y"], 2: []}
    assert theirs.metadata.n_trajectories_per_file == [5] and theirs.metadata.n_steps_per_trajectory == [3]
    expected = np.moveaxis(data.states[4], 1, -1)
    assert np.array_equal(sample["input_fields"].numpy(), expected[:1])
    assert np.array_equal(sample["output_fields"].numpy(), expected[1:])
    assert sample["boundary_conditions"].tolist() == [[0, 0], [2, 2]]  # wall and periodic, by its codes
    constants = [float(data.setting.param(name)[4]) for name in theirs.metadata.constant_scalar_names]
    np.testing.assert_allclose(sample["constant_scalars"].numpy(), constants, rtol=1e-6)
    np.testing.assert_allclose(sample["space_grid"][1, 2].numpy(), [0.5, 0.625], rtol=1e-6)
    assert np.array_equal(arrays["h"].values, data.states[:, :, 0])


def test_a_foreign_file_opens_here_in_parts(tmp_path: Path) -> None:
    path = foreign(tmp_path / "theirs.hdf5")
    file = WellFile(path)
    assert is_well(path) and file.samples == 2 and file.shape == (8, 6) and file.name == "active_matter"
    names = [channel.name for channel in file.channels]
    assert names == ["concentration", "velocity_x", "velocity_y", "D_xx", "D_xy", "D_yx", "D_yy"]
    assert [channel.normal for channel in file.channels[:3]] == [None, 0, 1]
    assert file.left_out == ("t0_fields/mask", "scalars/drift")
    data = file.read(slice(1, 2), frames=[0, 3], shape=(4, 6))
    assert data.states.shape == (1, 2, 7, 4, 6) and data.setting.grid.boundary == ("periodic", "periodic")
    np.testing.assert_allclose(data.setting.grid.lengths, [[10.0, 5.0]], rtol=1e-6)
    np.testing.assert_allclose(data.times, [[0.0, 1.5]], rtol=1e-6)
    assert data.setting.param("alpha")[0] == -1.0 and data.setting.param("zeta")[0] == 3.0
    with h5py.File(path) as raw:
        field = raw["t0_fields/concentration"][1, 3].astype(np.float64)
        vector = raw["t1_fields/velocity"][1, 3].astype(np.float64)
        tensor = raw["t2_fields/D"][3, ..., 0, 1].astype(np.float64)
    np.testing.assert_allclose(data.states[0, 1, 0], field.reshape(4, 2, 6).mean(axis=1))
    whole = file.read().states[1, 3]
    assert np.array_equal(whole[2], np.broadcast_to(vector[:, None, 1], (8, 6))) and np.array_equal(whole[4], tensor)


def _remove(place: str) -> Any:
    return lambda file: file.__delitem__(place)


def _attribute(place: str, name: str, value: object) -> Any:
    return lambda file: file[place].attrs.__setitem__(name, value)


def _replaced(place: str, values: object) -> Any:
    def change(file: Any) -> None:
        attrs = dict(file[place].attrs)
        del file[place]
        file[place] = values
        file[place].attrs.update(attrs)

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_remove("t2_fields"), "group 't2_fields' is missing"),
        (_remove("dimensions/time"), "dimensions/time is missing"),
        (_remove("t0_fields/concentration"), "names the field 'concentration', but has none"),
        (_attribute("/", "grid_type", "spherical"), "grid_type is 'spherical'"),
        (_attribute("/", "n_trajectories", 3), "has shape"),
        (_attribute("/", "n_trajectories", "two"), "n_trajectories"),
        (_attribute("dimensions", "spatial_dims", ["x"]), "one entry for each axis"),
        (_attribute("dimensions/x", "time_varying", True), "varies in time"),
        (_attribute("t0_fields/concentration", "dim_varying", [True, False]), "has shape"),
        (_attribute("boundary_conditions/x_boundary", "bc_type", "SYMMETRIC"), "--boundary"),
        (_replaced("dimensions/x", np.arange(8.0) ** 2), "not uniform"),
        (_replaced("dimensions/time", [0.0, 2.0, 1.0, 3.0]), "increasing"),
        (_replaced("scalars/zeta", [1.0, 2.0, 3.0]), "scalars/zeta has shape"),
        (_replaced("t0_fields/concentration", np.full((2, 4, 8, 6), np.nan)), "NaN or infinite"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(change: Any, said: str, tmp_path: Path) -> None:
    path = foreign(tmp_path / "theirs.hdf5", change=change)
    with pytest.raises(DatasetError) as failure:
        WellFile(path).read()
    assert said in str(failure.value) and str(path) in str(failure.value) and "\n" not in str(failure.value)


def test_a_boundary_that_the_file_does_not_say_is_open_or_given(tmp_path: Path) -> None:
    path = foreign(tmp_path / "a.hdf5", change=_remove("boundary_conditions/x_boundary"))
    assert WellFile(path).read().setting.grid.boundary == ("outflow", "periodic")
    path = foreign(tmp_path / "b.hdf5", change=_attribute("boundary_conditions/x_boundary", "bc_type", "ROBIN"))
    assert WellFile(path, boundary="wall").read().setting.grid.boundary == ("wall", "wall")


def test_nothing_is_left_of_a_file_that_fails(tmp_path: Path) -> None:
    data = water()
    with pytest.raises(ValueError, match="no more"), WellWriter(tmp_path / "a.hdf5", data.samples) as target:
        target.append(data.take(slice(0, 2)))
        raise ValueError("no more")
    with pytest.raises(InvalidInputError, match="2 of 5"), WellWriter(tmp_path / "a.hdf5", data.samples) as target:
        target.append(data.take(slice(0, 2)))
    with pytest.raises(InvalidInputError, match="the first had"), WellWriter(tmp_path / "a.hdf5", 5) as target:
        target.append(data.take(slice(0, 2)))
        target.append(data.take(slice(2, 5)).at(1))
    assert not list(tmp_path.iterdir())


def test_data_and_evaluate_write_and_read_files_of_the_well(tmp_path: Path) -> None:
    made = hycop_command(
        *("data", "adr2d", "ours.hdf5", "--layout", "well", "--samples", "3", "--shape", "12x8", "--split", "id"),
        *("--times", "0.1,0.2", "--json", "made.json"),
        folder=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    assert json.loads((tmp_path / "made.json").read_text())["samples"] == 3
    well = WellFile(tmp_path / "ours.hdf5").read()
    expected = hycop.problem("adr2d").sample(3, "id", 0, shape=(12, 8), times=[0.1, 0.2], estimated=0)
    assert np.array_equal(well.states, expected.states.astype(np.float32)) and well.problem == "adr2d"
    judged = hycop_command("evaluate", "adr2d", "--data", "ours.hdf5", "--scheme", "strang", folder=tmp_path)
    assert judged.returncode == 0 and "Strang" in judged.stdout, judged.stderr
