"""A model with a network among its primitives is a model like any other: training, kills, executors, storage, grids,
boxes and swaps."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'learned'")

import hycop
from hycop.grid import Grid
from hycop.surrogate import UntrustedWarning
from tests.helpers import ROOT, hycop_command

PROBLEM = hycop.problem("adr2d")
TINY = ("shape=8x8", "rounds=8", "samples=64", "held_out=8", "batch=8", "rate=0.01", "width=8", "modes=6", "layers=2")
SMALL = ("tries=1", "patterns=1", "rounds=1", "iterations=2", "max_steps=5")


def settings(pairs: Sequence[str]) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a network for advection and diffusion, and data to train a policy on."""
    place = tmp_path_factory.mktemp("hybrid")
    words = ("--out", "net", "--processes", "advection,diffusion", *settings(TINY))
    made = hycop_command("pretrain", "adr2d", *words, folder=place)
    assert made.returncode == 0, made.stderr
    for name, samples in (("data.nc", 24), ("held.nc", 32)):
        hycop.save(PROBLEM.sample(samples, "train", samples, shape=(8, 8), estimated=0), place / name)
    return place


def training(out: str, *more: str) -> list[str]:
    parts = ("--primitive", "ad=net", "--only", "ad,reaction")
    return [
        "train",
        "adr2d",
        "--out",
        out,
        "--data",
        "data.nc",
        "--held-out",
        "held.nc",
        *parts,
        *settings(SMALL),
        *more,
    ]


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    """A run folder; the network folder of which its primitive came is gone."""
    net = place / "net"
    result = hycop_command(*training("run"), folder=place)
    assert result.returncode == 0, result.stderr
    shutil.move(net, place / "elsewhere")
    assert hycop.HyCOP.load(place / "run").dictionary.names == ("ad", "reaction")
    shutil.move(place / "elsewhere", net)
    return place / "run"


@pytest.fixture(scope="module")
def model(run: Path) -> hycop.HyCOP:
    return hycop.HyCOP.load(run)


def theta(folder: Path) -> tuple[list[float], list[float]]:
    """Theta, and the losses on the way: on some processors learning may end where it began, at zero."""
    found: list[float] = json.loads((folder / "model.json").read_text())["theta"]
    lines = (folder / "history.jsonl").read_text().splitlines()
    return found, [json.loads(line)["loss"] for line in lines]


def test_it_is_whole_by_itself_and_reads_as_any_other(model: hycop.HyCOP, run: Path) -> None:
    assert list(model.dictionary) == ["ad", "reaction"] and not model.model.scope.untrained
    written = json.loads((run / "model.json").read_text())
    assert (
        set(written["files"]) == {"queries.safetensors", "weights.safetensors"}
        and written["dictionary"][0]["primitive"] == "NeuralOperator"
    )
    query = PROBLEM.queries(3, "id", 5, shape=(8, 8))
    steps = model.model.programs(query)[0].steps
    assert {step.primitive for step in steps} == {"ad", "reaction"}
    for process in ("ad", "reaction"):
        assert sum(step.duration for step in steps if step.primitive == process) == pytest.approx(query.time[0])
    shown = hycop_command("program", run, "--sample", "0")
    assert shown.returncode == 0 and "ad 0." in shown.stdout, shown.stderr


KILLER = """
import os, signal
heard = []
def report(entry):
    heard.append(entry)
    if len(heard) == {step}:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("step", [2, *(pytest.param(step, marks=pytest.mark.validate) for step in (3, 4, 5))])
def test_killed_and_resumed_it_ends_in_the_same_theta(step: int, place: Path, run: Path) -> None:
    name = f"killed{step}"
    (place / "killer.py").write_text(KILLER.format(step=step))
    words = [sys.executable, "-m", "hycop", *training(name, "--callback", "killer:report")]
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1"}
    dead = subprocess.run(words, cwd=place, env=env, capture_output=True, text=True)
    assert dead.returncode == -signal.SIGKILL and not (place / name / "model.json").exists(), dead.stderr
    refused = hycop_command(*training(name), folder=place)
    assert refused.returncode == 2 and "--resume" in refused.stderr
    resumed = hycop_command(*training(name, "--resume"), folder=place)
    assert resumed.returncode == 0, resumed.stderr
    assert theta(place / name) == theta(run)
    assert (place / name / "history.jsonl").read_text() == (run / "history.jsonl").read_text()


@pytest.mark.parametrize(
    ("executor", "workers"),
    [("processes", 1), *(pytest.param(name, 2, marks=pytest.mark.validate) for name in ("processes", "dask"))],
)
def test_executors_give_the_same_theta(executor: str, workers: int, place: Path, run: Path) -> None:
    if executor == "dask":
        pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    name = f"{executor}{workers}"
    result = hycop_command(*training(name, "--executor", executor, "--workers", str(workers)), folder=place)
    assert result.returncode == 0, result.stderr
    assert theta(place / name) == theta(run)


def test_another_grid_gives_the_same_solution(model: hycop.HyCOP, run: Path, tmp_path: Path) -> None:
    """Smooth states: the answer on 48×40, restricted, is that on 24×20 up to the error of the grids."""
    fine = PROBLEM.queries(4, "id", 5, shape=(48, 40))
    waves = np.cos(2 * np.pi * fine.grid.centres()[0]) * np.sin(2 * np.pi * fine.grid.centres()[1])
    fine = replace(fine, u0=(0.5 + 0.3 * waves)[:, None])
    coarse = replace(
        fine,
        u0=hycop.restrict(fine.u0, (24, 20)),
        setting=fine.setting.with_grid(Grid((24, 20), fine.grid.lengths, fine.grid.boundary)),
    )
    answer = model.answer(fine)
    there = hycop.restrict(answer.states, (24, 20))
    here = model.answer(coarse).states
    change = hycop.metrics.rel_l2(coarse.u0, here, coarse.setting)
    error = hycop.metrics.rel_l2(there, here, coarse.setting)
    assert answer.states.shape == (4, 1, 48, 40) and (change > 1e-2).all() and (error < 0.1 * change).all()
    hycop.save(PROBLEM.sample(2, "id", 1, shape=(48, 40), estimated=0), tmp_path / "in.nc")
    said = hycop_command("predict", run, "in.nc", "out.nc", "--times", "0.1,0.2", folder=tmp_path)
    assert said.returncode == 0 and hycop.load(tmp_path / "out.nc").states.shape == (2, 3, 1, 48, 40), said.stderr


def test_a_box_twice_as_long_is_the_same_task_in_other_units(model: hycop.HyCOP) -> None:
    """u(x, t) in a box L with c and D is u(2x, t) in a box 2L with 2c and 4D, and so are programs and answers."""
    query = PROBLEM.queries(5, "id", 3, shape=(12, 10))
    powers = {"c": 1, "D": 2, "r": 0}
    params = {name: 2.0 ** powers[name[0]] * values for name, values in query.setting.params.items()}
    grid = query.grid
    long = replace(query.setting, grid=Grid(grid.shape, 2 * grid.lengths, grid.boundary), params=params)
    here, there = model.answer(query), model.answer(replace(query, setting=long))
    assert str(here.programs[0]) == str(there.programs[0])
    np.testing.assert_allclose(there.states, here.states, rtol=1e-12)
    assert here.outside.keys() == there.outside.keys() and np.array_equal(here.untrusted, there.untrusted)
    # with the same coefficients the task is another one, and the network takes it in its own units
    with pytest.warns(UntrustedWarning, match="outside the trained range of .*fourier_x.*, primitive ad$"):
        longer = model.predict(query.u0, query.setting.params, [0.2], lengths=(2.0, 2.0))
    assert longer.shape == (5, 1, 1, 12, 10) and np.isfinite(longer).all()
    assert not np.allclose(longer[:, 0], here.states)


@pytest.mark.filterwarnings("ignore::hycop.surrogate.UntrustedWarning")
def test_swap_takes_the_network_out_and_in_again(model: hycop.HyCOP, run: Path, place: Path, tmp_path: Path) -> None:
    query = PROBLEM.queries(3, "id", 5, shape=(8, 8))
    out = hycop_command("swap", run, tmp_path / "exact", "--primitive", "ad=SpectralAdvectionDiffusion")
    assert out.returncode == 0 and "NeuralOperator(fno-film" in out.stdout, out.stderr
    assert sorted(path.name for path in (tmp_path / "exact").iterdir()) == ["model.json", "queries.safetensors"]
    exact = hycop.HyCOP.load(tmp_path / "exact")
    with pytest.warns(UntrustedWarning, match="ad"):
        exact.predict(query.u0, query.setting.params, [0.2])
    data = PROBLEM.sample(4, "id", 1, shape=(8, 8), estimated=0)
    error = [hycop.metrics.rel_l2(each.solve(data.query).states, data.truth, data.setting) for each in (exact, model)]
    assert error[0].mean() < 0.1 * error[1].mean()  # two rounds of training make no good network
    back = hycop_command("swap", tmp_path / "exact", tmp_path / "back", "--primitive", f"ad={place / 'net'}")
    assert back.returncode == 0, back.stderr
    again = hycop.HyCOP.load(tmp_path / "back")
    assert not again.model.scope.untrained
    assert np.array_equal(again.solve(query).states, model.solve(query).states)


def test_nothing_is_left_behind(place: Path, run: Path) -> None:
    hidden = [path for path in place.rglob(".*") if path.name != ".lock"]
    assert not hidden and {"model.json", "weights.safetensors"} <= {path.name for path in run.iterdir()}
