"""A state on which a primitive is tried, and its refinements in space and time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from hycop.grid import Array, restrict
from hycop.primitive import Primitive
from hycop.query import Setting

ORDER = 0.2
"""How far a measured order may be from the declared one."""

BOX_OF = {"dirichlet": "dirichlet:0.5", "neumann": "neumann:-0.1", "mixed": "dirichlet:0.5/outflow"}
"""The boundaries with values on which a primitive that declares them is tried."""

_FLOOR = 1e-14  # relative differences below this are rounding and tell nothing about an order
_CELLS, _WORK = 2e5, 5e8  # a fourth grid is used if it has no more cells, and costs no more work, than this


@dataclass(frozen=True, eq=False)
class Case:
    """A primitive with a state, a setting and durations to try it on.

    ``scale`` is the size of each channel; ``step`` the duration, for the first sample, from which refinement starts.
    """

    primitive: Primitive
    u: Array
    setting: Setting
    duration: Array
    scale: Array
    step: float

    def flow(self, u: Array, duration: Array, setting: Setting | None = None) -> Array:
        """The flow of copies, so that a primitive that changes its input affects one check only."""
        with np.errstate(all="ignore"):  # a state that overflows is reported as not finite
            return self.primitive.flow(np.array(u), np.array(duration), self.setting if setting is None else setting)

    def distance(self, a: Array, b: Array) -> float:
        """Largest difference relative to the size of its channel."""
        return float(np.max(np.abs(a - b) / self.columns(a)))

    def mean_distance(self, a: Array, b: Array) -> float:
        """The same in the L1 norm, in which limited schemes show their order in spite of their extrema."""
        return float(np.mean(np.abs(a - b) / self.columns(a)))

    def columns(self, a: Array) -> Array:
        """The sizes of the channels, to divide a state by."""
        return self.scale.reshape((-1,) + (1,) * (a.ndim - 2))

    def boxes(self, boundaries: frozenset[str]) -> list[tuple[str, Setting]]:
        """The setting with each combination of some boundaries along its axes."""
        grid = self.setting.grid
        known = sorted(BOX_OF.get(name, name) for name in boundaries)
        return [
            (" × ".join(names), self.setting.with_grid(grid.with_boundary(names)))
            for names in product(known, repeat=grid.axes)
        ]

    def on_level(self, level: int) -> Case:
        """The first sample on a grid with 3^level times the cells per axis, for ``step`` / 3^level."""
        one, factor = slice(0, 1), 3**level
        setting = self.setting.take(one)
        u = interpolated(self.u[one], setting, factor)
        step = self.step / factor
        return Case(self.primitive, u, refined(setting, factor), np.array([step]), self.scale, step)

    def work(self) -> float:
        """Total work; none if the primitive cannot tell, which the check of its work reports."""
        try:
            return float(np.sum(self.primitive.work(self.u, self.duration, self.setting)))
        except Exception:
            return 0.0

    def levels(self) -> range:
        """Levels of refinement by 3: four if that can be afforded, else three."""
        grid = self.setting.grid
        many = grid.cells * 27**grid.axes <= _CELLS and 27 * self.on_level(3).work() <= _WORK
        return range(4 if many else 3)

    def settled(self) -> Case:
        """The same with a ``step`` so short that a third of it on a three times finer grid costs no less per cell.

        A primitive that cuts long durations into sub-steps of its own only answers to shorter ones from there on.
        """
        case = self
        for _ in range(6):
            now, finer = case.on_level(0), case.on_level(1)
            if finer.work() / finer.setting.grid.cells >= 0.99 * now.work() / now.setting.grid.cells:
                return case
            case = replace(case, step=case.step / 3)
        return case


def interpolated(u: Array, setting: Setting, factor: int) -> Array:
    """Point values at the centres of a grid with ``factor`` (odd) times the cells: the old centres are among them.

    Trigonometric along each axis; other than periodic axes are continued by their mirror image, odd for the component
    of a vector normal to a wall.
    """
    if factor == 1:
        return u
    for axis, boundary in enumerate(setting.grid.boundary):
        along, n = 2 + axis, u.shape[2 + axis]
        if boundary != "periodic":
            odd = [boundary == "wall" and channel.normal == axis for channel in setting.channels]
            sign = np.where(odd, -1.0, 1.0).reshape((-1,) + (1,) * setting.grid.axes)
            u = np.concatenate([u, sign * np.flip(u, along)], along)
        modes = np.moveaxis(np.fft.rfft(u, axis=along), along, -1)
        if u.shape[along] % 2 == 0:
            modes[..., -1] *= 0.5  # the inverse counts what was the Nyquist mode twice
        fine = np.fft.irfft(modes, factor * u.shape[along], axis=-1) * factor
        u = np.moveaxis(np.roll(fine, factor // 2, axis=-1)[..., : factor * n], -1, along)
    return np.ascontiguousarray(u)


def refined(setting: Setting, factor: int) -> Setting:
    """The setting with ``factor`` (odd) times the cells; its fields are interpolated as states are, so that they are
    smooth on every level."""
    box = Setting(setting.grid, ("field",), {})  # type: ignore[arg-type]
    fine = {name: interpolated(values[:, None], box, factor)[:, 0] for name, values in setting.fields.items()}
    return Setting(setting.grid.refined(factor), setting.channels, {**setting.params, **fine})


class Observed(NamedTuple):
    """A measured order: infinite if there is only rounding, a lower bound if rounding came too soon, NaN if unknown."""

    order: float
    at_least: bool = False

    def __str__(self) -> str:
        if self.order == math.inf:
            return "∞ (rounding only)"
        return f"{'≥ ' if self.at_least else ''}{self.order:.2f}"

    def is_about(self, declared: float) -> bool:
        """Whether it is the declared order, as far as can be told."""
        return abs(self.order - declared) <= ORDER or (self.at_least and self.order <= declared)

    def reaches(self, declared: float) -> bool:
        """Whether it is the declared order or a higher one, as far as can be told."""
        return self.at_least or self.order >= declared - ORDER


def observed_order(errors: Array, ratio: int) -> Observed:
    """The order at which errors shrink when cells and durations shrink by a ratio: from the last two above rounding."""
    if not np.isfinite(errors).all():
        return Observed(math.nan)
    known = np.flatnonzero(errors > _FLOOR)
    if known.size == 0:
        return Observed(math.inf)
    last = int(known[-1])
    if last > 0 and errors[last - 1] > _FLOOR:
        return Observed(math.log(errors[last - 1] / errors[last], ratio))
    if last + 1 == errors.size:
        return Observed(math.nan)
    return Observed(math.log(errors[last] / _FLOOR, ratio), at_least=True)


def changes(case: Case, space: int, time: int, levels: range, averages: bool = False) -> Array:
    """How much results still change from level to level with space^level times the cells per axis and time^level steps.

    Grid values are read as points at the centres, or as averages over cells: a scheme for a nonlinear process may have
    its order in one of the two only.
    """
    one = case.on_level(0)
    finest = interpolated(one.u, one.setting, space ** levels[-1]) if averages else one.u
    results = []
    for level in levels:
        factor, steps = space**level, time**level
        fine = refined(one.setting, factor)
        grid = fine.grid
        u = restrict(finest, grid.shape) if averages else interpolated(one.u, one.setting, factor)
        for _ in range(steps):
            u = one.flow(u, one.duration / steps, fine)
        centres = (slice(None), slice(None), *(slice(factor // 2, None, factor) for _ in grid.shape))
        results.append(restrict(u, one.setting.grid.shape) if averages else u[centres])
    return np.array([one.mean_distance(a, b) for a, b in pairwise(results)])
