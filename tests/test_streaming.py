"""Data larger than memory: the same bits in blocks of any size and with any workers, and nothing half-written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import hycop
from benchmarks import memory
from hycop.data import WellFile, blocks, write_well
from hycop.data.netcdf import load, size_of
from hycop.problems import definition
from tests.helpers import hycop_command, one_line, tiny_model


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and five samples on a grid of unequal sides."""
    folder = tmp_path_factory.mktemp("streams")
    tiny_model().save(folder / "run")
    data = hycop.problem("adr2d").sample(5, "id", 2, shape=(12, 8), times=[0.1, 0.2], estimated=0)
    data.save(folder / "in.nc")
    write_well(data, folder / "in.hdf5")
    return folder


def test_a_file_is_read_in_parts(run: Path) -> None:
    whole, part = load(run / "in.nc"), load(run / "in.nc", samples=slice(2, 4))
    assert np.array_equal(part.states, whole.states[2:4]) and np.array_equal(part.times, whole.times[2:4])
    assert np.array_equal(part.setting.param("r"), whole.setting.param("r")[2:4])
    samples, size = size_of(run / "in.nc")
    assert samples == 5 and size >= whole.states[0].nbytes


@pytest.mark.parametrize("suffix", ["nc", "npz"])
@pytest.mark.parametrize("more", [(), ("--error-estimate",)])
def test_blocks_of_any_size_give_the_same_bytes(
    run: Path, tmp_path: Path, suffix: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("whole", blocks.BLOCK_BYTES), ("parts", 1)):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        words = ("predict", run / "run", run / "in.nc", tmp_path / f"{name}.{suffix}", "--times", "0.05,0.2", *more)
        done = hycop_command(*words, "--json", tmp_path / f"{name}.json")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / f"whole.{suffix}").read_bytes() == (tmp_path / f"parts.{suffix}").read_bytes()
    whole, parts = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("whole", "parts"))
    assert whole["rows"] == parts["rows"] and [row["sample"] for row in parts["rows"]] == sorted([*range(5)] * 2)
    if more:
        assert whole["estimate_work"] == parts["estimate_work"]


def test_predict_reads_and_writes_files_of_the_well(run: Path, tmp_path: Path) -> None:
    words = ("predict", run / "run", run / "in.hdf5", tmp_path / "out.hdf5", "--layout", "well")
    done = hycop_command(*words, "--plot", tmp_path / "last.png", "--sample", "4")
    assert done.returncode == 0 and "5 samples at 2 times" in done.stdout, done.stderr
    found, ours = WellFile(tmp_path / "out.hdf5").read(), WellFile(run / "in.hdf5").read()
    assert np.array_equal(found.states[:, 0], ours.states[:, 0])
    np.testing.assert_allclose(found.states, ours.states, atol=5e-3)
    assert (tmp_path / "last.png").stat().st_size > 1000


def test_a_bad_sample_in_a_later_block_leaves_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    (tmp_path / "bad.hdf5").write_bytes((run / "in.hdf5").read_bytes())
    with h5py.File(tmp_path / "bad.hdf5", "a") as file:
        file["t0_fields/u"][3, 0] = np.nan
    before = set(tmp_path.iterdir())
    said = one_line(hycop_command("predict", run / "run", tmp_path / "bad.hdf5", tmp_path / "out.nc"))
    assert "sample 3, frame 0" in said and "bad.hdf5" in said
    assert set(tmp_path.iterdir()) == before


def test_samples_with_times_of_their_own_are_refused_in_any_block(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    data = load(run / "in.nc")
    replace(data, times=data.times * np.linspace(1.0, 2.0, 5)[:, None]).save(tmp_path / "in.nc")
    said = one_line(hycop_command("predict", run / "run", tmp_path / "in.nc", tmp_path / "out.nc"))
    assert "times of their own" in said and not (tmp_path / "out.nc").exists()


@pytest.mark.parametrize("executor", ["processes", pytest.param("dask", marks=pytest.mark.validate)])
def test_workers_give_the_same_bytes(run: Path, tmp_path: Path, executor: str) -> None:
    for name, more in (("local", ()), ("spread", ("--executor", executor, "--workers", "2"))):
        words = ("predict", run / "run", run / "in.nc", tmp_path / f"{name}.nc", "--times", "0.05,0.2")
        done = hycop_command(*words, *more)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "local.nc").read_bytes() == (tmp_path / "spread.nc").read_bytes()


def test_evaluate_in_blocks(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {}
    spread = ("--executor", "processes", "--workers", "2")
    for name, size, more in (("whole", blocks.BLOCK_BYTES, ()), ("parts", 1, ()), ("spread", 1, spread)):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        words = ("evaluate", run / "run", "--data", run / "in.nc", "--scheme", "strang x2", "--metric", "rel_l2")
        done = hycop_command(*words, *more, "--json", tmp_path / f"{name}.json")
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
        rows[name] = {row["method"].partition(" (")[0]: row for row in found}
    assert {row["samples"] for each in rows.values() for row in each.values()} == {5}
    for method in ("HyCOP", "Strang x2"):
        whole, parts, far = (rows[name][method] for name in ("whole", "parts", "spread"))
        for field in ("value", "work"):
            assert parts[field] == pytest.approx(whole[field], rel=1e-12)
        assert far["value"] == parts["value"]
    assert rows["spread"]["limit"]["value"] == rows["parts"]["limit"]["value"]


def test_data_drawn_in_blocks_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("whole", definition.BLOCK_BYTES), ("parts", 1)):
        monkeypatch.setattr(definition, "BLOCK_BYTES", size)
        made = hycop_command("data", "ad1d", tmp_path / f"{name}.nc", "--samples", "5", "--shape", "16")
        assert made.returncode == 0, made.stderr
    assert (tmp_path / "whole.nc").read_bytes() == (tmp_path / "parts.nc").read_bytes()


def test_regrouped_blocks_hold_the_same_samples(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load(run / "in.nc")
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2 * data.states[0].nbytes)
    parts = [data.take(slice(0, 1)), data.take(slice(1, 4)), data.take(slice(4, 5))]
    again = list(blocks.regrouped(parts))
    assert [each.samples for each in again] == [2, 2, 1]
    assert np.array_equal(blocks.joined(again).states, data.states)


@pytest.mark.validate
def test_ten_thousand_samples_stay_below_a_gigabyte() -> None:
    assert memory.predict_peak(10_000, 128) < 10**9
