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
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from hycop import executors
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.executors import (
    Array,
    DaskExecutor,
    Executor,
    LocalExecutor,
    ProcessExecutor,
    SchedulerError,
    WorkerError,
    executor,
)

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
        rows = [np.random.Generator(np.random.Philox(key=[5, i])).standard_normal(3) for i in range(first, first + count)]
        return np.column_stack((np.arange(first, first + count), rows))

    def claim(self) -> bool:
        assert self.marker is not None
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class Fails:
    def __call__(self, first: int, count: int) -> Array:
        if first + count > 5:
            raise ArithmeticError(f"member {first + count - 1} left the finite numbers")
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
    with ProcessExecutor(workers=2) as crew:
        yield crew


@pytest.fixture(scope="module")
def dask() -> Iterator[DaskExecutor]:
    pytest.importorskip("distributed")
    with DaskExecutor(workers=2) as crew:
        yield crew


@pytest.fixture(params=["local", "processes", "dask"])
def crew(request: pytest.FixtureRequest) -> Executor:
    return LocalExecutor() if request.param == "local" else request.getfixturevalue(request.param)


def test_all_give_the_same_bits(crew: Executor) -> None:
    assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)
    assert np.array_equal(crew.map(Noise(), 1), EXPECTED[:1])


def test_errors_of_the_job_come_through_and_the_crew_goes_on(crew: Executor) -> None:
    with pytest.raises(ArithmeticError, match="member .* left the finite numbers"):
        crew.map(Fails(), MEMBERS)
    assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


def test_results_must_fit_the_members(crew: Executor) -> None:
    with pytest.raises(InvalidInputError, match="one row each"):
        crew.map(wrong_shape, MEMBERS)
    with pytest.raises(InvalidInputError, match="at least one"):
        crew.map(Noise(), 0)


def wrong_shape(first: int, count: int) -> Array:
    return np.zeros(count + 1)


@pytest.mark.parametrize("workers", [1, 4])
def test_number_of_processes_does_not_matter(workers: int) -> None:
    with ProcessExecutor(workers) as crew:
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


@pytest.mark.parametrize("workers", [1, 4])
def test_number_of_dask_workers_does_not_matter(workers: int) -> None:
    pytest.importorskip("distributed")
    with DaskExecutor(workers=workers) as crew:
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)


@pytest.mark.parametrize("name", ["processes", "dask"])
@pytest.mark.parametrize("mishap", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_frozen_worker_changes_nothing(name: str, mishap: int, tmp_path: Path, request) -> None:  # type: ignore[no-untyped-def]
    crew = request.getfixturevalue(name)
    job = Noise(tmp_path / "claimed", mishap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "timeout", 3.0 if mishap == signal.SIGSTOP else 600.0)
        assert np.array_equal(crew.map(job, MEMBERS), EXPECTED)
        assert job.marker is not None and job.marker.exists()
        assert np.array_equal(crew.map(Noise(), MEMBERS), EXPECTED)
