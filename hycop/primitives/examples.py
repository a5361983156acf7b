"""States and settings on which the conformance suite tries a primitive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from hycop.channels import water_channels
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


def _waves(rng: np.random.Generator, grid: Grid, modes: Sequence[tuple[int, ...]], size: float) -> Array:
    """A sum of a few Fourier modes with random phases, (batch, *grid), each of the given amplitude."""
    turns = [
        x / length.reshape((-1,) + (1,) * grid.axes) for x, length in zip(grid.centres(), grid.lengths.T, strict=True)
    ]
    out = np.zeros((grid.batch, *grid.shape))
    for mode in modes:
        phase = rng.uniform(0, 2 * np.pi, (grid.batch,) + (1,) * grid.axes)
        out += size * np.sin(2 * np.pi * sum(k * x for k, x in zip(mode, turns, strict=True)) + phase)
    return out


def varied(u: Array, setting: Setting) -> tuple[Array, Setting]:
    """An example with coefficients that vary in space by a quarter of their size, each in a few Fourier modes."""
    rng = np.random.default_rng(0)
    modes = ((1, 0), (0, 1), (1, -1))
    params = {
        name: setting.field(name) * (1.0 + _waves(rng, setting.grid, modes, 0.08)) for name in sorted(setting.params)
    }
    return u, Setting(setting.grid, setting.channels, params)


def line_example(seed: int, length: float = 1.0, batch: int = 3) -> tuple[Array, Setting]:
    """Smooth scalar fields in (0, 1), a few Fourier modes each, on lines of about the given length."""
    rng = np.random.default_rng(seed)
    grid = Grid((27,), length * rng.uniform(0.8, 1.2, (batch, 1)), ("periodic",))
    u = 0.5 + _waves(rng, grid, ((1,),), 0.2) + _waves(rng, grid, ((2,),), 0.02)
    return u[:, None], Setting(grid, (Channel("u"),), {})


def shallow_water_example(seed: int, batch: int = 3) -> tuple[Array, Setting]:
    """Smooth waves on water about one deep, Froude numbers about a quarter, on a small anisotropic grid."""
    rng = np.random.default_rng(seed)
    grid = Grid((9, 8), rng.uniform(8.0, 12.0, (batch, 2)), ("periodic", "periodic"))
    depth = 1.0 + _waves(rng, grid, ((1, 0), (0, 1), (1, 1)), 0.08)
    momentum = [level + _waves(rng, grid, ((1, 0), (0, 1), (1, -1)), 0.15) for level in (0.6, -0.6)]
    return np.stack([depth, *momentum], axis=1), Setting(grid, water_channels(2), {"g": rng.uniform(9.0, 11.0, batch)})


def with_bed(u: Array, setting: Setting) -> tuple[Array, Setting]:
    """An example of shallow water over a smooth bed ``b``."""
    bed = _waves(np.random.default_rng(0), setting.grid, ((1, 0), (0, 1)), 0.1)
    return u, Setting(setting.grid, setting.channels, {**setting.params, "b": bed})
