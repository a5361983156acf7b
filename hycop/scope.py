"""The scope of training: ranges of features and coefficients, longest times, boundary; and which queries are
outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.features import FeatureMap, FeatureRange, Observed, dimensionless_times
from hycop.grid import Array
from hycop.pde import Equation
from hycop.policy import Inputs
from hycop.primitive import outside_of
from hycop.program import ProgramBatch, chosen
from hycop.query import Query
from hycop.schemes import Classical, Unsplit

TIME_TOLERANCE = 1e-6
"""Relative tolerance on the longest trained time: files in single precision round times."""

SAME_COEFFICIENT = 0.1
"""Largest relative difference from a coefficient that was constant in training."""


class Values(NamedTuple):
    """Raw features of a batch of queries, (batch, name): those that policies see, and those that feed gains."""

    features: Array
    gains: Array


@dataclass(frozen=True)
class View:
    """What a policy sees: its features, those that feed gains, and their trained ranges."""

    features: FeatureMap
    ranges: FeatureRange
    gain_features: FeatureMap
    gain_ranges: FeatureRange

    @classmethod
    def of(cls, features: FeatureMap, gain_features: FeatureMap, seen: Query | Observed) -> View:
        return cls(features, FeatureRange.of(features(seen)), gain_features, FeatureRange.of(gain_features(seen)))

    @classmethod
    def nothing(cls) -> View:
        return cls(FeatureMap(()), FeatureRange((), ()), FeatureMap(()), FeatureRange((), ()))

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.features.names, *self.gain_features.names)

    def values(self, seen: Query | Observed) -> Values:
        return Values(self.features(seen), self.gain_features(seen))

    def inputs(self, values: Values, time: Array, barred: Array | None = None) -> Inputs:
        """Features normalised and clipped; those of gains clipped only, because gains know their scale, and from above
        only, because a gain tends to the exact 1 with its feature to 0."""
        gains = np.minimum(values.gains, self.gain_ranges.bounds[1]) if values.gains.shape[1] else values.gains
        return Inputs(self.ranges.normalised(values.features), gains, time, barred)

    def __call__(self, query: Query, equation: Equation | None = None) -> Inputs:
        """What a policy of numerical primitives sees of queries."""
        return self.inputs(self.values(Observed(query, equation)), query.time)

    def outside(self, values: Values) -> Array:
        """Which features lie outside their trained range, (batch, name)."""
        found = self.ranges.outside(values.features)
        if not values.gains.shape[1]:
            return found
        return np.concatenate([found, ~(values.gains <= self.gain_ranges.bounds[1])], axis=1)

    def far(self, values: Values) -> Array:
        """Which queries have a feature further outside its trained range than that range is wide, (batch,)."""
        return np.asarray(self.ranges.far(values.features).any(axis=1))


def barred_primitives(dictionary: Dictionary, query: Query) -> Array | None:
    """Which primitives (batch, name) were trained on other queries than these; None if none of them was trained."""
    asked = [outside_of(primitive, query.u0, query.setting) for primitive in dictionary.values()]
    if all(outside is None for outside in asked):
        return None
    inside = np.zeros(query.batch, dtype=bool)
    return np.stack([inside if outside is None else outside for outside in asked], axis=1)


@dataclass(frozen=True)
class WithinTraining:
    """Writes the programs of a classical scheme. Where a primitive of its cover was trained on other queries, it
    composes the primitives of the first of ``covers`` without such a one, if there is one. Unsplit solvers are not made
    of trained primitives."""

    scheme: Classical
    covers: Sequence[tuple[str, ...]]

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        programs = self.scheme.programs(query, dictionary)
        if isinstance(self.scheme, Unsplit):
            return programs
        barred = barred_primitives(dictionary, query) if len(self.covers) > 1 else None
        if barred is None:
            return programs
        names = list(dictionary)
        lost: Array = np.any(barred[:, np.unique(programs.ops)], axis=1)
        for cover in self.covers:
            better = lost & ~np.any(barred[:, [names.index(name) for name in cover]], axis=1)
            if better.any():
                outer = self.scheme.outer if self.scheme.outer in cover else None
                other = replace(self.scheme, cover=cover, outer=outer).programs(query, dictionary)
                programs, lost = chosen(better, other, programs), lost & ~better
        return programs


@dataclass(frozen=True, eq=False)
class Scope:
    """What was trained, and so what a model may be trusted with.

    ``longest`` are the longest dimensionless times of training (crossings, spreads, e-foldings), ``longest_time`` the
    longest time itself where the equation's time scales were guessed. ``constants`` are coefficients that were the same
    in all of training. ``coefficients`` are ranges of the others: the trained range if no feature depends on the
    coefficient, else only its sign. The sign of a velocity is not flagged: a mirror turns it round. ``boundary`` is
    that of training, and ``untrained`` names primitives that were swapped in later.
    """

    view: View
    longest: tuple[float, ...]
    boundary: tuple[str, ...]
    longest_time: float | None = None
    constants: Mapping[str, float] = field(default_factory=dict)
    coefficients: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    untrained: tuple[str, ...] = ()
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Of the primitives that were trained with, once one of them has been swapped: so that coming back is noticed."""

    @classmethod
    def of(cls, equation: Equation, view: View, queries: Sequence[Query]) -> Scope:
        """The scope of a training run on some queries."""
        times = np.concatenate([dimensionless_times(Observed(query, equation)) for query in queries]).max(axis=0)
        longest_time = max(float(query.time.max()) for query in queries) or None
        return cls(
            view,
            tuple(times.tolist()),
            queries[0].grid.boundary,
            longest_time if equation.guessed else None,
            constant_coefficients(queries),
            coefficient_ranges(
                queries, equation, view.features if equation.features is None else FeatureMap(equation.features)
            ),
        )

    def ratio(self, seen: Observed) -> Array:
        """Query time divided by the longest trained time, (batch,): the largest ratio over all time scales."""
        equation = seen.equation
        if equation is None or equation.guessed or equation.speeds:
            return self._ratio(seen)
        return seen.once((self, "ratio"), lambda: self._ratio(seen))  # it does not depend on the state

    def _ratio(self, seen: Observed) -> Array:
        known, there = self._longest
        ratio: Array = (dimensionless_times(seen)[:, there] / known).max(axis=1, initial=0.0)
        return ratio if self.longest_time is None else np.maximum(ratio, seen.time / self.longest_time)

    def far(self, seen: Observed, values: Values) -> Array:
        """Queries (batch,) far outside training: a feature or coefficient further outside its range than that range is
        wide, or another value of a constant."""
        return self.view.far(values) | seen.once((self, "far"), lambda: self._far(seen.query))

    def _far(self, query: Query) -> Array:
        """Those with such a coefficient."""
        (low, high), given = self._bounds, self._given(query)
        width = high - low
        far = (given < low - width) | (given - high > width)
        return np.asarray(np.concatenate([self._other_constants(query), far], axis=1).any(axis=1))

    def beyond(self, seen: Observed, values: Values) -> Array:
        """Which features, constants, other coefficients and time lie outside their trained ranges, (batch, name). A
        query that is ``far`` has one that does."""
        others = seen.once((self, "beyond"), lambda: self._beyond(seen.query))
        return np.concatenate([self.view.outside(values), others], axis=1)

    def _beyond(self, query: Query) -> Array:
        """Which constants, other coefficients and time do."""
        (low, high), given = self._bounds, self._given(query)
        flags = [self._other_constants(query), (given < low) | (given > high)]
        if self.longest_time is not None:
            flags.append((query.time > self.longest_time * (1 + TIME_TOLERANCE))[:, None])
        return np.concatenate(flags, axis=1)

    def outside(self, query: Query, beyond: Array) -> dict[str, Array]:
        """Which queries (batch,) lie outside training, by the reason: a feature, a coefficient, the time, the boundary
        or a primitive. Only reasons that apply are listed. The initial state itself is always inside. ``beyond`` is
        that of the queries."""
        reasons = [f"primitive {name}" for name in self.untrained]
        if query.grid.boundary != self.boundary:
            reasons.append(f"boundary {query.grid.boundary_name}")
        if not reasons and not beyond.any():
            return {}
        later, found = query.time > 0, dict[str, Array]()
        names = (*self.view.names, *self.constants, *self.coefficients, "time")
        outside = beyond & later[:, None]
        for index in np.logical_or.reduce(outside, axis=0).nonzero()[0].tolist():
            name, own = names[index], outside[:, index]
            found[name] = found[name] | own if name in found else own  # a coefficient may have the name of a feature
        return {**found, **(dict.fromkeys(reasons, later) if reasons and later.any() else {})}

    @cached_property
    def _longest(self) -> tuple[Array, Array]:
        """The longest times that are not zero, and their indices."""
        known = np.asarray(self.longest)
        return known[known > 0], np.flatnonzero(known > 0)

    @cached_property
    def _bounds(self) -> tuple[Array, Array]:
        """Bounds of the coefficients with a range, (name,) each."""
        low, high = zip(*self.coefficients.values(), strict=True) if self.coefficients else ((), ())
        return np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)

    def _given(self, query: Query) -> Array:
        """Those coefficients of the queries, (batch, name); one that is missing counts as inside."""
        params, out = query.setting.averaged().params, np.empty((query.batch, len(self.coefficients)))
        for index, (name, (low, _)) in enumerate(self.coefficients.items()):
            out[:, index] = params.get(name, low)
        return out

    def _other_constants(self, query: Query) -> Array:
        """Which of the constants differ, (batch, name)."""
        out = np.zeros((query.batch, len(self.constants)), dtype=bool)
        for index, (name, value) in enumerate(self.constants.items()):
            given = query.setting.averaged().params.get(name, np.array(value))
            out[:, index] = np.abs(given - value) > SAME_COEFFICIENT * abs(value)
        return out


def constant_coefficients(queries: Sequence[Query]) -> dict[str, float]:
    """Coefficients that are the same in all queries."""
    means = [query.setting.averaged().params for query in queries]
    every = {name: np.concatenate([params[name] for params in means]) for name in means[0]}
    return {name: float(values[0]) for name, values in every.items() if np.ptp(values) == 0}


def coefficient_ranges(
    queries: Sequence[Query], equation: Equation, features: FeatureMap
) -> dict[str, tuple[float, float]]:
    """Ranges of the coefficients that vary: the trained range if none of the ``features`` depends on the coefficient,
    else all values of its sign, if it has only one. Signs of velocities do not count: a mirror turns them round."""
    most = float(np.finfo(np.float64).max)
    found: dict[str, tuple[float, float]] = {}
    for name in queries[0].setting.params:
        values = np.concatenate([query.setting.averaged().params[name] for query in queries])
        low, high = float(values.min()), float(values.max())
        known = equation.coefficients.get(name)
        if low == high:
            continue
        if not _seen(name, features, equation, queries[0]):
            found[name] = (low, high)
        elif (low > 0 or high < 0) and not (known is not None and known.kind == "velocity"):
            found[name] = (0.0, most) if low > 0 else (-most, 0.0)
    return found


def _seen(name: str, features: FeatureMap, equation: Equation, query: Query) -> bool:
    """Whether the features of a query change with one of its coefficients."""
    setting = query.setting
    other = replace(setting, params={**setting.params, name: 0.5 * setting.params[name]})
    here, there = (features(Observed(each, equation)) for each in (query, replace(query, setting=other)))
    return not np.array_equal(here, there, equal_nan=True)
