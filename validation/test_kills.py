"""Whatever is killed, and whenever: a resumed run ends with the bits of one that was left in peace."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any

import h5netcdf  # noqa: F401  (so that the server has it)
import numba
import numpy as np
import pytest
import xarray  # noqa: F401
from numba.np.ufunc import parallel

import hycop
from benchmarks.data import adr_query
from hycop.data import Dataset
from hycop.executors import DaskExecutor, Executor, Job
from hycop.grid import Array
from hycop.training.checkpoint import FILE, HISTORY, PREVIOUS, read

PROBLEM = hycop.problem("adr2d")
SMALL: dict[str, Any] = {"tries": 2, "patterns": 2, "rounds": 2, "iterations": 4, "max_steps": 5}
ES: dict[str, Any] = {"optimizer": "openes", "policy": "position", "population": 12, "generations": 80, "minibatch": 3}
RUNS = {"recipe": SMALL, "openes": ES}

# Trainers are forked from a server that has imported everything and started no thread: they are there at once.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])


@pytest.fixture(scope="module")
def data() -> Dataset:
    """A small task whose truth is that of a costly scheme."""
    query = adr_query(96, 8)
    truth = hycop.run(hycop.splitting("saba4 x4").programs(query, PROBLEM.dictionary), PROBLEM.dictionary, query)
    times = np.stack([np.zeros(96), query.time], axis=1)
    return Dataset("adr2d", "train", np.stack([query.u0, truth], axis=1), times, query.setting)


def fitted(data: Dataset, settings: dict[str, Any], **options: Any) -> hycop.HyCOP:
    return hycop.HyCOP(PROBLEM.dictionary).fit(data, seed=3, **settings, **options)


def _trainer(folder: Path, data: Dataset, settings: dict[str, Any], news: Connection, fatal: int) -> None:
    """Trains in the folder, or resumes the run there, and reports its start and its steps; dies instead of renaming a
    file for the ``fatal``-th time."""
    # a lock of its own for every process would be reported as leaked by those that are killed
    parallel._backend_init_process_lock = nullcontext()
    numba.set_num_threads(1)
    renaming, numbers = os.replace, count(1)

    def replace(source: Any, target: Any) -> None:
        if next(numbers) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        renaming(source, target)

    os.replace = replace  # type: ignore[assignment]
    news.send("started")
    model = fitted(data, settings, folder=folder, resume=True, report=lambda entry: news.send("step"))
    model.save(folder, overwrite=True)


@contextmanager
def trainer(folder: Path, data: Dataset, settings: dict[str, Any], fatal: int = 0) -> Iterator[tuple[Any, Connection]]:
    """A trainer that has begun, and its news."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_trainer, args=(folder, data, settings, theirs, fatal))
    process.start()
    theirs.close()
    try:
        assert ours.recv() == "started"
        yield process, ours
    finally:
        process.kill()
        process.join()


def theta_of(folder: Path) -> list[float]:
    """That of the model, which is read as a user reads it."""
    theta: list[float] = hycop.HyCOP.load(folder).model.theta.tolist()
    assert theta == json.loads((folder / "model.json").read_text())["theta"]
    return theta


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(".")}


def measured(folder: Path, data: Dataset, settings: dict[str, Any]) -> tuple[float, float, int]:
    """Seconds to the first step of an undisturbed trainer, and from one step to the next, and how many there are."""
    steps: list[float] = []
    with trainer(folder, data, settings) as (process, news):
        begin = perf_counter()
        while wait([news, process.sentinel])[0] is news:
            try:
                news.recv()
            except EOFError:
                break
            steps.append(perf_counter())
        process.join()
    return steps[0] - begin, (steps[-1] - steps[0]) / len(steps), len(steps)


@pytest.mark.parametrize(
    ("kind", "most"), [("recipe", 2), *(pytest.param(kind, 10, marks=pytest.mark.validate) for kind in RUNS)]
)
def test_killed_at_random_instants(kind: str, most: int, data: Dataset, tmp_path: Path) -> None:
    """Trainers die while they start, or in the middle of some step, until one is let live."""
    settings, expected = RUNS[kind], fitted(data, RUNS[kind]).model.theta.tolist()
    starting, pace, steps = measured(tmp_path / "whole", data, settings)
    assert theta_of(tmp_path / "whole") == expected
    rng = np.random.default_rng(list(RUNS).index(kind))
    folder = tmp_path / "cut"
    kills, met, places = 0, set(), most // 2 - 1
    while (cutting := kills < most or len(met) < places) or not (folder / "model.json").exists():
        assert kills < 6 * most, met  # on a busy machine many trainers may die in one place
        if (folder / "model.json").exists():  # faster than thought: again
            assert theta_of(folder) == expected
            folder = folder.with_name(folder.name + "x")
        with trainer(folder, data, settings) as (process, news):
            if cutting:
                lucky = 0 if rng.random() < 0.3 else int(rng.integers(1, steps // 4))
                for _ in range(lucky):
                    if wait([news, process.sentinel])[0] is news:
                        with suppress(EOFError):  # it has ended
                            news.recv()
                if not wait([process.sentinel], rng.uniform(0, pace if lucky else starting)):
                    process.kill()
            process.join()
            assert process.exitcode in (0, -signal.SIGKILL)
        found = read(folder) if folder.exists() else None
        if process.exitcode:
            kills += 1
            met.add(None if found is None else (found.stage, int(found.arrays["state_generation"])))
    assert theta_of(folder) == expected
    assert (folder / HISTORY).read_text() == (tmp_path / "whole" / HISTORY).read_text()


@pytest.mark.validate
def test_killed_between_writing_a_file_and_renaming_it(data: Dataset, tmp_path: Path) -> None:
    """History, data, checkpoints, queries, model: the file is still the one before, or none, and nothing piles up."""
    settings = {**ES, "generations": 3}
    expected = fitted(data, settings).model.theta.tolist()
    folder = tmp_path / "run"
    # Which renaming of a trainer's life, and of what. A run without a checkpoint writes its data again. A checkpoint
    # after the first one renames the one before it, too: once killed before that, once between the two.
    lives = [(1, "train"), (2, "held_out"), (3, "history"), (4, "checkpoint"), (5, "checkpoint"), (3, "checkpoint")]
    ends = [(7, "queries"), (3, "model")]
    for fatal, name in [*lives, *ends]:
        with trainer(folder, data, settings, fatal) as (process, _):
            process.join()
        assert process.exitcode == -signal.SIGKILL and any(f".{name}." in left for left in leftovers(folder))
        assert (folder / FILE).exists() == ((fatal, name) in [(5, "checkpoint"), *ends])
        assert (folder / PREVIOUS).exists() == ((fatal, name) in [(3, "checkpoint"), *ends])
    with trainer(folder, data, settings) as (process, _):
        process.join()
    assert process.exitcode == 0 and theta_of(folder) == expected
    assert not any("model" not in left for left in leftovers(folder))


@dataclass(frozen=True)
class Unlucky:
    """A job whose first worker meets with a mishap in the middle of it."""

    job: Job
    marker: Path
    mishap: int

    def __call__(self, first: int, count: int) -> Array:
        result = self.job(first, count)
        try:
            with self.marker.open("x") as marker:
                marker.write(str(os.getpid()))
        except FileExistsError:
            return result
        os.kill(os.getpid(), self.mishap)
        return result


class Misfortune(Executor):
    """A crew that loses a worker during its second map."""

    def __init__(self, crew: Executor, marker: Path, mishap: int) -> None:
        self.crew, self.marker, self.mishap, self.maps = crew, marker, mishap, 0

    def map(self, job: Job, total: int) -> Array:
        self.maps += 1
        return self.crew.map(Unlucky(job, self.marker, self.mishap) if self.maps == 2 else job, total)


SHORT = {
    "openes": {**ES, "generations": 4},
    "recipe": {**SMALL, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1},
}


@pytest.mark.validate
def test_any_number_of_dask_workers_and_their_deaths(data: Dataset, tmp_path: Path) -> None:
    """One cluster of processes that grows; then a worker is killed, and one freezes and is left behind."""
    distributed = pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    expected = {kind: fitted(data, SHORT[kind]).model.theta for kind in SHORT}
    options: dict[str, Any] = {"threads_per_worker": 1, "env": {"NUMBA_NUM_THREADS": "1"}}
    options |= {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
    with distributed.LocalCluster(n_workers=1, **options) as cluster, distributed.Client(cluster) as client:
        for workers, kind in ((1, "openes"), (3, "openes"), (3, "recipe")):
            cluster.scale(workers)
            client.wait_for_workers(workers)
            with DaskExecutor(cluster.scheduler_address) as crew:
                theta = fitted(data, SHORT[kind], executor=crew).model.theta
            assert np.array_equal(theta, expected[kind]), (workers, kind)
        for mishap in (signal.SIGKILL, signal.SIGSTOP):
            marker = tmp_path / mishap.name
            with DaskExecutor(cluster.scheduler_address, timeout=4.0) as crew:
                theta = fitted(data, SHORT["openes"], executor=Misfortune(crew, marker, mishap)).model.theta
            assert np.array_equal(theta, expected["openes"]), mishap
        os.kill(int(marker.read_text()), signal.SIGCONT)
