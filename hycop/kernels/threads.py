"""How many threads a loop is worth: waking them and waiting for the last one costs as much as a small loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

UPDATES = 2**15
"""Updates of one value that make a thread worth waking: a few tens of microseconds."""


def threads_for(updates: float) -> int:
    """Threads that a loop of so many updates can feed: at least one, and no more than Numba may use."""
    return max(1, min(numba.get_num_threads(), int(updates // UPDATES)))


@contextmanager
def sharing(updates: float) -> Iterator[None]:
    """Within the block Numba's parallel loops use no more threads than so many updates can feed."""
    before = numba.get_num_threads()
    if threads_for(updates) == before:  # setting the number takes as long as a small loop
        yield
        return
    numba.set_num_threads(threads_for(updates))
    try:
        yield
    finally:
        numba.set_num_threads(before)
