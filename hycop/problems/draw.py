"""Random numbers of a sample, the same in whatever batch it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array

WIDTH = 64
"""Uniform numbers that one sample may use; a multiple of the four that Philox makes at a time."""

Intervals = Sequence[tuple[float, float]]


class Draw:
    """A row of uniform numbers per sample, handed out column by column.

    The numbers of sample i are block i of one counter-based stream (Philox, keyed by seed and name), so they do not
    depend on how samples are batched, nor on the order in which batches are made.

    >>> whole, part = Draw.of(7, "id", 0, 4), Draw.of(7, "id", 2, 2)
    >>> bool((whole.uniform(0, 1)[2:] == part.uniform(0, 1)).all())
    True
    """

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers
        self._used = 0

    @classmethod
    def of(cls, seed: int, stream: str, first: int, count: int) -> Draw:
        if not isinstance(seed, int | np.integer):
            raise InvalidInputError(f"seed is {seed!r:.40}: a whole number is needed")
        if seed < 0:
            raise InvalidInputError(f"seed is {seed}: it must not be negative")
        generator = np.random.Philox(key=[seed & (2**64 - 1), crc32(stream.encode())])
        generator.advance(first * WIDTH // 4)
        return cls(np.random.Generator(generator).random((count, WIDTH)))

    def __len__(self) -> int:
        return int(self._numbers.shape[0])

    def take(self, samples: Array) -> Draw:
        """The rows of some samples, with the same columns used up."""
        part = Draw(self._numbers[samples])
        part._used = self._used
        return part

    def _column(self) -> Array:
        if self._used == WIDTH:
            raise InvalidInputError(f"a sample may use {WIDTH} random numbers at most")
        self._used += 1
        out: Array = self._numbers[:, self._used - 1]
        return out

    def uniform(self, low: float, high: float) -> Array:
        """Uniform in [low, high), (samples,)."""
        return low + (high - low) * self._column()

    def log_uniform(self, low: float, high: float) -> Array:
        return np.exp(self.uniform(np.log(low), np.log(high)))

    def among(self, intervals: Intervals) -> Array:
        """One of the intervals with equal chance, then uniform in it."""
        bounds = np.asarray(intervals, dtype=np.float64)
        which = self.integer(0, len(bounds) - 1)
        return bounds[which, 0] + (bounds[which, 1] - bounds[which, 0]) * self._column()

    def integer(self, low: int, high: int) -> Array:
        """One of low, …, high with equal chance."""
        return np.minimum(low + (self._column() * (high - low + 1)).astype(np.int64), high)
