"""Diffusion with a diffusivity that varies in space, and with values or slopes at the ends of the axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.boundary import EVERY
from hycop.errors import InvalidInputError
from hycop.grid import AXES, Array
from hycop.kernels.conduction import REACH, chebyshev, conduct, conduct_rates, conductances, stiffest
from hycop.primitive import ALL_CHANNELS, checked_duration, sub_steps, update_work
from hycop.primitives.examples import scalar_example, varied
from hycop.primitives.faces import ends_of, refuse_normal, widths_of
from hycop.query import Setting


@dataclass(frozen=True)
class VariableDiffusion:
    """Diffusion u_t = Σ_i ∂_i (D_i ∂_i u) with diffusivities that may vary in space, for every boundary.

    Two-point fluxes with the harmonic mean of D at each face, which is exact for layers; no flux through walls and
    outflow, the value of ``Dirichlet`` held at the face, D times the slope of ``Neumann`` through it. The semi-discrete
    system u' = A u + b is integrated to ``tolerance`` by Chebyshev's polynomials of A, whose number grows with the
    square root of the duration. So it is second order in space, exact in time, conservative on closed boxes and stable
    for any duration. With constant D and no values at the ends ``FiniteVolumeDiffusion`` gives the same at less work.
    Parameters: ``Dx``, ``Dy``, ``Dz``, one per axis, numbers or fields, not negative.
    Tal-Ezer, SIAM J. Numer. Anal. 23 (1986) 11.
    """

    tolerance: float = 1e-10

    advances: ClassVar[frozenset[str]] = frozenset({"diffusion"})
    order: ClassVar[float] = 2
    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1e-14 <= self.tolerance <= 1e-2:
            raise InvalidInputError(f"tolerance is {self.tolerance}: it must be between 1e-14 and 0.01")

    def _faces(self, setting: Setting) -> list[Array]:
        refuse_normal(self, setting)
        grid, codes, out = setting.grid, ends_of(setting).codes, []
        for axis, letter in enumerate(AXES[: grid.axes]):
            diffusivity = setting.field("D" + letter)
            if (diffusivity < 0).any():
                sample = int(np.argwhere(diffusivity < 0)[0, 0])
                raise InvalidInputError(f"parameter 'D{letter}' is negative for sample {sample}: diffusion needs D ≥ 0")
            low, high = codes[3 - grid.axes + axis]
            out.append(conductances(diffusivity, grid.spacing[:, axis], axis, low, high))
        return out

    def _steps(self, duration: Array, faces: list[Array]) -> tuple[Array, tuple[Array, Array]]:
        """Sub-steps (batch,), and the series of one of them with its number of terms."""
        length = duration * stiffest(faces)
        steps = sub_steps(length / REACH)
        return steps, chebyshev(length / np.maximum(steps, 1), self.tolerance)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau, faces = checked_duration(duration, setting), self._faces(setting)
        steps, series = self._steps(tau, faces)
        return conduct(u, faces, tau / np.maximum(steps, 1), steps, series, ends_of(setting), widths_of(setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return conduct_rates(u, self._faces(setting), ends_of(setting), widths_of(setting))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        steps, (_, needed) = self._steps(np.asarray(duration, dtype=np.float64), self._faces(setting))
        return update_work(setting, np.maximum(1, steps * needed))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return varied(*scalar_example(seed, ("D",)))
