"""Features: the dimensionless numbers of a query that a policy sees.

They do not depend on the units of length and time nor, except for the cell Péclet number, on the grid: statistics of
the state come from its lowest modes, corrected for the smoothing by cell averages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Literal, TypeAlias

import numpy as np

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.features import fields, flows, raw, scalar
from hycop.features.observed import Observed
from hycop.features.times import SPEEDS, TIMES, dimensionless_times, guessed_equation, log_time
from hycop.grid import AXES, Array
from hycop.query import Query

__all__ = [
    "FEATURES",
    "SPEEDS",
    "Feature",
    "FeatureMap",
    "FeatureRange",
    "Observed",
    "available",
    "dimensionless_times",
    "features_of_kind",
    "find_feature",
    "guessed_equation",
]


@dataclass(frozen=True)
class Feature:
    """A number of a query, (batch,). Its ``kind`` says how it is used: ``general`` ones are dimensionless and
    independent of the grid, ``time`` ones are the dimensionless times of a declared equation, ``grid`` ones feed gains,
    ``unit`` ones belong to an equation without coefficients, ``raw`` ones have units (ablation). One that does not need
    the ``state`` is kept for settings and times that come again."""

    compute: Callable[[Observed], Array]
    kind: Literal["general", "time", "grid", "unit", "raw"] = "general"
    state: bool = True

    def __call__(self, query: Query | Observed) -> Array:
        return self.compute(query if isinstance(query, Observed) else Observed(query))


def _along_axes(
    name: str, compute: Callable[[int, Observed], Array], axes: int = len(AXES), state: bool = True
) -> dict[str, Feature]:
    return {f"{name}_{AXES[axis]}": Feature(partial(compute, axis), state=state) for axis in range(axes)}


FEATURES: Mapping[str, Feature] = {
    **_along_axes("peclet", scalar.peclet, state=False),
    **_along_axes("courant", scalar.courant, state=False),
    **_along_axes("fourier", scalar.fourier, state=False),
    **_along_axes("gradient", scalar.gradient),
    "damkohler": Feature(scalar.damkohler, state=False),
    "growth": Feature(scalar.growth, state=False),
    "level": Feature(scalar.level),
    "variation": Feature(scalar.variation),
    "field_variation": Feature(fields.field_variation),
    "field_contrast": Feature(fields.field_contrast),
    "cell_peclet": Feature(scalar.cell_peclet, "grid", state=False),
    **_along_axes("froude", flows.froude, 2),
    "wave_crossings": Feature(flows.wave_crossings),
    "reynolds": Feature(flows.reynolds),
    "steepening": Feature(flows.steepening),
    "viscous": Feature(flows.viscous),
    "mach": Feature(flows.mach),
    "sound_crossings": Feature(flows.sound_crossings),
    "sound_time": Feature(flows.sound_time),
    "pressure_variation": Feature(flows.pressure_variation),
    "unit_length": Feature(flows.unit_length, "unit"),
    "unit_time": Feature(flows.unit_time, "unit"),
    "unit_amplitude": Feature(flows.unit_amplitude, "unit"),
    **{name: Feature(partial(log_time, index), "time") for index, name in enumerate(TIMES)},
    **{
        f"raw_{name}": Feature(partial(raw.raw_parameter, name), "raw")
        for name in ("cx", "cy", "Dx", "Dy", "r", "g", "nu")
    },
    "raw_time": Feature(raw.raw_time, "raw"),
    **{f"raw_block_{index}": Feature(partial(raw.raw_block, index), "raw") for index in range(8)},
}
"""Every feature by its name, which is what a model stores."""


def features_of_kind(*kinds: str) -> tuple[str, ...]:
    """The names of all features of some kinds."""
    return tuple(name for name, feature in FEATURES.items() if feature.kind in kinds)


@lru_cache(maxsize=256)
def find_feature(name: str) -> Feature:
    """A feature by its name: one of ``FEATURES``, or one of a single coefficient, as ``field_high:D``."""
    kind, _, coefficient = name.partition(":")
    if coefficient and kind in fields.OF_ONE:
        return Feature(partial(fields.OF_ONE[kind], coefficient))
    if name not in FEATURES:
        raise UnknownNameError("feature", name, [*FEATURES, *(f"{kind}:NAME" for kind in fields.OF_ONE)])
    return FEATURES[name]


Columns: TypeAlias = list[tuple[int, Feature]]


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
            find_feature(name)

    def __call__(self, query: Query | Observed) -> Array:
        """Values (batch, feature)."""
        seen = query if isinstance(query, Observed) else Observed(query)
        if not self.names:
            return np.empty((seen.batch, 0))
        without, with_state = self._columns

        def kept() -> Array:
            return _filled(np.empty((seen.batch, len(self.names))), seen, without)

        return _filled(seen.once(self, kept).copy(), seen, with_state)

    @cached_property
    def _columns(self) -> tuple[Columns, Columns]:
        """The columns of the features that do not need the state, and of those that do."""
        found = [(column, find_feature(name)) for column, name in enumerate(self.names)]
        return [each for each in found if not each[1].state], [each for each in found if each[1].state]


def _filled(out: Array, seen: Observed, columns: Columns) -> Array:
    for column, feature in columns:
        out[:, column] = feature.compute(seen)
    return out


LEAST_WIDTH = 0.1
"""A range must be wider than this for a value to lie far beyond it. Most features are decimal logarithms, so this is a
factor of 1.25."""


@dataclass(frozen=True)
class FeatureRange:
    """The range of each feature over the training queries. Outside of it answers are not trusted."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not np.isfinite([*self.low, *self.high]).all():
            raise InvalidInputError("feature range: as many finite lower as upper bounds are needed")

    @classmethod
    def of(cls, values: Array) -> FeatureRange:
        return cls(tuple(map(float, values.min(axis=0))), tuple(map(float, values.max(axis=0))))

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """``low`` and ``high`` as arrays."""
        return np.asarray(self.low), np.asarray(self.high)

    def normalised(self, values: Array) -> Array:
        """Features mapped to [−1, 1] over the range and clipped beyond it; a constant or NaN feature is 0."""
        width, constant = self._widths
        centred = 2.0 * (values - self.bounds[0]) / width - 1.0
        out: Array = np.minimum(np.maximum(centred, -1.0), 1.0)
        np.copyto(out, 0.0, where=constant | np.isnan(out))
        return out

    @cached_property
    def _widths(self) -> tuple[Array, Array]:
        """Width of each range, 1 for that of a constant, and which are constant."""
        low, high = self.bounds
        return np.where(high > low, high - low, 1.0), ~(high > low)

    def outside(self, values: Array) -> Array:
        """Which features of which samples lie beyond the range, (batch, feature)."""
        low, high = self.bounds
        return ~((values >= low) & (values <= high))

    def far(self, values: Array) -> Array:
        """Which features lie further beyond their range than it is wide. A feature that hardly varied in training
        does not count, because nothing learned depends on it. NaN is always far."""
        low, high = self.bounds
        width = high - low
        near = (values >= low - width) & (values <= high + width)
        return np.isnan(values) | (~near & (width > LEAST_WIDTH))


def available(names: Sequence[str], query: Query | Observed) -> tuple[str, ...]:
    """The features among ``names`` whose coefficients and channels the query has."""
    seen = query if isinstance(query, Observed) else Observed(query)

    def works(name: str) -> bool:
        if name.startswith("field_") and not seen.fields:
            return False
        try:
            find_feature(name).compute(seen)
        except InvalidInputError:
            return False
        return True

    return tuple(name for name in names if works(name))
