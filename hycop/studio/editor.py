"""The program by hand: a line to edit, and buttons for the step that is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from hycop.errors import HyCOPError, InvalidInputError
from hycop.program import Program, Step
from hycop.studio.session import parsed, with_step, with_step_added, with_step_moved, without_step, written
from hycop.studio.style import WIDGET


class Editor:
    """Edits the program that is shown. ``edited`` is called with a new program and the step to look at, ``refused``
    with a sentence."""

    def __init__(
        self, names: tuple[str, ...], edited: Callable[[Program, int], None], refused: Callable[[str], None]
    ) -> None:
        self.names, self._edited, self._refused, self._quiet = names, edited, refused, False
        self._program, self._step = Program(()), 0
        self.line = pn.widgets.TextInput(
            label="Program as text", stylesheets=[WIDGET], sizing_mode="stretch_width", margin=(4, 0)
        )
        self.primitive = pn.widgets.Select(
            label="Primitive of the step", options=list(names), width=150, stylesheets=[WIDGET], margin=(4, 10, 4, 0)
        )
        self.duration = pn.widgets.FloatInput(
            label="Duration of the step", value=0.0, step=0.01, width=130, stylesheets=[WIDGET], margin=(4, 10, 4, 0)
        )
        self.add = _button("Add after", self._add)
        self.drop = _button("Drop", self._drop)
        self.earlier = _button("← Earlier", lambda: self._move(-1))
        self.later = _button("Later →", lambda: self._move(1))
        self.line.param.watch(self._typed, "value")
        for widget in (self.primitive, self.duration):
            widget.param.watch(self._replaced, "value")

    def show(self, program: Program, step: int) -> None:
        """Shows a program and one of its steps; step 0, the initial state, has nothing to edit."""
        self._program, self._step = program, step
        self._quiet = True
        try:
            self.line.value = written(program)
            there = 0 < step <= len(program)
            if there:
                self.primitive.value = program.steps[step - 1].primitive
                self.duration.value = float(f"{program.steps[step - 1].duration:.6g}")
            for widget in (self.primitive, self.duration, self.drop, self.earlier, self.later):
                widget.disabled = not there
        finally:
            self._quiet = False

    def layout(self) -> Any:
        buttons = (self.add, self.drop, self.earlier, self.later)
        return pn.Column(
            pn.FlexBox(self.primitive, self.duration, *buttons, align_items="end"),
            self.line,
            sizing_mode="stretch_width",
        )

    def _typed(self, *_: Any) -> None:
        if not self._quiet:
            self._try(lambda: (parsed(str(self.line.value), self.names), self._step))

    def _replaced(self, *_: Any) -> None:
        if not self._quiet:
            self._try(lambda: (with_step(self._program, self._step - 1, self._now()), self._step))

    def _add(self) -> None:
        step = self._now() if self._step else Step(self.names[0], self._program.steps[0].duration)
        self._try(lambda: (with_step_added(self._program, self._step - 1, step), self._step + 1))

    def _drop(self) -> None:
        self._try(lambda: (without_step(self._program, self._step - 1), max(1, self._step - 1)))

    def _move(self, by: int) -> None:
        to = min(max(1, self._step + by), len(self._program))
        self._try(lambda: (with_step_moved(self._program, self._step - 1, by), to))

    def _now(self) -> Step:
        if self.duration.value is None:
            raise InvalidInputError("the duration is empty: type a number, as 0.1")
        return Step(str(self.primitive.value), float(self.duration.value))

    def _try(self, make: Callable[[], tuple[Program, int]]) -> None:
        try:
            program, step = make()
        except HyCOPError as error:
            self._refused(str(error))
            return
        self._edited(program, min(step, len(program)))


def _button(label: str, call: Callable[[], None]) -> Any:
    button = pn.widgets.Button(label=label, stylesheets=[WIDGET], margin=(4, 8, 4, 0), align="end")
    button.on_click(lambda _: call())
    return button
