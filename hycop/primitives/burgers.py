"""Burgers' equation u_t + (½u²)_x = ν u_xx: nonlinear advection, and viscosity that is the same along every axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import AXES, BOUNDARIES, Array
from hycop.kernels import burgers as kernel
from hycop.kernels.reconstruction import CELLS, STAGES
from hycop.primitive import (
    ALL_CHANNELS,
    EXACT,
    Symbol,
    checked_cells,
    checked_cfl,
    checked_duration,
    flow_of,
    rate_of,
    symbol_of,
    transform_work,
    update_work,
)
from hycop.primitives.diffusion import FiniteVolumeDiffusion, SpectralDiffusion
from hycop.primitives.examples import line_example, scalar_example
from hycop.primitives.kuramoto_sivashinsky import KuramotoSivashinskyNonlinear
from hycop.query import Setting

Reconstruction = Literal["weno5", "muscl", "upwind"]
ORDERS = {"weno5": 3, "muscl": 2, "upwind": 1}
ORDERS_IN_SPACE = {**ORDERS, "weno5": 5}


def _checked_line(setting: Setting) -> None:
    names = [channel.name for channel in setting.channels]
    if setting.grid.axes != 1 or names != ["u"]:
        raise InvalidInputError(
            f"channels {', '.join(names)} on {setting.grid.axes} axes: Burgers' advection has u on one axis"
        )


@dataclass(frozen=True)
class BurgersAdvection:
    """Nonlinear advection u_t + (½u²)_x = 0 on a line: shocks at the mean of the speeds beside them, rarefactions.

    Finite volumes with Godunov's exact flux between edges by fifth-order WENO-Z (``weno5``, third-order Runge–Kutta),
    van Leer's limiter (``muscl``, second order) or the averages themselves (``upwind``, first order, monotone).
    ``cfl`` bounds |u|τ/Δx of a sub-step. Channel ``u``; no parameters. Periodic, or open (outflow).
    """

    reconstruction: Reconstruction = "weno5"
    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"advection"})
    conserves: ClassVar[frozenset[str]] = frozenset({"u"})
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic", "outflow"})
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.reconstruction not in get_args(Reconstruction):
            raise UnknownNameError("reconstruction", str(self.reconstruction), get_args(Reconstruction))
        checked_cfl(self.cfl, 1.0)

    @property
    def order(self) -> float:
        return ORDERS[self.reconstruction]

    @property
    def rate_order(self) -> float:
        return ORDERS_IN_SPACE[self.reconstruction]

    @property
    def stages(self) -> int:
        return STAGES[self.reconstruction].size

    @property
    def fewest_cells(self) -> int:
        return CELLS[self.reconstruction]

    def _check(self, setting: Setting) -> None:
        _checked_line(setting)
        checked_cells(self, setting)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        self._check(setting)
        tau, dx = checked_duration(duration, setting), setting.grid.spacing[:, 0]
        return kernel.flow(u, tau, setting.grid.boundary[0], dx, self.cfl, self.reconstruction)

    def rate(self, u: Array, setting: Setting) -> Array:
        self._check(setting)
        return kernel.tendencies(u, setting.grid.boundary[0], setting.grid.spacing[:, 0], self.reconstruction)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        _checked_line(setting)
        courant = np.abs(u).max(axis=(1, 2)) * duration / setting.grid.spacing[:, 0]
        steps = np.fmax(np.ceil(courant / self.cfl), 1.0)  # one for a state that is NaN
        return update_work(setting, STAGES[self.reconstruction].size * steps)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return line_example(seed)


@dataclass(frozen=True)
class SpectralBurgersAdvection(KuramotoSivashinskyNonlinear):
    """Nonlinear advection u_t = −(½u²)_x, pseudo-spectral without aliases, for states that viscosity resolves.

    As ``KuramotoSivashinskyNonlinear``: spectral in space, third order in time; shocks ring, and are for the viscosity
    to smooth (fronts about 4ν/[u] wide on cells of at most that width). ``cfl`` bounds |u|τ/Δx of a sub-step. Channel
    ``u``; no parameters. Periodic.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"advection"})


def _as_diffusion(setting: Setting) -> Setting:
    """The setting with the diffusivity ν along every axis."""
    nu = setting.param("nu")
    if (nu < 0).any():
        raise InvalidInputError(
            f"parameter 'nu' is negative for sample {int(np.flatnonzero(nu < 0)[0])}: viscosity needs nu ≥ 0"
        )
    return replace(setting, params={"D" + axis: nu for axis in AXES[: setting.grid.axes]})


@dataclass(frozen=True)
class SpectralViscosity:
    """Viscosity u_t = ν Δu, as ``SpectralDiffusion`` with D = ν along every axis: exact. Parameter: ``nu``, ≥ 0."""

    advances: ClassVar[frozenset[str]] = frozenset({"viscosity"})
    order: ClassVar[float] = EXACT
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def symbol(self, setting: Setting) -> Symbol:
        return SpectralDiffusion().symbol(_as_diffusion(setting))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, (), {"nu": 0.015})


@dataclass(frozen=True)
class FiniteVolumeViscosity:
    """Viscosity u_t = ν Δu, as ``FiniteVolumeDiffusion`` with D = ν along every axis: second order in space, exact in
    time, free of new extrema. Parameter: ``nu``, ≥ 0."""

    advances: ClassVar[frozenset[str]] = frozenset({"viscosity"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def symbol(self, setting: Setting) -> Symbol:
        return FiniteVolumeDiffusion().symbol(_as_diffusion(setting))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, (), {"nu": 0.015})
