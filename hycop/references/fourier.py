"""Truth on periodic boxes: Fourier modes in space, an exponential Runge–Kutta method in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2, prod

import numpy as np
from scipy import fft

from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array, Grid
from hycop.primitive import EXACT
from hycop.query import Setting
from hycop.references.coefficients import Coefficients, ScalarReference, checked_stiffness, reaction_rate
from hycop.references.etdrk4 import Spectrum, along_axis, mode_numbers
from hycop.references.reference import blocks_of, relative_size, run_blocks

BLOCK_VALUES = 2**15
"""Values of a state advanced together: their spectra and weights fit the cache of a core."""


@dataclass(frozen=True)
class FourierReference(ScalarReference):
    """u_t + Σ c_i ∂_i u = Σ D_i ∂_ii u + r u (1 − u) on a periodic box, or the part of it that ``processes`` names.

    Pseudo-spectral and unsplit on a grid ``refinement`` times finer than the query grid. Constant advection is a
    symmetry of a periodic box, so the equation is solved in the frame that moves with c, and the result is shifted by
    its Fourier phases: in that frame ETDRK4 (Cox & Matthews 2002, Kassam & Trefethen 2005) treats diffusion exactly and
    the reaction to fourth order. Without a reaction the solution is exact in one step.

    The product u² is not dealiased. A state that the query grid resolves has mode numbers up to N/8 on N = 4n fine
    cells, so its square, up to N/4, does not alias; a 2/3 cut-off would only take real modes from a sharp state.

    ``step`` is dimensionless: h = step / (r^⅕ λ^⅘), with λ the rate at which diffusion and reaction change the state,
    which makes the local error r h (λ h)⁴ the same at every step and for every sample; each is divided into
    ``substeps``. The default gives a relative error of 1e-8 to 1e-7 in u.
    """

    step: float = 0.08
    substeps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.step > 0:
            raise InvalidInputError(f"step is {self.step}: it must be positive")
        if self.substeps < 1:
            raise InvalidInputError(f"substeps is {self.substeps}: it must be at least 1")

    @property
    def order(self) -> float:
        return 4.0 if self.reacting else EXACT

    @property
    def boundaries(self) -> frozenset[str]:
        return frozenset({"periodic"})

    def finer(self) -> FourierReference:
        return replace(self, refinement=2 * self.refinement, substeps=2 * self.substeps)

    def checked_setting(self, setting: Setting) -> Setting:
        _checked_periodic(setting.grid)
        return setting

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return cell_averages(solution, setting_fine)

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        return interpolate(averages, setting, self.refinement)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """log2(cells) for each channel-cell of the fine grid and transform pair: four pairs a step and two around."""
        fine = self.refined(setting)
        per_pair = len(setting.channels) * fine.grid.cells * max(1.0, log2(fine.grid.cells))
        if not self.reacting:
            return np.full(setting.batch, per_pair)
        state = self.fine_state(u, setting)
        coefficients = Coefficients.of(setting, self.processes)
        sizes = self._step_sizes(state, np.broadcast_to(duration, (setting.batch,)), fine.grid, coefficients)
        pairs: Array = 2.0 + 4.0 * np.count_nonzero(sizes, axis=1)
        return per_pair * pairs

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        grid, coefficients = setting_fine.grid, Coefficients.of(setting_fine, self.processes)
        sizes = self._step_sizes(state, duration, grid, coefficients)
        counts = np.count_nonzero(sizes, axis=1)

        def advance(block: Array) -> None:
            steps = sizes[block, : counts[block[0]]]
            if steps.shape[1] == 0:
                out[block] = state[block]
            else:
                spectrum = Spectrum(grid.take(block), coefficients.take(block), self.reacting)
                out[block] = spectrum.advanced(state[block], steps, duration[block])

        run_blocks(advance, blocks_of(counts, _block_size(state)), self.workers)

    def _step_sizes(self, state: Array, duration: Array, grid: Grid, coefficients: Coefficients) -> Array:
        """Steps h (batch, steps) that add up to the duration, zeros after the last: h = step / (r^⅕ λ^⅘).

        λ = λ₀/(1 + λ₀ t) + 2r, because diffusion at the rate λ₀ = max|Σ D_i ∂_ii u| / max|u| has smoothed the state to
        the scale √(D t) after a time t.
        """
        if not self.reacting:
            return duration[:, None]
        smoothing = np.zeros(duration.size)
        if coefficients.diffusivity.any():

            def measure(block: Array) -> None:
                spectrum = Spectrum(grid.take(block), coefficients.take(block), reacting=True)
                smoothing[block] = relative_size(spectrum.diffusion(state[block]), state[block])

            run_blocks(measure, blocks_of(np.zeros(duration.size), _block_size(state)), self.workers)
        reaction = checked_stiffness(reaction_rate(state, coefficients.rate), duration)
        reaction = np.maximum(reaction, np.finfo(np.float64).tiny)
        elapsed = np.zeros(duration.size)
        sizes = []
        while (elapsed < duration).any():
            fastest = smoothing / (1.0 + smoothing * elapsed) + 2.0 * reaction
            size = np.minimum(self.step / (reaction**0.2 * fastest**0.8), duration)
            sizes.append(np.where(elapsed < duration, size, 0.0))
            elapsed = elapsed + sizes[-1]
        steps = np.stack(sizes, axis=1) if sizes else np.zeros((duration.size, 1))
        scale: Array = duration / np.where(elapsed > 0, elapsed, 1.0)
        return np.repeat(steps * scale[:, None] / self.substeps, self.substeps, axis=1)


def cell_averages(point_values: Array, setting: Setting) -> Array:
    """Averages over cells from the values at their centres, (batch, …, *grid).

    The modes are multiplied by Π sin(k_i dx_i/2)/(k_i dx_i/2). Exact for the trigonometric polynomial through the
    values, whose Nyquist mode is sin(πx/dx): ±1 at the centres.
    """
    return _filtered(point_values, setting.grid, 1)


def point_values(averages: Array, setting: Setting) -> Array:
    """Values at the centres of cells from the averages over them: the inverse of ``cell_averages``."""
    return _filtered(averages, setting.grid, -1)


def interpolate(averages: Array, setting: Setting, refinement: int) -> Array:
    """Point values at the centres of the refined grid of the trigonometric polynomial with the given cell averages.

    Averaging it over the coarse cells gives them back, all modes included: the Nyquist mode of an even number of cells,
    ±a, becomes (π/2) a sin(πx/dx), which has just these averages. The cosine of that wavenumber averages to zero over
    every cell, so it cannot be known and is left out.
    """
    _checked_periodic(setting.grid)
    out = np.asarray(averages, dtype=np.float64)
    for axis, cells in enumerate(setting.grid.shape):
        along = out.ndim - setting.grid.axes + axis
        number = np.arange(cells // 2 + 1)
        # Modes count from the first centre, which is at dx/2 on either grid: hence the phase.
        phase = np.exp(1j * np.pi * number / cells * (1.0 / refinement - 1.0))
        factor = phase / _averaging(number, cells)
        if cells % 2 == 0 and refinement > 1:
            factor[-1] /= 2.0  # of the pair ±N/2 that the finer grid tells apart
        modes = fft.rfft(out, axis=along) * along_axis(factor[None], axis, setting.grid.axes, out.ndim)
        out = fft.irfft(modes, n=cells * refinement, axis=along) * refinement
    return out


def _block_size(state: Array) -> int:
    return max(1, BLOCK_VALUES // max(1, prod(state.shape[1:])))


def _filtered(values: Array, grid: Grid, power: int) -> Array:
    _checked_periodic(grid)
    axes = tuple(range(values.ndim - grid.axes, values.ndim))
    modes: Array = fft.rfftn(np.asarray(values, dtype=np.float64), axes=axes)
    for axis, number in enumerate(mode_numbers(grid.shape)):
        modes *= along_axis(_averaging(number, grid.shape[axis])[None] ** power, axis, grid.axes, values.ndim)
    out: Array = fft.irfftn(modes, s=grid.shape, axes=axes)
    return out


def _averaging(number: Array, cells: int) -> Array:
    """sin(k dx/2)/(k dx/2) of the modes k = 2πj/L, for which k dx/2 = πj/N."""
    factor: Array = np.sinc(number / cells)
    return factor


def _checked_periodic(grid: Grid) -> None:
    for letter, boundary in zip(AXES, grid.boundary, strict=False):
        if boundary != "periodic":
            raise InvalidInputError(
                f"Fourier reference: the boundary along {letter} is {boundary}, but every axis must be periodic"
            )
