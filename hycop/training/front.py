"""Accuracy against cost: the amounts of work, and the grids, for which models are trained."""

from __future__ import annotations

import numpy as np

from hycop.errors import InvalidInputError
from hycop.policy import SlotPolicy
from hycop.training.config import TrainingConfig
from hycop.training.loop import Task
from hycop.training.objective import SLACK, mean_work
from hycop.training.portfolio import patterns


def front_levels(task: Task, config: TrainingConfig, points: int) -> list[TrainingConfig]:
    """The settings of at most ``points`` models: amounts of work (``max_work``) that are spread evenly on a logarithmic
    scale over those of the classical patterns, on the query's grid and on each finer one up to ``refinement``."""
    if not isinstance(points, int) or points < 1:
        raise InvalidInputError(f"points is {points!r:.40}: a whole number of at least 1 is needed")
    most = np.finfo(float).max if config.max_work is None else config.max_work * (1 + SLACK)
    grids = [_on_grid(config, refinement) for refinement in range(1, config.refinement + 1)]
    found = {cost: grid for grid in grids for cost in _costs(task, grid) if cost <= most}
    costs = np.array(sorted(found))
    if costs.size > points:
        wanted = np.geomspace(costs[0], costs[-1], points)
        costs = costs[sorted({int(np.abs(np.log(costs / each)).argmin()) for each in wanted})]
    return [found[cost].model_copy(update={"max_work": float(cost)}) for cost in costs]


def _on_grid(config: TrainingConfig, refinement: int) -> TrainingConfig:
    learning = config.learning_refinement
    coarser = None if learning is None else min(learning, refinement)
    return config.model_copy(update={"refinement": refinement, "learning_refinement": coarser})


def _costs(task: Task, config: TrainingConfig) -> set[float]:
    """The mean work of every classical pattern."""
    query = task.train.query
    inputs, allotment = task.inputs(query), task.allotment(config)
    costs = set()
    for pattern in patterns(task.dictionary, task.equation.processes, query, config.max_steps):
        policy = SlotPolicy((pattern,), allotment, len(task.features.names))
        costs.add(mean_work(policy, np.zeros(policy.size), task.dictionary, query, inputs, config))
    return costs
