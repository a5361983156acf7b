"""``fno-film``: a Fourier neural operator whose layers are modulated by the duration and the coefficients."""

from __future__ import annotations

from math import log2

import torch
from torch import Tensor, nn

from hycop.networks.module import Film, Increment, PerCell, spread
from hycop.networks.spectral import SpectralConvolution


class FnoFilm(Increment):
    """u ↦ Σ_i n_i·P_i(v_L), v_0 = lift(u, n), v_{l+1} = v_l + gelu(γ_l(n)·(K_l v_l + W_l v_l) + β_l(n)).

    K_l are neuraloperator's spectral convolutions, W_l act on each cell; the last layer has no gelu. The dimensionless
    numbers n are constant channels of the input, and set γ and β (FiLM). The sum is over those that grow with the
    duration.
    """

    def __init__(
        self, axes: int, channels: int, numbers: int, timed: int, width: int, modes: int, layers: int, film: int
    ) -> None:
        super().__init__()
        self.timed, self.axes, self.width, self.modes, self.layers = timed, axes, width, modes, layers
        self.lift = nn.ModuleList([PerCell(channels + numbers, width), PerCell(width, width)])
        self.spectral = nn.ModuleList([SpectralConvolution(width, width, (modes,) * axes) for _ in range(layers)])
        self.local = nn.ModuleList([PerCell(width, width) for _ in range(layers)])
        self.film = Film(numbers, film, layers, width)
        self.project = nn.ModuleList([PerCell(width, 2 * width), PerCell(2 * width, timed * channels)])

    def features(self, u: Tensor, numbers: Tensor) -> Tensor:
        """The last hidden state v_L."""
        constant = spread(numbers, u).expand(-1, -1, *u.shape[2:])
        v = self.lift[1](nn.functional.gelu(self.lift[0](torch.cat([u, constant], dim=1))))
        scales, shifts = self.film(numbers)
        for layer, (spectral, local) in enumerate(zip(self.spectral, self.local, strict=True)):
            inner = spread(scales[:, layer], v) * (spectral(v) + local(v)) + spread(shifts[:, layer], v)
            v = v + (nn.functional.gelu(inner) if layer + 1 < self.layers else inner)
        return v

    def forward(self, u: Tensor, numbers: Tensor) -> Tensor:
        fields = self.project[1](nn.functional.gelu(self.project[0](self.features(u, numbers))))
        return self.along(numbers, fields)

    def flops(self, cells: int) -> float:
        dense = sum(layer.weight.numel() for layer in (*self.lift, *self.project))
        kept = min(self.modes**self.axes / 2, cells / 2)
        transforms = 5.0 * cells * max(1.0, log2(cells)) * self.width
        layer = 2.0 * self.width**2 * cells + 8.0 * self.width**2 * kept + transforms + 12.0 * self.width * cells
        return 2.0 * dense * cells + self.layers * layer + self.film.flops
