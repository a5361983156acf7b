"""``uno``: neuraloperator's U-NO, whose inner layers work on coarser grids."""

from __future__ import annotations

from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from math import log2

import torch
from torch import Tensor, nn

from hycop.networks.library import UNO, FNOBlocks
from hycop.networks.module import Increment, spread
from hycop.networks.spectral import SpectralConvolution


class Uno(Increment):
    """u ↦ Σ_i n_i·net_i(u, n) with one U-NO for all parts: its first and last layers work on the grid itself, those
    between on grids that are halved at most twice, with skips between layers of the same grid.

    The dimensionless numbers n are constant channels of the input. No coordinates: it is the same everywhere.

    Rahman, Ross, Azizzadenesheli: U-NO: U-shaped neural operators, TMLR 2023.
    """

    def __init__(self, axes: int, channels: int, numbers: int, timed: int, width: int, modes: int, layers: int) -> None:
        super().__init__()
        self.timed, self.axes, self.channels, self.width, self.modes, self.layers = (
            timed,
            axes,
            channels,
            width,
            modes,
            layers,
        )
        self.net = uno(axes, channels + numbers, timed * channels, width, modes, layers)

    def forward(self, u: Tensor, numbers: Tensor) -> Tensor:
        constant = spread(numbers, u).expand(-1, -1, *u.shape[2:])
        return self.along(numbers, self.net(torch.cat([u, constant], dim=1)))

    def flops(self, cells: int) -> float:
        return uno_flops(cells, self.axes, self.width, self.modes, self.layers)


def uno(
    axes: int,
    inputs: int,
    outputs: int,
    width: int,
    modes: int,
    layers: int,
    convolution: type[SpectralConvolution] = SpectralConvolution,
) -> nn.Module:
    """neuraloperator's U-NO with our spectral convolutions and no coordinates of its own."""
    with redirect_stdout(StringIO()):  # its constructor prints
        made: nn.Module = UNO(
            in_channels=inputs,
            out_channels=outputs,
            hidden_channels=width,
            lifting_channels=width,
            projection_channels=width,
            positional_embedding=None,
            n_layers=layers,
            uno_out_channels=[width] * layers,
            uno_n_modes=[[modes] * axes] * layers,
            uno_scalings=[[scale] * axes for scale in _scales(layers)],
            channel_mlp_skip="linear",
            operator_block=partial(FNOBlocks, conv_module=convolution),
        )
    return made


def uno_flops(cells: int, axes: int, width: int, modes: int, layers: int) -> float:
    """Floating-point operations of a U-NO for one sample on a grid of so many cells."""
    total, both = 8.0 * width**2 * cells, 2.0 * width
    for scale in _scales(layers):
        inside = cells * max(1.0, scale) ** axes  # the finer of the grids before and after the layer
        kept = min(modes**axes / 2, inside / 2)
        total += (4.0 * both * width + 5.0 * max(1.0, log2(inside)) * both) * inside + 8.0 * both**2 * kept
        cells = max(1, int(cells * scale**axes))
    return total


def _scales(layers: int) -> tuple[float, ...]:
    """Factors of the grid, layer by layer: 1, ½, 2, 1 for four layers."""
    halvings = min(2, max(0, layers - 2) // 2)
    return (1.0, *(0.5,) * halvings, *(1.0,) * (layers - 2 - 2 * halvings), *(2.0,) * halvings, 1.0)
