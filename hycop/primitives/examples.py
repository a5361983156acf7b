"""States and settings on which the conformance suite tries a primitive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hycop.grid import AXES, Array, Grid
from hycop.query import Channel, Setting


def scalar_example(
    seed: int, per_axis: Sequence[str], params: Mapping[str, float] | None = None, batch: int = 3
) -> tuple[Array, Setting]:
    """Smooth scalar fields in (0, 1), a few Fourier modes each, on a small anisotropic grid with uneven lengths.

    ``per_axis`` names coefficients that get a value between ½ and 1 along each axis; ``params`` the others.
    """
    rng = np.random.default_rng(seed)
    grid = Grid((12, 15), rng.uniform(0.8, 1.2, (batch, 2)), ("periodic", "periodic"))
    x, y = (centre / length.reshape(-1, 1, 1) for centre, length in zip(grid.centres(), grid.lengths.T, strict=True))
    u = np.full((batch, *grid.shape), 0.5)
    for kx, ky in ((1, 0), (0, 1), (1, 1), (2, -1)):
        phase = rng.uniform(0, 2 * np.pi, (batch, 1, 1))
        u += 0.1 * np.sin(2 * np.pi * (kx * x + ky * y) + phase)
    values = {letter + axis: rng.uniform(0.5, 1.0, batch) for letter in per_axis for axis in AXES[:2]}
    for letter in per_axis:
        if letter == "D":
            values |= {"D" + axis: 0.02 * values["D" + axis] for axis in AXES[:2]}
    fixed = {name: np.full(batch, value) for name, value in (params or {}).items()}
    return u[:, None], Setting(grid, (Channel("u"),), {**values, **fixed})
