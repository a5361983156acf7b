"""Features: the dimensionless numbers of a query that a policy sees.

None of them depends on the units of length and time, nor, but for the cell Péclet number, on the grid: statistics of
the state come from its lowest modes, freed of the smoothing by cell averages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.fft

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import AXES, Array
from hycop.primitive import mode_numbers, transforms_of
from hycop.query import Query

LOWEST = 6
"""Modes up to this number along each axis count for the statistics of a state."""

_TINY = 1e-12  # keeps logarithms of absent effects finite

Feature = Callable[[Query], Array]


def _length(axis: int, query: Query) -> Array:
    if axis >= query.grid.axes:
        raise InvalidInputError(f"there is no axis {AXES[axis]} on a grid of {query.grid.axes} axes")
    return query.grid.lengths[:, axis]


def _log(values: Array) -> Array:
    return np.log10(np.maximum(np.abs(values), _TINY))


def peclet(axis: int, query: Query) -> Array:
    """log₁₀ |c| L / D along an axis: advection against diffusion."""
    length, letter = _length(axis, query), AXES[axis]
    return _log(query.setting.param("c" + letter) * length) - _log(query.setting.param("D" + letter))


def cell_peclet(query: Query) -> Array:
    """|c| Δx / D, mean over the axes: how much an upwind flux adds to diffusion. It depends on the grid, so it feeds
    gains only."""
    c, diffusivity = query.setting.per_axis("c"), query.setting.per_axis("D")
    ratio: Array = (np.abs(c) * query.grid.spacing / np.maximum(diffusivity, _TINY)).mean(axis=1)
    return ratio


def damkohler(query: Query) -> Array:
    """log₁₀ r / Σ_i |c_i|/L_i: reaction against the crossing of the box."""
    crossings = (np.abs(query.setting.per_axis("c")) / query.grid.lengths).sum(axis=1)
    return _log(query.setting.param("r")) - _log(crossings)


def courant(axis: int, query: Query) -> Array:
    """|c| T / L: boxes crossed in the query time."""
    return np.abs(query.setting.param("c" + AXES[axis])) * query.time / _length(axis, query)


def fourier(axis: int, query: Query) -> Array:
    """log₁₀ D T / L²: how far diffusion reaches in the query time."""
    return _log(query.setting.param("D" + AXES[axis]) * query.time / _length(axis, query) ** 2)


def growth(query: Query) -> Array:
    """log₁₀ r T: e-foldings of the reaction in the query time."""
    return _log(query.setting.param("r") * query.time)


def _low_energies(query: Query) -> tuple[Array, list[Array]]:
    """Energies (batch, modes…) of the first channel's lowest modes, and per axis the squared mode numbers."""
    u = query.u0[:, 0].astype(np.float64)
    squares: list[Array] = []
    for axis, (n, transform) in enumerate(zip(query.grid.shape, transforms_of(query.grid), strict=True)):
        number = mode_numbers(query.grid, axis)
        kept = np.flatnonzero(np.abs(number) <= min(LOWEST, (n - 1) // 2))
        modes = scipy.fft.fft if transform == "fourier" else partial(scipy.fft.dct, type=2)
        u = np.take(modes(u, axis=1 + axis, norm="ortho"), kept, axis=1 + axis)
        # a cosine of number j has half the wavenumber of a Fourier mode of the same number
        wave = number[kept] if transform == "fourier" else 0.5 * number[kept]
        view = (1,) * (1 + axis) + (-1,) + (1,) * (query.grid.axes - axis - 1)
        u = u / np.sinc(wave / n).reshape(view)
        squares.append((wave**2).reshape(view))
    return np.abs(u) ** 2 / query.grid.cells, squares


def _mean_and_variance(energies: Array) -> tuple[Array, Array]:
    flat = energies.reshape(energies.shape[0], -1)
    mean = flat[:, 0]
    return np.sqrt(mean), flat[:, 1:].sum(axis=1)


def level(query: Query) -> Array:
    """Mean of the state, for states that are measured against a capacity of one."""
    out: Array = query.u0[:, 0].reshape(query.batch, -1).mean(axis=1)
    return out


def variation(query: Query) -> Array:
    """log₁₀ (1 + coefficient of variation of the state)."""
    mean, variance = _mean_and_variance(_low_energies(query)[0])
    return np.log10(1.0 + np.sqrt(variance) / np.maximum(mean, _TINY))


def gradient(axis: int, query: Query) -> Array:
    """log₁₀ (1 + (L/2π)² ⟨u_i²⟩ / var u): the mean squared wave number of the state along an axis."""
    _length(axis, query)
    energies, squares = _low_energies(query)
    _, variance = _mean_and_variance(energies)
    total = (energies * squares[axis]).reshape(query.batch, -1).sum(axis=1)
    return np.log10(1.0 + total / np.maximum(variance, _TINY))


def raw_parameter(name: str, query: Query) -> Array:
    """A physical coefficient as it stands, with its units (ablation)."""
    return query.setting.param(name)


def raw_time(query: Query) -> Array:
    """The query time as it stands (ablation)."""
    return query.time


def raw_block(index: int, query: Query) -> Array:
    """Mean of the state over one of eight slabs along the first axis (ablation)."""
    slabs = np.array_split(query.u0[:, 0], 8, axis=1)
    out: Array = slabs[index].reshape(query.batch, -1).mean(axis=1)
    return out


FEATURES: Mapping[str, Feature] = {
    **{f"peclet_{letter}": partial(peclet, axis) for axis, letter in enumerate(AXES)},
    **{f"courant_{letter}": partial(courant, axis) for axis, letter in enumerate(AXES)},
    **{f"fourier_{letter}": partial(fourier, axis) for axis, letter in enumerate(AXES)},
    **{f"gradient_{letter}": partial(gradient, axis) for axis, letter in enumerate(AXES)},
    "damkohler": damkohler,
    "growth": growth,
    "level": level,
    "variation": variation,
    "cell_peclet": cell_peclet,
    **{f"raw_{name}": partial(raw_parameter, name) for name in ("cx", "cy", "Dx", "Dy", "r")},
    "raw_time": raw_time,
    **{f"raw_block_{index}": partial(raw_block, index) for index in range(8)},
}
"""Every feature by its name, which is what a model stores."""


@dataclass(frozen=True)
class FeatureMap:
    """Named features of a query as one array.

    >>> FeatureMap(("peclet_x", "growht"))
    Traceback (most recent call last):
    hycop.errors.UnknownNameError: unknown feature 'growht': did you mean growth?
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in FEATURES:
                raise UnknownNameError("feature", name, FEATURES)

    def __call__(self, query: Query) -> Array:
        """Values (batch, feature)."""
        if not self.names:
            return np.zeros((query.batch, 0))
        return np.stack([FEATURES[name](query) for name in self.names], axis=1)


@dataclass(frozen=True)
class FeatureRange:
    """The range of each feature over the training queries: what a policy knows, and where it stops being trusted."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not np.isfinite([*self.low, *self.high]).all():
            raise InvalidInputError("feature range: as many finite lower as upper bounds are needed")

    @classmethod
    def of(cls, values: Array) -> FeatureRange:
        return cls(tuple(map(float, values.min(axis=0))), tuple(map(float, values.max(axis=0))))

    def normalised(self, values: Array) -> Array:
        """Mapped to [−1, 1] over the range, and flat beyond it; a feature that does not vary is 0."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        span = np.where(high > low, high - low, 1.0)
        centred = np.where(high > low, 2.0 * (values - low) / span - 1.0, 0.0)
        return np.clip(centred, -1.0, 1.0)

    def outside(self, values: Array) -> Array:
        """Which features of which samples lie beyond the range, (batch, feature)."""
        return (values < np.asarray(self.low)) | (values > np.asarray(self.high))


def describe(names: Sequence[str], values: Array) -> str:
    """One line for one query: 'peclet_x 1.20, growth −0.9'."""
    return ", ".join(f"{name} {float(value):.3g}" for name, value in zip(names, values, strict=True))


def clock(query: Query) -> Array:
    """Dimensionless times of a query, (batch, 3): crossings of the box Σ|c|T/L, spreads Σ D T/L², e-foldings |r|T.

    What the equation does not have is 0. They say how often the program of a shorter time must be repeated.
    """
    params, lengths = query.setting.params, query.grid.lengths
    axes = AXES[: query.grid.axes]
    zero = np.zeros(query.batch)
    crossings = sum((np.abs(params.get("c" + a, zero)) / lengths[:, i] for i, a in enumerate(axes)), zero)
    spreads = sum((np.abs(params.get("D" + a, zero)) / lengths[:, i] ** 2 for i, a in enumerate(axes)), zero)
    return np.stack([crossings, spreads, np.abs(params.get("r", zero))], axis=1) * query.time[:, None]


def available(names: Sequence[str], query: Query) -> tuple[str, ...]:
    """The features among ``names`` whose coefficients the query has."""

    def works(name: str) -> bool:
        try:
            FEATURES[name](query)
        except InvalidInputError:
            return False
        return True

    return tuple(name for name in names if works(name))
