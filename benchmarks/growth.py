"""How time and memory grow with the grid, the batch, the steps and the population: fitted exponents.

Work that grows as N log N has an exponent of some 1.1 between 32² and 512²; a little more is allowed because caches end
in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, interleaved, peak_bytes
from benchmarks.population import judged
from hycop.channels import water_channels
from hycop.dictionary import Dictionary
from hycop.execution import run
from hycop.grid import Array, Grid
from hycop.primitives import GravityWave
from hycop.program import Program
from hycop.query import Query, Setting
from hycop.schemes import splitting

GRIDS = (32, 64, 128, 256, 512)
STEPWISE, LINEAR = 1.2, 1.05
"""Largest exponents: of a step against the cells, N log N and caches; and of what should grow in proportion."""


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _row(against: str, sizes: Sequence[float], values: Mapping[float, float], goal: float, unit: str) -> Ratio:
    told = ", ".join(f"{size:g}: {value:.3g} {unit}" for size, value in values.items())
    return Ratio("growth", against, exponent(sizes, list(values.values())), goal, False, told, "exponent")


def _times(calls: Mapping[float, Callable[[], object]], rounds: int) -> dict[float, float]:
    seconds = interleaved({str(size): call for size, call in calls.items()}, rounds, pause=0.0)
    return {size: 1e3 * float(np.median(seconds[str(size)].cpu)) for size in calls}


def _memory(calls: Mapping[float, Callable[[], object]]) -> dict[float, float]:
    return {size: peak_bytes(call) / 2**20 for size, call in calls.items()}


def strang(batch: int, cells: int, steps: int = 2) -> Callable[[], Array]:
    query = adr_query(batch, cells)
    return partial(run, splitting(f"strang x{steps}").programs(query, SPECTRAL), SPECTRAL, query)


def one_step(cells: int) -> Callable[[], Array]:
    """One sub-step of gravity waves."""
    grid = Grid.box((cells, cells), (10.0, 10.0))
    x, y = grid.centres()
    h = 1 + 0.2 * np.sin(2 * np.pi * x / 10) * np.cos(2 * np.pi * y / 10)
    u0 = np.stack([h, 0.1 * h, 0.1 * h], axis=1)
    query = Query(u0, Setting(grid, water_channels(2), {"g": np.array([9.81])}), np.array([0.5 / cells]))
    return partial(run, Program.of(("gravity", float(query.time[0]))), Dictionary({"gravity": GravityWave()}), query)


def judging(members: int) -> Callable[[], object]:
    objective, policy, thetas = judged(members, 5)
    return partial(objective.losses, policy, thetas)


def measure(
    grids: Sequence[int] = GRIDS, counts: Sequence[int] = (8, 32, 128), rounds: int = 5, cells: int = 64
) -> list[Ratio]:
    """``counts`` are those of samples, of steps and of members."""
    areas = [n**2 for n in grids]
    by_grid = {float(n**2): strang(1, n) for n in grids}
    by_step = {float(n**2): one_step(n) for n in grids}
    by_batch = {float(count): strang(count, cells) for count in counts}
    by_steps = {float(count): strang(4, cells, count) for count in counts}
    by_members = {float(count): judging(count) for count in counts}
    span = f"{grids[0]}² to {grids[-1]}²"
    many = f"{counts[0]} to {counts[-1]}"
    return [
        _row(f"time of Strang x2 on adr2d against cells, {span}", areas, _times(by_grid, rounds), STEPWISE, "ms"),
        _row(f"memory of the same against cells, {span}", areas, _memory(by_grid), LINEAR, "MB"),
        _row(f"time of a step of gravity waves against cells, {span}", areas, _times(by_step, rounds), STEPWISE, "ms"),
        _row(f"time against samples, {many} of {cells}²", counts, _times(by_batch, rounds), LINEAR, "ms"),
        _row(f"memory against samples, {many} of {cells}²", counts, _memory(by_batch), LINEAR, "MB"),
        _row(f"time against steps, Strang x{many}", counts, _times(by_steps, rounds), LINEAR, "ms"),
        _row(f"time against members of a population, {many}", counts, _times(by_members, rounds), LINEAR, "ms"),
    ]
