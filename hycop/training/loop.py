"""The loop: queries, features, learning, gate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError
from hycop.evaluation import Opponents, limit
from hycop.execution import measure
from hycop.executors import Executor, LocalExecutor
from hycop.features import FeatureMap, Observed
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.pde import Equation
from hycop.policy import Allotment, Inputs, Policy, exact_covers
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.schemes import Classical
from hycop.scope import View, barred_primitives
from hycop.training.checkpoint import Journal, array_hash, fingerprint, stoppable
from hycop.training.config import TrainingConfig
from hycop.training.gate import Gate
from hycop.training.gate import gate as decided
from hycop.training.objective import Objective, infinite_if_lost
from hycop.training.progress import Meter, Report
from hycop.training.recipe import Recipe, Start
from hycop.training.unsplit import taking_over, with_unsplit
from hycop.version import __version__

CONTINUED, CONTINUED_SUBSTEPS = 24, 8
"""Number of queries whose programs are run a second time, and substeps of the limit's scheme that judges this."""


@dataclass(frozen=True, eq=False)
class Task:
    """A task of training: an equation, a dictionary, queries with truth to learn from (``train``) and for the gate
    (``held_out``), and the features that the policy sees."""

    equation: Equation
    dictionary: Dictionary
    train: Dataset
    held_out: Dataset
    features: FeatureMap
    gain_features: FeatureMap

    @cached_property
    def query(self) -> Query:
        """The training queries in double precision: single precision does not resolve the finite differences of least
        squares."""
        given = self.train.query
        return Query(given.u0.astype(np.float64), given.setting, given.time)

    @cached_property
    def view(self) -> View:
        """What the policy sees, over the ranges of the training queries."""
        return View.of(self.features, self.gain_features, Observed(self.query, self.equation))

    def inputs(self, query: Query) -> Inputs:
        """What a policy sees of queries."""
        values = self.view.values(Observed(query, self.equation))
        return self.view.inputs(values, query.time, barred_primitives(self.dictionary, query))

    def allotment(self, config: TrainingConfig) -> Allotment:
        gains = len(self.gain_features.names)
        return Allotment.of(self.dictionary, self.equation.processes, config.budget, gains)

    @cached_property
    def covers(self) -> tuple[tuple[str, ...], ...]:
        """Sets of primitives that advance each process once; the first is that of the dictionary's limit."""
        return exact_covers(self.dictionary, self.equation.processes)


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a run: the policy as data, its theta, the gate's decision, and the dictionary and refinement with
    which the model answers."""

    policy: Policy
    theta: Array
    gate: Gate
    dictionary: Dictionary
    refinement: int
    loss: float
    data_hash: str
    static_theta: Array | None


def train(
    task: Task,
    config: TrainingConfig,
    seed: int = 0,
    *,
    folder: Path | None = None,
    resume: bool = False,
    force: bool = False,
    executor: Executor | None = None,
    report: Report = lambda entry: None,
    start: Start | None = None,
) -> Trained:
    """Learns a policy for the task, from scratch or from a policy and theta to ``start`` with. With a folder (claimed
    by the caller) every step is checkpointed there, and a killed run can be resumed to the same bits."""
    if start is not None:
        _check_start(task, *start)
    query = task.query
    refinement = config.learning_refinement or config.refinement
    target = task.train.truth
    if config.target == "limit":
        target = limit(task.dictionary, query, target, refinement=refinement, cover=task.covers[0]).states
    objective = Objective(
        task.dictionary,
        query,
        target,
        task.inputs(query),
        config.work_weight,
        _unit_work(query),
        refinement,
        config.metric,
        config.substeps,
    )
    processes = task.equation.processes
    with executor or LocalExecutor() as crew:
        journal = Journal(folder, _identity(task, config, seed, start), resume, force, config.checkpoint_every)
        with stoppable(journal):
            recipe = Recipe(
                objective, task.allotment(config), processes, config, seed, crew, journal, Meter(report), start
            )
            policy, theta = recipe.learn()
            static = recipe.static(policy)
            journal.finish()
    loss = float(infinite_if_lost(objective.losses(policy, theta[None])).mean())
    gate = _judged(task, config, policy, theta)
    answering = taking_over(gate, task.dictionary, task.equation) if config.unsplit else None
    gate, dictionary, refinement = answering or (gate, task.dictionary, config.refinement)
    return Trained(policy, theta, gate, dictionary, refinement, loss, _data_hash(task), static)


def _check_start(task: Task, policy: Policy, theta: Array) -> None:
    """Refuses to start from a policy that was made for another dictionary or other features."""
    names, own = policy.allotment.names, task.dictionary.names
    if names != own:
        raise IncompatibleError(
            f"the policy to start from composes {', '.join(names)}, the dictionary has {', '.join(own)}: adapt it with "
            "policy.adding or policy.without"
        )
    known = len(task.features.names)
    if policy.features > known or theta.size != policy.size:
        raise IncompatibleError(
            f"the policy to start from has {theta.size} parameters and sees {policy.features} features; here there are "
            f"{known} features"
        )


def _unit_work(query: Query) -> float:
    """Work is counted in states: one unit updates every channel and cell once."""
    return float(len(query.setting.channels) * query.grid.cells)


def _identity(task: Task, config: TrainingConfig, seed: int, start: Start | None) -> str:
    """Hash of everything that must not change between a run and its resumption."""
    seen = (task.features.names, task.gain_features.names)
    begin = () if start is None else (repr(start[0]), array_hash(start[1]))
    version = __version__.split(".")[0]
    return fingerprint(config.model_dump(), seed, _data_hash(task), seen, task.dictionary.fingerprint(), version, begin)


def _data_hash(task: Task) -> str:
    parts = []
    for data in (task.train, task.held_out):
        params = [data.setting.params[name] for name in sorted(data.setting.params)]
        parts += [data.states, data.times, data.setting.grid.lengths, *params]
    return array_hash(*parts)


def _judged(task: Task, config: TrainingConfig, policy: Policy, theta: Array) -> Gate:
    """The opponent is chosen on the training queries, the decision is made on the held-out ones."""
    query = task.held_out.query
    inputs = task.inputs(query)
    programs = policy.programs(theta[None], inputs).with_substeps(config.substeps)
    learned = measure(programs, task.dictionary, query, refinement=config.refinement, strict=False)
    opponents = Opponents(
        task.dictionary,
        task.train.query,
        task.train.truth,
        config.refinement,
        config.metric,
        config.substeps,
        task.covers,
    )
    rivals = opponents.rivals(query, learned.work)
    decided_by = task.held_out, inputs.features, config.refinement, config.metric
    found = decided(learned, rivals, task.dictionary, *decided_by, task.covers)
    found = replace(found, classical_when_repeated=_worse_when_repeated(task, config, programs, rivals.best))
    if len(task.dictionary) == 1:  # nothing is split
        return found
    return with_unsplit(found, task.equation, task.held_out, config.refinement, config.metric)


def _worse_when_repeated(task: Task, config: TrainingConfig, programs: ProgramBatch, rival: Classical) -> bool:
    """Whether the programs of some held-out queries, restarted from the truth at their end, are further from the limit
    of the dictionary than the classical scheme: a schedule for initial states need not suit later states.

    Gains are there to leave the limit, so with them it cannot judge. What has no order (a network) has no limit either,
    and later states are not known to suit its schedule."""
    if config.budget != "consistent":
        return False
    cover = next((each for each in task.covers if all(task.dictionary[name].order is not None for name in each)), None)
    if cover is None:
        return True
    few = slice(0, CONTINUED)
    asked = task.held_out.query.take(few)
    query = Query(task.held_out.truth[few], asked.setting, asked.time)
    bottom = limit(task.dictionary, query, most=CONTINUED_SUBSTEPS, refinement=config.refinement, cover=cover).states
    learned, classical = (
        measure(each, task.dictionary, query, refinement=config.refinement, strict=False).states
        for each in (programs.take(np.arange(query.batch)), rival.programs(query, task.dictionary))
    )
    ours, theirs = (rel_l2(states, bottom, query.setting).mean() for states in (learned, classical))
    return not ours <= theirs
