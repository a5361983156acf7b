"""How many threads a loop is worth: waking them and waiting for the last one costs as much as a small loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

UPDATES = 2**15
"""Updates of one value that make a thread worth waking: a few tens of microseconds."""


@contextmanager
def sharing(updates: float) -> Iterator[int]:
    """Within the block Numba's parallel loops use no more threads than so many updates can feed; yields how many."""
    before = numba.get_num_threads()
    threads = max(1, min(before, int(updates // UPDATES)))
    numba.set_num_threads(threads)
    try:
        yield threads
    finally:
        numba.set_num_threads(before)
