"""Policies: small functions of a query's features that write its program.

Durations are budgeted per process. A step r of primitive p lasts

    T · gain_p(x) · mass_p · share[p, r](x),

where the shares of a primitive sum to one and the masses of the primitives that advance a process of the equation sum
to one: a softmax over *exact covers*, the sets of primitives that advance every process exactly once. A primitive for a
process that the equation does not have is redundant; its mass is free between 0 and 1 and starts at one half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Array
from hycop.program import EMPTY, ProgramBatch

Budget = Literal["consistent", "gain", "literal"]
LARGEST_GAIN = 1.35
LONGEST = 18
"""K_max: steps of a policy's program at most."""


@dataclass(frozen=True)
class Inputs:
    """What a policy sees of a batch of queries: normalised features (batch, m), the grid-dependent ones that feed
    gains (batch, g), and the times (batch,)."""

    features: Array
    gains: Array
    time: Array

    @property
    def batch(self) -> int:
        return int(self.time.shape[0])

    def take(self, samples: Array | slice) -> Inputs:
        return Inputs(self.features[samples], self.gains[samples], self.time[samples])


class Policy(Protocol):
    """Writes programs; ``theta`` is one flat vector of ``size`` numbers, and zero is a sensible start."""

    @property
    def size(self) -> int: ...

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        """The programs of every member (members, size) for every query: member-major, members × batch of them."""
        ...


def exact_covers(dictionary: Dictionary, processes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Every set of primitives that advances each process of the equation once, and nothing else."""
    wanted = frozenset(processes)
    useful = [name for name in dictionary if dictionary[name].advances <= wanted]
    covers = [
        chosen
        for size in range(1, len(useful) + 1)
        for chosen in combinations(useful, size)
        if sum(len(dictionary[name].advances) for name in chosen) == len(wanted)
        and frozenset().union(*(dictionary[name].advances for name in chosen)) == wanted
    ]
    if not covers:
        missing = wanted - frozenset().union(frozenset(), *(dictionary[name].advances for name in useful))
        what = f"no primitive advances {', '.join(sorted(missing))}" if missing else "the primitives overlap"
        raise IncompatibleError(f"the dictionary cannot solve {', '.join(processes)}: {what}")
    return tuple(covers)


def redundant_primitives(dictionary: Dictionary, processes: Sequence[str]) -> tuple[str, ...]:
    """Primitives that advance only processes which the equation does not have."""
    return tuple(name for name in dictionary if not dictionary[name].advances & frozenset(processes))


@dataclass(frozen=True)
class Allotment:
    """How the query time is dealt out to primitives: gains and masses, with their parameters.

    ``covers`` hold indices of primitives, ``redundant`` likewise. Parameters: cover logits (none if there is one
    cover), a logit for each redundant primitive, and with ``budget = "gain"`` a row γ_p for each primitive in use:
    gain_p = clip(1 + γ_p·f, 0, 1.35).
    """

    names: tuple[str, ...]
    covers: tuple[tuple[int, ...], ...]
    redundant: tuple[int, ...]
    budget: Budget = "consistent"
    gain_features: int = 0

    @classmethod
    def of(cls, dictionary: Dictionary, processes: Sequence[str], budget: Budget, gain_features: int = 0) -> Allotment:
        if budget not in ("consistent", "gain", "literal"):
            raise InvalidInputError(f"budget '{budget}': consistent, gain or literal is needed")
        index = {name: op for op, name in enumerate(dictionary)}
        return cls(
            dictionary.names,
            tuple(tuple(index[name] for name in cover) for cover in exact_covers(dictionary, processes)),
            tuple(index[name] for name in redundant_primitives(dictionary, processes)),
            budget,
            gain_features if budget == "gain" else 0,
        )

    def within(self, ops: Sequence[int]) -> Allotment:
        """Only the covers that the given primitives can make."""
        covers = tuple(cover for cover in self.covers if set(cover) <= set(ops))
        redundant = tuple(op for op in self.redundant if op in set(ops))
        return Allotment(self.names, covers, redundant, self.budget, self.gain_features)

    @property
    def cover_logits(self) -> int:
        """How many parameters choose among the covers; they come first."""
        return len(self.covers) if len(self.covers) > 1 else 0

    @property
    def size(self) -> int:
        return self.cover_logits + len(self.redundant) + self.gain_features * len(self.names)

    def amounts(self, theta: Array, inputs: Inputs) -> Array:
        """Time per unit of query time that each primitive gets, (member, batch, name); literal budgets share one T."""
        members, n = theta.shape[0], len(self.names)
        mass = np.zeros((members, n))
        logits = theta[:, : self.cover_logits] if self.cover_logits else np.zeros((members, 1))
        chances = softmax(logits)
        for column, cover in enumerate(self.covers):
            mass[:, list(cover)] += chances[:, column : column + 1]
        used = self.cover_logits
        for op in self.redundant:
            mass[:, op] = expit(theta[:, used])
            used += 1
        out = np.repeat(mass[:, None, :], inputs.batch, axis=1)
        if self.gain_features:
            slopes = theta[:, used:].reshape(members, n, self.gain_features)
            gain = 1.0 + seen_by(slopes, inputs.gains)
            out = out * np.clip(gain, 0.0, LARGEST_GAIN)
        return out


def seen_by(weights: Array, features: Array) -> Array:
    """Σ_f weights[member, row, f]·features[query, f] as (member, query, row).

    Summed value by value, because a matrix product may round differently for other numbers of members: a member's
    programs must not depend on which others are written with it.
    """
    return np.add.reduce(weights[:, None, :, :] * features[None, :, None, :], axis=3)


def softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    out: Array = weights / weights.sum(axis=-1, keepdims=True)
    return out


def allotted(ops: Array, weights: Array, amounts: Array, time: Array, budget: Budget) -> Array:
    """Durations (row, slot) from weights ≥ 0: each primitive's own slots share what it got, or, literally, all slots
    share the query time."""
    if budget == "literal":
        return _dealt(time, ops != EMPTY, weights)
    durations = np.zeros_like(weights)
    for op in range(amounts.shape[1]):
        durations += _dealt(time * amounts[:, op], ops == op, weights)
    return durations


def _dealt(amount: Array, mine: Array, weights: Array) -> Array:
    """The amount (row,) shared among some slots (row, slot) by their weights, or equally if all of these vanish."""
    weights = np.where(mine, weights, 0.0)
    # a weight may underflow, but what a primitive got must not be lost
    vanished = weights.sum(axis=1, keepdims=True) < 1e-300
    weights = np.where(vanished & mine, 1.0, weights)
    return weights * amount[:, None] / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)


@dataclass(frozen=True)
class Pattern:
    """An order of primitives with the shares of a classical scheme to start from; indices into the names."""

    ops: tuple[int, ...]
    shares: tuple[float, ...]
    origin: str = ""

    def __post_init__(self) -> None:
        if len(self.ops) != len(self.shares) or min(self.shares, default=0.0) <= 0:
            raise InvalidInputError(f"pattern {self.origin}: a positive share is needed for each step")
        if len(self.ops) > LONGEST:
            raise InvalidInputError(f"pattern {self.origin}: {len(self.ops)} steps; at most {LONGEST} are allowed")

    def slots(self, op: int) -> Array:
        return np.flatnonzero(np.asarray(self.ops) == op)


@dataclass(frozen=True)
class SlotPolicy:
    """Chooses per query among operator patterns; the steps of a primitive share its time by a softmax

        share[p, ·] = softmax(log(classical share) + b_p + Σ_j φ_j(position) t_{p,j}·x),   j = 1 … ``tilts``

    with φ_j a polynomial of degree j in the position of the step among its own kind. At theta = 0 it is the classical
    scheme of the first pattern. The pattern is the one with the largest s_k·(1, x).
    """

    patterns: tuple[Pattern, ...]
    allotment: Allotment
    features: int
    tilts: int = 2

    @property
    def size(self) -> int:
        return sum(self._pattern_size(pattern) for pattern in self.patterns) + self._selector

    @property
    def _selector(self) -> int:
        return (len(self.patterns) - 1) * (1 + self.features)

    def _pattern_size(self, pattern: Pattern) -> int:
        return self.allotment.within(pattern.ops).size + sum(
            len(slots) + self.features * len(basis) for slots, basis in _shared(pattern, self.tilts)
        )

    def alone(self) -> SlotPolicy:
        """The first pattern without features: one program for all queries."""
        return replace(self, patterns=self.patterns[:1], features=0)

    def without_redundant(self, theta: Array) -> tuple[SlotPolicy, Array]:
        """The first pattern without redundant primitives, which have a step each, and what is left of its theta."""
        pattern = self.patterns[0]
        allotment = self.allotment.within(pattern.ops)
        steps = [step for step in zip(pattern.ops, pattern.shares, strict=True) if step[0] not in allotment.redundant]
        ops, shares = zip(*steps, strict=True)
        first = self._pattern_size(pattern) - allotment.size + allotment.cover_logits
        lean = replace(self, patterns=(Pattern(ops, shares, pattern.origin),))
        return lean, np.delete(theta, slice(first, first + len(allotment.redundant)))

    def parts(self) -> list[slice]:
        """Where the parameters of each pattern lie in theta; the selector's follow them."""
        ends = np.cumsum([0, *(self._pattern_size(pattern) for pattern in self.patterns)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        thetas = checked_thetas(thetas, self.size)
        members, batch = thetas.shape[0], inputs.batch
        chosen = self.choices(thetas, inputs)
        longest = max(len(pattern.ops) for pattern in self.patterns)
        ops = np.full((members, batch, longest), EMPTY)
        durations = np.zeros((members, batch, longest))
        for index, (pattern, part) in enumerate(zip(self.patterns, self.parts(), strict=True)):
            taken = chosen == index
            if taken.any():
                k = len(pattern.ops)
                ops[..., :k] = np.where(taken[..., None], np.asarray(pattern.ops), ops[..., :k])
                durations[..., :k] = np.where(
                    taken[..., None], self._durations(pattern, thetas[:, part], inputs), durations[..., :k]
                )
        return ProgramBatch(
            self.allotment.names, ops.reshape(members * batch, -1), durations.reshape(members * batch, -1)
        )

    def choices(self, thetas: Array, inputs: Inputs) -> Array:
        """The pattern of every member and query, (members, batch)."""
        members, batch = thetas.shape[0], inputs.batch
        if len(self.patterns) == 1:
            return np.zeros((members, batch), dtype=np.int64)
        rows = thetas[:, thetas.shape[1] - self._selector :].reshape(members, len(self.patterns) - 1, -1)
        seen = np.concatenate([np.ones((batch, 1)), inputs.features], axis=1)
        scores = seen_by(rows, seen)
        return np.argmax(np.concatenate([np.zeros((members, batch, 1)), scores], axis=2), axis=2)

    def _durations(self, pattern: Pattern, theta: Array, inputs: Inputs) -> Array:
        members, batch, k = theta.shape[0], inputs.batch, len(pattern.ops)
        logits = np.tile(np.log(pattern.shares), (members, batch, 1))
        used = 0
        for slots, basis in _shared(pattern, self.tilts):
            logits[..., slots] += theta[:, None, used : used + len(slots)]
            used += len(slots)
            for phi in basis:
                tilt = seen_by(theta[:, None, used : used + self.features], inputs.features)
                logits[..., slots] += tilt * phi
                used += self.features
        allotment = self.allotment.within(pattern.ops)
        amounts = allotment.amounts(theta[:, used:], inputs)
        rows = members * batch
        # against overflow, and for those that share something only: else the large logits of one primitive would make
        # all weights of another vanish
        literal = allotment.budget == "literal"
        for together in [np.arange(k)] if literal else [pattern.slots(op) for op in set(pattern.ops)]:
            logits[..., together] -= logits[..., together].max(axis=2, keepdims=True)
        return allotted(
            np.broadcast_to(np.asarray(pattern.ops), (rows, k)),
            np.exp(logits).reshape(rows, k),
            amounts.reshape(rows, -1),
            np.tile(inputs.time, members),
            allotment.budget,
        ).reshape(members, batch, k)


@lru_cache(maxsize=256)
def _shared(pattern: Pattern, tilts: int) -> list[tuple[Array, list[Array]]]:
    """For each primitive with several steps: its slots, and the position functions that features tilt."""
    out = []
    for op in dict.fromkeys(pattern.ops):
        slots = pattern.slots(op)
        if len(slots) > 1:
            out.append((slots, _polynomials(np.linspace(-1.0, 1.0, len(slots)), min(tilts, len(slots) - 1))))
    return out


def _polynomials(x: Array, highest: int) -> list[Array]:
    """xʲ less its parts in lower powers, for j = 1 … highest: orthogonal to each other over symmetric points."""
    basis = [np.ones_like(x)]
    for j in range(1, highest + 1):
        power = x**j
        # those of the other parity are orthogonal already
        basis.append(power - sum(np.mean(power * lower) / np.mean(lower**2) * lower for lower in basis[j % 2 : j : 2]))
    return basis[1:]


POSITION_SCALE = 4.0


@dataclass(frozen=True)
class PositionPolicy:
    """The paper's form: for each of ``longest`` positions, logits of the primitives and a duration softplus(a), and a
    length k between ``shortest`` and ``longest``; features shift the logits of all positions and the length.

    The operator of a position is the argmax, in training too. Durations are then budgeted as everywhere; a process
    that got no position has one step of its whole time appended. Logits, durations and length are four times theta:
    in these units the paper's σ = 0.02 and learning rate cross the distance between programs in its 200 generations.
    """

    allotment: Allotment
    features: int
    longest: int = LONGEST
    shortest: int = 2

    @property
    def _names(self) -> int:
        return len(self.allotment.names)

    @property
    def _base(self) -> int:
        return self.longest * (self._names + 1) + 1

    @property
    def size(self) -> int:
        return self._base + (self._names + 1) * self.features + self.allotment.size

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        thetas = POSITION_SCALE * checked_thetas(thetas, self.size)
        members, batch, n, k = thetas.shape[0], inputs.batch, self._names, self.longest
        logits = thetas[:, : k * n].reshape(members, 1, k, n)
        weights = np.logaddexp(0.0, thetas[:, k * n : k * (n + 1)])
        shifts = thetas[:, self._base : self._base + (n + 1) * self.features].reshape(members, n + 1, self.features)
        seen = seen_by(shifts, inputs.features[:, : self.features])
        ops = np.argmax(logits + seen[:, :, None, :n], axis=3)
        share = expit(thetas[:, None, k * (n + 1)] + seen[:, :, n])
        length = np.rint(self.shortest + (self.longest - self.shortest) * share).astype(np.int64)
        ops = np.where(np.arange(k) < length[..., None], ops, EMPTY).reshape(members * batch, k)
        rows = np.repeat(weights, batch, axis=0)
        allotment = self.allotment
        amounts = allotment.amounts(thetas[:, self._base + (n + 1) * self.features :], inputs).reshape(-1, n)
        if allotment.budget != "literal":
            ops, rows = self._completed(ops, rows, amounts)
        return ProgramBatch(
            allotment.names, ops, allotted(ops, rows, amounts, np.tile(inputs.time, members), allotment.budget)
        )

    def _completed(self, ops: Array, weights: Array, amounts: Array) -> tuple[Array, Array]:
        """Appends a slot for every primitive that has time but no position."""
        missing = np.stack([(ops != op).all(axis=1) for op in range(self._names)], axis=1) & (amounts > 0)
        missing[:, list(self.allotment.redundant)] = False
        extra = np.where(missing, np.arange(self._names), EMPTY)
        return np.concatenate([ops, extra], axis=1), np.concatenate([weights, np.ones_like(extra, dtype=float)], axis=1)


MOST_PARAMETERS = 100


def affordable_tilts(wanted: int, allotment: Allotment, features: int, steps: int) -> int:
    """As many tilts as wanted, or as leave a pattern of so many steps no more than the most parameters."""
    together = max(len(cover) for cover in allotment.covers) + len(allotment.redundant)
    room = MOST_PARAMETERS - steps - allotment.size
    return max(1, min(wanted, room // max(1, features * together)))


def checked_thetas(thetas: Array, size: int) -> Array:
    out = np.atleast_2d(np.asarray(thetas, dtype=np.float64))
    if out.ndim != 2 or out.shape[1] != size:
        raise InvalidInputError(f"theta has {out.shape[-1]} numbers: this policy needs {size}")
    if not np.isfinite(out).all():
        raise InvalidInputError("theta has a NaN or infinite entry")
    return out
