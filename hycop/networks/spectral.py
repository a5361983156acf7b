"""The spectral convolution of Fourier neural operators, on any grid."""

from __future__ import annotations

import sys

import torch
from torch import Tensor

# neuraloperator imports wandb if it is there, for a training loop that is not used here. That takes a second, and
# leaves folders behind in a process that is killed.
unwanted = sys.modules.setdefault("wandb", None) is None  # type: ignore[arg-type]
try:
    from neuralop.layers.spectral_convolution import SpectralConv
finally:
    if unwanted:
        del sys.modules["wandb"]


class SpectralConvolution(SpectralConv):  # type: ignore[misc]
    """neuraloperator's layer: each of the lowest modes of all channels times a complex matrix of its own.

    Its ``forward`` (version 2.0) shifts modes by one on an axis with an odd number of cells, and pairs weights with
    other modes on grids with fewer cells than modes. Here each mode has its weight on every grid; where neuraloperator
    is right, both agree.
    """

    def forward(self, x: Tensor, output_shape: object = None) -> Tensor:
        axes = tuple(range(2, x.ndim))
        modes = torch.fft.rfftn(x, dim=axes, norm=self.fft_norm)
        kept, weight = modes, self.weight.to_tensor()
        for axis, most in zip(axes, self.max_n_modes, strict=True):
            low, high = _ends(x.shape[axis], most, axis == axes[-1])
            kept = _lowest(kept, axis, low, high)
            weight = weight.narrow(axis, 0 if axis == axes[-1] else most // 2 - low, low + high + 1)
        kept = torch.einsum("bi...,io...->bo...", kept, weight)
        for axis, most in zip(axes, self.max_n_modes, strict=True):
            low, high = _ends(x.shape[axis], most, axis == axes[-1])
            kept = _placed(kept, axis, low, high, modes.shape[axis])
        x = torch.fft.irfftn(kept, s=x.shape[2:], dim=axes, norm=self.fft_norm)
        return x if self.bias is None else x + self.bias


def _ends(cells: int, most: int, last: bool) -> tuple[int, int]:
    """The modes −low, …, high along an axis that both the grid and the weights have; the last axis has 0, 1, … only."""
    if last:
        return 0, min(most, cells // 2 + 1) - 1
    return min(most // 2, cells // 2), min((most - 1) // 2, (cells - 1) // 2)


def _lowest(modes: Tensor, axis: int, low: int, high: int) -> Tensor:
    """The modes −low, …, high of an axis in this order."""
    above = modes.narrow(axis, 0, high + 1)
    return torch.cat([modes.narrow(axis, modes.shape[axis] - low, low), above], dim=axis) if low else above


def _placed(modes: Tensor, axis: int, low: int, high: int, size: int) -> Tensor:
    """The inverse of ``_lowest``: modes at their places along an axis of so many, zeros elsewhere."""
    shape = list(modes.shape)
    shape[axis] = size - low - high - 1
    zeros = torch.zeros(shape, dtype=modes.dtype, device=modes.device)
    return torch.cat([modes.narrow(axis, low, high + 1), zeros, modes.narrow(axis, 0, low)], dim=axis)
