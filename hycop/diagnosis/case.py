"""What is diagnosed: a model, and queries of a dataset with their truth and the model's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hycop.data import Dataset
from hycop.economy import parts_of
from hycop.errors import InvalidInputError, SampleError
from hycop.execution import run, simplify, trace
from hycop.grid import Array, changed
from hycop.model import Model
from hycop.primitive import bears_vacuum
from hycop.program import ProgramBatch
from hycop.query import Query, Setting
from hycop.surrogate import HyCOP

MOST_QUERIES = 200
"""Queries of a dataset that are looked at, evenly spread over it."""

FEWEST_SAMPLES = 2

LARGEST = 1e100
"""Largest value of a state: squares of sums of values stay finite."""


@dataclass(frozen=True, eq=False)
class Case:
    """Queries (batch,) of a dataset: their ``truth`` S and the model's ``answers`` Ψ̂ (batch, channel, *grid), the
    ``programs`` as they run, and the ``features`` (batch, name) that they come from.

    ``sample`` and ``frame`` say where a query stands in the dataset, ``of`` how many it has. ``coefficients`` are all
    of the dataset, also those that the model's equation does not have. ``outside`` flags queries outside training, by
    the reason.
    """

    model: Model
    query: Query
    truth: Array
    answers: Array
    programs: ProgramBatch
    features: Array
    sample: Array
    frame: Array
    coefficients: Mapping[str, Array]
    outside: Mapping[str, Array]
    source: Dataset
    of: int

    @classmethod
    def of_data(cls, surrogate: HyCOP, data: Dataset, most: int = MOST_QUERIES) -> Case:
        """Refuses data of another equation, and data that say nothing about a model."""
        if not isinstance(surrogate, HyCOP):
            raise InvalidInputError(
                f"model is a {type(surrogate).__name__}: give one that fit has made, or a loaded one"
            )
        if not isinstance(data, Dataset):
            raise InvalidInputError(f"data is a {type(data).__name__}: give a hycop.Dataset, as hycop.load(file)")
        asked = _of_equation(surrogate.model, data)
        later = np.flatnonzero((asked.times[:, 1:] - asked.times[:, :1]).reshape(-1) > 0)
        if not later.size:
            raise InvalidInputError("times: no state is later than its initial state; give states at later times")
        kept = later[spread(later.size, most)]
        given, frames = asked.query.take(kept), asked.times.shape[1] - 1
        query = replace(given, u0=given.u0.astype(np.float64))
        # outside training queries may be answered by different solvers: those are judged that most have
        rows, model = max(parts_of(surrogate.model.uncorrected, query), key=lambda part: part.rows.size)
        kept, query = kept[rows], query.take(rows)
        try:
            written, values, outside = model.compose(query)
            programs = simplify(written, model.dictionary, query.setting)
            answers = run(programs, model.dictionary, query, refinement=model.refinement)
        except SampleError as error:
            raise error.at(int(kept[error.sample])) from None
        return cls(
            model,
            query,
            asked.truth[kept].astype(np.float64),
            answers,
            programs,
            values.features,
            kept // frames,
            1 + kept % frames,
            {name: column[kept // frames] for name, column in data.setting.params.items()},
            outside,
            data,
            int(later.size),
        )

    @property
    def batch(self) -> int:
        return self.query.batch

    @property
    def rounding(self) -> float:
        """The precision of the dataset."""
        return float(np.finfo(self.source.states.dtype).eps)

    def take(self, queries: Array) -> Case:
        """Some of the queries."""
        parts = ("truth", "answers", "features", "sample", "frame")
        return replace(
            self,
            query=self.query.take(queries),
            programs=self.programs.take(queries),
            coefficients={name: column[queries] for name, column in self.coefficients.items()},
            outside={name: flags[queries] for name, flags in self.outside.items()},
            **{name: getattr(self, name)[queries] for name in parts},
        )

    def few(self, count: int) -> Array:
        """Indices of at most ``count`` queries, evenly spread."""
        return spread(self.batch, count)

    def answers_of(self, programs: ProgramBatch) -> Array:
        """The states that other programs would give."""
        return run(programs, self.model.dictionary, self.query, refinement=self.model.refinement)

    def traced(self, ends: Sequence[int] | Array) -> Array:
        """States (batch, end, channel, *grid) after so many steps, on the grid on which programs run."""
        return trace(
            self.programs,
            self.model.dictionary,
            self.query,
            refinement=self.model.refinement,
            steps=[int(end) for end in ends],
            fine=True,
        ).states

    def query_from(self, queries: Array, states: Array) -> Query:
        """Some queries with other initial states, which are on the grid on which programs run."""
        asked = self.query.take(queries)
        setting = asked.setting.with_grid(asked.grid.refined(self.model.refinement))
        return changed(asked, u0=states, setting=setting)

    @cached_property
    def size(self) -> Array:
        """‖S‖ of each truth (batch,), which errors are relative to."""
        size = np.linalg.norm(self.truth.reshape(self.batch, -1), axis=1)
        return np.where(size > 0, size, 1.0)

    def relative(self, fields: Array) -> Array:
        """‖field‖ / ‖S‖ (batch,) of fields (batch, channel, *grid)."""
        out: Array = np.linalg.norm(fields.reshape(self.batch, -1), axis=1) / self.size
        return out


def spread(count: int, most: int) -> Array:
    """At most ``most`` of the indices 0 … count − 1, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def check_squares(data: Dataset) -> None:
    """Refuses states whose squares overflow: errors are norms."""
    largest = float(np.abs(data.states).max(initial=0.0))
    if largest > LARGEST:
        raise InvalidInputError(
            f"states: values up to {largest:.1e} are too large to compute with; give the data in other units"
        )


def _of_equation(model: Model, data: Dataset) -> Dataset:
    """The data as queries of the model's equation: channels in its order, without coefficients that it does not have.
    Data of a larger equation are welcome, since what is missing is the question."""
    equation, grid = model.equation, data.setting.grid
    if data.times.shape[1] == 1:
        raise InvalidInputError(
            "states: there is one state a sample; give the initial state and at least one later one"
        )
    if data.samples < FEWEST_SAMPLES:
        raise InvalidInputError(f"the data have {data.samples} sample: at least {FEWEST_SAMPLES} are needed")
    check_squares(data)
    if grid.axes != model.box.axes:
        raise InvalidInputError(
            f"the data have {grid.axes} axes, but the model of {equation.name} has {model.box.axes}"
        )
    arranged = data.arranged(equation.channels)
    given = data.setting.params
    missing = [name for name in equation.coefficients if name not in given]
    if missing and not equation.guessed:
        raise InvalidInputError(
            f"the data have no coefficient '{missing[0]}' (they have {', '.join(given) or 'none'}), which the model of "
            f"{equation.name} needs: they are of another equation"
        )
    known = given if equation.guessed else {name: given[name] for name in equation.coefficients}
    setting = model.corrected_setting(Setting(grid, equation.channels, known))
    names = model.gate.used(model.dictionary, grid)
    vacuum = all(bears_vacuum(model.dictionary[name]) for name in names)
    for frame in range(arranged.times.shape[1]):
        equation.check_states(arranged.states[:, frame], setting, frame, vacuum)
    model.dictionary.check_boundaries(names, grid)
    return replace(arranged, setting=setting)
