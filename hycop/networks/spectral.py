"""The spectral convolution of Fourier neural operators, on any grid."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from hycop.networks.library import SpectralConv, resample


class SpectralConvolution(SpectralConv):  # type: ignore[misc]
    """neuraloperator's layer: each of the lowest modes of all channels times a complex matrix of its own.

    Its ``forward`` (version 2.0) shifts modes by one on an axis with an odd number of cells, and pairs weights with
    other modes on grids with fewer cells than modes. Here each mode has its weight on every grid; where neuraloperator
    is right, both agree. The output may be on another grid: of a given shape, or scaled as the layer was told.
    """

    def forward(self, x: Tensor, output_shape: Sequence[int] | None = None) -> Tensor:
        axes, after = tuple(range(2, x.ndim)), self._after(x.shape[2:], output_shape)
        kept, weight = torch.fft.rfftn(x, dim=axes, norm=self.fft_norm), self.weight.to_tensor()
        ends = [
            _ends(min(x.shape[axis], cells), most, axis == axes[-1])
            for axis, cells, most in zip(axes, after, self.max_n_modes, strict=True)
        ]
        for axis, (low, high), most in zip(axes, ends, self.max_n_modes, strict=True):
            kept = _lowest(kept, axis, low, high)
            weight = weight.narrow(axis, 0 if axis == axes[-1] else most // 2 - low, low + high + 1)
        kept = _mixed(kept, weight) if self.training else torch.einsum("bi...,io...->bo...", kept, weight)
        for axis, (low, high), cells in zip(axes, ends, after, strict=True):
            kept = _placed(kept, axis, low, high, cells // 2 + 1 if axis == axes[-1] else cells)
        x = torch.fft.irfftn(kept, s=after, dim=axes, norm=self.fft_norm)
        return x if self.bias is None else x + self.bias

    def transform(self, x: Tensor, output_shape: Sequence[int] | None = None) -> Tensor:
        """The input on the grid of the output, for what is added to it."""
        after = self._after(x.shape[2:], output_shape)
        return x if after == tuple(x.shape[2:]) else resample(x, 1.0, list(range(2, x.ndim)), output_shape=after)

    def _after(self, shape: Sequence[int], wanted: Sequence[int] | None) -> tuple[int, ...]:
        """Cells of the output."""
        if wanted is not None:
            return tuple(wanted)
        scales = self.resolution_scaling_factor
        if scales is None:
            return tuple(shape)
        return tuple(max(1, round(cells * scale)) for cells, scale in zip(shape, scales, strict=True))


def _mixed(modes: Tensor, weight: Tensor) -> Tensor:
    """Σ_i weight_io·modes_i of each mode, as real matrix products [x_r, x_i]·[[w_r, w_i], [−w_i, w_r]]: four times as
    fast as torch's complex ones, which it takes one by one. Their last digits depend on the place of a sample in its
    batch, so they serve in training only."""
    where = modes.shape[2:]
    x = torch.view_as_real(modes.flatten(2)).permute(2, 0, 3, 1).flatten(2)
    w = torch.view_as_real(weight.flatten(2)).permute(2, 3, 0, 1)
    turned = torch.stack([-w[:, 1], w[:, 0]], dim=1)
    blocks = torch.stack([w, turned], dim=1).transpose(2, 3).flatten(1, 2).flatten(2)
    out = torch.bmm(x, blocks).reshape(len(blocks), len(modes), 2, -1).permute(1, 3, 0, 2)
    return torch.view_as_complex(out.contiguous()).reshape(len(modes), -1, *where)


class PeriodicConvolution(SpectralConvolution):
    """A spectral convolution that puts what is added to its output on another grid by its modes too: neuraloperator's
    bicubic interpolation ends at the edges of the box, and moves the cells between them."""

    def transform(self, x: Tensor, output_shape: Sequence[int] | None = None) -> Tensor:
        after, axes = self._after(x.shape[2:], output_shape), tuple(range(2, x.ndim))
        if after == tuple(x.shape[2:]):
            return x
        kept = torch.fft.rfftn(x, dim=axes, norm="forward")
        for axis, cells in zip(axes, after, strict=True):
            last, coarse = axis == axes[-1], min(x.shape[axis], cells)
            low, high = _ends(coarse, coarse, last)
            size = cells // 2 + 1 if last else cells
            kept = _placed(_lowest(kept, axis, low, high), axis, low, high, size)
        return torch.fft.irfftn(kept, s=after, dim=axes, norm="forward")


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
