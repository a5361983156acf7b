"""The surrogate: an equation, a dictionary, and a policy that has learned to compose it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, overload

import numpy as np

from hycop import economy, markup
from hycop.answer import Answer
from hycop.boundary import Boundaries
from hycop.data import Dataset, XarrayDataset, is_xarray
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, HyCOPWarning, InvalidInputError
from hycop.execution import Outcome, Trace, trace
from hycop.executors import Executor
from hycop.files import output_folder
from hycop.grid import Array
from hycop.model import Box, Model, Record
from hycop.pde import Equation
from hycop.primitive import Primitive
from hycop.problems import Problem
from hycop.program import Program, ProgramBatch
from hycop.progress import training_bar
from hycop.query import Query, real_numbers
from hycop.questions import answered_in_xarray, query_of_arrays, query_of_dataset
from hycop.scope import Scope
from hycop.storage import load_model, save_model
from hycop.training import Progress, Report, Start, Task, TrainingConfig, configured, train
from hycop.training.checkpoint import claimed
from hycop.training.front import work_levels
from hycop.training.source import Source, keep


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
        run = _Run(Source(given, held_out, self.equation), self.dictionary, seed, folder, resume, force, executor)
        with run.prepared(preset, settings, report, verbose) as (task, config, tell):
            self._model = run.learned(task, config, tell, run.folder, begin)
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
        process to the most that ``max_steps`` (and ``max_work``) allow. In a ``folder`` each model has a folder of its
        own."""
        given = _checked_source(self, source)
        run = _Run(Source(given, held_out, self.equation), self.dictionary, seed, folder, resume, force, executor)
        models: list[HyCOP] = []
        with run.prepared(preset, settings, report, verbose) as (task, config, tell):
            for index, most in enumerate(work_levels(task, config, points)):
                part = None if run.folder is None else output_folder(run.folder / f"point{index}")
                level = config.model_copy(update={"max_work": most})
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
    ) -> Array: ...

    @overload
    def predict(
        self,
        u0: XarrayDataset,
        *,
        times: Sequence[float] | float | None = None,
        boundary: Boundaries | None = None,
    ) -> XarrayDataset: ...

    def predict(
        self,
        u0: Array | XarrayDataset,
        params: Mapping[str, object] | None = None,
        times: Sequence[float] | float | None = None,
        lengths: Sequence[float] | Array | None = None,
        boundary: Boundaries | None = None,
    ) -> Array | XarrayDataset:
        """Solutions (batch, time, channel, *grid) at any times, each straight from u0, on any grid.

        A coefficient is a number, one per sample, or a field with the shape of the grid.
        Instead of ``u0``, ``params`` and ``lengths`` an xarray Dataset may be given, with the names of a dataset file
        (``Dataset.to_xarray``). The answers to its initial states then come as such a Dataset, initial states first.
        ``times`` count from them, and are the Dataset's own by default.

        Warns (``UntrustedWarning``) if a query lies outside the trained range; ``answer`` says which and why.
        """
        model = self.model
        if is_xarray(u0):
            if params is not None or lengths is not None:
                raise InvalidInputError("params and lengths: the xarray Dataset has its own; leave them out")
            data = Dataset.from_xarray(u0)  # type: ignore[arg-type]
            answer = economy.answer(model, query_of_dataset(model, data, times, boundary))
            _warn_outside(answer.outside)
            return answered_in_xarray(answer, data)
        asked = query_of_arrays(model, u0, params, times, lengths, boundary)  # type: ignore[arg-type]
        states, outside = economy.predicted(model, asked)
        _warn_outside(outside)
        return states.reshape(np.shape(u0)[0], -1, *np.shape(u0)[1:])

    def answer(self, query: Query | XarrayDataset, tol: float | None = None) -> Answer:
        """Everything about a batch of queries: states, programs, work, features, estimated errors, and what is not to
        be trusted and why.

        A query comes from ``query(u0, params, times)``, from a problem (``problem.queries``) or a dataset (``.query``).
        An xarray Dataset with the names of a dataset file is asked at its own times.
        With ``tol`` programs and grids are refined, query by query, until the estimated relative error is at most that;
        ``answer.tolerance_met`` says which queries reached it.
        """
        if is_xarray(query):
            query = query_of_dataset(self.model, Dataset.from_xarray(query))  # type: ignore[arg-type]
        return economy.answer(self.model, self._checked(query), tol)

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
        """Loads a model folder; ``primitives`` gives, by name, those that no installed package offers."""
        return cls.of(load_model(folder, primitives))


@dataclass(frozen=True)
class _Run:
    """What all models of one training run share."""

    source: Source
    dictionary: Dictionary
    seed: int
    where: str | Path | None
    resume: bool
    force: bool
    executor: Executor | None

    @property
    def folder(self) -> Path | None:
        return None if self.where is None else Path(self.where)

    @contextmanager
    def prepared(
        self, preset: str, settings: Mapping[str, object], report: Report | None, verbose: bool
    ) -> Iterator[tuple[Task, TrainingConfig, Report]]:
        """The task with its data, in a folder that is ours alone, while progress is shown."""
        config = configured(preset, {**self.source.suited(preset), **settings})
        with (
            training_bar("data", verbose) as show,
            nullcontext() if self.folder is None else claimed(self.folder, self.resume),
        ):
            kept = self.folder if self.resume else None
            task = self.source.task(self.dictionary, config, self.seed, kept, self.force)
            if self.folder is not None:
                keep(task, self.folder, self.force)
            yield task, config, show if report is None else _both(show, report)

    def learned(
        self, task: Task, config: TrainingConfig, report: Report, folder: Path | None, start: Start | None = None
    ) -> Model:
        done = train(
            task,
            config,
            self.seed,
            folder=folder,
            resume=self.resume,
            force=self.force,
            executor=self.executor,
            report=report,
            start=start,
        )
        grid = task.train.setting.grid
        model = Model(
            equation=task.equation,
            dictionary=task.dictionary,
            policy=done.policy,
            theta=done.theta,
            scope=Scope.of(task.equation, task.view, [data.query for data in (task.train, task.held_out)]),
            gate=done.gate,
            box=Box(tuple(grid.lengths[0].tolist()), grid.boundary),
            record=Record(
                config,
                self.seed,
                done.data_hash,
                {"train_loss": done.loss, "held_out_error": done.gate.learned_error},
            ),
            refinement=config.refinement,
            static_theta=done.static_theta,
            economical=True,
        )
        kept = replace(model, trained=model.answered(task.train), held_out=model.answered(task.held_out))
        return kept.calibrated(task.held_out)


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
        flags = np.any(list(outside.values()), axis=0)
        told = f"{int(flags.sum())} of {flags.size} queries lie outside the trained range of {', '.join(outside)}"
        warnings.warn(told, UntrustedWarning, stacklevel=3)


def _both(show: Report, listener: Report) -> Report:
    def report(entry: Progress) -> None:
        show(entry)
        listener(entry)

    return report
