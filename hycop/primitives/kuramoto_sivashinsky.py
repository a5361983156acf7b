"""The Kuramoto–Sivashinsky equation u_t + u u_x + u_xx + u_xxxx = 0 on a periodic line, linear and nonlinear part."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np
import scipy.fft

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.kernels.dealiased_square import half_square, stage
from hycop.kernels.exponential_line import Quadratic
from hycop.kernels.reconstruction import MOST_SUB_STEPS, STAGES
from hycop.primitive import (
    EXACT,
    Symbol,
    checked_cfl,
    checked_duration,
    flow_of,
    rate_of,
    symbol_of,
    transform_work,
    transforms_of,
    wavenumbers,
)
from hycop.primitives.examples import line_example
from hycop.query import Setting

KEEPS = STAGES["weno5"]

BLOCK = 2**15
"""Values that a thread takes through all their sub-steps at a time."""


def _checked_line(setting: Setting) -> None:
    names = [channel.name for channel in setting.channels]
    if setting.grid.axes != 1 or names != ["u"]:
        raise InvalidInputError(
            f"channels {', '.join(names)} on {setting.grid.axes} axes: this primitive has u on one axis"
        )


@dataclass(frozen=True)
class KuramotoSivashinskyLinear:
    """The linear part u_t = −u_xx − u_xxxx: every Fourier mode grows by e^{(k² − k⁴)τ}, long waves up, short ones down.

    Exact, for any duration; not backwards, where short waves would overflow. Channel ``u``; no parameters.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"linear"})
    order: ClassVar[float] = EXACT
    conserves: ClassVar[frozenset[str]] = frozenset({"u"})
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})
    reversible: ClassVar[bool] = False

    def symbol(self, setting: Setting) -> Symbol:
        _checked_line(setting)
        square = wavenumbers(setting.grid, 0) ** 2
        return Symbol(transforms_of(setting.grid), (square - square**2,))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return line_example(seed, length=25.0)


def _half_squares(values: Array, points: int) -> Array:
    """Modes of ½u² from the modes of point values, on so many points that no alias reaches the modes that are kept."""
    squares = scipy.fft.irfft(values, points, axis=1, norm="forward")
    half_square(squares)
    out: Array = scipy.fft.rfft(squares, axis=1, norm="forward")
    return out


def _points(cells: int) -> int:
    return int(scipy.fft.next_fast_len(3 * cells // 2 + 1, real=True))


def _march(u: Array, tau: Array, steps: Array, k: Array) -> Array:
    """``steps`` sub-steps of length tau for each sample (batch, n); the samples with the most steps come first.

    Squares are of point values, to which the modes of the averages are turned. All modes are kept but a Nyquist mode,
    which stands still.
    """
    n, kept = u.shape[1], k.shape[1]
    points = _points(n)
    averaging = np.sinc(np.arange(kept) / n)
    slope, to_values = averaging * k, 1.0 / averaging
    modes = scipy.fft.rfft(u, axis=1, norm="forward")
    base = np.ascontiguousarray(modes[:, :kept])
    now, values = base.copy(), (base.view(np.float64) * np.repeat(to_values, 2)).view(np.complex128)
    for step in range(int(steps.max(initial=0))):
        some = slice(0, int((steps > step).sum()))
        base[some] = now[some]
        for keep in KEEPS:
            squares = _half_squares(values[some], points)
            stage(keep, base[some], now[some], squares, slope[some], tau[some], values[some], to_values)
    modes[:, :kept] = now
    out: Array = scipy.fft.irfft(modes, n, axis=1, norm="forward")
    return out


@dataclass(frozen=True)
class KuramotoSivashinskyNonlinear:
    """The nonlinear part u_t = −(½u²)_x, pseudo-spectral, by the third-order Runge–Kutta method of Shu and Osher in
    equal sub-steps. Products are of point values, to which the averages are turned mode by mode, on 3/2 times the
    points, so without aliases.

    Spectral in space while the state is resolved; shocks ring, and are for the linear part to smooth. A Nyquist mode
    stands still. ``cfl`` bounds |u|τ/Δx of a sub-step by the state given (stable up to √3/π).
    Channel ``u``; no parameters.
    """

    cfl: float = 0.45

    advances: ClassVar[frozenset[str]] = frozenset({"nonlinear"})
    order: ClassVar[float] = 3
    rate_order: ClassVar[float] = EXACT
    stages: ClassVar[int] = KEEPS.size
    conserves: ClassVar[frozenset[str]] = frozenset({"u"})
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_cfl(self.cfl, 0.5)

    def _steps(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Sub-steps per sample: none for a state that is NaN, or asks for so many that it has blown up."""
        _checked_line(setting)
        fastest = np.abs(u).max(axis=(1, 2))
        steps = np.ceil(fastest * duration / setting.grid.spacing[:, 0] / self.cfl)
        return np.where(steps <= MOST_SUB_STEPS, np.maximum(steps, 1.0), 0.0).astype(np.int64)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        duration = checked_duration(duration, setting)
        steps = self._steps(u, duration, setting)
        k = wavenumbers(setting.grid, 0)[:, : (u.shape[2] + 1) // 2]
        tau, out = duration / np.maximum(steps, 1), np.full(u.shape, np.nan, dtype=u.dtype)
        order = np.argsort(-steps, kind="stable")
        order = order[steps[order] > 0]
        samples = max(1, BLOCK // u.shape[2])

        def advance(start: int) -> None:
            block = order[start : start + samples]
            out[block, 0] = _march(u[block, 0].astype(np.float64), tau[block], steps[block], k[block])

        starts = range(0, order.size, samples)
        threads = 1 if len(starts) < 2 else min(numba.get_num_threads(), len(starts))
        if threads <= 1:  # starting a thread takes as long as a few sub-steps
            for start in starts:
                advance(start)
            return out
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(advance, starts))
        return out

    def rate(self, u: Array, setting: Setting) -> Array:
        _checked_line(setting)
        n, kept = u.shape[2], (u.shape[2] + 1) // 2
        averaging = np.sinc(np.arange(kept) / n)
        modes = scipy.fft.rfft(u[:, 0].astype(np.float64), axis=1, norm="forward")
        squares = _half_squares(modes[:, :kept] / averaging, _points(n))
        modes[:, :kept] = -1j * averaging * wavenumbers(setting.grid, 0)[:, :kept] * squares[:, :kept]
        modes[:, kept:] = 0.0
        out: Array = scipy.fft.irfft(modes, n, axis=1, norm="forward")
        return out[:, None].astype(u.dtype, copy=False)

    def quadratic(self, setting: Setting) -> Quadratic:
        _checked_line(setting)
        n = setting.grid.shape[0]
        kept = (n + 1) // 2
        averaging = np.sinc(np.arange(kept) / n)
        return Quadratic(1.0 / averaging, averaging * wavenumbers(setting.grid, 0)[:, :kept])

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return KEEPS.size * np.maximum(self._steps(u, duration, setting), 1) * transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return line_example(seed, length=25.0)
