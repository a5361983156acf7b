"""Table ``own``: equations of users, each a text and ranges, judged by solvers that share nothing with HyCOP.

Gray–Scott on 32², Allen–Cahn with wind, nonlinear Schrödinger, and a predator and its prey with winds of their own. The
judges are py-pde (extrapolated from two grids) and split-step Fourier on an eight times finer grid. Models are trained
on refined programs of their own primitives, which are no independent judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hycop.evaluation import Row
from hycop.experiments.bench import Bench
from hycop.experiments.judging import compared, rival, training_seconds
from hycop.experiments.table import Part, Table
from hycop.formula import equation
from hycop.grid import Array
from hycop.problems import register
from hycop.problems.draw import Draw
from hycop.problems.initial_conditions import Box, Bumps, Wave
from hycop.references.py_pde import Differences, py_pde_truth
from hycop.references.split_step import split_step

Named = Mapping[str, Array]
SETTINGS = {"samples": 64, "max_steps": 7, "tries": 2, "patterns": 1, "rounds": 2}
"""Few samples and patterns: each of these problems has two or three processes."""

ESTIMATED = 2
"""Samples of the first seed that the judge solves again on twice its grid, to estimate its own error."""


def _gap(draw: Draw, box: Box) -> Array:
    return 1.0 - 0.7 * Bumps((0.08, 0.15))(draw, box)


def _gray_scott(u: Named, k: Named, on: Differences) -> Named:
    eaten = u["u"] * u["v"] ** 2
    return {
        "u": k["Du"] * on.laplace(u["u"]) - eaten + k["F"] * (1.0 - u["u"]),
        "v": k["Dv"] * on.laplace(u["v"]) + eaten - (k["F"] + k["k"]) * u["v"],
    }


def _allen_cahn(u: Named, k: Named, on: Differences) -> Named:
    return {"u": -k["c"] * on.slope(u["u"], 0) + k["D"] * on.laplace(u["u"]) + u["u"] - u["u"] ** 3}


def _predators(u: Named, k: Named, on: Differences) -> Named:
    eaten = k["a"] * u["u"] * u["v"] / (1.0 + k["h"] * u["u"])
    prey = -k["c"] * on.slope(u["u"], 0) + k["D"] * on.laplace(u["u"]) + u["u"] * (1.0 - u["u"]) - eaten
    return {"u": prey, "v": k["c"] * on.slope(u["v"], 0) + k["D"] * on.laplace(u["v"]) + eaten - k["m"] * u["v"]}


TEXTS: Mapping[str, str] = {
    "gray-scott": "u_t = Du*lap(u) - u*v^2 + F*(1-u); v_t = Dv*lap(v) + u*v^2 - (F+k)*v",
    "allen-cahn": "u_t = -c*u_x + D*u_xx + u - u^3",
    "schrodinger": "u_t = -v_xx/2 - g*(u^2+v^2)*v; v_t = u_xx/2 + g*(u^2+v^2)*u",
    "predator-prey": """u_t = -c*u_x + D*u_xx + u*(1-u) - a*u*v/(1+h*u)
                        v_t = c*v_x + D*v_xx + a*u*v/(1+h*u) - m*v""",
}
CASES: Mapping[str, Mapping[str, Any]] = {
    "gray-scott": {
        "ranges": {"Du": (1e-4, 3e-4), "Dv": (5e-5, 1.5e-4), "F": (0.02, 0.06), "k": (0.05, 0.065)},
        "ood": {"F": (0.06, 0.08)},
        "initial": {"u": _gap, "v": Bumps((0.08, 0.15))},
        "time": (2.0, 12.0),
        "at": 10.0,
    },
    "allen-cahn": {
        "ranges": {"c": (0.2, 0.6), "D": (1e-3, 4e-3)},
        "ood": {"D": (4e-3, 8e-3)},
        "initial": {"u": Wave(1, 2)},
        "time": (0.4, 1.6),
        "shape": (64,),
    },
    "schrodinger": {
        "ranges": {"g": (0.5, 1.5)},
        "ood": {"g": (1.5, 2.5)},
        "initial": {"u": Bumps((0.06, 0.12)), "v": Bumps((0.06, 0.12))},
        "time": (0.2, 0.8),
        "shape": (64,),
        "lengths": 10.0,
    },
    "predator-prey": {
        "ranges": {"c": (0.1, 0.4), "D": (1e-3, 4e-3), "a": (1.0, 2.0), "h": (0.5, 1.0), "m": (0.3, 0.6)},
        "ood": {"c": (0.4, 0.7)},
        "initial": {"u": Wave(1, 2), "v": Wave(1, 2)},
        "time": (0.5, 2.0),
        "shape": (64,),
    },
}
JUDGES: Mapping[str, tuple[Callable[..., Array], int]] = {
    "gray-scott": (py_pde_truth(_gray_scott, ("Du", "Dv")), 2),
    "allen-cahn": (py_pde_truth(_allen_cahn, ("D",)), 3),
    "schrodinger": (split_step, 8),
    "predator-prey": (py_pde_truth(_predators, ("D",)), 3),
}
"""The independent truth of each problem, and how many times finer its grid is."""


def _part(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        split = equation(TEXTS[name], name=name)
        problem = register(split.problem(**CASES[name], settings=SETTINGS))
        truth, refinement = JUDGES[name]
        judge = split.problem(**CASES[name], truth=truth, refinement=refinement)
        learned = bench.learned(problem.name, seed)
        held_out = bench.held_out(problem.name, seed, learned.model.model.record.config)
        found: list[Row] = []
        for where in ("id", "ood"):
            data = judge.sample(bench.samples, where, seed, estimated=0 if seed else ESTIMATED)
            against = rival(learned.model, held_out, data.query)
            found += compared(bench, learned, seed, data, metrics=("rel_l2",), against=against)
            found += [] if data.reference_error is None else [_judges_error(found[-1], data.reference_error)]
        return [*found, training_seconds(learned, found[0])]

    return rows


def _judges_error(like: Row, error: float) -> Row:
    """A row for the estimated error of the truth itself."""
    row = replace(like, method="truth", metric="error of the truth", value=error, samples=ESTIMATED)
    return replace(row, work=0.0, seconds_per_sample=0.0, limit=0.0)


TABLE = Table(
    "own",
    "equations of users, as text and ranges",
    {name: _part(name) for name in TEXTS},
    samples=16,
    preset="quick",
)
