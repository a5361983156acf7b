"""Monolithic baselines: protocols, training and resuming, folders, PINO's residual, and the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'learned'")

import torch

import hycop
from hycop.baselines import (
    BASELINES,
    BaselineError,
    Monolith,
    UntrustedBaselineWarning,
    find_baseline,
    is_baseline,
    load_baseline,
    train_baseline,
)
from hycop.baselines.residual import RATES, residual_of
from hycop.baselines.selftest import Goal, Stated
from hycop.baselines.training import any_time, baseline_settings
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.evaluation import Contender, evaluate
from hycop.experiments.bench import Bench
from hycop.grid import Grid
from hycop.query import Query
from hycop.storage.network import load_primitive
from tests.helpers import hycop_command, tiny_baselines

ADR = hycop.problem("adr2d")
TINY: dict[str, Any] = {"trajectories": 24, "rounds": 2, "shape": (16, 16), "verbose": False}
SMALL: dict[str, Any] = {**TINY, "width": 4, "modes": 4, "layers": 2}
WORDS = ("trajectories=24", "rounds=2", "shape=16x16", "width=4", "modes=4", "layers=2")


def words(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


@pytest.fixture(scope="module")
def fno(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baselines") / "fno"
    train_baseline(ADR, "FNO", folder=folder, **SMALL)
    return folder


@pytest.fixture(scope="module")
def stepper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("baselines") / "unet"
    train_baseline(ADR, "ar-unet", folder=folder, **TINY, width=2, layers=2)
    return folder


def query(time: float, batch: int = 3, shape: tuple[int, int] = (16, 16)) -> Query:
    return ADR.queries(batch, "id", 3, shape=shape, times=[time])


def test_every_baseline_says_where_it_comes_from() -> None:
    for name, baseline in BASELINES.items():
        assert baseline.name == name and find_baseline(baseline.label) is baseline and len(baseline.source) > 20
    with pytest.raises(BaselineError, match="weights can only be had"):
        find_baseline("poseidon")
    with pytest.raises(UnknownNameError, match="fno"):
        find_baseline("fnoo")


def test_one_for_a_fixed_time_answers_at_that_time_alone(fno: Path) -> None:
    model = load_baseline(fno)
    assert is_baseline(fno) and model.time == 0.2 and not is_baseline(fno.parent)
    done = model.solve(query(0.2))
    assert done.states.shape == (3, 1, 16, 16) and np.isfinite(done.states).all() and (done.work > 0).all()
    with pytest.raises(BaselineError, match=r"answers at T = 0.2, but sample 0 asks at 0.1"):
        model.solve(query(0.1))
    assert model.solve(query(0.2, shape=(24, 20))).states.shape == (3, 1, 24, 20)


def test_one_that_takes_steps_is_rolled_out(stepper: Path) -> None:
    model = load_baseline(stepper)
    assert model.time == pytest.approx(0.02)
    twice, once = model.solve(query(0.04)), model.solve(query(0.02))
    again = model.solve(replace(query(0.02), u0=once.states))
    np.testing.assert_array_equal(twice.states, again.states)
    assert twice.work == pytest.approx(2 * once.work)
    with pytest.raises(BaselineError, match=r"multiples of 0\.02"):
        model.solve(query(0.03))
    times = np.array([0.02, 0.06, 0.0])
    mixed = model.solve(replace(query(0.02), time=times))
    np.testing.assert_array_equal(mixed.states[0], once.states[0])
    np.testing.assert_array_equal(mixed.states[2], query(0.02).u0[2])


def test_a_longer_box_takes_a_longer_time_where_the_state_sets_the_speed() -> None:
    water = hycop.problem("swe1d")
    model = train_baseline(water, "unet", trajectories=24, rounds=1, width=2, layers=2, shape=(16,), verbose=False)
    asked = water.queries(2, "id", 0, shape=(16,))
    longer = Grid(asked.grid.shape, 10 * asked.grid.lengths, asked.grid.boundary)
    scaled = Query(asked.u0, asked.setting.with_grid(longer), 10 * asked.time)
    np.testing.assert_allclose(model.solve(scaled).states, model.solve(asked).states, rtol=1e-6, atol=1e-7)


def test_walls_that_a_network_does_not_know_are_told(fno: Path) -> None:
    model = load_baseline(fno)
    asked = hycop.problem("adr2d").queries(2, "id", 0, shape=(16, 16))
    walls = Query(asked.u0, asked.setting.with_grid(asked.grid.with_boundary("wall")), asked.time)
    with pytest.warns(UntrustedBaselineWarning, match="boundary=periodic .* nothing of boundary=wall"):
        model.solve(walls)


def test_training_goes_on_to_the_same_bits(fno: Path, tmp_path: Path) -> None:
    import hycop.pretraining.checkpoint as checkpoint

    kept, stopped = checkpoint.keep, tmp_path / "stopped"

    def once(*given: Any) -> None:
        kept(*given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "keep", once)
        with pytest.raises(KeyboardInterrupt):
            train_baseline(ADR, "fno", folder=stopped, **SMALL)
    assert not is_baseline(stopped)
    resumed = train_baseline(ADR, "fno", folder=stopped, resume=True, **SMALL)
    whole = load_baseline(fno)
    for name, array in whole.primitive.arrays().items():
        np.testing.assert_array_equal(array, resumed.primitive.arrays()[name])
    assert resumed.curve == pytest.approx(whole.curve, rel=0, abs=0)
    assert resumed.passes == whole.passes == 2 * 20


def test_pino_goes_on_from_fno(fno: Path) -> None:
    begin = load_baseline(fno)
    made = train_baseline(ADR, "pino", begin=begin, **SMALL)
    assert made.passes == begin.passes + 40 and made.seconds > begin.seconds
    assert any(
        not np.array_equal(array, begin.primitive.arrays()[name]) for name, array in made.primitive.arrays().items()
    )
    with pytest.raises(BaselineError, match="begins from FNO"):
        train_baseline(hycop.problem("ad2d"), "pino", begin=begin, **SMALL)
    with pytest.raises(BaselineError, match="not known for ks1d"):
        train_baseline(hycop.problem("ks1d"), "pino", trajectories=24)
    with pytest.raises(BaselineError, match="not any: take fno"):
        any_time(ADR, "pino", preset="quick", rounds=1)
    walled = hycop.problem("ad1d").sample(12, "id", 0, boundary="wall", estimated=0)
    with pytest.raises(BaselineError, match="periodic boxes only"):
        train_baseline(hycop.problem("ad1d"), "pino", data=walled, rounds=1)


@pytest.mark.parametrize("name", ["adr2d", "ad1d", "burgers1d", "swe1d", "swe2d", "ns2d"])
def test_residuals_are_the_rates_of_the_equation(name: str) -> None:
    """Central differences of a smooth state agree with the primitives' own rates to second order."""
    problem = hycop.problem(name)
    errors = []
    for cells in (32, 64):
        shape = (cells,) * len(problem.shape)
        grid = problem.grid(shape, batch=2)
        params = {key: np.full(2, 0.7 if key != "gamma" else 1.4) for key in problem.parameters}
        setting = hycop.Setting(grid, problem.channels, params)
        phase = sum(
            2 * np.pi * (np.arange(cells) + 0.5).reshape(-1, *(1,) * axis) / cells for axis in range(len(shape))
        )
        u = np.stack([1 + 0.1 * (1 + i) * np.sin(phase + i) for i in range(len(problem.channels))])
        u = np.repeat(u[None], 2, axis=0)
        if name.startswith("ns2d"):
            u[:, -1] += 3.0
        wanted = sum(primitive.rate(u, setting) for primitive in problem.dictionary.values())  # type: ignore[attr-defined]
        tensors = {key: torch.from_numpy(value) for key, value in params.items()}
        dx = torch.from_numpy(grid.lengths / np.array(shape))
        found = residual_of(problem.equation)(torch.from_numpy(u), tensors, dx).numpy()
        errors.append(np.abs(found - wanted).max() / np.abs(wanted).max())
    assert errors[1] < 0.02 and errors[1] < 0.5 * errors[0], errors


def test_every_residual_has_its_processes() -> None:
    known = {tuple(sorted(hycop.problem(name).processes)) for name in ("adr2d", "burgers1d", "swe2d", "ns2d")}
    assert known <= set(RATES)


def test_a_finer_grid_gets_fewer_solutions() -> None:
    counts = {
        name: baseline_settings(find_baseline("fno"), hycop.problem(name), "laptop", {})[1]
        for name in ("burgers1d", "adr2d", "ns2d-pdebench")
    }
    assert counts == {"burgers1d": 2400, "adr2d": 2400, "ns2d-pdebench": 600}


def test_the_curve_tells_whether_training_was_enough(fno: Path) -> None:
    network = load_baseline(fno).network
    falling, flat, few = (8 * (0.5,) + 8 * (0.1,), 8 * (0.2,) + 8 * (0.195,), (0.2, 0.2))
    cases = ((falling, False, np.log2(5)), (flat, True, np.log2(0.2 / 0.195)), (few, False, 0.0))
    for errors, converged, slope in cases:
        made = Monolith(find_baseline("fno"), replace(network, errors=errors))
        assert made.converged == converged and made.slope == pytest.approx(slope)
        assert made.extrapolated(2 * made.passes) == pytest.approx(2**slope)


def test_it_is_a_contender_like_any_other(fno: Path) -> None:
    data = ADR.sample(3, "id", 0, shape=(16, 16), estimated=0)
    (row,) = evaluate([Contender("FNO", load_baseline(fno))], [data])
    assert row.method == "FNO" and row.value > 0 and row.work > 0 and row.seconds_per_sample > 0


def test_the_bench_keeps_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_baselines(monkeypatch)
    bench = Bench(2, 1, lambda text, share: None, "quick", tmp_path)
    made = bench.baseline("ad1d", "unet")
    again = Bench(2, 1, lambda text, share: None, "quick", tmp_path).baseline("ad1d", "unet")
    for name, array in made.primitive.arrays().items():
        np.testing.assert_array_equal(array, again.primitive.arrays()[name])


def test_a_baseline_for_any_time_is_a_primitive(tmp_path: Path, fno: Path) -> None:
    with pytest.raises(InvalidInputError, match="--any-time"):
        load_primitive(fno)
    pairs = words("samples=16", "held_out=8", "rounds=1", "shape=16", "width=4", "modes=4", "layers=2")
    made = hycop_command("baseline", "fno", "ad1d", "--out", tmp_path / "net", "--any-time", *pairs)
    assert made.returncode == 0, made.stderr
    assert load_primitive(tmp_path / "net").advances == {"advection", "diffusion"}


def test_on_the_command_line(tmp_path: Path) -> None:
    made = hycop_command(
        "baseline", "fno", "adr2d", "--out", "fno", *words(*WORDS), "--json", "made.json", folder=tmp_path
    )
    assert made.returncode == 0 and "FNO at T = 0.2" in made.stdout, made.stderr
    told = json.loads((tmp_path / "made.json").read_text())
    assert told["baseline"] == "fno" and len(told["curve"]) == 2 and told["parameters"] > 100
    judged = hycop_command("evaluate", "fno", "--split", "id", "--samples", "2", "--seeds", "1", folder=tmp_path)
    assert judged.returncode == 0 and "FNO" in judged.stdout, judged.stderr
    ADR.sample(2, "id", 0, shape=(16, 16), times=[0.1, 0.2], estimated=0).save(tmp_path / "in.nc")
    refused = hycop_command("predict", "fno", "in.nc", "out.nc", folder=tmp_path)
    assert refused.returncode == 2 and "T = 0.2" in refused.stderr and not (tmp_path / "out.nc").exists()
    drawn = ("--plot", "out.png", "--movie", "out.gif", "--sample", "1")
    answered = hycop_command("predict", "fno", "in.nc", "out.nc", "--times", "0.2", *drawn, folder=tmp_path)
    assert answered.returncode == 0, answered.stderr
    assert min((tmp_path / name).stat().st_size for name in ("out.png", "out.gif")) > 5000
    found = hycop.load(tmp_path / "out.nc")
    assert found.times.tolist() == [[0.0, 0.2]] * 2 and found.reference.startswith("FNO")
    on_file = hycop_command("evaluate", "fno", "--data", "out.nc", "--json", "own.json", folder=tmp_path)
    assert on_file.returncode == 0, on_file.stderr
    assert json.loads((tmp_path / "own.json").read_text())["rows"][0]["value"] < 1e-6


def test_its_self_test_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Stated(4e-3, Goal(2, 9.0), Goal(1, 9.0), Goal(1, 1e-9))
    monkeypatch.setattr("hycop.baselines.selftest.STATED", {"fno": few})
    told = hycop_command("check", "baseline:pino")  # whose network is that of FNO
    assert told.returncode == 2 and "FAIL  pure advection" in told.stdout and "2 of 3 checks passed" in told.stdout
    assert hycop_command("check", "baseline:fnoo").returncode == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("fnoo", "adr2d"), "fno"),
        (("poseidon", "adr2d"), "not available"),
        (("fno", "adr"), "adr2d"),
        (("fno", "adr2d", "--preset", "huge"), "preset"),
        (("fno", "adr2d", "--set", "trajectories=2"), "trajectories"),
        (("fno", "adr2d", "--set", "breadth=2"), "breadth"),
        (("fno", "adr2d", "--set", "samples=20"), "trajectories"),
        (("unet", "adr2d", "--set", "modes=2"), "modes"),
        (("fno", "adr2d", "--seed", "-1"), "--seed"),
        (("fno", "adr2d", "--data", "missing.nc"), "missing.nc"),
        (("fno", "adr2d", "--from", "missing"), "missing"),
    ],
)
def test_mistakes_are_one_line(given: tuple[str, ...], told: str, tmp_path: Path) -> None:
    result = hycop_command("baseline", *given, "--out", "out", folder=tmp_path)
    assert result.returncode == 2 and told in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "out" / "net.json").exists()


def test_data_must_have_one_time(tmp_path: Path) -> None:
    data = ADR.sample(16, "train", 0, shape=(16, 16), estimated=0)
    with pytest.raises(InvalidInputError, match="learns one query time"):
        train_baseline(ADR, "fno", data=data, **{**SMALL, "shape": None})
    with pytest.raises(InvalidInputError, match="at least 12"):
        train_baseline(ADR, "fno", data=data.take(slice(0, 4)), **SMALL)
