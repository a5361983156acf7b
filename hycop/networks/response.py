"""End states as examples of a rate: how they answer to a network along trajectories of a known flow.

    u(T) ≈ known(T) + Σ_j w_j K_j R(u(t_j))

R is the network's rate at the states of a few times t_j with weights w_j. K_j carries a small change from t_j to T: a
matrix over the channels for each mode of the box, with its mirror images where it is not periodic. It is exact for
flows that are linear and the same everywhere, and the mean over the box for others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from hycop.networks.loop import weighted_norm
from hycop.networks.module import Array, Increment


@dataclass(frozen=True, eq=False)
class Responses:
    """Samples with ``states`` (sample, node, channel, *grid) as the network sees them, its dimensionless ``numbers``
    (sample, number), ``multipliers`` w_j K_j (sample, node, channel, channel, *mode), the ``changes`` (sample, channel,
    *grid) that the rates have to bring about at the end, and the weight (sample,) of each.

    ``mirrors`` (channel, axis) is 0 along periodic axes, and elsewhere the sign of the mirror image of a channel.
    """

    states: Array
    numbers: Array
    multipliers: Array
    changes: Array
    weights: Array
    mirrors: Array

    def take(self, samples: Array) -> Responses:
        names = ("states", "numbers", "multipliers", "changes", "weights")
        return replace(self, **{name: getattr(self, name)[samples] for name in names})

    def errors(self, module: Increment) -> Tensor:
        """Relative L2 error of the end states, (sample,)."""
        count, nodes = self.states.shape[:2]
        states = torch.from_numpy(np.ascontiguousarray(self.states, np.float32)).flatten(0, 1)
        numbers = torch.from_numpy(np.repeat(self.numbers, nodes, axis=0).astype(np.float32))
        rates = module(states, numbers).reshape(count, nodes, *states.shape[1:])
        changes = torch.from_numpy(np.ascontiguousarray(self.changes, np.float32))
        weights = torch.from_numpy(np.ascontiguousarray(self.weights, np.float32))
        return weighted_norm(self._carried(rates) - changes, weights)

    def carried(self, rates: Array) -> Array:
        """The changes that rates (sample, node, channel, *grid) in the units of the network bring about."""
        with torch.inference_mode():
            out: Array = self._carried(torch.from_numpy(np.ascontiguousarray(rates, np.float32))).numpy()
        return out.astype(np.float64)

    def _carried(self, rates: Tensor) -> Tensor:
        """Σ_j w_j K_j R_j, (sample, channel, *grid)."""
        shape, whole = rates.shape[3:], rates
        for axis, signs in enumerate(self.mirrors.T):
            if signs.any():
                sign = torch.from_numpy(signs.astype(np.float32)).reshape(-1, *(1,) * len(shape))
                whole = torch.cat([whole, sign * whole.flip(3 + axis)], dim=3 + axis)
        axes = tuple(range(3, whole.ndim))
        modes = torch.fft.rfftn(whole, dim=axes)
        multipliers = torch.from_numpy(self.multipliers.astype(np.complex64))
        total = torch.einsum("bnoi...,bni...->bo...", multipliers, modes)
        out = torch.fft.irfftn(total, s=whole.shape[3:], dim=tuple(range(2, total.ndim)))
        inside: tuple[slice, ...] = (slice(None), slice(None), *(slice(0, cells) for cells in shape))
        return out[inside]
