"""Advection and diffusion at once, u_t + c·∇u = Σ_i D_i ∂_ii u with constant coefficients: exact in Fourier space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hycop.grid import Array
from hycop.primitive import ALL_CHANNELS, EXACT, Symbol, checked_duration, flow_of, rate_of, symbol_of, transform_work
from hycop.primitives.advection import SpectralAdvection
from hycop.primitives.diffusion import SpectralDiffusion
from hycop.primitives.examples import scalar_example
from hycop.query import Setting


@dataclass(frozen=True)
class SpectralAdvectionDiffusion:
    """u_t + c·∇u = Σ_i D_i ∂_ii u: every Fourier mode turns and decays by e^{−(i c·k + Σ D_i k_i²) τ}.

    ``SpectralAdvection`` and ``SpectralDiffusion`` commute, so that this is both of them at once, exact for periodic
    band-limited states. It takes the place of a network that was trained on both processes, and is what such a network
    is measured against. Parameters: ``cx``, ``cy``, ``cz`` and ``Dx``, ``Dy``, ``Dz``, one each per axis, D ≥ 0.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"advection", "diffusion"})
    order: ClassVar[float] = EXACT
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = SpectralAdvection.boundaries
    reversible: ClassVar[bool] = False

    def symbol(self, setting: Setting) -> Symbol:
        return SpectralAdvection().symbol(setting) + SpectralDiffusion().symbol(setting)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ("c", "D"))
