"""The box on which a state lives: cells, lengths and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, prod
from operator import index
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hycop.boundary import PLAIN, Boundaries, checked_boundary, kinds_of
from hycop.errors import InvalidInputError
from hycop.kernels.finite import finite, started

Array = npt.NDArray[Any]
T = TypeVar("T")
BOUNDARIES = PLAIN
AXES = ("x", "y", "z")
FEW = 8
"""Numbers that are checked one by one, which takes less time than arrays do."""

COMPILED = (np.dtype(np.float64), np.dtype(np.float32))
"""Types of numbers that compiled loops know; foreign code may return others."""


def checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers of cells; 3.7 cells are refused rather than rounded."""
    try:
        return tuple(index(n) for n in shape)
    except TypeError:
        raise InvalidInputError(
            f"grid shape {shape!r:.60}: give whole numbers of cells, one per axis, as (48, 40)"
        ) from None


def _lengths(lengths: object) -> Array:
    try:
        found = np.asarray(lengths)
    except ValueError:
        raise InvalidInputError("grid lengths are ragged: give rows of equal length") from None
    if found.dtype.kind not in "fiu":
        raise InvalidInputError(f"grid lengths have dtype {found.dtype}: give real numbers")
    return found.astype(np.float64, copy=False)


def all_finite(values: Array) -> bool:
    """Whether no value is NaN or infinite. A few are looked at one by one, which takes less time than an array does."""
    if values.size <= FEW:
        return all(map(isfinite, values.ravel().tolist()))
    if values.dtype not in COMPILED:
        return bool(np.isfinite(values).all())
    started()
    return bool(finite(np.asarray(values).reshape(-1)))


def changed(checked: T, **fields: object) -> T:
    """A copy with other fields, without the checks: for fields that come from objects that were checked before."""
    out = object.__new__(type(checked))
    out.__dict__.update(checked.__dict__, **fields)  # a tenth of the time of copy.copy and setattr
    return out


@dataclass(frozen=True, eq=False)
class Grid:
    """A batch of uniform boxes [0, L_x] × [0, L_y] × … that share their number of cells and their boundaries.

    A grid value is the average of a field over a cell; the centres are at (i + ½)·dx.
    Lengths may differ from sample to sample. Boundaries are ``periodic``, ``wall`` (impermeable: no
    flux of a scalar, mirror image of a vector), ``outflow`` (zero gradient), ``Dirichlet(value)`` or
    ``Neumann(slope)``; an axis may have a pair of them, (low end, high end).

    >>> grid = Grid.box((32, 16), lengths=(1.0, 0.5), boundary=("periodic", "wall"), batch=3)
    >>> grid.axes, grid.cells, grid.spacing[0].tolist()
    (2, 512, [0.03125, 0.03125])
    """

    shape: tuple[int, ...]
    lengths: Array
    boundary: tuple[str, ...]

    def __post_init__(self) -> None:
        shape = checked_shape(self.shape)
        if not 1 <= len(shape) <= len(AXES) or min(shape) < 1:
            raise InvalidInputError(f"grid shape {self.shape}: give one to three axes of at least one cell each")
        lengths = _lengths(self.lengths)
        if lengths.ndim != 2 or lengths.shape[1] != len(shape):
            raise InvalidInputError(
                f"grid lengths have shape {lengths.shape}: give (batch, {len(shape)}), one per sample and axis; "
                "Grid.box takes the same lengths for all samples"
            )
        if not (all_finite(lengths) and np.minimum.reduce(lengths, axis=None, initial=np.inf) > 0):
            raise InvalidInputError("grid lengths: every length must be finite and positive")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "lengths", lengths)
        object.__setattr__(self, "boundary", checked_boundary(self.boundary, len(shape)))

    @classmethod
    def box(
        cls,
        shape: Sequence[int],
        lengths: float | Sequence[float] = 1.0,
        boundary: Boundaries = "periodic",
        batch: int = 1,
    ) -> Grid:
        """The same box for every sample of a batch."""
        axes = len(checked_shape(shape))
        row = _lengths(lengths)
        if row.shape not in ((), (axes,)):
            raise InvalidInputError(
                f"grid lengths have shape {row.shape}: give one length, or one for each of {axes} axes"
            )
        if not isinstance(batch, int | np.integer) or batch < 0:
            raise InvalidInputError(f"grid batch is {batch!r:.60}: give a number of samples, at least 0")
        return cls(tuple(shape), np.broadcast_to(row, (batch, axes)), checked_boundary(boundary, axes))

    @property
    def axes(self) -> int:
        return len(self.shape)

    @property
    def batch(self) -> int:
        return int(self.lengths.shape[0])

    @property
    def boundary_name(self) -> str:
        """The boundaries as text: one name if all axes share it, else one per axis with commas."""
        return self.boundary[0] if len(set(self.boundary)) == 1 else ",".join(self.boundary)

    @property
    def boundary_kinds(self) -> frozenset[str]:
        """What a primitive must know to handle the boundaries of all axes."""
        return frozenset().union(*map(kinds_of, self.boundary))

    @property
    def cells(self) -> int:
        return prod(self.shape)

    @property
    def spacing(self) -> Array:
        """Cell widths, (batch, axis)."""
        return self.lengths / np.asarray(self.shape, dtype=np.float64)

    def centres(self) -> tuple[Array, ...]:
        """Cell centres per axis, each (batch, 1, …, n, …, 1), ready to broadcast to (batch, *shape)."""
        out = []
        for axis, n in enumerate(self.shape):
            view = [1] * self.axes
            view[axis] = n
            position = (np.arange(n) + 0.5).reshape(view)
            out.append(position * self.spacing[:, axis].reshape((-1,) + (1,) * self.axes))
        return tuple(out)

    def refined(self, factor: int) -> Grid:
        """The same boxes with ``factor`` times the cells along each axis."""
        return Grid(tuple(n * factor for n in self.shape), self.lengths, self.boundary)

    def with_boundary(self, boundary: Boundaries) -> Grid:
        return Grid(self.shape, self.lengths, checked_boundary(boundary, self.axes))

    def take(self, samples: Array | slice) -> Grid:
        """The boxes of some samples."""
        return changed(self, lengths=self.lengths[samples])


def restrict(u: Array, shape: Sequence[int]) -> Array:
    """Cell averages on a coarser grid whose cells are unions of the given ones: the mean over each block.

    >>> restrict(np.arange(4.0).reshape(1, 1, 4), (2,))
    array([[[0.5, 2.5]]])
    """
    axes = len(shape)
    fine = u.shape[u.ndim - axes :]
    if len(fine) != axes or min(shape) < 1 or any(n % m for n, m in zip(fine, shape, strict=False)):
        raise InvalidInputError(f"cannot restrict {fine} to {tuple(shape)}: each size must divide the finer one")
    blocks: list[int] = []
    for n, m in zip(fine, shape, strict=True):
        blocks += [m, n // m]
    lead = u.shape[: u.ndim - axes]
    mean_over = tuple(len(lead) + 2 * axis + 1 for axis in range(axes))
    out: Array = u.reshape(lead + tuple(blocks)).mean(axis=mean_over)
    return out


STENCIL, WIDE_STENCIL = 5, 17
"""Cells of the polynomial that prolongation fits: up to an open end, and where the boundary says what lies beyond. Wide
ones pay: where a front is two cells thick 17 cells err two thirds as much as 9, and beside a jump about as much."""

_GHOSTS = {"periodic": "wrap", "wall": "symmetric"}


@lru_cache(maxsize=16)
def _prolongation_weights(factor: int, stencil: int) -> Array:
    """Weights (part, cell): sub-cell averages from the averages of a cell and its neighbours on either side.

    The integral of the state is interpolated between the edges of the cells (Lagrange), so that the parts of a cell
    keep its average to rounding however wide the stencil is.
    """
    reach = stencil // 2
    nodes = np.arange(-reach - 0.5, reach + 1)
    at = np.linspace(-0.5, 0.5, factor + 1)
    others = ~np.eye(stencil + 1, dtype=bool)
    basis = np.stack(
        [
            np.prod((at[:, None] - nodes[keep]) / (node - nodes[keep]), axis=1)
            for node, keep in zip(nodes, others, strict=True)
        ],
        axis=1,
    )
    # the integral up to an edge is the sum of all cells before it
    beyond = np.cumsum(basis[:, :0:-1], axis=1)[:, ::-1]
    return np.asarray(factor * np.diff(beyond, axis=0))


def _continue(padded: Array) -> None:
    """Fills the two cells beyond either end with the averages of the quartic through the five nearest ones, so that
    the outer cells are divided by that quartic."""
    differences = np.array([5.0, -10.0, 10.0, -5.0, 1.0])
    for side in (padded, padded[..., ::-1]):
        for ghost in range(STENCIL // 2 - 1, -1, -1):
            side[..., ghost] = side[..., ghost + 1 : ghost + 1 + STENCIL] @ differences


def prolong(u: Array, boundary: Sequence[str], factor: int, signs: Array | None = None) -> Array:
    """Cell averages (batch, channel, *grid) on a grid ``factor`` times finer: a polynomial through 17 cells
    along each periodic or walled axis, through five along the others. It keeps every cell's average, and is of
    order 17 or five where the state is smooth.

    ``signs`` (channel, axis) holds −1 where a wall mirrors a channel with the opposite sign.

    >>> fine = prolong(np.arange(6.0).reshape(1, 1, 6), ("outflow",), 2)
    >>> bool(np.allclose(restrict(fine, (6,)), np.arange(6.0)))
    True
    """
    if u.shape[0] * u.shape[1] == 1 and u.ndim > 3:
        # einsum sums a lone field in another order, but a sample must not depend on its batch
        return prolong(np.concatenate([u, u]), boundary, factor, signs)[:1]
    for axis, kind in enumerate(boundary):
        n = u.shape[2 + axis]
        moved = np.moveaxis(u, 2 + axis, -1)
        if n < STENCIL:
            raise InvalidInputError(f"refinement needs at least {STENCIL} cells along {AXES[axis]}, there are {n}")
        stencil = WIDE_STENCIL if kind in _GHOSTS else STENCIL
        reach = stencil // 2
        padded = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(reach, reach)], mode=_GHOSTS.get(kind, "empty"))  # type: ignore[call-overload]
        if kind not in _GHOSTS:
            _continue(padded)
        if kind == "wall" and signs is not None:
            sign = signs[:, axis].reshape((1, -1) + (1,) * (moved.ndim - 2))
            padded[..., :reach] *= sign
            padded[..., -reach:] *= sign
        windows = np.lib.stride_tricks.sliding_window_view(padded, stencil, axis=-1)
        fine = np.einsum("...nw,fw->...nf", windows, _prolongation_weights(factor, stencil))
        u = np.moveaxis(fine.reshape(*moved.shape[:-1], n * factor), -1, 2 + axis)
    return np.ascontiguousarray(u)


LEAST_FRACTION = 0.1
"""Positivity limiter: sub-cells keep at least this fraction of the cell average."""


def of_one_sign(fine: Array, u: Array, factor: int) -> Array:
    """Positivity limiter (Zhang & Shu) for channels that have one sign in the whole sample, such as a depth: where a
    sub-cell would be zero or of the other sign, all channels of its cell move towards their averages by the same
    factor, so that velocities stay bounded."""
    cells, parts = tuple(range(2, u.ndim)), tuple(range(3, 2 * u.ndim - 1, 2))
    negative = (u <= 0).all(axis=cells, keepdims=True)
    one_sign = negative | (u >= 0).all(axis=cells, keepdims=True)
    if not one_sign.any():
        return fine
    blocks = fine.reshape(*u.shape[:2], *(part for n in u.shape[2:] for part in (n, factor)))
    average = np.where(negative, -u, u)
    lowest = np.where(negative, -blocks.max(axis=parts), blocks.min(axis=parts))
    wrong = one_sign & (lowest <= 0) & (lowest < average)
    if not wrong.any():
        return fine
    depth = np.where(wrong, average - lowest, 1.0)
    pull = np.where(wrong, (1 - LEAST_FRACTION) * average / depth, 1.0).min(axis=1, keepdims=True)
    spread = (*u.shape[:2], *(part for n in u.shape[2:] for part in (n, 1)))
    mean, kept = u.reshape(spread), np.broadcast_to(pull, u.shape).reshape(spread)
    return np.where(kept < 1.0, mean + kept * (blocks - mean), blocks).reshape(fine.shape)


def within_neighbours(fine: Array, coarse: Array, boundary: Sequence[str], factor: int) -> Array:
    """Limits the parts (batch, *fine) of cells (batch, *grid) to the range of a cell and its neighbours along the axes,
    by moving them towards the average of their cell: a field that jumps stays as it is on either side."""
    low, high = coarse, coarse
    for axis, kind in enumerate(boundary, 1):
        pads = [(1, 1) if each == axis else (0, 0) for each in range(coarse.ndim)]
        # beyond an end a straight line is continued
        ends: Any = {"mode": "wrap"} if kind == "periodic" else {"mode": "reflect", "reflect_type": "odd"}
        wide = np.pad(coarse, pads, **ends)
        around = [np.take(wide, np.arange(coarse.shape[axis]) + shift, axis=axis) for shift in (0, 2)]
        low, high = np.minimum.reduce([low, *around]), np.maximum.reduce([high, *around])
    parts = tuple(range(2, 2 * coarse.ndim - 1, 2))
    blocks = fine.reshape(coarse.shape[0], *(part for n in coarse.shape[1:] for part in (n, factor)))
    over, under = blocks.max(axis=parts) - coarse, coarse - blocks.min(axis=parts)
    room = [(high - coarse, over), (coarse - low, under)]
    pull = np.minimum.reduce([np.where(far > near, near / np.where(far > 0, far, 1.0), 1.0) for near, far in room])
    mean, kept = (np.expand_dims(each, parts) for each in (coarse, pull))
    return (mean + kept * (blocks - mean)).reshape(fine.shape)
