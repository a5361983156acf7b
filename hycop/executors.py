"""Where candidates are evaluated: in this process, in several, or on a Dask cluster, always with the same result.

A job is a callable ``job(first, count)`` that returns the results of members first … first+count−1, one row each. It
makes its candidates from seeds that it holds, so only two numbers go to a worker and only results come back. If no
result depends on the share in which it is computed, none depends on the number of workers, nor on who dies or freezes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sys
import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures import Executor as Pool
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError

Array = npt.NDArray[Any]
Job = Callable[[int, int], Array]
Share = tuple[int, int]

SHARES = 4  # for every worker: enough that a slow one does not hold up the others at the end
ATTEMPTS = 3  # at a share, and at starting a process
TICK = 0.1  # seconds between looks at the health of the workers
STARTUP = 60.0  # seconds a worker may take to start or to come back, on a busy machine
CONNECT = 5.0  # seconds a scheduler may take to answer


class WorkerError(HyCOPError, RuntimeError):
    """Workers die or freeze again and again, or there are none."""


class SchedulerError(HyCOPError, ConnectionError):
    """The Dask scheduler cannot be reached, or is gone."""


class Executor(Protocol):
    """Something that runs jobs. Use it in a ``with`` statement, or close it, so that no process stays behind."""

    def map(self, job: Job, total: int) -> Array:
        """The results of members 0 … total−1, in this order. What the job raises is raised here."""

    def open(self) -> None:
        """Starts or connects what is needed; ``map`` does it too, but who opens first fails first."""
        return

    def close(self) -> None:
        """Ends what was started."""
        return

    def __enter__(self) -> Executor:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def executor(name: str, **options: Any) -> Executor:
    """The executor of that name: ``local``, ``processes`` or ``dask``."""
    kinds: dict[str, Callable[..., Executor]]
    kinds = {"local": LocalExecutor, "processes": ProcessExecutor, "dask": DaskExecutor}
    if name not in kinds:
        raise UnknownNameError("executor", name, kinds)
    try:
        return kinds[name](**options)
    except TypeError:
        raise InvalidInputError(
            f"executor {name} does not take {', '.join(options)}: processes take workers, dask a scheduler too"
        ) from None


class LocalExecutor(Executor):
    """One call in this process; the kernels inside are parallel."""

    def map(self, job: Job, total: int) -> Array:
        (everything,) = _shares(total, 1)
        return _checked_result(job(*everything), everything)


def _shares(total: int, parts: int) -> list[Share]:
    if total < 1:
        raise InvalidInputError(f"{total} members: at least one is needed")
    parts = min(total, parts)
    return [(first, end - first) for first, end in pairwise(total * i // parts for i in range(parts + 1))]


def _checked_result(result: Array, share: Share) -> Array:
    result = np.asarray(result)
    if result.shape[:1] != share[1:]:
        raise InvalidInputError(f"the job gave results of shape {result.shape} for {share[1]} members: one row each")
    return result


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, int(os.environ.get("NUMBA_NUM_THREADS") or cores))


class _Crew(Executor):
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
        run = _Run(self, _shares(total, SHARES * self.workers))
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

    def __init__(self, crew: _Crew, shares: list[Share]) -> None:
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
                self.results.setdefault(task.share, _checked_result(future.result(), task.share))
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


class ProcessExecutor(_Crew):
    """Processes on this machine, each with its part of the cores.

    A worker that dies is replaced and its share computed again, and so is one that takes more than ``timeout``
    seconds over a share (frozen, swapped out): give more than a share ever takes. Workers are spawned, not forked,
    so a script must guard its main part with ``if __name__ == "__main__":``. They die with this process.
    """

    def __init__(self, workers: int | None = None, timeout: float = 600.0) -> None:
        super().__init__(workers, timeout)
        self.crew: list[_Process] = []
        self.job = ""
        self.failed_starts = 0

    def open(self) -> None:
        self.crew += [_Process() for _ in range(self.workers - len(self.crew))]

    def close(self) -> None:
        while self.crew:
            self.crew.pop().end()

    def map(self, job: Job, total: int) -> Array:
        with TemporaryDirectory(prefix="hycop-") as folder:
            self.job = f"{folder}/{time.monotonic_ns()}.pickle"
            Path(self.job).write_bytes(pickle.dumps(job))
            return super().map(job, total)

    def alive(self) -> Collection[_Process]:
        for worker in [worker for worker in self.crew if not worker.is_alive()]:
            self.failed_starts = 0 if worker.is_ready() else self.failed_starts + 1
            if self.failed_starts == ATTEMPTS:
                raise WorkerError(f"{ATTEMPTS} processes died as they started; is a script's __main__ not guarded?")
            self.crew.remove(worker)
            worker.end()
        self.open()
        return [worker for worker in self.crew if worker.is_ready()]

    def submit(self, worker: _Process, share: Share) -> Future[Array]:
        return worker.pool.submit(_run_share, self.job, *share, self.threads)

    def distrust(self, worker: _Process, future: Future[Array]) -> None:
        worker.process.kill()


class _Process:
    """A pool of one process, so that a death concerns one share only; a fork would copy Numba's threads midway."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare_process)
        self.ready = self.pool.submit(os.getpid)
        self.deadline = time.monotonic() + STARTUP
        # Only the pool knows its process, and one that froze while it started could not tell its number.
        (self.process,) = self.pool._processes.values()

    def is_ready(self) -> bool:
        return self.ready.done() and not self.ready.exception()

    def is_alive(self) -> bool:
        starting = not self.ready.done() and time.monotonic() < self.deadline
        return self.process.is_alive() and (starting or self.is_ready())

    def end(self) -> None:
        self.process.kill()
        self.pool.shutdown(wait=True, cancel_futures=True)


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends its workers
    Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """A pool's process waits on a pipe that it can itself write to, so it would outlive a parent that was killed."""
    if parent := parent_process():
        parent.join()
        os._exit(1)


@lru_cache(maxsize=1)
def _stored_job(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def _run_share(job: Job | str, first: int, count: int, threads: int) -> Array:
    called: Job = _stored_job(job) if isinstance(job, str) else job
    numba = sys.modules.get("numba")
    if numba and threads:
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    return called(first, count)


class DaskExecutor(_Crew):
    """The workers of a Dask cluster: of the ``scheduler`` at this address, or of a cluster of processes made here.

    Every worker gets the job once and then one share at a time: start workers with ``--nthreads 1``, give their cores
    to Numba, and scale to a fixed number. The share of a dead worker is computed again. One that takes more than
    ``timeout`` seconds is given to another too, and the first result counts; the late one rests until it is done.
    """

    def __init__(self, scheduler: str | None = None, workers: int | None = None, timeout: float = 600.0) -> None:
        super().__init__(workers, timeout)
        if scheduler is not None and workers is not None:
            raise InvalidInputError("executor dask: give a scheduler or a number of workers, not both")
        self.scheduler = scheduler
        self.client: Any = None
        self.cluster: Any = None
        self.payload = b""
        self.jobs: dict[str, Any] = {}

    def open(self) -> None:
        if self.client is not None:
            return
        try:
            dask: Any = import_module("distributed")
        except ImportError:
            raise InvalidInputError("executor dask: is not installed; pip install 'hycop[cluster]'") from None
        self.lost = (CancelledError, dask.KilledWorker)
        if self.scheduler is None:
            options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": logging.ERROR}
            self.cluster = dask.LocalCluster(n_workers=self.workers, **options)
            self.client = dask.Client(self.cluster, set_as_default=False)
        else:
            self.client = _connected(dask, self.scheduler)

    def close(self) -> None:
        for part in filter(None, (self.client, self.cluster)):
            part.close()
        self.client = self.cluster = None
        self.jobs, self.held = {}, {}

    def map(self, job: Job, total: int) -> Array:
        self.open()
        self.payload, self.jobs = import_module("distributed.protocol.pickle").dumps(job), {}
        if self.scheduler is not None:
            self.workers, self.threads = max(1, len(self.alive())), 0  # their cores are theirs to share out
        return super().map(job, total)

    def alive(self) -> Collection[str]:
        try:
            addresses = list(self.client.nthreads())
        except OSError as error:
            raise SchedulerError(f"dask scheduler {self.scheduler or ''}: is gone ({error}); resume later") from None
        if self.cluster is not None and len(addresses) < self.workers:
            self.cluster.scale(self.workers)  # Dask restarts a dead worker, but gives up one that dies as it starts
        return addresses

    def submit(self, worker: str, share: Share) -> Future[Array]:
        # Pinned, so that it is known who has what and no data go from worker to worker. A pinned task whose worker
        # dies waits for ever (dask/distributed#7346), hence the look at who is alive.
        if worker not in self.jobs:
            with import_module("dask").config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                self.jobs[worker] = self.client.submit(pickle.loads, self.payload, workers=[worker], pure=False)
        pool: Pool = self.client.get_executor(workers=[worker], pure=False)
        return pool.submit(_run_share, self.jobs[worker], *share, self.threads)

    def distrust(self, worker: str, future: Future[Array]) -> None:
        self.held[worker] = future


def _connected(dask: Any, address: str) -> Any:
    async def probe() -> None:
        options = dask.Security().get_connection_args("client")
        await (await asyncio.wait_for(dask.comm.connect(address, CONNECT, **options), CONNECT)).close()

    try:
        # A client would wait for ever for a server that is not Dask's, and complain again when it is collected.
        with ThreadPoolExecutor(1) as thread:  # as this one may be in an event loop already
            thread.submit(lambda: asyncio.run(probe())).result()
        return dask.Client(address, timeout=CONNECT, set_as_default=False)
    except Exception as error:
        why = str(error) or "no answer"
        raise SchedulerError(f"dask scheduler {address}: cannot be reached ({why}); check that it runs") from None
