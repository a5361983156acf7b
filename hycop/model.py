"""What a trained surrogate is: an equation, a dictionary, a policy with its theta, and what it may be trusted with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.equation import Equation
from hycop.errors import InvalidSampleError
from hycop.execution import Outcome, measure
from hycop.features import Observed
from hycop.grid import Array, changed
from hycop.policy import Policy, SlotPolicy
from hycop.program import EMPTY, ProgramBatch
from hycop.query import Query
from hycop.scope import TIME_TOLERANCE, Scope, Values, View, outside_primitives
from hycop.training import Gate, TrainingConfig

MOST_SEGMENTS = 1024
"""A query is cut into at most this many parts, each answered by a program of its own."""

MOST_SUBSTEPS = 64
"""Programs are cut at most this many times finer than their length asks for."""


@dataclass(frozen=True)
class Box:
    """The box that a model answers in unless told otherwise."""

    lengths: tuple[float, ...]
    boundary: tuple[str, ...]

    @property
    def axes(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, eq=False)
class Record:
    """How a model came about: settings, seed, data and metrics of its training, and what was swapped since."""

    config: TrainingConfig
    seed: int
    data_hash: str
    metrics: Mapping[str, float]
    changes: tuple[str, ...] = ()


class Composition(NamedTuple):
    """Programs for a batch of queries, the features that led to them, and which queries lie outside training, by the
    reason."""

    programs: ProgramBatch
    values: Values
    outside: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Answer:
    """What a model says to a batch of queries: states (batch, channel, *grid), the programs that gave them, their work
    (batch,), the features by name (batch,), and ``outside``: which answers lie outside training, by the reason."""

    query: Query
    programs: ProgramBatch
    states: Array
    work: Array
    features: Mapping[str, Array]
    outside: Mapping[str, Array]

    @property
    def untrusted(self) -> Array:
        """Which answers are not to be trusted, (batch,)."""
        flags = np.zeros(self.query.batch, dtype=bool)
        for outside in self.outside.values():
            flags |= outside
        return flags

    @property
    def reasons(self) -> tuple[tuple[str, ...], ...]:
        """Why each answer is not to be trusted; nothing for those that are."""
        return tuple(
            tuple(name for name, outside in self.outside.items() if outside[sample])
            for sample in range(self.query.batch)
        )


@dataclass(frozen=True, eq=False)
class Model:
    """All that a trained surrogate is, as immutable data; a model folder holds exactly this.

    Programs run on a grid ``refinement`` times finer than the query's, and ``substeps`` times as finely as their length
    asks for. ``static_theta`` is that of the ablation learned beside it: one program for all queries.
    """

    equation: Equation
    dictionary: Dictionary
    policy: Policy
    theta: Array
    scope: Scope
    gate: Gate
    box: Box
    record: Record
    refinement: int = 1
    substeps: int = 1
    static_theta: Array | None = None

    def answer(self, query: Query) -> Answer:
        """The states at the query times, with everything that led to them."""
        programs, values, outside = self.compose(query)
        states, work = measure(programs, self.dictionary, query, refinement=self.refinement)
        features = dict(zip(self.scope.view.features.names, values.features.T, strict=True))
        return Answer(query, programs, states, work, features, outside)

    def solve(self, query: Query) -> Outcome:
        """The states at the query times, and the work they took."""
        return measure(self.programs(query), self.dictionary, query, refinement=self.refinement)

    def compose(self, query: Query) -> Composition:
        """A program for each query, and what it was written from."""
        seen = Observed(query, self.equation)
        values = self.scope.view.values(seen)
        programs = self._programs(seen, values)
        outside = self.scope.outside(query, values) | outside_primitives(programs, self.dictionary, query)
        return Composition(programs, values, outside)

    def programs(self, query: Query, dictionary: Dictionary | None = None) -> ProgramBatch:
        """A program for each query, to run with the model's dictionary or with another that has the same names."""
        model = self if dictionary is None else replace(self, dictionary=dictionary)
        seen = Observed(query, self.equation)
        return model._programs(seen, self.scope.view.values(seen))

    def outside_training(self, query: Query) -> Mapping[str, Array]:
        """Which queries (batch,) lie outside what was trained, by the reason."""
        return self.compose(query).outside

    def _programs(self, seen: Observed, values: Values) -> ProgramBatch:
        """The policy's programs, or the classical ones where the gate has decided so; for times beyond the training's
        either is repeated, or the classical one follows the policy's."""
        query, segments = seen.query, self.segments(seen)
        part, own = query, values
        if segments.max(initial=1) > 1:
            part = changed(query, time=query.time / segments)
            own = self.scope.view.values(Observed(part, self.equation))
        if not self.gate.kept:
            return _repeated(self._classical(part), segments)
        learned = self.policy.programs(self.theta[None], self.scope.view.inputs(own, part.time))
        learned = learned.with_substeps(self.record.config.substeps)
        if self.gate.classical_when_repeated and (segments > self.substeps).any():  # for the time beyond training's
            learned = _repeated(learned, np.full_like(segments, self.substeps))
            learned = _followed(learned, _repeated(self._classical(part), segments - self.substeps))
        else:
            learned = _repeated(learned, segments)
        outside = np.zeros(query.batch, dtype=bool)
        if self.gate.classical_when_clipped:
            outside |= self.scope.view.outside(values).any(axis=1)
        if self.gate.classical_when_far:
            outside |= self.scope.far(query, own)
        return _chosen(outside, _repeated(self._classical(part), segments), learned) if outside.any() else learned

    def _classical(self, query: Query) -> ProgramBatch:
        return self.gate.scheme.programs(query, self.dictionary)

    def segments(self, seen: Observed) -> Array:
        """Into how many equal parts each query time is cut: so many that no part is longer than in training, times
        ``substeps``."""
        ratio = self.scope.ratio(seen)
        segments = np.maximum(1.0, np.ceil(ratio - TIME_TOLERANCE)) * self.substeps
        if not (segments <= MOST_SEGMENTS).all():
            worst = int(np.argmax(np.nan_to_num(segments, nan=np.inf)))
            finer = f"that are cut {self.substeps} times finer " if self.substeps > 1 else ""
            raise InvalidSampleError(
                worst,
                f": time {seen.time[worst]:g} is {ratio[worst]:.3g} times the longest trained; programs {finer}are "
                f"repeated at most {MOST_SEGMENTS // self.substeps} times: ask for a shorter time",
            )
        return segments.astype(np.int64)

    def opened(self) -> Model:
        """The policy as it was learned, whatever the gate decided."""
        return replace(self, gate=self.gate.opened())

    def classical(self) -> Model:
        """The opponent of its gate: the best classical scheme at equal work, repeated as its programs are."""
        return replace(self, gate=self.gate.closed())

    def static(self) -> Model | None:
        """The ablation that was learned beside it: the first pattern, one program for all queries."""
        if self.static_theta is None or not isinstance(self.policy, SlotPolicy):
            return None
        view = self.scope.view
        blind = replace(View.nothing(), gain_features=view.gain_features, gain_ranges=view.gain_ranges)
        return replace(
            self.opened(),
            policy=self.policy.alone(),
            theta=self.static_theta,
            scope=replace(self.scope, view=blind),
            static_theta=None,
        )


def _repeated(once: ProgramBatch, segments: Array) -> ProgramBatch:
    """Each program as it stands, as often as its entry (batch,) says."""
    longest = int(segments.max(initial=1))
    if longest == 1 and (segments == 1).all():
        return once
    ops, durations = np.tile(once.ops, longest), np.tile(once.durations, longest)
    segment = np.repeat(np.arange(longest), once.ops.shape[1])
    return ProgramBatch(once.names, np.where(segment < segments[:, None], ops, EMPTY), durations)


def _followed(first: ProgramBatch, then: ProgramBatch) -> ProgramBatch:
    """Programs of one batch, and after them those of the other."""
    ops, durations = np.hstack([first.ops, then.ops]), np.hstack([first.durations, then.durations])
    return ProgramBatch(first.names, ops, durations)


def _chosen(first: Array, a: ProgramBatch, b: ProgramBatch) -> ProgramBatch:
    """Program of a where ``first``, else of b."""
    longest = max(a.ops.shape[1], b.ops.shape[1])

    def padded(batch: ProgramBatch) -> tuple[Array, Array]:
        extra = ((0, 0), (0, longest - batch.ops.shape[1]))
        return np.pad(batch.ops, extra, constant_values=EMPTY), np.pad(batch.durations, extra)

    (ops_a, tau_a), (ops_b, tau_b) = padded(a), padded(b)
    return ProgramBatch(a.names, np.where(first[:, None], ops_a, ops_b), np.where(first[:, None], tau_a, tau_b))
