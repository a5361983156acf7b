"""``uno-direct``: neuraloperator's U-NO as a baseline, which gives the state after a step."""

from __future__ import annotations

from torch import Tensor

from hycop.networks.direct import Direct
from hycop.networks.spectral import PeriodicConvolution
from hycop.networks.uno import uno, uno_flops


class UnoDirect(Direct):
    """u(T) = net(u, x, n) with the U-NO of ``uno``, and more modes: nothing else carries the state.

    Without coordinates it commutes with shifts by as many cells as its coarsest grid has fewer along an axis: 2 for
    four layers, if these divide the grid.
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
        self.sizes = axes, width, modes, layers
        self.net = uno(axes, self.inputs, channels, width, modes, layers, PeriodicConvolution)

    def end_state(self, u: Tensor, numbers: Tensor) -> Tensor:
        after: Tensor = self.net(self.seen(u, numbers))
        return after

    def flops(self, cells: int) -> float:
        return uno_flops(cells, *self.sizes)
