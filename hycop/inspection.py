"""A model's answers to a dataset, and the program behind one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hycop.data import Dataset
from hycop.data.blocks import joined
from hycop.dictionary import Dictionary
from hycop.economy import only_part
from hycop.errors import InvalidInputError, SampleError
from hycop.execution import measure, simplify
from hycop.executors import Executor
from hycop.grid import Array
from hycop.model import Answer
from hycop.program import Program
from hycop.query import Query
from hycop.schemes import Scheme
from hycop.surrogate import HyCOP
from hycop.version import __version__

OWN_TIMES = "the samples have times of their own; say at which times to answer, as --times 0.1,0.2"


@dataclass(frozen=True)
class Inspection:
    """A query and its program, as ``written`` and ``as_run`` (equal neighbours merged), its work and, for a learned
    program, the features that it comes from."""

    method: str
    time: float
    params: Mapping[str, float]
    written: Program
    as_run: Program
    work: float
    features: Mapping[str, float]
    changes: tuple[str, ...] = ()
    """What was changed in the model since it was trained."""

    def to_json(self) -> dict[str, object]:
        return {
            "method": self.method,
            "program": self.written.to_json(),
            "as_run": self.as_run.to_json(),
            "work": self.work,
            "features": dict(self.features),
            "time": self.time,
            "params": dict(self.params),
        }


def inspected(
    writer: HyCOP | Scheme, query: Query, dictionary: Dictionary | None = None, refinement: int = 1
) -> Inspection:
    """The program that a model, or a scheme with a dictionary, writes for the first of some queries."""
    one = query.take(slice(0, 1))
    features: Mapping[str, Array] = {}
    if isinstance(writer, HyCOP):
        model = writer.model if dictionary is None else writer.model.composing(dictionary)
        model = only_part(model, one)
        dictionary, refinement = model.dictionary, model.refinement
        programs, values, _ = model.compose(one)
        one = model.corrected(one)
        features = dict(zip(model.scope.view.features.names, values.features[0], strict=True))
    else:
        if dictionary is None:
            raise InvalidInputError(f"scheme {writer} composes a dictionary: give one")
        programs = writer.programs(one, dictionary)
    return Inspection(
        "HyCOP" if isinstance(writer, HyCOP) else str(writer),
        float(one.time[0]),
        {key: float(value[0]) for key, value in one.setting.averaged().params.items()},
        programs[0],
        simplify(programs, dictionary, one.setting)[0],
        float(measure(programs, dictionary, one, refinement=refinement).work[0]),
        {key: float(value) for key, value in features.items()},
        writer.model.record.changes if isinstance(writer, HyCOP) else (),
    )


def common_times(data: Dataset) -> list[float]:
    """The later times, counted from the initial states; all samples must share them."""
    elapsed = data.times - data.times[:, :1]
    if np.ptp(elapsed, axis=0).any():
        raise InvalidInputError(OWN_TIMES)
    later: list[float] = elapsed[0, 1:].tolist()
    return later


def answers(
    model: HyCOP,
    data: Dataset,
    times: Sequence[float] | None = None,
    boundary: str | Sequence[str] | None = None,
    *,
    error_estimate: bool = False,
    tol: float | None = None,
) -> Dataset:
    """A model's answers to the initial states of a dataset, at ``times`` after them or at the dataset's own. Answers
    that are not to be trusted are marked, with the reason. ``boundary`` replaces that of the data.

    ``error_estimate`` adds the estimated errors. ``tol`` asks for answers to that tolerance, and marks those that are
    within it.
    """
    later = common_times(data) if times is None else list(times)
    answer = model.answer(query_of(model, data, later, boundary), tol)
    return as_dataset(answer, data, later, error_estimate or tol is not None)


class Answered(NamedTuple):
    """A model's answers as a dataset, the work that they took (query,), that of the error estimates, if they were asked
    for, and whether those are calibrated."""

    data: Dataset
    work: Array
    estimate_work: Array | None = None
    calibrated: bool = False


@dataclass(frozen=True)
class AnswerJob:
    """The answers to the samples of a dataset, in parts: what an executor spreads over its workers. Answers do not
    depend on how samples are divided."""

    model: HyCOP
    data: Dataset
    times: tuple[float, ...]
    boundary: tuple[str, ...]
    error_estimate: bool = False
    tol: float | None = None

    def __call__(self, first: int, count: int) -> Array:
        """A row for each sample, of which the first holds the answers to all of them."""
        part = self.data.take(slice(first, first + count))
        try:
            answer = self.model.answer(query_of(self.model, part, self.times, self.boundary), self.tol)
            estimated = self.error_estimate or self.tol is not None
            found = Answered(as_dataset(answer, part, self.times, estimated), answer.work)
            if estimated:
                found = found._replace(estimate_work=answer.estimate.work, calibrated=answer.estimate.calibrated)
        except SampleError as error:
            raise error.at(first * len(self.times) + error.sample, error.place) from None
        rows = np.full(count, None, dtype=object)
        rows[0] = found
        return rows

    def run(self, executor: Executor) -> Answered:
        parts: list[Answered] = [row for row in executor.map(self, self.data.samples) if row is not None]
        works = [part.estimate_work for part in parts if part.estimate_work is not None]
        return Answered(
            joined([part.data for part in parts]),
            np.concatenate([part.work for part in parts]),
            np.concatenate(works) if works else None,
            parts[0].calibrated,
        )


def query_of(model: HyCOP, data: Dataset, times: Sequence[float], boundary: str | Sequence[str] | None = None) -> Query:
    """The initial states of a dataset, each asked at every time."""
    data = data.arranged(model.model.equation.channels)
    grid = data.setting.grid if boundary is None else data.setting.grid.with_boundary(boundary)
    return model.query(data.states[:, 0], data.setting.params, times, grid.lengths, grid.boundary)


def as_dataset(answer: Answer, data: Dataset, times: Sequence[float], error_estimate: bool = False) -> Dataset:
    """The answer to ``query_of(model, data, times)`` with the initial states."""
    data = data.arranged(answer.query.setting.channels)
    shape = (data.samples, len(times))
    reasons = np.array([", ".join(each) for each in answer.reasons], dtype=np.str_)

    def of_times(values: Array, initial: object) -> Array:
        """(sample, time) from one value per query, and that of the initial states."""
        first = np.full((data.samples, 1), initial, dtype=values.dtype)
        return np.concatenate([first, values.reshape(shape)], axis=1)

    states = answer.states.reshape(*shape, *answer.states.shape[1:])
    return Dataset(
        problem=data.problem,
        split=data.split,
        states=np.concatenate([data.states[:, :1], states], axis=1),
        times=data.times[:, :1] + np.array([0.0, *times]),
        setting=data.setting.with_grid(data.setting.grid.with_boundary(answer.query.grid.boundary)),
        version=__version__,
        untrusted=of_times(answer.untrusted, False),
        reasons=of_times(reasons, ""),
        error_estimate=of_times(answer.error, 0.0) if error_estimate else None,
        tolerance_met=None if answer.tolerance_met is None else of_times(answer.tolerance_met, True),
    )
