"""``deeponet``: coefficients from the state times basis functions of the place (DeepONet, unstacked)."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from hycop.networks.direct import Direct, centres
from hycop.networks.module import samplewise

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
POOLS = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)

SEEN = 4
"""Cells along each axis of what the branch makes of a state: 32 halved three times."""

PHASE = 8.0
"""Size of the phases, in radians over the box, with which the first layer of a trunk begins."""


class DeepONet(Direct):
    """u_c(T, x) = Σ_j b_cj(u, n) t_cj(x) + β_c with ``basis`` functions t for each channel c.

    The branch b: convolutions halve the grid three times, the mean over 4 cells along each axis makes every grid the
    same, then layers of ``width`` that are also told the numbers n. The trunk t: layers of ``width`` over the
    coordinates of the cells, the same for all samples. It is not the same everywhere, and no periodicity is built in.

    Lu et al.: Learning nonlinear operators via DeepONet, Nature Machine Intelligence 2021.
    """

    def __init__(self, axes: int, channels: int, numbers: int, timed: int, width: int, basis: int, layers: int) -> None:
        super().__init__(axes, channels, numbers, timed, coordinates=0)
        self.width, self.basis = width, basis
        kind, widths = CONVOLUTIONS[axes - 1], [channels, *(max(1, width // part) for part in (8, 4, 2))]
        self.convolutions = nn.ModuleList([kind(before, after, 3, stride=2) for before, after in pairwise(widths)])
        self.pool = POOLS[axes - 1](SEEN)
        inside, ends = [width] * (layers - 1), channels * basis
        self.branch = _dense(widths[-1] * SEEN**axes + numbers, *inside, ends)
        self.trunk = _dense(axes, *inside, ends)
        self.bias = nn.Parameter(torch.zeros(channels, 1))
        self._begin()

    def _begin(self) -> None:
        """He's weights; the trunk begins with functions that vary over a fraction of the box, as with torch's own it
        takes long to tell places apart, and the sum over the basis with the size of one product."""
        for layer in (*self.convolutions, *_linear(self.branch), *_linear(self.trunk)):
            nn.init.kaiming_normal_(cast(Tensor, layer.weight), nonlinearity="relu")
        first, last = _linear(self.trunk)[0], _linear(self.trunk)[-1]
        with torch.no_grad():
            first.weight.mul_(PHASE)
            first.bias.uniform_(-PHASE, PHASE)
            last.weight.mul_(0.5 * self.basis**-0.5 / PHASE)

    def end_state(self, u: Tensor, numbers: Tensor) -> Tensor:
        x = u
        for convolution in self.convolutions:
            x = gelu(convolution(pad(x, (1, 1) * self.axes, mode="circular")))
        x = torch.cat([self.pool(x).flatten(1), numbers], dim=1)
        *hidden, last = _linear(self.branch)
        # one product for all samples is much quicker; only where samples are compared their place must not count
        apply = nn.Linear.__call__ if self.training else samplewise
        for layer in hidden:
            x = gelu(apply(layer, x))
        coefficients = apply(last, x).reshape(len(u), self.channels, 1, self.basis)
        y = centres(u).flatten(1).t()
        *hidden, last = _linear(self.trunk)
        for layer in hidden:
            y = gelu(layer(y))
        functions = last(y).reshape(-1, self.channels, self.basis).permute(1, 2, 0)
        return (torch.matmul(coefficients, functions)[:, :, 0] + self.bias).reshape(u.shape)

    def flops(self, cells: int) -> float:
        dense = sum(2.0 * layer.weight.numel() for layer in _linear(self.branch))
        trunk = sum(2.0 * layer.weight.numel() + 12.0 * len(layer.weight) for layer in _linear(self.trunk))
        total = dense + (trunk + 2.0 * self.channels * self.basis) * cells
        for level, convolution in enumerate(self.convolutions, start=1):
            size = sum(part.numel() for part in convolution.parameters())
            total += 2.0 * size * max(1.0, cells / 2 ** (self.axes * level))
        return total


def _dense(*widths: int) -> nn.ModuleList:
    return nn.ModuleList([nn.Linear(before, after) for before, after in pairwise(widths)])


def _linear(modules: nn.ModuleList) -> list[nn.Linear]:
    return cast(list[nn.Linear], list(modules))
