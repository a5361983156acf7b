"""Shallow water over a flat bed in one or two dimensions: gravity waves, advection of momentum, or both unsplit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, get_args

import numpy as np

from hycop.channels import water_channels
from hycop.errors import InvalidInputError, InvalidSampleError, UnknownNameError
from hycop.grid import BOUNDARIES, Array
from hycop.kernels import shallow_water as kernel
from hycop.kernels.reconstruction import CELLS, STAGES
from hycop.kernels.water_fluxes import BOTH, GRAVITY, MOMENTUM
from hycop.primitive import checked_cells, checked_cfl, checked_duration, update_work
from hycop.primitives.examples import shallow_water_example
from hycop.query import Setting

Reconstruction = Literal["muscl", "weno5", "hancock", "weno5-hancock"]


class Solver(Protocol):
    """The numerical options of a shallow-water primitive."""

    @property
    def reconstruction(self) -> str: ...

    @property
    def cfl(self) -> float: ...


def _checked_options(reconstruction: str, cfl: float) -> None:
    if reconstruction not in get_args(Reconstruction):
        raise UnknownNameError("reconstruction", str(reconstruction), get_args(Reconstruction))
    checked_cfl(cfl, 1.0)


def checked_water(setting: Setting) -> None:
    if setting.grid.axes > 2 or setting.channels != water_channels(setting.grid.axes):
        given = ", ".join(f"{channel.name} (normal {channel.normal})" for channel in setting.channels)
        raise InvalidInputError(
            f"channels {given} on {setting.grid.axes} axes: shallow water has h, hu (normal 0) on one axis "
            "and h, hu (normal 0), hv (normal 1) on two"
        )


def gravity_of(setting: Setting) -> Array:
    """g (batch,), positive."""
    g = setting.param("g")
    if (g <= 0).any():
        raise InvalidInputError(f"parameter 'g' is not positive for sample {int(np.flatnonzero(g <= 0)[0])}")
    return g


def _check_wet(u: Array, system: int) -> None:
    """Refuses a dry bed, where only both processes together have a solution; a negative depth becomes NaN."""
    dry = np.flatnonzero((u[:, 0] == 0).reshape(u.shape[0], -1).any(axis=1))
    if dry.size and system != BOTH:
        raise InvalidSampleError(
            int(dry[0]),
            " has a dry bed (h = 0): gravity waves and momentum cannot be told apart there; take a primitive that "
            "advances both, as ShallowWater in the dictionary 'unsplit'",
        )


def _check(solver: Solver, u: Array, setting: Setting, system: int) -> None:
    checked_water(setting)
    checked_cells(solver, setting)
    _check_wet(u, system)


def _flow(solver: Solver, u: Array, duration: Array, setting: Setting, system: int) -> Array:
    _check(solver, u, setting, system)
    tau, g, grid, signs = checked_duration(duration, setting), gravity_of(setting), setting.grid, setting.wall_signs()
    return kernel.flow(u, tau, grid.boundary, signs, grid.spacing, g, solver.cfl, solver.reconstruction, system)


def _rate(solver: Solver, u: Array, setting: Setting, system: int) -> Array:
    _check(solver, u, setting, system)
    grid, g, signs = setting.grid, gravity_of(setting), setting.wall_signs()
    return kernel.tendencies(u, grid.boundary, signs, grid.spacing, g, solver.reconstruction, system)


def _work(solver: Solver, u: Array, duration: Array, setting: Setting, system: int) -> Array:
    """Stages times the sub-steps that the waves of the given state need; one for a state that is NaN."""
    checked_water(setting)
    rates = kernel.rates(u, setting.grid.spacing, gravity_of(setting), system)
    steps = np.fmax(np.ceil(rates * duration / solver.cfl), 1.0)
    return update_work(setting, STAGES[solver.reconstruction].size * steps)


@dataclass(frozen=True)
class GravityWave:
    """Gravity waves h_t + ∇·m = 0, m_t + ∇(½gh²) = 0 of depth h and momentum m: the part of the shallow-water equations
    that remains when momentum is not advected.

    Hyperbolic with the speeds ±√(gh); momentum along a front stays as it is. Finite volumes with Rusanov's flux, which
    resolves both waves, between edges by fifth-order WENO-Z (``weno5``, three Runge–Kutta stages) or by van Leer's
    limiter (``muscl``, two stages). ``hancock`` and ``weno5-hancock`` take edges, by the monotonised central limiter or
    by WENO-Z, to half the step instead and need one stage; a good ``cfl`` for them is 0.9. Second order in two
    dimensions, where fluxes are taken at the middle of a face; ``weno5`` has third order in one. Depth stays positive
    where the equations let it; otherwise, as where water runs apart so fast that the bed falls dry, a sample comes back
    as NaN. ``cfl`` bounds Σ_i √(gh)τ/Δx_i of a sub-step.
    Channels ``h``, ``hu``, ``hv``; parameter ``g``.
    """

    reconstruction: Reconstruction = "weno5"
    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"gravity"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = frozenset({"h"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _checked_options(self.reconstruction, self.cfl)

    @property
    def fewest_cells(self) -> int:
        return CELLS[self.reconstruction]

    @property
    def stages(self) -> int:
        return STAGES[self.reconstruction].size

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(self, u, duration, setting, GRAVITY)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(self, u, setting, GRAVITY)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(self, u, duration, setting, GRAVITY)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return shallow_water_example(seed)


@dataclass(frozen=True)
class MomentumAdvection:
    """Advection of momentum m_t + ∇·(m⊗m/h) = 0 over a frozen depth, h_t = 0: the rest of the shallow-water equations
    beside ``GravityWave``.

    Along an axis the normal momentum has the speed 2m/h and the other is carried along with m/h. Finite volumes with
    Godunov's flux for the convex m²/h; reconstruction, order and lost samples as for ``GravityWave``. ``cfl`` bounds
    Σ_i 2|m_i|τ/(hΔx_i) of a sub-step. Channels ``h``, ``hu``, ``hv``; parameter ``g``, which has no effect.
    """

    reconstruction: Reconstruction = "weno5"
    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"momentum"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = frozenset({"h"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _checked_options(self.reconstruction, self.cfl)

    @property
    def fewest_cells(self) -> int:
        return CELLS[self.reconstruction]

    @property
    def stages(self) -> int:
        return STAGES[self.reconstruction].size

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(self, u, duration, setting, MOMENTUM)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(self, u, setting, MOMENTUM)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(self, u, duration, setting, MOMENTUM)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return shallow_water_example(seed)


@dataclass(frozen=True)
class ShallowWater:
    """The shallow-water equations h_t + ∇·m = 0, m_t + ∇·(m⊗m/h + ½gh² I) = 0, unsplit.

    Finite volumes with the HLLC flux; reconstruction, order and lost samples as for ``GravityWave``. The bed may be
    dry: depth never gets negative, since edges are kept wet (Zhang and Shu) and a sub-step that would drain a cell is
    tried again with half its length; cells shallower than 10⁻⁹ of the deepest are at rest. ``cfl`` bounds
    Σ_i (|m_i|/h + √(gh))τ/Δx_i of a sub-step. Channels ``h``, ``hu``, ``hv``; parameter ``g``.
    """

    reconstruction: Reconstruction = "weno5"
    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"gravity", "momentum"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = frozenset({"h"})
    vacuum: ClassVar[bool] = True
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _checked_options(self.reconstruction, self.cfl)

    @property
    def fewest_cells(self) -> int:
        return CELLS[self.reconstruction]

    @property
    def stages(self) -> int:
        return STAGES[self.reconstruction].size

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(self, u, duration, setting, BOTH)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(self, u, setting, BOTH)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(self, u, duration, setting, BOTH)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return shallow_water_example(seed)
