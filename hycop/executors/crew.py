"""Workers that compute shares of a job. One that dies or freezes is replaced and its share is computed again."""

from __future__ import annotations

import os
import pickle
import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from hycop.errors import HyCOPError, InvalidInputError
from hycop.executors.executor import Array, Executor, Job, Share, checked_result, shares

SHARES = 4  # shares per worker: enough that a slow worker does not delay the end
ATTEMPTS = 3  # how often a share is computed, and a process started, before giving up
TICK = 0.1  # seconds between checks that the workers are alive
STARTUP = 60.0  # seconds that a worker may take to start or to come back on a busy machine
MOST_WORKERS = 1024  # processes that one executor starts at most


class WorkerError(HyCOPError, RuntimeError):
    """Workers keep dying or freezing, or there are none."""


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, int(os.environ.get("NUMBA_NUM_THREADS") or cores))


class Crew(Executor):
    """Workers that compute one share at a time each; dead and late ones are noticed."""

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool, CancelledError)  # what a lost worker's future raises

    def __init__(self, workers: int | None, timeout: float) -> None:
        self.workers = _cores() if workers is None else workers
        self.timeout = timeout
        self.threads = max(1, _cores() // max(1, self.workers))
        if not 1 <= self.workers <= MOST_WORKERS:
            raise InvalidInputError(f"workers is {workers}: give a number from 1 to {MOST_WORKERS}")
        if not timeout > 0:
            raise InvalidInputError(f"timeout is {timeout}: give a positive number of seconds per share")
        self.held: dict[Any, Future[Array]] = {}  # workers still busy with a share that is no longer needed

    @abstractmethod
    def alive(self) -> Collection[Any]:
        """The workers that can take a share, as far as is known."""

    @abstractmethod
    def submit(self, worker: Any, share: Share) -> Future[Array]:
        """Gives the worker a share of the current job."""

    @abstractmethod
    def distrust(self, worker: Any, future: Future[Array]) -> None:
        """Handles a worker whose result is late or no longer needed."""

    def map(self, job: Job, total: int) -> Array:
        self.open()
        run = _Run(self, shares(total, SHARES * self.workers))
        try:
            while len(run.results) < len(run.shares):
                run.step()
        finally:
            for future, task in run.tasks.items():
                if not future.done():
                    self.distrust(task.worker, future)
        return np.concatenate([run.results[share] for share in run.shares])


@dataclass
class _Task:
    worker: Any
    share: Share
    deadline: float
    repeated: bool = False


class _Run:
    """One job in progress: which worker computes which share, and the results so far."""

    def __init__(self, crew: Crew, shares: list[Share]) -> None:
        self.crew = crew
        self.shares = shares
        self.waiting = deque(shares)
        self.tasks: dict[Future[Array], _Task] = {}
        self.results: dict[Share, Array] = {}
        self.failures: Counter[Share] = Counter()
        self.hopeful = time.monotonic()

    def step(self) -> None:
        """Collects finished shares, gives out waiting ones, and waits for a result."""
        alive = self.crew.alive()
        for future, task in list(self.tasks.items()):
            self.look_at(future, task, alive)
        if len(self.results) == len(self.shares):
            return  # nothing to wait for
        busy = {task.worker for task in self.tasks.values()}
        busy |= {worker for worker, future in self.crew.held.items() if not future.done()}
        for worker in alive:
            if worker not in busy and self.waiting:
                self.employ(worker, self.waiting.popleft())
        limit = 2 * STARTUP + (self.crew.timeout if alive else 0)
        if time.monotonic() > self.hopeful + limit:
            raise WorkerError(f"no worker was free for {limit:g} s; check that workers run, and start new ones")
        wait(self.tasks or [Future()], timeout=TICK, return_when=FIRST_COMPLETED)

    def look_at(self, future: Future[Array], task: _Task, alive: Collection[Any]) -> None:
        """Takes the result of a task, or queues its share again if its worker is dead or late."""
        if future.done():
            del self.tasks[future]
            try:
                self.results.setdefault(task.share, checked_result(future.result(), task.share))
                self.waiting = deque(
                    share for share in self.waiting if share != task.share
                )  # a late worker's share was queued again
            except self.crew.lost:
                self.repeat(task)
        elif task.worker not in alive:
            del self.tasks[future]
            future.cancel()
            self.repeat(task)
        elif time.monotonic() > task.deadline and not task.repeated:
            self.repeat(task)
            self.crew.distrust(task.worker, future)

    def repeat(self, task: _Task) -> None:
        if task.repeated or task.share in self.results:
            return
        task.repeated = True
        self.failures[task.share] += 1
        if self.failures[task.share] == ATTEMPTS:
            what = f"{ATTEMPTS} workers died or took more than {self.crew.timeout:g} s"
            which = f"members {task.share[0]} to {sum(task.share) - 1}"
            raise WorkerError(f"{what} over {which}; raise timeout, or use the local executor")
        self.waiting.appendleft(task.share)

    def employ(self, worker: Any, share: Share) -> None:
        now = time.monotonic()
        try:
            self.tasks[self.crew.submit(worker, share)] = _Task(worker, share, now + self.crew.timeout)
            self.hopeful = now
        except self.crew.lost:  # it died before it got the share, so that is no failure of the share
            self.waiting.appendleft(share)


@lru_cache(maxsize=1)
def _stored_job(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def run_share(job: Job | str, first: int, count: int, threads: int) -> Array:
    called: Job = _stored_job(job) if isinstance(job, str) else job
    if threads:
        numba: Any = import_module("numba")  # before the job does so, else it would take all cores
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    return called(first, count)
