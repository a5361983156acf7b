"""The search for the patterns from which least squares start."""

from __future__ import annotations

import numpy as np
import pytest

import hycop
from hycop.executors import LocalExecutor
from hycop.features import FeatureMap
from hycop.grid import Array
from hycop.policy import Allotment, Policy
from hycop.scope import View
from hycop.training import configured
from hycop.training.checkpoint import Journal
from hycop.training.objective import Objective
from hycop.training.portfolio import patterns
from hycop.training.progress import Meter
from hycop.training.recipe import Recipe


def recipe_of(samples: int) -> Recipe:
    """For shallow water on a coarse grid, with programs of up to 11 steps."""
    swe = hycop.problem("swe1d")
    data = swe.sample(samples, "train", shape=(16,), estimated=0)
    view = View.of(FeatureMap(swe.equation.features), FeatureMap(()), data.query)
    objective = Objective(swe.dictionary, data.query, data.truth, view(data.query))
    allotment = Allotment.of(swe.dictionary, swe.processes, "consistent", 0)
    config, journal = configured("quick", {"max_steps": 11}), Journal(None, "", False, False, 1)
    return Recipe(objective, allotment, swe.processes, config, 0, LocalExecutor(), journal, Meter(lambda entry: None))


def test_the_best_pattern_is_that_of_a_full_search_and_takes_fewer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    every, recipe, runs = recipe_of(48), recipe_of(48), []
    outcomes = Objective.outcomes

    def counted(objective: Objective, policy: Policy, thetas: Array) -> tuple[Array, Array]:
        runs.append(objective.query.batch)
        return outcomes(objective, policy, thetas)

    monkeypatch.setattr(Objective, "outcomes", counted)
    found = sorted(recipe._scored, key=lambda entry: entry[:3])
    taken = sum(runs)
    offered = patterns(every.objective.dictionary, every.processes, every.objective.query, 11)
    full = sorted((every._score(pattern, 48) for pattern in offered), key=lambda entry: entry[:3])
    assert found[0] == full[0]
    assert set(found) <= set(full)  # losses on all queries, to the bit
    assert taken < 0.5 * 48 * len(offered)


def test_states_are_those_of_outcomes() -> None:
    recipe = recipe_of(4)
    policy, theta = recipe._as_it_stands(recipe._ranked()[0])
    both = np.stack([theta, theta + 0.1])
    np.testing.assert_array_equal(recipe.objective.states(policy, both), recipe.objective.outcomes(policy, both)[0])
