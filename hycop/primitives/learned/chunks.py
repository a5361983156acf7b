"""Runs a network on a batch in chunks of one size, so that no sample sees how many others there are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numba
import numpy as np

from hycop.grid import Array

if TYPE_CHECKING:
    from hycop.networks.module import Increment

CHUNK_CELLS, MOST_SAMPLES = 2**13, 32
"""Cells of all samples that a network takes at a time, and samples at most: the same for every batch, because the last
digits of a product of matrices may depend on its size."""

FLOPS_PER_UPDATE = 12.0
"""Floating-point operations of a network that take as long as one update of a channel-cell."""


def in_chunks(module: Increment, states: Array, numbers: Array) -> Array:
    """What the network makes of states (batch, channel, *grid) and dimensionless numbers (batch, number), in single
    precision."""
    import torch

    states, numbers = states.astype(np.float32), numbers.astype(np.float32)
    size = max(1, min(MOST_SAMPLES, CHUNK_CELLS // int(np.prod(states.shape[2:]))))
    out = np.empty(states.shape)

    def advance(first: int) -> None:
        rows = np.minimum(np.arange(first, first + size), len(states) - 1)  # the last sample fills up its chunk
        inside = min(size, len(states) - first)
        with torch.inference_mode():
            after = module(torch.from_numpy(states[rows]), torch.from_numpy(numbers[rows])).numpy()
        out[first : first + inside] = after[:inside]

    _each(advance, range(0, len(states), size))
    return out


def _each(task: Callable[[int], None], firsts: range) -> None:
    """Runs a task for each chunk in as many threads as Numba may use. torch itself gets one thread: its own would make
    digits depend on their number, and would be too many in worker processes."""
    import torch

    threads, before = min(len(firsts), numba.get_num_threads()), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if threads <= 1:
            for first in firsts:
                task(first)
            return
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(task, firsts))
    finally:
        torch.set_num_threads(before)
