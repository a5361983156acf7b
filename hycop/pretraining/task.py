"""What a network is to learn: steps of the trusted flow of some processes, or pairs of frames of a dataset.

A network that has only seen initial states errs much more on states half-way. So half of the examples start from
states that the whole equation has made. A long duration is taken in steps of the trained size: short steps are so much
easier to learn that half of the query time gave half the error of a quarter beyond it (``adr2d``, same training).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hycop.data import Dataset
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.execution import run
from hycop.grid import Array
from hycop.networks import Architecture, find_family
from hycop.pretraining.config import PretrainingConfig
from hycop.primitives.learned import NeuralOperator, Numbers, units_for
from hycop.problems import PROBLEMS, Problem
from hycop.query import Query, Setting
from hycop.references import Reference
from hycop.schemes import splitting

LONGEST = 0.5
"""The longest trained duration, over the longest query time of split ``id``."""

CONSERVED = 1e-6
"""Largest change of a mean, over the largest change of a cell, of a channel that the trusted flow conserves."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of the trusted flow: states before and after (sample, channel, *grid), durations and settings."""

    before: Array
    duration: Array
    after: Array
    setting: Setting


@dataclass(frozen=True, eq=False)
class Task:
    """What a network is to learn: the flow of some processes of a problem, from trusted solvers or from data."""

    problem: Problem
    processes: tuple[str, ...]
    config: PretrainingConfig
    family: str
    seed: int
    data: Dataset | None = None

    def __post_init__(self) -> None:
        for process in self.processes:
            if process not in self.problem.processes:
                raise UnknownNameError("process", process, self.problem.processes, f"(of {self.problem.name})")
        if not self.processes or len(set(self.processes)) < len(self.processes):
            raise InvalidInputError("processes: give at least one, each once, as advection,diffusion")
        self.problem.grid(self.config.shape)  # refuses a shape that cannot be
        if self.data is not None:
            self._check_data(self.data)

    def _check_data(self, data: Dataset) -> None:
        known = PROBLEMS.get(data.problem)
        solved = set(self.problem.processes if known is None else known.processes)
        if solved != set(self.processes):
            raise IncompatibleError(
                f"the data are solutions of {', '.join(sorted(solved))}, but the network is to advance "
                f"{', '.join(sorted(self.processes))}; give data of these processes alone, or none"
            )
        if data.samples < 4:
            raise InvalidInputError(f"the data have {data.samples} samples: at least 4 are needed to hold some back")

    @cached_property
    def trusted(self) -> Reference:
        """The trusted solver of the processes alone."""
        shape = self.config.shape or self.problem.shape
        return self.problem.reference(frozenset(self.processes), self.problem.boundary, shape)

    @property
    def longest(self) -> float:
        if self.config.longest is not None:
            return self.config.longest
        if self.data is not None:
            times = self.data.times
            return float(np.max(np.diff(times, axis=1) if self.config.pairs == "next" else times[:, -1] - times[:, 0]))
        asked = self.problem.splits.get("id") or next(iter(self.problem.splits.values()))
        return LONGEST * asked.time[1]

    def steps(self, index: int, count: int) -> Steps:
        """Round ``index`` of the examples, round −1 for those held out; the same for the same seed."""
        rng = np.random.Generator(np.random.Philox(key=[self.seed, index + 2**32]))
        return self._from_data(self.data, rng, index, count) if self.data is not None else self._drawn(rng, count)

    def _drawn(self, rng: np.random.Generator, count: int) -> Steps:
        """Half-way states come from the same queries as the initial ones, of which there are so many the fewer."""
        ahead = round(self.config.midway * count)
        asked = max(ahead, count - ahead)
        query = self.problem.queries(asked, "train", int(rng.integers(2**62)), shape=self.config.shape)
        samples = np.concatenate([np.arange(count - ahead), np.arange(ahead)])
        setting = query.setting.take(samples)
        before = np.concatenate([query.u0[: count - ahead], ahead_of(self.problem, query, rng)[:ahead]])
        linear = find_family(self.family).linear
        rough = (0.1 if linear else 0.0) if self.config.rough is None else self.config.rough
        if rough:
            noisy = np.arange(count) % 2 == 0
            scale = before.std(axis=tuple(range(2, before.ndim)), keepdims=True)
            before[noisy] += rough * (scale * rng.standard_normal(before.shape))[noisy]
        # no duration at all teaches nothing
        duration = self.longest * (0.02 + 0.98 * rng.random(count))
        order = rng.permutation(count)
        before, duration, setting = before[order], duration[order], setting.take(order)
        return Steps(before, duration, self.trusted.flow(before, duration, setting), setting)

    def _from_data(self, data: Dataset, rng: np.random.Generator, index: int, count: int) -> Steps:
        """Pairs of frames, as many of each sample as possible; the last sixth of the samples, at least one, is held
        out."""
        first = data.samples - max(1, data.samples // 6)
        chosen = np.arange(first, data.samples) if index < 0 else np.arange(first)
        samples = np.concatenate([rng.permutation(chosen) for _ in range(-(-count // chosen.size))])[:count]
        frames = data.times.shape[1]
        if self.config.pairs == "next":
            pair = rng.integers(0, frames - 1, count)[:, None] + np.arange(2)
        else:
            pair = np.sort(np.argsort(rng.random((count, frames)), axis=1)[:, :2], axis=1)
        before, after = (data.states[samples, pair[:, part]] for part in (0, 1))
        if self.config.noise and index >= 0:
            scale = self.config.noise * data.states.std(axis=(0, 1, *range(3, data.states.ndim)), keepdims=True)[0]
            before = before + scale * rng.standard_normal(before.shape)
        duration = data.times[samples, pair[:, 1]] - data.times[samples, pair[:, 0]]
        return Steps(before, duration, after, data.setting.take(samples))

    def coefficients(self) -> tuple[str, ...]:
        """The coefficients that change the trusted flow of the processes."""
        query = self.problem.queries(2, "train", self.seed, shape=self.config.shape)
        step = np.full(2, 0.5 * self.longest)
        here = self.trusted.flow(query.u0, step, query.setting)
        seen = []
        for name, values in query.setting.params.items():
            other = replace(query.setting, params={**query.setting.params, name: 0.9 * values})
            if not np.array_equal(self.trusted.flow(query.u0, step, other), here):
                seen.append(name)
        return tuple(seen)

    def blank(self) -> NeuralOperator:
        """The primitive before it has weights; its ranges are those of a few rounds."""
        few = _joined([self.steps(index, self.config.held_out) for index in range(-1, 3)])
        kind, names = find_family(self.family), [channel.name for channel in self.problem.channels]
        # a cell by itself does not know the size of its sample
        units = "fixed" if kind.pointwise else self.config.units or units_for(self.problem.equation)
        coefficients = self.coefficients()
        told = Numbers.of(
            self.problem.equation, coefficients, few.before, few.setting, self.longest, units, not kind.linear
        )
        unit = told.unit(few.before, few.setting).per_cell(len(self.problem.shape))
        before, after = few.before / unit, few.after / unit
        sizes = {"axes": len(self.problem.shape), "channels": len(names), "numbers": len(told.kinds)}
        chosen = {key: getattr(self.config, key) for key in kind.options}
        options = {key: value for key, value in chosen.items() if value is not None}
        plan = Architecture.of({"family": self.family, **sizes, "timed": len(told.timed), **options})
        return NeuralOperator(
            plan.to_json(),
            tuple(sorted(self.processes)),
            {name: _extent([before[:, i], after[:, i]]) for i, name in enumerate(names)},
            told.kinds,
            told.ranges,
            self.longest,
            self.problem.boundary if self.data is None else self.data.setting.grid.boundary,
            units,
            {name: _spread(before[:, i]) for i, name in enumerate(names)},
            tuple(name for i, name in enumerate(names) if kind.conservative and _keeps_total(few, i)),
        )


def _joined(parts: Sequence[Steps]) -> Steps:
    """Steps of several rounds as one."""
    before, duration, after = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("before", "duration", "after")
    )
    return Steps(before, duration, after, Setting.joined([part.setting for part in parts]))


def _keeps_total(steps: Steps, channel: int) -> bool:
    """Whether no step changes the total of a channel."""
    change = (steps.after - steps.before)[:, channel].reshape(len(steps.before), -1)
    return bool(np.abs(change.mean(axis=1)).max() <= CONSERVED * np.abs(change).max())


def ahead_of(problem: Problem, query: Query, rng: np.random.Generator) -> Array:
    """States some part of the way to the query time. They are only where steps begin, so a splitting will do."""
    between = replace(query, time=query.time * rng.random(query.batch))
    return run(splitting("strang x4").programs(between, problem.dictionary), problem.dictionary, between)


def _extent(parts: Sequence[Array]) -> tuple[float, float]:
    low, high = min(float(part.min()) for part in parts), max(float(part.max()) for part in parts)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _spread(values: Array) -> tuple[float, float]:
    """Mean and standard deviation; 1 for a channel that does not vary."""
    return float(values.mean()), float(values.std()) or 1.0
