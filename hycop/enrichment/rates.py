"""What data say about a missing rate: directly from short times, and through the known flow from longer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hycop.data import Dataset
from hycop.enrichment.known import KnownFlow, mirrors_of
from hycop.grid import Array
from hycop.primitives.learned import NeuralClosure
from hycop.query import Query, Setting

if TYPE_CHECKING:
    from hycop.networks.loop import Learnable

SHORT = 0.1
"""Longest time between two states of a short-time pair, as a fraction of the longest time in the data."""


class Source(Protocol):
    """Data as they teach a rate: the states and settings that a closure is asked at, an estimate of its rate there, and
    examples for a network. ``exact`` examples do not depend on the closure itself."""

    exact: bool

    @property
    def states(self) -> Array: ...

    @property
    def setting(self) -> Setting: ...

    @property
    def estimates(self) -> Array: ...

    def examples(self, closure: NeuralClosure, learned: bool) -> Learnable: ...


def source_of(known: KnownFlow, data: Dataset, seed: int, halfway: bool = True) -> Source:
    """Short-time pairs if the data have them, else the pairs of initial and last states."""
    return ShortTimes.of(known, data, seed, halfway) if has_short_pairs(data) else EndTimes.of(known, data.at(-1), seed)


def _short(data: Dataset) -> Array:
    """Which states (sample, time − 1) follow the one before after a short time."""
    elapsed, longest = np.diff(data.times, axis=1), (data.times[:, -1] - data.times[:, 0])[:, None]
    found: Array = (elapsed > 0) & (elapsed <= SHORT * longest * (1 + 1e-9))
    return found


def has_short_pairs(data: Dataset) -> bool:
    """Whether every sample has a pair of states at a distance that is short against the last time."""
    return bool(_short(data).any(axis=1).all())


@dataclass(frozen=True, eq=False)
class ShortTimes:
    """(u(t + Δt) − known(u(t), Δt)) / Δt = K R(half-way state), up to Δt².

    That state is known(u(t), Δt/2) and half of what is missing at the end; K carries the rate from there to the end. R
    at u(t) itself without K, which is the source paper's protocol (``halfway=False``), is right up to Δt only.
    """

    states: Array
    setting: Setting
    estimates: Array
    multipliers: Array | None

    exact = True

    @classmethod
    def of(cls, known: KnownFlow, data: Dataset, seed: int, halfway: bool = True) -> ShortTimes:
        sample, frame = np.nonzero(_short(data))
        duration = data.times[sample, frame + 1] - data.times[sample, frame]
        query = Query(data.states[sample, frame].astype(np.float64), data.setting.take(sample), duration)
        reached = known.after(query, [(False, 0.5), (False, 0.5)])
        missing = data.states[sample, frame + 1] - reached[:, 1]
        rates = missing / duration.reshape((-1,) + (1,) * (missing.ndim - 1))
        if not halfway:
            return cls(query.u0, query.setting, rates, None)
        rest = Query(reached[:, 0] + 0.5 * missing, query.setting, 0.5 * duration)
        return cls(rest.u0, query.setting, rates, known.carried(rest, np.random.default_rng(seed))[:, None])

    def examples(self, closure: NeuralClosure, learned: bool) -> Learnable:
        from hycop.networks.loop import Examples  # torch is imported when it is needed
        from hycop.networks.response import Responses

        states, numbers = closure.seen(self.states, self.setting)
        unit = _units(closure)
        if self.multipliers is None:
            return Examples(states, numbers, self.estimates / unit, 1.0 / _sizes(self.states / unit))
        multipliers, sizes = self.multipliers * unit, _sizes(self.states)
        return Responses(states[:, None], numbers, multipliers, self.estimates, 1.0 / sizes, mirrors_of(self.setting))


@dataclass(frozen=True, eq=False)
class EndTimes:
    """u(T) − known(T) = Σ_j w_j K_j R(u(t_j)) to first order in R, with the states along the known flow.

    A closure that has learned so far moves the states and the end; what is then left is again of first order. K_j is
    that of the known flow alone, which changes how fast this converges, not what it converges to.
    """

    known: KnownFlow
    query: Query
    truth: Array
    multipliers: Array

    exact = False

    @classmethod
    def of(cls, known: KnownFlow, data: Dataset, seed: int) -> EndTimes:
        query = data.query
        query = replace(query, u0=query.u0.astype(np.float64))
        return cls(known, query, data.truth.astype(np.float64), known.multipliers(query, seed))

    @property
    def states(self) -> Array:
        nodes = self.known.along(self.query, None)[0]
        return nodes.reshape(-1, *nodes.shape[2:])

    @property
    def setting(self) -> Setting:
        return self.query.setting.take(np.repeat(np.arange(self.query.batch), len(self.known.times)))

    @property
    def estimates(self) -> Array:
        """The mean rate over the time, at all nodes."""
        time = self.query.time.reshape((-1,) + (1,) * (self.truth.ndim - 1))
        rates = (self.truth - self.known.along(self.query, None)[1]) / time
        return np.repeat(rates, len(self.known.times), axis=0)

    def examples(self, closure: NeuralClosure, learned: bool) -> Learnable:
        from hycop.networks.response import Responses

        nodes, end = self.known.along(self.query, closure if learned else None)
        several = nodes.shape[1]
        flat = nodes.reshape(-1, *nodes.shape[2:])
        states, numbers = closure.seen(flat, self.setting)
        unit = _units(closure)
        found = Responses(
            states.reshape(nodes.shape),
            numbers[::several],
            self.multipliers * unit,
            self.truth - end,
            1.0 / _sizes(self.truth),
            mirrors_of(self.query.setting),
        )
        if not learned:
            return found
        rates = closure.rate(flat, self.setting) / unit
        return replace(found, changes=found.changes + found.carried(rates.reshape(nodes.shape)))


def _units(closure: NeuralClosure) -> Array:
    """The units of the rates, (channel, 1, …)."""
    return np.array(list(closure.rates.values())).reshape(-1, *(1,) * closure.plan["axes"])


def _sizes(u: Array) -> Array:
    """Norms of states (batch,); a tenth of the mean where they are smaller."""
    norms = np.sqrt((u.reshape(len(u), -1) ** 2).sum(axis=1))
    floor = 0.1 * np.sqrt((norms**2).mean())
    out: Array = np.maximum(norms, floor if floor > 0 else 1.0)
    return out
