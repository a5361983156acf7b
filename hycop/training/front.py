"""Accuracy against cost: the amounts of work for which models are trained."""

from __future__ import annotations

import numpy as np

from hycop.errors import InvalidInputError
from hycop.policy import SlotPolicy
from hycop.training.config import TrainingConfig
from hycop.training.loop import Task
from hycop.training.objective import SLACK, mean_work
from hycop.training.portfolio import patterns


def work_levels(task: Task, config: TrainingConfig, points: int) -> list[float]:
    """At most ``points`` amounts of work, spread evenly on a logarithmic scale over those of the classical patterns."""
    if not isinstance(points, int) or points < 1:
        raise InvalidInputError(f"points is {points!r:.40}: a whole number of at least 1 is needed")
    query = task.train.query
    inputs, allotment = task.inputs(query), task.allotment(config)
    costs = set()
    for pattern in patterns(task.dictionary, task.equation.processes, query, config.max_steps):
        policy = SlotPolicy((pattern,), allotment, len(task.features.names))
        costs.add(mean_work(policy, np.zeros(policy.size), task.dictionary, query, inputs, config))
    most = np.finfo(float).max if config.max_work is None else config.max_work * (1 + SLACK)
    affordable = np.array(sorted(cost for cost in costs if cost <= most))
    if affordable.size <= points:
        return [float(cost) for cost in affordable]
    wanted = np.geomspace(affordable[0], affordable[-1], points)
    nearest = {int(np.abs(np.log(affordable / each)).argmin()) for each in wanted}
    return [float(affordable[index]) for index in sorted(nearest)]
