"""Shallow water against PyClaw and SharpClaw at equal error: queries of ``swe2d``, and dams that break in a walled
basin of 320², by the model of ``swe2d`` with walls swapped in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.equal_error import fastest, mean_error
from benchmarks.measure import Ratio, compared, interleaved, limited
from benchmarks.models import data, kept_array, trained
from benchmarks.pyclaw_solvers import PyClaw, imported
from hycop.grid import Array
from hycop.problems import find_problem
from hycop.query import Query, Setting
from hycop.transfer import swap

QUICK = ("--set", "dictionary=muscl", "--set", "refinement=1")
"""Options of the model for the larger error."""

POINTS = {"3.5e-4": ((), 6.0), "3e-3": (QUICK, 3.0)}
"""Operating points of ``swe2d``: options of training, and the goal."""

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
        chosen = fastest([PyClaw(levels=levels), PyClaw(True, levels[:5])], judged, error, judged.query, 1)
        calls = {"HyCOP": lambda: model.answer(judged.query).states, **chosen.calls(judged.query)}  # noqa: B023
        seconds = interleaved(calls, rounds)
        seconds["Clawpack"] = chosen.at_equal_error(seconds)
        what = f"swe2d at {point}, {samples} queries: the faster of PyClaw and SharpClaw / HyCOP"
        errors = error, chosen.error
        row = compared("swe2d-answer", what, seconds, "HyCOP", "Clawpack", goal, queries=samples, errors=errors)
        found.append(replace(row, detail=chosen.told(), opponent=chosen.family.name))
    return found


def dam(corner: bool, cells: int = CELLS, time: float = TIME) -> Query:
    """Deep water behind a straight dam, or in a corner of the basin."""
    problem = find_problem("dambreak2d")
    grid = problem.grid((cells, cells))
    x, y = np.meshgrid(*[(np.arange(cells) + 0.5) / cells] * 2, indexing="ij")
    behind = (x < 0.5) & (y < 0.5) if corner else x < 0.5
    u0 = np.zeros((1, 3, cells, cells))
    u0[0, 0] = np.where(behind, DEEP, SHALLOW)
    return Query(u0, Setting(grid, problem.channels, {"g": np.array([9.81])}), np.array([time]))


def truth(corner: bool, cells: int, time: float, finer: int) -> Array:
    """PyClaw's solution on a finer grid. The depth jumps at edges of cells, so that no reconstruction is needed."""

    def make() -> Array:
        fine = dam(corner, cells * finer, time)
        solved = PyClaw().solver(1, fine)()
        return solved.reshape(1, 3, cells, finer, cells, finer).mean(axis=(3, 5))

    return kept_array("dam", [corner, cells, time, finer, "MC"], make)


def measure_dam(
    rounds: int = 1, cells: int = CELLS, time: float = TIME, finer: int = 2, options: Sequence[str] = ()
) -> list[Ratio]:
    """One answer each to two dam breaks. The truth is PyClaw's own on a finer grid, which favours PyClaw."""
    imported()
    walls = swap(trained("swe2d", options).model, boundary="wall").model
    found = []
    for name, corner in (("straight", False), ("corner", True)):
        query = dam(corner, cells, time)
        right = truth(corner, cells, time, finer)
        depth = _error_of_depth(walls.answer(query).states, right)
        calls = {"HyCOP": lambda: walls.answer(query).states, "PyClaw": PyClaw().solver(1, query)}  # noqa: B023
        theirs = _error_of_depth(calls["PyClaw"](), right)
        seconds = interleaved(calls, rounds)
        where = f"{name} dam of {DEEP:g}:{SHALLOW:g} on {cells}² with walls, {time:g} s"
        told = f"CPU s of an answer / {MOST_SECONDS:g}, {where}"
        took = limited("dam-break", told, seconds["HyCOP"], MOST_SECONDS)
        row = partial(compared, "dam-break", f"PyClaw on the same grid / HyCOP, {where}", seconds, "HyCOP", "PyClaw")
        what = f"error of the depth / {MOST_ERROR:g}, {where}"
        found += [
            replace(took, error=depth),
            Ratio("dam-break", what, depth / MOST_ERROR, 1.0, False, error=depth, their_error=theirs),
            row(1.0, errors=(depth, theirs)),
        ]
    return found


def _error_of_depth(states: Array, right: Array) -> float:
    return float(np.linalg.norm(states[0, 0] - right[0, 0]) / np.linalg.norm(right[0, 0]))
