"""Error budgets are sharp: in forty random models with one planted fault, the guilty term has at least 80 % of the
error in at least 95 % of the queries, and the verdict names it. The short form is in ``tests/test_diagnosis.py``."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import hycop
from hycop.diagnosis.budget import TERMS, budget
from hycop.diagnosis.case import Case
from hycop.diagnosis.trusted import Trusted
from hycop.diagnosis.verdict import verdict
from hycop.dictionary import Dictionary
from hycop.problems import Problem
from tests.planted import classical_model, without

NAMES = ("adr2d", "burgers1d", "swe1d")
FAULTS = ("missing process", "three steps", "poor dictionary", "poor network")
QUERIES = 20

POOR = {"adr2d": ("upwind", "advection"), "burgers1d": ("upwind", "advection"), "swe1d": ("muscl", "gravity")}
"""The dictionary of lowest order, and the primitive that is its weak point."""

LEARNED = {"adr2d": ("advection", "diffusion"), "burgers1d": ("advection",), "swe1d": ("gravity", "momentum")}
"""Processes of the network."""


@cache
def poor_network(name: str) -> hycop.Primitive:
    options = {"rounds": 1, "samples": 16, "held_out": 4, "width": 4, "modes": 4, "layers": 2}
    return hycop.pretrain(hycop.problem(name), LEARNED[name], preset="quick", seed=3, verbose=False, **options)


def planted(problem: Problem, fault: str, rng: np.random.Generator) -> tuple[hycop.HyCOP, str, str, str | None]:
    """A model with a fault; the guilty term, the verdict and the primitive to blame."""
    grid = 1 if problem.name == "adr2d" else 4
    if fault == "missing process":
        return without(problem, str(rng.choice(problem.processes)), min(grid, 2)), "mismatch", "enrich", None
    if fault == "three steps":
        outer = rng.choice(problem.processes)
        return classical_model(problem, f"strang(outer={outer})", refinement=grid), "splitting", "policy", None
    if fault == "poor dictionary":
        kind, weak = POOR[problem.name]
        scheme = f"saba4 x{rng.integers(5, 8)}"  # fine, so that the dictionary is the only fault in every query
        return classical_model(problem, scheme, problem.dictionaries[kind]), "primitive", "primitive", weak
    rest = {name: problem.dictionary[name] for name in problem.processes if name not in LEARNED[problem.name]}
    parts = Dictionary({**rest, "network": poor_network(problem.name)})
    return classical_model(problem, "strang x2" if rest else "lie", parts), "primitive", "primitive", "network"


@pytest.mark.validate
@pytest.mark.parametrize("index", range(40))
def test_the_guilty_term_of_a_random_case_is_found(index: int) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(index)
    # every problem with every fault comes up, in turn
    problem, fault = hycop.problem(NAMES[index % 3]), FAULTS[index % 4]
    model, term, kind, blamed = planted(problem, fault, rng)
    data = problem.sample(QUERIES, str(rng.choice(["id", "train"])), int(rng.integers(2**31)), estimated=4)
    case = Case.of_data(model, data)
    found = budget(case, Trusted.of(case.model, case.query.grid, data.problem))
    judged = verdict(found)
    assert (judged.kind, judged.blamed) == (kind, blamed), str(judged)
    assert np.mean(found.sizes[term] >= 0.8 * found.sizes["total"]) >= 0.95, found.means()
    assert (found.sizes["total"] <= sum(found.sizes[each] for each in TERMS) * (1 + 1e-12)).all()
