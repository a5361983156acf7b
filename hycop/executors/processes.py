"""Processes on this machine."""

from __future__ import annotations

import os
import pickle
import signal
import time
import warnings
from collections.abc import Collection
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from hycop.executors.crew import ATTEMPTS, STARTUP, Crew, WorkerError, run_share
from hycop.executors.executor import Array, Job, Share


class ProcessExecutor(Crew):
    """Processes on this machine that share its cores.

    A worker that dies is replaced and its share is computed again. So is one that takes more than ``timeout`` seconds
    over a share (frozen, swapped out): choose it larger than any share takes. Workers are spawned, not forked, so a
    script must guard its main part with ``if __name__ == "__main__":``. They end when this process ends.
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
                raise WorkerError(
                    f"{ATTEMPTS} processes died as they started; guard the script with if __name__ == '__main__':"
                )
            self.crew.remove(worker)
            worker.end()
        self.open()
        return [worker for worker in self.crew if worker.is_ready()]

    def submit(self, worker: _Process, share: Share) -> Future[Array]:
        return worker.pool.submit(run_share, self.job, *share, self.threads)

    def distrust(self, worker: _Process, future: Future[Array]) -> None:
        worker.process.kill()


class _Process:
    """A pool of one process, so that a death loses one share only; a fork would copy Numba's running threads."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare_process)
        self.ready = self.pool.submit(os.getpid)
        self.deadline = time.monotonic() + STARTUP
        # Asking the process for its number would not do: it may freeze while it starts.
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's overflows: what becomes of them is in the results
    Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """Ends this process with its parent. It waits on a pipe whose other end it holds too, so it would not notice."""
    if parent := parent_process():
        parent.join()
        os._exit(1)
