"""Shallow water against PyClaw and SharpClaw at equal error: queries of ``swe2d``, and dams that break in a walled
basin of 320², by the model of ``swe2d`` with walls swapped in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import log

import numpy as np

from benchmarks.equal_error import between, fastest, match, mean_error
from benchmarks.measure import Ratio, Seconds, compared, interleaved, limited
from benchmarks.models import data, kept_array, trained
from benchmarks.pyclaw_solvers import PyClaw, imported
from hycop.grid import Array, Grid
from hycop.problems import find_problem
from hycop.query import Query, Setting
from hycop.surrogate import HyCOP
from hycop.transfer import swap


def _with(dictionary: str, refinement: int, *more: str) -> tuple[str, ...]:
    return tuple(
        word for each in (f"dictionary={dictionary}", f"refinement={refinement}", *more) for word in ("--set", each)
    )


COARSE = _with("weno5-hancock", 1, "max_steps=9")
COMPOSED = ("--set", "unsplit=false")
POINTS = {
    "3.5e-4": ((), 6.0),
    "3.5e-4, composed": (COMPOSED, 6.0),
    "3e-3": (COARSE, 3.0),
    "3e-3, composed": ((*COARSE, *COMPOSED), 3.0),
}
"""Operating points of ``swe2d``: options of training, and the goal. Few steps are enough at 3e-3, where most of the
error is that of the grid. The gate finds that a solver of the whole equation errs less here at no more work, and uses
it unless it must not."""

MOST_SECONDS, MOST_ERROR = 6.0, 1e-2
"""Of an answer to a dam break."""

BASIN, CELLS, TIME = 100.0, 320, 15.0
DEEP, SHALLOW = 3.0, 1.0


def measure(samples: int = 6, rounds: int = 3, options: Sequence[str] = (), finest: int = 16) -> list[Ratio]:
    imported()
    judged = data("swe2d", "id", samples)
    found = []
    for point, (own, goal) in POINTS.items():
        model = trained("swe2d", (*own, *options)).model
        error = mean_error(model.answer(judged.query).states, judged)
        levels = tuple(level for level in PyClaw().levels if level <= finest)
        families = PyClaw(levels=levels), PyClaw(True, levels[:5])
        chosen = fastest([match(family, judged, error) for family in families], judged.query, 1)
        calls = {"HyCOP": lambda: model.answer(judged.query).states, **chosen.calls(judged.query)}  # noqa: B023
        seconds = interleaved(calls, rounds)
        seconds["Clawpack"] = chosen.at_equal_error(seconds)
        what = f"swe2d at {point}, {samples} queries: the faster of PyClaw and SharpClaw / HyCOP"
        errors = error, chosen.error
        row = compared("swe2d-answer", what, seconds, "HyCOP", "Clawpack", goal, queries=samples, errors=errors)
        found.append(replace(row, detail=chosen.told(), opponent=chosen.family.name))
    return found


def dam(corner: bool, shape: tuple[int, int] = (CELLS, CELLS), time: float = TIME) -> Query:
    """Deep water behind a straight dam, or in a corner of the basin, at rest. Cells are squares."""
    problem = find_problem("dambreak2d")
    grid = Grid.box(shape, (BASIN, BASIN * shape[1] / shape[0]), boundary="wall")
    x, y = np.meshgrid(*((np.arange(n) + 0.5) / shape[0] for n in shape), indexing="ij")
    u0 = np.zeros((1, 3, *shape))
    u0[0, 0] = np.where((x < 0.5) & (y < 0.5) if corner else x < 0.5, DEEP, SHALLOW)
    return Query(u0, Setting(grid, problem.channels, {"g": np.array([9.81])}), np.array([time]))


def truth(corner: bool, cells: int, time: float, finer: int) -> Array:
    """The depth (cell, cell) of PyClaw on a finer grid. It jumps at edges of cells at the start, so that nothing has to
    be reconstructed. A straight dam is the same in every column, and a few of them are enough."""

    def make() -> Array:
        columns = cells if corner else 4
        fine = dam(corner, (cells * finer, columns * finer), time)
        depth = PyClaw().solver(1, fine)()[0, 0]
        mean = depth.reshape(cells, finer, columns, finer).mean(axis=(1, 3))
        return np.broadcast_to(mean[:, :1], (cells, cells)) if not corner else mean

    return kept_array("dam", [corner, cells, time, finer, "PyClaw MC"], make)


def measure_dam(
    rounds: int = 1, cells: int = CELLS, time: float = TIME, finer: int = 2, options: Sequence[str] = ()
) -> list[Ratio]:
    """One answer each to two dam breaks. PyClaw's seconds are those at the error of HyCOP, or on all cells if it errs
    more there. The truth is PyClaw's own on a finer grid, which favours PyClaw."""
    imported()
    walls = swap(trained("swe2d", options).model, boundary="wall").model
    walls.answer(dam(False, (32, 32), 0.5))  # compiles
    found = []
    for name, corner in (("straight", False), ("corner", True)):
        right = truth(corner, cells, time, finer)
        depths, seconds = _answered(walls, corner, cells, time, rounds)
        ours, half, full = (_error(depths[who], right) for who in depths)
        weight = min(1.0, max(0.0, log(half / ours) / log(half / full)))
        coarse, fine = (seconds[who] for who in list(depths)[1:])
        seconds["PyClaw"] = between(coarse, fine, weight)
        where = f"{name} dam of {DEEP:g}:{SHALLOW:g} on {cells}² with walls, {time:g} s"
        told, what = f"CPU s of an answer / {MOST_SECONDS:g}, {where}", f"error of the depth / {MOST_ERROR:g}, {where}"
        detail = f"PyClaw errs by {half:.2g} on half the cells along each axis and by {full:.2g} on all of them"
        row = partial(compared, "dam-break", f"PyClaw / HyCOP, {where}", seconds, "HyCOP", "PyClaw", detail=detail)
        theirs = half ** (1 - weight) * full**weight
        found += [
            replace(limited("dam-break", told, seconds["HyCOP"], MOST_SECONDS), error=ours),
            Ratio("dam-break", what, ours / MOST_ERROR, 1.0, False, error=ours),
            row(1.0, errors=(ours, theirs)),
        ]
    return found


def _answered(
    walls: HyCOP, corner: bool, cells: int, time: float, rounds: int
) -> tuple[dict[str, Array], dict[str, Seconds]]:
    """Depths and seconds of HyCOP, and of PyClaw on half the cells along each axis and on all of them."""
    depths: dict[str, Array] = {}
    query = dam(corner, (cells, cells), time)

    def ours() -> None:
        depths["HyCOP"] = walls.answer(query).states[0, 0]

    def theirs(who: str, times: int, solve: Callable[[], Array]) -> None:
        depths[who] = np.repeat(np.repeat(solve()[0, 0], times, axis=0), times, axis=1)

    calls: dict[str, Callable[[], object]] = {"HyCOP": ours}
    for times in (2, 1):
        who = f"PyClaw on {cells // times}²"
        fewer = dam(corner, (cells // times, cells // times), time)
        calls[who] = partial(theirs, who, times, PyClaw().solver(1, fewer))
    seconds = interleaved(calls, rounds, warm=True)
    return depths, seconds


def _error(depth: Array, right: Array) -> float:
    return float(np.linalg.norm(depth - right) / np.linalg.norm(right))
