"""Shallow water over a bed that is not flat: gravity waves, or these and the advection of momentum unsplit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.grid import BOUNDARIES, Array
from hycop.kernels import over_bed as kernel
from hycop.kernels.reconstruction import CELLS
from hycop.kernels.water_fluxes import BOTH, GRAVITY
from hycop.primitive import checked_cells, checked_cfl, checked_duration, update_work
from hycop.primitives.examples import shallow_water_example, with_bed
from hycop.primitives.shallow_water import checked_water, gravity_of
from hycop.query import Setting

STAGES = 2


def _flow(primitive: object, u: Array, duration: Array, setting: Setting, cfl: float, system: int) -> Array:
    checked_water(setting)
    checked_cells(primitive, setting)
    tau, g, grid = checked_duration(duration, setting), gravity_of(setting), setting.grid
    return kernel.flow(u, setting.field("b"), tau, grid.boundary, grid.spacing, g, cfl, system)


def _rate(primitive: object, u: Array, setting: Setting, system: int) -> Array:
    checked_water(setting)
    checked_cells(primitive, setting)
    grid = setting.grid
    return kernel.tendencies(u, setting.field("b"), grid.boundary, grid.spacing, gravity_of(setting), system)


def _work(u: Array, duration: Array, setting: Setting, cfl: float, system: int) -> Array:
    """Stages times the sub-steps that the waves of the given state need; one for a state that is NaN or dry."""
    checked_water(setting)
    rates = kernel.speeds(u, setting.grid.spacing, gravity_of(setting), system)
    return update_work(setting, STAGES * np.fmax(np.ceil(rates * duration / cfl), 1.0))


@dataclass(frozen=True)
class GravityWaveOverBed:
    """Gravity waves over a bed b(x): h_t + ∇·m = 0, m_t + ∇(½gh²) + g h ∇b = 0.

    Well balanced: water at rest, h + b = const and m = 0, stays at rest to rounding. MUSCL edges of surface, depth and
    momentum (van Leer's limiter), hydrostatic reconstruction at the faces (Audusse et al., SIAM J. Sci. Comput. 25
    (2004) 2050), Rusanov's flux, Heun's method. Second order. It needs water everywhere: a sample with a dry cell comes
    back as NaN. Compose it with ``MomentumAdvection``, which does not feel the bed. ``cfl`` bounds Σ_i √(gh)τ/Δx_i of a
    sub-step. Channels ``h``, ``hu``, ``hv``; parameters ``g`` and ``b``, a field.
    """

    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"gravity"})
    order: ClassVar[float] = 2
    stages: ClassVar[int] = STAGES
    fewest_cells: ClassVar[int] = CELLS["muscl"]
    conserves: ClassVar[frozenset[str]] = frozenset({"h"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 0.5)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(self, u, duration, setting, self.cfl, GRAVITY)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(self, u, setting, GRAVITY)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(u, duration, setting, self.cfl, GRAVITY)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return with_bed(*shallow_water_example(seed))


@dataclass(frozen=True)
class ShallowWaterOverBed:
    """The shallow-water equations over a bed b(x), unsplit: h_t + ∇·m = 0, m_t + ∇·(m⊗m/h + ½gh² I) + g h ∇b = 0.

    As ``GravityWaveOverBed``, with the HLLC flux. ``cfl`` bounds Σ_i (|m_i|/h + √(gh))τ/Δx_i of a sub-step.
    Channels ``h``, ``hu``, ``hv``; parameters ``g`` and ``b``, a field.
    """

    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"gravity", "momentum"})
    order: ClassVar[float] = 2
    stages: ClassVar[int] = STAGES
    fewest_cells: ClassVar[int] = CELLS["muscl"]
    conserves: ClassVar[frozenset[str]] = frozenset({"h"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 0.5)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(self, u, duration, setting, self.cfl, BOTH)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(self, u, setting, BOTH)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(u, duration, setting, self.cfl, BOTH)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return with_bed(*shallow_water_example(seed))
