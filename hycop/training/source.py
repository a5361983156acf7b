"""The data of a run: queries drawn from a problem, or a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hycop.data import Dataset, load, save
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.execution import probe
from hycop.features import FeatureMap, Observed, available, features_of_kind, guessed_equation
from hycop.files import output_folder
from hycop.pde import Equation
from hycop.primitive import bears_vacuum
from hycop.problems import PROBLEMS, Problem
from hycop.training.checkpoint import DATA, another_run, begun
from hycop.training.config import TrainingConfig
from hycop.training.loop import Task

FEWEST_HELD_OUT = 32
"""Fewest held-out queries of a dataset for the gate."""

TRUTH_CHECKED = 4
"""Samples of drawn data on which the error of the truth is estimated: on each, a finer grid costs as much as eight
samples of the truth itself."""

HELD_OUT_STREAM = 2**32
"""Added to the seed for the held-out queries of a problem, so that no query is in both."""


@dataclass(frozen=True)
class Source:
    """A problem or a dataset to learn from, data for the gate if they are given, and the equation if it is declared.

    A dataset that names a shipped problem has its equation and settings.
    """

    given: Problem | Dataset
    held_out: Dataset | None = None
    equation: Equation | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.given, Problem | Dataset):
            raise InvalidInputError(_instead(self.given))
        if isinstance(self.held_out, Problem):
            raise InvalidInputError(
                "held_out is a problem: give a hycop.Dataset, as problem.sample(200, split='train')"
            )
        if not isinstance(self.held_out, Dataset | None):
            raise InvalidInputError(_instead(self.held_out))

    @property
    def problem(self) -> Problem | None:
        if isinstance(self.given, Problem):
            return self.given
        return PROBLEMS.get(self.given.problem) if self.equation is None else None

    def suited(self, preset: str) -> Mapping[str, object]:
        """Settings that suit the problem, if it is known."""
        return {} if self.problem is None else self.problem.suited(preset)

    def task(
        self, dictionary: Dictionary, config: TrainingConfig, seed: int, kept: Path | None = None, force: bool = False
    ) -> Task:
        """The task of training. The queries of a problem are drawn, or read from the folder ``kept`` of an interrupted
        run. What cannot run is refused before the truth is solved."""
        if isinstance(self.given, Problem):
            chosen, split = self.given, "trajectory" if config.horizon == "trajectory" else "train"
            probe(dictionary, chosen.queries(1, split, seed, shape=config.shape), config.refinement)
            drawn = _Drawn(chosen, split, config.shape, kept, force)
            learn = drawn.data(config.samples, seed, DATA[0])
            held_out = self.held_out or drawn.data(
                config.validation, seed + HELD_OUT_STREAM, DATA[1], learn.reference_error
            )
            equation = chosen.equation
        else:
            learn, held_out, equation = self._checked(self.given, dictionary)
            for data in (learn, held_out):
                probe(dictionary, data.at(-1).query, config.refinement)
        features, gains = _features(equation, learn, config)
        return Task(equation, dictionary, learn, held_out, features, gains)

    def _checked(self, data: Dataset, dictionary: Dictionary) -> tuple[Dataset, Dataset, Equation]:
        equation = self.equation or (None if self.problem is None else self.problem.equation)
        if equation is None:
            processes = tuple(sorted(dictionary.processes))
            equation = guessed_equation(data.problem, processes, data.at(-1).query)
        learn = self._arranged(data, equation, dictionary)
        if self.held_out is None:
            learn, held_out = _parted(learn)
        else:
            held_out = self._arranged(self.held_out, equation, dictionary)
        if held_out.problem != learn.problem:
            raise InvalidInputError(f"the held-out data are of problem '{held_out.problem}', not '{learn.problem}'")
        if set(held_out.setting.params) != set(learn.setting.params):
            ours, theirs = (", ".join(data.setting.params) or "none" for data in (learn, held_out))
            raise InvalidInputError(f"the held-out data have the coefficients {theirs}, but the others {ours}")
        if held_out.query.batch < FEWEST_HELD_OUT:
            raise InvalidInputError(
                f"the held-out data are {held_out.query.batch} queries: at least {FEWEST_HELD_OUT} are needed for the "
                "gate"
            )
        return learn, held_out, equation

    def _arranged(self, data: Dataset, equation: Equation, dictionary: Dictionary) -> Dataset:
        """The data with their channels in the equation's order, if its coefficients and states are well-posed."""
        if self.problem is not None:
            return self.problem.checked(data)
        if equation.guessed:
            return data
        equation.check_setting(data.setting)
        arranged = data.arranged(equation.channels)
        vacuum = all(map(bears_vacuum, dictionary.values()))
        for frame in range(arranged.times.shape[1]):
            equation.check_states(arranged.states[:, frame], arranged.setting, frame, vacuum)
        return arranged


def _instead(value: object) -> str:
    """What to give instead of something that is neither a problem nor a dataset."""
    if isinstance(value, str):
        known = f"hycop.problem('{value}')" if value in PROBLEMS else "hycop.problem(name) or hycop.load(file)"
        return f"'{value}' is a text: give {known}"
    if isinstance(value, Dictionary):
        return "a Dictionary is what is composed: give a problem or a Dataset to learn from"
    shape = getattr(value, "shape", None)
    what = f"an array of shape {shape}" if shape is not None else f"a {type(value).__name__}"
    return f"{what} says nothing about times and coefficients: give hycop.problem(name), or a hycop.Dataset made of it"


def _features(equation: Equation, data: Dataset, config: TrainingConfig) -> tuple[FeatureMap, FeatureMap]:
    """The features that a policy sees, and those that feed its gains."""
    seen = Observed(data.at(-1).query, equation)
    if config.features == "raw":
        chosen = available(features_of_kind("raw"), seen)
    elif config.features == "none":
        chosen = ()
    elif equation.features is not None:
        chosen = equation.features
    else:
        chosen = available(features_of_kind("general"), seen)
        if not equation.guessed:  # the dimensionless times of a declared equation see its coefficients under any name
            chosen = (*available(features_of_kind("time"), seen), *chosen)
    gains = available(("cell_peclet",), seen) if equation.guessed else equation.gain_features
    return FeatureMap(chosen), FeatureMap(gains if config.budget == "gain" else ())


@dataclass(frozen=True)
class _Drawn:
    """Queries of a problem with their truth: drawn, or read from the folder of an interrupted run."""

    problem: Problem
    split: str
    shape: tuple[int, ...] | None
    kept: Path | None
    force: bool

    def data(self, samples: int, seed: int, name: str, truth_error: float | None = None) -> Dataset:
        """Samples of a stream. The error of their truth is estimated unless it is known from another stream."""
        if self.kept is not None and (self.kept / name).exists():
            found = load(self.kept / name, problem=self.problem.name)
            # the folder may hold the data of another run, which was killed before its first checkpoint
            wanted = (samples, self.split, seed, self.problem.shape if self.shape is None else tuple(self.shape))
            if (found.samples, found.split, found.seed, found.setting.grid.shape) == wanted:
                return found
            if begun(self.kept) and not self.force:
                raise another_run(self.kept)
        estimated = 0 if truth_error is not None else min(TRUTH_CHECKED, self.problem.estimated)
        drawn = self.problem.sample(samples, self.split, seed, shape=self.shape, estimated=estimated)
        return drawn if truth_error is None else replace(drawn, reference_error=truth_error)


def keep(task: Task, folder: Path, force: bool) -> None:
    """Writes the queries of a run to its folder, so that a resumed run need not solve them again. They replace those of
    a run without a checkpoint, or, with ``force``, of any run."""
    output_folder(folder)
    for name, data in zip(DATA, (task.train, task.held_out), strict=True):
        if force or not (begun(folder) and (folder / name).exists()):
            save(data, folder / name)


def _parted(data: Dataset) -> tuple[Dataset, Dataset]:
    """Two thirds to learn from, the rest for the gate."""
    kept = data.samples * 2 // 3
    per_sample = data.times.shape[1] - 1
    if (data.samples - kept) * per_sample < FEWEST_HELD_OUT:
        needed = -(-3 * FEWEST_HELD_OUT // max(1, per_sample))
        raise InvalidInputError(
            f"the dataset has {data.samples} samples with {per_sample} later times each: at least {needed} samples are "
            "needed, a third of them for the gate"
        )
    return data.take(slice(0, kept)), data.take(slice(kept, None))
