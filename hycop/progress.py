"""Progress bars on stderr for Python and the command line; silent where nobody watches.

A bar shows on a terminal or in a notebook only, so logs and pipes stay clean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

Advance = Callable[[float], None]
"""Called with the number of items that were finished since the last call."""

Describe = Callable[[str, float], None]
"""Called with what is being done now and the finished fraction of all work."""

KERNELS = Path(__file__).parent / "kernels" / "__pycache__"
"""Where Numba keeps the compiled kernels, unless NUMBA_CACHE_DIR names another folder."""

COMPILING = "compiling kernels for the first time: about a minute"


@dataclass(frozen=True)
class Progress:
    """The state of a training run after a step.

    ``loss`` is that of the last step and ``best`` the lowest so far. ``classical`` is the best classical scheme within
    the allowed steps and work, ``classical_loss`` its loss on the same queries. ``evaluations`` counts programs, each
    run for one query, since the run was started or resumed. ``share`` is the finished fraction of the planned work.
    """

    stage: str
    step: int
    of: int
    loss: float
    best: float
    classical: str
    classical_loss: float
    evaluations: int
    share: float


Report = Callable[[Progress], None]
"""A callback: a live view, or two lines that hand the numbers to TensorBoard, W&B or MLflow."""


@contextmanager
def counting(total: int, label: str) -> Iterator[Advance]:
    """A bar that counts to ``total``."""
    with _bar(label, total, MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()) as (bar, task):
        yield lambda count: bar.update(task, advance=count)


@contextmanager
def describing(label: str, enabled: bool = True) -> Iterator[Describe]:
    """A bar from 0 to 1 with a text that changes."""
    with _bar(label, 1.0, TimeElapsedColumn(), enabled=enabled) as (bar, task):
        yield lambda text, share: bar.update(task, description=text, completed=share)


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """A bar that only moves, for what cannot be counted."""
    with _bar(label, None, TimeElapsedColumn()):
        yield


@contextmanager
def training_bar(label: str, enabled: bool = True) -> Iterator[Report]:
    """A live view of a training run: its stage, the best loss beside the best classical scheme's, programs per second.

    >>> with training_bar("training", enabled=False) as report:
    ...     report(Progress("search", 1, 8, 0.2, 0.1, "Strang", 0.15, 512, 0.1))
    """
    start = perf_counter()
    with _bar(label, 1.0, TimeElapsedColumn(), TimeRemainingColumn(), enabled=enabled) as (bar, task):

        def report(entry: Progress) -> None:
            rate = entry.evaluations / max(perf_counter() - start, 1e-9)
            bar.update(
                task,
                completed=entry.share,
                description=f"{entry.stage} {entry.step}/{entry.of}  best {entry.best:.2e}  "
                f"{entry.classical} {entry.classical_loss:.2e}  {rate:,.0f} programs/s",
            )

        yield report


@contextmanager
def _bar(
    label: str, total: float | None, *columns: ProgressColumn, enabled: bool = True
) -> Iterator[tuple[Bar, TaskID]]:
    console = Console(stderr=True)
    shown = enabled and (console.is_terminal or console.is_jupyter)
    if shown:
        _announce_compilation()
    text = TextColumn("{task.description}", markup=False)
    with Bar(text, BarColumn(), *columns, console=console, transient=True, disable=not shown) as bar:
        yield bar, bar.add_task(label, total=total)


@cache
def _announce_compilation() -> None:
    """Says once, before the first bar, that the first run will seem slow."""
    if not kernels_are_compiled():
        Console(stderr=True).print(COMPILING, markup=False, highlight=False)


def kernels_are_compiled() -> bool:
    """Whether Numba has compiled kernels before in this environment; True where that cannot be known."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if elsewhere:
        return any(Path(elsewhere).rglob("*.nbi"))
    # an installation that cannot be written has its cache in a folder of the user's
    return any(KERNELS.glob("*.nbi")) or not os.access(KERNELS.parent, os.W_OK)
