"""The dimensionless numbers that a network is told, and the range of them on which it was trained.

In units of the box a velocity c is c/L, a diffusivity D is D/L², a rate r is r; times a duration τ each is a
dimensionless number. A network that knows these alone serves in any box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.pde import Equation
from hycop.primitives.learned.units import Unit, find_units
from hycop.query import Setting

KINDS = ("velocity", "diffusivity", "rate", "transit", "time", "size", "other")
"""Kinds of numbers: c τ/L, D τ/L², r τ, s τ/L with the speed s of the sample's own units, τ; and those that do not grow
with the duration: the size of the state, and coefficients as they are."""

CONSTANT = ("size", "other")

SIZE_SLACK = 0.05
"""Share of its width by which the size of a state may leave its trained range."""

SLACK = 1e-6
"""Share by which a number may leave its range: files in single precision round it."""

Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a network: ``kinds`` gives the kind and axis of each by name, ``ranges`` the trained range of each
    per unit of time (of a constant one, its own range), ``longest`` the longest trained duration, ``units`` the units
    of the state, see ``UNITS``.

    >>> from hycop.grid import Grid
    >>> r = Numbers({"r": ("rate", None)}, {"r": (0.1, 1.0)}, 0.5)
    >>> u, setting = np.ones((1, 1, 8)), Setting(Grid.box((8,)), ("u",), {"r": 2.0})
    >>> r.substeps(u, np.array([0.5]), setting), r(u, np.array([0.25]), setting)
    (array([2.]), array([[1.]]))
    """

    kinds: Mapping[str, tuple[str, int | None]]
    ranges: Mapping[str, Interval]
    longest: float
    units: str = "fixed"

    def __post_init__(self) -> None:
        find_units(self.units)
        for name, (kind, axis) in self.kinds.items():
            if kind not in KINDS or (axis is not None and axis not in range(len(AXES))):
                raise InvalidInputError(f"number '{name}': kind {kind!r} of axis {axis!r} is not known")
        if set(self.ranges) != set(self.kinds) or not self.timed:
            raise InvalidInputError("numbers of a network: each needs a range, and one must grow with the duration")
        for name, (low, high) in self.ranges.items():
            if not (np.isfinite([low, high]).all() and low <= high):
                raise InvalidInputError(f"range of number '{name}' is {low}, {high}: it must not end before it begins")
        if not (np.isfinite(self.longest) and self.longest > 0):
            raise InvalidInputError(f"longest trained duration is {self.longest}: it must be positive")

    @classmethod
    def of(
        cls,
        equation: Equation,
        names: Sequence[str],
        u: Array,
        setting: Setting,
        longest: float,
        units: str = "fixed",
        sized: bool = True,
    ) -> Numbers:
        """Those of the named coefficients of an equation, with the ranges of the samples given. Where the equation has
        speeds of its own, or no coefficient that gives a time scale, the duration itself is one too. A network that is
        not linear (``sized``) is told the size of a state that is a unit but no symmetry of the equation."""
        known = find_units(units)
        kinds: dict[str, tuple[str, int | None]] = {
            name: (equation.coefficients[name].kind, equation.coefficients[name].axis)
            for name in names
            if name not in known.absorbs
        }
        alone = all(kind == "other" for kind, _ in kinds.values())
        if equation.speeds or equation.unit_rate or alone:
            kinds |= {f"1/L{AXES[axis]}": ("transit", axis) for axis in range(setting.grid.axes)}
        if equation.unit_rate or (alone and not equation.speeds):
            kinds["1"] = ("time", None)
        if known.told and sized:
            kinds["|u|"] = ("size", None)
        unit, ranges = known.measure(u, setting), dict[str, Interval]()
        for name, (kind, axis) in kinds.items():
            values = _value(name, kind, axis, unit, setting)
            ranges[name] = (float(values.min()), float(values.max()))
        return cls(kinds, ranges, longest, units)

    @property
    def timed(self) -> tuple[str, ...]:
        """Names of the numbers that grow with the duration, in order."""
        return tuple(sorted(name for name, (kind, _) in self.kinds.items() if kind not in CONSTANT))

    @property
    def constant(self) -> tuple[str, ...]:
        return tuple(sorted(name for name, (kind, _) in self.kinds.items() if kind in CONSTANT))

    def unit(self, u: Array, setting: Setting) -> Unit:
        """The units of each sample."""
        return find_units(self.units).measure(u, setting)

    def per_time(self, u: Array, setting: Setting) -> Array:
        """The timed numbers per unit of time, (batch, timed)."""
        unit = self.unit(u, setting)
        return np.stack([_value(name, *self.kinds[name], unit, setting) for name in self.timed], axis=1)

    @property
    def scales(self) -> Array:
        """The largest trained size of each timed number, (timed,)."""
        sizes = np.array([max(map(abs, self.ranges[name])) for name in self.timed]) * self.longest
        return np.where(sizes > 0, sizes, 1.0)

    def __call__(self, u: Array, duration: Array, setting: Setting) -> Array:
        """All numbers (batch, numbers) as a network is told them: timed ones over their trained size, then constant
        ones moved to [−1, 1]."""
        unit = self.unit(u, setting)
        columns = [self.per_time(u, setting) * duration[:, None] / self.scales]
        for name in self.constant:
            low, high = self.ranges[name]
            values = _value(name, *self.kinds[name], unit, setting)
            columns.append(((values - 0.5 * (low + high)) / (0.5 * (high - low) or 1.0))[:, None])
        return np.concatenate(columns, axis=1)

    def substeps(self, u: Array, duration: Array, setting: Setting) -> Array:
        """How many equal steps keep every timed number within its trained size, (batch,), at least one."""
        needed = np.abs(self.per_time(u, setting) * duration[:, None] / self.scales).max(axis=1)
        return np.maximum(np.ceil(needed * (1 - SLACK)), 1.0)

    def outside(self, u: Array, setting: Setting) -> Array:
        """Which samples (batch,) no choice of the unit of time brings into the trained ranges. A step may be as short
        as it likes, so that only the ratios of the timed numbers count."""
        low, high = np.array([self.ranges[name] for name in self.timed]).T
        margin = SLACK * np.maximum(np.abs(low), np.abs(high))
        values = self.per_time(u, setting)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(low - margin) / values, (high + margin) / values])
        still, within = values == 0, (low <= margin) & (high >= -margin)
        first = np.where(still, np.where(within, 0.0, np.inf), ends.min(axis=0)).max(axis=1)
        last = np.where(still, np.inf, ends.max(axis=0)).min(axis=1)
        out: Array = (first > last) | (last <= 0)
        unit = self.unit(u, setting)
        for name in self.constant:
            lowest, highest = self.ranges[name]
            wide = SIZE_SLACK * (highest - lowest) if self.kinds[name][0] == "size" else 0.0
            slack = max(wide, SLACK * max(abs(lowest), abs(highest)))
            given = _value(name, *self.kinds[name], unit, setting)
            out |= (given < lowest - slack) | (given > highest + slack)
        return out


def _value(name: str, kind: str, axis: int | None, unit: Unit, setting: Setting) -> Array:
    """A number per unit of time, or a constant one itself, (batch,)."""
    lengths = setting.grid.lengths if axis is None else setting.grid.lengths[:, axis : axis + 1]
    if kind == "size":
        return unit.channels[:, 0]
    if kind == "time":
        return np.ones(setting.batch)
    if kind == "transit":
        return unit.speed * (1.0 / lengths).mean(axis=1)
    power = {"velocity": 1, "diffusivity": 2}.get(kind, 0)
    return setting.param(name) * (lengths**-power).mean(axis=1)
