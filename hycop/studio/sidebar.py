"""The controls of the page: what is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import panel as pn

from hycop.errors import HyCOPError
from hycop.studio.ranges import Range
from hycop.studio.session import UPLOADED, Controls, Session
from hycop.studio.starts import Sampled
from hycop.studio.style import BESIDE, CARD, TEXT, UNTITLED, WIDGET

OFF = "off"
TOLERANCES: dict[str, float | None] = {
    OFF: None,
    **{f"{tol:g}": tol for tol in (0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)},
}


def heading(title: str, help_line: str) -> Any:
    return pn.pane.HTML(
        f"<h2>{title}</h2><p class='help'>{help_line}</p>",
        stylesheets=[TEXT],
        sizing_mode="stretch_width",
        margin=(0, 0, 4, 0),
    )


def card(*parts: Any, **options: Any) -> Any:
    return pn.Column(*parts, stylesheets=[CARD], sizing_mode="stretch_width", margin=(0, 0, 12, 0), **options)


class Dial:
    """A slider with a field for the number. ``changed`` is called when the slider is let go, or a number is typed."""

    def __init__(self, name: str, within: Range, changed: Callable[[], None]) -> None:
        label = f"{name} ({within.text})" if within.text else name
        plain: dict[str, Any] = {"label": label, "value": within.start, "sizing_mode": "stretch_width"}
        self._changed, self._quiet = changed, False
        self.number = pn.widgets.FloatInput(
            step=within.step, format="0.[000000]", stylesheets=[WIDGET, BESIDE], margin=(2, 0, 0, 0), **plain
        )
        self.slider = pn.widgets.FloatSlider(
            start=within.low,
            end=within.high,
            step=within.step,
            show_value=False,
            stylesheets=[WIDGET, UNTITLED],
            margin=(0, 8, 6, 8),
            **plain,
        )
        self.slider.param.watch(self._moved, "value")
        self.slider.param.watch(self._let_go, "value_throttled")
        self.number.param.watch(self._typed, "value")

    @property
    def value(self) -> float:
        return float(self.number.value)

    def write(self, value: float) -> None:
        """Sets both; the slider grows if the value lies beyond its ends."""
        before, self._quiet = self._quiet, True
        try:
            self.slider.param.update(start=min(self.slider.start, value), end=max(self.slider.end, value), value=value)
            self.number.value = value
        finally:
            self._quiet = before

    def _moved(self, *_: Any) -> None:
        if not self._quiet:
            self._quiet = True
            self.number.value = float(f"{self.slider.value:.6g}")
            self._quiet = False

    def _let_go(self, *_: Any) -> None:
        if not self._quiet:
            self._moved()
            self._changed()

    def _typed(self, *_: Any) -> None:
        if not self._quiet:
            if self.number.value is None:  # an emptied field
                self.write(float(self.slider.value))
                return
            self.write(float(self.number.value))
            self._changed()


def _choice(name: str, options: Any, **more: Any) -> Any:
    return pn.widgets.Select(
        label=name, options=options, stylesheets=[WIDGET], sizing_mode="stretch_width", margin=(2, 0, 4, 0), **more
    )


class Sidebar:
    """Widgets for everything in ``Controls``. ``changed`` is called when the user has changed one of them, ``uploaded``
    with the name and the content of a file."""

    def __init__(self, session: Session, changed: Callable[[], None], uploaded: Callable[[str, bytes], None]) -> None:
        self.session, self._changed, self._uploaded, self._quiet = session, changed, uploaded, False
        first = session.controls()
        self.coefficients = {name: Dial(name, each, self._heard) for name, each in session.coefficients.items()}
        self.lengths = {name: Dial(name, each, self._heard) for name, each in session.lengths.items()}
        self.time = Dial("T", session.time, self._heard)
        self.start = _choice("Initial state", list(session.starts), value=first.start)
        self.number = pn.widgets.IntInput(
            label="Seed", value=0, start=0, stylesheets=[WIDGET], sizing_mode="stretch_width", margin=(2, 0, 4, 0)
        )
        self.file = pn.widgets.FileInput(
            accept=".nc,.npz", stylesheets=[WIDGET], sizing_mode="stretch_width", margin=(2, 0, 6, 0)
        )
        self.boundary = _choice("Boundary", list(session.boundaries), value=first.boundary)
        self.primitives = {
            name: _choice(f"Primitive for {name}", list(options)) for name, options in session.choices.items()
        }
        self.tolerance = pn.widgets.DiscreteSlider(
            label="Tolerance",
            options=TOLERANCES,
            value=None,
            stylesheets=[WIDGET],
            sizing_mode="stretch_width",
            margin=(2, 0, 4, 0),
        )
        self._watch()
        self.write(first)

    def _watch(self) -> None:
        self.tolerance.param.watch(self._heard, "value_throttled")
        for widget in (self.boundary, *self.primitives.values()):
            widget.param.watch(self._heard, "value")
        for widget in (self.start, self.number):
            widget.param.watch(self._other_start, "value")
        self.file.param.watch(self._file, "value")

    def _heard(self, *_: Any) -> None:
        if not self._quiet:
            self._changed()

    def _file(self, *_: Any) -> None:
        if self.file.value:
            self._uploaded(str(self.file.filename), bytes(self.file.value))

    def _other_start(self, *_: Any) -> None:
        """A sample of a file brings its coefficients, its box and its time."""
        if self._quiet:
            return
        source = self.session.starts[self.start.value]
        if isinstance(source, Sampled):
            self.number.value = min(self.number.value or 0, source.data.samples - 1)
            with suppress(HyCOPError):  # the page tells it, because asking fails in the same way
                self.write(self.session.adopted(self.read(), self.start.value, self.number.value))
        self.number.label = "Sample of the file" if isinstance(source, Sampled) else "Seed"
        self._changed()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Changes within the block are not the user's."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def read(self) -> Controls:
        chosen = {name: str(widget.value) for name, widget in self.primitives.items()}
        own = {name: next(iter(options)) for name, options in self.session.choices.items()}
        lengths = tuple(float(widget.value) for widget in self.lengths.values())
        return Controls(
            {name: float(widget.value) for name, widget in self.coefficients.items()},
            float(self.time.value),
            str(self.start.value),
            int(self.number.value or 0),
            str(self.boundary.value),
            lengths or self.session.model.model.box.lengths,
            {name: label for name, label in chosen.items() if label != own[name]},
            self.tolerance.value,
        )

    def write(self, controls: Controls) -> None:
        """Sets the widgets; a slider grows if a value lies beyond its ends."""
        with self.quiet():
            if UPLOADED in self.session.starts and UPLOADED not in self.start.options:
                self.start.options = list(self.session.starts)
            self.start.value, self.number.value = controls.start, controls.number
            self.boundary.value = controls.boundary
            values = {**controls.params, **dict(zip(self.lengths, controls.lengths, strict=False)), "T": controls.time}
            for name, slider in {**self.coefficients, **self.lengths, "T": self.time}.items():
                slider.write(float(values.get(name, slider.value)))

    def layout(self) -> Any:
        dials = (*self.coefficients.values(), *self.lengths.values(), self.time)
        ask = card(
            heading("Question", "Move a slider or type a number. Beyond the trained range the answer is flagged."),
            *(part for dial in dials for part in (dial.number, dial.slider)),
        )
        start = card(
            heading("Initial state", "Choose a family and a seed, or upload a dataset of hycop (.nc or .npz)."),
            self.start,
            self.number,
            self.file,
        )
        parts = card(
            heading("Parts", "Swap the boundary or a primitive. Nothing is trained again."),
            self.boundary,
            *(self.primitives[name] for name, options in self.session.choices.items() if len(options) > 1),
        )
        tolerance = card(
            heading("Tolerance", "Refines program and grid until the estimated error is small enough."),
            self.tolerance,
        )
        return pn.Column(ask, start, parts, tolerance, width=310, margin=(0, 16, 0, 0))
