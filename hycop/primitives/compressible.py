"""Compressible flow: what its primitives share, and the unsplit solver that is their opponent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.channels import gas_channels
from hycop.errors import InvalidInputError
from hycop.grid import BOUNDARIES, Array, Grid
from hycop.kernels.compressible import finite_volumes, peak_rates, tendencies
from hycop.kernels.reconstruction import CELLS
from hycop.primitive import checked_cells, checked_cfl, checked_duration, sub_steps, update_work
from hycop.query import Setting


def check_channels(primitive: object, setting: Setting) -> None:
    """Refuses a state that is not that of a compressible flow in one or two dimensions."""
    needed = [channel.name for channel in gas_channels(min(setting.grid.axes, 2))]
    given = [channel.name for channel in setting.channels]
    if setting.grid.axes > 2 or given != needed:
        raise InvalidInputError(
            f"{type(primitive).__name__} needs the channels {', '.join(needed)} on one or two axes; "
            f"the state has {', '.join(given)} on {setting.grid.axes}"
        )


def heat_ratio(setting: Setting) -> Array:
    """γ per sample, above 1."""
    gamma = setting.param("gamma")
    if not (gamma > 1.0).all():
        sample = int(np.flatnonzero(~(gamma > 1.0))[0])
        raise InvalidInputError(f"parameter 'gamma' is {gamma[sample]} for sample {sample}: it must be above 1")
    return gamma


def viscosities(setting: Setting) -> tuple[Array, Array]:
    """Kinematic viscosities η + ζ + η/3 of a velocity along its own axis and η along the others."""
    for name in ("eta", "zeta"):
        value = setting.param(name)
        if (value < 0).any():
            raise InvalidInputError(
                f"parameter '{name}' is negative for sample {int(np.flatnonzero(value < 0)[0])}: it must not be"
            )
    eta, zeta = setting.param("eta"), setting.param("zeta")
    return eta + zeta + eta / 3.0, eta


def check_stages(most_stages: int) -> None:
    if most_stages < 3 or most_stages % 2 == 0:
        raise InvalidInputError(f"most_stages is {most_stages}: an odd number of at least 3 is needed")


def volume_work(u: Array, duration: Array, setting: Setting, fluid: Array, cfl: float, most_stages: int) -> Array:
    """Number of finite-volume updates for a duration, estimated from the present state."""
    rates = peak_rates(u, fluid, setting.grid.spacing, setting.grid.boundary)
    wave, decay = (np.where(rates[:, 2] > 0, 0.0, rates[:, column]) * duration for column in (0, 1))
    reach = 0.5 * (most_stages**2 + most_stages - 2)
    steps = np.maximum(1, sub_steps(np.maximum(wave / cfl, decay / reach)))
    stages = np.ceil(0.5 * (np.sqrt(9.0 + 8.0 * decay / steps) - 1.0))
    return update_work(setting, steps * np.where(decay / steps <= 2.5, 3.0, stages + 1 - stages % 2))


@dataclass(frozen=True)
class CompressibleNavierStokes:
    """Euler equations and viscosity at once, by finite volumes: the unsplit opponent of splittings.

    ρ_t + ∇·m = 0, m_t + ∇·(m⊗v + p) = ∇·(ν ρ ∇v), E_t + ∇·((E + p)v) = ∇·(ν ρ ∇½v²) component by component, with
    ν = η + ζ + η/3 for the derivative of a velocity along its own axis and η along the others, and no cross
    derivatives: the viscosity of PDEBench's generator. MUSCL–HLLC fluxes and central viscous ones; SSPRK3 where that
    is stable, else RKL2 with up to ``most_stages`` stages in each step that ``cfl`` allows (Σ (|v| + c)τ/Δx).
    Second order, conservative for every boundary (walls change momentum, as they should). Parameters: ``gamma``,
    ``eta``, ``zeta``.
    """

    cfl: float = 0.8
    most_stages: int = 7

    advances: ClassVar[frozenset[str]] = frozenset({"euler", "viscosity"})
    order: ClassVar[float] = 2
    stages: ClassVar[int] = 3
    fewest_cells: ClassVar[int] = CELLS["muscl"]
    conserves: ClassVar[frozenset[str]] = frozenset({"density", "energy"})
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 0.8)
        check_stages(self.most_stages)

    def _fluid(self, setting: Setting) -> Array:
        check_channels(self, setting)
        return np.column_stack([heat_ratio(setting), *viscosities(setting), np.ones(setting.batch)])

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        checked_cells(self, setting)
        duration, grid = checked_duration(duration, setting), setting.grid
        fluid = self._fluid(setting)
        return finite_volumes(u, duration, fluid, grid.spacing, grid.boundary, self.cfl, self.most_stages)

    def rate(self, u: Array, setting: Setting) -> Array:
        checked_cells(self, setting)
        return tendencies(u, self._fluid(setting), setting.grid.spacing, setting.grid.boundary)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return volume_work(u, duration, setting, self._fluid(setting), self.cfl, self.most_stages)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return compressible_example(seed, ("gamma", "eta", "zeta"))


def compressible_example(seed: int, params: Sequence[str], amplitude: float = 0.15) -> tuple[Array, Setting]:
    """Smooth compressible flows, one wave along each axis, on a small anisotropic grid with uneven lengths.

    The phases do not depend on the seed: where the extrema of the fields meet, limited schemes show their order late.
    The viscosity is so small that the unsplit solver does not change its integrator on the way.
    """
    rng, batch = np.random.default_rng(seed), 3
    grid = Grid((12, 15), rng.uniform(0.8, 1.2, (batch, 2)), ("periodic", "periodic"))
    x, y = (
        2 * np.pi * centre / length.reshape(-1, 1, 1)
        for centre, length in zip(grid.centres(), grid.lengths.T, strict=True)
    )
    phases, means = np.arange(4).reshape(4, 1, 1, 1), np.array([1.0, 0.2, -0.1, 1.0]).reshape(4, 1, 1, 1)
    density, vx, vy, pressure = means + amplitude * (np.sin(x + 0.5 * phases) + np.sin(y + 1.5 * phases))
    values = {"gamma": rng.uniform(1.3, 1.7, batch)}
    values |= {name: rng.uniform(1e-4, 2e-4, batch) for name in ("eta", "zeta")}
    energy = pressure / (values["gamma"].reshape(-1, 1, 1) - 1.0) + 0.5 * density * (vx**2 + vy**2)
    u = np.stack([density, density * vx, density * vy, energy], axis=1)
    return u, Setting(grid, gas_channels(2), {name: values[name] for name in params})
