"""Where candidates are evaluated: in this process, in several, or on a Dask cluster, always with the same result.

A job is a callable ``job(first, count)`` that returns the results of members first … first+count−1, one row each. It
makes its candidates from its own seeds, so only two numbers go to a worker and only results come back. Results must not
depend on how members are divided into shares; then they do not depend on the number of workers or on failures either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.executors.cluster import DaskExecutor, SchedulerError
from hycop.executors.crew import WorkerError
from hycop.executors.executor import Executor, Job, LocalExecutor
from hycop.executors.processes import ProcessExecutor

__all__ = [
    "DaskExecutor",
    "Executor",
    "Job",
    "LocalExecutor",
    "ProcessExecutor",
    "SchedulerError",
    "WorkerError",
    "executor",
]


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
            f"executor {name} does not take {', '.join(options)}: processes takes workers, dask workers or scheduler"
        ) from None
