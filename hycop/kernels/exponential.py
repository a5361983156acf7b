"""Exponential Runge–Kutta methods as tableaus, whose weights are functions of z = h·λ for every mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import factorial
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from hycop.kernels.mode_matrices import ModeMatrices, matrix_functions

Array = npt.NDArray[Any]

TAYLOR_TERMS = 18
"""Terms of the series of φ₃ for |z| < 1: the next is below 10⁻¹⁸."""

INVERSE_FACTORIALS = tuple(1.0 / factorial(power + 3) for power in range(TAYLOR_TERMS))
"""Coefficients of that series."""


class Tableau(NamedTuple):
    """One step of v' = λ v + N(v): stage i is V_i = factor_i·v + Σ_j weights_i[j]·N(V_j), the last row is the result.

    The first stage is v itself. Factors and weights have the shape of z, and are matrices where z is; a weight is
    missing where it is zero.
    """

    factors: Sequence[Any]
    weights: Sequence[Mapping[int, Any]]

    def take(self, samples: slice) -> Tableau:
        rows = [{j: weight[samples] for j, weight in row.items()} for row in self.weights]
        return Tableau([factor[samples] for factor in self.factors], rows)


@numba.njit(cache=True, nogil=True)
def _phi(z: Array, exponential: Array, phi: Array) -> None:
    """φ₁, φ₂ and φ₃ (3, size) of z (size,)."""
    for i in range(z.size):
        x = z[i]
        if abs(x) < 1.0:
            series = INVERSE_FACTORIALS[TAYLOR_TERMS - 1] + 0.0 * x
            for power in range(TAYLOR_TERMS - 2, -1, -1):
                series = series * x + INVERSE_FACTORIALS[power]
            phi[2, i] = series
            phi[1, i] = series * x + 0.5
            phi[0, i] = phi[1, i] * x + 1.0
        else:
            phi[0, i] = (exponential[i] - 1.0) / x
            phi[1, i] = (phi[0, i] - 1.0) / x
            phi[2, i] = (phi[1, i] - 0.5) / x


def phi_functions(z: Any, exponential: Any) -> tuple[Any, Any, Any]:
    """φ₁ = (e^z − 1)/z, φ₂ = (φ₁ − 1)/z, φ₃ = (φ₂ − ½)/z, given e^z; z real, complex or matrices.

    The quotients cancel for small |z|: there a Taylor series of φ₃, and the others from it, which cancels nothing.
    """
    if isinstance(z, ModeMatrices):
        _, *phis = matrix_functions(z)
        return phis[0], phis[1], phis[2]
    phi = np.empty((3, z.size), dtype=z.dtype)
    _phi(z.reshape(-1), exponential.reshape(-1), phi)
    phi1, phi2, phi3 = phi.reshape(3, *z.shape)
    return phi1, phi2, phi3


def _two_stages(h: Array, z: Any, half: Any) -> Tableau:
    """ETDRK2: Cox & Matthews, eq. 22."""
    full = half * half
    phi1, phi2, _ = phi_functions(z, full)
    return Tableau([full, full], [{0: h * phi1}, {0: h * (phi1 - phi2), 1: h * phi2}])


def _three_stages(h: Array, z: Any, half: Any) -> Tableau:
    """ETDRK3: Cox & Matthews, eq. 23–25."""
    full = half * half
    middle, *_ = phi_functions(0.5 * z, half)
    phi1, phi2, phi3 = phi_functions(z, full)
    last = {0: h * (phi1 - 3.0 * phi2 + 4.0 * phi3), 1: h * (4.0 * phi2 - 8.0 * phi3), 2: h * (4.0 * phi3 - phi2)}
    return Tableau([half, full, full], [{0: 0.5 * h * middle}, {0: -h * phi1, 1: 2.0 * h * phi1}, last])


def _four_stages(h: Array, z: Any, half: Any) -> Tableau:
    """ETDRK4: Cox & Matthews, eq. 26–29."""
    full = half * half
    middle, *_ = phi_functions(0.5 * z, half)
    phi1, phi2, phi3 = phi_functions(z, full)
    stage = 0.5 * h * middle
    inner = h * (2.0 * phi2 - 4.0 * phi3)
    last = {0: h * (phi1 - 3.0 * phi2 + 4.0 * phi3), 1: inner, 2: inner, 3: h * (4.0 * phi3 - phi2)}
    rows = [{0: stage}, {1: stage}, {0: stage * (half - 1.0), 2: 2.0 * stage}, last]
    return Tableau([half, half, full, full], rows)


TABLEAUS: Mapping[int, Callable[[Array, Any, Any], Tableau]] = {2: _two_stages, 3: _three_stages, 4: _four_stages}
"""By the number of stages, which is the order: (h, z = h·λ, e^{z/2}) → tableau. With λ = 0 they are Heun's method,
Kutta's of third order and the classical one."""
