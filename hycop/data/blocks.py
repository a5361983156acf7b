"""Datasets block by block: what is larger than memory is written a few samples at a time.

Only the states are many. Everything else (times, coefficients, what is known about answers) is a few numbers per sample
and waits in memory until the last block; so do coefficients that vary in space, where there are any.
"""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from hycop.data.dataset import Dataset
from hycop.errors import HyCOPError, InvalidInputError
from hycop.files import replacing, writing
from hycop.grid import Array
from hycop.query import Setting

BLOCK_BYTES = 16 * 2**20
"""Bytes of states that are held at a time: work arrays and estimates take some ten times as much."""

HEADERS = 2**16
"""Bytes that a file may take beside its values."""


def block_size(bytes_per_sample: int) -> int:
    """Samples of a block, at least one."""
    return max(1, BLOCK_BYTES // max(1, bytes_per_sample))


def blocks(samples: int, size: int) -> list[slice]:
    """The samples 0, 1, … in blocks.

    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(first, min(first + size, samples)) for first in range(0, samples, size)]


def joined(parts: Sequence[Dataset], states: Array | None = None) -> Dataset:
    """The samples of several datasets of one kind; ``states`` replace theirs."""
    known = ("untrusted", "reasons", "error_estimate", "tolerance_met")
    about: dict[str, Any] = {
        name: None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in known
    }
    return replace(
        parts[0],
        states=np.concatenate([part.states for part in parts]) if states is None else states,
        times=np.concatenate([part.times for part in parts]),
        setting=Setting.joined([part.setting for part in parts]),
        reference_error=next((part.reference_error for part in parts if part.reference_error is not None), None),
        **about,
    )


def regrouped(parts: Iterable[Dataset]) -> Iterator[Dataset]:
    """The same samples in blocks that are as large as ``BLOCK_BYTES`` allows, whatever their size was."""
    held: list[Dataset] = []
    for part in parts:
        size = block_size(part.states.nbytes // part.samples)
        held.append(part)
        while (count := sum(each.samples for each in held)) >= size:
            whole = joined(held) if len(held) > 1 else held[0]
            yield whole.take(slice(0, size))
            held = [whole.take(slice(size, count))] if count > size else []
    if held:
        yield joined(held) if len(held) > 1 else held[0]


def outline(data: Dataset) -> Dataset:
    """The dataset with states of zero that take no memory."""
    return replace(data, states=np.broadcast_to(np.zeros((), data.states.dtype), data.states.shape))


class BlockWriter(ABC):
    """A file of ``samples`` samples, written block by block in a ``with`` statement: whole, or not at all."""

    def __init__(self, path: str | os.PathLike[str], samples: int) -> None:
        self.path, self.samples, self.written = Path(path), samples, 0
        self.held = ExitStack()
        self._outlines: list[Dataset] = []

    def __enter__(self) -> BlockWriter:
        self._replacing = replacing(self.path)
        self.temporary = self._replacing.__enter__()
        return self

    def append(self, block: Dataset) -> None:
        """Writes the states of the next samples."""
        if self._outlines and block.states.shape[1:] != self._outlines[0].states.shape[1:]:
            first = self._outlines[0].states.shape[1:]
            raise InvalidInputError(f"a block has shape {block.states.shape[1:]} per sample, the first had {first}")
        with writing(self.path):
            if not self._outlines:
                self._check_space(block)
                self.begin(block)
            self.states(self.written, block)
        self._outlines.append(outline(block))
        self.written += block.samples

    @abstractmethod
    def begin(self, block: Dataset) -> None:
        """Creates the file for states like those of the first block."""

    @abstractmethod
    def states(self, first: int, block: Dataset) -> None:
        """Writes the states of the samples ``first``, …"""

    @abstractmethod
    def finish(self, outline: Dataset) -> None:
        """Writes everything but the states."""

    def _check_space(self, block: Dataset) -> None:
        # HDF5 crashes the interpreter as it ends if a disk filled up while it wrote
        needed = block.states.nbytes // block.samples * self.samples
        if shutil.disk_usage(self.temporary.parent).free < needed + HEADERS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            if self.written != self.samples:
                raise InvalidInputError(f"{self.path}: {self.written} of {self.samples} samples were written")
            whole = self._outlines[0].states[:1]
            states = np.broadcast_to(whole, (self.samples, *whole.shape[1:]))
            with writing(self.path):
                self.finish(joined(self._outlines, states))
                self.held.close()
        except BaseException:
            self._abandon()
            raise
        self._replacing.__exit__(None, None, None)

    def _abandon(self) -> None:
        """Removes the unfinished file, whatever went wrong."""
        with suppress(Exception):
            self.held.close()
        stopped = HyCOPError("stopped")
        with suppress(HyCOPError):
            self._replacing.__exit__(HyCOPError, stopped, None)
