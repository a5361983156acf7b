"""The loop: queries, features, learning, gate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import Opponents, limit
from hycop.execution import measure
from hycop.executors import Executor, LocalExecutor
from hycop.features import FeatureMap, FeatureRange
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.policy import Allotment, Inputs, Pattern, Policy, SlotPolicy, exact_covers
from hycop.primitive import Primitive
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.splitting import Scheme
from hycop.training.checkpoint import Journal, array_hash, fingerprint, stoppable
from hycop.training.config import TrainingConfig
from hycop.training.gate import Gate, gate
from hycop.training.objective import Objective, infinite_if_lost
from hycop.training.progress import Meter, Report
from hycop.training.recipe import Recipe
from hycop.version import __version__

CONTINUED, CONTINUED_COPIES = 24, 8
"""Queries on which a second run of their programs is judged, and copies of the limit's scheme that judge it."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned: a dictionary for the processes of an equation, queries with truth to learn from and to be
    judged by, and what a policy sees of a query."""

    dictionary: Dictionary
    processes: tuple[str, ...]
    train: Dataset
    held_out: Dataset
    features: FeatureMap
    gain_features: FeatureMap

    @cached_property
    def covers(self) -> tuple[tuple[str, ...], ...]:
        """Sets of primitives that advance each process once; the first is that of the dictionary's limit."""
        return exact_covers(self.dictionary, self.processes)


@dataclass(frozen=True)
class View:
    """What a policy sees: named features, those that feed gains, and the ranges over which it has learned them."""

    features: FeatureMap
    ranges: FeatureRange
    gain_features: FeatureMap
    gain_ranges: FeatureRange

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.features.names, *self.gain_features.names)

    def outside(self, query: Query) -> Array:
        """Which of the names of which queries lie where nothing was learned, (batch, name)."""
        beyond = ~(self.gain_features(query) <= np.asarray(self.gain_ranges.high))
        return np.concatenate([self.ranges.outside(self.features(query)), beyond], axis=1)

    def far(self, query: Query) -> Array:
        """Which queries lie further outside than the range in which was learned is wide, (batch,)."""
        return np.asarray(self.ranges.far(self.features(query)).any(axis=1))

    @classmethod
    def of(cls, features: FeatureMap, gain_features: FeatureMap, query: Query) -> View:
        return cls(features, FeatureRange.of(features(query)), gain_features, FeatureRange.of(gain_features(query)))

    def __call__(self, query: Query) -> Inputs:
        """Features normalised and clipped; those of gains clipped only, because gains know their scale, and from above
        only, because a gain tends to the exact 1 with its feature to 0."""
        clipped = np.minimum(self.gain_features(query), np.asarray(self.gain_ranges.high))
        return Inputs(self.ranges.normalised(self.features(query)), clipped, query.time)


@dataclass(frozen=True, eq=False)
class Trained:
    """The outcome of a run: a policy as data, its theta, what it sees, and how it fared at the gate."""

    policy: Policy
    theta: Array
    view: View
    gate: Gate
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
) -> Trained:
    """Learns a policy for the task; with a folder (claimed by the caller), every step is checkpointed there, and a
    killed run can be resumed to the same bits."""
    given = task.train.query
    # least squares differentiates by differences that single precision does not resolve
    query = Query(given.u0.astype(np.float64), given.setting, given.time)
    view = View.of(task.features, task.gain_features, query)
    allotment = Allotment.of(task.dictionary, task.processes, config.budget, len(task.gain_features.names))
    inputs = view(query)
    nothing = SlotPolicy((Pattern((0,), (1.0,)),), allotment, inputs.features.shape[1])
    refinement = config.learning_refinement or config.refinement
    target = task.train.truth
    if config.target == "limit":
        target = limit(task.dictionary, query, target, refinement=refinement, cover=task.covers[0]).states
    objective = Objective(
        nothing,
        task.dictionary,
        query,
        target,
        inputs,
        config.work_weight,
        _unit_work(task, query),
        refinement,
        config.metric,
        config.repeats,
    )
    with executor or LocalExecutor() as crew:
        journal = Journal(folder, _identity(task, config, seed), resume, force, config.checkpoint_every)
        with stoppable(journal):
            recipe = Recipe(objective, allotment, task.processes, config, seed, crew, journal, Meter(report))
            policy, theta = recipe.learn()
            static = recipe.static(policy)
    loss = float(infinite_if_lost(objective.of(policy).losses(theta[None])).mean())
    return Trained(policy, theta, view, _judged(task, config, policy, theta, view), loss, _data_hash(task), static)


def _unit_work(task: Task, query: Query) -> float:
    """Work is counted in states: one unit updates every channel and cell once."""
    return float(len(query.setting.channels) * query.grid.cells)


def _identity(task: Task, config: TrainingConfig, seed: int) -> str:
    seen = (task.features.names, task.gain_features.names)
    primitives = [(name, _described(primitive)) for name, primitive in task.dictionary.items()]
    version = __version__.split(".")[0]
    return fingerprint(config.model_dump(), seed, _data_hash(task), seen, primitives, version)


def _described(primitive: Primitive) -> str:
    """Its repr, unless that is the default one, which is another in every process."""
    kind = type(primitive)
    if kind.__repr__ is not object.__repr__:
        return repr(primitive)
    return f"{kind.__module__}.{kind.__qualname__}({getattr(primitive, '__dict__', {})})"


def _data_hash(task: Task) -> str:
    parts = []
    for data in (task.train, task.held_out):
        params = [data.setting.params[name] for name in sorted(data.setting.params)]
        parts += [data.states, data.times, data.setting.grid.lengths, *params]
    return array_hash(*parts)


def _judged(task: Task, config: TrainingConfig, policy: Policy, theta: Array, view: View) -> Gate:
    """The opponent is chosen on the training queries, the decision is made on the held-out ones."""
    query, truth = task.held_out.query, task.held_out.truth
    inputs = view(query)
    programs = policy.programs(theta[None], inputs).repeated(config.repeats)
    states, work = measure(programs, task.dictionary, query, refinement=config.refinement, strict=False)
    opponents = Opponents(
        task.dictionary,
        task.train.query,
        task.train.truth,
        config.refinement,
        config.metric,
        config.repeats,
        task.covers,
    )
    rival = opponents.best(query, work)
    found = gate(states, work, rival, task.dictionary, query, truth, inputs.features, config.refinement, config.metric)
    return replace(found, classical_when_repeated=_worse_when_repeated(task, config, programs, rival))


def _worse_when_repeated(task: Task, config: TrainingConfig, programs: ProgramBatch, rival: Scheme) -> bool:
    """Whether the programs of some held-out queries, once more from where the truth ends, come less close to the limit
    of the dictionary than the classical scheme: a schedule for initial states need not suit what they become.

    Gains are there to leave the limit, so with them it cannot judge."""
    if config.budget != "consistent":
        return False
    few = slice(0, CONTINUED)
    asked = task.held_out.query.take(few)
    query = Query(task.held_out.truth[few], asked.setting, asked.time)
    most, cover = CONTINUED_COPIES, task.covers[0]
    bottom = limit(task.dictionary, query, most=most, refinement=config.refinement, cover=cover).states
    learned, classical = (
        measure(each, task.dictionary, query, refinement=config.refinement, strict=False).states
        for each in (programs.take(np.arange(query.batch)), rival.programs(query, task.dictionary))
    )
    ours, theirs = (rel_l2(states, bottom, query.setting).mean() for states in (learned, classical))
    return not ours <= theirs
