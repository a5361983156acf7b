"""The Euler equations of compressible flow: central differences for smooth flow, finite volumes for shocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.grid import BOUNDARIES, Array
from hycop.kernels.central_euler import CELLS as CENTRAL_CELLS
from hycop.kernels.central_euler import central_euler
from hycop.kernels.central_euler import tendencies as central_tendencies
from hycop.kernels.compressible import finite_volumes, peak_rates, tendencies
from hycop.kernels.reconstruction import CELLS
from hycop.primitive import ALL_CHANNELS, checked_cells, checked_cfl, checked_duration, sub_steps, update_work
from hycop.primitives.compressible import check_channels, compressible_example, heat_ratio
from hycop.query import Setting

_RK4_STAGES, _SSPRK3_STAGES = 4, 3


def _fluid(primitive: object, setting: Setting) -> Array:
    """γ, no viscosities, and Euler fluxes."""
    check_channels(primitive, setting)
    nothing = np.zeros(setting.batch)
    return np.column_stack([heat_ratio(setting), nothing, nothing, nothing + 1.0])


def _steps(primitive: object, cfl: float, u: Array, duration: Array, setting: Setting) -> Array:
    """Steps of the Courant number that the present state needs for a duration."""
    rates = peak_rates(u, _fluid(primitive, setting), setting.grid.spacing, setting.grid.boundary)
    return np.maximum(1, sub_steps(np.where(rates[:, 2] > 0, 0.0, rates[:, 0]) * duration / cfl))


@dataclass(frozen=True)
class CentralEuler:
    """Euler equations ρ_t + ∇·m = 0, m_t + ∇·(m⊗v + p) = 0, E_t + ∇·((E + p)v) = 0 by central differences.

    Differences of fourth order of the fluxes (so everything is conserved) and the classical Runge–Kutta method, in
    steps with Σ (|v| + c)τ/Δx ≤ ``cfl``. No filter and no upwinding: cheap and accurate for smooth flow, and with a
    viscosity beside it; alone, a flow that steepens ends as NaN, as does a state that is not physical: use
    ``MusclEuler`` there. Grid values are point values to fourth order, cell averages to second. Parameter: ``gamma``.
    """

    cfl: float = 1.8

    advances: ClassVar[frozenset[str]] = frozenset({"euler"})
    order: ClassVar[float] = 4
    stages: ClassVar[int] = _RK4_STAGES
    fewest_cells: ClassVar[int] = CENTRAL_CELLS
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 2.0)  # 2√2 of Runge–Kutta over 1.372 of the differences

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        check_channels(self, setting)
        checked_cells(self, setting)
        duration = checked_duration(duration, setting)
        return central_euler(u, duration, heat_ratio(setting), setting.grid.spacing, self.cfl)

    def rate(self, u: Array, setting: Setting) -> Array:
        check_channels(self, setting)
        checked_cells(self, setting)
        return central_tendencies(u, heat_ratio(setting), setting.grid.spacing)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, _RK4_STAGES * _steps(self, self.cfl, u, duration, setting))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return compressible_example(seed, ("gamma",))


@dataclass(frozen=True)
class MusclEuler:
    """Euler equations ρ_t + ∇·m = 0, m_t + ∇·(m⊗v + p) = 0, E_t + ∇·((E + p)v) = 0 by MUSCL–HLLC and SSPRK3.

    Van Leer's slopes of density, velocity and pressure; steps with Σ (|v| + c)τ/Δx ≤ ``cfl``, taken again
    without slopes where they would lead to a negative density or pressure. Second order where the flow is smooth,
    sharp at shocks and contacts, conservative for every boundary (walls change momentum, as they should). A state
    that is not physical is NaN. Parameter: ``gamma``. Toro, Riemann Solvers, 3rd ed., §10 and §13.
    """

    cfl: float = 0.8

    advances: ClassVar[frozenset[str]] = frozenset({"euler"})
    order: ClassVar[float] = 2
    stages: ClassVar[int] = _SSPRK3_STAGES
    fewest_cells: ClassVar[int] = CELLS["muscl"]
    conserves: ClassVar[frozenset[str]] = frozenset({"density", "energy"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 0.8)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        checked_cells(self, setting)
        duration, grid = checked_duration(duration, setting), setting.grid
        fluid = _fluid(self, setting)
        return finite_volumes(u, duration, fluid, grid.spacing, grid.boundary, self.cfl, _SSPRK3_STAGES)

    def rate(self, u: Array, setting: Setting) -> Array:
        checked_cells(self, setting)
        return tendencies(u, _fluid(self, setting), setting.grid.spacing, setting.grid.boundary)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, _SSPRK3_STAGES * _steps(self, self.cfl, u, duration, setting))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return compressible_example(seed, ("gamma",))
