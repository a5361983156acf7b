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
        out = torch.zeros((x.shape[0], self.out_channels, *modes.shape[2:]), dtype=modes.dtype, device=x.device)
        weight = self.weight.to_tensor()
        here, there = modes, weight
        places: list[Tensor] = []
        for axis, kept in zip(axes, self.max_n_modes, strict=True):
            rows, columns = _paired(x.shape[axis], kept, last=axis == axes[-1])
            here, there = here.index_select(axis, rows), there.index_select(axis, columns)
            places.append(rows)
        grids = torch.meshgrid(*places, indexing="ij")
        everywhere: tuple[slice | Tensor, ...] = (slice(None), slice(None), *grids)
        out[everywhere] = torch.einsum("bi...,io...->bo...", here, there)
        x = torch.fft.irfftn(out, s=x.shape[2:], dim=axes, norm=self.fft_norm)
        return x if self.bias is None else x + self.bias


def _paired(cells: int, kept: int, last: bool) -> tuple[Tensor, Tensor]:
    """Positions along an axis of the modes on the grid and of their weights."""
    if last:  # modes 0, 1, … of a real transform
        count = min(kept, cells // 2 + 1)
        return torch.arange(count), torch.arange(count)
    low, high = min(kept // 2, cells // 2), min((kept - 1) // 2, (cells - 1) // 2)
    frequencies = torch.arange(-low, high + 1)
    return frequencies % cells, frequencies + kept // 2
