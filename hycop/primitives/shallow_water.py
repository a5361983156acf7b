"""Shallow water over a flat bed in one or two dimensions: gravity waves, advection of momentum, or both unsplit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from hycop.errors import InvalidInputError, InvalidSampleError, UnknownNameError
from hycop.grid import BOUNDARIES, Array
from hycop.kernels import shallow_water as kernel
from hycop.kernels.reconstruction import STAGES
from hycop.primitive import checked_duration, update_work
from hycop.primitives.examples import shallow_water_example
from hycop.query import Channel, Setting

Reconstruction = Literal["muscl", "weno5"]
CHANNELS = (Channel("h"), Channel("hu", normal=0), Channel("hv", normal=1))


def _checked_options(reconstruction: str, cfl: float) -> None:
    if reconstruction not in get_args(Reconstruction):
        raise UnknownNameError("reconstruction", str(reconstruction), get_args(Reconstruction))
    if not 0.0 < cfl <= 1.0:
        raise InvalidInputError(f"cfl is {cfl}: it must be positive and at most 1 for stability")


def _checked_channels(setting: Setting) -> None:
    wanted = CHANNELS[: setting.grid.axes + 1]
    if setting.grid.axes > 2 or setting.channels != wanted:
        given = ", ".join(f"{channel.name} (normal {channel.normal})" for channel in setting.channels)
        raise InvalidInputError(
            f"channels {given} on {setting.grid.axes} axes: shallow water has h, hu (normal 0) on one axis "
            "and h, hu (normal 0), hv (normal 1) on two"
        )


def _gravity(setting: Setting) -> Array:
    """g (batch,), positive."""
    g = setting.param("g")
    if (g <= 0).any():
        raise InvalidInputError(f"parameter 'g' is not positive for sample {int(np.flatnonzero(g <= 0)[0])}")
    return g


def _check_wet(u: Array, system: int) -> None:
    """Refuses a dry bed, where only both processes together have a solution; a negative depth is lost, as elsewhere."""
    dry = np.flatnonzero((u[:, 0] == 0).reshape(u.shape[0], -1).any(axis=1))
    if dry.size and system != kernel.BOTH:
        raise InvalidSampleError(
            int(dry[0]),
            " has a dry bed (h = 0): gravity waves and momentum cannot be told apart there; take a primitive that "
            "advances both, as ShallowWater in the dictionary 'unsplit'",
        )


def _flow(u: Array, duration: Array, setting: Setting, cfl: float, reconstruction: str, system: int) -> Array:
    _checked_channels(setting)
    _check_wet(u, system)
    tau, g, grid = checked_duration(duration, setting), _gravity(setting), setting.grid
    signs = [[-1.0 if channel.normal == axis else 1.0 for axis in range(grid.axes)] for channel in setting.channels]
    return kernel.flow(u, tau, grid.boundary, np.array(signs), grid.spacing, g, cfl, reconstruction, system)


def _work(u: Array, duration: Array, setting: Setting, cfl: float, reconstruction: str, system: int) -> Array:
    """Stages times sub-steps, as many as the waves of the given state ask for; one for a state that is lost."""
    _checked_channels(setting)
    rates = kernel.rates(u, setting.grid.spacing, _gravity(setting), system)
    steps = np.fmax(np.ceil(rates * duration / cfl), 1.0)
    return update_work(setting, STAGES[reconstruction].size * steps)


@dataclass(frozen=True)
class GravityWave:
    """Gravity waves h_t + ∇·m = 0, m_t + ∇(½gh²) = 0 of depth h and momentum m: the part of the shallow-water equations
    that remains when momentum is not advected.

    Hyperbolic with the speeds ±√(gh); momentum along a front stays as it is. Finite volumes with Rusanov's flux, which
    resolves both waves, between edges by fifth-order WENO-Z (``weno5``, three Runge–Kutta stages) or by van Leer's
    limiter (``muscl``, two stages). Second order in two dimensions, where fluxes are taken at the middle of a face;
    ``weno5`` has third order in one. Depth stays positive where the equations let it; otherwise, as where water runs
    apart so fast that the bed falls dry, a sample comes back as NaN. ``cfl`` bounds Σ_i √(gh)τ/Δx_i of a sub-step.
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

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(u, duration, setting, self.cfl, self.reconstruction, kernel.GRAVITY)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(u, duration, setting, self.cfl, self.reconstruction, kernel.GRAVITY)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return shallow_water_example(seed)


@dataclass(frozen=True)
class MomentumAdvection:
    """Advection of momentum m_t + ∇·(m⊗m/h) = 0 over a frozen depth, h_t = 0: the rest of the shallow-water equations
    beside ``GravityWave``.

    Along an axis the normal momentum has the speed 2m/h and the other is carried along with m/h. Finite volumes with
    Godunov's flux for the convex m²/h; reconstruction, order and lost samples as for ``GravityWave``. ``cfl`` bounds
    Σ_i 2|m_i|τ/(hΔx_i) of a sub-step. Channels ``h``, ``hu``, ``hv``; parameter ``g``, which it does not feel.
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

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(u, duration, setting, self.cfl, self.reconstruction, kernel.MOMENTUM)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(u, duration, setting, self.cfl, self.reconstruction, kernel.MOMENTUM)

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

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(u, duration, setting, self.cfl, self.reconstruction, kernel.BOTH)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _work(u, duration, setting, self.cfl, self.reconstruction, kernel.BOTH)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return shallow_water_example(seed)
