"""Workers that know the problems and primitives in files of one's own."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hycop.conformance.loading import load_module
from hycop.executors import Executor, Job
from hycop.grid import Array


@dataclass(frozen=True)
class Carried:
    """A job with the Python files that it needs; a worker runs them before it takes the job apart."""

    files: tuple[str, ...]
    payload: bytes = field(repr=False)

    @cached_property
    def job(self) -> Job:
        for file in self.files:
            load_module(file)
        job: Job = pickle.loads(self.payload)
        return job

    def __call__(self, first: int, count: int) -> Array:
        return self.job(first, count)


class CarryingExecutor(Executor):
    """An executor whose workers run some Python files first. They need the files under the same names."""

    def __init__(self, inner: Executor, files: Sequence[Path]) -> None:
        self.inner = inner
        self.files = tuple(str(file.resolve()) for file in files)
        self.workers: int = getattr(inner, "workers", 1)

    def map(self, job: Job, total: int) -> Array:
        return self.inner.map(Carried(self.files, pickle.dumps(job)), total)

    def open(self) -> None:
        self.inner.open()

    def close(self) -> None:
        self.inner.close()
