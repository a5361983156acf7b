"""Training a learned primitive: examples, the loop, and what was measured of the result."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numba
import numpy as np

from hycop.conformance.learned import lipschitz, semigroup_defect
from hycop.data import Dataset
from hycop.errors import HyCOPWarning
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.networks import imported
from hycop.pretraining import checkpoint
from hycop.pretraining.config import configured, suited
from hycop.pretraining.task import Steps, Task
from hycop.primitives.learned import NeuralOperator
from hycop.problems import Problem
from hycop.progress import describing
from hycop.storage.network import Network, is_network, save_network
from hycop.training.checkpoint import RunFolderError, array_hash, claimed, fingerprint
from hycop.version import __version__

if TYPE_CHECKING:
    from hycop.networks.loop import Examples, Learnable

SCHEDULED = ("rounds", "batch", "rate", "weight_decay", "clip", "patience", "cycles")
"""The settings that the loop is told."""

SMALLEST = 1e-6
"""Size of an end state, in the units of the network, below which errors are absolute."""


class UntrustedPartWarning(HyCOPWarning):
    """The trusted solver of a part of the equation is no better than a primitive."""


def pretrain(
    problem: Problem,
    processes: Sequence[str],
    *,
    network: str = "fno-film",
    preset: str = "quick",
    seed: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    data: Dataset | None = None,
    verbose: bool = True,
    **settings: object,
) -> NeuralOperator:
    """A network that advances some processes of a problem, trained on steps of their trusted flow or on ``data``.

    ``settings`` change those of the preset. With a folder, every round is kept there, ``resume`` goes on from the last,
    to the same bits on the same machine and threads, and the trained network ends up in it.
    """
    imported(network)  # before anything is computed or written
    config = configured(preset, network, {**suited(problem, preset), **settings})
    task = Task(problem, tuple(processes), config, network, seed, data)
    return trained(task, folder, resume, verbose).primitive


def trained(
    task: Task,
    folder: str | Path | None = None,
    resume: bool = False,
    verbose: bool = True,
    lesson: Lesson | None = None,
    about: Mapping[str, object] | None = None,
) -> Network:
    """The network of a task, kept in a folder if there is one. ``lesson`` changes what is learned, ``about`` is kept
    beside the settings."""
    lesson, about = lesson or Lesson(), dict(about or {})
    if folder is None:
        return _trained(task, None, False, verbose, lesson, about)
    if is_network(folder):
        raise RunFolderError(f"{folder}: holds a network already; choose another folder")
    with claimed(Path(folder), resume) as place:
        found = _trained(task, place, resume, verbose, lesson, about)
        save_network(found, place)
        checkpoint.forget(place)
    return found


@dataclass(frozen=True)
class Lesson:
    """What is learned beside the examples of a task: the weights that training begins with, and how the examples of a
    round are judged."""

    weights: Mapping[str, Array] | None = None

    def judged(self, examples: Examples, steps: Steps, primitive: NeuralOperator, share: float) -> Learnable:
        """The examples of a round, before which so large a share of the rounds was done."""
        return examples

    @property
    def identity(self) -> object:
        """What tells this lesson from others."""
        return None if self.weights is None else array_hash(*self.weights.values())


def _trained(
    task: Task, folder: Path | None, resume: bool, verbose: bool, lesson: Lesson, about: dict[str, object]
) -> Network:
    from hycop.networks.loop import Schedule, Training, train  # torch is imported when it is needed
    from hycop.networks.module import set_arrays

    if task.data is None and task.trusted.distrust:
        told = f"{' + '.join(task.processes)}: {task.trusted.distrust}; the network cannot be better than that"
        warnings.warn(told, UntrustedPartWarning, stacklevel=3)
    config, blank, identity = task.config, task.blank(), _identity(task, lesson)
    held = task.steps(-1, config.held_out)
    schedule = Schedule(**{name: getattr(config, name) for name in SCHEDULED})
    first = int(np.random.Generator(np.random.Philox(key=[task.seed, 0])).integers(2**62))
    module, state = blank.plan.build(first), None
    if lesson.weights is not None:
        set_arrays(module, lesson.weights)
    if folder is not None and checkpoint.begun(folder):
        if not resume:
            raise RunFolderError(f"{folder}: holds a run already; go on with --resume, or choose another folder")
        state = Training(**checkpoint.kept(folder, identity))

    def draw(index: int) -> Learnable:
        steps = task.steps(index, config.samples)
        return lesson.judged(_examples(blank, steps), steps, blank, index / config.rounds)

    with describing(f"training {task.family}") as describe:

        def keep(now: Training) -> None:
            if folder is not None:
                checkpoint.keep(folder, identity, now)
            if verbose:
                describe(f"round {now.rounds}/{config.rounds}  error {now.best:.2e}", now.rounds / config.rounds)

        threads = numba.get_num_threads()
        done = train(module, draw, _examples(blank, held), schedule, state, keep, threads)
    measured = _measured(blank.with_arrays(done.weights), held)
    made = replace(blank, measured=measured).with_arrays(done.weights)
    source = str(task.trusted) if task.data is None else f"data {_data_hash(task.data)[:16]}"
    settings = {key: value for key, value in config.model_dump().items() if value is not None}
    about |= {"network": task.family, **settings, "seconds": round(done.seconds, 3)}
    return Network(made, task.problem.name, about, task.seed, source, done.errors)


def _examples(blank: NeuralOperator, steps: Steps) -> Examples:
    """Steps as a network sees them: states and changes in its units, numbers without dimension."""
    from hycop.networks.loop import Examples

    states, numbers, unit = blank.seen(steps.before, steps.duration, steps.setting)
    size = np.linalg.norm((steps.after / unit).reshape(len(steps.after), -1), axis=1)
    return Examples(states, numbers, (steps.after - steps.before) / unit, 1.0 / np.maximum(size, SMALLEST))


def _measured(primitive: NeuralOperator, held: Steps) -> dict[str, float]:
    """Error, semigroup defect and Lipschitz constant in the training range."""
    after = primitive.flow(held.before, held.duration, held.setting)
    few = slice(0, 32)
    asked = held.before[few], held.duration[few], held.setting.take(few)
    return {
        "error": float(rel_l2(after, held.after, held.setting).mean()),
        "semigroup_defect": semigroup_defect(primitive, *asked),
        "lipschitz": lipschitz(primitive, *asked),
    }


def _data_hash(data: Dataset) -> str:
    return array_hash(data.states, data.times, data.setting.grid.lengths, *data.setting.params.values())


def _identity(task: Task, lesson: Lesson) -> str:
    data = None if task.data is None else _data_hash(task.data)
    settings = task.config.model_dump()
    taught = (type(lesson).__name__, lesson.identity)
    return fingerprint(
        task.problem.name, sorted(task.processes), settings, task.family, task.seed, data, taught, __version__
    )
