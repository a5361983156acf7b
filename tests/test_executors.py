"""Every executor gives the same bits, with any number of workers, and whatever happens to them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.evolution import OpenES, State
from hycop.executors import (
    DaskExecutor,
    Executor,
    LocalExecutor,
    ProcessExecutor,
    SchedulerError,
    WorkerError,
    executor,
)
from hycop.executors import cluster as clusters
from hycop.executors import crew as crews
from hycop.grid import Array

MEMBERS = 37


@dataclass(frozen=True)
class Noise:
    """Three normal numbers and their number for every member, and one mishap, at the first who finds the marker."""

    marker: Path | None = None
    mishap: int | None = None
    unlucky: int = 20
    always: bool = False
    ballast: bytes = field(default=b"", repr=False)

    def __call__(self, first: int, count: int) -> Array:
        if self.mishap is not None and first <= self.unlucky < first + count and (self.always or self.claim()):
            os.kill(os.getpid(), self.mishap)
        members = np.arange(first, first + count)
        rows = [np.random.Generator(np.random.Philox(key=[5, i])).standard_normal(3) for i in members.tolist()]
        return np.column_stack((members, rows))

    def claim(self) -> bool:
        assert self.marker is not None
        try:
            with self.marker.open("x") as marker:
                marker.write(str(os.getpid()))
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class Losses:
    optimizer: OpenES
    state: State

    def __call__(self, first: int, count: int) -> Array:
        return np.asarray(np.add.reduce(self.optimizer.ask_some(self.state, first, count) ** 2, axis=1))


@dataclass(frozen=True)
class Fails:
    def __call__(self, first: int, count: int) -> Array:
        if first + count > 5:
            raise ArithmeticError(f"member {first + count - 1} became NaN")
        return np.zeros(count)


@dataclass(frozen=True)
class Identity:
    """The process and the Numba threads that members are computed with."""

    def __call__(self, first: int, count: int) -> Array:
        import numba

        time.sleep(0.02)
        return np.array([[os.getpid(), numba.get_num_threads()]] * count)


EXPECTED = Noise()(0, MEMBERS)


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids: set[int], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while any(map(exists, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(exists, pids))


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessExecutor]:
    with contextlib.closing(ProcessExecutor(workers=2)) as crew:
        yield crew


@pytest.fixture(scope="module")
def dask() -> Iterator[DaskExecutor]:
    pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    with contextlib.closing(DaskExecutor(workers=2)) as crew:
        crew.open()
        yield crew


@pytest.fixture(params=["local", "processes", "dask"])
def crew(request: pytest.FixtureRequest) -> Executor:
    return LocalExecutor() if request.param == "local" else request.getfixturevalue(request.param)


def test_all_give_the_same_bits(crew: Executor) -> None:
    assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)
    assert np.array_equal(crew.map(Noise(), 1), EXPECTED[:1])


def test_a_generation_is_evaluated_by_workers_that_make_their_members_themselves(crew: Executor) -> None:
    optimizer = OpenES(population=26, sigma=0.1)
    state = optimizer.start(np.linspace(-1.0, 1.0, 7), seed=3)
    for _ in range(3):
        losses = crew.map(Losses(optimizer, state), optimizer.members(state))
        assert np.array_equal(losses, np.add.reduce(optimizer.ask(state) ** 2, axis=1))
        state = optimizer.tell(state, losses)


def test_errors_of_the_job_come_through_and_the_crew_goes_on(crew: Executor) -> None:
    with pytest.raises(ArithmeticError, match=r"^member \d+ became NaN$"):
        crew.map(Fails(), MEMBERS)
    assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


def test_results_must_fit_the_members(crew: Executor) -> None:
    with pytest.raises(InvalidInputError, match="one row each"):
        crew.map(wrong_shape, MEMBERS)
    with pytest.raises(InvalidInputError, match="at least one"):
        crew.map(Noise(), 0)


def wrong_shape(first: int, count: int) -> Array:
    return np.zeros(count + 1)


@pytest.mark.parametrize("workers", [2, *(pytest.param(count, marks=pytest.mark.validate) for count in (1, 4))])
def test_number_of_processes_does_not_matter(workers: int) -> None:
    with ProcessExecutor(workers) as crew:
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


@pytest.mark.parametrize("workers", [2, *(pytest.param(count, marks=pytest.mark.validate) for count in (1, 4))])
def test_number_of_dask_workers_does_not_matter(workers: int) -> None:
    pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    with DaskExecutor(workers=workers) as crew:
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


@pytest.mark.parametrize("name", ["processes", "dask"])
@pytest.mark.parametrize("mishap", [signal.SIGSTOP, signal.SIGKILL])
def test_a_dead_or_frozen_worker_changes_nothing(
    name: str, mishap: signal.Signals, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = request.getfixturevalue(name)
    marker = tmp_path / "claimed"
    assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)  # so that imports do not count as freezing
    if mishap == signal.SIGSTOP:
        monkeypatch.setattr(crew, "timeout", 4.0)
    assert np.array_equal(crew.map(Noise(marker, mishap), MEMBERS), EXPECTED)
    victim = int(marker.read_text())
    if name == "dask" and mishap == signal.SIGSTOP:
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)  # without the frozen worker, so without delay
        os.kill(victim, signal.SIGCONT)
    else:
        assert gone({victim})
    assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


def test_a_job_that_always_kills_is_given_up(processes: ProcessExecutor) -> None:
    with pytest.raises(WorkerError, match=r"^3 workers died or took more than 600 s over members 0 to \d; "):
        processes.map(Noise(mishap=signal.SIGKILL, unlucky=0, always=True), 3)
    assert np.array_equal(processes.map(Noise(), MEMBERS), EXPECTED)


def test_nothing_stays_behind_not_even_a_frozen_worker() -> None:
    crew = ProcessExecutor(2)
    with crew:
        crew.map(Identity(), MEMBERS)
        pids = {worker.process.pid for worker in crew.crew if worker.process.pid}
        assert len(pids) == 2 and all(map(exists, pids))
        os.kill(min(pids), signal.SIGSTOP)
    assert gone(pids) and not crew.crew


def test_workers_die_with_their_parent() -> None:
    script = "import time; from tests.test_executors import *; crew = ProcessExecutor(1)\n"
    script += "print(int(crew.map(Identity(), 2)[0, 0]), flush=True); time.sleep(600)"
    root = Path(__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert exists(worker)
        parent.kill()
    assert gone({worker})


def test_workers_share_the_cores(processes: ProcessExecutor, dask: DaskExecutor) -> None:
    for crew in (processes, dask):
        threads = set(crew.map(Identity(), MEMBERS)[:, 1].tolist())
        assert threads == {max(1, crews._cores() // 2)}


def test_a_given_scheduler_is_used_and_left_running(dask: DaskExecutor) -> None:
    address = dask.cluster.scheduler_address
    with executor("dask", scheduler=address) as crew:
        assert np.array_equal(crew.map(Noise(ballast=bytes(20_000_000)), MEMBERS), EXPECTED)
    assert np.array_equal(dask.map(Noise(), MEMBERS), EXPECTED)


def test_no_scheduler_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    monkeypatch.setattr(clusters, "CONNECT", 1.0)
    monkeypatch.setattr(crews, "STARTUP", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for address in (f"tcp://127.0.0.1:{silent.getsockname()[1]}", "tcp://127.0.0.1:1", "nonsense"):
            with pytest.raises(SchedulerError, match=rf"^dask scheduler {address}: cannot be reached \(.+\); check"):
                executor("dask", scheduler=address).open()
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty,
        executor("dask", scheduler=empty.scheduler_address) as crew,
        pytest.raises(WorkerError, match="no worker"),
    ):
        crew.map(Noise(), MEMBERS)


def test_a_scheduler_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    monkeypatch.setattr(clusters, "CONNECT", 1.0)
    cluster = distributed.LocalCluster(n_workers=1, dashboard_address="127.0.0.1:0")
    crew = DaskExecutor(cluster.scheduler_address)
    with contextlib.closing(crew):
        crew.open()
        cluster.close()
        with pytest.raises(SchedulerError, match="is gone"):
            crew.map(Noise(), MEMBERS)
        end = time.monotonic() + 30.0
        while crew.client.status != "closed" and time.monotonic() < end:  # the client gives up after a while
            time.sleep(0.1)
        with pytest.raises(SchedulerError, match=r"is gone \(connection closed\)"):
            crew.alive()
        with pytest.raises(SchedulerError, match=r"is gone|cannot be reached \(.+\); check that it runs"):
            crew.map(Noise(), MEMBERS)


def test_executors_by_name() -> None:
    assert isinstance(executor("local"), LocalExecutor)
    assert isinstance(executor("processes", workers=3, timeout=10.0), ProcessExecutor)
    with pytest.raises(UnknownNameError, match="did you mean processes"):
        executor("process")
    with pytest.raises(InvalidInputError, match=r"^executor local "):
        executor("local", workers=2)
    for wrong in (0, 10**9):
        with pytest.raises(InvalidInputError, match=rf"^workers is {wrong}: give a number from 1 to 1024"):
            executor("processes", workers=wrong)
    with pytest.raises(InvalidInputError, match=r"^timeout is 0: give a positive"):
        executor("processes", timeout=0)
    with pytest.raises(InvalidInputError, match="not both"):
        executor("dask", scheduler="tcp://127.0.0.1:1", workers=2)


def test_a_worker_that_is_gone_before_it_has_a_share_does_not_count_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may look alive for a while after its pool has broken."""
    refused = []

    def submit(self: ProcessExecutor, worker: Any, share: tuple[int, int]) -> Any:
        if len(refused) < 10:
            refused.append(share)
            raise BrokenProcessPool("terminated abruptly")
        return honest(self, worker, share)

    honest = ProcessExecutor.submit
    monkeypatch.setattr(ProcessExecutor, "submit", submit)
    with ProcessExecutor(1) as crew:
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)
    assert len(refused) == 10
