"""``pointwise``: one small network for every cell, for reactions and other processes without derivatives."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from hycop.networks.module import Increment, PerCell, spread


class Pointwise(Increment):
    """u ↦ Σ_i n_i·net_i(u, n) in each cell, n the dimensionless numbers, as r τ of a reaction."""

    def __init__(self, axes: int, channels: int, numbers: int, timed: int, width: int, layers: int) -> None:
        super().__init__()
        self.timed, self.axes = timed, axes
        self.lift = PerCell(channels + numbers, width)
        self.hidden = nn.ModuleList([PerCell(width, width) for _ in range(layers - 1)])
        self.project = PerCell(width, timed * channels)

    def forward(self, u: Tensor, numbers: Tensor) -> Tensor:
        constant = spread(numbers, u).expand(-1, -1, *u.shape[2:])
        x = nn.functional.gelu(self.lift(torch.cat([u, constant], dim=1)))
        for hidden in self.hidden:
            x = x + nn.functional.gelu(hidden(x))
        return self.along(numbers, self.project(x))

    def flops(self, cells: int) -> float:
        layers = (self.lift, *self.hidden, self.project)
        return sum(2.0 * layer.weight.numel() + 12.0 * layer.weight.shape[0] for layer in layers) * cells
