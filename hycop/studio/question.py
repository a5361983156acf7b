"""One query and everything the page shows about it. What takes time is computed when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.economy import only_part
from hycop.errors import HyCOPError
from hycop.estimation import COVERED, Runs, bounded
from hycop.evaluation import errors_of
from hycop.execution import Outcome, measure, trace
from hycop.grid import Array
from hycop.model import Answer, Model
from hycop.policy import exact_covers
from hycop.program import Program, ProgramBatch
from hycop.query import Query
from hycop.schemes import splitting

OWN, BY_HAND = "HyCOP", "by hand"
SCHEMES = ("Strang", "ABABA")
"""The classical schemes that stand beside the model, besides that of its gate."""

MOST_BYTES = 2**27
"""Bytes of the states on the way through a program that are kept (128 MiB); of longer ones each is computed alone."""

NOT_COVERED = 1e-4
"""Relative difference from T from which a process is said not to be integrated over the whole time."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A program that answers the query: a name, states on the query's grid, and work. It ran on a grid ``refinement``
    times finer."""

    name: str
    programs: ProgramBatch
    states: Array
    work: float
    refinement: int

    @property
    def program(self) -> Program:
        return self.programs[0]


class Judged(NamedTuple):
    """A line of the comparison: error is None if the candidate failed, and ``remark`` then says why."""

    name: str
    steps: int
    work: float
    error: float | None
    remark: str = ""


class Estimated(NamedTuple):
    """An estimated error, whether it is calibrated, and what it means in a sentence."""

    error: float
    calibrated: bool
    meaning: str


@dataclass(eq=False)
class Question:
    """A query, the model that answers it, and what was swapped in that model. ``solve_truth`` gives the truth."""

    model: Model
    query: Query
    changes: tuple[str, ...]
    tolerance: float | None
    solve_truth: Callable[[], Array]
    seconds: float = 0.0
    """What the answer took."""

    def __post_init__(self) -> None:
        begin = perf_counter()
        self.composed, known = self.model.composition(), self.model.dictionary
        self.model = only_part(self.model, self.query)  # outside training it may be another one
        more = {name: one for name, one in self.model.dictionary.everything.items() if name not in known}
        self.parts = Dictionary(known, {**known.beside, **more})
        self.answer: Answer = self.model.answer(self.query, self.tolerance)
        self.seconds = perf_counter() - begin
        self.truth: Array | None = None
        self._paths: dict[Candidate, Array] = {}

    # ------------------------------------------------------------------------------------------- candidates

    @cached_property
    def own(self) -> Candidate:
        answer = self.answer
        return Candidate(OWN, answer.programs, answer.states, float(answer.work[0]), int(answer.refinement[0]))

    def by_hand(self, program: Program) -> Candidate:
        """A program that somebody wrote, run where the model runs."""
        names = self.parts.names_in(step.primitive for step in program)
        return self._run(BY_HAND, ProgramBatch.of([program], names), self.model.refinement)

    @cached_property
    def schemes(self) -> dict[str, Candidate | HyCOPError]:
        """The classical schemes, by name; an error for one that these primitives cannot run."""
        parts = self.composed
        every = exact_covers(parts.dictionary, parts.equation.processes)
        cover = parts.gate.cover or next(iter(every), None)
        plain = [splitting(name).within(cover) for name in SCHEMES]
        found: dict[str, Candidate | HyCOPError] = {}
        try:
            gate = self._run(
                f"{parts.scheme_for(self._corrected.setting)} (gate)",
                parts.classical().programs(self.query),
                parts.refinement,
            )
        except HyCOPError as error:
            return {str(scheme): error for scheme in plain}
        for scheme in plain:
            try:
                programs = scheme.programs(self._corrected, parts.dictionary)
                if programs[0] != gate.program:
                    found[str(scheme)] = self._run(str(scheme), programs, parts.refinement)
            except HyCOPError as error:
                found[str(scheme)] = error
        return {**found, gate.name: gate}

    @cached_property
    def _corrected(self) -> Query:
        return self.model.corrected(self.query)

    def _run(self, name: str, programs: ProgramBatch, refinement: int) -> Candidate:
        done = measure(programs, self.parts, self._corrected, refinement=refinement)
        return Candidate(name, programs, done.states, float(done.work[0]), refinement)

    def state(self, candidate: Candidate, step: int) -> Array:
        """The state (channel, *grid) after a step of a candidate, on the grid on which it ran; step 0 is the start."""
        size = self.query.u0.nbytes * candidate.refinement**self.query.grid.axes
        if (len(candidate.program) + 1) * size > MOST_BYTES:
            return self._path(candidate, (step,))[0]
        if candidate not in self._paths:
            self._paths[candidate] = self._path(candidate, None)
        return self._paths[candidate][step]

    def _path(self, candidate: Candidate, steps: tuple[int, ...] | None) -> Array:
        how: dict[str, Any] = {"refinement": candidate.refinement, "steps": steps, "fine": True}
        return trace(candidate.programs, self.parts, self._corrected, **how).states[0]

    # ------------------------------------------------------------------------------------------- errors

    @cached_property
    def _refined(self) -> tuple[Array, Estimated]:
        """The refined answer, which stands for the truth until that is known, and the estimate that follows."""
        if self.tolerance is not None:
            error, met = float(self.answer.error[0]), bool(self.answer.error[0] <= self.tolerance)
            told = f"within the tolerance {self.tolerance:g}" if met else f"the tolerance {self.tolerance:g} is missed"
            return self.answer.states, Estimated(error, self.answer.estimate.calibrated, told)
        asked, only = self._corrected, np.zeros(1, dtype=np.int64)
        calibration = self.model.calibration_for(asked)
        ladder = replace(self.model.uncorrected, calibration=calibration).ladder
        runs = Runs.starting_from(ladder, asked, Outcome(self.answer.states, self.answer.work))
        distance = runs.gap(only, ladder.start).total
        error = float(bounded(calibration, distance, asked.time)[0])
        told = f"{COVERED:.0%} of queries like those of training err less"
        if calibration is None:
            told = "not calibrated for these parts: twice the distance to a refined answer"
        return runs.refined(only, ladder.start), Estimated(error, calibration is not None, told)

    @property
    def estimate(self) -> Estimated:
        """The estimated error of the model's answer."""
        return self._refined[1]

    @property
    def judge(self) -> str:
        """What errors are measured against."""
        if self.truth is not None:
            return "truth"
        return "refined answer" if self.tolerance is None else "answer to the tolerance"

    @property
    def best_known(self) -> Array:
        """The truth if it has been solved, else the refined answer, (1, channel, *grid)."""
        return self._refined[0] if self.truth is None else self.truth

    def solve(self) -> None:
        """Solves the truth, which may take seconds."""
        if self.truth is None:
            self.truth = self.solve_truth()

    def error(self, candidate: Candidate) -> float:
        """The error against the best known solution, in the metric that the model was trained with."""
        metric = self.model.record.config.metric
        return float(errors_of(metric, candidate.states, self.best_known, self.query)[0])

    def judged(self, candidate: Candidate) -> Judged:
        # to a tolerance, the answer is the best that is known: its distance to itself says nothing
        unknown = self.tolerance is not None and self.truth is None and candidate.name == OWN
        error = self.estimate.error if unknown else self.error(candidate)
        return Judged(candidate.name, len(candidate.program), candidate.work, error, "estimated" if unknown else "")

    def comparison(self, by_hand: Candidate | None = None) -> list[Judged]:
        """The model, the program by hand and the classical schemes, with work and error."""
        rows = [self.judged(each) for each in (self.own, by_hand) if each is not None]
        for name, each in self.schemes.items():
            lost = isinstance(each, HyCOPError)
            rows.append(Judged(name, 0, 0.0, None, str(each)) if lost else self.judged(each))  # type: ignore[arg-type]
        return rows

    # ------------------------------------------------------------------------------------------- sentences

    def not_covered(self, program: Program) -> list[str]:
        """A sentence for each process that a program does not integrate over the whole time."""
        total, out = float(self.query.time[0]), []
        for process in self.model.equation.processes:
            lasts = sum(step.duration for step in program if process in self.parts[step.primitive].advances)
            if abs(lasts - total) > NOT_COVERED * max(total, abs(lasts)):
                out.append(f"{process} is integrated over {lasts:.4g}, not over T = {total:.4g}")
        return out

    @property
    def outside(self) -> list[str]:
        """A sentence for each reason not to trust the answer."""
        return [self._reason(name) for name in self.answer.reasons[0]]

    def _reason(self, name: str) -> str:
        scope, view = self.model.scope, self.model.scope.view
        given = self._corrected.setting.params
        seen = zip(view.ranges.low, view.ranges.high, strict=True)
        ranges: dict[str, tuple[float, float]] = {
            **dict(zip(view.features.names, seen, strict=True)),
            **dict(scope.coefficients),
            **{each: (value, value) for each, value in scope.constants.items()},
        }
        values: Mapping[str, Array] = {**self.answer.features, **given}
        if name in ranges and name in values:
            low, high = ranges[name]
            trained = f"at {low:.4g}" if low == high else f"on {low:.4g} to {high:.4g}"
            if max(abs(low), abs(high)) > 1e100:
                trained = "on positive values" if low >= 0 else "on negative values"
            return f"{name} is {float(values[name][0]):.4g}, trained {trained}"
        if name.startswith("boundary "):
            return f"{name} was not trained"
        if name.startswith("primitive "):
            own = name.removeprefix("primitive ")
            return f"{name} was {'not trained with' if own in scope.untrained else 'itself trained on other queries'}"
        return f"{name} is beyond its trained range"
