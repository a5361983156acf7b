"""``unet``: an encoder and a decoder of convolutions with skips between them (U-Net)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hycop.networks.direct import Direct

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
POOLS = (nn.functional.max_pool1d, nn.functional.max_pool2d, nn.functional.max_pool3d)


class Unet(Direct):
    """u(T) = D(E(u, x, n)): each of ``layers`` levels halves the grid and doubles the width, then the way back joins
    what came up with what went down at the same level.

    A block is two convolutions of 3 cells along each axis, periodic, each followed by gelu. There is no normalisation,
    so that no sample sees others and amplitudes are kept. An odd number of cells is halved upwards: the last pair wraps
    around. So every grid will do, and on grids that 2^layers divides it commutes with shifts by 2^layers cells.

    Ronneberger, Fischer, Brox: U-Net: convolutional networks for biomedical image segmentation, MICCAI 2015.
    """

    def __init__(
        self, axes: int, channels: int, numbers: int, timed: int, width: int, layers: int, coordinates: int
    ) -> None:
        super().__init__(axes, channels, numbers, timed, coordinates)
        widths = [width * 2**level for level in range(layers + 1)]
        self.down = nn.ModuleList(
            [Block(axes, inputs, outputs) for inputs, outputs in zip([self.inputs, *widths], widths, strict=False)]
        )
        self.up = nn.ModuleList([TRANSPOSED[axes - 1](2 * half, half, 2, stride=2) for half in widths[-2::-1]])
        self.join = nn.ModuleList([Block(axes, 2 * half, half) for half in widths[-2::-1]])
        self.project = CONVOLUTIONS[axes - 1](width, channels, 1)

    def end_state(self, u: Tensor, numbers: Tensor) -> Tensor:
        x, before = self.down[0](self.seen(u, numbers)), list[Tensor]()
        for block in list(self.down)[1:]:
            before.append(x)
            x = block(_halved(x))
        for up, join in zip(self.up, self.join, strict=True):
            same = before.pop()
            x = up(x)
            for axis in range(2, x.ndim):
                x = x.narrow(axis, 0, same.shape[axis])
            x = join(torch.cat([same, x], dim=1))
        after: Tensor = self.project(x)
        return after

    def flops(self, cells: int) -> float:
        """Each weight acts in each cell of its level; halving does not count the cells that an odd number adds."""
        levels = [max(1.0, cells / 2 ** (self.axes * level)) for level in range(len(self.down))]
        total = 2.0 * self.project.weight.numel() * cells
        for level, block in zip(levels, self.down, strict=True):
            total += _flops(block, level)
        for level, up, join in zip(levels[-2::-1], self.up, self.join, strict=True):
            total += _flops(join, level) + 2.0 * sum(part.numel() for part in up.parameters()) * level / 2**self.axes
        return total


class Block(nn.Module):
    """gelu(K₂ gelu(K₁ v)) with convolutions K of 3 cells along each axis, periodic."""

    def __init__(self, axes: int, inputs: int, outputs: int) -> None:
        super().__init__()
        kind = CONVOLUTIONS[axes - 1]
        self.first, self.second = kind(inputs, outputs, 3), kind(outputs, outputs, 3)
        for convolution in (self.first, self.second):
            # He's: with torch's own and no normalisation, signals fade on their way through so many layers
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        around = (1, 1) * (x.ndim - 2)
        for convolution in (self.first, self.second):
            x = nn.functional.gelu(convolution(nn.functional.pad(x, around, mode="circular")))
        return x


def _halved(x: Tensor) -> Tensor:
    """The largest values of pairs of cells along each axis; the last of an odd number is paired with the first."""
    for axis in range(2, x.ndim):
        if x.shape[axis] % 2:
            x = torch.cat([x, x.narrow(axis, 0, 1)], dim=axis)
    return POOLS[x.ndim - 3](x, 2)


def _flops(block: nn.Module, cells: float) -> float:
    return sum(2.0 * part.numel() + 12.0 * part.shape[0] for part in block.parameters() if part.ndim > 1) * cells
