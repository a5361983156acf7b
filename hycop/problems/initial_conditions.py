"""Profiles: families of scalar fields on a periodic box, as smooth functions of box coordinates s ∈ [0, 1].

All are periodic and smooth as functions, whatever the grid; those in [0, 1] stay there. ``scalar`` makes the initial
state of a scalar equation of one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hycop.grid import Array, Grid
from hycop.problems.draw import Draw
from hycop.query import Setting

Box = tuple[Array, ...]
Profile = Callable[[Draw, Box], Array]
"""(draw, box coordinates in [0, 1] per axis, each (batch, …)) → a field (batch, *grid) of point values."""


def box_of(grid: Grid) -> Box:
    """Box coordinates of the cell centres, each (batch, 1, …, n, …, 1)."""
    return tuple(
        centre / grid.lengths[:, axis].reshape((-1,) + (1,) * grid.axes) for axis, centre in enumerate(grid.centres())
    )


def scalar(profile: Profile) -> Callable[[Draw, Setting], Array]:
    """The initial condition of a scalar equation: its only channel has the given profile."""
    return lambda draw, setting: profile(draw, box_of(setting.grid))[:, None]


def _over(values: Array, box: Box) -> Array:
    """One number per sample, ready to broadcast over the box."""
    return values.reshape((-1,) + (1,) * len(box))


def _distance_squared(draw: Draw, box: Box) -> Array:
    """Squared distance to a random centre; sin(πd)/π stands for d, so that it is periodic and smooth."""
    total: Array = np.zeros(1)
    for s in box:
        total = total + (np.sin(np.pi * (s - _over(draw.uniform(0, 1), box))) / np.pi) ** 2
    return total


def _wave(draw: Draw, box: Box, low: int, high: int) -> Array:
    """2π(j·s) + phase with a random integer vector j: its first entry at least ``low``, the others of either sign."""
    angle: Array = _over(draw.uniform(0, 2 * np.pi), box)
    for axis, s in enumerate(box):
        number = draw.integer(low, high) if axis == 0 else draw.integer(-high, high)
        angle = angle + 2 * np.pi * _over(number, box) * s
    return angle


class Bump:
    """a·exp(−d²/2w²): a Gaussian pulse with width in ``widths``."""

    def __init__(self, widths: tuple[float, float]) -> None:
        self.widths = widths

    def __call__(self, draw: Draw, box: Box) -> Array:
        distance = _distance_squared(draw, box)
        width = _over(draw.log_uniform(*self.widths), box)
        return _over(draw.uniform(0.5, 1.0), box) * np.exp(-distance / (2 * width**2))


class Bumps:
    """1 − Π(1 − bump_i): two to four Gaussian pulses, joined so that they stay below one."""

    def __init__(self, widths: tuple[float, float]) -> None:
        self.widths = widths

    def __call__(self, draw: Draw, box: Box) -> Array:
        number = draw.integer(2, 4)
        rest: Array = np.ones(1)
        for index in range(4):
            bump = Bump(self.widths)(draw, box)
            rest = rest * (1 - np.where(_over(number, box) > index, bump, 0.0))
        return 1 - rest


class Step:
    """A plateau across the box along a random axis: two fronts ½(1 ± tanh) of thickness in ``widths``.

    The fronts are level lines of cos 2π(s − s₀) at a random half width, scaled to the wanted slope there.
    """

    def __init__(self, widths: tuple[float, float]) -> None:
        self.widths = widths

    def __call__(self, draw: Draw, box: Box) -> Array:
        axis = draw.integer(0, len(box) - 1)
        s: Array = np.choose(_over(axis, box), np.broadcast_arrays(*box)) if len(box) > 1 else box[0]
        centre, half = _over(draw.uniform(0, 1), box), _over(draw.uniform(0.15, 0.35), box)
        width = _over(draw.log_uniform(*self.widths), box)
        level = np.cos(2 * np.pi * (s - centre)) - np.cos(2 * np.pi * half)
        front = level / (2 * np.pi * np.sin(2 * np.pi * half) * width)
        return _over(draw.uniform(0.5, 1.0), box) * 0.5 * (1 + np.tanh(front))


class Steps:
    """The mean of two to four plateaus: a profile with several levels."""

    def __init__(self, widths: tuple[float, float]) -> None:
        self.widths = widths

    def __call__(self, draw: Draw, box: Box) -> Array:
        number = draw.integer(2, 4)
        total: Array = np.zeros(1)
        for index in range(4):
            total = total + np.where(_over(number, box) > index, Step(self.widths)(draw, box), 0.0)
        return total / _over(number, box)


class Ring:
    """a·exp(−(d² − R²)²/2(2Rw)²): a ring of radius R and thickness w in ``widths``, smooth at its centre too."""

    def __init__(self, widths: tuple[float, float]) -> None:
        self.widths = widths

    def __call__(self, draw: Draw, box: Box) -> Array:
        distance = _distance_squared(draw, box)
        radius, width = _over(draw.uniform(0.15, 0.25), box), _over(draw.uniform(*self.widths), box)
        shell = (distance - radius**2) / (2 * radius * width)
        return _over(draw.uniform(0.5, 1.0), box) * np.exp(-0.5 * shell**2)


class Wave:
    """½ + ½a·sin(2π j·s + φ): oblique stripes with wave numbers from ``low`` to ``high``."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __call__(self, draw: Draw, box: Box) -> Array:
        return 0.5 + 0.5 * _over(draw.uniform(0.5, 1.0), box) * np.sin(_wave(draw, box, self.low, self.high))


class Sigmoid:
    """1/(1 + e^{−sin(2π j·s + φ)/w}): smooth transitions between two levels along a random direction."""

    def __call__(self, draw: Draw, box: Box) -> Array:
        width = _over(draw.uniform(0.15, 0.5), box)
        return _over(draw.uniform(0.5, 1.0), box) / (1 + np.exp(-np.sin(_wave(draw, box, 1, 1)) / width))


class FourierSeries:
    """½ + Σ_j a_j sin(2π j·s + φ_j)/j, five random modes of low frequency, scaled to stay in (0, 1)."""

    def __call__(self, draw: Draw, box: Box) -> Array:
        total: Array = np.full(1, 0.5)
        for j in range(1, 6):
            amplitude = _over(draw.uniform(-1.0, 1.0), box)
            angle: Array = _over(draw.uniform(0, 2 * np.pi), box)
            for s in box:
                angle = angle + 2 * np.pi * j * s
            total = total + 0.2 * amplitude * np.sin(angle) / j
        return total


class Near:
    """level + span·(stripes): a state close to a uniform one (saturation at 1, extinction at 0)."""

    def __init__(self, level: float, span: float) -> None:
        self.level, self.span = level, span

    def __call__(self, draw: Draw, box: Box) -> Array:
        return self.level + self.span * Wave(1, 3)(draw, box)
