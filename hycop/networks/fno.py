"""``fno``: neuraloperator's Fourier neural operator, the baseline of many benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import cast

from torch import Tensor, nn
from torch.nn.functional import gelu

from hycop.networks.direct import Direct
from hycop.networks.library import FNO
from hycop.networks.module import per_cell
from hycop.networks.spectral import SpectralConvolution


class Fno(Direct):
    """u(T) = Q(v_L), v_0 = P(u, x, n), v_{l+1} = gelu(C_l(gelu(K_l v_l + W_l v_l)) + s_l·v_l).

    K_l are spectral convolutions, W_l and C_l act on each cell, s_l scales each channel. The default size is that of
    PDEBench: width 20, 12 modes of each sign, 4 layers. PDEBench has no C_l and s_l, lifts with one linear layer where
    neuraloperator has two, and projects through 128 channels, here twice the width.

    Li et al.: Fourier neural operator for parametric partial differential equations, ICLR 2021.
    Takamoto et al.: PDEBench, NeurIPS 2022.
    """

    def __init__(
        self,
        axes: int,
        channels: int,
        numbers: int,
        timed: int,
        width: int,
        modes: int,
        layers: int,
        coordinates: int,
    ) -> None:
        super().__init__(axes, channels, numbers, timed, coordinates)
        self.width, self.modes, self.layers = width, modes, layers
        net = FNO(
            n_modes=(modes,) * axes,
            in_channels=self.inputs,
            out_channels=channels,
            hidden_channels=width,
            n_layers=layers,
            positional_embedding=None,
            conv_module=SpectralConvolution,
        )
        # its parts: the whole puts more than weights into its state
        self.lift, self.blocks, self.project = net.lifting, net.fno_blocks, net.projection

    def end_state(self, u: Tensor, numbers: Tensor) -> Tensor:
        v = mixed(self.lift, self.seen(u, numbers))
        blocks = self.blocks
        parts = zip(blocks.convs, blocks.fno_skips, blocks.channel_mlp, blocks.channel_mlp_skips, strict=True)
        for layer, (spectral, skip, mlp, gate) in enumerate(parts):
            last = layer + 1 == self.layers
            inner = spectral(v) + per_cell(skip.conv.weight[..., 0], None, v)
            outer = mixed(mlp, inner if last else gelu(inner)) + gate.weight * v
            v = outer if last else gelu(outer)
        return mixed(self.project, v)

    def flops(self, cells: int) -> float:
        width = self.width
        ends = 4.0 * width * (self.inputs + width) + 4.0 * width * (width + self.channels)
        layer = spectral_flops(cells, self.axes, width, self.modes) + (4.0 * width**2 + 30.0 * width) * cells
        return ends * cells + self.layers * layer


def mixed(mlp: nn.Module, x: Tensor) -> Tensor:
    """neuraloperator's two layers over the channels of each cell (``ChannelMLP``)."""
    first, second = cast(Sequence[nn.Conv1d], mlp.fcs)
    hidden = gelu(per_cell(first.weight[..., 0], first.bias, x))
    return per_cell(second.weight[..., 0], second.bias, hidden)


def spectral_flops(cells: int, axes: int, width: int, modes: int) -> float:
    """A spectral convolution: two transforms of each channel, and a complex matrix for each of the kept modes."""
    kept = min(modes**axes / 2, cells / 2)
    return 5.0 * cells * max(1.0, log2(cells)) * width + 8.0 * width**2 * kept
