"""Diffusion with constant coefficients, u_t = Σ_i D_i ∂_ii u: stable for any duration, every boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import AXES, BOUNDARIES, Array
from hycop.primitive import (
    ALL_CHANNELS,
    EXACT,
    Symbol,
    checked_duration,
    flow_of,
    rate_of,
    symbol_of,
    transform_work,
    transforms_of,
    wavenumbers,
)
from hycop.primitives.examples import scalar_example
from hycop.primitives.faces import refuse_normal
from hycop.query import Setting


def _diffusivity(primitive: object, setting: Setting) -> Array:
    """D (batch, axis), if the modes of the box fit: cosines have zero gradient at a wall, but the component of a
    vector normal to it has zero value instead."""
    refuse_normal(primitive, setting)
    diffusivity = setting.per_axis("D")
    if (diffusivity < 0).any():
        sample, axis = np.argwhere(diffusivity < 0)[0]
        raise InvalidInputError(f"parameter 'D{AXES[axis]}' is negative for sample {sample}: diffusion needs D ≥ 0")
    return diffusivity


@dataclass(frozen=True)
class SpectralDiffusion:
    """Diffusion u_t = Σ_i D_i ∂_ii u: every mode decays by e^{−Σ D_i k_i² τ}.

    Fourier modes on periodic axes, cosines (zero gradient at both ends) on the others. Exact and stable for any
    duration; together with wind towards a wall the layer there needs many cosines, and finite volumes err less.
    Parameters: ``Dx``, ``Dy``, ``Dz``, one per axis, not negative.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"diffusion"})
    order: ClassVar[float] = EXACT
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def symbol(self, setting: Setting) -> Symbol:
        grid, diffusivity = setting.grid, _diffusivity(self, setting)
        rates = tuple(-diffusivity[:, axis : axis + 1] * wavenumbers(grid, axis) ** 2 for axis in range(grid.axes))
        return Symbol(transforms_of(grid), rates)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ("D",))


@dataclass(frozen=True)
class FiniteVolumeDiffusion:
    """Diffusion with the two-point flux D_i (u_{j+1} − u_j)/Δx_i through each face, no flux through walls and outflow.

    The semi-discrete system u' = A u is integrated exactly: the modes of the box diagonalise A, with rates
    −Σ_i 4 D_i/Δx_i² · sin²(k_i Δx_i/2). So it is second order in space, exact in time, conservative, free of new
    extrema and stable for any duration. Parameters: ``Dx``, ``Dy``, ``Dz``, one per axis, not negative.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"diffusion"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def symbol(self, setting: Setting) -> Symbol:
        grid, diffusivity, dx = setting.grid, _diffusivity(self, setting), setting.grid.spacing
        rates = []
        for axis in range(grid.axes):
            width = dx[:, axis : axis + 1]
            sine = np.sin(0.5 * wavenumbers(grid, axis) * width)
            rates.append(-4.0 * diffusivity[:, axis : axis + 1] * (sine / width) ** 2)
        return Symbol(transforms_of(grid), tuple(rates))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return flow_of(symbol_of(self, setting), u, checked_duration(duration, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of(symbol_of(self, setting), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return transform_work(setting)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ("D",))
