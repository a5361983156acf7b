"""What a trained surrogate is: a dictionary, a policy with its theta, and all that decides its programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import InvalidSampleError
from hycop.execution import Outcome, measure
from hycop.features import FeatureMap, FeatureRange, clock
from hycop.grid import AXES, Array
from hycop.policy import Policy, SlotPolicy
from hycop.program import EMPTY, ProgramBatch
from hycop.query import Channel, Query
from hycop.training import Gate, TrainingConfig, View

MOST_REPEATS = 1024
"""How often a program is repeated at most."""

NO_LONGER = 1e-6
"""Of the longest trained time, by how much more a time may be: files in single precision round it."""

SAME = 0.1
"""By what share a coefficient may differ from that of all of training."""

VELOCITIES = tuple(f"c{letter}" for letter in AXES)

MOST_FINER = 64
"""How many times as often as its length asks for."""


@dataclass(frozen=True)
class Equation:
    name: str
    processes: tuple[str, ...]
    channels: tuple[Channel, ...]


@dataclass(frozen=True, eq=False)
class Model:
    """All that a trained surrogate is, as immutable data; a model folder holds exactly this."""

    problem: str
    processes: tuple[str, ...]
    channels: tuple[Channel, ...]
    lengths: tuple[float, ...]
    boundary: tuple[str, ...]
    dictionary: Dictionary
    policy: Policy
    theta: Array
    view: View
    longest: tuple[float, ...]
    gate: Gate
    config: TrainingConfig
    seed: int
    data_hash: str
    metrics: Mapping[str, float]
    refinement: int = 1
    finer: int = 1
    static_theta: Array | None = None
    constants: Mapping[str, float] = field(default_factory=dict)
    """Coefficients that were the same in all of training."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """What no feature tells about the others: the signs of those that had one, and of an equation that is not among the
    problems the least and the greatest."""
    longest_time: float | None = None
    """Of an equation that is not among the problems, whose own unit of time is not known."""
    changes: tuple[str, ...] = ()
    """What was swapped since training, a line for each."""
    untrained: tuple[str, ...] = ()
    """Names of primitives that were not there when it was trained."""
    trained_boundary: tuple[str, ...] | None = None
    """The boundary of training, if ``boundary`` is another one."""

    @property
    def equation(self) -> Equation:
        return Equation(self.problem, self.processes, self.channels)

    def programs(self, query: Query, dictionary: Dictionary | None = None) -> ProgramBatch:
        """A program per query: the policy's, or the classical one where the gate has decided so; for times beyond the
        training's either is repeated, or the classical one follows the policy's."""
        dictionary = self.dictionary if dictionary is None else dictionary
        repeats = self.repeats(query)
        part = Query(query.u0, query.setting, query.time / repeats)
        once = self.gate.scheme.programs(part, dictionary)
        classical = _repeated(once, repeats)
        if not self.gate.kept:
            return classical
        learned = self.policy.programs(self.theta[None], self.view(part)).repeated(self.config.repeats)
        if self.gate.classical_when_repeated:  # for the time beyond that of training
            learned = _repeated(learned, np.full_like(repeats, self.finer))
            learned = _followed(learned, _repeated(once, repeats - self.finer))
        else:
            learned = _repeated(learned, repeats)
        outside = np.zeros(query.batch, dtype=bool)
        if self.gate.classical_when_clipped:
            outside |= self.untrusted(query).any(axis=1)
        if self.gate.classical_when_far:
            outside |= self.view.far(part) | self._foreign(query)
        return _chosen(outside, classical, learned) if outside.any() else learned

    def _foreign(self, query: Query) -> Array:
        """Queries with another coefficient where all of training had the same one, or with one far from all others."""
        out: Array = np.asarray(self._other_constants(query).any(axis=1))
        for name, (low, high) in self.ranges.items():
            width, values = high - low, query.setting.params.get(name, np.array(low))
            out |= (values < low - width) | (values - high > width)
        return out

    def _other_constants(self, query: Query) -> Array:
        """Which of the constants are others, (batch, name)."""
        out = np.zeros((query.batch, len(self.constants)), dtype=bool)
        for index, (name, value) in enumerate(self.constants.items()):
            out[:, index] = np.abs(query.setting.params.get(name, value) - value) > SAME * abs(value)
        return out

    @property
    def held_out_error(self) -> float:
        """That of the programs it writes: the learned ones, or the classical ones if the gate has decided so."""
        return self.gate.learned_error if self.gate.kept else self.gate.classical_error

    def repeats(self, query: Query) -> Array:
        """How often the program of a shorter time is repeated: so that no step is longer than trained, and ``finer``
        times that."""
        known = np.asarray(self.longest)
        ratio = np.where(known > 0, clock(query) / np.where(known > 0, known, 1.0), 0.0).max(axis=1)
        if self.longest_time is not None:
            ratio = np.maximum(ratio, query.time / self.longest_time)
        repeats = np.maximum(1.0, np.ceil(ratio - NO_LONGER)) * self.finer
        if not (repeats <= MOST_REPEATS).all():
            worst = int(np.argmax(np.nan_to_num(repeats, nan=np.inf)))
            raise InvalidSampleError(
                worst,
                f": time {query.time[worst]:g} is {ratio[worst]:.3g} times the longest trained; programs "
                f"{f'that are {self.finer} times as fine ' if self.finer > 1 else ''}are repeated at most "
                f"{MOST_REPEATS // self.finer} times: ask for a shorter time",
            )
        return repeats.astype(np.int64)

    def untrusted(self, query: Query) -> Array:
        """Which of the view's names of which queries lie outside the trained range, (batch, name)."""
        return self.view.outside(query)

    def doubts(self, query: Query) -> dict[str, Array]:
        """Which queries lie outside of what was trained, by the name of the feature or coefficient, or in time."""
        asked = [*zip(self.view.names, self.untrusted(query).T, strict=True)]
        asked += zip(self.constants, self._other_constants(query).T, strict=True)
        for name, (low, high) in self.ranges.items():
            values = query.setting.params.get(name, np.full(query.batch, low))
            asked.append((name, (values < low) | (values > high)))
        if self.longest_time is not None:
            asked.append(("time", query.time > self.longest_time * (1 + NO_LONGER)))
        found: dict[str, Array] = {}
        for name, outside in asked:  # a coefficient may be called as a feature is
            found[name] = found.get(name, np.zeros(query.batch, dtype=bool)) | outside
        return found

    def static(self) -> Model | None:
        """The ablation that was learned beside it: the first pattern, one program for all queries."""
        if self.static_theta is None or not isinstance(self.policy, SlotPolicy):
            return None
        nothing = View(FeatureMap(()), FeatureRange((), ()), self.view.gain_features, self.view.gain_ranges)
        return replace(
            self,
            policy=self.policy.alone(),
            theta=self.static_theta,
            view=nothing,
            gate=self.gate.opened(),
            static_theta=None,
        )

    def measure(self, query: Query, dictionary: Dictionary | None = None) -> Outcome:
        """The states at the query times, and the work they took."""
        dictionary = self.dictionary if dictionary is None else dictionary
        return measure(self.programs(query, dictionary), dictionary, query, refinement=self.refinement)


def constant_coefficients(queries: Sequence[Query]) -> dict[str, float]:
    """Coefficients that are the same in all queries."""
    every = {
        name: np.concatenate([query.setting.params[name] for query in queries]) for name in queries[0].setting.params
    }
    return {name: float(values[0]) for name, values in every.items() if np.ptp(values) == 0}


def coefficient_ranges(queries: Sequence[Query], features: FeatureMap | None) -> dict[str, tuple[float, float]]:
    """Of coefficients that differ from query to query: all of what was trained if none of the ``features`` knows them,
    else, where they all have the same sign, all of that sign (but for velocities: a mirror turns them round)."""
    most = float(np.finfo(np.float64).max)
    found: dict[str, tuple[float, float]] = {}
    for name in queries[0].setting.params:
        values = np.concatenate([query.setting.params[name] for query in queries])
        low, high = float(values.min()), float(values.max())
        if low == high:
            continue
        if features is not None and not _seen(name, features, queries[0]):
            found[name] = (low, high)
        elif (low > 0 or high < 0) and name not in VELOCITIES:
            found[name] = (0.0, most) if low > 0 else (-most, 0.0)
    return found


def _seen(name: str, features: FeatureMap, query: Query) -> bool:
    """Whether the features of a query change with one of its coefficients."""
    setting = query.setting
    other = replace(setting, params={**setting.params, name: 0.5 * setting.params[name]})
    return not np.array_equal(features(query), features(replace(query, setting=other)), equal_nan=True)


def _repeated(once: ProgramBatch, repeats: Array) -> ProgramBatch:
    """Each program as it stands, as often as its entry (batch,) says."""
    longest = int(repeats.max(initial=1))
    ops, durations = np.tile(once.ops, longest), np.tile(once.durations, longest)
    copy = np.repeat(np.arange(longest), once.ops.shape[1])
    return ProgramBatch(once.names, np.where(copy < repeats[:, None], ops, EMPTY), durations)


def _followed(first: ProgramBatch, then: ProgramBatch) -> ProgramBatch:
    """Programs of one batch, and after them those of the other."""
    ops, durations = np.hstack([first.ops, then.ops]), np.hstack([first.durations, then.durations])
    return ProgramBatch(first.names, ops, durations)


def _chosen(first: Array, a: ProgramBatch, b: ProgramBatch) -> ProgramBatch:
    """Program of a where ``first``, else of b."""
    longest = max(a.ops.shape[1], b.ops.shape[1])

    def padded(batch: ProgramBatch) -> tuple[Array, Array]:
        extra = ((0, 0), (0, longest - batch.ops.shape[1]))
        return np.pad(batch.ops, extra, constant_values=EMPTY), np.pad(batch.durations, extra)

    (ops_a, tau_a), (ops_b, tau_b) = padded(a), padded(b)
    return ProgramBatch(a.names, np.where(first[:, None], ops_a, ops_b), np.where(first[:, None], tau_a, tau_b))
