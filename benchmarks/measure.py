"""How things are measured: alternately, in rounds, so that a busy machine disturbs both sides of a ratio alike."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles

PAUSE = 0.02
"""Seconds between calls: threads that still spin after the last one would take the cores from the next."""


@dataclass(frozen=True)
class Ratio:
    """One line of the table: a measured ratio and the goal it should reach (or stay below)."""

    topic: str
    what: str
    value: float
    goal: float
    at_least: bool
    detail: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    pause: float = PAUSE,
) -> dict[str, list[float]]:
    """Seconds of every call in every round; in a round each is called once, after a first round that only warms up.
    With ``time.process_time`` as the clock they are CPU seconds of all threads."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            time.sleep(pause)
            start = clock()
            call()
            elapsed = clock() - start
            if turn:
                seconds[name].append(elapsed)
    return seconds


def median_ratio(seconds: Mapping[str, list[float]], top: str | tuple[str, ...], bottom: str) -> float:
    """Median over the rounds of top/bottom; several names on top are added."""
    names = (top,) if isinstance(top, str) else top
    totals = [sum(parts) for parts in zip(*(seconds[name] for name in names), strict=True)]
    return median(above / below for above, below in zip(totals, seconds[bottom], strict=True))


def milliseconds(seconds: Mapping[str, list[float]]) -> str:
    """The median of every call, for the reader."""
    return ", ".join(f"{name} {1e3 * median(values):.1f} ms" for name, values in seconds.items())


def spread(seconds: Mapping[str, list[float]]) -> str:
    """Median and quartiles of every call, for the reader."""
    parts = []
    for name, values in seconds.items():
        low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
        parts.append(f"{name} {1e3 * middle:.3g} ms ({1e3 * low:.3g}–{1e3 * high:.3g})")
    return ", ".join(parts)


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
