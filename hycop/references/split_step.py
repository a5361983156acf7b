"""Truth of the nonlinear Schrödinger equation i ψ_t = −½ ψ_xx − g|ψ|²ψ: Strang's split-step Fourier method on a fine
grid, with NumPy's transforms and nothing of the primitives."""

from __future__ import annotations

import numpy as np

from hycop.grid import Array
from hycop.query import Setting

STEPS = 512
"""Steps for one duration; with twice as many and Richardson's extrapolation the method is of fourth order in time."""


def split_step(u0: Array, setting: Setting, duration: Array) -> Array:
    """Point values (batch, (u, v), cells) of ψ = u + i v on a periodic line after the durations. Coefficient: ``g``."""
    psi = u0[:, 0] + 1j * u0[:, 1]
    coarse, fine = (_strang(psi, setting, duration, steps) for steps in (STEPS, 2 * STEPS))
    after = (4.0 * fine - coarse) / 3.0
    return np.stack([after.real, after.imag], axis=1)


def _strang(psi: Array, setting: Setting, duration: Array, steps: int) -> Array:
    cells, length = psi.shape[1], setting.grid.lengths[:, :1]
    k = 2.0 * np.pi * np.fft.fftfreq(cells, 1.0 / cells) / length
    tau, g = (duration / steps)[:, None], setting.param("g")[:, None]
    drift = np.exp(-0.5j * k**2 * tau)
    for _ in range(steps):
        psi = psi * np.exp(0.5j * g * tau * np.abs(psi) ** 2)
        psi = np.fft.ifft(drift * np.fft.fft(psi))
        psi = psi * np.exp(0.5j * g * tau * np.abs(psi) ** 2)
    return psi
