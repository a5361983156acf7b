"""Programs as moves: neighbouring steps that share a transform are one, and a batch of samples knows its rates."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError
from hycop.grid import Array
from hycop.kernels.convolution import convolves
from hycop.kernels.programs import CONVOLUTION, END, Moves
from hycop.kernels.spectral import evolve
from hycop.primitive import Primitive, is_reversible, transform_work, transforms_of
from hycop.program import EMPTY, ProgramBatch
from hycop.query import Query, Setting

NEVER = np.iinfo(np.int64).max


class Plan(NamedTuple):
    """Moves of every sample, neighbouring steps that run as one: ``kind[sample, k]`` indexes the engine's kinds (or is
    EMPTY); durations are (sample, k, name); ``step`` is where a name first occurs in the program, if at all."""

    kind: Array
    durations: Array
    step: Array

    def take(self, samples: Array) -> Plan:
        return Plan(self.kind[samples], self.durations[samples], self.step[samples])


class Engine:
    """A dictionary tied to the setting of one batch, with the rates of its primitives at hand.

    A kind of move is one operator, or all that share a transform: they commute, and one transform serves them all.
    """

    def __init__(self, names: Sequence[str], used: Sequence[int], dictionary: Dictionary, setting: Setting) -> None:
        self.names = tuple(names)
        self.setting = setting
        self.primitives: dict[int, Primitive] = {op: dictionary[names[op]] for op in used}
        symbols = {op: one.symbol(setting) for op, one in self.primitives.items() if hasattr(one, "symbol")}
        groups: dict[object, list[int]] = {}
        for op in used:
            groups.setdefault(symbols[op].transforms if op in symbols else op, []).append(op)
        self.kinds = tuple(tuple(ops) for ops in groups.values())
        self.kind_of = np.full(len(self.names) + 1, EMPTY)  # the last stands for EMPTY itself
        self.symbols: dict[int, tuple[tuple[str, ...], tuple[Array, ...]]] = {}
        for kind, ops in enumerate(self.kinds):
            self.kind_of[list(ops)] = kind
            if ops[0] in symbols:
                rates = zip(*(symbols[op].rates for op in ops), strict=True)
                self.symbols[kind] = symbols[ops[0]].transforms, tuple(np.stack(axis, axis=1) for axis in rates)

    @classmethod
    def of(cls, programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> Engine:
        return cls(programs.names, used_operators(programs, dictionary, setting), dictionary, setting)

    @cached_property
    def rates(self) -> tuple[Array, ...]:
        """Rates (batch, name, mode) of all operators along each axis, zero for those without a symbol."""
        grid = self.setting.grid
        out = tuple(np.zeros((grid.batch, len(self.names), n), dtype=np.complex128) for n in grid.shape)
        for kind, (_, rates) in self.symbols.items():
            for axis, rate in enumerate(rates):
                out[axis][:, list(self.kinds[kind])] = rate
        return out

    @cached_property
    def growth(self) -> Array:
        """Rates of growth (name, batch), zero for the operators that do not grow."""
        out = np.zeros((len(self.names), self.setting.batch))
        for op, primitive in self.primitives.items():
            if hasattr(primitive, "growth"):
                out[op] = primitive.growth(self.setting)
        return out

    def in_cache(self, plan: Plan) -> Moves:
        """The programs ready to run from their first move to the last; only where ``fits_cache``."""
        moves = [CONVOLUTION if kind in self.symbols else ops[0] for kind, ops in enumerate(self.kinds)]
        return Moves(np.array([*moves, END])[plan.kind], plan.durations, self.growth, self.rates)

    def of_setting(self, samples: Array | slice) -> Engine:
        """For some of the samples (or all of them several times), without their rates."""
        part = copy(self)
        part.setting, part.symbols = self.setting.take(samples), {}
        for name in ("rates", "growth"):  # those of the whole batch, if they were asked for
            part.__dict__.pop(name, None)
        return part

    def take(self, samples: Array | slice) -> Engine:
        part = self.of_setting(samples)
        part.symbols = {
            kind: (transforms, tuple(rate[samples] for rate in rates))
            for kind, (transforms, rates) in self.symbols.items()
        }
        return part

    def plan(self, programs: ProgramBatch) -> Plan:
        """Drops steps of no duration, and gathers neighbours of one kind into moves."""
        batch, steps = programs.ops.shape
        kind = np.full((batch, steps), EMPTY)
        durations = np.zeros((batch, steps, len(self.names)))
        step = np.full(durations.shape, NEVER)
        moves, last = np.zeros(batch, dtype=np.int64), np.full(batch, EMPTY)
        for k in range(steps):
            rows = np.flatnonzero(programs.durations[:, k])
            op = programs.ops[rows, k]
            now = self.kind_of[op]
            moves[rows] += now != last[rows]
            last[rows] = now
            move = moves[rows] - 1
            kind[rows, move] = now
            durations[rows, move, op] += programs.durations[rows, k]
            step[rows, move, op] = np.minimum(step[rows, move, op], k)
        longest = int(moves.max(initial=0))
        return Plan(kind[:, :longest], durations[:, :longest], step[:, :longest])

    def advance(self, u: Array, kind: int, durations: Array) -> Array:
        """One move of every sample; durations are (sample, name)."""
        ops = self.kinds[kind]
        if kind in self.symbols:
            return evolve(u, *self.symbols[kind], durations[:, list(ops)])
        out = self.primitives[ops[0]].flow(u, durations[:, ops[0]], self.setting)
        if np.shape(out) != u.shape:
            raise IncompatibleError(
                f"primitive '{self.names[ops[0]]}' returned shape {np.shape(out)} for a state of shape {u.shape}"
            )
        return out

    def work(self, u: Array, kind: int, durations: Array, used: Array) -> Array:
        """The work of the move: that of its only operator, or of one transform pair for several."""
        ops = self.kinds[kind]
        alone = used.sum(axis=1) == 1
        if len(ops) == 1 or not alone.any():
            one = self.primitives[ops[0]]
            return one.work(u, durations[:, ops[0]], self.setting) if len(ops) == 1 else transform_work(self.setting)
        total = transform_work(self.setting)
        for op in ops:
            mine = alone & used[:, op]
            if mine.any():
                total = np.where(mine, self.primitives[op].work(u, durations[:, op], self.setting), total)
        return total


def used_operators(programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> list[int]:
    """The operators that occur, if their primitives can take these steps in this setting."""
    used = [int(op) for op in np.unique(programs.ops) if op != EMPTY]
    dictionary.check_boundaries(tuple(programs.names[op] for op in used), setting.grid)
    for op in used:
        backwards = (programs.ops == op) & (programs.durations < 0)
        if backwards.any() and not is_reversible(dictionary[programs.names[op]]):
            sample, step = np.argwhere(backwards)[0]
            raise IncompatibleError(
                f"step {step + 1} of sample {sample}: duration is {programs.durations[sample, step]:.4g}, "
                f"but '{programs.names[op]}' cannot run backwards"
            )
    return used


def fits_cache(programs: ProgramBatch, dictionary: Dictionary, query: Query) -> bool:
    """Whether every step is a convolution or a growth in place, and the box small; the result is the same to the bit as
    that of moves one by one."""
    used = [dictionary[programs.names[op]] for op in np.unique(programs.ops) if op != EMPTY]
    if not convolves(query.u0.shape, transforms_of(query.grid)):
        return False
    one = query.setting.take(slice(0, 1))
    return all(
        set(primitive.symbol(one).transforms) == {"fourier"}
        if hasattr(primitive, "symbol")
        else hasattr(primitive, "growth")
        for primitive in used
    )
