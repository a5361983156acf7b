"""The viscosity of PDEBench's compressible flows, ρ v_t = Σ_i ∂_i(ν_i ρ ∂_i v): by transforms and by finite volumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import BOUNDARIES, Array
from hycop.kernels.compressible import finite_volumes, tendencies
from hycop.kernels.density_weighted import diffuse_velocities
from hycop.kernels.density_weighted import tendencies as velocity_tendencies
from hycop.primitive import checked_duration, transform_work, wavenumbers
from hycop.primitives.compressible import (
    check_channels,
    check_stages,
    compressible_example,
    viscosities,
    volume_work,
)
from hycop.query import Setting

_ITERATIONS = 2  # towards the weight that keeps momentum; more are worth less than a shorter duration


def _decays(setting: Setting, along: Array, across: Array) -> tuple[Array, ...]:
    """ν_i k_i² of each component of the velocity along each axis, (batch × components, modes); ``along`` is the ν of a
    component along its own axis, ``across`` that along the others."""
    grid, out = setting.grid, []
    for axis in range(grid.axes):
        rates = np.stack([along if axis == component else across for component in range(grid.axes)], axis=1)
        decay = rates[:, :, None] * wavenumbers(grid, axis)[:, None] ** 2
        out.append(decay.reshape(setting.batch * grid.axes, grid.shape[axis]))
    return tuple(out)


@dataclass(frozen=True)
class SqrtDensityViscosity:
    """Viscosity ρ v_x,t = ∂_x((η + ζ + η/3)ρ ∂_x v_x) + ∂_y(η ρ ∂_y v_x), v_y likewise, in Fourier space.

    The density stays, and the kinetic energy that is lost heats the flow (pressure by (γ − 1)νρ|∂v|² a time). The
    product √ρ·v diffuses with constant coefficients in a potential that depends on the density; both together are
    taken as averages v ↦ K(h v)/K h with the heat kernel K and a weight h: stable for any duration, spectral in space,
    of second order in the duration, which is taken in ``steps`` equal parts. Keeps density and a constant velocity
    exactly, momentum and energy only to that order: ``FiniteVolumeGasViscosity`` keeps them. Parameters: ``eta``,
    ``zeta``, not negative.
    """

    steps: int = 2

    advances: ClassVar[frozenset[str]] = frozenset({"viscosity"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = frozenset({"density"})
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})
    scheme_version: ClassVar[int] = 2  # 1 took a duration in one step
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not isinstance(self.steps, int) or self.steps < 1:
            raise InvalidInputError(f"steps is {self.steps}: a whole number, at least 1, is needed")

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        check_channels(self, setting)
        duration = checked_duration(duration, setting)
        along, across = (nu * duration / self.steps for nu in viscosities(setting))
        return diffuse_velocities(u, _decays(setting, along, across), _ITERATIONS, self.steps)

    def rate(self, u: Array, setting: Setting) -> Array:
        check_channels(self, setting)
        return velocity_tendencies(u, _decays(setting, *viscosities(setting)))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        fields = setting.grid.axes * (_ITERATIONS + 3 + 2 * self.steps)
        return transform_work(setting) * fields / len(setting.channels)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return compressible_example(seed, ("eta", "zeta"), amplitude=0.05)


@dataclass(frozen=True)
class FiniteVolumeGasViscosity:
    """Viscosity ρ v_x,t = ∂_x((η + ζ + η/3)ρ ∂_x v_x) + ∂_y(η ρ ∂_y v_x), v_y likewise, by fluxes through faces.

    Two-point fluxes νρ ∂v of momentum and νρ ∂(½v²) of energy, so the pressure is heated by what the flow loses; in
    steps of RKL2 with up to ``most_stages`` stages (more are cheaper and less accurate). Second order, conservative
    for every boundary: walls let tangential velocities slip and take up normal momentum, and no energy passes them.
    Parameters: ``eta``, ``zeta``, not negative. Meyer, Balsara, Aslam, J. Comput. Phys. 257 (2014) 594.
    """

    most_stages: int = 3

    advances: ClassVar[frozenset[str]] = frozenset({"viscosity"})
    order: ClassVar[float] = 2
    stages: ClassVar[int] = 3
    conserves: ClassVar[frozenset[str]] = frozenset({"density", "energy"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_stages(self.most_stages)

    def _fluid(self, setting: Setting) -> Array:
        """The ratio of specific heats does not matter without Euler fluxes: any above 1 tells whether p > 0."""
        check_channels(self, setting)
        any_ratio = np.full(setting.batch, 2.0)
        return np.column_stack([any_ratio, *viscosities(setting), np.zeros(setting.batch)])

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        duration, grid = checked_duration(duration, setting), setting.grid
        return finite_volumes(u, duration, self._fluid(setting), grid.spacing, grid.boundary, 1.0, self.most_stages)

    def rate(self, u: Array, setting: Setting) -> Array:
        return tendencies(u, self._fluid(setting), setting.grid.spacing, setting.grid.boundary)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return volume_work(u, duration, setting, self._fluid(setting), 1.0, self.most_stages)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return compressible_example(seed, ("eta", "zeta"), amplitude=0.05)
