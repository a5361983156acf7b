"""Workers that are given shares of a job and watched: who dies or freezes is replaced, its share computed again."""

from __future__ import annotations

import os
import pickle
import sys
import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Collection
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from hycop.errors import HyCOPError, InvalidInputError
from hycop.executors.executor import Array, Executor, Job, Share, checked_result, shares

SHARES = 4  # for every worker: enough that a slow one does not hold up the others at the end
ATTEMPTS = 3  # at a share, and at starting a process
TICK = 0.1  # seconds between looks at the health of the workers
STARTUP = 60.0  # seconds a worker may take to start or to come back, on a busy machine


class WorkerError(HyCOPError, RuntimeError):
    """Workers die or freeze again and again, or there are none."""


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, int(os.environ.get("NUMBA_NUM_THREADS") or cores))


class Crew(Executor):
    """Workers that compute one share at a time each, and are watched."""

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool, CancelledError)  # how the loss of a worker shows

    def __init__(self, workers: int | None, timeout: float) -> None:
        self.workers = _cores() if workers is None else workers
        self.timeout = timeout
        self.threads = max(1, _cores() // max(1, self.workers))
        if self.workers < 1 or not timeout > 0:
            raise InvalidInputError(f"workers {workers}, timeout {timeout} s a share: positive numbers are needed")
        self.held: dict[Any, Future[Array]] = {}  # workers still busy with what nobody waits for

    @abstractmethod
    def alive(self) -> Collection[Any]:
        """The workers that are there, as far as can be known."""

    @abstractmethod
    def submit(self, worker: Any, share: Share) -> Future[Array]:
        """Gives the worker a share of the present job."""

    @abstractmethod
    def distrust(self, worker: Any, future: Future[Array]) -> None:
        """Deals with a worker whose result is late or no longer wanted."""

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
    """One job on its way: who computes which share, and what has come back."""

    def __init__(self, crew: Crew, shares: list[Share]) -> None:
        self.crew = crew
        self.shares = shares
        self.waiting = deque(shares)
        self.tasks: dict[Future[Array], _Task] = {}
        self.results: dict[Share, Array] = {}
        self.failures: Counter[Share] = Counter()
        self.hopeful = time.monotonic()

    def step(self) -> None:
        """Takes in what is done, gives out what is to do, and waits for news."""
        alive = self.crew.alive()
        for future, task in list(self.tasks.items()):
            self.look_at(future, task, alive)
        busy = {task.worker for task in self.tasks.values()}
        busy |= {worker for worker, future in self.crew.held.items() if not future.done()}
        for worker in alive:
            if worker not in busy and self.waiting:
                self.employ(worker, self.waiting.popleft())
        limit = 2 * STARTUP + (self.crew.timeout if alive else 0)
        if time.monotonic() > self.hopeful + limit:
            raise WorkerError(f"no worker was free for {limit:g} s; see what became of them, and start others")
        wait(self.tasks or [Future()], timeout=TICK, return_when=FIRST_COMPLETED)

    def look_at(self, future: Future[Array], task: _Task, alive: Collection[Any]) -> None:
        """Takes the result of a task, or has its share computed again if its worker is dead or late."""
        if future.done():
            del self.tasks[future]
            try:
                self.results.setdefault(task.share, checked_result(future.result(), task.share))
                self.waiting = deque(share for share in self.waiting if share != task.share)  # if it was late
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
            what = f"{ATTEMPTS} workers died over {task.share[1]} members from {task.share[0]} on"
            raise WorkerError(f"{what}, or took more than {self.crew.timeout:g} s; raise timeout, or compute locally")
        self.waiting.appendleft(task.share)

    def employ(self, worker: Any, share: Share) -> None:
        now = time.monotonic()
        try:
            self.tasks[self.crew.submit(worker, share)] = _Task(worker, share, now + self.crew.timeout)
            self.hopeful = now
        except self.crew.lost:  # it died before it had the share, which therefore is not to blame
            self.waiting.appendleft(share)


@lru_cache(maxsize=1)
def _stored_job(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def run_share(job: Job | str, first: int, count: int, threads: int) -> Array:
    called: Job = _stored_job(job) if isinstance(job, str) else job
    numba = sys.modules.get("numba")
    if numba and threads:
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    return called(first, count)
