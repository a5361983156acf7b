"""How things are measured: alternately, in rounds, so that a busy machine disturbs both sides of a ratio alike. CPU
time of all threads, which other processes do not lengthen, and wall time beside it."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import median, quantiles
from typing import Any, NamedTuple

PAUSE = 0.02
"""Seconds between calls: threads that still spin after the last one would take the cores from the next."""


class Seconds(NamedTuple):
    """CPU and wall seconds of a call, round by round."""

    cpu: Sequence[float]
    wall: Sequence[float]


class Timing(NamedTuple):
    """Median and quartiles of CPU seconds, and the median of wall seconds."""

    cpu: float
    low: float
    high: float
    wall: float

    @classmethod
    def of(cls, seconds: Seconds, share: float = 1.0) -> Timing:
        """``share``: the part of a call that counts, as 1/64 for one of 64 queries."""
        low, middle, high = quartiles([share * each for each in seconds.cpu])
        return cls(middle, low, high, share * median(seconds.wall))


class Skipped(Exception):
    """An opponent is not installed: the message says which, and how to install it."""


@dataclass(frozen=True)
class Ratio:
    """One line of the table: a measured ratio and the goal it should reach (or stay below).

    ``low`` and ``high`` are its quartiles over the rounds. ``ours`` and ``theirs`` are seconds of HyCOP and of the
    ``opponent``; ``error`` and ``their_error`` are their relative errors where both solve the same queries.
    """

    topic: str
    what: str
    value: float
    goal: float
    at_least: bool
    detail: str = ""
    opponent: str = ""
    low: float | None = None
    high: float | None = None
    ours: Timing | None = None
    theirs: Timing | None = None
    error: float | None = None
    their_error: float | None = None

    @property
    def met(self) -> bool:
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def to_json(self) -> dict[str, object]:
        timings = {name: each._asdict() for name in ("ours", "theirs") if (each := getattr(self, name)) is not None}
        return {**vars(self), **timings, "met": self.met}


def needed(package: str, extra: str) -> Any:
    """The module of an opponent, or ``Skipped``."""
    try:
        return import_module(package)
    except ImportError:
        raise Skipped(f"needs {package.partition('.')[0]}: {extra}") from None


def interleaved(
    calls: Mapping[str, Callable[[], object]], rounds: int, pause: float = PAUSE, warm: bool = False
) -> dict[str, Seconds]:
    """Seconds of every call in every round; in a round each is called once, after a first round that only warms up,
    unless they are ``warm`` already."""
    found: dict[str, Seconds] = {name: Seconds([], []) for name in calls}
    for turn in range(int(warm), rounds + 1):
        for name, call in calls.items():
            time.sleep(pause)
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            took = time.process_time() - cpu, time.perf_counter() - wall
            if turn:
                for times, one in zip(found[name], took, strict=True):
                    times.append(one)  # type: ignore[attr-defined]
    return found


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    return low, middle, high


def ratios(seconds: Mapping[str, Seconds], top: str | tuple[str, ...], bottom: str) -> list[float]:
    """Top/bottom in CPU seconds, round by round; several names on top are added."""
    names = (top,) if isinstance(top, str) else top
    totals = [sum(parts) for parts in zip(*(seconds[name].cpu for name in names), strict=True)]
    return [above / below for above, below in zip(totals, seconds[bottom].cpu, strict=True)]


def median_ratio(seconds: Mapping[str, Seconds], top: str | tuple[str, ...], bottom: str) -> float:
    """Median over the rounds of top/bottom."""
    return median(ratios(seconds, top, bottom))


def compared(
    topic: str,
    what: str,
    seconds: Mapping[str, Seconds],
    ours: str,
    theirs: str,
    goal: float,
    *,
    at_least: bool = True,
    queries: int = 1,
    errors: tuple[float | None, float | None] = (None, None),
    detail: str = "",
) -> Ratio:
    """How many times as fast ``ours`` is as ``theirs``; with ``at_least=False`` how many times as long it takes.
    ``queries`` are those that a call answers: seconds are for one of them."""
    found = ratios(seconds, theirs, ours) if at_least else ratios(seconds, ours, theirs)
    low, value, high = quartiles(found)
    mine, other = (Timing.of(seconds[name], 1.0 / queries) for name in (ours, theirs))
    return Ratio(topic, what, value, goal, at_least, detail, theirs, low, high, mine, other, *errors)


def limited(topic: str, what: str, seconds: Seconds, most: float, *, queries: int = 1, detail: str = "") -> Ratio:
    """CPU seconds of HyCOP for one of the queries, over the most that they should take."""
    mine = Timing.of(seconds, 1.0 / queries)
    told = f"at most {most:g} CPU s"
    return Ratio(
        topic, what, mine.cpu / most, 1.0, False, detail or told, told, mine.low / most, mine.high / most, mine
    )


def milliseconds(seconds: Mapping[str, Seconds]) -> str:
    """The median of every call, for the reader."""
    return ", ".join(f"{name} {1e3 * median(each.cpu):.3g} ms" for name, each in seconds.items())


def peak_bytes(call: Callable[[], object]) -> int:
    """Most memory that arrays made during the call take at one time, what it returns included."""
    tracemalloc.start()
    try:
        kept = call()
        peak = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        tracemalloc.stop()
    return peak
