"""Advection, u_t + ∇·(c u) = 0: exact in Fourier space for constant c, else conservative, for every boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.boundary import EVERY
from hycop.grid import AXES, BOUNDARIES, Array
from hycop.kernels.advection import advect, tendencies
from hycop.kernels.reconstruction import CELLS
from hycop.kernels.transport import face_velocities, transport, transport_rates
from hycop.primitive import (
    ALL_CHANNELS,
    EXACT,
    Symbol,
    checked_cells,
    checked_cfl,
    checked_duration,
    flow_of,
    rate_of,
    sub_steps,
    symbol_of,
    transform_work,
    transforms_of,
    update_work,
    wavenumbers,
)
from hycop.primitives.examples import scalar_example
from hycop.primitives.faces import ends_of, widths_of
from hycop.query import Setting


@dataclass(frozen=True)
class SpectralAdvection:
    """Advection u_t + c·∇u = 0 at constant velocity: every Fourier mode turns by e^{−i c·k τ}.

    Exact for periodic band-limited states, also backwards. The Nyquist mode of an even axis stands still, because
    its travelling wave has no real image on the grid. Steps that the grid does not resolve ring (Gibbs); use
    ``MusclAdvection`` there. Parameters: ``cx``, ``cy``, ``cz``, one per axis.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"advection"})
    order: ClassVar[float] = EXACT
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})
    reversible: ClassVar[bool] = True

    def symbol(self, setting: Setting) -> Symbol:
        grid, c = setting.grid, setting.per_axis("c")
        rates = []
        for axis, n in enumerate(grid.shape):
            rate = -1j * c[:, axis : axis + 1] * wavenumbers(grid, axis)
            if n % 2 == 0:
                rate[:, n // 2] = 0.0
            rates.append(rate)
        return Symbol(transforms_of(grid), tuple(rates))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting, self.reversible))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ("c",))


def _is_plain(setting: Setting) -> bool:
    """Whether the velocity is constant and no end of an axis holds a value: the kernel for that is faster."""
    axes = AXES[: setting.grid.axes]
    return set(setting.grid.boundary) <= BOUNDARIES and not any("c" + axis in setting.fields for axis in axes)


def _face_speeds(setting: Setting) -> list[Array]:
    """c/Δx at the faces of each axis."""
    grid = setting.grid
    column = (-1,) + (1,) * grid.axes
    return [
        face_velocities(setting.field("c" + letter), axis, boundary == "periodic")
        / grid.spacing[:, axis].reshape(column)
        for axis, (letter, boundary) in enumerate(zip(AXES, grid.boundary, strict=False))
    ]


def _sub_steps(cfl: float, duration: Array, setting: Setting) -> Array:
    """Into how many equal steps a duration must be cut: Σ_i max |c_i|τ/Δx_i ≤ cfl in each."""
    if _is_plain(setting):
        return sub_steps(np.abs(setting.per_axis("c") * duration[:, None] / setting.grid.spacing).sum(axis=1) / cfl)
    fastest = [np.abs(faces).reshape(setting.batch, -1).max(axis=1) for faces in _face_speeds(setting)]
    return sub_steps(np.sum(fastest, axis=0) * duration / cfl)


def _flow(u: Array, duration: Array, setting: Setting, cfl: float, muscl: bool) -> Array:
    tau = checked_duration(duration, setting)
    steps = _sub_steps(cfl, tau, setting)
    if _is_plain(setting):
        courant = setting.per_axis("c") * tau[:, None] / setting.grid.spacing
        return advect(u, courant / np.maximum(steps, 1)[:, None], steps, setting.grid.boundary, muscl)
    step = (tau / np.maximum(steps, 1)).reshape((-1,) + (1,) * setting.grid.axes)
    courants = [faces * step for faces in _face_speeds(setting)]
    return transport(u, courants, steps, ends_of(setting), widths_of(setting), muscl)


def _rate(u: Array, setting: Setting, muscl: bool) -> Array:
    if _is_plain(setting):
        return tendencies(u, setting.per_axis("c") / setting.grid.spacing, setting.grid.boundary, muscl)
    return transport_rates(u, _face_speeds(setting), ends_of(setting), widths_of(setting), muscl)


@dataclass(frozen=True)
class UpwindAdvection:
    """Advection u_t + ∇·(c u) = 0 by first-order upwind fluxes and Euler sub-steps.

    For constant c this is u_t + c·∇u = 0. Monotone and conservative for every boundary (nothing crosses a wall), but
    diffusive: along each axis D_num = ½|c|Δx·(1 − CFL), with the Courant number of the sub-step actually taken. ``cfl``
    bounds Σ_i |c_i|τ/Δx_i of a sub-step. ``Dirichlet`` and ``Neumann`` give the value and slope of what enters; what
    leaves ignores them. Parameters: ``cx``, ``cy``, ``cz``, one per axis, numbers or fields.
    """

    cfl: float = 0.9

    advances: ClassVar[frozenset[str]] = frozenset({"advection"})
    order: ClassVar[float] = 1
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 1.0)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return _flow(u, duration, setting, self.cfl, muscl=False)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(u, setting, muscl=False)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, _sub_steps(self.cfl, duration, setting))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ("c",))


@dataclass(frozen=True)
class MusclAdvection:
    """Advection u_t + ∇·(c u) = 0 by MUSCL fluxes (van Leer's limiter) and Heun's method in sub-steps.

    For constant c this is u_t + c·∇u = 0. Second order where the solution is smooth, total variation diminishing along
    each axis if c is constant, conservative for every boundary (nothing crosses a wall). ``cfl`` bounds Σ_i |c_i|τ/Δx_i
    of a sub-step. ``Dirichlet`` and ``Neumann`` give the value and slope of what enters; what leaves ignores a value.
    Parameters: ``cx``, ``cy``, ``cz``, one per axis, numbers or fields. van Leer, J. Comput. Phys. 32 (1979) 101.
    """

    cfl: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"advection"})
    order: ClassVar[float] = 2
    stages: ClassVar[int] = 2
    fewest_cells: ClassVar[int] = CELLS["muscl"]
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 0.5)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        checked_cells(self, setting)
        return _flow(u, duration, setting, self.cfl, muscl=True)

    def rate(self, u: Array, setting: Setting) -> Array:
        checked_cells(self, setting)
        return _rate(u, setting, muscl=True)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 2.0 * _sub_steps(self.cfl, duration, setting))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ("c",))
