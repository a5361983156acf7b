"""The workers of a Dask cluster."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Collection, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import Executor as Pool
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hycop.errors import HyCOPError, InvalidInputError
from hycop.executors.crew import Crew, run_share
from hycop.executors.executor import Array, Job, Share

CONNECT = 5.0  # seconds within which a scheduler must answer


class SchedulerError(HyCOPError, ConnectionError):
    """The Dask scheduler cannot be reached, or is gone."""


class DaskExecutor(Crew):
    """The workers of a Dask cluster: that of the ``scheduler`` at this address, or a new one of local processes.

    Every worker gets the job once and then one share at a time: start workers with ``--nthreads 1``, give their cores
    to Numba, and scale to a fixed number. If a worker dies, its share is computed again. If it takes more than
    ``timeout`` seconds, another worker gets the share too and the first result counts; the late worker gets no new
    share until it is done.
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
        if self.client is not None and self.client.status == "closed":
            self.close()  # Dask gave up a scheduler that was gone for a while; it may be back
        if self.client is not None:
            return
        try:
            dask: Any = import_module("distributed")
        except ImportError:
            raise InvalidInputError("executor dask: Dask is not installed; run pip install 'hycop[cluster]'") from None
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

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Errors of a client that has lost its scheduler, of whatever type, say that it is gone."""
        try:
            yield
        except self.lost:
            raise
        except Exception as error:
            if self.client.status == "running" and not isinstance(error, OSError):
                raise
            where = self.scheduler or "of this machine"
            why = str(error) if isinstance(error, OSError) else f"connection {self.client.status}"
            raise SchedulerError(f"dask scheduler {where}: is gone ({why}); restart it, then resume") from None

    def alive(self) -> Collection[str]:
        with self._reaching():
            addresses = list(self.client.nthreads())
        if self.cluster is not None and len(addresses) < self.workers:
            self.cluster.scale(self.workers)  # Dask restarts a dead worker, but gives up one that dies as it starts
        return addresses

    def submit(self, worker: str, share: Share) -> Future[Array]:
        # Pinned to one worker, so that we know who has what and no data move between workers. A pinned task whose
        # worker dies waits for ever (dask/distributed#7346), which is why ``alive`` is asked again and again.
        with self._reaching():
            if worker not in self.jobs:
                with import_module("dask").config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                    self.jobs[worker] = self.client.submit(pickle.loads, self.payload, workers=[worker], pure=False)
            pool: Pool = self.client.get_executor(workers=[worker], pure=False)
            return pool.submit(run_share, self.jobs[worker], *share, self.threads)

    def distrust(self, worker: str, future: Future[Array]) -> None:
        self.held[worker] = future


def _connected(dask: Any, address: str) -> Any:
    import asyncio  # which no other executor needs

    async def probe() -> None:
        options = dask.Security().get_connection_args("client")
        await (await asyncio.wait_for(dask.comm.connect(address, CONNECT, **options), CONNECT)).close()

    try:
        # A client would wait for ever for a server that is not Dask's, and log an error when it is garbage collected.
        with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop already
            thread.submit(lambda: asyncio.run(probe())).result()
        return dask.Client(address, timeout=CONNECT, set_as_default=False)
    except Exception as error:
        why = str(error) or "no answer"
        raise SchedulerError(f"dask scheduler {address}: cannot be reached ({why}); check that it runs") from None
