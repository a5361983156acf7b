"""Training: better than the textbook, the same bits after a kill and with any workers, and honest refusals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError
from hycop.evolution import NoFitnessError
from hycop.executors import executor
from hycop.features import FeatureMap
from hycop.training import Task, configured, train
from hycop.training.checkpoint import FILE, RunFolderError, read
from hycop.training.gate import best_classical
from hycop.training.portfolio import patterns

PROBLEM = hycop.problem("ad1d")
UPWIND = PROBLEM.dictionaries["upwind"]
SMALL = {"samples": 24, "tries": 2, "patterns": 1, "rounds": 2, "iterations": 3, "budget": "gain", "max_steps": 5}
ES = {"population": 10, "generations": 6, "minibatch": 3, "budget": "gain", "optimizer": "openes", "policy": "position"}


@pytest.fixture(scope="module")
def task() -> Task:
    return Task(
        UPWIND,
        PROBLEM.processes,
        PROBLEM.sample(24, "train", 0),
        PROBLEM.sample(200, "train", 1),
        FeatureMap(PROBLEM.features),
        FeatureMap(PROBLEM.gain_features),
    )


def test_the_recipe_beats_the_textbook(task: Task) -> None:
    done = train(task, configured("quick", SMALL))
    assert done.gate.kept and done.gate.learned_error < 0.5 * done.gate.classical_error
    assert done.theta.size == done.policy.size <= 100
    assert done.gate.classical_work <= 1.1 * done.gate.learned_work  # Lie, the cheapest there is


def test_a_policy_that_is_not_better_is_not_kept(task: Task) -> None:
    """Literal budgets solve another equation; the gate must notice."""
    done = train(task, configured("quick", {**SMALL, "budget": "literal", "iterations": 1, "rounds": 1}))
    assert not done.gate.kept and done.gate.learned_error > 0.05


@pytest.mark.parametrize(
    "settings", [SMALL, ES, {**ES, "optimizer": "cma", "start": "random"}], ids=["lm", "es", "cma"]
)
def test_resuming_gives_the_same_bits(task: Task, settings: dict[str, object], tmp_path: Path) -> None:
    config = configured("quick", settings)
    whole = train(task, config, seed=3)
    seen: list[int] = []

    class Killed(Exception):
        pass

    def interrupt(entry: dict[str, object]) -> None:
        seen.append(1)
        if len(seen) in (1, 2, 4, 7):
            raise Killed

    folder = tmp_path / "run"
    resume = False
    while True:
        try:
            done = train(task, config, seed=3, folder=folder, resume=resume, report=interrupt)
            break
        except Killed:
            resume = True
    assert np.array_equal(done.theta, whole.theta)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert all("stage" in line for line in lines)


def test_killing_the_process_changes_nothing(tmp_path: Path) -> None:
    """kill −9 at random instants, resume each time: the final theta is that of the uninterrupted run."""
    words = [sys.executable, "-m", "hycop.cli", "train", "ad1d", "--preset", "paper", "--set", "dictionary=upwind"]
    for key, value in {"samples": 16, "population": 20, "generations": 60, "budget": "gain"}.items():
        words += ["--set", f"{key}={value}"]
    env = {**os.environ, "NUMBA_NUM_THREADS": "1"}

    def theta(folder: Path) -> list[float]:
        out: list[float] = json.loads((folder / "model.json").read_text())["theta"]
        return out

    subprocess.run([*words, "--out", str(tmp_path / "whole")], check=True, capture_output=True, env=env)
    rng = np.random.default_rng(0)
    killed = 0
    for attempt in range(40):
        command = [*words, "--out", str(tmp_path / "cut"), *(["--resume"] if attempt else [])]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        try:
            process.wait(timeout=rng.uniform(2.0, 4.0) if killed < 4 else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            continue
        assert process.returncode == 0
        break
    assert killed > 0 and theta(tmp_path / "cut") == theta(tmp_path / "whole")


def test_sigterm_checkpoints_and_exits(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hycop.cli", "train", "ad1d", "--preset", "paper", "--out", str(tmp_path / "run")]
    for key, value in {"samples": 16, "population": 20, "generations": 100000}.items():
        words += ["--set", f"{key}={value}"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 120
    while not (tmp_path / "run" / FILE).exists() and time.time() < deadline:
        time.sleep(0.1)
    second = subprocess.run([*words, "--resume"], capture_output=True, text=True, check=False)
    assert second.returncode == 2 and "another trainer" in second.stderr
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2 and "--resume" in errors and "Traceback" not in errors
    assert read(tmp_path / "run") is not None


@pytest.mark.parametrize("kind", ["lm", "es"])
def test_any_executor_gives_the_same_bits(task: Task, kind: str) -> None:
    config = configured("quick", SMALL if kind == "lm" else ES)
    alone = train(task, config, seed=1)
    with executor("processes", workers=2) as crew:
        shared = train(task, config, seed=1, executor=crew)
    assert np.array_equal(alone.theta, shared.theta)


def test_dask_gives_the_same_bits(task: Task) -> None:
    config = configured("quick", {**ES, "generations": 3})
    alone = train(task, config, seed=1)
    with executor("dask", workers=2) as crew:
        shared = train(task, config, seed=1, executor=crew)
    assert np.array_equal(alone.theta, shared.theta)


def test_folders_are_protected(task: Task, tmp_path: Path) -> None:
    config = configured("quick", {**ES, "generations": 2})
    train(task, config, folder=tmp_path / "run")
    with pytest.raises(RunFolderError, match="--resume"):
        train(task, config, folder=tmp_path / "run")
    with pytest.raises(RunFolderError, match="another configuration"):
        train(task, configured("quick", {**ES, "generations": 3}), folder=tmp_path / "run", resume=True)
    with pytest.raises(RunFolderError, match="another configuration"):
        train(task, config, seed=5, folder=tmp_path / "run", resume=True)
    content = (tmp_path / "run" / FILE).read_bytes()
    (tmp_path / "run" / FILE).write_bytes(content[:100] + b"x" + content[101:])
    with pytest.raises(RunFolderError, match="damaged"):
        train(task, config, folder=tmp_path / "run", resume=True)


def test_no_finite_loss_stops_the_run(task: Task) -> None:
    class Bursting:
        advances = frozenset({"advection"})
        order = 1

        def flow(self, u, duration, setting):  # type: ignore[no-untyped-def]
            return np.full_like(u, np.nan)

        def work(self, u, duration, setting):  # type: ignore[no-untyped-def]
            return np.ones(setting.batch)

        def __repr__(self) -> str:
            return "Bursting()"

    broken = Task(
        UPWIND.swapping("advection", Bursting()),
        task.processes,
        task.train,
        task.held_out,
        task.features,
        task.gain_features,
    )
    with pytest.raises(NoFitnessError, match="finite"):
        train(broken, configured("quick", ES))


def test_patterns_hold_the_classics_and_their_lean_variants(task: Task) -> None:
    adr = hycop.problem("adr2d")
    query = adr.sample(1, "id").query
    found = patterns(adr.dictionary, adr.processes, query, 7)
    origins = [pattern.origin for pattern in found]
    assert "Strang" in origins and "ABABA, advection once" in origins
    assert all(len(pattern.ops) <= 7 for pattern in found)
    assert len(patterns(adr.dictionary, adr.processes, query, 11)) > len(found)
    extra = adr.dictionary.adding("decay", _Decay())
    assert all(3 in pattern.ops for pattern in patterns(extra, adr.processes, query, 7))


class _Decay:
    advances = frozenset({"decay"})
    order = hycop.EXACT

    def flow(self, u, duration, setting):  # type: ignore[no-untyped-def]
        return u

    def work(self, u, duration, setting):  # type: ignore[no-untyped-def]
        return np.ones(setting.batch)


def test_the_opponent_has_no_more_work(task: Task) -> None:
    adr = hycop.problem("adr2d")
    data = adr.sample(8, "id")
    query, batch = data.query, data.query.batch
    found = [
        str(best_classical(adr.dictionary, query, data.truth, query, np.full(batch, work)))
        for work in (32768.0, 11264.0, 1.0)
    ]
    assert found[0] == "ABABA" and found[1].startswith("Lie") and found[2].startswith("Lie")


def test_settings_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="quick"):
        configured("quik")
    with pytest.raises(UnknownNameError, match="population"):
        configured("quick", {"populaton": 3})
    with pytest.raises(InvalidInputError, match="'population'"):
        configured("quick", {"population": "many"})
    with pytest.raises(HyCOPError, match="max_work"):
        configured("quick", {"max_work": -1.0})
