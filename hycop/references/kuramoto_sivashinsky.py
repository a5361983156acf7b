"""Truth of the Kuramoto–Sivashinsky equation: Fourier modes in space, ETDRK4 in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import ClassVar

import numpy as np
from scipy import fft

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.primitive import ALL_CHANNELS, EXACT
from hycop.query import Setting
from hycop.references.burgers import checked_scalar_interval
from hycop.references.fourier import cell_averages, interpolate
from hycop.references.hopf import burgers_flow
from hycop.references.reference import InitialCondition, RefinedReference, blocks_of, run_blocks

BLOCK_VALUES = 2**13
"""Values of a state advanced together: their modes and weights stay in the cache of a core."""

CIRCLE = 32
"""Points of the contour integrals of Kassam & Trefethen, on the upper half of a unit circle around each rate."""

MOST_STEPS = 1e7


@dataclass(frozen=True)
class KuramotoSivashinskyReference(RefinedReference):
    """u_t + u u_x + u_xx + u_xxxx = 0 on a periodic interval, or a part of it: ``linear`` u_t = −u_xx − u_xxxx,
    ``nonlinear`` u_t = −u u_x.

    Pseudo-spectral on a grid ``refinement`` times finer than the query grid, the square dealiased by the 2/3 rule; in
    time ETDRK4 (Cox & Matthews 2002) with the weights of Kassam & Trefethen (SIAM J. Sci. Comput. 26, 2005) and steps
    of at most ``step``. The linear part alone is exact; the nonlinear part alone forms shocks, and its entropy
    solution is that of the formula of Hopf and Lax. One channel, no parameters; 512 fine cells resolve
    intervals up to 2π·50. Chaotic: a difference grows about as e^{0.1 t}.
    """

    step: float = 0.05

    known: ClassVar[frozenset[str]] = frozenset({"linear", "nonlinear"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.step > 0:
            raise InvalidInputError(f"step is {self.step}: it must be positive")

    @property
    def exact_in_time(self) -> bool:
        return self.processes != self.known

    @property
    def order(self) -> float:
        return EXACT if self.exact_in_time else 4.0

    @property
    def conserves(self) -> frozenset[str]:
        return ALL_CHANNELS

    @property
    def boundaries(self) -> frozenset[str]:
        return frozenset({"periodic"})

    def finer(self) -> KuramotoSivashinskyReference:
        return replace(self, refinement=2 * self.refinement, step=self.step / 2)

    def checked_setting(self, setting: Setting) -> Setting:
        checked_scalar_interval("Kuramoto–Sivashinsky", setting)
        return setting

    def initial_state(self, initial: InitialCondition, setting: Setting) -> Array:
        """Averages over the fine cells."""
        return cell_averages(super().initial_state(initial, setting), self.refined(setting))

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        return cell_averages(interpolate(averages, setting, self.refinement), self.refined(setting))

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return solution

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """log2(cells) for each fine cell and transform pair, four pairs a step."""
        cells = self.refined(setting).grid.cells
        steps = self._steps(np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,)))
        out: Array = np.maximum(1.0, 4.0 * steps) * cells * max(1.0, log2(cells))
        return out

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        lengths = setting_fine.grid.lengths[:, 0]
        out[:] = state
        moving = np.flatnonzero(duration > 0)
        if self.processes == {"nonlinear"}:
            u, nu = state[moving, 0], np.zeros(moving.size)
            out[moving, 0] = burgers_flow(u, lengths[moving], duration[moving], nu, u.shape[1], self.workers)
            return
        steps = self._steps(duration)

        def advance(block: Array) -> None:
            members = moving[block]
            modes = _Modes(lengths[members], state.shape[2])
            count = 1 if self.exact_in_time else int(steps[members[0]])
            out[members, 0] = modes.advanced(state[members, 0], duration[members] / count, count, self.exact_in_time)

        size = max(1, BLOCK_VALUES // state.shape[2])
        run_blocks(advance, blocks_of(steps[moving], size) if moving.size else [], self.workers)

    def _steps(self, duration: Array) -> Array:
        steps = np.ones(duration.shape) if self.exact_in_time else np.ceil(duration / self.step)
        if steps.size and steps.max() > MOST_STEPS:
            raise InvalidInputError(f"reference: {steps.max():.1e} steps are needed, at most {MOST_STEPS:g} are taken")
        return steps


class _Modes:
    """The Fourier modes of a block of intervals."""

    def __init__(self, lengths: Array, cells: int) -> None:
        number = fft.rfftfreq(cells, 1.0 / cells)
        self.cells = cells
        self.averaging = np.sinc(number / cells)
        self.wavenumbers = 2.0 * np.pi * number / lengths[:, None]
        self.rates = self.wavenumbers**2 - self.wavenumbers**4
        # the modes above N/3 are left out of the product, so that it does not alias
        self.slope = np.where(number < cells / 3.0, -0.5j * self.wavenumbers, 0.0)

    def advanced(self, u: Array, step: Array, count: int, linear: bool) -> Array:
        """Averages (batch, n) after ``count`` steps."""
        modes = fft.rfft(u, axis=1) / self.averaging
        if linear:
            modes = modes * np.exp(count * step[:, None] * self.rates)
        else:
            modes = self._etdrk4(modes, step[:, None], count)
        out: Array = fft.irfft(modes * self.averaging, n=self.cells, axis=1)
        return out

    def _advection(self, modes: Array) -> Array:
        """Modes of −½(u²)_x."""
        u = fft.irfft(modes, n=self.cells, axis=1)
        out: Array = self.slope * fft.rfft(u * u, axis=1)
        return out

    def _etdrk4(self, u: Array, h: Array, count: int) -> Array:
        """Steps of Cox & Matthews, eq. 26–29."""
        z = h * self.rates
        full, half = np.exp(z), np.exp(z / 2.0)
        stage, first, middle, last = (h * weight for weight in _weights(z))
        for _ in range(count):
            rate_u = self._advection(u)
            half_u = half * u
            a = half_u + stage * rate_u
            rate_a = self._advection(a)
            b = half_u + stage * rate_a
            rate_b = self._advection(b)
            c = half * a + stage * (2.0 * rate_b - rate_u)
            rate_c = self._advection(c)
            u = full * u + first * rate_u + middle * (rate_a + rate_b) + last * rate_c
        return u


def _weights(z: Array) -> tuple[Array, Array, Array, Array]:
    """The weights of ETDRK4 over the step, as means over a circle around each z, where nothing cancels."""
    angles = np.pi * (np.arange(CIRCLE) + 0.5) / CIRCLE
    stage, first, middle, last = np.zeros((4, *z.shape))
    for point in np.exp(1j * angles):
        w = z + point
        e = np.exp(w)
        stage += ((np.exp(w / 2.0) - 1.0) / w).real
        first += ((-4.0 - w + e * (4.0 - 3.0 * w + w**2)) / w**3).real
        middle += (2.0 * (2.0 + w + e * (w - 2.0)) / w**3).real
        last += ((-4.0 - 3.0 * w - w**2 + e * (4.0 - w)) / w**3).real
    return stage / CIRCLE, first / CIRCLE, middle / CIRCLE, last / CIRCLE
