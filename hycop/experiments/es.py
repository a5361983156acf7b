"""Table ``es``: how the source paper's evolution strategy depends on its population M and its noise σ.

``PositionPolicy`` and ``OpenES`` from a random start (preset ``paper``) for 200 generations, before the gate. M counts
members: M = 500 are 250 antithetic pairs. Beside each: the best classical scheme at equal work and the limit of the
dictionary.

- ``swe2d``, as in the paper, whose numbers stand beside ours in distribution (it does not say of which split they are).
  Fifteen such runs on 32² with WENO5 are too slow for a laptop, so policies learn on 16² with second-order fluxes, from
  the limit of the dictionary there, and from 256 queries, as many as decide which generation is kept; they are judged
  on 32² with the same fluxes, a discretisation as coarse as the paper's errors. A policy does not depend on the grid.
  A run then takes from half a minute (M = 100) to two minutes (M = 500) of one core.
- ``adr2d``, learned and judged on 32² with the preset as it stands.

With budgets per process any program solves the right equation, so no cell can be as wrong as the paper's worst. What
is left to σ and M is the composition, ``splitting_rel_l2``; on ``swe2d`` the error of the grid hides most of it in
``rel_l2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hycop.evaluation import SPLITTING, Row
from hycop.experiments.judging import Part, assembled, judged
from hycop.experiments.table import Bench, Table
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

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "swe2d": {
        "dictionary": "muscl",
        "shape": (16, 16),
        "refinement": 1,
        "learning_refinement": None,
        "max_steps": 18,
        "repeats": 1,
        "samples": 256,
    },
    "adr2d": {},
}


def variant(population: int, sigma: float) -> str:
    return f"M={population},sigma={sigma:g}"


def _cell(name: str, population: int, sigma: float) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned(name, seed, "paper", population=population, sigma=sigma, **SETTINGS[name])
        known = {"id": PAPER[population, sigma]} if name == "swe2d" else None
        return judged(bench, name, done, seed, variant(population, sigma), gated=False, paper=known)

    return f"{name} {variant(population, sigma)}", rows


def parts() -> tuple[Part, ...]:
    """Each cell is a part of its own, so that an interrupted table goes on after the last cell."""
    return tuple(_cell(name, population, sigma) for name in SETTINGS for population in POPULATIONS for sigma in SIGMAS)


def build(bench: Bench) -> list[Row]:
    return assembled(bench, "es", parts())


def _map(rows: Sequence[Row], name: str, metric: str) -> Array:
    """The learned policies' values in distribution over population and σ."""
    found = {
        row.variant: row.value
        for row in rows
        if (row.problem, row.split, row.method, row.metric) == (name, "id", "HyCOP", metric)
    }
    return np.array([[found[variant(population, sigma)] for sigma in SIGMAS] for population in POPULATIONS])


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """Ours, the error of the composition alone, and for shallow water the paper's."""
    out = {}
    for name in SETTINGS:
        maps = {f"{name}: error": _map(rows, name, "rel_l2"), f"{name}: composition": _map(rows, name, SPLITTING)}
        if name == "swe2d":
            published = [[PAPER[population, sigma] for sigma in SIGMAS] for population in POPULATIONS]
            maps = {"source paper: error": np.array(published), **maps}
        out[f"es_{name}"] = heat_figure(maps, ("M", list(map(str, POPULATIONS))), ("σ", [f"{s:g}" for s in SIGMAS]))
    return out


TABLE = Table("es", "population and noise of the paper's ES (swe2d, adr2d)", 50, build, figures, "paper")
