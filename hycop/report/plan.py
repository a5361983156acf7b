"""How many queries a report draws, and on which grid, so that their truth takes seconds and not hours.

The cost of a truth is measured on the cheapest grid that offers itself, over a part of the query time, and carried to
others: n cells along each of d axes take steps as short as a cell, so it grows as n^(d + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

from hycop.problems import Problem

SECONDS = 24.0
"""CPU seconds that the truths of a split may take, unless the user says how many there are."""

VALUES = 2**17
FEWEST, MOST = 8, 32
"""Queries of a split where a truth is cheap: as many as have this many values together, within bounds."""

NEEDED = 4
"""Queries that a truth on the model's own grid must allow; otherwise a coarser grid is taken."""

COARSEST = 16
"""Cells that a coarser grid keeps along each axis."""

PART = 1 / 8
"""Part of the query time for which a cost is measured."""


@dataclass(frozen=True)
class Plan:
    """So many queries on a grid of this shape; ``remark`` says what was saved, and why."""

    count: int
    shape: tuple[int, ...]
    remark: str = ""


def cpu_seconds(call: Callable[[float], object], part: float = PART) -> float:
    """CPU seconds of a call for all of a duration, measured on a ``part`` of it. A shorter one comes first: kernels are
    compiled then."""
    call(part / 64)
    start = process_time()
    call(part)
    return (process_time() - start) / part


def count_for(problem: Problem, shape: Sequence[int] | None) -> int:
    """How many queries of a problem are worth their time, if their truth is cheap."""
    values = len(problem.channels) * int(np.prod([n * problem.refinement for n in shape or problem.shape]))
    return max(FEWEST, min(MOST, VALUES // values))


def planned(
    problem: Problem,
    split: str,
    seed: int,
    shape: Sequence[int] | None,
    boundary: Sequence[str] | None = None,
    time: float | None = None,
) -> Plan:
    """As many queries as their truth allows, on the grid of the model unless that is too fine. What is only asked at a
    ``time`` of its own, a network, is asked on its own grid."""
    own = tuple(shape or problem.shape)
    shapes = coarser(own) if time is None else [own]
    axes = len(own)
    cells = [_fine_cells(problem, each, boundary) for each in shapes]
    cheapest = int(np.argmin(cells))
    late = float(np.mean(problem.split(split).time)) if time is None else time

    def solve(part: float) -> None:
        asked: dict[str, Any] = {"shape": shapes[cheapest], "boundary": boundary, "estimated": 0}
        problem.sample(1, split, seed, times=[part * late], **asked)

    measured = cpu_seconds(solve)
    costs = [measured * (each / cells[cheapest]) ** ((axes + 1) / axes) for each in cells]
    # the finest grid that is affordable, or else one than which no other takes less than half
    enough = max(SECONDS / NEEDED, 2 * min(costs))
    place = next(place for place, cost in enumerate(costs) if cost <= enough)
    usual = count_for(problem, shapes[place])
    count = min(usual, max(NEEDED - 1, int(SECONDS / max(costs[place], 1e-9))))
    return Plan(count, shapes[place], _remark(own, shapes[place], count, usual))


def coarser(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shape, and those with half as many cells along each axis, as long as enough are left."""
    found = [shape]
    while all(n % 2 == 0 and n // 2 >= COARSEST for n in found[-1]):
        found.append(tuple(n // 2 for n in found[-1]))
    return found


def _fine_cells(problem: Problem, shape: tuple[int, ...], boundary: Sequence[str] | None) -> float:
    """Cells of the grid on which the truth is solved."""
    grid = problem.grid(shape, boundary)
    finer = problem.reference(frozenset(problem.processes), grid.boundary, shape).refinement
    return float(np.prod([n * finer for n in shape]))


def _remark(own: tuple[int, ...], shape: tuple[int, ...], count: int, usual: int) -> str:
    said = []
    if shape != own:
        cells, mine = (" × ".join(map(str, each)) for each in (shape, own))
        said.append(f"These queries are on {cells} cells, not on the model's own {mine}")
    if count < usual:
        those = f"there are {count} of them" if said else f"There are {count} of these queries"
        said.append(f"{those} where {usual} are usual")
    if not said:
        return ""
    why = f"a report spends at most {SECONDS:.0f} CPU seconds on the truth of each kind of query"
    return f"{', and '.join(said)}: {why}. Give --samples N to have N queries on the model's own grid."
