"""What networks share that give the end state itself, as monolithic baselines do: their inputs and their answer."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from hycop.networks.module import Increment, spread


class Direct(Increment):
    """u ↦ net(u, x, n) − u with the coordinates x of the cells and the dimensionless numbers n.

    Nothing makes it the identity for no duration. Subclasses give ``end_state``, the network itself.
    """

    def __init__(self, axes: int, channels: int, numbers: int, timed: int, coordinates: int) -> None:
        super().__init__()
        self.timed, self.axes, self.channels, self.coordinates = timed, axes, channels, coordinates
        self.inputs = channels + numbers + (axes if coordinates else 0)

    def seen(self, u: Tensor, numbers: Tensor) -> Tensor:
        """The channels of the state, those of the coordinates, and the numbers as constant channels."""
        whole = (len(u), -1, *u.shape[2:])
        parts = [u, spread(numbers, u).expand(whole)]
        if self.coordinates:
            parts.insert(1, centres(u)[None].expand(whole))
        return torch.cat(parts, dim=1)

    @abstractmethod
    def end_state(self, u: Tensor, numbers: Tensor) -> Tensor:
        """The state after the step."""

    def forward(self, u: Tensor, numbers: Tensor) -> Tensor:
        return self.end_state(u, numbers) - u


def centres(u: Tensor) -> Tensor:
    """Coordinates (axis, *grid) of the cell centres of a state, in [0, 1) along each axis."""
    along = [(torch.arange(cells, dtype=u.dtype, device=u.device) + 0.5) / cells for cells in u.shape[2:]]
    return torch.stack(torch.meshgrid(*along, indexing="ij"))
