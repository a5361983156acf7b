"""The surrogate: a dictionary with a policy that has learned to compose it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from hycop.data import Dataset, load, save
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError
from hycop.execution import Outcome, probe
from hycop.executors import Executor
from hycop.features import FEATURES, FeatureMap, available, clock
from hycop.files import output_folder
from hycop.grid import Array, Grid
from hycop.model import Model, coefficient_ranges, constant_coefficients
from hycop.primitive import Primitive
from hycop.problems import PROBLEMS, Problem
from hycop.program import Program, ProgramBatch
from hycop.query import Query, Setting
from hycop.storage import load_model, save_model
from hycop.training import Report, Task, TrainingConfig, configured, train
from hycop.training.checkpoint import DATA, another_run, begun, claimed
from hycop.training.front import work_levels

FEWEST_HELD_OUT = 32
"""Held-out queries that a dataset of one's own must leave for the gate."""

GENERAL = tuple(name for name in FEATURES if not name.startswith(("raw_", "cell_", "unit_")))
RAW = tuple(name for name in FEATURES if name.startswith("raw_"))


class UntrustedWarning(UserWarning):
    """A query lies outside what the policy was trained on."""


class NotFittedError(HyCOPError, RuntimeError):
    """The model has no policy yet."""


class HyCOP:
    """A surrogate of a PDE solver: ``fit`` learns how to compose the dictionary, ``predict`` answers at any time.

    >>> import hycop
    >>> model = HyCOP(hycop.problem("ad1d").dictionary)
    >>> model
    HyCOP(advection, diffusion; not fitted)
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._model: Model | None = None

    def __repr__(self) -> str:
        state = "not fitted" if self._model is None else f"fitted on {self._model.problem}"
        return f"HyCOP({', '.join(self.dictionary)}; {state})"

    @classmethod
    def of(cls, model: Model) -> HyCOP:
        surrogate = cls(model.dictionary)
        surrogate._model = model
        return surrogate

    @property
    def model(self) -> Model:
        if self._model is None:
            raise NotFittedError("this model has not learned anything yet: call fit(problem) or HyCOP.load(folder)")
        return self._model

    def fit(
        self,
        source: Problem | Dataset,
        held_out: Dataset | None = None,
        *,
        preset: str = "quick",
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        executor: Executor | None = None,
        report: Report = lambda entry: None,
        **settings: object,
    ) -> HyCOP:
        """Learns from a problem, whose queries it draws, or from a dataset, of which it holds a third back for the gate
        unless others are given as ``held_out``; ``settings`` change those of the preset."""
        _checked_source(source)
        config = configured(preset, {**_suited(source, preset), **settings})
        where = None if folder is None else Path(folder)
        with nullcontext() if where is None else claimed(where, resume):
            task, named = _task(source, held_out, self.dictionary, config, seed, where if resume else None, force)
            if where is not None:
                _keep(task, where, force)
            self._model = _learned(
                task, named, config, seed, folder=where, resume=resume, force=force, executor=executor, report=report
            )
        return self

    def front(
        self,
        source: Problem | Dataset,
        held_out: Dataset | None = None,
        *,
        points: int = 6,
        preset: str = "quick",
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        executor: Executor | None = None,
        report: Report = lambda entry: None,
        **settings: object,
    ) -> list[HyCOP]:
        """What accuracy costs: models for at most ``points`` amounts of work, from the least that covers every process
        to the most that ``max_steps`` (and ``max_work``) allow. With a folder each has one of its own there."""
        config = configured(preset, {**_suited(source, preset), **settings})
        where = None if folder is None else Path(folder)
        models: list[HyCOP] = []
        with nullcontext() if where is None else claimed(where, resume):
            task, named = _task(source, held_out, self.dictionary, config, seed, where if resume else None, force)
            if where is not None:
                _keep(task, where, force)
            for index, most in enumerate(work_levels(task, config, points)):
                part = None if where is None else output_folder(where / f"point{index}")
                level = config.model_copy(update={"max_work": most})
                options = {"folder": part, "resume": resume, "force": force, "executor": executor, "report": report}
                found = HyCOP.of(_learned(task, named, level, seed, **options))
                # more work that buys nothing is not part of a front
                if not models or found.model.held_out_error < models[-1].model.held_out_error:
                    models.append(found)
        return models

    def query(
        self,
        u0: Array,
        params: Mapping[str, object],
        times: Sequence[float] | float,
        lengths: Sequence[float] | Array | None = None,
        boundary: str | Sequence[str] | None = None,
    ) -> Query:
        """The questions that ``predict`` answers: every state at every time, sample-major."""
        model = self.model
        u0 = np.asarray(u0)
        if u0.ndim != 2 + len(model.boundary):
            raise InvalidInputError(
                f"u0 has shape {u0.shape}: (batch, channel, *grid) with {len(model.boundary)} grid axes is needed"
            )
        if not u0.shape[0]:
            raise InvalidInputError(f"u0 has shape {u0.shape}: at least one state is needed")
        axes = len(model.boundary)
        try:
            given = np.asarray(model.lengths if lengths is None else lengths, dtype=np.float64)
            box = np.broadcast_to(given, (u0.shape[0], axes))
            asked = np.atleast_1d(np.asarray(times, dtype=np.float64))
        except (TypeError, ValueError):
            raise InvalidInputError(
                f"lengths {lengths}, times {times}: a length for each of {axes} axes (or a row for each state) and "
                "numbers for times are needed"
            ) from None
        known = PROBLEMS.get(model.problem)
        for name in params:
            if known is not None and name not in known.parameters:
                raise UnknownNameError("parameter", name, known.parameters, f"(of problem {known.name})")
        grid = Grid(u0.shape[2:], box, model.boundary).with_boundary(model.boundary if boundary is None else boundary)
        setting = Setting(grid, model.channels, dict(params))  # type: ignore[arg-type]
        return Query(u0, setting, np.zeros(u0.shape[0])).at(asked)

    def predict(
        self,
        u0: Array,
        params: Mapping[str, object],
        times: Sequence[float] | float,
        lengths: Sequence[float] | Array | None = None,
        boundary: str | Sequence[str] | None = None,
    ) -> Array:
        """Solutions (batch, time, channel, *grid) at any times, each straight from u0, on any grid.

        Warns (``UntrustedWarning``) if a query lies outside the trained range; ``untrusted`` says which.
        """
        query = self.query(u0, params, times, lengths, boundary)
        flags, reasons = self.doubts(query)
        if flags.any():
            warnings.warn(
                f"{int(flags.sum())} of {query.batch} queries lie outside the trained range of {', '.join(reasons)}",
                UntrustedWarning,
                stacklevel=2,
            )
        batch = np.shape(u0)[0]
        return self.model.measure(query).states.reshape(batch, -1, *np.shape(u0)[1:])

    def untrusted(
        self,
        u0: Array,
        params: Mapping[str, object],
        times: Sequence[float] | float,
        lengths: Sequence[float] | Array | None = None,
        boundary: str | Sequence[str] | None = None,
    ) -> Array:
        """True where a query lies outside what was trained: the range of a feature, the boundary; (batch, time)."""
        query = self.query(u0, params, times, lengths, boundary)
        return self.doubts(query)[0].reshape(np.shape(u0)[0], -1)

    def doubts(self, query: Query) -> tuple[Array, list[str]]:
        """Which queries (batch,) are not to be trusted, and why; the initial state itself always is."""
        later = query.time > 0
        found = {name: outside & later for name, outside in self.model.doubts(query).items()}
        reasons = [name for name, outside in found.items() if outside.any()]
        flags: Array = np.any([np.zeros(query.batch, dtype=bool), *found.values()], axis=0)
        other = [f"primitive {name}" for name in self.model.untrained]
        if query.grid.boundary != (self.model.trained_boundary or self.model.boundary):
            other.append(f"boundary {query.grid.boundary_name}")
        return (flags | later if other else flags), [*reasons, *other]

    def program(
        self,
        u0: Array,
        params: Mapping[str, object],
        t: float,
        lengths: Sequence[float] | Array | None = None,
        boundary: str | Sequence[str] | None = None,
    ) -> Program:
        """The program for the first of the states at one time."""
        return self.model.programs(self.query(np.asarray(u0)[:1], params, t, lengths, boundary))[0]

    def solve(self, query: Query) -> Outcome:
        return self.model.measure(query)

    def measure(self, query: Query, dictionary: Dictionary | None = None) -> Outcome:
        return self.model.measure(query, dictionary)

    def programs(self, query: Query, dictionary: Dictionary | None = None) -> ProgramBatch:
        return self.model.programs(query, dictionary)

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Writes a model folder, from which ``load`` makes this model again to the bit."""
        save_model(self.model, folder, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | Path, primitives: Mapping[str, Primitive] | None = None) -> HyCOP:
        """The model of a folder; ``primitives`` gives those that no package offers, by name in the dictionary."""
        return cls.of(load_model(folder, primitives))

    def __str__(self) -> str:
        return "HyCOP"


def _checked_source(source: object) -> None:
    if not isinstance(source, Problem | Dataset):
        raise InvalidInputError(f"{source!r}: fit learns from a problem (hycop.problem(name)) or a Dataset")


def _suited(source: Problem | Dataset, preset: str) -> Mapping[str, object]:
    """Settings that suit the problem, if it is known."""
    known = source if isinstance(source, Problem) else PROBLEMS.get(source.problem)
    return {} if known is None else known.suited(preset)


def _keep(task: Task, folder: Path, force: bool) -> None:
    """Writes the queries of a run to its folder, so that a resumed run does not solve them again; they take the place
    of those of a run that did not get as far as a checkpoint, or that was replaced by ``force``."""
    output_folder(folder)
    for name, data in zip(DATA, (task.train, task.held_out), strict=True):
        if force or not (begun(folder) and (folder / name).exists()):
            save(data, folder / name)


def _learned(task: Task, problem: str, config: TrainingConfig, seed: int, **options: Any) -> Model:
    setting, own = task.train.setting, problem not in PROBLEMS
    queries = [data.query for data in (task.train, task.held_out)]
    longest = np.concatenate([clock(query) for query in queries]).max(axis=0)
    done = train(task, config, seed, **options)
    return Model(
        problem=problem,
        processes=task.processes,
        channels=setting.channels,
        lengths=tuple(setting.grid.lengths[0].tolist()),
        boundary=setting.grid.boundary,
        dictionary=task.dictionary,
        policy=done.policy,
        theta=done.theta,
        view=done.view,
        longest=tuple(longest.tolist()),
        gate=done.gate,
        config=config,
        seed=seed,
        data_hash=done.data_hash,
        metrics={"train_loss": done.loss, "held_out_error": done.gate.learned_error},
        refinement=config.refinement,
        static_theta=done.static_theta,
        constants=constant_coefficients(queries),
        ranges=coefficient_ranges(queries, done.view.features if own else None),
        longest_time=(max(float(query.time.max()) for query in queries) or None) if own else None,
    )


def _task(
    source: Problem | Dataset,
    judges: Dataset | None,
    dictionary: Dictionary,
    config: TrainingConfig,
    seed: int,
    kept: Path | None,
    force: bool = False,
) -> tuple[Task, str]:
    """What is to be learned from a problem (it draws the queries, or finds them in a run folder that it kept) or from a
    dataset (it holds some back, unless others are given)."""
    if isinstance(source, Problem):
        split = "trajectory" if config.horizon == "trajectory" else "train"
        known: Problem | None = source
        # what cannot be run is known before the truth is solved
        probe(dictionary, source.queries(1, split, seed, shape=config.shape), config.refinement)
        learn = _drawn(source, config.samples, split, seed, config.shape, kept, DATA[0], force)
        # another stream of the same distribution: no query is in both
        other = seed + 2**32
        held_out = judges or _drawn(source, config.validation, split, other, config.shape, kept, DATA[1], force)
    else:
        known = PROBLEMS.get(source.problem)
        arranged = known.checked if known is not None else (lambda data: data)
        source = arranged(source)
        learn, held_out = (source, arranged(judges)) if judges is not None else _parted(source)
        if held_out.problem != learn.problem:
            raise InvalidInputError(f"the held-out data are of problem '{held_out.problem}', not '{learn.problem}'")
        if set(held_out.setting.params) != set(learn.setting.params):
            ours, theirs = (", ".join(data.setting.params) or "none" for data in (learn, held_out))
            raise InvalidInputError(f"the held-out data have the coefficients {theirs}, but the others {ours}")
        asked = held_out.query.batch
        if asked < FEWEST_HELD_OUT:
            raise InvalidInputError(
                f"the held-out data are {asked} queries: at least {FEWEST_HELD_OUT} are needed for the gate"
            )
        for data in (learn, held_out):
            probe(dictionary, data.at(-1).query, config.refinement)
    query = learn.at(-1).query
    processes = known.processes if known is not None else tuple(sorted(dictionary.processes))
    names = known.features if known is not None else available(GENERAL, query)
    chosen = {"dimensionless": names, "raw": available(RAW, query), "none": ()}[config.features]
    gains = known.gain_features if known is not None else available(("cell_peclet",), query)
    task = Task(
        dictionary,
        processes,
        learn,
        held_out,
        FeatureMap(tuple(chosen)),
        FeatureMap(gains if config.budget == "gain" else ()),
    )
    return task, learn.problem


def _drawn(
    source: Problem,
    samples: int,
    split: str,
    seed: int,
    shape: tuple[int, ...] | None,
    kept: Path | None,
    name: str,
    force: bool,
) -> Dataset:
    if kept is not None and (kept / name).exists():
        found = load(kept / name, problem=source.name)
        # the folder may hold the data of another run, which was killed before its first checkpoint
        wanted = (samples, split, seed, source.shape if shape is None else tuple(shape))
        if (found.samples, found.split, found.seed, found.setting.grid.shape) == wanted:
            return found
        if begun(kept) and not force:
            raise another_run(kept)
    return source.sample(samples, split, seed, shape=shape)


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
