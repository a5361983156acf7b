"""The surrogate: an equation, a dictionary, and a policy that has learned to compose it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, overload

import numpy as np

from hycop import economy, markup, operating
from hycop.answer import Answer
from hycop.boundary import Boundaries
from hycop.data import Dataset, XarrayDataset, is_xarray
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, HyCOPWarning, InvalidInputError
from hycop.execution import Outcome, Trace, trace
from hycop.executors import Executor
from hycop.files import output_folder
from hycop.fitting import Run
from hycop.grid import Array
from hycop.model import Model
from hycop.pde import Equation
from hycop.primitive import Primitive
from hycop.problems import Problem
from hycop.program import Program, ProgramBatch
from hycop.query import Query, real_numbers
from hycop.questions import answered_in_xarray, query_of_arrays, query_of_dataset
from hycop.storage import load_model, save_model
from hycop.training import Report, Start
from hycop.training.front import front_levels
from hycop.training.source import Source


class UntrustedWarning(HyCOPWarning):
    """A query lies outside what the policy was trained on."""


class NotFittedError(HyCOPError, RuntimeError):
    """The model has no policy yet."""


class HyCOP:
    """A surrogate of a PDE solver: ``fit`` learns how to compose the dictionary, ``predict`` answers at any time.

    ``equation`` declares a PDE of your own; shipped problems bring theirs.

    >>> import hycop
    >>> model = HyCOP(hycop.problem("ad1d").dictionary)
    >>> model
    HyCOP(advection, diffusion; not fitted)
    """

    def __init__(self, dictionary: Dictionary, equation: Equation | None = None) -> None:
        _check_parts(dictionary, equation)
        self.dictionary = dictionary
        self.equation = equation
        self._model: Model | None = None
        self._points: tuple[operating.OperatingPoint, ...] = ()

    def __repr__(self) -> str:
        state = "not fitted" if self._model is None else f"fitted on {self._model.equation.name}"
        return f"HyCOP({', '.join(self.dictionary)}; {state})"

    def __str__(self) -> str:
        return repr(self) if self._model is None else self._model.summary()

    def _repr_html_(self) -> str:
        """The summary, for notebooks."""
        if self._model is not None:
            return self._model._repr_html_()
        return markup.page("HyCOP, not fitted: call fit(problem)", self.dictionary._repr_html_())

    @classmethod
    def of(cls, model: Model) -> HyCOP:
        surrogate = cls(model.dictionary, model.equation)
        surrogate._model = model
        return surrogate

    @property
    def model(self) -> Model:
        if self._model is None:
            raise NotFittedError("this model has not learned anything yet: call fit(problem) or HyCOP.load(folder)")
        return self._model

    def fit(
        self,
        source: Problem | Dataset | None = None,
        held_out: Dataset | None = None,
        *,
        preset: str = "quick",
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        executor: Executor | None = None,
        report: Report | None = None,
        verbose: bool = True,
        warm_start: HyCOP | None = None,
        **settings: object,
    ) -> HyCOP:
        """Trains the policy on a problem, whose queries it draws, or on a dataset. The gate uses ``held_out``, by
        default a third of the dataset. ``settings`` change those of the preset. ``warm_start`` is a fitted model to
        train on from, without a new search. A terminal shows progress unless ``verbose`` is False; ``report`` is called
        after every step."""
        given, begin = _checked_source(self, source), _first_policy(warm_start)
        parts = self.dictionary.alone()
        run = Run(Source(given, held_out, self.equation), parts, seed, folder, resume, force, executor)
        with run.prepared(preset, settings, report, verbose) as (task, config, tell):
            self._model = run.learned(task, config, tell, run.folder, begin)
        self.dictionary = self._model.dictionary
        return self

    def front(
        self,
        source: Problem | Dataset | None = None,
        held_out: Dataset | None = None,
        *,
        points: int = 6,
        preset: str = "quick",
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        executor: Executor | None = None,
        report: Report | None = None,
        verbose: bool = True,
        **settings: object,
    ) -> list[HyCOP]:
        """Accuracy against cost: models for at most ``points`` amounts of work, from the least that covers every
        process on the query's own grid to the most that ``refinement`` and ``max_steps`` (and ``max_work``) allow. In a
        ``folder`` each model has a folder of its own."""
        given = _checked_source(self, source)
        parts = self.dictionary.alone()
        run = Run(Source(given, held_out, self.equation), parts, seed, folder, resume, force, executor)
        models: list[HyCOP] = []
        with run.prepared(preset, settings, report, verbose) as (task, config, tell):
            for index, level in enumerate(front_levels(task, config, points)):
                part = None if run.folder is None else output_folder(run.folder / f"point{index}")
                found = HyCOP.of(run.learned(task, level, tell, part))
                # more work that buys nothing is not part of a front
                if not models or found.model.gate.error < models[-1].model.gate.error:
                    models.append(found)
        return models

    def query(
        self,
        u0: Array,
        params: Mapping[str, object],
        times: Sequence[float] | float,
        lengths: Sequence[float] | Array | None = None,
        boundary: Boundaries | None = None,
    ) -> Query:
        """The query that ``predict`` answers: every state at every time, sample by sample."""
        return query_of_arrays(self.model, u0, params, times, lengths, boundary)

    @overload
    def predict(
        self,
        u0: Array,
        params: Mapping[str, object],
        times: Sequence[float] | float,
        lengths: Sequence[float] | Array | None = None,
        boundary: Boundaries | None = None,
        *,
        tol: float | None = None,
        max_seconds: float | None = None,
    ) -> Array: ...

    @overload
    def predict(
        self,
        u0: XarrayDataset,
        *,
        times: Sequence[float] | float | None = None,
        boundary: Boundaries | None = None,
        tol: float | None = None,
        max_seconds: float | None = None,
    ) -> XarrayDataset: ...

    def predict(
        self,
        u0: Array | XarrayDataset,
        params: Mapping[str, object] | None = None,
        times: Sequence[float] | float | None = None,
        lengths: Sequence[float] | Array | None = None,
        boundary: Boundaries | None = None,
        *,
        tol: float | None = None,
        max_seconds: float | None = None,
    ) -> Array | XarrayDataset:
        """Solutions (batch, time, channel, *grid) at any times, each straight from u0, on any grid.

        A coefficient is a number, one per sample, or a field with the shape of the grid.
        Instead of ``u0``, ``params`` and ``lengths`` an xarray Dataset may be given, with the names of a dataset file
        (``Dataset.to_xarray``). The answers to its initial states then come as such a Dataset, initial states first.
        ``times`` count from them, and are the Dataset's own by default. ``tol`` and ``max_seconds`` as in ``answer``.

        Warns (``UntrustedWarning``) if a query lies outside the trained range; ``answer`` says which and why.
        """
        model = self.model
        if is_xarray(u0):
            if params is not None or lengths is not None:
                raise InvalidInputError("params and lengths: the xarray Dataset has its own; leave them out")
            data = Dataset.from_xarray(u0)  # type: ignore[arg-type]
            query = query_of_dataset(model, data, times, boundary)
            answer = operating.answer(model, self._points, query, tol, max_seconds)
            _warn_outside(answer.outside)
            return answered_in_xarray(answer, data)
        asked = query_of_arrays(model, u0, params, times, lengths, boundary)  # type: ignore[arg-type]
        if tol is None and max_seconds is None:
            states, outside = economy.predicted(model, asked)
        else:
            found = operating.answer(model, self._points, asked, tol, max_seconds)
            states, outside = found.states, found.outside
        _warn_outside(outside)
        return states.reshape(np.shape(u0)[0], -1, *np.shape(u0)[1:])

    def answer(
        self, query: Query | XarrayDataset, tol: float | None = None, max_seconds: float | None = None
    ) -> Answer:
        """Everything about a batch of queries: states, programs, work, features, estimated errors, and what is not to
        be trusted and why.

        A query comes from ``query(u0, params, times)``, from a problem (``problem.queries``) or a dataset (``.query``).
        An xarray Dataset with the names of a dataset file is asked at its own times.
        With ``tol`` programs and grids are refined, query by query, until the estimated relative error is at most that;
        ``answer.tolerance_met`` says which queries reached it. A front (``HyCOP.load`` of its folder) starts from the
        cheapest point that is likely to reach it. With ``max_seconds`` it answers each query by the most accurate point
        that is expected to take no longer.
        """
        if is_xarray(query):
            query = query_of_dataset(self.model, Dataset.from_xarray(query))  # type: ignore[arg-type]
        return operating.answer(self.model, self._points, self._checked(query), tol, max_seconds)

    def untrusted(
        self,
        u0: Array,
        params: Mapping[str, object],
        times: Sequence[float] | float,
        lengths: Sequence[float] | Array | None = None,
        boundary: Boundaries | None = None,
    ) -> Array:
        """True where a query lies outside training, (batch, time); ``answer`` gives the reasons."""
        query = self.query(u0, params, times, lengths, boundary)
        flags = [np.zeros(query.batch, dtype=bool), *self.model.outside_training(query).values()]
        return np.asarray(np.any(flags, axis=0)).reshape(np.shape(u0)[0], -1)

    def program(
        self,
        u0: Array,
        params: Mapping[str, object],
        t: float,
        lengths: Sequence[float] | Array | None = None,
        boundary: Boundaries | None = None,
    ) -> Program:
        """The program for the first of the states at one time."""
        return self.programs(self.query(real_numbers("u0", u0)[:1], params, t, lengths, boundary))[0]

    def programs(self, query: Query, dictionary: Dictionary | None = None) -> ProgramBatch:
        """A program for each query, to run with the model's dictionary or with another that has the same names. Outside
        training an economical model may name an unsplit solver that its dictionary does not have."""
        if dictionary is not None:
            return self.model.programs(self._checked(query), dictionary)
        return economy.programs(self.model, self._checked(query))

    def solve(self, query: Query) -> Outcome:
        """The states at the query times, and the work they took."""
        return economy.solve(self.model, self._checked(query))

    def trace(self, query: Query, steps: Sequence[int] | None = None) -> Trace:
        """The states after every step of the model's programs, or only after some ``steps``."""
        model, asked = economy.only_part(self.model, self._checked(query)), self.model.corrected(query)
        return trace(model.programs(query), model.dictionary, asked, refinement=model.refinement, steps=steps)

    def explore(self, data: Dataset | None = None) -> Any:
        """The studio of this model in a notebook: sliders, its program, its field step by step (extra ``studio``).
        ``data`` are queries to start from."""
        # the studio stands above the surrogate in the house, and Panel takes a second to import
        return import_module("hycop.studio").explore(self, data)

    def _checked(self, query: Query | XarrayDataset) -> Query:
        """Refuses a query of another equation, which would be answered without what the dictionary does not know."""
        if not isinstance(query, Query):
            raise InvalidInputError(
                f"query is a {type(query).__name__}: give a Query, as query(u0, params, times) or a dataset's .query"
            )
        self.model.equation.check_question(query.setting, self.model.box.axes)
        return query

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes a model folder. ``load`` restores the model to the bit."""
        save_model(self.model, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path, primitives: Mapping[str, Primitive] | None = None) -> HyCOP:
        """Loads a model folder; ``primitives`` gives, by name, those that no installed package offers. The folder of a
        front gives its most accurate model, which ``max_seconds`` and ``tol`` exchange for a cheaper one."""
        points = operating.points_at(Path(folder), primitives)
        loaded = cls.of(points[-1].model if points else load_model(folder, primitives))
        loaded._points = points
        return loaded


def _check_parts(dictionary: object, equation: object) -> None:
    if isinstance(dictionary, Problem):
        raise InvalidInputError(f"HyCOP composes a dictionary: give hycop.problem('{dictionary.name}').dictionary")
    if not isinstance(dictionary, Dictionary):
        raise InvalidInputError(
            f"HyCOP composes a Dictionary, not a {type(dictionary).__name__}: give hycop.Dictionary({{name: "
            "primitive}) or the dictionary of a problem"
        )
    if not isinstance(equation, Equation | None):
        raise InvalidInputError(f"equation is a {type(equation).__name__}: give a hycop.Equation, or nothing")


def _checked_source(model: object, source: Problem | Dataset | None) -> Problem | Dataset:
    if not isinstance(model, HyCOP):  # called on the class
        raise InvalidInputError("a model composes a dictionary: call HyCOP(problem.dictionary).fit(problem), or front")
    if source is None:
        raise InvalidInputError("nothing to learn from: give hycop.problem(name) or a hycop.Dataset")
    return source


def _first_policy(start: object) -> Start | None:
    if start is None:
        return None
    if not isinstance(start, HyCOP):
        raise InvalidInputError(
            f"warm_start is a {type(start).__name__}: give a model that fit has made, or HyCOP.load(folder)"
        )
    return start.model.policy, start.model.theta


def _warn_outside(outside: Mapping[str, Array]) -> None:
    if outside:
        flags = np.logical_or.reduce(list(outside.values()))
        count, reasons = np.count_nonzero(flags), ", ".join(outside)
        told = f"{count} of {flags.size} queries lie outside the trained range of {reasons}"
        warnings.warn(told, UntrustedWarning, stacklevel=3)
