"""The default policy: chooses among operator patterns; features tilt the durations of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Array, all_finite, changed
from hycop.kernels.shares import deal
from hycop.policy.allotment import Allotment, Inputs, seen_by
from hycop.policy.theta import Layout, carried, checked_thetas, laid_out
from hycop.program import EMPTY, ProgramBatch

LONGEST = 18
"""K_max: a policy's program has at most this many steps."""

MOST_PARAMETERS = 100


def affordable_tilts(wanted: int, allotment: Allotment, features: int, steps: int) -> int:
    """The wanted number of tilts, or fewer so that a pattern of that many steps has at most MOST_PARAMETERS."""
    together = max(len(cover) for cover in allotment.covers) + len(allotment.redundant)
    room = MOST_PARAMETERS - steps - allotment.size
    return max(1, min(wanted, room // max(1, features * together)))


@dataclass(frozen=True)
class Pattern:
    """An order of primitives, as indices into the names, with the shares of a classical scheme as start."""

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

    where φ_j is a polynomial of degree j in the position of the step among those of its primitive. At theta = 0 it is
    the classical scheme of the first pattern. The chosen pattern has the largest s_k·(1, x).
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
            len(slots) + self.features * len(basis) for _, slots, basis in _shared(pattern, self.tilts)
        )

    def alone(self) -> SlotPolicy:
        """The first pattern without features: one program for all queries."""
        return replace(self, patterns=self.patterns[:1], features=0)

    def layout(self) -> Layout:
        """For each pattern the ``shares`` and tilts of its primitives and the allotment's parameters; then the
        selector."""
        sizes: list[tuple[str, int]] = []
        for index, pattern in enumerate(self.patterns):
            for op, slots, basis in _shared(pattern, self.tilts):
                name = f"{index}.{self.allotment.names[op]}"
                sizes.append((f"{name}.shares", len(slots)))
                sizes += [(f"{name}.tilt{degree}", self.features) for degree in range(1, 1 + len(basis))]
            sizes += [(f"{index}.{name}", size) for name, size in self.allotment.within(pattern.ops).sizes()]
        return laid_out([*sizes, *((f"{row}.selector", 1 + self.features) for row in range(1, len(self.patterns)))])

    def adding(self, theta: Array, name: str, allotment: Allotment) -> tuple[SlotPolicy, Array]:
        """A primitive of a new process runs half its time at the start and half at the end of every program, as in
        Strang's splitting. A redundant one gets a step at the end. One that overlaps with others gets a further pattern
        in which it replaces them; no query chooses that pattern before training."""
        op = allotment.names.index(name)
        if all(op in cover for cover in allotment.covers):
            patterns = tuple(_around(pattern, op) for pattern in self.patterns)
        elif op in allotment.redundant:
            patterns = tuple(
                replace(pattern, ops=(*pattern.ops, op), shares=(*pattern.shares, 1.0)) for pattern in self.patterns
            )
        else:
            patterns = (*self.patterns, _in_place(self.patterns[0], op, allotment))
        policy = replace(self, patterns=patterns, allotment=allotment)
        return policy, carried(theta, self.layout(), policy.layout())

    def without(self, theta: Array, name: str, allotment: Allotment | None = None) -> tuple[SlotPolicy, Array]:
        """Removes the steps of the primitive, and the patterns that then do not cover every process."""
        gone = self.allotment.names.index(name)
        after = self.allotment if allotment is None else allotment
        place = [after.names.index(each) if each in after.names else -1 for each in self.allotment.names]
        kept: list[Pattern] = []
        names: dict[str, str] = {}
        for index, pattern in enumerate(self.patterns):
            lean = _left(pattern, gone, place)
            if lean is not None and after.within(lean.ops).covers:
                names |= {key: key.replace(f"{index}.", f"{len(kept)}.", 1) for key in self._keys(index)}
                kept.append(lean)
        if not kept:
            raise IncompatibleError(f"without '{name}' no program of this policy covers every process")
        policy = replace(self, patterns=tuple(kept), allotment=after)
        old = {names[key]: part for key, part in self.layout().items() if key in names}
        return policy, carried(theta, old, policy.layout())

    def _keys(self, index: int) -> list[str]:
        return [key for key in self.layout() if key.startswith(f"{index}.")]

    def alone_with(self, index: int, theta: Array) -> tuple[SlotPolicy, Array]:
        """Only one of the patterns, with its parameters."""
        return replace(self, patterns=(self.patterns[index],)), theta[self.parts()[index]]

    def parts(self) -> list[slice]:
        """The slice of theta of each pattern; the selector's parameters follow."""
        return list(self._parts)

    @cached_property
    def _size(self) -> int:
        return self.size

    @cached_property
    def _no_programs(self) -> ProgramBatch:
        return ProgramBatch.of([], self.allotment.names)

    @cached_property
    def _parts(self) -> list[slice]:
        ends = np.cumsum([0, *(self._pattern_size(pattern) for pattern in self.patterns)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        thetas = checked_thetas(thetas, self._size)
        members, batch = thetas.shape[0], inputs.batch
        one = len(self.patterns) == 1
        chosen = np.zeros((1, 1), dtype=np.int64) if one else self.choices(thetas, inputs)
        if one or (chosen.size and chosen.min() == chosen.max()):  # as usual: nothing to put together
            index = int(chosen[0, 0])
            once = self._durations(index, thetas[:, self._parts[index]], inputs).reshape(members * batch, -1)
            ops = np.empty(once.shape, dtype=np.int64)
            ops[:] = self._grouped[index].ops
            if all_finite(once):
                return changed(self._no_programs, ops=ops, durations=once)
            return ProgramBatch(self.allotment.names, ops, once)  # which says where it is not finite
        longest = max(len(pattern.ops) for pattern in self.patterns)
        ops = np.full((members, batch, longest), EMPTY)
        durations = np.zeros((members, batch, longest))
        for index, (pattern, part) in enumerate(zip(self.patterns, self._parts, strict=True)):
            taken = (chosen == index)[..., None]
            if taken.any():
                k = len(pattern.ops)
                np.copyto(ops[..., :k], pattern.ops, where=taken)
                np.copyto(durations[..., :k], self._durations(index, thetas[:, part], inputs), where=taken)
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
        scores = np.concatenate([np.zeros((members, batch, 1)), seen_by(rows, seen)], axis=2)
        barred = self.barred_patterns(inputs)
        if barred is not None:  # where every pattern is, the policy chooses as if none were
            scores = np.where(barred & ~barred.all(axis=1, keepdims=True), -np.inf, scores)
        return np.argmax(scores, axis=2)

    def barred_patterns(self, inputs: Inputs) -> Array | None:
        """Which patterns use a primitive outside what it was trained on, (batch, pattern)."""
        if inputs.barred is None:
            return None
        return np.stack([inputs.barred[:, list(set(pattern.ops))].any(axis=1) for pattern in self.patterns], axis=1)

    def _durations(self, index: int, theta: Array, inputs: Inputs) -> Array:
        """Durations (member, batch, slot) of one pattern; within a group of slots that share their time

        duration = T·amount·exp(l)/Σ exp(l),   l = log(classical share) + b + (Σ_j φ_j t_j)·x."""
        group = self._grouped[index]
        if group.tilts and inputs.features.shape != (inputs.batch, self.features):
            need = (inputs.batch, self.features)
            raise InvalidInputError(f"features have shape {inputs.features.shape}: {need} is needed")
        amounts = np.empty((theta.shape[0], inputs.batch, group.ops.size))
        amounts[:] = inputs.time[:, None]
        if group.divided:
            amounts *= group.allotment.amounts(theta[:, group.used :], inputs)[..., group.ops]
        deal(*self._logits(index, theta), np.ascontiguousarray(inputs.features), group.member, amounts)
        return amounts

    def _logits(self, index: int, theta: Array) -> tuple[Array, Array]:
        """What the logits of a pattern start from, (member, slot), and the tilts (member, slot, feature) by which
        features change them. Those of the last single member are kept: a model has one theta."""
        key = (index, theta.tobytes()) if len(theta) == 1 else None
        if key is not None and key in self._kept:
            return self._kept[key]
        group = self._grouped[index]
        logits = np.tile(group.logs, (len(theta), 1))
        if group.free.size:
            logits += np.where(group.shared, theta[:, group.free], 0.0)
        tilts = np.zeros((*logits.shape, self.features if group.tilts else 0))
        for phi, places in group.tilts:
            tilts += phi * theta[:, places]
        if key is not None:
            for old in [old for old in self._kept if old[0] == index]:
                del self._kept[old]
            self._kept[key] = logits, tilts
        return logits, tilts

    @cached_property
    def _kept(self) -> dict[tuple[int, bytes], tuple[Array, Array]]:
        return {}

    @cached_property
    def _grouped(self) -> list[_Grouped]:
        return [_Grouped.of(self, pattern) for pattern in self.patterns]


@dataclass(frozen=True, eq=False)
class _Grouped:
    """The slots of a pattern: their ``ops``, and ``member``, the group of each; those of a group share its time. The
    logit of a slot starts at ``logs``; where it is ``shared``, theta[free] is added; and φ·theta[places]·x for each
    (φ, places) of ``tilts``, one for each degree. Parameters of the allotment begin at ``used``; unless it is
    ``divided``, each group has all of the time."""

    ops: Array
    member: Array
    logs: Array
    shared: Array
    free: Array
    tilts: tuple[tuple[Array, Array], ...]
    allotment: Allotment
    used: int
    divided: bool

    @classmethod
    def of(cls, policy: SlotPolicy, pattern: Pattern) -> _Grouped:
        ops, k = np.asarray(pattern.ops), len(pattern.ops)
        shared, free = np.zeros(k, dtype=bool), np.zeros(k, dtype=np.int64)
        first, basis = np.zeros((policy.tilts, k), dtype=np.int64), np.zeros((policy.tilts, k))
        used = 0
        for _, slots, polynomials in _shared(pattern, policy.tilts):
            shared[slots], free[slots] = True, used + np.arange(len(slots))
            used += len(slots)
            for degree, phi in enumerate(polynomials):
                first[degree, slots], basis[degree, slots] = used, phi
                used += policy.features
        literal = policy.allotment.budget == "literal"
        allotment = policy.allotment.within(pattern.ops)
        return cls(
            ops,
            np.zeros(k, dtype=np.int64) if literal else np.unique(ops, return_inverse=True)[1],
            np.log(pattern.shares),
            shared,
            free if shared.any() else free[:0],
            tuple(
                (phi[:, None], places[:, None] + np.arange(policy.features))
                for phi, places in zip(basis, first, strict=True)
                if policy.features and phi.any()
            ),
            allotment,
            used,
            allotment.size > 0 and not literal,
        )


@lru_cache(maxsize=256)
def _shared(pattern: Pattern, tilts: int) -> list[tuple[int, Array, list[Array]]]:
    """For each primitive with several steps: its index, its slots, and the position functions that features tilt."""
    out = []
    for op in dict.fromkeys(pattern.ops):
        slots = pattern.slots(op)
        if len(slots) > 1:
            basis = _polynomials(np.linspace(-1.0, 1.0, len(slots)), min(tilts, len(slots) - 1))
            out.append((op, slots, basis))
    return out


def _polynomials(x: Array, highest: int) -> list[Array]:
    """xʲ minus its projections on lower powers, for j = 1 … highest: orthogonal on symmetric points."""
    basis = [np.ones_like(x)]
    for j in range(1, highest + 1):
        power = x**j
        # powers of the other parity are orthogonal already
        basis.append(power - sum(np.mean(power * lower) / np.mean(lower**2) * lower for lower in basis[j % 2 : j : 2]))
    return basis[1:]


def _around(pattern: Pattern, op: int) -> Pattern:
    """The pattern with half of a new primitive before it and half after it; one step after it if there is no room."""
    if len(pattern.ops) + 2 > LONGEST:
        return replace(pattern, ops=(*pattern.ops, op), shares=(*pattern.shares, 1.0))
    return replace(pattern, ops=(op, *pattern.ops, op), shares=(0.5, *pattern.shares, 0.5))


def _in_place(pattern: Pattern, op: int, allotment: Allotment) -> Pattern:
    """The pattern with a new primitive instead of those that it replaces, at the steps of the most frequent one."""
    used = set(pattern.ops)
    covers = [cover for cover in allotment.covers if op in cover and set(cover) - {op} <= used]
    if not covers:
        raise IncompatibleError(f"'{allotment.names[op]}' cannot stand for primitives that the policy uses")
    cover = max(covers, key=len)
    replaced = used - set(cover) - set(allotment.redundant)
    first = max(sorted(replaced), key=pattern.ops.count)
    steps = [
        (op if each == first else each, share)
        for each, share in zip(pattern.ops, pattern.shares, strict=True)
        if each == first or each not in replaced
    ]
    return _merged(steps, f"{pattern.origin}, with {allotment.names[op]}")


def _left(pattern: Pattern, gone: int, place: Sequence[int]) -> Pattern | None:
    """The pattern without one primitive and with new indices; None if no step is left."""
    steps = [
        (place[op], share)
        for op, share in zip(pattern.ops, pattern.shares, strict=True)
        if op != gone and place[op] >= 0
    ]
    return _merged(steps, pattern.origin) if steps else None


def _merged(steps: Sequence[tuple[int, float]], origin: str) -> Pattern:
    """A pattern from steps, with equal neighbours merged."""
    out: list[tuple[int, float]] = []
    for op, share in steps:
        if out and out[-1][0] == op:
            out[-1] = (op, out[-1][1] + share)
        else:
            out.append((op, share))
    ops, shares = zip(*out, strict=True)
    return Pattern(ops, shares, origin)
