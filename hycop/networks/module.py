"""What all networks share: how they are called, FiLM, layers that act on each cell, and weights as NumPy arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hycop.errors import InvalidInputError

Array = npt.NDArray[Any]


class Increment(nn.Module, ABC):
    """The change of a state (batch, channel, *grid) in one step, told dimensionless numbers (batch, numbers).

    The first ``timed`` numbers grow with the duration; where they are zero, the change is zero to the bit.
    """

    timed: int

    def along(self, numbers: Tensor, parts: Tensor) -> Tensor:
        """Σ_i n_i·part_i over the timed numbers; parts are (batch, timed·rest, …).

        A short step changes a state by the sum of what each process does, times how long it acts. Networks that begin
        from this sum are right for ratios of the coefficients that training has not seen.
        """
        parts = parts.reshape(len(parts), self.timed, -1, *parts.shape[2:])
        # term by term: the order of a sum along an axis may depend on the place of a sample in its batch
        total = spread(numbers[:, :1], parts[:, 0]) * parts[:, 0]
        for index in range(1, self.timed):
            total = total + spread(numbers[:, index : index + 1], parts[:, index]) * parts[:, index]
        return total

    @abstractmethod
    def forward(self, u: Tensor, numbers: Tensor) -> Tensor: ...

    @abstractmethod
    def flops(self, cells: int) -> float:
        """Floating-point operations for one sample on a grid of so many cells."""


def spread(column: Tensor, like: Tensor) -> Tensor:
    """(batch, …) with axes of length one at its end, ready to broadcast to another tensor."""
    return column.reshape(*column.shape, *(1,) * (like.ndim - column.ndim))


def samplewise(layer: nn.Module, x: Tensor) -> Tensor:
    """A linear layer over the last axis of (batch, …, inputs), as one matrix product for each sample: in one product
    for all of them the last digits of a sample depend on its place in the batch."""
    assert isinstance(layer, nn.Linear)  # a list of modules forgets which they are
    weight = layer.weight.t().expand(len(x), -1, -1)
    flat = torch.bmm(x.reshape(len(x), -1, x.shape[-1]), weight)
    return flat.reshape(*x.shape[:-1], -1) + layer.bias


def per_cell(weight: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """Σ_i weight_{oi} x_i + bias_o in each cell of (batch, inputs, *grid); one matrix product for each sample, several
    times as fast as a convolution of one cell."""
    flat, each = x.flatten(2), weight.expand(len(x), -1, -1)
    flat = torch.bmm(each, flat) if bias is None else torch.baddbmm(bias.reshape(-1, 1), each, flat)
    return flat.reshape(len(x), -1, *x.shape[2:])


class PerCell(nn.Module):
    """A linear layer over channels, the same in every cell: (batch, inputs, *grid) → (batch, outputs, *grid).

    One matrix product for each sample, so that a sample does not see how many others there are.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs).uniform_(-1, 1) * sqrt(3 / inputs))
        self.bias = nn.Parameter(torch.zeros(outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        return per_cell(self.weight, self.bias, x)


class Film(nn.Module):
    """Feature-wise linear modulation: two layers turn numbers into a scale and a shift for each layer and channel."""

    def __init__(self, numbers: int, hidden: int, layers: int, width: int) -> None:
        super().__init__()
        self.layers, self.width = layers, width
        self.hidden = nn.Linear(numbers, hidden)
        self.output = nn.Linear(hidden, 2 * layers * width)

    def forward(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and shifts, each (batch, layer, width)."""
        both = samplewise(self.output, nn.functional.gelu(samplewise(self.hidden, numbers)))
        both = both.reshape(len(numbers), 2, self.layers, self.width)
        return 1.0 + both[:, 0], both[:, 1]

    @property
    def flops(self) -> float:
        return 2.0 * (self.hidden.weight.numel() + self.output.weight.numel())


def shapes_of(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the arrays that hold the weights."""
    return {name: _real(value).shape for name, value in module.state_dict().items()}


def arrays_of(module: nn.Module) -> dict[str, Array]:
    """The weights as new NumPy arrays; a complex one as pairs of real numbers."""
    return {name: _real(value).detach().cpu().numpy().copy() for name, value in module.state_dict().items()}


def set_arrays(module: nn.Module, arrays: Mapping[str, Array]) -> None:
    """Gives the module the weights that ``arrays_of`` took."""
    wanted = module.state_dict()
    check_shapes({name: np.shape(array) for name, array in arrays.items()}, shapes_of(module))
    module.load_state_dict({name: as_tensor(arrays[name], value) for name, value in wanted.items()})


def as_tensor(array: Array, like: Tensor) -> Tensor:
    """An array of ``arrays_of`` as a tensor of the type of another."""
    real = torch.from_numpy(np.array(array, dtype=np.float32))
    return torch.view_as_complex(real) if like.is_complex() else real


def check_shapes(found: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses weights that are not those of an architecture."""
    for name in sorted({*found, *wanted}):
        if name not in found:
            raise InvalidInputError(f"weights: array '{name}' is missing")
        if name not in wanted:
            raise InvalidInputError(f"weights: array '{name:.60}' does not belong to this network")
        if tuple(found[name]) != tuple(wanted[name]):
            raise InvalidInputError(
                f"weights: array '{name}' has shape {tuple(found[name])}, but the network needs {tuple(wanted[name])}"
            )


def _real(value: Tensor) -> Tensor:
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
