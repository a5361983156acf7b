"""The job that least squares does: derivatives by durations instead of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import hycop
from hycop.dictionary import Dictionary
from hycop.evolution import LevenbergMarquardt, normal_equations
from hycop.features import FeatureMap
from hycop.grid import Array
from hycop.policy import Allotment, Pattern, SlotPolicy
from hycop.primitives import MusclAdvection
from hycop.query import Query, Setting
from hycop.scope import View
from hycop.training.objective import Objective, Residuals

MUSCL = hycop.problem("ad1d").dictionaries["muscl"]


def job_of(budget: str, substeps: int = 1, times: float = 1.0, parts: Dictionary = MUSCL) -> Residuals:
    """Least squares on five queries, the first of which asks for ``times`` its time."""
    chosen = hycop.problem("ad1d")
    data = chosen.sample(5, "train", seed=0)
    time = data.query.time * np.array([times, 1.0, 1.0, 1.0, 1.0])
    query = Query(data.query.u0, data.setting, time)
    view = View.of(FeatureMap(chosen.equation.features), FeatureMap(chosen.equation.features[:1]), query)
    allotment = Allotment.of(parts, chosen.processes, budget, 1)  # type: ignore[arg-type]
    pattern = Pattern((0, 1, 0, 1, 0), (0.2, 0.5, 0.6, 0.5, 0.2))
    policy = SlotPolicy((pattern,), allotment, len(chosen.equation.features))
    objective = Objective(parts, query, data.truth, view(query), substeps=substeps)
    rng = np.random.default_rng(0)
    optimizer = LevenbergMarquardt(difference=1e-6)
    state = optimizer.start(0.1 * rng.standard_normal(policy.size))
    return Residuals(objective, policy, optimizer, state, rng.uniform(0.5, 2.0, (data.samples, 1)))


@pytest.mark.parametrize("budget", ["consistent", "gain", "literal"])
@pytest.mark.parametrize(("substeps", "times"), [(1, 1.0), (2, 1.0), (1, 0.0)])
def test_derivatives_by_durations_are_those_by_parameters(budget: str, substeps: int, times: float) -> None:
    job = job_of(budget, substeps, times)
    objective, optimizer, state = job.objective, job.optimizer, job.state
    edge = 1 + job.policy.size
    assert job.blocks == 1 and job.runs == 6 < edge
    found = job(0, 1).reshape(edge, edge)
    members = objective.outcomes(job.policy, optimizer.ask(state))[0] - objective.truth
    each = np.broadcast_to(job.weights[:, :, None], objective.truth.shape).reshape(-1)
    expected = normal_equations(members.reshape(edge, -1), each, optimizer.steps(state)).gram
    size = np.sqrt(np.diagonal(expected))
    assert (np.abs(found - expected) <= 1e-3 * np.outer(size, size)).all()
    assert (size > 0).all()  # there is something to compare


@dataclass(frozen=True)
class Fragile(MusclAdvection):
    """Is lost if it is to last longer than it was once asked."""

    longest: float = 0.0

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        out = super().flow(u, duration, setting)
        return np.where((duration > self.longest).reshape(-1, 1, 1), np.nan, out)


def test_a_derivative_that_is_lost_costs_the_parameters_of_its_primitive_only() -> None:
    plain = job_of("consistent")
    programs = plain.policy.programs(plain.state.theta[None], plain.objective.inputs)
    longest = float(programs.durations[programs.ops == 0].max())
    job = job_of("consistent", parts=Dictionary({**MUSCL, "advection": Fragile(longest=longest)}))
    gram = job(0, 1).reshape(1 + job.policy.size, -1)
    usable = np.isfinite(gram[0])
    assert usable[0] and usable.any() and not usable.all()
    kept = plain(0, 1).reshape(gram.shape)[np.ix_(usable, usable)]
    np.testing.assert_allclose(gram[np.ix_(usable, usable)], kept, rtol=1e-12)
