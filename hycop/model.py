"""A trained surrogate as data: equation, dictionary, policy with theta, scope, gate, box and record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hycop.corrections import Correction, corrected
from hycop.dictionary import Dictionary
from hycop.equation import Equation
from hycop.errors import InvalidSampleError
from hycop.execution import Outcome, measure
from hycop.features import Observed
from hycop.grid import Array, changed
from hycop.policy import Inputs, Policy, SlotPolicy
from hycop.program import EMPTY, ProgramBatch
from hycop.query import Query
from hycop.scope import TIME_TOLERANCE, Scope, Values, View, barred_primitives
from hycop.training import Gate, TrainingConfig

MOST_SEGMENTS = 1024
"""A query time is cut into at most this many segments, each with a program of its own."""

MOST_SUBSTEPS = 64
"""Most substeps of a program."""


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
    """How a model came about: settings, seed, data and metrics of its training, and what was changed since."""

    config: TrainingConfig
    seed: int
    data_hash: str
    metrics: Mapping[str, float]
    changes: tuple[str, ...] = ()


class Composition(NamedTuple):
    """Programs for a batch of queries, the features that they come from, and which queries lie outside training, by
    reason."""

    programs: ProgramBatch
    values: Values
    outside: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Answer:
    """A model's answer to a batch of queries: states (batch, channel, *grid), programs, work (batch,), features by name
    (batch,), and ``outside``: which queries (batch,) lie outside training, by reason."""

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
        """Why each answer is not to be trusted; an empty tuple for trusted ones."""
        return tuple(
            tuple(name for name, outside in self.outside.items() if outside[sample])
            for sample in range(self.query.batch)
        )


@dataclass(frozen=True, eq=False)
class Model:
    """A trained surrogate as immutable data; a model folder holds exactly this.

    Programs run on a grid ``refinement`` times finer than the query's. Each is cut ``substeps`` times finer than the
    query time needs. ``static_theta`` is that of the ablation trained beside it: one program for all queries.
    ``corrections`` are applied to the coefficients of every query before anything else.
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
    corrections: Mapping[str, Correction] = field(default_factory=dict)

    def corrected(self, query: Query) -> Query:
        """The query with its coefficients as the model has them."""
        if not self.corrections:
            return query
        setting = changed(query.setting, params=corrected(query.setting.params, self.corrections))
        self.equation.check_bounds(setting)
        return changed(query, setting=setting)

    def answer(self, query: Query) -> Answer:
        """The states at the query times, with everything that led to them."""
        programs, values, outside = self.compose(query)
        states, work = measure(programs, self.dictionary, self.corrected(query), refinement=self.refinement)
        features = dict(zip(self.scope.view.features.names, values.features.T, strict=True))
        return Answer(query, programs, states, work, features, outside)

    def solve(self, query: Query) -> Outcome:
        """The states at the query times, and the work they took."""
        return measure(self.programs(query), self.dictionary, self.corrected(query), refinement=self.refinement)

    def compose(self, query: Query) -> Composition:
        """A program for each query, and what it was written from."""
        query = self.corrected(query)
        seen = Observed(query, self.equation)
        values = self.scope.view.values(seen)
        barred = barred_primitives(self.dictionary, query)
        programs = self._programs(seen, values, barred)
        outside = self.scope.outside(query, values)
        return Composition(programs, values, outside if barred is None else {**outside, **_used(programs, barred)})

    def programs(self, query: Query, dictionary: Dictionary | None = None) -> ProgramBatch:
        """A program for each query, to run with the model's dictionary or with another that has the same names."""
        model = self if dictionary is None else replace(self, dictionary=dictionary)
        query = self.corrected(query)
        seen = Observed(query, self.equation)
        return model._programs(seen, self.scope.view.values(seen), barred_primitives(model.dictionary, query))

    def outside_training(self, query: Query) -> Mapping[str, Array]:
        """Which queries (batch,) lie outside what was trained, by the reason."""
        return self.compose(query).outside

    def _programs(self, seen: Observed, values: Values, barred: Array | None) -> ProgramBatch:
        """The policy's programs, or the classical ones where the gate has decided so; for times beyond the training's
        either is repeated, or the classical one follows the policy's."""
        query, segments = seen.query, self.segments(seen)
        part, own = query, values
        if segments.max(initial=1) > 1:
            part = changed(query, time=query.time / segments)
            own = self.scope.view.values(Observed(part, self.equation))
        if not self.gate.kept:
            return _repeated(self._classical(part), segments)
        learned = self.policy.programs(self.theta[None], self.scope.view.inputs(own, part.time, barred))
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
        """Number of equal segments of each query time: enough that none is longer than in training, times
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
        """The opponent at its gate: the best classical scheme at equal work, cut into the same segments."""
        return replace(self, gate=self.gate.closed())

    def summary(self) -> str:
        """A readable summary of a model: equation, dictionary, policy, a typical program, the gate's decision."""
        view, equation = self.scope.view, self.equation
        middle = Inputs(
            np.zeros((1, len(view.features.names))), np.zeros((1, len(view.gain_features.names))), np.ones(1)
        )
        typical = self.policy.programs(self.theta[None], middle)[0] if self.gate.kept else None
        lines = [
            ("equation", f"{equation.name}: {equation.formula or ', '.join(equation.processes)}"),
            ("box", f"{' x '.join(f'{length:g}' for length in self.box.lengths)}, {', '.join(self.box.boundary)}"),
            *(
                ("dictionary" if not index else "", f"{name}: {primitive!r}")
                for index, (name, primitive) in enumerate(self.dictionary.items())
            ),
            ("policy", f"{self.theta.size} parameters; it sees {', '.join(view.features.names) or 'nothing'}"),
            *([] if typical is None else [("program", f"{typical}   (typical query, durations as shares of T)")]),
            *(("gate" if not index else "", line) for index, line in enumerate(self.gate.explained())),
            *(("corrected", f"{name}: {each}") for name, each in self.corrections.items()),
            *(("changed", line) for line in self.record.changes),
        ]
        return "\n".join(["HyCOP", *(f"  {label:11} {text}" for label, text in lines)])

    def static(self) -> Model | None:
        """The ablation trained beside it: the first pattern, one program for all queries."""
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


def _used(programs: ProgramBatch, barred: Array) -> dict[str, Array]:
    """Which programs use a primitive outside what it was trained on, by the reason."""
    found = {
        f"trained range of {name}": barred[:, op] & (programs.ops == op).any(axis=1)
        for op, name in enumerate(programs.names)
    }
    return {reason: outside for reason, outside in found.items() if outside.any()}


def _repeated(once: ProgramBatch, segments: Array) -> ProgramBatch:
    """Each program repeated ``segments`` (batch,) times, durations unchanged."""
    longest = int(segments.max(initial=1))
    if longest == 1 and (segments == 1).all():
        return once
    ops, durations = np.tile(once.ops, longest), np.tile(once.durations, longest)
    segment = np.repeat(np.arange(longest), once.ops.shape[1])
    return ProgramBatch(once.names, np.where(segment < segments[:, None], ops, EMPTY), durations)


def _followed(first: ProgramBatch, then: ProgramBatch) -> ProgramBatch:
    """The programs of one batch, each followed by that of the other."""
    ops, durations = np.hstack([first.ops, then.ops]), np.hstack([first.durations, then.durations])
    return ProgramBatch(first.names, ops, durations)


def _chosen(first: Array, a: ProgramBatch, b: ProgramBatch) -> ProgramBatch:
    """The programs of ``a`` where ``first`` is true, else those of ``b``."""
    longest = max(a.ops.shape[1], b.ops.shape[1])

    def padded(batch: ProgramBatch) -> tuple[Array, Array]:
        extra = ((0, 0), (0, longest - batch.ops.shape[1]))
        return np.pad(batch.ops, extra, constant_values=EMPTY), np.pad(batch.durations, extra)

    (ops_a, tau_a), (ops_b, tau_b) = padded(a), padded(b)
    return ProgramBatch(a.names, np.where(first[:, None], ops_a, ops_b), np.where(first[:, None], tau_a, tau_b))
