"""What accuracy costs: the amounts of work for which programs are worth learning."""

from __future__ import annotations

import numpy as np

from hycop.execution import measure
from hycop.policy import Allotment, SlotPolicy
from hycop.training.config import TrainingConfig
from hycop.training.loop import Task, View
from hycop.training.portfolio import patterns

FEW = 8
"""Queries on which the work of a pattern is measured."""


def work_levels(task: Task, config: TrainingConfig, points: int) -> list[float]:
    """At most ``points`` amounts of work, spread evenly on a logarithmic scale over those of the classical patterns."""
    query = task.train.query.take(slice(0, FEW))
    view = View.of(task.features, task.gain_features, task.train.query)
    allotment = Allotment.of(task.dictionary, task.processes, config.budget, len(task.gain_features.names))
    costs = set()
    for pattern in patterns(task.dictionary, task.processes, task.train.query, config.max_steps):
        policy = SlotPolicy((pattern,), allotment, len(task.features.names))
        programs = policy.programs(np.zeros((1, policy.size)), view(query)).repeated(config.repeats)
        done = measure(programs, task.dictionary, query, refinement=config.refinement, strict=False)
        costs.add(float(done.work.mean()))
    affordable = np.array(sorted(cost for cost in costs if config.max_work is None or cost <= config.max_work))
    if affordable.size <= points:
        return [float(cost) for cost in affordable]
    wanted = np.geomspace(affordable[0], affordable[-1], points)
    nearest = {int(np.abs(np.log(affordable / each)).argmin()) for each in wanted}
    return [float(affordable[index]) for index in sorted(nearest)]
