"""``fno-film-direct``: the source paper's network, which gives the state after a step, not its change."""

from __future__ import annotations

from torch import Tensor, nn

from hycop.networks.fno_film import FnoFilm
from hycop.networks.module import PerCell


class FnoFilmDirect(FnoFilm):
    """u ↦ P(v_L) − u with the layers of ``fno-film``: nothing makes it the identity for no duration.

    It is here to be compared with: composed in programs of many steps, its error at short durations adds up.
    """

    def __init__(
        self, axes: int, channels: int, numbers: int, timed: int, width: int, modes: int, layers: int, film: int
    ) -> None:
        super().__init__(axes, channels, numbers, timed, width, modes, layers, film)
        self.project[1] = PerCell(2 * width, channels)

    def forward(self, u: Tensor, numbers: Tensor) -> Tensor:
        return self.project[1](nn.functional.gelu(self.project[0](self.features(u, numbers)))) - u
