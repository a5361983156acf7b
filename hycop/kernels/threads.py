"""How many threads a loop is worth: waking them and waiting for the last one costs as much as a small loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numba

UPDATES = 2**15
"""Updates of one value that make a thread worth waking: a few tens of microseconds."""


POOL = 8
"""How many times as many updates make a thread of a new pool worth its start."""

PARTS = 4
"""Parts for each thread of a pool: one that is slow takes fewer of them."""


def threads_for(updates: float) -> int:
    """Threads that a loop of so many updates can feed: at least one, and no more than Numba may use."""
    wanted = int(updates // UPDATES)
    return 1 if wanted < 2 else min(numba.get_num_threads(), wanted)  # to ask Numba takes as long as a tiny loop


@contextmanager
def sharing(updates: float) -> Iterator[None]:
    """Within the block Numba's parallel loops use no more threads than so many updates can feed."""
    before, wanted = numba.get_num_threads(), threads_for(updates)
    if wanted == before:  # setting the number takes as long as a small loop
        yield
        return
    numba.set_num_threads(wanted)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def in_parts(call: Callable[[int, int], object], count: int, updates: float, together: int = 1) -> None:
    """``call(first, last)`` for parts of range(count), in as many threads as so many updates can feed. The call must
    leave Python's lock alone (``nogil``), and what it does for a number must not depend on the part. Parts are
    multiples of ``together``.

    Numba's own parallel loops take four times as long to compile. A pool for each call costs little and survives a
    fork.
    """
    threads = min(count, threads_for(updates / POOL))
    if threads < 2:
        call(0, count)
        return
    some = -(-count // (PARTS * threads * together)) * together
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda first: call(first, min(first + some, count)), range(0, count, some)):
            pass
