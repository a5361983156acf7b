"""The contract of an executor, and the simplest one: this process."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hycop.errors import InvalidInputError

Array = npt.NDArray[Any]
Job = Callable[[int, int], Array]
Share = tuple[int, int]


class Executor(Protocol):
    """Runs jobs. Use it in a ``with`` statement or close it, so that no process is left running."""

    def map(self, job: Job, total: int) -> Array:
        """The results of members 0 … total−1, in this order. Errors of the job are raised here."""

    def open(self) -> None:
        """Starts or connects the workers; ``map`` does so too, but an early call reports errors early."""
        return

    def close(self) -> None:
        """Ends the workers that it started."""
        return

    def __enter__(self) -> Executor:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shares(total: int, parts: int) -> list[Share]:
    if total < 1:
        raise InvalidInputError(f"a job of {total} members: it needs at least one")
    parts = min(total, parts)
    return [(first, end - first) for first, end in pairwise(total * i // parts for i in range(parts + 1))]


def checked_result(result: Array, share: Share) -> Array:
    result = np.asarray(result)
    if result.shape[:1] != share[1:]:
        raise InvalidInputError(
            f"the job returned shape {result.shape} for {share[1]} members: it must return one row each"
        )
    return result


class LocalExecutor(Executor):
    """One call in this process; the kernels inside are parallel."""

    def map(self, job: Job, total: int) -> Array:
        (everything,) = shares(total, 1)
        return checked_result(job(*everything), everything)
