"""PDEBench's files: the three layouts, parts of them, round trips, and every fault in one clear line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hycop.cli.reading import Reading
from hycop.data import Dataset, PDEBenchFile, save, write_pdebench
from hycop.data.gas import decode, encode
from hycop.errors import DatasetError, InvalidInputError, OutputError
from hycop.grid import restrict
from hycop.problems import find_problem as problem
from hycop.problems.compressible import PROBLEMS, SIDE
from hycop.query import Channel, Setting
from tests.helpers import make_gas, write_gas

FIXTURE = (
    Path(__file__).resolve().parents[2] / "shared" / "data" / "2D_CFD_Rand_M0.1_Eta0.1_Zeta0.1_periodic_128_sample.hdf5"
)
needs_fixture = pytest.mark.skipif(not FIXTURE.exists(), reason=f"PDEBench's sample is not at {FIXTURE}")


def write_tensor(path: Path, channels: int | None = None) -> None:
    with h5py.File(path, "w") as file:
        tail = () if channels is None else (channels,)
        file["tensor"] = np.random.default_rng(0).normal(size=(3, 4, 8, *tail)).astype(np.float32)
        file["x-coordinate"] = (np.arange(8) + 0.5) / 4
        file["t-coordinate"] = 0.1 * np.arange(5)
        file.attrs["beta"] = 0.4
        file.attrs["note"] = "advection"


def write_groups(path: Path) -> None:
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for sample in range(3):
            file[f"{sample:04}/data"] = rng.normal(size=(5, 6, 4, 2)).astype(np.float32)
            file[f"{sample:04}/grid/x"] = np.linspace(-1, 1, 7)[:-1] + 1 / 6
            file[f"{sample:04}/grid/y"] = np.linspace(0, 1, 5)[:-1]
            file[f"{sample:04}/grid/t"] = np.linspace(0, 1, 5)


@given(
    shape=st.lists(st.integers(2, 5), min_size=1, max_size=3),
    samples=st.integers(1, 3),
    frames=st.integers(1, 3),
    gamma=st.floats(1.1, 2.0),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_files_are_read_back(tmp_path: Path, shape: list[int], samples: int, frames: int, gamma: float) -> None:
    data = make_gas(tuple(shape), samples, frames, gamma)
    write_pdebench(data, tmp_path / "gas.hdf5", mach=0.1)
    file = PDEBenchFile(tmp_path / "gas.hdf5", problem="ns2d")
    back = file.read()
    np.testing.assert_allclose(back.states, data.states, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(back.times, data.times, rtol=1e-6)
    np.testing.assert_allclose(back.setting.grid.lengths, data.setting.grid.lengths, rtol=1e-6)
    assert back.setting.channels == data.setting.channels and back.problem == "ns2d"
    assert {name: values.tolist() for name, values in back.setting.params.items()} == {
        name: values.tolist() for name, values in data.setting.params.items()
    }
    assert file.attributes["M"] == 0.1 and file.samples == samples and file.shape == tuple(shape)
    with h5py.File(tmp_path / "gas.hdf5") as raw:
        assert raw["density"].dtype == np.float32 and raw["t-coordinate"].shape == (frames + 1,)


@given(st.integers(1, 3), st.floats(1.05, 3.0), st.integers(0, 2**16))
@settings(max_examples=30, deadline=None)
def test_decode_inverts_encode(axes: int, gamma: float, seed: int) -> None:
    reported = np.random.default_rng(seed).uniform(0.1, 10.0, (2, 2 + axes, *(3,) * axes))
    np.testing.assert_allclose(decode(encode(reported, gamma), gamma), reported, rtol=1e-9)
    each = np.array([gamma, 1.4])
    np.testing.assert_allclose(encode(reported, each)[1:], encode(reported[1:], 1.4))


def test_tensors_are_scalars_or_have_channels_last(tmp_path: Path) -> None:
    write_tensor(tmp_path / "a.hdf5")
    file = PDEBenchFile(tmp_path / "a.hdf5")
    assert (file.samples, file.shape, file.channels) == (3, (8,), (Channel("u"),))
    assert file.attributes == {"beta": 0.4, "note": "advection"} and file.times.tolist() == pytest.approx(
        [0, 0.1, 0.2, 0.3]
    )
    data = file.read(slice(1, 3), frames=[0, 3])
    assert data.states.shape == (2, 2, 1, 8) and data.setting.param("beta").tolist() == [0.4, 0.4]
    assert data.setting.grid.lengths.ravel().tolist() == pytest.approx([2.0, 2.0])
    with h5py.File(tmp_path / "a.hdf5") as raw:
        assert np.array_equal(data.states[:, 1, 0], raw["tensor"][1:3, 3].astype(float))
    write_tensor(tmp_path / "b.hdf5", channels=2)
    several = PDEBenchFile(tmp_path / "b.hdf5", params={"nu": 0.01})
    assert [channel.name for channel in several.channels] == ["u0", "u1"]
    with h5py.File(tmp_path / "b.hdf5") as raw:
        assert np.array_equal(several.read().states[:, :, 1], raw["tensor"][..., 1].astype(float))
    assert several.read().setting.param("nu")[0] == 0.01


def test_a_group_for_each_sample(tmp_path: Path) -> None:
    write_groups(tmp_path / "a.h5")
    file = PDEBenchFile(tmp_path / "a.h5", boundary="wall")
    assert (file.samples, file.shape, len(file.channels)) == (3, (6, 4), 2)
    np.testing.assert_allclose(file.lengths, [2.0, 1.0])
    data = file.read(slice(2, None), frames=(1, 4))
    assert data.setting.grid.boundary == ("wall", "wall") and data.times.tolist() == [[0.25, 1.0]]
    with h5py.File(tmp_path / "a.h5") as raw:
        assert np.array_equal(data.states[0, 1, 1], raw["0002/data"][4, :, :, 1].astype(float))


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gas.hdf5"
    write_gas(path)
    with h5py.File(path, "r+") as raw:
        raw["pressure"][2, 1, 0, 0] = np.nan
    file = PDEBenchFile(path)
    assert file.read(slice(0, 2)).samples == 2 and file.read(frames=[0, 2]).states.shape[1] == 2
    coarse = file.read(slice(0, 2), [0], shape=(3, 2))
    assert np.array_equal(coarse.states, restrict(file.read(slice(0, 2), [0]).states, (3, 2)))
    with pytest.raises(DatasetError, match="pressure has a NaN or infinite value in sample 2, frame 1"):
        file.read(slice(1, None, 1), [1, 2])


def overwrite(key: str, value: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        del file[key]
        if value is not None:
            file[key] = value

    return change


def poke(key: str, place: tuple[int, ...], value: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[key][place] = value

    return change


FAULTS: list[tuple[Callable[[Path], None], Callable[[h5py.File], None], str]] = [
    (write_gas, overwrite("pressure", None), "pressure is missing"),
    (write_gas, overwrite("Vx", None), "Vx is missing; the file has"),
    (write_gas, overwrite("Vy", np.ones((3, 3, 6))), "Vy has shape .* 4 axes"),
    (write_gas, overwrite("Vy", np.ones((3, 3, 6, 5))), "Vy has shape .* but density"),
    (write_gas, overwrite("density", "text"), "density does not hold real numbers"),
    (write_gas, overwrite("x-coordinate", np.arange(6.0)[::-1]), "x-coordinate must be finite and increasing"),
    (write_gas, overwrite("x-coordinate", np.arange(6.0) ** 2), "x-coordinate is not uniform"),
    (write_gas, overwrite("y-coordinate", np.arange(5.0)), "y-coordinate has 5 entries for 4 cells"),
    (write_gas, overwrite("y-coordinate", None), "y-coordinate is missing"),
    (write_gas, overwrite("t-coordinate", np.arange(2.0)), "t-coordinate has 2 times .* 3 frames"),
    (
        write_gas,
        overwrite("t-coordinate", np.arange(3.0) - 1),
        "t-coordinate must be finite, increasing and not negative",
    ),
    (write_gas, overwrite("t-coordinate", [0.0, np.nan, 1.0]), "t-coordinate must be finite"),
    (write_gas, poke("density", (1, 2, 0, 3), 0.0), "density of sample 1, frame 2, is zero or negative"),
    (write_gas, poke("pressure", (2, 0, 1, 1), -1.0), "pressure of sample 2, frame 0, is zero or negative"),
    (write_gas, poke("Vx", (0, 1, 1, 1), np.inf), "Vx has a NaN or infinite value in sample 0, frame 1"),
    (write_tensor, overwrite("tensor", np.ones(4)), "tensor has shape"),
    (write_tensor, overwrite("tensor", np.ones((0, 4, 8))), "no sample"),
    (write_tensor, overwrite("x-coordinate", None), "x-coordinate is missing"),
    (write_tensor, poke("tensor", (2, 1, 1), np.nan), "tensor has a NaN .* sample 2, frame 1"),
    (write_groups, overwrite("0000/grid/x", None), "0000/grid/x is missing"),
    (write_groups, overwrite("0001/data", np.ones((5, 6, 3, 2))), "0001/data has shape .* not that of sample 0"),
    (write_groups, poke("0002/data", (3, 0, 0, 1), np.nan), "0002/data has a NaN .* sample 2, frame 3"),
    (write_groups, overwrite("0001/grid/t", np.linspace(0, 2, 5)), "0001/grid has other times than 0000/grid"),
    (write_groups, overwrite("0002/grid/y", np.linspace(0, 3, 5)[:-1]), "0002/grid has other lengths of the box"),
    (write_groups, overwrite("0001/data", None), "unknown layout, with the keys 0000, 0001, 0002"),
    (write_tensor, lambda file: file.clear(), "the file is empty"),
]


@pytest.mark.parametrize(("write", "damage", "message"), FAULTS)
def test_faults_are_named(
    tmp_path: Path, write: Callable[[Path], None], damage: Callable[[h5py.File], None], message: str
) -> None:
    path = tmp_path / "broken.hdf5"
    write(path)
    with h5py.File(path, "r+") as file:
        damage(file)
    with pytest.raises(DatasetError, match=message) as caught:
        PDEBenchFile(path).read()
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no such file"):
        PDEBenchFile(tmp_path / "none.hdf5")
    (tmp_path / "text.hdf5").write_text("not HDF5")
    with pytest.raises(DatasetError, match="not a whole HDF5 file"):
        PDEBenchFile(tmp_path / "text.hdf5")
    write_gas(tmp_path / "cut.hdf5")
    whole = (tmp_path / "cut.hdf5").read_bytes()
    (tmp_path / "cut.hdf5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DatasetError, match="not a whole HDF5 file"):
        PDEBenchFile(tmp_path / "cut.hdf5").read()


def test_requests_are_checked(tmp_path: Path) -> None:
    write_gas(tmp_path / "gas.hdf5")
    file = PDEBenchFile(tmp_path / "gas.hdf5")
    for request in (
        {"samples": slice(5, 9)},
        {"samples": slice(None, None, -1)},
        {"frames": []},
        {"frames": [2, 1]},
        {"frames": [3]},
        {"frames": [0.5]},
        {"shape": (4, 4)},
    ):
        with pytest.raises(InvalidInputError):
            file.read(**request)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="gamma"):
        PDEBenchFile(tmp_path / "gas.hdf5", params={"gamma": 1.0})


def test_what_a_file_has_no_place_for_is_refused(tmp_path: Path) -> None:
    data = make_gas()
    path = tmp_path / "out.hdf5"
    uneven = Setting(data.setting.grid, data.setting.channels, {**data.setting.params, "eta": np.arange(3.0)})
    with pytest.raises(InvalidInputError, match="'eta' differs"):
        write_pdebench(Dataset("ns2d", "id", data.states, data.times, uneven), path)
    with pytest.raises(InvalidInputError, match="'times' differs"):
        write_pdebench(Dataset("ns2d", "id", data.states, data.times * np.arange(1, 4)[:, None], data.setting), path)
    with pytest.raises(OutputError):
        write_pdebench(data, tmp_path / "nowhere" / "out.hdf5")
    assert not path.exists()


@pytest.mark.parametrize("names", [("u",), ("u", "v")])
def test_other_states_are_written_as_a_tensor(names: tuple[str, ...], tmp_path: Path) -> None:
    data = make_gas()
    setting = Setting(data.setting.grid, tuple(map(Channel, names)), {"nu": 0.1})
    written = Dataset("own", "id", data.states[:, :, : len(names)], data.times, setting)
    write_pdebench(written, tmp_path / "out.hdf5")
    again = PDEBenchFile(tmp_path / "out.hdf5").read()
    assert np.array_equal(again.states, written.states.astype(np.float32)) and again.setting.param("nu")[0] == 0.1
    np.testing.assert_allclose(again.times, written.times, rtol=1e-6)


@needs_fixture
def test_pdebench_s_own_file() -> None:
    file = PDEBenchFile(FIXTURE)
    assert (file.samples, file.shape) == (8, (128, 128)) and file.times.tolist() == pytest.approx([0.0, 0.05, 0.1])
    assert file.attributes == {"eta": 0.1, "zeta": 0.1, "M": 0.1}
    assert file.params == {"gamma": 5 / 3, "eta": 0.1, "zeta": 0.1}
    data = file.read(slice(1, 3), [0, 1], shape=(32, 32))
    assert data.states.shape == (2, 2, 4, 32, 32) and data.setting.grid.lengths.max() == pytest.approx(1.0)
    speed = np.hypot(*np.moveaxis(decode(file.read(slice(1, 2), [0]).states[0], 5 / 3)[:, 1:3], 1, 0)).mean()
    reported = decode(file.read(slice(1, 2), [0]).states[0], 5 / 3)
    assert speed == pytest.approx(0.1 * np.sqrt(5 / 3 * reported[:, 3].mean() / reported[:, 0].mean()), rel=1e-4)


# The problem ns2d

NS2D, AS_PDEBENCH = PROBLEMS


def initial_states(
    split: str, count: int, shape: tuple[int, int], first: int = 0
) -> tuple[Setting, np.ndarray[Any, Any]]:
    setting, _, initial = NS2D._queries(NS2D.split(split), split, 5, first, count, shape, NS2D.boundary, None)
    return setting, initial(setting.grid)


@pytest.mark.parametrize("split", ["train", "id", "ood", "trajectory"])
def test_flows_are_valid_and_in_their_ranges(split: str) -> None:
    setting, states = initial_states(split, 200, (32, 32))
    reported = decode(states, setting.param("gamma"))
    assert reported[:, [0, 3]].min() > 0
    # the mean over the box leaves what a window adds
    mean = reported[:, 0].mean(axis=(1, 2))
    assert mean.min() > 0.05 and mean.max() < 12.0
    for name, intervals in NS2D.split(split).params.items():
        assert all(any(low <= value <= high for low, high in intervals) for value in setting.param(name))
    # of the density alone, a window leaves a constant outside
    quiet = np.ptp(reported[:, 0, :2], axis=(1, 2)) < 1e-3 * mean
    assert 0.35 < quiet.mean() < 0.65
    flow = np.hypot(reported[:, 1], reported[:, 2]).mean(axis=(1, 2))
    mach = flow / np.sqrt(5 / 3 * reported[:, 3].mean(axis=(1, 2)) / mean)
    low, high = (0.2, 0.4) if split == "ood" else (0.1, 0.1)
    assert (mach[~quiet] > low - 1e-3).all() and (mach[~quiet] < high + 1e-3).all()
    assert (mach[quiet] < 1.6 * high * SIDE**2).all()


def test_a_flow_depends_on_nothing_but_its_number() -> None:
    many, few = initial_states("ood", 9, (24, 24))[1], initial_states("ood", 4, (24, 24), first=3)[1]
    assert np.array_equal(many[3:7], few)
    # the centres of every third cell of a grid three times finer are those of the coarse one
    fine = initial_states("ood", 9, (72, 72))[1][:, :, 1::3, 1::3]
    np.testing.assert_allclose(fine, many, rtol=1e-11, atol=1e-11)
    assert not np.allclose(many[0], many[1])


def test_waves_are_those_of_pdebench() -> None:
    """Numbers 1 to 4 along each axis, energy as 1/|k|."""
    _, states = initial_states("id", 300, (32, 32))
    reported = decode(states, 5 / 3)
    smooth = np.ptp(reported[:, 0, :2], axis=(1, 2)) > 1e-2
    energy = np.abs(np.fft.fft2(reported[smooth, 1])) ** 2
    energy /= energy.sum(axis=(1, 2), keepdims=True)
    mean = energy.mean(axis=0)
    assert mean[:5, :5].sum() - mean[1:5, 1:5].sum() < 0.02 and mean[5:-4].sum() < 0.05
    assert mean[1, 1] / mean[4, 4] == pytest.approx(4.0, rel=0.3)


def test_a_sample_has_its_truth() -> None:
    data = NS2D.sample(1, "id", seed=0, shape=(16, 16), times=[0.002])
    assert data.states.shape == (1, 2, 4, 16, 16) and data.reference.startswith("CompressibleReference(euler+viscosity")
    assert data.reference_error is not None and data.reference_error < 1e-3
    assert NS2D.subflow(["euler"]).advances == {"euler"}


def test_the_truth_of_pdebench_is_that_of_its_grid() -> None:
    coarse, fine = (replace(AS_PDEBENCH, estimated=0).sample(1, "id", shape=(n, n), times=[0.002]) for n in (32, 128))
    assert coarse.reference.startswith("PDEBenchReference") and fine.reference.startswith("PDEBenchReference")
    np.testing.assert_allclose(coarse.states, restrict(fine.states, (32, 32)), rtol=1e-12, atol=1e-12)


def test_densities_and_pressures_must_be_positive() -> None:
    setting, u = initial_states("id", 3, (16, 16))
    still = np.repeat(u[:, None], 2, axis=1)

    def checked(states: np.ndarray[Any, Any]) -> Dataset:
        return NS2D.checked(Dataset("ns2d", "id", states, np.tile([0.0, 0.1], (3, 1)), setting))

    assert checked(still).samples == 3
    still[2, 1, 3, 5, 5] = 0.0  # less energy than the flow has by its speed alone
    with pytest.raises(InvalidInputError, match=r"^pressure of sample 2, time index 1, is -.*: it must be above zero"):
        checked(still)
    still[1, 0, 0, 4, 4] = 0.0
    with pytest.raises(InvalidInputError, match=r"^density of sample 1, time index 0, is 0 somewhere"):
        checked(still)


def test_a_bad_file_of_our_own_is_named_with_channel_and_sample(tmp_path: Path) -> None:
    water = problem("swe1d")
    states = np.ones((3, 2, 2, 16))
    states[1, 1, 0, 7] = -0.5
    setting = Setting(water.grid((16,), batch=3), water.channels, {"g": 9.81})
    path = tmp_path / "dry.nc"
    save(Dataset("swe1d", "id", states, np.tile([0.0, 0.1], (3, 1)), setting), path)
    with pytest.raises(InvalidInputError) as caught:
        Reading().load(path, "swe1d")
    assert str(caught.value) == f"{path}: h of sample 1, time index 1, is -0.5 somewhere: it must not be negative"
