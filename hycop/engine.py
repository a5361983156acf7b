"""Turns programs into moves: neighbouring steps that share a transform become one. Computes each symbol once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, SampleError
from hycop.grid import Array, changed
from hycop.kernels.convolution import convolves, of_axes
from hycop.kernels.moves import group
from hycop.kernels.programs import CONVOLUTION, END, Moves
from hycop.kernels.spectral import evolve
from hycop.primitive import (
    Content,
    Primitive,
    Symbol,
    boundaries_of,
    checked_cells,
    has_fixed_steps,
    is_reversible,
    may_be_kept,
    transform_work,
    transforms_of,
)
from hycop.program import EMPTY, ProgramBatch
from hycop.query import FieldError, Query, Setting

NEVER = np.iinfo(np.int64).max

ENGINES = 16
"""How many engines are kept for settings that come again, 20 MB in all at most."""


class Plan(NamedTuple):
    """The moves of every sample; a move is a group of neighbouring steps that run as one. ``kind[sample, k]`` indexes
    the engine's kinds (or is EMPTY), durations are (sample, k, name), ``step`` is where a name first occurs (or
    NEVER)."""

    kind: Array
    durations: Array
    step: Array
    alike: bool
    """Whether all samples have the same steps."""

    def take(self, samples: Array) -> Plan:
        return Plan(self.kind[samples], self.durations[samples], self.step[samples], self.alike)

    def order(self) -> Array:
        """Sorts samples so that those that move together are neighbours, for two alternating kinds of moves: late
        starters by increasing length, then early ones by decreasing length."""
        length = (self.kind != EMPTY).sum(axis=1)
        early = self.kind[:, 0] == np.bincount(self.kind[:, 0] + 1).argmax() - 1
        return np.lexsort((np.where(early, -length, length), early))


class _Pattern(NamedTuple):
    """Of a program: kind and step of its plan, the move of each of its steps, and whether no two steps of a move have
    the same operator."""

    kind: Array
    step: Array
    moves: Array
    distinct: bool


class Engine:
    """A dictionary tied to the setting of one batch; every symbol is computed once, here.

    A kind of move is one operator, or all operators of one transform: they commute and share a transform pair. Steps of
    an operator that stands ``alone`` are not merged.
    """

    def __init__(self, names: tuple[str, ...], used: Mapping[int, Primitive], setting: Setting) -> None:
        """For a setting that was met before, ``Engine.tied`` saves the time."""
        self.names = names
        self.setting = setting
        self.primitives = used
        self.symbols: dict[int, Symbol] = {}
        self._patterns: dict[tuple[int, ...], _Pattern] = {}
        for op, primitive in used.items():
            if hasattr(primitive, "symbol"):
                try:
                    self.symbols[op] = primitive.symbol(setting)
                except FieldError as error:
                    raise self._named(op, error) from None
        groups: dict[object, list[int]] = {}
        for op in used:
            groups.setdefault(self.symbols[op].transforms if op in self.symbols else op, []).append(op)
        self.kinds = tuple(tuple(ops) for ops in groups.values())
        self.kind_of = np.full(len(self.names) + 1, EMPTY)  # the last stands for EMPTY itself
        for kind, ops in enumerate(self.kinds):
            self.kind_of[list(ops)] = kind
        self.alone = np.array([op in used and has_fixed_steps(used[op]) for op in range(len(names))], dtype=bool)

    @classmethod
    def of(cls, programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> Engine:
        return cls.tied(programs.names, used_primitives(programs, dictionary, setting), setting)

    @classmethod
    def tied(cls, names: tuple[str, ...], used: Mapping[int, Primitive], setting: Setting) -> Engine:
        """The engine of these primitives in this setting, one that was made before if there is one."""
        if not may_be_kept(tuple(used.values()), setting):
            return cls(names, used, setting)
        return _kept(names, tuple(used.items()), Content(setting))

    def _named(self, op: int, error: FieldError) -> IncompatibleError:
        """The error, with the primitive that cannot use a coefficient that varies in space."""
        return IncompatibleError(
            f"primitive '{self.names[op]}' ({type(self.primitives[op]).__name__}): {error}; swap in one that can use a "
            "field, as MusclAdvection or VariableDiffusion"
        )

    @cached_property
    def stacked(self) -> dict[int, tuple[tuple[str, ...], tuple[Array, ...]]]:
        """Of each kind with symbols: the transforms, and the rates (batch, operator of the kind, mode) of each axis."""
        out = {}
        for kind, ops in enumerate(self.kinds):
            if ops[0] in self.symbols:
                axes = zip(*(self.symbols[op].rates for op in ops), strict=True)
                out[kind] = self.symbols[ops[0]].transforms, tuple(np.stack(rates, axis=1) for rates in axes)
        return out

    def fits_cache(self, shape: tuple[int, ...]) -> bool:
        """Whether every step is a convolution or a growth in place, and a state (batch, channel, *grid) is small; the
        result is the same to the bit as that of moves one by one."""
        return self._in_place and convolves(shape, transforms_of(self.setting.grid))

    @cached_property
    def _in_place(self) -> bool:
        return not self.setting.fields and all(
            set(self.symbols[op].transforms) == {"fourier"} if op in self.symbols else hasattr(primitive, "growth")
            for op, primitive in self.primitives.items()
        )

    def in_cache(self, plan: Plan) -> Moves:
        """The programs in a form that runs from first move to last in cache; only where ``fits_cache``."""
        return Moves(self._moves[plan.kind], plan.durations, *self._rates)

    @cached_property
    def _moves(self) -> Array:
        """The move of each kind, and at the end that of EMPTY."""
        return np.array([*(CONVOLUTION if ops[0] in self.symbols else ops[0] for ops in self.kinds), END])

    @cached_property
    def _rates(self) -> tuple[Array, tuple[Array, Array]]:
        """Rates of growth (name, batch), and those in Fourier space."""
        batch, names = self.setting.batch, len(self.names)
        rates = tuple(np.zeros((batch, names, n), dtype=np.complex128) for n in self.setting.grid.shape)
        growth = np.zeros((names, batch))
        for op, primitive in self.primitives.items():
            if op in self.symbols:
                for axis, rate in zip(rates, self.symbols[op].rates, strict=True):
                    axis[:, op] = rate
            elif hasattr(primitive, "growth"):
                growth[op] = primitive.growth(self.setting)
        return growth, of_axes(rates)

    def of_setting(self, samples: Array | slice) -> Engine:
        """The engine for some samples (repeats allowed), without their rates: enough for the work of a move."""
        return changed(self, setting=self.setting.take(samples), symbols={}, stacked={})

    def take(self, samples: Array | slice) -> Engine:
        """The engine for some samples, with their rates."""
        stacked = {
            kind: (transforms, tuple(rate[samples] for rate in rates))
            for kind, (transforms, rates) in self.stacked.items()
        }
        return changed(self, setting=self.setting.take(samples), symbols={}, stacked=stacked)

    def plan(self, programs: ProgramBatch) -> Plan:
        """Drops steps of zero duration and groups neighbours of one kind into moves."""
        ops = programs.ops
        if len(ops) and programs.durations.all() and (len(ops) == 1 or (ops == ops[:1]).all()):
            return self._plan_alike(programs)
        kind = np.full(ops.shape, EMPTY)
        durations = np.zeros((*ops.shape, len(self.names)))
        step = np.full(durations.shape, NEVER)
        longest = group(ops, programs.durations, self.kind_of, self.alone, EMPTY, kind, durations, step)
        return Plan(kind[:, :longest], durations[:, :longest], step[:, :longest], not len(ops))

    def _plan_alike(self, programs: ProgramBatch) -> Plan:
        """The plan where all samples have one pattern and no step of zero duration."""
        batch, ops = len(programs), programs.ops[0]
        kind, step, moves, distinct = self._pattern(tuple(ops.tolist()))
        durations = np.zeros((batch, *step.shape))
        if distinct:
            durations[:, moves, ops] = programs.durations
        else:
            for k, (at, op) in enumerate(zip(moves, ops, strict=True)):
                durations[:, at, op] += programs.durations[:, k]
        return Plan(kind[None].repeat(batch, 0), durations, step[None].repeat(batch, 0), True)

    def _pattern(self, ops: tuple[int, ...]) -> _Pattern:
        """What the plan of a program with these steps is made of. It is kept, because most batches have the pattern of
        the one before."""
        if ops not in self._patterns:
            moves: list[int] = []
            kinds: list[int] = []
            for op in ops:
                if not kinds or self.kind_of[op] != kinds[-1] or self.alone[op]:
                    kinds.append(int(self.kind_of[op]))
                moves.append(len(kinds) - 1)
            step = np.full((len(kinds), len(self.names)), NEVER)
            for k in reversed(range(len(ops))):
                step[moves[k], ops[k]] = k
            distinct = len(set(zip(moves, ops, strict=True))) == len(ops)
            self._patterns[ops] = _Pattern(np.array(kinds, dtype=np.int64), step, np.array(moves, np.int64), distinct)
        return self._patterns[ops]

    def advance(self, u: Array, kind: int, durations: Array) -> Array:
        """One move of every sample; durations are (sample, name)."""
        ops = self.kinds[kind]
        if kind in self.stacked:
            return evolve(u, *self.stacked[kind], durations[:, list(ops)])
        try:
            out = self.primitives[ops[0]].flow(u, durations[:, ops[0]], self.setting)
        except FieldError as error:
            raise self._named(ops[0], error) from None
        if np.shape(out) != u.shape:
            raise IncompatibleError(
                f"primitive '{self.names[ops[0]]}' returned shape {np.shape(out)} for a state of shape {u.shape}"
            )
        return out

    def work(self, u: Array, kind: int, durations: Array, used: Array) -> Array:
        """The work of the move: that of its only operator, or of one transform pair for several."""
        ops = self.kinds[kind]
        if len(ops) == 1:
            try:
                return self.primitives[ops[0]].work(u, durations[:, ops[0]], self.setting)
            except FieldError as error:
                raise self._named(ops[0], error) from None
        alone, total = used.sum(axis=1) == 1, transform_work(self.setting)
        for op in ops if alone.any() else ():
            mine = alone & used[:, op]
            if mine.any():
                total = np.where(mine, self.primitives[op].work(u, durations[:, op], self.setting), total)
        return total

    def work_alike(self, u: Array, durations: Array, used: Sequence[bool]) -> Array:
        """``work`` of a move where every sample uses the same operators (name,)."""
        ops = [op for op, there in enumerate(used) if there]
        if len(ops) > 1:
            return transform_work(self.setting)
        return self.primitives[ops[0]].work(u, durations[:, ops[0]], self.setting)


@lru_cache(maxsize=ENGINES)
def _kept(names: tuple[str, ...], used: tuple[tuple[int, Primitive], ...], content: Content) -> Engine:
    return Engine(names, dict(used), content.copied())


class Walk:
    """Takes a batch through its programs step by step. Each sample keeps the start of its current move and its length.
    The work of each step is written to ``work`` (batch, step), if it is given."""

    def __init__(self, programs: ProgramBatch, dictionary: Dictionary, query: Query, work: Array | None = None) -> None:
        self.programs, self.work = programs, work
        self.engine = Engine.of(programs, dictionary, query.setting)
        self.u, self.start = query.u0.copy(), query.u0.copy()
        self.kind = np.full(query.batch, EMPTY)
        self.lasting = np.zeros((query.batch, len(programs.names)))
        self.behind = np.zeros(query.batch, dtype=bool)

    def states(self, wanted: frozenset[int]) -> Iterator[Array]:
        """Yields the states at the start and after each step; only the ``wanted`` ones are up to date."""
        yield self.u
        for k in range(self.programs.ops.shape[1]):
            self._step(k)
            if k + 1 in wanted:
                self._catch_up(np.flatnonzero(self.behind))
            yield self.u

    def _step(self, k: int) -> None:
        rows = np.flatnonzero(self.programs.durations[:, k])
        ops, durations = self.programs.ops[rows, k], self.programs.durations[rows, k]
        kind = self.engine.kind_of[ops]
        begin = rows[(kind != self.kind[rows]) | self.engine.alone[ops]]
        self._catch_up(begin[self.behind[begin]])
        self.start[begin], self.lasting[begin] = self.u[begin], 0.0
        self.kind[rows], self.behind[rows] = kind, True
        self.lasting[rows, ops] += durations
        if self.work is None:
            return
        for op in np.unique(ops):
            mine = rows[ops == op]
            primitive, setting = self.engine.primitives[int(op)], self.engine.setting.take(mine)
            self.work[mine, k] = primitive.work(self.start[mine], durations[ops == op], setting)

    def _catch_up(self, samples: Array) -> None:
        """Advances samples from the start of their move to the current step."""
        for kind in np.unique(self.kind[samples]):
            rows = samples[self.kind[samples] == kind]
            try:
                self.u[rows] = self.engine.take(rows).advance(self.start[rows], int(kind), self.lasting[rows])
            except SampleError as error:
                raise error.at(int(rows[error.sample])) from None
        self.behind[samples] = False


def used_primitives(programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> dict[int, Primitive]:
    """The operators that occur, with their primitives. Refuses steps that they cannot take in this setting."""
    if len(programs) == 1:  # a set of a few takes less time than an array
        occurring = sorted({*programs.ops[0].tolist()} - {EMPTY})
    else:
        occurring = np.flatnonzero(np.bincount(programs.ops.ravel() + 1)[1:]).tolist()  # EMPTY is −1
    used = {op: dictionary[programs.names[op]] for op in occurring}
    needed = setting.grid.boundary_kinds
    for op, primitive in used.items():
        checked_cells(primitive, setting)
        if not needed <= boundaries_of(primitive):
            dictionary.check_boundaries((programs.names[op],), setting.grid)
    for op in used if programs.durations.min(initial=0.0) < 0 else ():
        wrong = (programs.ops == op) & (programs.durations < 0)
        if wrong.any() and not is_reversible(used[op]):
            sample, step = np.argwhere(wrong)[0]
            raise IncompatibleError(
                f"step {step + 1} of sample {sample}: duration is {programs.durations[sample, step]:.4g}, "
                f"but '{programs.names[op]}' cannot run backwards"
            )
    return used
