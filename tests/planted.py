"""Models with a planted fault: a missing process, a coarse program, a poor dictionary, a poor network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import hycop
from hycop.dictionary import Dictionary
from hycop.features import FeatureMap, Observed
from hycop.model import Box, Model, Record
from hycop.pde import Equation
from hycop.policy import Allotment, Pattern, SlotPolicy, exact_covers
from hycop.problems import Problem
from hycop.scope import Scope, View
from hycop.training import Gate, TrainingConfig

COEFFICIENTS = {"advection": "c", "diffusion": "D", "reaction": "r", "viscosity": "nu", "gravity": "g", "momentum": ""}
"""First letters of the coefficients of a process; Burgers' advection has none."""


def classical_model(
    problem: Problem,
    scheme: str = "strang",
    dictionary: Dictionary | None = None,
    refinement: int = 1,
    equation: Equation | None = None,
) -> hycop.HyCOP:
    """A model whose gate leaves every query to a classical scheme."""
    parts, known = dictionary or problem.dictionary, equation or problem.equation
    asked = problem.queries(8, "train", 0)
    params = {name: asked.setting.params[name] for name in known.coefficients}
    query = replace(asked, setting=replace(asked.setting, params=params))
    nothing = FeatureMap(())
    view = View.of(FeatureMap(tuple(known.features or ())), nothing, Observed(query, known))
    ones = tuple(1.0 for _ in parts)
    pattern = Pattern(tuple(range(len(parts))), ones, "Lie")
    cover = exact_covers(parts, known.processes)[0]
    policy = SlotPolicy((pattern,), Allotment.of(parts, known.processes, "consistent"), len(view.features.names))
    gate = Gate(False, scheme, 0.0, 0.0, 0.0, 0.0, False, 1.0, 1.0, 0, classical_when_far=False, cover=cover)
    return hycop.HyCOP.of(
        Model(
            known,
            parts,
            policy,
            np.zeros(policy.size),
            Scope.of(known, view, [query]),
            gate,
            Box(problem.lengths, problem.boundary),
            Record(TrainingConfig(), 0, "0" * 64, {}),
            refinement,
        )
    )


def smaller_equation(problem: Problem, kept: Sequence[str]) -> Equation:
    """The equation of a problem with only some of its processes and their coefficients."""
    letters = [COEFFICIENTS[process] for process in kept]
    known = problem.equation.coefficients
    coefficients = {
        name: each for name, each in known.items() if any(letter and name.startswith(letter) for letter in letters)
    }
    return replace(
        problem.equation,
        name=f"{problem.name} of {' and '.join(kept)}",
        processes=tuple(kept),
        coefficients=coefficients,
        features=("variation",),
        gain_features=(),
    )


def without(problem: Problem, process: str, refinement: int = 1) -> hycop.HyCOP:
    """A model that lacks a process; what is left is split finely."""
    kept = [each for each in problem.processes if each != process]
    parts = Dictionary({name: problem.dictionary[name] for name in kept})
    return classical_model(problem, "strang x8", parts, refinement, smaller_equation(problem, kept))
