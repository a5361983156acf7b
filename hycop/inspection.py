"""A model's answers to a dataset, and the program behind one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.execution import measure, simplify
from hycop.grid import Array
from hycop.model import Answer
from hycop.program import Program
from hycop.query import Query
from hycop.schemes import Scheme
from hycop.surrogate import HyCOP
from hycop.version import __version__


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
        model = writer.model
        dictionary, refinement = dictionary or model.dictionary, model.refinement
        programs, values, _ = replace(model, dictionary=dictionary).compose(one)
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
        raise InvalidInputError("the samples have times of their own; say at which times to answer, as --times 0.1,0.2")
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
