"""Truth of the two-dimensional compressible Navier–Stokes equations with the viscosity of PDEBench."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

import numpy as np

from hycop.channels import gas_channels
from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.primitive import ALL_CHANNELS
from hycop.query import Setting
from hycop.references.chebyshev import FEWEST_STAGES, STABLE, Stepper
from hycop.references.fourier import cell_averages, interpolate
from hycop.references.reference import RefinedReference, run_blocks
from hycop.references.two_point_fluxes import LARGEST_SECOND, TwoPointFluxes

CHANNELS = gas_channels(2)
FEWEST_CELLS = 7
MOST_STEPS = 1e7
NOT_STIFF = 0.5
"""Step times viscous decay below which the explicit method takes the step."""


@dataclass(frozen=True)
class GasReference(RefinedReference):
    """What the solvers of the compressible equations share: the state, its parameters, and samples in parallel.

        ρ_t + ∇·(ρv) = 0,   (ρv)_t + ∇·(ρ v⊗v) + ∇p = ∇·τ,   E_t + ∇·((E + p) v) = Σ_i ∂_i (½ Σ_j ν_ij ρ ∂_i v_j²)

    with p = (γ − 1)(E − ½ρ|v|²). The process ``euler`` is the left, ``viscosity`` the right side. The viscosity is that
    of PDEBench: τ_ij = ν_ij ρ ∂_i v_j without cross derivatives, ν_ij = η + ζ + η/3 along the velocity (i = j) and η
    across, so a kinematic viscosity that the density multiplies. Periodic. Parameters ``gamma``, ``eta``, ``zeta``.
    """

    known: ClassVar[frozenset[str]] = frozenset({"euler", "viscosity"})

    @property
    def conserves(self) -> frozenset[str]:
        return ALL_CHANNELS

    @property
    def boundaries(self) -> frozenset[str]:
        return frozenset({"periodic"})

    @abstractmethod
    def advanced(self, state: Array, duration: float, gamma: float, spacing: Array, viscosity: Array) -> Array:
        """One fine sample after a duration; NaN if density or pressure becomes invalid."""

    def checked_setting(self, setting: Setting) -> Setting:
        if setting.channels != CHANNELS:
            given, wanted = (", ".join(channel.name for channel in some) for some in (setting.channels, CHANNELS))
            raise InvalidInputError(
                f"compressible reference: the channels are {given}; {wanted} are needed, momenta normal to x and y"
            )
        for letter, cells, boundary in zip(AXES, setting.grid.shape, setting.grid.boundary, strict=False):
            if boundary != "periodic" or cells < FEWEST_CELLS:
                raise InvalidInputError(
                    f"compressible reference: axis {letter} is {boundary} with {cells} cells; it must be periodic with "
                    f"at least {FEWEST_CELLS}"
                )
        self.viscosities(setting)
        return setting

    def viscosities(self, setting: Setting) -> Array:
        """ν along and across the velocity, (batch, 2); zero without viscosity."""
        gamma = setting.param("gamma")
        wrong = gamma <= 1.0
        out = np.zeros((setting.batch, 2))
        if "viscosity" in self.processes:
            eta, zeta = setting.param("eta"), setting.param("zeta")
            wrong |= (eta < 0.0) | (zeta < 0.0)
            out = np.stack([eta + zeta + eta / 3.0, eta], axis=1)
        if wrong.any():
            sample = int(np.flatnonzero(wrong)[0])
            raise InvalidInputError(
                f"compressible reference: sample {sample} needs gamma above 1 and eta and zeta not negative"
            )
        return out

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        gamma, viscosity = setting_fine.param("gamma"), self.viscosities(setting_fine)
        spacing = setting_fine.grid.spacing

        def advance(block: Array) -> None:
            sample = int(block[0])
            start = np.ascontiguousarray(state[sample])
            out[sample] = self.advanced(
                start, float(duration[sample]), float(gamma[sample]), spacing[sample], viscosity[sample]
            )

        run_blocks(advance, list(np.arange(state.shape[0])[:, None]), self.workers)


@dataclass(frozen=True)
class CompressibleReference(GasReference):
    """Unsplit solution on a grid ``refinement`` times finer than the query grid, in point values.

    Method of lines: sixth-order conservative two-point fluxes that keep kinetic energy, with the upwind part of fifth
    order wave by wave. In time Runge–Kutta–Chebyshev, second order, where viscosity is stiff, else third-order
    Runge–Kutta. A step h has Σ (|v_i| + c) h/dx_i ≤ ``courant``, and h times the fastest viscous rate ≤ ``stiffness``;
    halving dx and doubling the stiffness halves either. Smooth and moderately steep states (some three cells) only:
    there is no limiter, so a shock rings.
    """

    courant: float = 1.0
    stiffness: float = 24.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.courant <= 1.0:
            raise InvalidInputError(f"courant is {self.courant}: it must be positive and at most 1")
        if not 0.0 < self.stiffness < np.inf:
            raise InvalidInputError(f"stiffness is {self.stiffness}: it must be positive and finite")

    @property
    def order(self) -> float:
        return 2.0

    def finer(self) -> CompressibleReference:
        return replace(self, refinement=2 * self.refinement, stiffness=2.0 * self.stiffness)

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return cell_averages(solution, setting_fine)

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        return interpolate(averages, setting, self.refinement)

    def advanced(self, state: Array, duration: float, gamma: float, spacing: Array, viscosity: Array) -> Array:
        fluxes = TwoPointFluxes(state.shape[1:], gamma, spacing, viscosity, float("euler" in self.processes))
        stepper = Stepper(fluxes, state)
        w, first, elapsed = state.copy(), np.empty_like(state), 0.0
        lost = np.full_like(state, np.nan)
        while elapsed < duration:
            if not fluxes(w, first):
                return lost
            crossing, decay = fluxes.fastest()
            steps = (duration - elapsed) * max(crossing / self.courant, decay / self.stiffness)
            if not steps < MOST_STEPS:
                return lost
            # equal steps from here would reach the end
            h = (duration - elapsed) / max(1.0, ceil(steps))
            stiff = decay * h > NOT_STIFF
            if not (stepper.chebyshev(w, first, h, decay * h) if stiff else stepper.third_order(w, first, h)):
                return lost
            elapsed = elapsed + h if steps > 1.0 else duration
        return w if duration == 0.0 or fluxes.valid(w) else lost

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Updates of all channel-cells of the fine grid: stages times steps, estimated from the initial state."""
        fine = self.refined(setting)
        viscosity, spacing = self.viscosities(setting), fine.grid.spacing
        crossing = np.zeros(setting.batch)
        if "euler" in self.processes:
            crossing = crossing_rate(u, setting.param("gamma"), spacing)
        diffusion = LARGEST_SECOND * np.maximum(
            (viscosity / spacing**2).sum(1), (viscosity[:, ::-1] / spacing**2).sum(1)
        )
        span = np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,))
        steps = np.maximum(1.0, np.ceil(span * np.maximum(crossing / self.courant, diffusion / self.stiffness)))
        stages = np.maximum(FEWEST_STAGES, np.ceil(np.sqrt(diffusion * span / steps / STABLE)))
        work: Array = steps * stages * len(CHANNELS) * fine.grid.cells
        return work


def crossing_rate(u: Array, gamma: Array, spacing: Array) -> Array:
    """max Σ_i (|v_i| + c)/dx_i per sample, (batch,); a state that is not valid counts as at rest."""
    density, mx, my, energy = (u[:, channel].astype(np.float64) for channel in range(len(CHANNELS)))
    over = gamma.reshape(-1, 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        pressure = (over - 1.0) * (energy - 0.5 * (mx**2 + my**2) / density)
        sound = np.sqrt(over * pressure / density)
        x, y = (spacing[:, axis].reshape(-1, 1, 1) for axis in range(2))
        rate = (np.abs(mx / density) + sound) / x + (np.abs(my / density) + sound) / y
    out: Array = np.nan_to_num(rate).max(axis=(1, 2))
    return out
