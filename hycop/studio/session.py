"""What the studio shows, without the page: from the state of the controls to an answer and all about it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hycop.data import Dataset, load
from hycop.errors import HyCOPError, InvalidInputError
from hycop.grid import Array
from hycop.problems import problem_of
from hycop.program import Program, Step
from hycop.query import Setting
from hycop.studio.parts import boundaries_for, choices_of, with_parts
from hycop.studio.question import Candidate, Question
from hycop.studio.ranges import coefficient_ranges, length_ranges, time_range
from hycop.studio.starts import Sampled, Start, read_upload, starts_of
from hycop.surrogate import HyCOP

HELD_OUT = "held_out.nc"
"""The held-out queries of a run folder."""

HELD_OUT_START, UPLOADED = "held-out queries of the run", "uploaded file"

REMEMBERED = 8
"""Questions that are kept, so that going back is free."""


@dataclass(frozen=True)
class Controls:
    """The state of the controls. ``number`` is the seed of a drawn initial state, or the sample of a file;
    ``primitives`` names, for each entry of the dictionary that was changed, what stands there instead."""

    params: Mapping[str, float]
    time: float
    start: str
    number: int
    boundary: str
    lengths: tuple[float, ...]
    primitives: Mapping[str, str] = field(default_factory=dict)
    tol: float | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for equal questions."""
        params, parts = tuple(sorted(self.params.items())), tuple(sorted(self.primitives.items()))
        return (params, self.time, self.start, self.number, self.boundary, self.lengths, parts, self.tol)


class Session:
    """A model, what can be asked of it, and the questions asked so far.

    ``data`` are queries with their truth to start from, such as the held-out ones of the run.
    """

    def __init__(self, model: HyCOP, data: Dataset | None = None) -> None:
        self.model = model
        inner = model.model
        self.equation = inner.equation
        self.problem = problem_of(inner.equation)
        self.starts: dict[str, Start] = starts_of(inner, self.problem)
        if data is not None:
            held_out: dict[str, Start] = {HELD_OUT_START: Sampled(data.arranged(inner.equation.channels), self.problem)}
            # what was learned from data alone starts from these
            self.starts = {**held_out, **self.starts} if self.problem is None else {**self.starts, **held_out}
        self.coefficients = coefficient_ranges(inner, self.problem, data)
        self.time = time_range(inner, self.problem, data)
        self.lengths = length_ranges(inner, self.problem)
        self.boundaries = boundaries_for(model)
        self.choices = choices_of(model)
        self._questions: OrderedDict[tuple[object, ...], Question] = OrderedDict()
        self._truths: dict[tuple[object, ...], Array] = {}
        self._drawn: tuple[tuple[object, ...], Array] = (), np.empty(0)

    @property
    def channels(self) -> tuple[str, ...]:
        return tuple(channel.name for channel in self.equation.channels)

    def controls(self) -> Controls:
        """Where the controls stand at first: a query in the middle of training."""
        start = next(iter(self.starts))
        first = Controls(
            {name: each.start for name, each in self.coefficients.items()},
            self.time.start,
            start,
            0,
            next(iter(self.boundaries)),
            tuple(each.start for each in self.lengths.values()) or self.model.model.box.lengths,
        )
        return self.adopted(first, start, 0) if isinstance(self.starts[start], Sampled) else first

    def adopted(self, controls: Controls, start: str, number: int) -> Controls:
        """The controls for a sample of a file: its coefficients, box and last time."""
        source = self.starts[start]
        if not isinstance(source, Sampled):
            return replace(controls, start=start, number=number)
        one = source.sample(number)
        grid, elapsed = one.setting.grid, one.times[0] - one.times[0, 0]
        if grid.boundary_name not in self.boundaries:
            known = ", ".join(self.boundaries)
            raise InvalidInputError(f"the file has the boundary {grid.boundary_name}; this model can do {known}")
        return replace(
            controls,
            params={name: float(value[0]) for name, value in one.setting.params.items()},
            time=float(elapsed[-1]) if elapsed[-1] > 0 else controls.time,
            start=start,
            number=number,
            boundary=grid.boundary_name,
            lengths=tuple(grid.lengths[0].tolist()),
        )

    def upload(self, name: str, content: bytes) -> int:
        """Takes a file as a start; its number of samples. A bad file changes nothing."""
        taken = read_upload(name, content, self.model.model, self.problem)
        self.starts[UPLOADED], self._drawn = taken, ((), np.empty(0))
        for key in [key for key in self._questions if UPLOADED in key]:
            del self._questions[key]
        self._truths = {key: truth for key, truth in self._truths.items() if UPLOADED not in key}
        return taken.data.samples

    def ask(self, controls: Controls) -> Question:
        """The answer to what the controls say. A question asked before is found again, with all that it knows."""
        key = controls.key
        if key not in self._questions:
            self._questions[key] = self._asked(controls)
            while len(self._questions) > REMEMBERED:
                self._questions.popitem(last=False)
        self._questions.move_to_end(key)
        found = self._questions[key]
        found.truth = self._truths.get(_of_truth(controls), found.truth)
        return found

    def solve_truth(self, controls: Controls) -> Question:
        """The same with its truth, which holds for any program, primitives and tolerance."""
        question = self.ask(controls)
        question.solve()
        if question.truth is not None:
            self._truths[_of_truth(controls)] = question.truth
        return question

    def _asked(self, controls: Controls) -> Question:
        if controls.start not in self.starts:
            raise InvalidInputError(f"there is no initial state '{controls.start}'; choose one from the list")
        source, boundary = self.starts[controls.start], self.boundaries[controls.boundary]
        parts = {name: self.choices[name][label] for name, label in controls.primitives.items()}
        model, changes = with_parts(self.model, boundary, parts)
        grid = source.grid(controls.number, boundary, controls.lengths)
        setting = Setting(grid, self.equation.channels, controls.params)  # type: ignore[arg-type]
        self.equation.check_bounds(setting)
        u0 = self._initial(controls, setting)
        query = model.query(u0, controls.params, controls.time, grid.lengths, grid.boundary)
        number = controls.number
        return Question(model.model, query, changes, controls.tol, lambda: source.truth(number, query))

    def _initial(self, controls: Controls, setting: Setting) -> Array:
        """The initial state, which is the same for any time, primitives and tolerance."""
        key = replace(controls, time=0.0, primitives={}, tol=None).key
        if self._drawn[0] != key:
            self._drawn = key, self.starts[controls.start].state(controls.number, setting)
        return self._drawn[1]


def _of_truth(controls: Controls) -> tuple[object, ...]:
    """What the truth depends on."""
    return replace(controls, primitives={}, tol=None).key


def held_out_data(folder: str | Path) -> Dataset | None:
    """The held-out queries that a run folder keeps, if it does."""
    path = Path(folder) / HELD_OUT
    return load(path) if path.is_file() else None


# ------------------------------------------------------------------------------------------- editing programs


def written(program: Program) -> str:
    """A program as a line to edit, with digits enough that its durations still add up."""
    return " → ".join(f"{step.primitive} {step.duration:.6g}" for step in program)


def parsed(text: str, names: tuple[str, ...]) -> Program:
    """The program of a line; refuses names that the dictionary does not have."""
    if not text.strip():
        raise InvalidInputError("the program is empty: write at least one step, as 'advection 0.1'")
    program = Program.parse(text)
    for step in program:
        if step.primitive not in names:
            raise InvalidInputError(f"step '{step}': the dictionary has {', '.join(names)}")
    return program


def with_step(program: Program, index: int, step: Step) -> Program:
    """Another step in the place of one."""
    return Program((*program.steps[:index], step, *program.steps[index + 1 :]))


def with_step_added(program: Program, index: int, step: Step) -> Program:
    """One more step after one."""
    return Program((*program.steps[: index + 1], step, *program.steps[index + 1 :]))


def without_step(program: Program, index: int) -> Program:
    if len(program) < 2:
        raise InvalidInputError("a program needs at least one step")
    return Program((*program.steps[:index], *program.steps[index + 1 :]))


def with_step_moved(program: Program, index: int, by: int) -> Program:
    """A step one place earlier (by −1) or later (by 1); the first cannot come earlier nor the last later."""
    other = index + by
    if not 0 <= other < len(program):
        return program
    steps = list(program.steps)
    steps[index], steps[other] = steps[other], steps[index]
    return Program(tuple(steps))


def run_by_hand(question: Question, program: Program | None) -> tuple[Candidate | None, str]:
    """The program by hand as a candidate, or a sentence that says why it cannot run."""
    if program is None:
        return None, ""
    try:
        return question.by_hand(program), ""
    except HyCOPError as error:
        return None, str(error)
