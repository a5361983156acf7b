"""``local-no``: neuraloperator's Fourier neural operator with local integral and differential kernels."""

from __future__ import annotations

from math import prod
from typing import cast

import torch
import torch_harmonics  # noqa: F401  neuraloperator only prints a line where it is missing
from torch import Tensor, nn
from torch.nn.functional import conv1d, conv2d, conv3d, gelu, pad

from hycop.networks.direct import Direct
from hycop.networks.fno import mixed, spectral_flops
from hycop.networks.module import per_cell
from hycop.networks.spectral import SpectralConvolution

# after ``library``, which hides wandb from neuraloperator
# isort: split
from neuralop.layers.discrete_continuous_convolution import _precompute_convolution_filter_matrix
from neuralop.models.local_no import LocalNO

CONVOLVE = (conv1d, conv2d, conv3d)

REACH = 2
"""Radius of the local integrals in cells of the grid that a network is made for. neuraloperator's own is one cell, at
which all its basis functions vanish but for rounding."""

BASIS = (2, 4)
"""Rings and sectors of the piecewise linear basis functions of a local integral: one for each sector."""

WIDEST = 7
"""Cells along an axis beyond which a local integral is computed in Fourier space."""


class LocalNo(Direct):
    """u(T) = Q(v_L), v_0 = P(u, x, n), v_{l+1} = gelu(K_l v_l + I_l v_l + D_l v_l + W_l v_l).

    K_l are spectral convolutions, I_l integrals over a disk with a learned kernel, D_l learned differences of
    neighbouring cells, W_l acts on each cell; the last layer has no gelu. I_l is there in 2D only: in 1D and 3D this
    is a Fourier neural operator with differential kernels.

    The kernels are made for grids of ``cells`` along each axis. On others the disk keeps its radius in units of the box
    and differences are divided by the distance of cells, so that both converge as the grid is refined. Unlike
    neuraloperator's, integrals wrap around, and grids need not be square.

    Liu-Schiaffini et al.: Neural operators with localized integral and differential kernels, ICML 2024.
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
        cells: int,
        coordinates: int,
    ) -> None:
        super().__init__(axes, channels, numbers, timed, coordinates)
        self.width, self.modes, self.layers, self.cells = width, modes, layers, cells
        net = LocalNO(
            n_modes=(modes,) * axes,
            in_channels=self.inputs,
            out_channels=channels,
            hidden_channels=width,
            n_layers=layers,
            default_in_shape=(cells,) * axes,
            disco_layers=False,
            positional_embedding=None,
            conv_module=SpectralConvolution,
        )
        # its parts: the whole puts more than weights into its state
        self.lift, self.project = net.lifting, net.projection
        blocks = net.local_no_blocks
        self.spectral, self.skips = blocks.convs, blocks.local_no_skips
        self.differences = nn.ModuleList([part.conv for part in blocks.differential])  # it names its weight twice
        self.integrals = nn.ModuleList([LocalIntegral(width, cells) for _ in range(layers if axes == 2 else 0)])

    def end_state(self, u: Tensor, numbers: Tensor) -> Tensor:
        v = mixed(self.lift, self.seen(u, numbers))
        for layer, spectral in enumerate(self.spectral):
            v = spectral(v) + self.local(layer, v)
            v = gelu(v) if layer + 1 < self.layers else v
        return mixed(self.project, v)

    def local(self, layer: int, v: Tensor) -> Tensor:
        """I v + D v + W v: one convolution for all of them."""
        finer = (prod(v.shape[2:]) / self.cells**self.axes) ** (1 / self.axes)
        stencil = finer * self.differences[layer].weight
        around = tuple(range(2, v.ndim))
        alone = self.skips[layer].conv.weight.reshape(self.width, self.width, *(1,) * self.axes)
        kernel = stencil + pad(alone - stencil.sum(dim=around, keepdim=True), (1, 1) * self.axes)
        if not self.integrals:
            return _around(v, kernel, None)
        integral = cast(LocalIntegral, self.integrals[layer])
        basis = integral.basis(tuple(v.shape[2:]))
        if any(size > min(WIDEST, cells) for size, cells in zip(basis.shape[1:], v.shape[2:], strict=True)):
            return _around(v, kernel, integral.bias) + integral.by_modes(v, basis)
        wide = torch.einsum("kxy,oik->oixy", basis, integral.weight)
        return _around(v, _sum(kernel, wide), integral.bias)

    def flops(self, cells: int) -> float:
        width = self.width
        ends = 4.0 * width * (self.inputs + width) + 4.0 * width * (width + self.channels)
        stencil = 2.0 * width**2 * 3**self.axes + 15.0 * width
        if self.integrals:
            reach = REACH * (cells / self.cells**2) ** 0.5  # of cells
            inside = 4.0 * reach**2
            modes = spectral_flops(cells, 2, width, 2 * int(cells**0.5)) / cells + 2.0 * width**2 * BASIS[1]
            stencil += min(2.0 * width**2 * inside, modes) if reach > 2 else 0.0
        return ends * cells + self.layers * (spectral_flops(cells, self.axes, width, self.modes) + stencil * cells)


class LocalIntegral(nn.Module):
    """v(x) ↦ ∫ k(y − x) v(y) dy + b, k = Σ_j w_j ψ_j: matrices w_j, and basis functions ψ_j of the sectors of a disk,
    each with integral 1 on the grid."""

    def __init__(self, width: int, cells: int) -> None:
        super().__init__()
        self.radius = REACH / cells
        self.weight = nn.Parameter(torch.randn(width, width, BASIS[1]) / width**0.5)
        self.bias = nn.Parameter(torch.zeros(width))
        self.known: dict[tuple[int, ...], Tensor] = {}

    def basis(self, shape: tuple[int, ...]) -> Tensor:
        """ψ_j in units of one cell around the middle one, (function, x, y); computed once for each grid."""
        if shape not in self.known:
            self.known[shape] = _basis(shape, self.radius)
        return self.known[shape].to(self.weight)

    def by_modes(self, v: Tensor, basis: Tensor) -> Tensor:
        """The integral without its bias, Σ_j w_j (ψ̂_j* v̂): wide kernels cost less in Fourier space."""
        count, width, whole = basis.shape[0], len(self.weight), basis
        for axis, cells in enumerate(v.shape[2:], start=1):
            places = (torch.arange(whole.shape[axis]) - whole.shape[axis] // 2) % cells
            empty = whole.new_zeros(*whole.shape[:axis], cells, *whole.shape[axis + 1 :])
            whole = empty.index_add(axis, places, whole)
        modes = torch.view_as_real(torch.fft.rfft2(v))
        parts = per_cell(self.weight.permute(2, 0, 1).flatten(0, 1), None, modes)
        parts = torch.view_as_complex(parts.reshape(len(v), count, width, *modes.shape[2:]))
        total = (torch.fft.rfft2(whole).conj()[:, None] * parts).sum(dim=1)
        return torch.fft.irfft2(total, s=v.shape[2:])


def _basis(shape: tuple[int, ...], radius: float) -> Tensor:
    """The basis functions at the cells around one cell, on a grid of unit length along each axis."""
    # on its edge the functions are zero but for rounding, which their normalisation would magnify
    inside = radius * (1 - 1e-5)
    sides = [torch.arange(-int(inside * cells), int(inside * cells) + 1, device="cpu") for cells in shape]
    x, y = (side / cells for side, cells in zip(torch.meshgrid(*sides, indexing="ij"), shape, strict=True))
    near = (x**2 + y**2).sqrt() < inside
    # neuraloperator numbers the sectors along −y and −x; zeros must not be negative ones, which have another angle
    places = torch.stack([0.0 - y[near], 0.0 - x[near]])
    weights = torch.full(places.shape[1:], 1.0 / prod(shape))
    middle = torch.zeros(2, 1)
    where, values = _precompute_convolution_filter_matrix(places, middle, list(BASIS), weights, radius_cutoff=radius)
    dense = torch.zeros(BASIS[1], places.shape[1]).index_put((where[0], where[2]), values)
    out = torch.zeros(BASIS[1], *x.shape)
    out[:, near] = dense / prod(shape)
    return out


def _around(v: Tensor, kernel: Tensor, bias: Tensor | None) -> Tensor:
    """A periodic convolution; the kernel has an odd number of cells along each axis."""
    sides = [side for cells in reversed(kernel.shape[2:]) for side in 2 * (cells // 2,)]
    return CONVOLVE[v.ndim - 3](pad(v, sides, mode="circular"), kernel, bias)


def _sum(one: Tensor, other: Tensor) -> Tensor:
    """The sum of two kernels about the same middle."""
    whole = [max(sizes) for sizes in zip(one.shape, other.shape, strict=True)]
    total = torch.zeros(())
    for part in (one, other):
        sides = [(most - size) // 2 for most, size in zip(whole[:1:-1], part.shape[:1:-1], strict=True)]
        total = total + pad(part, [side for side in sides for _ in range(2)])
    return total
