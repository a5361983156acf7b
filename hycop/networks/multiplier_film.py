"""``multiplier-film``: a learned Fourier multiplier, linear in the state and equivariant to translations."""

from __future__ import annotations

from math import log2

import torch
from torch import Tensor, nn

from hycop.networks.module import Film, Increment, samplewise

MOST_GROWTH = 20.0
"""Largest logarithm of a multiplier: beyond it a mode would overflow in a few steps."""

REACH = 16.0
"""Modes up to about this number are told apart best."""


class MultiplierFilm(Increment):
    """û_k ↦ (exp(Σ_i n_i·m_i(k, n)) − 1) û_k with a network m of the mode numbers k, modulated by the numbers n.

    m_i are complex matrices over the channels. It knows that the process is linear and the same everywhere, not which
    process it is. Works on any grid: k are numbers of modes, and m is a smooth function of them.
    """

    def __init__(self, axes: int, channels: int, numbers: int, timed: int, width: int, layers: int, film: int) -> None:
        super().__init__()
        self.timed, self.axes, self.channels, self.width, self.layers = timed, axes, channels, width, layers
        self.lift = nn.Linear(2 * axes, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])
        self.film = Film(numbers, film, layers, width)
        self.project = nn.Linear(width, 2 * timed * channels**2)
        with torch.no_grad():  # begins close to the identity: large exponents have no gradient, or too much
            self.project.weight.mul_(0.01)
            self.project.bias.zero_()

    def exponent(self, shape: tuple[int, ...], numbers: Tensor) -> Tensor:
        """Σ_i n_i·m_i (batch, *modes, channel, channel), complex."""
        last = len(shape) - 1
        along = [
            torch.fft.rfftfreq(n, 1.0 / n) if axis == last else torch.fft.fftfreq(n, 1.0 / n)
            for axis, n in enumerate(shape)
        ]
        k = torch.stack(torch.meshgrid(*along, indexing="ij"), dim=-1).to(numbers) / REACH
        features = torch.cat([k, k**2], dim=-1)
        x = self.lift(features).expand(len(numbers), *features.shape[:-1], self.width)
        scales, shifts = self.film(numbers)
        between = (len(numbers), *(1,) * len(shape), self.width)
        for layer, hidden in enumerate(self.hidden):
            inner = scales[:, layer].reshape(between) * samplewise(hidden, x) + shifts[:, layer].reshape(between)
            x = x + nn.functional.gelu(inner)
        parts = samplewise(self.project, x).movedim(-1, 1)
        both = self.along(numbers, parts).movedim(1, -1).reshape(*x.shape[:-1], self.channels, self.channels, 2)
        return REACH * torch.view_as_complex(both.contiguous())

    def forward(self, u: Tensor, numbers: Tensor) -> Tensor:
        axes = tuple(range(2, u.ndim))
        modes = torch.fft.rfftn(u, dim=axes)
        exponent = self.exponent(tuple(u.shape[2:]), numbers)
        exponent = torch.complex(exponent.real.clamp(max=MOST_GROWTH), exponent.imag)
        if self.channels == 1:
            changed = (torch.exp(exponent[..., 0, 0]) - 1.0)[:, None] * modes
        else:
            identity = torch.eye(self.channels, dtype=exponent.dtype, device=exponent.device)
            changed = torch.einsum("b...oi,bi...->bo...", torch.linalg.matrix_exp(exponent) - identity, modes)
        return torch.fft.irfftn(changed, s=u.shape[2:], dim=axes)

    def flops(self, cells: int) -> float:
        network = self.layers * self.width**2 + self.width * (2 * self.axes + 2 * self.timed * self.channels**2)
        # one network for each of the cells / 2 modes, and one pair of transforms
        return (
            network + 5.0 * self.channels * max(1.0, log2(cells)) + 30.0 * self.channels**3
        ) * cells + self.film.flops
