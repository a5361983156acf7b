"""The job that least squares does: derivatives by durations instead of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import hycop
from hycop.evolution import LevenbergMarquardt, normal_equations
from hycop.features import FeatureMap
from hycop.policy import Allotment, Pattern, SlotPolicy
from hycop.training.loop import View
from hycop.training.objective import Objective, Residuals


@pytest.mark.parametrize("budget", ["consistent", "gain", "literal"])
@pytest.mark.parametrize("repeats", [1, 2])
def test_derivatives_by_durations_are_those_by_parameters(budget: str, repeats: int) -> None:
    chosen = hycop.problem("ad1d")
    parts = chosen.dictionaries["muscl"]
    data = chosen.sample(5, "train", seed=0)
    view = View.of(FeatureMap(chosen.features), FeatureMap(chosen.features[:1]), data.query)
    allotment = Allotment.of(parts, chosen.processes, budget, 1)  # type: ignore[arg-type]
    pattern = Pattern((0, 1, 0, 1, 0), (0.2, 0.5, 0.6, 0.5, 0.2))
    policy = SlotPolicy((pattern,), allotment, len(chosen.features))
    objective = Objective(policy, parts, data.query, data.truth, view(data.query), repeats=repeats)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, (data.samples, 1))
    optimizer = LevenbergMarquardt(difference=1e-6)
    state = optimizer.start(0.1 * rng.standard_normal(policy.size))
    job = Residuals(objective, optimizer, state, weights)
    assert job.blocks == 1 and job.runs == 6 < 1 + policy.size
    found = job(0, 1).reshape(1 + policy.size, -1)
    members = objective.outcomes(optimizer.ask(state))[0] - data.truth
    each = np.broadcast_to(weights[:, :, None], data.truth.shape).reshape(-1)
    expected = normal_equations(members.reshape(1 + policy.size, -1), each, optimizer.steps(state)).gram
    size = np.sqrt(np.diagonal(expected))
    assert np.abs(found - expected).max() <= 1e-4 * np.outer(size, size).max()
    assert size[1:].max() > 1e-3 * size[0]  # there is something to compare
