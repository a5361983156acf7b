"""A trained surrogate as data: equation, dictionary, policy with theta, scope, gate, box and record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from hycop import markup
from hycop.answer import Answer as Answer  # it is imported from here, too
from hycop.corrections import Correction, corrected
from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError, InvalidSampleError
from hycop.estimation import GRADING, Calibration, Ladder, calibrated, estimate
from hycop.execution import Outcome, measure, run, run_and_meter
from hycop.features import Observed
from hycop.grid import Array, changed
from hycop.metrics import rel_l2
from hycop.pde import Equation
from hycop.policy import Inputs, Policy, SlotPolicy, exact_covers
from hycop.program import Program, ProgramBatch, chosen, followed, repeated
from hycop.query import Query, Setting
from hycop.schemes import Classical, Unsplit
from hycop.scope import TIME_TOLERANCE, Scope, Values, View, WithinTraining, barred_primitives
from hycop.tolerance import checked_tolerance, to_tolerance
from hycop.training import Gate, TrainingConfig

MOST_SEGMENTS = 1024
"""A query time is cut into at most this many segments, each with a program of its own."""

MOST_SUBSTEPS = 64
"""Most substeps of a program."""

MOST_KEPT = 256
"""Most queries of training, and most held-out ones, whose features and errors a model keeps."""


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


class Answered(NamedTuple):
    """Queries that a model was trained or gated on, as far as it keeps them: features (query, name) and relative L2
    errors (query,) of its answers."""

    features: Array
    errors: Array


class Composition(NamedTuple):
    """Programs for a batch of queries, the features that they come from, and which queries lie outside training, by
    reason."""

    programs: ProgramBatch
    values: Values
    outside: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Model:
    """A trained surrogate as immutable data; a model folder holds exactly this.

    Programs run on a grid ``refinement`` times finer than the query's. Each is cut ``substeps`` times finer than the
    query time needs. ``static_theta`` is that of the ablation trained beside it: one program for all queries.
    ``calibration`` is that of its error estimates. ``trained`` and ``held_out`` are queries of its training; models of
    older versions keep none. ``corrections`` are applied to the coefficients of every query before anything else. An
    ``economical`` model solves queries outside training by what is worth its work there (``hycop.economy``).
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
    calibration: Calibration | None = None
    trained: Answered | None = None
    held_out: Answered | None = None
    corrections: Mapping[str, Correction] = field(default_factory=dict)
    economical: bool = False

    def corrected(self, query: Query) -> Query:
        """The query with its coefficients as the model has them."""
        return changed(query, setting=self.corrected_setting(query.setting)) if self.corrections else query

    def corrected_data(self, data: Dataset) -> Dataset:
        return replace(data, setting=self.corrected_setting(data.setting)) if self.corrections else data

    def corrected_setting(self, setting: Setting) -> Setting:
        known = changed(setting, params=corrected(setting.params, self.corrections))
        for name, correction in self.corrections.items():
            if name in known.params and name in self.equation.coefficients:
                try:
                    self.equation.coefficients[name].check(name, known.params[name])
                except InvalidInputError as error:
                    raise InvalidInputError(f"{error}; this is after the model's correction, {correction}") from None
        self.equation.check_bounds(known)
        return known

    @property
    def uncorrected(self) -> Model:
        """The same model for queries whose coefficients are corrected already."""
        return replace(self, corrections={})

    def answer(self, query: Query, tol: float | None = None) -> Answer:
        """The states at the query times, with everything that led to them. With ``tol`` programs and grids are refined,
        query by query, until the estimated relative error is at most that."""
        if self.corrections:
            return replace(self.uncorrected.answer(self.corrected(query), tol), query=query)
        programs, values, outside = self.compose(query)
        states, meter = run_and_meter(programs, self.dictionary, query, refinement=self.refinement)
        features = dict(zip(self.scope.view.features.names, values.features.T, strict=True))
        found = Answer(
            query,
            programs,
            states,
            features,
            outside,
            np.full(query.batch, self.refinement),
            meter,
            lambda: estimate(self._ladder_for(query), query, found.outcome, self.calibration_for(query)),
            problem=self.equation.name,
        )
        return found if tol is None else self._to_tolerance(found, checked_tolerance(tol))

    def _to_tolerance(self, found: Answer, tol: float) -> Answer:
        query, programs, ladder = found.query, found.programs, self._ladder_for(found.query)
        reached = to_tolerance(ladder, query, found.outcome, self.calibration_for(query), tol)
        for cut in np.unique(reached.levels[:, 0]).tolist():
            programs = chosen(reached.levels[:, 0] == cut, ladder.programs(query, cut), programs)
        return replace(
            found,
            programs=programs,
            states=reached.outcome.states,
            refinement=reached.levels[:, 1],
            meter=lambda: reached.outcome.work,
            estimator=lambda: reached.estimate,
            tolerance=tol,
        )

    def predicted(self, query: Query) -> tuple[Array, Mapping[str, Array]]:
        """The states of an answer, and which queries lie outside training, by reason; nothing else is computed."""
        if self.corrections:
            return self.uncorrected.predicted(self.corrected(query))
        programs, _, outside = self.compose(query)
        return run(programs, self.dictionary, query, refinement=self.refinement), outside

    @property
    def ladder(self) -> Ladder:
        """The model's answers and their refinements."""

        def own(query: Query, cut: int) -> ProgramBatch:
            return replace(self, substeps=cut * self.substeps).programs(query)

        def classical(query: Query, cut: int) -> ProgramBatch:
            return self.classical().programs(query).with_graded_substeps(cut, GRADING)

        plain = Ladder(own, classical, self.dictionary, self.refinement, self.record.config.metric)
        known = self.calibration
        return plain if known is None else replace(plain, finer_cut=known.finer_cut, finer_grid=known.finer_grid)

    def calibrated(self, held_out: Dataset) -> Model:
        """The model with its error estimates calibrated on queries that it was not trained on."""
        if self.corrections:
            known = self.uncorrected.calibrated(self.corrected_data(held_out))
            return replace(known, corrections=self.corrections)
        return replace(self, calibration=calibrated(self.ladder, held_out))

    def calibration_for(self, query: Query) -> Calibration | None:
        """The calibration, if it holds: other primitives or boundaries than those of training have another."""
        trained = not self.scope.untrained and query.grid.boundary == self.scope.boundary
        return self.calibration if trained else None

    def _ladder_for(self, query: Query) -> Ladder:
        # what is doubled without a calibration is the distance to a grid twice as fine
        return replace(self, calibration=self.calibration_for(query)).ladder

    def solve(self, query: Query) -> Outcome:
        """The states at the query times, and the work they took."""
        if self.corrections:
            return self.uncorrected.solve(self.corrected(query))
        return measure(self.programs(query), self.dictionary, query, refinement=self.refinement)

    def answered(self, data: Dataset) -> Answered:
        """Features and errors of at most ``MOST_KEPT`` queries of a dataset, evenly spread over it."""
        if self.corrections:
            return self.uncorrected.answered(self.corrected_data(data))
        query, truth = data.query, data.truth
        kept = np.unique(np.linspace(0, query.batch - 1, min(query.batch, MOST_KEPT)).round().astype(np.int64))
        some = query.take(kept)
        programs, values, _ = self.compose(some)
        states = measure(programs, self.dictionary, some, refinement=self.refinement, strict=False).states
        return Answered(values.features, rel_l2(states, truth[kept], some.setting))

    def compose(self, query: Query) -> Composition:
        """A program for each query, and what it was written from."""
        if self.corrections:
            return self.uncorrected.compose(self.corrected(query))
        seen = Observed(query, self.equation)
        values = self.scope.view.values(seen)
        barred = barred_primitives(self.dictionary, query)
        beyond = self.scope.beyond(seen, values)
        programs = self._programs(seen, values, beyond, barred)
        outside = self.scope.outside(query, beyond)
        return Composition(programs, values, outside if barred is None else {**outside, **_used(programs, barred)})

    def programs(self, query: Query, dictionary: Dictionary | None = None) -> ProgramBatch:
        """A program for each query, to run with the model's dictionary or with another that has the same names."""
        if self.corrections:
            return self.uncorrected.programs(self.corrected(query), dictionary)
        model = self if dictionary is None else self.composing(dictionary)
        seen = Observed(query, self.equation)
        values = self.scope.view.values(seen)
        barred = barred_primitives(model.dictionary, query)
        return model._programs(seen, values, self.scope.beyond(seen, values), barred)

    def outside_training(self, query: Query) -> Mapping[str, Array]:
        """Which queries (batch,) lie outside what was trained, by the reason."""
        return self.compose(query).outside

    def _programs(self, seen: Observed, values: Values, beyond: Array, barred: Array | None) -> ProgramBatch:
        """The policy's programs, or the classical ones where the gate has decided so; for times beyond the training's
        either is repeated, or the classical one follows the policy's."""
        query, segments = seen.query, self.segments(seen)
        part, own, longest = query, values, int(segments.max(initial=1))
        if longest > 1:
            part = changed(query, time=query.time / segments)
            own = self.scope.view.values(Observed(part, self.equation))
        if not (self.gate.kept and self.gate.composes(self.dictionary, query.grid)):
            return self._classical(part, segments, beyond)
        learned = self.policy.programs(self.theta[None], self.scope.view.inputs(own, part.time, barred))
        learned = learned.with_substeps(self.record.config.substeps)
        if self.gate.classical_when_repeated and longest > self.substeps:  # for the time beyond training's
            learned = repeated(learned, np.full_like(segments, self.substeps))
            learned = followed(learned, self._classical(part, segments - self.substeps, beyond))
        elif longest > 1:
            learned = repeated(learned, segments)
        if own is values and not beyond.any():  # so that no query is clipped or far
            return learned
        outside = np.zeros(query.batch, dtype=bool)
        if self.gate.classical_when_clipped:
            outside |= beyond[:, : len(self.scope.view.names)].any(axis=1)
        if self.gate.classical_when_far:
            outside |= self.scope.far(seen, own)
        return chosen(outside, self._classical(part, segments, beyond), learned) if outside.any() else learned

    def _classical(self, part: Query, segments: Array, beyond: Array) -> ProgramBatch:
        """The classical programs for ``part`` of the query times, as often as there are ``segments``."""
        scheme = self.scheme_for(part.setting)
        if isinstance(scheme, Unsplit) and beyond.any():
            whole = changed(part, time=self.substeps * part.time)  # so that all refinements have the same cuts
            cuts = self.gate.cuts(scheme, self.dictionary, whole, np.asarray(beyond.any(axis=1)), self.refinement)
            cuts = np.minimum(cuts, MOST_SEGMENTS // np.maximum(segments, 1))
            part, segments = changed(part, time=part.time / cuts), segments * cuts
        covers = exact_covers(self.dictionary, self.equation.processes)
        return repeated(WithinTraining(scheme, covers).programs(part, self.dictionary), segments)

    def scheme_for(self, setting: Setting) -> Classical:
        """The classical scheme of the gate; for other primitives or boundaries than those of training, one that they
        can run."""
        trained = not self.scope.untrained and setting.grid.boundary == self.scope.boundary
        return self.gate.scheme if trained else self.gate.scheme_for(self.dictionary, setting)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the steps of its programs: those of the dictionary, and that of the gate's unsplit solver."""
        own, scheme = (*self.dictionary, *self.dictionary.beside), self.gate.scheme
        used = isinstance(scheme, Unsplit) and scheme.fits(self.dictionary)
        return (*own, scheme.step_of(self.dictionary)) if used else own  # type: ignore[union-attr]

    def segments(self, seen: Observed) -> Array:
        """Number of equal segments of each query time: enough that none is longer than in training, times
        ``substeps``."""
        ratio = self.scope.ratio(seen)
        if ratio.max(initial=0.0) - TIME_TOLERANCE <= 1.0 and self.substeps <= MOST_SEGMENTS:  # as usual
            return np.full(seen.batch, self.substeps)
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

    def composing(self, dictionary: Dictionary) -> Model:
        """The model with other primitives of the same names. Without the solver that is used instead, it composes."""
        known = self.gate.instead is None or self.gate.instead in dictionary.beside
        return replace(self if known else self.composition(), dictionary=dictionary)

    def composition(self) -> Model:
        """The model whose programs are compositions, where a solver of the whole equation is used instead."""
        if self.gate.instead is None:
            return self
        return replace(
            self,
            dictionary=self.dictionary.alone(),
            gate=self.gate.of_compositions(),
            refinement=self.record.config.refinement,
            calibration=None,
            trained=None,
            held_out=None,
        )

    def opened(self) -> Model:
        """The policy as it was learned, whatever the gate decided."""
        return replace(self.composition(), gate=self.gate.opened(), calibration=None)

    def classical(self) -> Model:
        """The opponent at its gate: the best classical scheme at equal work, cut into the same segments."""
        return replace(self, gate=self.gate.closed(), calibration=None)

    def typical_program(self) -> Program | None:
        """What the policy writes for features in the middle of their ranges, durations as shares of T; None if it does
        not write the programs."""
        if not self.gate.learned:
            return None
        view = self.scope.view
        middle = Inputs(
            np.zeros((1, len(view.features.names))), np.zeros((1, len(view.gain_features.names))), np.ones(1)
        )
        return self.policy.programs(self.theta[None], middle)[0]

    def facts(self) -> list[tuple[str, str]]:
        """What there is to know, as labels and lines; a label may be empty where the line before goes on."""
        view, equation, typical = self.scope.view, self.equation, self.typical_program()
        return [
            ("equation", f"{equation.name}: {equation.formula or ', '.join(equation.processes)}"),
            ("box", f"{' x '.join(f'{length:g}' for length in self.box.lengths)}, {', '.join(self.box.boundary)}"),
            *(
                ("dictionary" if not index else "", f"{name}: {primitive!r}")
                for index, (name, primitive) in enumerate(self.dictionary.items())
            ),
            *(("beside", f"{name}: {primitive!r}") for name, primitive in self.dictionary.beside.items()),
            ("policy", f"{self.theta.size} parameters; it sees {', '.join(view.features.names) or 'nothing'}"),
            *([] if typical is None else [("program", f"{typical}   (typical query, durations as shares of T)")]),
            *(("gate" if not index else "", line) for index, line in enumerate(self.gate.explained())),
            *(("corrected", f"{name}: {each}") for name, each in self.corrections.items()),
            *(("changed", line) for line in self.record.changes),
        ]

    def summary(self) -> str:
        """A readable summary of a model: equation, dictionary, policy, a typical program, the gate's decision."""
        return "\n".join(["HyCOP", *(f"  {label:11} {text}" for label, text in self.facts())])

    def _repr_html_(self) -> str:
        """The same for notebooks, with the typical program as a timeline."""
        typical = self.typical_program()
        drawn = {"": [(step.primitive, step.duration) for step in typical or ()]}
        picture = markup.timelines(drawn, self.dictionary.names) if typical else ""
        return markup.page(f"HyCOP, fitted on {self.equation.name}", picture, markup.facts(self.facts()))

    def static(self) -> Model | None:
        """The ablation trained beside it: the first pattern, one program for all queries."""
        if self.static_theta is None or not isinstance(self.policy, SlotPolicy):
            return None
        view = self.scope.view
        blind = replace(View.nothing(), gain_features=view.gain_features, gain_ranges=view.gain_ranges)
        return replace(
            self.opened(),
            economical=False,
            policy=self.policy.alone(),
            theta=self.static_theta,
            scope=replace(self.scope, view=blind),
            static_theta=None,
        )


def _used(programs: ProgramBatch, barred: Array) -> dict[str, Array]:
    """Which programs use a primitive outside what it was trained on, by the reason."""
    found = {
        f"primitive {name}": barred[:, op] & (programs.ops == op).any(axis=1)
        for op, name in enumerate(programs.names[: barred.shape[1]])  # no unsplit solver is trained
    }
    return {reason: outside for reason, outside in found.items() if outside.any()}
