"""Exponential Runge–Kutta steps of the diffusion–reaction equation on the Fourier modes of periodic boxes."""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from scipy import fft

from hycop.grid import Array, Grid
from hycop.references.coefficients import Coefficients
from hycop.references.reference import samplewise

TAYLOR_TERMS = 18


class _Weights(NamedTuple):
    """What ETDRK4 multiplies the modes with in one step, each (batch, 1, *modes)."""

    half: Array
    full: Array
    stage: Array
    first: Array
    middle: Array
    last: Array


class Spectrum:
    """The modes of a block of boxes and what the equation does to them."""

    def __init__(self, grid: Grid, coefficients: Coefficients, reacting: bool) -> None:
        self.reacting = reacting
        self.shape = grid.shape
        self.axes = tuple(range(2, 2 + grid.axes))
        self.coefficients = coefficients
        numbers = mode_numbers(grid.shape)
        turn = 2.0 * np.pi / grid.lengths
        self.wavenumbers = [along_axis(turn[:, axis, None] * j, axis, grid.axes) for axis, j in enumerate(numbers)]
        self.damping = [
            -samplewise(coefficients.diffusivity[:, axis], k) * k**2 for axis, k in enumerate(self.wavenumbers)
        ]

    def advanced(self, u: Array, steps: Array, duration: Array) -> Array:
        """The state after all steps (batch, steps), which add up to the duration (batch,)."""
        modes = self._modes(u)
        # A blow-up is reported once, with its sample, when the solution is complete.
        with np.errstate(over="ignore", invalid="ignore"):
            for index in range(steps.shape[1]):
                modes = self._etdrk4(modes, steps[:, index]) if self.reacting else modes * self._decay(steps[:, index])
            for axis in range(len(self.shape)):
                modes *= self._translation(axis, duration)
            return self._values(modes)

    def diffusion(self, u: Array) -> Array:
        """Σ D_i ∂_ii u."""
        return self._values(self._modes(u) * sum(self.damping))

    def _modes(self, u: Array) -> Array:
        modes: Array = fft.rfftn(u, axes=self.axes)
        return modes

    def _values(self, modes: Array) -> Array:
        values: Array = fft.irfftn(modes, s=self.shape, axes=self.axes)
        return values

    def _decay(self, duration: Array) -> Array:
        """exp(−Σ D_i k_i² t), as the product of its axes."""
        out: Array = np.ones(1)
        for rate in self.damping:
            out = out * np.exp(samplewise(duration, rate) * rate)
        return out

    def _translation(self, axis: int, duration: Array) -> Array:
        """exp(−i k c t); the Nyquist mode of an even number of cells has no odd derivative and stays."""
        k = self.wavenumbers[axis]
        phase = -k * samplewise(self.coefficients.velocity[:, axis] * duration, k)
        if self.shape[axis] % 2 == 0:
            nyquist = [slice(None)] * phase.ndim
            nyquist[2 + axis] = slice(self.shape[axis] // 2, self.shape[axis] // 2 + 1)
            phase[tuple(nyquist)] = 0.0
        return np.exp(1j * phase)

    def _reaction(self, modes: Array) -> Array:
        """Modes of u (1 − u)."""
        u = self._values(modes)
        return self._modes(u * (1.0 - u))

    def _weights(self, h: Array) -> _Weights:
        half = self._decay(h / 2)
        z: Array = samplewise(h, half) * sum(self.damping)
        full = half * half
        phi1, phi2, phi3 = phi_functions(z, full)
        gain = samplewise(h * self.coefficients.rate, half)
        return _Weights(
            half=half,
            full=full,
            # (h/2) φ₁(z/2), for φ₁(z) = φ₁(z/2) (1 + e^{z/2}) / 2
            stage=gain * phi1 / (1.0 + half),
            first=gain * (phi1 - 3.0 * phi2 + 4.0 * phi3),
            middle=gain * (2.0 * phi2 - 4.0 * phi3),
            last=gain * (4.0 * phi3 - phi2),
        )

    def _etdrk4(self, u: Array, h: Array) -> Array:
        """One step of Cox & Matthews (2002), eq. 26–29, with the rate r and the step h inside the weights."""
        weights = self._weights(h)
        reaction_u = self._reaction(u)
        half_u = weights.half * u
        a = half_u + weights.stage * reaction_u
        reaction_a = self._reaction(a)
        b = half_u + weights.stage * reaction_a
        reaction_b = self._reaction(b)
        c = weights.half * a + weights.stage * (2.0 * reaction_b - reaction_u)
        reaction_c = self._reaction(c)
        middle = weights.middle * (reaction_a + reaction_b)
        out: Array = weights.full * u + weights.first * reaction_u + middle + weights.last * reaction_c
        return out


def phi_functions(z: Array, exponential: Array) -> tuple[Array, Array, Array]:
    """φ₁ = (e^z − 1)/z, φ₂ = (φ₁ − 1)/z, φ₃ = (φ₂ − ½)/z for z ≤ 0, given e^z.

    The quotients cancel for small |z|: there a Taylor series of φ₃, and the others from it, which cancels nothing.
    """
    near = z > -1.0
    inverse = 1.0 / np.where(near, -1.0, z)
    phi1 = (exponential - 1.0) * inverse
    phi2 = (phi1 - 1.0) * inverse
    phi3 = (phi2 - 0.5) * inverse
    small = z[near]
    series = np.zeros_like(small)
    for power in reversed(range(TAYLOR_TERMS)):
        series = series * small + 1.0 / factorial(power + 3)
    phi3[near] = series
    phi2[near] = series = series * small + 0.5
    phi1[near] = series * small + 1.0
    return phi1, phi2, phi3


def mode_numbers(shape: tuple[int, ...]) -> list[Array]:
    """Mode numbers per axis as the real transform orders them: the last axis has no negative ones."""
    last = len(shape) - 1
    return [fft.rfftfreq(n, 1 / n) if axis == last else fft.fftfreq(n, 1 / n) for axis, n in enumerate(shape)]


def along_axis(rows: Array, axis: int, axes: int, ndim: int | None = None) -> Array:
    """(batch or 1, modes) as (batch or 1, 1, …, modes, …, 1) for a state of ``ndim`` (channel included) dimensions."""
    view = [1] * (2 + axes if ndim is None else ndim)
    view[0] = rows.shape[0]
    view[len(view) - axes + axis] = rows.shape[1]
    return rows.reshape(view)
