"""Training keeps to the work that it is allowed."""

from __future__ import annotations

import pytest

import hycop
from hycop.errors import IncompatibleError
from hycop.execution import measure
from hycop.features import FeatureMap
from hycop.schemes import splitting
from hycop.training import Task, configured, train
from hycop.training.front import front_levels
from hycop.training.loop import Trained
from hycop.training.objective import COSTED

PROBLEM = hycop.problem("ad1d")
SMALL = {"samples": 24, "tries": 2, "patterns": 1, "rounds": 2, "iterations": 3, "budget": "gain", "max_steps": 5}


@pytest.fixture(scope="module")
def muscl() -> Task:
    """The work of its advection depends on the query: speed, time and cells decide how many steps it takes inside."""
    return Task(
        PROBLEM.equation,
        PROBLEM.dictionaries["muscl"],
        PROBLEM.sample(40, "train", 2, estimated=0),
        PROBLEM.sample(40, "train", 3, estimated=0),
        FeatureMap(PROBLEM.equation.features),
        FeatureMap(PROBLEM.equation.gain_features),
    )


def _work(task: Task, done: Trained, refinement: int = 1) -> float:
    """Of the learned programs on the queries that ``max_work`` is about."""
    query = task.train.query.take(slice(0, COSTED))
    programs = done.policy.programs(done.theta[None], task.inputs(query))
    return float(measure(programs, task.dictionary, query, refinement=refinement).work.mean())


@pytest.mark.parametrize("grids", [{}, {"refinement": 2, "learning_refinement": 1}], ids=["one grid", "two grids"])
def test_every_level_of_a_front_can_be_learned_and_is_kept_to(muscl: Task, grids: dict[str, object]) -> None:
    config = configured("quick", {**SMALL, "tries": 1, "rounds": 1, "iterations": 1, "budget": "consistent", **grids})
    levels = front_levels(muscl, config, 3)
    assert len(levels) == 3
    assert levels[0].refinement == 1 and levels[-1].refinement == config.refinement
    for level in levels[:2]:
        assert level.max_work is not None
        assert _work(muscl, train(muscl, level), level.refinement) <= level.max_work * (1 + 1e-9)


@pytest.mark.parametrize("optimizer", ["openes", "cma"])
def test_evolution_strategies_keep_to_the_allowed_work(muscl: Task, optimizer: str) -> None:
    """From a random start whose programs all take more."""
    settings = {"optimizer": optimizer, "population": 40, "generations": 30, "sigma": 0.05, "samples": 64}
    few = muscl.train.query.take(slice(0, COSTED))
    lie = splitting("lie").programs(few, muscl.dictionary)
    most = 1.05 * float(measure(lie, muscl.dictionary, few).work.mean())
    done = train(muscl, configured("paper", {**settings, "max_work": most}))
    assert _work(muscl, done) <= most
    with pytest.raises(IncompatibleError, match=r"max_work=[^\n]*generations[^\n]*$"):
        train(muscl, configured("paper", {**settings, "sigma": 1e-6, "generations": 1, "max_work": most}))
