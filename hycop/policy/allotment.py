"""Divides the query time among the steps of a program: exact covers, masses, gains and shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from scipy.special import expit

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Array
from hycop.kernels.shares import divide
from hycop.program import EMPTY

Budget = Literal["consistent", "gain", "literal"]
LARGEST_GAIN = 1.35


@dataclass(frozen=True)
class Inputs:
    """What a policy sees of a batch of queries: normalised features (batch, m), the grid-dependent ones that feed
    gains (batch, g), the times (batch,), and which primitives are ``barred`` (batch, name) because the query lies
    outside what they were trained on (None if none of them was trained)."""

    features: Array
    gains: Array
    time: Array
    barred: Array | None = None

    @property
    def batch(self) -> int:
        return int(self.time.shape[0])

    def take(self, samples: Array | slice) -> Inputs:
        barred = None if self.barred is None else self.barred[samples]
        return Inputs(self.features[samples], self.gains[samples], self.time[samples], barred)


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
    """Divides the query time among primitives: gains and masses, with their parameters.

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
        """The allotment with only those covers that consist of the given primitives."""
        covers = tuple(cover for cover in self.covers if set(cover) <= set(ops))
        redundant = tuple(op for op in self.redundant if op in set(ops))
        return Allotment(self.names, covers, redundant, self.budget, self.gain_features)

    @property
    def cover_logits(self) -> int:
        """Number of parameters that choose among the covers; they come first."""
        return len(self.covers) if len(self.covers) > 1 else 0

    @property
    def size(self) -> int:
        return self.cover_logits + len(self.redundant) + self.gain_features * len(self.names)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Names and numbers of the parameters, in their order."""
        yield "covers", self.cover_logits
        for op in self.redundant:
            yield f"{self.names[op]}.mass", 1
        for name in self.names:
            yield f"{name}.gain", self.gain_features

    def amounts(self, theta: Array, inputs: Inputs) -> Array:
        """Fraction of the query time that each primitive gets, (member, batch, name)."""
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

    Summed value by value: a matrix product may round differently for another number of members, and a member's
    programs must not depend on the others.
    """
    return np.add.reduce(weights[:, None, :, :] * features[None, :, None, :], axis=3)


def softmax(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    out: Array = weights / weights.sum(axis=-1, keepdims=True)
    return out


def allotted(ops: Array, weights: Array, amounts: Array, time: Array, budget: Budget) -> Array:
    """Durations (row, slot) from weights ≥ 0. The slots of a primitive share its time; with the literal budget all
    slots share the query time."""
    if budget == "literal":
        return divide(np.where(ops == EMPTY, EMPTY, 0), weights, time[:, None])
    return divide(ops, weights, time[:, None] * amounts)
