"""Truth of Burgers' equation: its solution formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import fft

from hycop.errors import InvalidInputError
from hycop.grid import Array, prolong, restrict
from hycop.primitive import ALL_CHANNELS, EXACT
from hycop.query import Setting, checked_state
from hycop.references.hopf import burgers_flow
from hycop.references.reference import InitialCondition, RefinedReference, checked_times
from hycop.references.stencils import averages_of_points


@dataclass(frozen=True)
class ColeHopfReference(RefinedReference):
    """u_t + u u_x = ν u_xx on a periodic interval, or a part of it: ``advection`` (ν = 0) or ``viscosity`` alone.

    No step in time: every duration is reached at once by the formula of Cole and Hopf, its limit ν → 0 of Hopf and Lax
    (the entropy solution, shocks included), or the heat flow of the Fourier modes. The only error is that
    of the initial state, which is taken from its averages over the cells of a grid ``refinement`` times finer than the
    query grid, a quartic in each. One channel; parameter ``nu``, which advection alone does not need.
    """

    refinement: int = 16

    known: ClassVar[frozenset[str]] = frozenset({"advection", "viscosity"})

    @property
    def order(self) -> float:
        return EXACT

    @property
    def conserves(self) -> frozenset[str]:
        return ALL_CHANNELS

    @property
    def boundaries(self) -> frozenset[str]:
        return frozenset({"periodic"})

    @property
    def exact_in_time(self) -> bool:
        return True

    def finer(self) -> ColeHopfReference:
        return replace(self, refinement=2 * self.refinement)

    def checked_setting(self, setting: Setting) -> Setting:
        checked_scalar_interval("Cole–Hopf", setting)
        if (self._viscosity(setting) < 0).any():
            sample = int(np.flatnonzero(self._viscosity(setting) < 0)[0])
            raise InvalidInputError(f"viscosity nu of sample {sample} is negative: the equation is ill-posed")
        return setting

    def initial_state(self, initial: InitialCondition, setting: Setting) -> Array:
        """Averages over the fine cells."""
        return averages_of_points(super().initial_state(initial, setting), self.refined(setting).grid)

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        return prolong(averages.astype(np.float64, copy=False), setting.grid.boundary, self.refinement)

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return solution

    def query_averages(self, fine: Array, setting_fine: Setting, times: Array, shape: tuple[int, ...]) -> Array:
        """The formulas at the faces of the query grid alone, not at all those of the fine grid."""
        self.checked_setting(setting_fine)
        state = checked_state(fine, setting_fine, "fine state").astype(np.float64, copy=False)
        at = checked_times(times, setting_fine)
        later = [self._later(state, at[:, index], setting_fine, shape[0]) for index in range(at.shape[1])]
        return np.stack(later, axis=1)

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        out[:] = self._later(state, duration, setting_fine, state.shape[2])

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Each of the cells asked for sees each of the fine cells."""
        cells = float(setting.grid.cells)
        return np.full(setting.batch, cells * cells * self.refinement)

    def _viscosity(self, setting: Setting) -> Array:
        return setting.param("nu") if "viscosity" in self.processes else np.zeros(setting.batch)

    def _later(self, state: Array, duration: Array, setting_fine: Setting, cells: int) -> Array:
        """Averages over ``cells`` equal cells after a duration per sample."""
        out = restrict(state, (cells,))
        moving = np.flatnonzero(duration > 0)
        lengths, nu = setting_fine.grid.lengths[moving, 0], self._viscosity(setting_fine)[moving]
        if moving.size and "advection" in self.processes:
            out[moving, 0] = burgers_flow(state[moving, 0], lengths, duration[moving], nu, cells, self.workers)
        elif moving.size:
            out[moving] = restrict(_heat_flow(state[moving], lengths, nu * duration[moving]), (cells,))
        return out


def checked_scalar_interval(name: str, setting: Setting) -> None:
    """Refuses all but one channel on a periodic interval."""
    if setting.grid.axes != 1 or len(setting.channels) != 1:
        raise InvalidInputError(
            f"{name} reference: one channel on one axis is needed, "
            f"there are {len(setting.channels)} on {setting.grid.axes}"
        )
    if setting.grid.boundary != ("periodic",):
        raise InvalidInputError(
            f"{name} reference: the boundary along x is {setting.grid.boundary[0]}, but it must be periodic"
        )


def _heat_flow(averages: Array, lengths: Array, spread: Array) -> Array:
    """exp(−k² ν t) on the modes of cell averages, for spread = ν t: averaging commutes with the flow."""
    cells = averages.shape[-1]
    k = 2.0 * np.pi * fft.rfftfreq(cells, 1.0 / cells) / lengths[:, None]
    decay = np.exp(-spread[:, None] * k**2)
    out: Array = fft.irfft(fft.rfft(averages, axis=-1) * decay[:, None], n=cells, axis=-1)
    return out
