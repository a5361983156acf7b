"""Table ``es``: how the source paper's evolution strategy depends on its population M and its noise σ.

``PositionPolicy`` and ``OpenES`` from a random start (preset ``paper``) for 200 generations, before the gate. M counts
members: M = 500 are 250 antithetic pairs. Beside each: the best classical scheme at equal work and the limit of the
dictionary.

The problem is ``swe2d``, as in the paper, whose numbers stand beside ours in distribution (it does not say of which
split they are). Fifteen such runs on 32² with WENO5 are too slow for a laptop, so policies learn on 16² with
second-order fluxes, from the limit of the dictionary there, and from 256 queries, as many as decide which generation is
kept; they are judged on 32² with the same fluxes, a discretisation as coarse as the paper's errors. A policy does not
depend on the grid.

With budgets per process any program solves the right equation, so no cell can be as wrong as the paper's worst. What
is left to σ and M is the composition, ``splitting_rel_l2``; in ``rel_l2`` the error of the grid hides most of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hycop.evaluation import SPLITTING, Row, Variant
from hycop.experiments.bench import Bench
from hycop.experiments.judging import judged
from hycop.experiments.table import Part, Table
from hycop.grid import Array
from hycop.plots import Figure, heat_figure

POPULATIONS = (100, 250, 500)
SIGMAS = (0.005, 0.01, 0.02, 0.05, 0.1)
PAPER: Mapping[tuple[int, float], float] = {
    (population, sigma): value
    for population, values in {
        100: (0.274, 0.065, 0.035, 0.308, 0.488),
        250: (0.125, 0.102, 0.031, 0.155, 0.206),
        500: (0.052, 0.026, 0.028, 0.392, 0.612),
    }.items()
    for sigma, value in zip(SIGMAS, values, strict=True)
}
"""Relative L2 error on 2D shallow water."""

NAME = "swe2d"
SETTINGS: Mapping[str, Any] = {
    "dictionary": "muscl",
    "shape": (16, 16),
    "refinement": 1,
    "learning_refinement": None,
    "max_steps": 18,
    "substeps": 1,
    "samples": 256,
}


def variant(population: int, sigma: float) -> Variant:
    return Variant.of({"M": population, "sigma": sigma}, separator=",")


def _cell(population: int, sigma: float) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned(NAME, seed, "paper", population=population, sigma=sigma, **SETTINGS)
        known = {"id": PAPER[population, sigma]}
        return judged(bench, NAME, done, seed, variant(population, sigma), gated=False, paper=known)

    return rows


def parts() -> Mapping[str, Part]:
    """Each cell is a part of its own, so that an interrupted table goes on after the last cell."""
    cells = [(population, sigma) for population in POPULATIONS for sigma in SIGMAS]
    return {f"{NAME} {variant(*cell)}": _cell(*cell) for cell in cells}


def _map(rows: Sequence[Row], metric: str) -> Array:
    """The learned policies' values in distribution over population and σ."""
    found = {row.variant: row.value for row in rows if (row.split, row.method, row.metric) == ("id", "HyCOP", metric)}
    return np.array([[found[variant(population, sigma)] for sigma in SIGMAS] for population in POPULATIONS])


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """The paper's errors, ours, and those of the composition alone."""
    published = [[PAPER[population, sigma] for sigma in SIGMAS] for population in POPULATIONS]
    maps = {
        "source paper: error": np.array(published),
        "error": _map(rows, "rel_l2"),
        "composition": _map(rows, SPLITTING),
    }
    return {"es": heat_figure(maps, ("M", list(map(str, POPULATIONS))), ("σ", [f"{s:g}" for s in SIGMAS]))}


TABLE = Table("es", "population and noise of the paper's ES (swe2d)", parts(), figures, samples=50, preset="paper")
