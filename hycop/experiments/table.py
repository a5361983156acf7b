"""What a table is: rows from a computation, and figures from the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hycop.evaluation import Row
from hycop.plots import Figure

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of the whole that is finished."""


class Build(Protocol):
    def __call__(self, samples: int, seeds: int, progress: Progress) -> list[Row]: ...


@dataclass(frozen=True)
class Table:
    """A named table; ``samples`` is how many it takes per split and seed unless told otherwise."""

    name: str
    title: str
    samples: int
    build: Build
    figures: Callable[[Sequence[Row]], Mapping[str, Figure]]
