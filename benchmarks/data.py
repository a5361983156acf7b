"""Queries like those of the 2D advection–diffusion–reaction problem, made without its reference solver."""

from __future__ import annotations

import numpy as np

from hycop.dictionary import Dictionary
from hycop.features import FeatureMap
from hycop.grid import Grid
from hycop.model import Box, Model, Record
from hycop.policy import Allotment, Pattern, SlotPolicy
from hycop.primitives import ExactLogistic, SpectralAdvection, SpectralDiffusion
from hycop.problems import find_problem
from hycop.query import Channel, Query, Setting
from hycop.scope import Scope, View
from hycop.surrogate import HyCOP
from hycop.training import Gate, configured

SPECTRAL = Dictionary({"advection": SpectralAdvection(), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()})


def adr_query(batch: int, cells: int, axes: int = 2, seed: int = 0) -> Query:
    """Smooth random states in (0, 1) with their own coefficients each, asked at T = 0.2."""
    rng = np.random.default_rng(seed)
    grid = Grid.box((cells,) * axes, batch=batch)
    u = np.full((batch, *grid.shape), 0.5)
    for mode in range(1, 4):
        phase = rng.uniform(0, 2 * np.pi, (batch,) + (1,) * axes)
        u += 0.15 * np.sin(2 * np.pi * mode * sum(grid.centres()) + phase)
    ranges = {"c": (-1.0, 1.0), "D": (0.001, 0.01)}
    params = {letter + axis: rng.uniform(*bounds, batch) for letter, bounds in ranges.items() for axis in "xyz"[:axes]}
    params["r"] = rng.uniform(0.5, 2.0, batch)
    return Query(u[:, None], Setting(grid, (Channel("u"),), params), np.full(batch, 0.2))


def adr_model(steps: Pattern, seed: int = 0) -> HyCOP:
    """A model of ``adr2d`` as training makes it."""
    return untrained("adr2d", SPECTRAL, steps, seed=seed)


def untrained(name: str, dictionary: Dictionary, steps: Pattern, refinement: int = 1, seed: int = 0) -> HyCOP:
    """A model of a problem as training makes it, but with parameters drawn at random: what an answer takes depends on
    its steps, not on who wrote them."""
    problem = find_problem(name)
    equation, query = problem.equation, problem.queries(64, "train", seed)
    view = View.of(FeatureMap(equation.features or ()), FeatureMap(()), query)
    policy = SlotPolicy((steps,), Allotment.of(dictionary, equation.processes, "consistent"), len(view.features.names))
    return HyCOP.of(
        Model(
            equation=equation,
            dictionary=dictionary,
            policy=policy,
            theta=0.1 * np.random.default_rng(seed).standard_normal(policy.size),
            scope=Scope.of(equation, view, [query]),
            gate=Gate(True, "ABABA", 0.1, 0.2, 0.1, 0.2, False, 1.0, 1.0, 200),
            box=Box(tuple(query.grid.lengths[0].tolist()), query.grid.boundary),
            record=Record(configured("quick"), seed, "", {}),
            refinement=refinement,
        )
    )
