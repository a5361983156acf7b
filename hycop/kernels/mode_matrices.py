"""A small matrix for every mode: what couples the channels of a linear system, and functions of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

TAYLOR_TERMS = 15
"""Terms of the series of φ₃ for matrices of norm ½ at most: the next is below 10⁻²⁰."""


@dataclass(frozen=True, eq=False)
class ModeMatrices:
    """Matrices ``entries`` (channel, channel, batch, *modes), one for every sample and mode.

    They calculate as numbers do: a product of two is that of the matrices, a number stands for its multiple of the
    identity, an array (batch, 1, 1, …) for a number per sample, and a product with the modes of a state (batch,
    channel, *modes) is the state that the matrices make of it. Sums run over channels one by one, so no sample depends
    on its batch.
    """

    entries: Array

    __array_ufunc__ = None  # NumPy then leaves array · matrices to __rmul__

    @property
    def _channels(self) -> range:
        return range(self.entries.shape[0])

    def __getitem__(self, samples: slice) -> ModeMatrices:
        return ModeMatrices(self.entries[:, :, samples])

    def __mul__(self, other: Any) -> Any:
        """Matrices times matrices, or times the modes of a state."""
        if isinstance(other, ModeMatrices):
            return ModeMatrices(
                np.stack(
                    [np.stack([self._dot(i, other.entries[:, j]) for j in self._channels]) for i in self._channels]
                )
            )
        return np.stack([self._dot(i, np.moveaxis(other, 1, 0)) for i in self._channels], axis=1)

    def _dot(self, row: int, columns: Array) -> Array:
        total = self.entries[row, 0] * columns[0]
        for k in self._channels[1:]:
            total += self.entries[row, k] * columns[k]
        return total

    def __rmul__(self, number: float | Array) -> ModeMatrices:
        """A number, or one for each sample, times the matrices."""
        if isinstance(number, np.ndarray):
            number = number.reshape((-1,) + (1,) * (self.entries.ndim - 3))
        return ModeMatrices(number * self.entries)

    def __add__(self, other: float | ModeMatrices) -> ModeMatrices:
        if isinstance(other, ModeMatrices):
            return ModeMatrices(self.entries + other.entries)
        out = self.entries.copy()
        for k in self._channels:
            out[k, k] += other
        return ModeMatrices(out)

    def __sub__(self, other: float | ModeMatrices) -> ModeMatrices:
        return self + (-1.0 * other)

    def where(self, chosen: Array, other: ModeMatrices) -> ModeMatrices:
        """Those of the chosen (batch, *modes), and the other ones elsewhere."""
        return ModeMatrices(np.where(chosen, self.entries, other.entries))


def matrix_functions(z: ModeMatrices) -> tuple[ModeMatrices, ModeMatrices, ModeMatrices, ModeMatrices]:
    """e^z, φ₁ = (e^z − 1)/z, φ₂ = (φ₁ − 1)/z and φ₃ = (φ₂ − ½)/z, of singular z too.

    Taylor series of z/2^s, then s doublings, φ_k(2z) = 2^{−k} (e^z φ_k(z) + Σ_{j ≤ k} φ_j(z)/(k − j)!), with s from the
    norm of each matrix alone.
    """
    norm = np.abs(z.entries).sum(axis=1).max(axis=0)
    with np.errstate(divide="ignore"):
        halvings = np.where(np.isfinite(norm), np.maximum(0.0, np.ceil(np.log2(norm)) + 1), 0.0)
    small = ModeMatrices(z.entries / 2.0**halvings)
    phi3 = ModeMatrices(np.zeros_like(z.entries)) + 1.0 / factorial(TAYLOR_TERMS + 2)
    for power in range(TAYLOR_TERMS - 2, -1, -1):
        phi3 = small * phi3 + 1.0 / factorial(power + 3)
    phi2 = small * phi3 + 0.5
    phi1 = small * phi2 + 1.0
    grown = small * phi1 + 1.0
    for count in range(int(halvings.max(initial=0.0))):
        moving = count < halvings
        phi3 = (0.125 * (grown * phi3 + phi3 + phi2 + 0.5 * phi1)).where(moving, phi3)
        phi2 = (0.25 * (grown * phi2 + phi2 + phi1)).where(moving, phi2)
        phi1 = (0.5 * (grown * phi1 + phi1)).where(moving, phi1)
        grown = (grown * grown).where(moving, grown)
    return grown, phi1, phi2, phi3
