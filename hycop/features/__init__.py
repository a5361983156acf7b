"""Features: the dimensionless numbers of a query that a policy sees.

None of them depends on the units of length and time, nor, but for the cell Péclet number, on the grid: statistics of
the state come from its lowest modes, freed of the smoothing by cell averages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.features import flows, raw, scalar
from hycop.features.flows import clock
from hycop.grid import AXES, Array
from hycop.query import Query

__all__ = ["FEATURES", "FeatureMap", "FeatureRange", "available", "clock", "describe"]

Feature = Callable[[Query], Array]

FEATURES: Mapping[str, Feature] = {
    **{f"peclet_{letter}": partial(scalar.peclet, axis) for axis, letter in enumerate(AXES)},
    **{f"courant_{letter}": partial(scalar.courant, axis) for axis, letter in enumerate(AXES)},
    **{f"fourier_{letter}": partial(scalar.fourier, axis) for axis, letter in enumerate(AXES)},
    **{f"gradient_{letter}": partial(scalar.gradient, axis) for axis, letter in enumerate(AXES)},
    "damkohler": scalar.damkohler,
    "growth": scalar.growth,
    "level": scalar.level,
    "variation": scalar.variation,
    "cell_peclet": scalar.cell_peclet,
    **{f"froude_{letter}": partial(flows.froude, axis) for axis, letter in enumerate(AXES[:2])},
    "wave_crossings": flows.wave_crossings,
    "reynolds": flows.reynolds,
    "steepening": flows.steepening,
    "viscous": flows.viscous,
    "mach": flows.mach,
    "sound_crossings": flows.sound_crossings,
    "sound_time": flows.sound_time,
    "pressure_variation": flows.pressure_variation,
    "unit_length": flows.unit_length,
    "unit_time": flows.unit_time,
    "unit_amplitude": flows.unit_amplitude,
    **{f"raw_{name}": partial(raw.raw_parameter, name) for name in ("cx", "cy", "Dx", "Dy", "r", "g", "nu")},
    "raw_time": raw.raw_time,
    **{f"raw_block_{index}": partial(raw.raw_block, index) for index in range(8)},
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


LEAST_WIDTH = 0.1
"""Of a range that something can lie far beyond: most features are decimal logarithms, and this is a quarter more."""


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
        """Mapped to [−1, 1] over the range, and flat beyond it; a feature that does not vary, or is no number, is 0."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        span = np.where(high > low, high - low, 1.0)
        centred = np.where((high > low) & ~np.isnan(values), 2.0 * (values - low) / span - 1.0, 0.0)
        return np.clip(centred, -1.0, 1.0)

    def outside(self, values: Array) -> Array:
        """Which features of which samples lie beyond the range, (batch, feature)."""
        return ~((values >= np.asarray(self.low)) & (values <= np.asarray(self.high)))

    def far(self, values: Array) -> Array:
        """Which lie further beyond the range than it is wide, so that nothing learned says anything about them; where
        next to nothing varied, nothing was learned to depend on it."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        width = high - low
        near = (values >= low - width) & (values <= high + width)
        return np.isnan(values) | (~near & (width > LEAST_WIDTH))


def describe(names: Sequence[str], values: Array) -> str:
    """One line for one query: 'peclet_x 1.20, growth −0.9'."""
    return ", ".join(f"{name} {float(value):.3g}" for name, value in zip(names, values, strict=True))


def available(names: Sequence[str], query: Query) -> tuple[str, ...]:
    """The features among ``names`` whose coefficients the query has."""

    def works(name: str) -> bool:
        try:
            FEATURES[name](query)
        except InvalidInputError:
            return False
        return True

    return tuple(name for name in names if works(name))
