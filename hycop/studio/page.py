"""The page: widgets and figures that show what the session knows."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np
import panel as pn

from hycop.data import Dataset
from hycop.errors import HyCOPError
from hycop.grid import Array
from hycop.program import Program
from hycop.studio.editor import Editor
from hycop.studio.figures import Costs, LineField, PlaneField, Timeline, field_figure
from hycop.studio.question import BY_HAND, OWN, Candidate, Question
from hycop.studio.session import UPLOADED, Session, run_by_hand
from hycop.studio.sidebar import Sidebar, card, heading
from hycop.studio.style import TEMPLATE, TEXT, WIDGET
from hycop.studio.tables import comparison_table, status_line
from hycop.surrogate import HyCOP

SETTLED = 350
"""Milliseconds without a change after which the estimate and the comparison are computed."""

PAUSE = 80
"""Milliseconds between the parts of what is computed then. Panel collects the changes of a widget for 50 ms, so that of
many only the newest is answered; a change that came during one part is answered before the next."""

STATE, DIFFERENCE, TRUTH = "State", "Error", "Best known"


class Page:
    """One visitor's page. The answer comes first; what takes longer follows when the controls have come to rest."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.question: Question | None = None
        self.by_hand: Program | None = None
        self._written: Candidate | None = None
        self._turn = 0
        self._quiet = False
        self.sidebar = Sidebar(session, self.answer, self._upload)
        self.editor = Editor(tuple(session.model.dictionary.everything), self._edit, self._refuse)
        self.timeline = Timeline(session.model.model.names)
        self.field = field_figure(session.controls().lengths)
        self.costs = Costs()
        self._widgets()
        self._figures = (
            pn.pane.Bokeh(self.timeline.plot, sizing_mode="stretch_width"),
            pn.pane.Bokeh(self.field.plot, sizing_mode="stretch_width"),
            pn.pane.Bokeh(self.costs.plot, sizing_mode="stretch_width"),
        )
        self.paint(False)
        self.answer()

    def _widgets(self) -> None:
        self.message, self.status, self.table, self.warning, self.caption = (
            pn.pane.HTML("", stylesheets=[TEXT], sizing_mode="stretch_width", margin=(0, 0, 4, 0)) for _ in range(5)
        )
        plain: dict[str, Any] = {"stylesheets": [WIDGET], "margin": (2, 8, 4, 0)}
        self.shown = pn.widgets.RadioButtonGroup(label="Program shown", options=[OWN], value=OWN, **plain)
        self.back = pn.widgets.Button(label="Back to the model's program", **plain)
        self.step = pn.widgets.IntSlider(
            label="After step", start=0, end=1, value=1, sizing_mode="stretch_width", **plain
        )
        self.channel = pn.widgets.Select(label="Channel", options=list(self.session.channels), width=120, **plain)
        self.kind = pn.widgets.RadioButtonGroup(label="Field", options=[STATE, DIFFERENCE, TRUTH], value=STATE, **plain)
        self.same = pn.widgets.Checkbox(label="Same colours for all steps", value=False, **plain)
        self.solve = pn.widgets.Button(label="Solve the truth", color="primary", **plain)
        self.shown.param.watch(self._other_program, "value")
        for widget in (self.step, self.channel, self.kind, self.same):
            widget.param.watch(self._other_field, "value")
        self.back.on_click(lambda _: self._back())
        self.solve.on_click(lambda _: self._solve())
        self.timeline.steps.selected.on_change("indices", self._tapped)

    # ------------------------------------------------------------------------------------------- what is heard

    def answer(self) -> None:
        """Answers what the controls say, then settles."""
        self._guarded(self._answer)

    def _answer(self) -> None:
        before = self.question
        self.question = self.session.ask(self.sidebar.read())
        # another question moves to the end of its program; an edit of the same one stays where it is
        self._draw(last=before is not self.question)
        self._say("")
        self._later()

    def _edit(self, program: Program, step: int) -> None:
        def run() -> None:
            written, refusal = run_by_hand(self.asked, program)
            if refusal:
                self._refuse(refusal)
                return
            self.by_hand, self._written = program, written
            with self._silently():
                self.shown.options = [OWN, BY_HAND, *self.asked.schemes]
                self.shown.value = BY_HAND
                self.step.value = min(step, self.step.end)
            self._draw(step=step)
            self._say("")
            self._later()

        self._guarded(run)

    def _back(self) -> None:
        self.by_hand = self._written = None
        self._guarded(self._return)

    def _return(self) -> None:
        with self._silently():
            self.shown.value = OWN
        self._draw(last=True)
        self._say("")
        self._later()

    def _upload(self, name: str, content: bytes) -> None:
        def take() -> None:
            samples = self.session.upload(name, content)
            self.sidebar.write(self.session.adopted(self.sidebar.read(), UPLOADED, 0))
            self._answer()
            self._say(f"{name}: {samples} samples; the first is shown with its coefficients and time", "good")

        self._guarded(take)

    def _solve(self) -> None:
        self._say("Solving the truth; this may take some seconds …", "good")
        self._turn += 1
        self._stage(self._turn, (self._solved,), PAUSE)

    def _solved(self) -> None:
        self.question = self.session.solve_truth(self.sidebar.read())
        self._say("")
        self._later()

    def _other_program(self, *_: Any) -> None:
        if not self._quiet:
            self._guarded(self._redraw)

    def _redraw(self) -> None:
        self._draw(last=True)
        self._later()

    def _other_field(self, *_: Any) -> None:
        if not self._quiet:
            self._guarded(self._draw_field)

    def _tapped(self, _name: str, _old: object, indices: list[int]) -> None:
        if indices:
            self.step.value = indices[0] + 1

    # ------------------------------------------------------------------------------------------- what is drawn

    @property
    def asked(self) -> Question:
        if self.question is None:
            raise HyCOPError("there is no answer yet: change the question on the left")
        return self.question

    def candidate(self) -> Candidate:
        """The program that is shown."""
        if self.shown.value == BY_HAND and self._written is not None:
            return self._written
        if self.shown.value == OWN:
            return self.asked.own
        found = self.asked.schemes.get(str(self.shown.value), self.asked.own)
        if isinstance(found, HyCOPError):
            raise found
        return found

    def _draw(self, last: bool = False, step: int | None = None) -> None:
        """Timeline, editor and field of the program that is shown, and what is known at once about the answer."""
        question = self.asked
        if self.by_hand is not None and step is None:  # for the new question
            self._written, refusal = run_by_hand(question, self.by_hand)
            if refusal:
                raise HyCOPError(refusal)
        with self._silently():
            options = [OWN, *([BY_HAND] if self.by_hand else []), *self.shown.options]
            self.shown.options = [each for each in dict.fromkeys(options) if each != BY_HAND or self.by_hand]
            program = self.candidate().program
            at = len(program) if last or step is None else step
            self.step.start, self.step.end, self.step.value = 0, max(1, len(program)), min(at, len(program))
        self.timeline.show(program)
        self._draw_field(quick=last)
        self.status.object = status_line(question, None)
        self.table.styles = {"opacity": "0.4"}  # until it is that of this question
        gaps = question.not_covered(program)
        self.warning.object = f"<p class='warn' role='status'>{escape('; '.join(gaps))}</p>" if gaps else ""

    def _draw_field(self, *, quick: bool = False) -> None:
        """The field after the step. ``quick`` shows the answer on the query's grid instead of running once more."""
        question, candidate, step = self.asked, self.candidate(), int(self.step.value)
        position = self.session.channels.index(str(self.channel.value))
        self.timeline.choose(step)
        self.editor.show(candidate.program, step)
        lengths = question.query.grid.lengths[0].tolist()
        kind = str(self.kind.value)
        if quick and kind != STATE:  # these need what is computed later
            return
        initial, at_end = question.query.u0[0, position], candidate.states[0, position]
        if kind == DIFFERENCE:
            field = at_end - question.best_known[0, position]
            most = max(map(abs, _limits(field)))
            limits = -most, most
        else:
            field = question.best_known[0, position] if kind == TRUTH else at_end
            if kind == STATE and not quick:
                field = question.state(candidate, step)[position]
            limits = _limits(initial, at_end) if self.same.value else _limits(field)
        self.field.show(field, lengths, limits, kind == DIFFERENCE)
        if kind == STATE and not quick and isinstance(self.field, LineField):
            self.field.beside(initial, question.best_known[0, position], lengths)
        self.caption.object = f"<p class='help'>{escape(self._caption(candidate, step, field, kind))}</p>"

    def _caption(self, candidate: Candidate, step: int, field: Array, kind: str) -> str:
        cells = " × ".join(str(n) for n in field.shape)
        middle = ", the slice through the middle of z" if field.ndim == 3 else ""
        if kind == TRUTH:
            return f"{self.asked.judge} at T, {cells} cells{middle}"
        if kind == DIFFERENCE:
            return f"{candidate.name} minus {self.asked.judge} at T, {cells} cells{middle}"
        where = (
            "initial state" if step == 0 else f"{candidate.program.steps[step - 1]}" if candidate.program.steps else ""
        )
        return f"{candidate.name}, {'' if step == 0 else f'after step {step}: '}{where}, {cells} cells{middle}"

    # ------------------------------------------------------------------------------------------- what follows later

    def _later(self) -> None:
        self._turn += 1
        self._stage(self._turn, (self._show_estimate, self._draw_field, self._compare), SETTLED)

    def _stage(self, turn: int, calls: tuple[Callable[[], None], ...], milliseconds: int) -> None:
        """Makes the calls one by one, with a pause in which a new question is heard. Another turn ends this one."""

        def next_one() -> None:
            if turn == self._turn:
                self._guarded(calls[0])
                self._stage(turn, calls[1:], PAUSE)

        if calls:
            self._soon(next_one, milliseconds)

    def _soon(self, call: Callable[[], None], milliseconds: int) -> None:
        if pn.state.curdoc is None and not _loop_runs():  # in a script nothing comes later
            call()
        else:
            pn.state.add_periodic_callback(call, period=milliseconds, count=1)

    def _show_estimate(self) -> None:
        self.status.object = status_line(self.asked, self.asked.estimate)

    def _compare(self) -> None:
        question = self.asked
        with self._silently():
            self.shown.options = [OWN, *([BY_HAND] if self.by_hand else []), *question.schemes]
        rows = question.comparison(self._written if self.by_hand else None)
        self.table.styles = {"opacity": "1"}
        self.table.object = comparison_table(rows, question.judge, str(self.shown.value))
        self.costs.show([(row.name, row.work, row.error) for row in rows if row.error and row.work])
        self.back.disabled = self.by_hand is None and self.shown.value == OWN
        self.solve.disabled = question.truth is not None

    # ------------------------------------------------------------------------------------------- messages

    def _guarded(self, call: Callable[[], object]) -> None:
        """Whatever goes wrong becomes a sentence on the page. All changes go to the browser as one message, which draws
        once."""
        with pn.io.hold():
            try:
                call()
            except HyCOPError as error:
                self._refuse(str(error))
            except MemoryError:
                self._refuse(
                    "this is too large for the memory of this machine; ask for fewer cells or a larger tolerance"
                )
            except Exception as error:
                self._refuse(f"a fault of hycop: {type(error).__name__}: {error}")
        if pn.state.curdoc is None:  # a server notices changes of figures by itself, a notebook does not
            pn.io.push_notebook(*self._figures)

    def _refuse(self, text: str) -> None:
        self._say(text, "alert")

    def _say(self, text: str, kind: str = "alert") -> None:
        role = "alert" if kind == "alert" else "status"
        self.message.object = f"<p class='{kind}' role='{role}'>{escape(text)}</p>" if text else ""

    @contextmanager
    def _silently(self) -> Iterator[None]:
        """Changes of the page's own widgets within the block are not the user's."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    # ------------------------------------------------------------------------------------------- layout

    def paint(self, dark: bool) -> None:
        self.timeline.paint(dark)
        self.field.paint(dark)
        self.costs.paint(dark)

    def layout(self) -> Any:
        several, plane = len(self.session.channels) > 1, isinstance(self.field, PlaneField)
        program = card(
            heading(
                "Program",
                "Which primitive acts, for how long, in what order. Choose a step to edit it.",
            ),
            pn.FlexBox(self.shown, self.back),
            self._figures[0],
            self.editor.layout(),
            self.warning,
        )
        field = card(
            heading("Field through the program", "Scrub from the initial state (0) to the answer, step by step."),
            pn.FlexBox(
                *([self.channel] if several else []), self.kind, *([self.same] if plane else []), align_items="end"
            ),
            self.step,
            self._figures[1],
            self.caption,
            min_width=400,
            styles={"flex": "1 1 440px"},
        )
        compare = card(
            heading("Comparison", "Error and work of the model, of classical schemes, and of your own program."),
            self.table,
            self.solve,
            self._figures[2],
            min_width=330,
            styles={"flex": "1 1 360px"},
        )
        main = pn.Column(
            self.message,
            card(self.status),
            program,
            pn.FlexBox(field, compare, sizing_mode="stretch_width", gap="0 14px", align_items="flex-start"),
            sizing_mode="stretch_width",
        )
        return pn.Row(self.sidebar.layout(), main, sizing_mode="stretch_width", name="studio")


def _loop_runs() -> bool:
    try:
        get_running_loop()
    except RuntimeError:
        return False
    return True


def _limits(*fields: Array) -> tuple[float, float]:
    """One scale for the initial state and the end, so that colours mean the same along a program."""
    finite = [field[np.isfinite(field)] for field in fields]
    values = np.concatenate([each.reshape(-1) for each in finite])
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def served(session: Session) -> Any:
    """The page for one visitor of the server."""
    page, equation = Page(session), session.equation
    pn.state.curdoc.template = TEMPLATE
    pn.state.curdoc.template_variables["about"] = (
        f"{equation.name}: {equation.formula or ', '.join(equation.processes)}"
    )
    browser = pn.state.browser_info
    if browser is not None:
        browser.param.watch(lambda event: page.paint(bool(event.new)), "dark_mode")
    return page.layout()


def in_notebook(model: HyCOP, data: Dataset | None) -> Any:
    """The page as an object that shows itself in a notebook."""
    pn.extension(inline=True)  # scripts come with the notebook, not from the network
    return Page(Session(model, data)).layout()
