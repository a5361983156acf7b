"""A PDE as data: processes, channels, coefficients with their bounds and time scales, and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from numbers import Real
from typing import Literal, get_args

import numpy as np

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import AXES, Array
from hycop.query import Channel, Setting, checked_channels

Kind = Literal["velocity", "diffusivity", "rate", "other"]


@dataclass(frozen=True)
class Coefficient:
    """A physical coefficient of an equation.

    ``kind`` gives its time scale: a ``velocity`` c crosses the box in L/c, a ``diffusivity`` D spreads over it in L²/D,
    a ``rate`` r grows e-fold in 1/r; any ``other`` coefficient has none. A velocity or diffusivity acts along ``axis``,
    or along every axis if that is None. The equation is well-posed for values ``above`` a number, or ``at_least`` one.
    """

    kind: Kind = "other"
    axis: int | None = None
    above: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UnknownNameError("kind of coefficient", str(self.kind), get_args(Kind))
        if self.axis is not None and self.axis not in range(len(AXES)):
            raise InvalidInputError(f"axis {self.axis!r} of a coefficient: 0, 1, 2 or None is needed")
        for bound in (self.above, self.at_least):
            if bound is not None and not _is_number(bound):
                raise InvalidInputError(f"bound {bound!r:.40} of a coefficient: a finite number or None is needed")

    def check(self, name: str, values: Array) -> None:
        """Refuses values for which the equation is ill-posed."""
        if self.above is None and self.at_least is None:
            return
        least = values.min(initial=np.inf)
        if (self.above is None or least > self.above) and (self.at_least is None or least >= self.at_least):
            return
        bad, need = np.zeros(values.shape, dtype=bool), ""
        if self.above is not None:
            bad, need = values <= self.above, f"be above {self.above:g}"
        if self.at_least is not None:
            below = values < self.at_least
            need = need if bad.any() else "not be negative" if self.at_least == 0 else f"be at least {self.at_least:g}"
            bad = bad | below
        if bad.any():
            place = tuple(np.argwhere(bad)[0].tolist())
            cell = f", cell {place[1:]}" if len(place) > 1 else ""
            raise InvalidInputError(
                f"parameter '{name}' is {values[place]:g} for sample {place[0]}{cell}: it must {need}"
            )


def per_axis(letter: str, kind: Kind, axes: int, at_least: float | None = None) -> dict[str, Coefficient]:
    """One coefficient for each axis, named by its letter: ``cx``, ``cy``, …

    >>> sorted(per_axis("D", "diffusivity", 2, at_least=0.0))
    ['Dx', 'Dy']
    """
    return {letter + AXES[axis]: Coefficient(kind, axis, at_least=at_least) for axis in range(axes)}


@dataclass(frozen=True)
class Equation:
    """A PDE u_t = Σ_j F_j(u) as a sum of processes, with the coefficients that a query must give.

    ``channels`` are those of the state, by name or as ``Channel``. ``positive`` names the channels and reported
    variables that must stay above zero. ``features`` name what a policy sees of a query (None: every feature that
    applies), ``gain_features`` what feeds its gains. Time scales come from the coefficients, from state-dependent
    ``speeds`` (names in ``hycop.features.SPEEDS``), and from ``unit_rate`` (e-foldings per unit of time) if the
    equation has no rate. ``guessed`` marks an equation that was made from the names in a dataset. Its time scales may
    be incomplete, so programs are also repeated when the query time itself is beyond that of training.

    >>> heat = Equation("heat", ("conduction",), ("T",), {"k": Coefficient("diffusivity", at_least=0.0)})
    >>> heat.channels, heat.coefficients["k"].kind
    ((Channel(name='T', normal=None),), 'diffusivity')
    """

    name: str
    processes: tuple[str, ...]
    channels: tuple[Channel, ...]
    coefficients: Mapping[str, Coefficient] = field(default_factory=dict)
    features: tuple[str, ...] | None = None
    gain_features: tuple[str, ...] = ()
    speeds: tuple[str, ...] = ()
    unit_rate: float = 0.0
    positive: tuple[str, ...] = ()
    formula: str = ""
    guessed: bool = False

    def __post_init__(self) -> None:
        for name in ("processes", "channels", "gain_features", "speeds", "positive", "features"):
            given = getattr(self, name)
            if given is None and name == "features":
                continue
            if isinstance(given, str | Channel) or not isinstance(given, Iterable):
                raise InvalidInputError(f"{name} of equation {self.name} is {given!r}: a tuple is needed")
            object.__setattr__(self, name, tuple(given))
        for text in (self.name, self.formula, *self.processes):
            if not isinstance(text, str):
                raise InvalidInputError(
                    f"equation {self.name}: its name, formula and processes are texts, not {text!r}"
                )
        if not self.processes or len(set(self.processes)) < len(self.processes):
            raise InvalidInputError(f"processes of equation {self.name}: at least one is needed, each once")
        object.__setattr__(self, "channels", checked_channels(self.channels, len(AXES)))
        if not self.channels:
            raise InvalidInputError(f"channels of equation {self.name}: at least one is needed")
        self._check_numbers()
        object.__setattr__(self, "coefficients", dict(self.coefficients))

    def _check_numbers(self) -> None:
        if not _is_number(self.unit_rate) or self.unit_rate < 0:
            raise InvalidInputError(f"unit_rate of equation {self.name} is {self.unit_rate!r}: a number ≥ 0 is needed")
        given = self.coefficients
        if not isinstance(given, Mapping) or not all(isinstance(each, Coefficient) for each in given.values()):
            raise InvalidInputError(
                f"coefficients of equation {self.name}: give one by each name, as {{'k': Coefficient('rate')}}"
            )

    def __hash__(self) -> int:
        return hash((self.name, self.processes, self.channels))

    def with_process(self, process: str, coefficients: Mapping[str, Coefficient] | None = None) -> Equation:
        """The equation with one more process, and the coefficients that it brings."""
        if process in self.processes:
            raise InvalidInputError(f"equation {self.name} has the process '{process}' already")
        more = {**self.coefficients, **(coefficients or {})}
        return replace(self, processes=(*self.processes, process), coefficients=more)

    def check_names(self, params: Mapping[str, object], *, complete: bool = True) -> None:
        """Refuses coefficients that the equation does not have and, if ``complete``, missing ones. Checks nothing if
        the equation is guessed."""
        known = self.coefficients
        if self.guessed:
            return
        for name in params:
            if name not in known:
                raise UnknownNameError("parameter", name, known, f"(of {self.name})")
        for name in known:
            if complete and name not in params:
                raise InvalidInputError(
                    f"parameter '{name}' of {self.name} is missing (given: {_listed(params)}; for PDEBench's files: "
                    f"--param {name}=…)"
                )

    def check_setting(self, setting: Setting) -> None:
        """Refuses a setting whose coefficients are not those of the equation, or make it ill-posed."""
        self.check_names(setting.params)
        self.check_bounds(setting)

    def check_bounds(self, setting: Setting) -> None:
        """Refuses coefficients that make the equation ill-posed."""
        for name, values in setting.params.items():
            if name in self.coefficients:  # what a guessed equation has is not known
                self.coefficients[name].check(name, values)

    def check_question(self, setting: Setting, axes: int) -> None:
        """Refuses a setting of another equation: other axes, channels or coefficients."""
        if setting.grid.axes != axes:
            raise InvalidInputError(f"the query has {setting.grid.axes} axes, but {self.name} has {axes} here")
        if setting.channels != self.channels:
            theirs, ours = (", ".join(one.name for one in some) for some in (setting.channels, self.channels))
            raise InvalidInputError(f"the query has the channels {theirs}, but {self.name} has {ours}")
        self.check_names(setting.params, complete=False)

    def check_states(self, states: Array, setting: Setting, frame: int, vacuum: bool = False) -> None:
        """Refuses states (batch, channel, *grid) in which a ``positive`` channel is not above zero. With ``vacuum``
        zero is allowed where there is no momentum."""
        momenta = [position for position, channel in enumerate(setting.channels) if channel.normal is not None]
        for position, channel in enumerate(setting.channels):
            if channel.name not in self.positive:
                continue
            lowest = states[:, position].reshape(setting.batch, -1).min(axis=1)
            bad = np.flatnonzero(~(lowest >= 0 if vacuum else lowest > 0))
            if bad.size:
                raise InvalidInputError(
                    f"{channel.name} of sample {bad[0]}, time index {frame}, is {lowest[bad[0]]:g} somewhere: "
                    f"it must {'not be negative' if vacuum else 'be above zero'}"
                )
            empty = (states[:, position] == 0)[:, None]
            moving = (empty & (states[:, momenta] != 0)).reshape(setting.batch, -1).any(axis=1)
            if moving.any():
                raise InvalidInputError(
                    f"{channel.name} of sample {np.flatnonzero(moving)[0]}, time index {frame}, is 0 where there is "
                    "momentum: nothing cannot move"
                )


def same_equation(one: Equation, other: Equation) -> bool:
    """Whether a model of one equation can answer queries of the other: same processes, channels and coefficients."""
    return (one.processes, one.channels, set(one.coefficients)) == (
        other.processes,
        other.channels,
        set(other.coefficients),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and isfinite(value)


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(names) or "none"
