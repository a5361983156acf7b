"""How programs run: samples side by side, neighbours of one transform as one, nothing lost without a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, NonFiniteStateError
from hycop.grid import Array, prolong, restrict
from hycop.primitive import Primitive, Symbol, is_reversible, transform_work
from hycop.program import EMPTY, Program, ProgramBatch
from hycop.query import Query, Setting

MEMORY = 512 * 2**20
"""Default cap in bytes on what ``run`` works on at a time; a larger batch is run in parts."""

_COPIES = 6  # states alive at once while a primitive works: input, output, modes, multipliers and temporaries


class Outcome(NamedTuple):
    """States (batch, channel, *grid) at the end of the programs, and the work (batch,) that they took."""

    states: Array
    work: Array


@dataclass(frozen=True, eq=False)
class Trace:
    """Every state on the way: states[:, 0] = u0, states[:, k] after step k (carried on past a program's end)."""

    programs: ProgramBatch
    states: Array
    work: Array


class _Move(NamedTuple):
    """Neighbouring steps that run as one: a single primitive, or several that share a transform."""

    ops: tuple[int, ...]
    durations: Array  # (sample, op)


class _Plan(NamedTuple):
    """Moves of every sample: ``kind[sample, k]`` indexes ``kinds`` (or is EMPTY); durations are (sample, k, name)."""

    kinds: list[tuple[int, ...]]
    kind: Array
    durations: Array


class _Engine:
    """A dictionary tied to the setting of one batch, with the symbols of its primitives at hand."""

    def __init__(self, names: Sequence[str], used: Sequence[int], dictionary: Dictionary, setting: Setting) -> None:
        self.names = tuple(names)
        self.setting = setting
        self.primitives: dict[int, Primitive] = {op: dictionary[names[op]] for op in used}
        self.symbols: dict[int, Symbol] = {
            op: primitive.symbol(setting) for op, primitive in self.primitives.items() if hasattr(primitive, "symbol")
        }

    @classmethod
    def of(cls, programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> _Engine:
        return cls(programs.names, _used(programs, dictionary, setting), dictionary, setting)

    def take(self, samples: Array | slice) -> _Engine:
        part = object.__new__(_Engine)
        part.names, part.primitives = self.names, self.primitives
        part.setting = self.setting.take(samples)
        part.symbols = {op: symbol.take(samples) for op, symbol in self.symbols.items()}
        return part

    def fuses(self, a: int, b: int) -> bool:
        if a == b:
            return True
        return a in self.symbols and b in self.symbols and self.symbols[a].transforms == self.symbols[b].transforms

    def moves(self, pattern: Sequence[int], durations: Array) -> list[_Move]:
        """Merges equal neighbours, and gathers neighbours of one transform (they commute) into one move."""
        gathered: list[dict[int, Array]] = []
        for k, op in enumerate(pattern):
            tau = durations[:, k]
            if gathered and all(self.fuses(op, other) for other in gathered[-1]):
                gathered[-1][op] = gathered[-1][op] + tau if op in gathered[-1] else tau
            else:
                gathered.append({op: tau})
        return [_Move(tuple(parts), np.stack(list(parts.values()), axis=1)) for parts in gathered]

    def plan(self, programs: ProgramBatch) -> _Plan:
        groups = [(samples, self.moves(pattern, tau)) for samples, pattern, tau in _groups(programs)]
        kinds = sorted({tuple(sorted(move.ops)) for _, moves in groups for move in moves})
        longest = max((len(moves) for _, moves in groups), default=0)
        kind = np.full((len(programs), longest), EMPTY)
        durations = np.zeros((len(programs), longest, len(self.names)))
        for samples, moves in groups:
            for k, move in enumerate(moves):
                kind[samples, k] = kinds.index(tuple(sorted(move.ops)))
                durations[samples[:, None], k, move.ops] = move.durations
        return _Plan(kinds, kind, durations)

    def advance(self, u: Array, ops: tuple[int, ...], durations: Array) -> Array:
        """One move of every sample; durations are (sample, name)."""
        first, *others = ops
        if first in self.symbols:
            exponents = self.symbols[first].over(durations[:, first])
            for op in others:
                exponents = exponents + self.symbols[op].over(durations[:, op])
            return exponents.applied(u)
        out = self.primitives[first].flow(u, durations[:, first], self.setting)
        if np.shape(out) != u.shape:
            raise IncompatibleError(
                f"primitive '{self.names[first]}' returned shape {np.shape(out)} for a state of shape {u.shape}"
            )
        return out

    def work(self, u: Array, ops: tuple[int, ...], durations: Array) -> Array:
        if len(ops) > 1:
            return transform_work(self.setting)
        return self.primitives[ops[0]].work(u, durations[:, ops[0]], self.setting)


def _used(programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> list[int]:
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


def _groups(programs: ProgramBatch) -> Iterator[tuple[Array, tuple[int, ...], Array]]:
    """Samples that share an operator pattern once steps of no duration are dropped: (samples, pattern, durations)."""
    ops = np.where(programs.durations == 0.0, EMPTY, programs.ops)
    if len(ops) and (ops == ops[0]).all() and (ops != EMPTY).all():  # the common case, and np.unique is slow
        yield np.arange(len(ops)), tuple(int(op) for op in ops[0]), programs.durations
        return
    front = np.argsort(ops == EMPTY, axis=1, kind="stable")
    ops = np.take_along_axis(ops, front, axis=1)
    durations = np.take_along_axis(programs.durations, front, axis=1)
    patterns, members = np.unique(ops, axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        samples = np.flatnonzero(members.reshape(-1) == index)
        steps = pattern[pattern != EMPTY]
        yield samples, tuple(int(op) for op in steps), durations[samples, : steps.size]


def simplify(programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> ProgramBatch:
    """The same programs as ``run`` executes them: no idle steps, equal neighbours merged, also across steps that
    share a transform and so commute (``run`` then takes such neighbours through one transform pair)."""
    engine = _Engine.of(programs, dictionary, setting)
    rows: list[tuple[Array, list[_Move]]] = [
        (samples, engine.moves(pattern, durations)) for samples, pattern, durations in _groups(programs)
    ]
    longest = max((sum(len(move.ops) for move in moves) for _, moves in rows), default=0)
    ops = np.full((len(programs), longest), EMPTY)
    durations = np.zeros((len(programs), longest))
    for samples, moves in rows:
        flat = [(op, move.durations[:, column]) for move in moves for column, op in enumerate(move.ops)]
        for k, (op, tau) in enumerate(flat):
            ops[samples, k] = op
            durations[samples, k] = tau
    short = ProgramBatch(programs.names, ops, durations)
    # steps forwards and backwards may have cancelled, which brings new neighbours together
    return simplify(short, dictionary, setting) if ((ops != EMPTY) & (durations == 0)).any() else short


def _checked(programs: ProgramBatch | Program, dictionary: Dictionary, query: Query) -> ProgramBatch:
    if isinstance(programs, Program):
        programs = ProgramBatch.of([programs], dictionary.names).take(np.zeros(query.batch, dtype=np.int64))
    if len(programs) != query.batch:
        raise InvalidInputError(f"{len(programs)} programs for {query.batch} queries: one each is needed")
    return programs


def _execute(
    programs: ProgramBatch, dictionary: Dictionary, query: Query, memory: int, metered: bool, strict: bool = True
) -> Outcome:
    used = _used(programs, dictionary, query.setting)
    states = np.empty_like(query.u0)
    work = np.zeros(query.batch)
    # a symbol holds a complex rate per mode and axis, and its exponents and exponentials are as large
    per_sample = _COPIES * query.u0[:1].nbytes + 16 * sum(query.grid.shape) * (2 * len(used) + 3)
    part = max(1, int(memory // per_sample))
    for start in range(0, query.batch, part):
        chosen = slice(start, start + part)
        engine = _Engine(programs.names, used, dictionary, query.setting.take(chosen))
        u = _run_moves(engine, engine.plan(programs.take(chosen)), query.u0[chosen], work[chosen] if metered else None)
        if strict and not _all_finite(u):
            _raise_non_finite(programs, dictionary, query, start, u)
        if part >= query.batch and u.dtype == query.u0.dtype and not np.may_share_memory(u, query.u0):
            return Outcome(u, work)
        states[chosen] = u
    return Outcome(states, work)


def _all_finite(u: Array) -> bool:
    """A finite sum has finite terms, and costs less than a look at each; a sum may overflow, so then look."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(u.sum())) or bool(np.isfinite(u).all())


def _run_moves(engine: _Engine, plan: _Plan, u: Array, work: Array | None) -> Array:
    """Takes samples through their moves side by side: those whose k-th move is of one kind make it together."""
    owned = False
    for k in range(plan.kind.shape[1]):
        kinds, durations = plan.kind[:, k], plan.durations[:, k]
        if (kinds == kinds[0]).all() and kinds[0] != EMPTY:
            ops = plan.kinds[kinds[0]]
            if work is not None:
                work += engine.work(u, ops, durations)
            new = engine.advance(u, ops, durations)
            u, owned = new, owned or not np.may_share_memory(new, u)  # a primitive may return what it was given
            continue
        if not owned:
            u, owned = u.copy(), True
        for kind in np.unique(kinds[kinds != EMPTY]):
            rows = np.flatnonzero(kinds == kind)
            local, before = engine.take(rows), u[rows]
            if work is not None:
                work[rows] += local.work(before, plan.kinds[kind], durations[rows])
            u[rows] = local.advance(before, plan.kinds[kind], durations[rows])
    return u


def _raise_non_finite(programs: ProgramBatch, dictionary: Dictionary, query: Query, start: int, u: Array) -> None:
    """Finds the step at which the first lost sample left the finite numbers, by running it once more step by step."""
    lost = start + int(np.flatnonzero(~np.isfinite(u.reshape(u.shape[0], -1)).all(axis=1))[0])
    one = np.array([lost])
    path = trace(programs.take(one), dictionary, query.take(one))
    finite = np.isfinite(path.states[0].reshape(path.states.shape[1], -1)).all(axis=1)
    program = programs[lost]
    slot = int(np.flatnonzero(~finite)[0]) if not finite.all() else programs.ops.shape[1]
    step = int((programs.ops[lost, :slot] != EMPTY).sum())
    raise NonFiniteStateError(
        f"sample {lost}: the state left the finite numbers at step {step} of {len(program)} ({program.steps[step - 1]})"
    )


def _refined(query: Query, factor: int) -> Query:
    """The query on a grid ``factor`` times finer, its initial state reconstructed once."""
    grid, channels = query.grid, query.setting.channels
    signs = np.array([[-1.0 if channel.normal == axis else 1.0 for axis in range(grid.axes)] for channel in channels])
    fine = prolong(query.u0, grid.boundary, factor, signs)
    return Query(fine, query.setting.with_grid(grid.refined(factor)), query.time)


def run(
    programs: ProgramBatch | Program,
    dictionary: Dictionary,
    query: Query,
    *,
    refinement: int = 1,
    memory: int = MEMORY,
) -> Array:
    """The states (batch, channel, *grid) at the end of each query's program (or of one program for all of them).

    Samples whose next step is of the same kind take it together. With a ``refinement`` the whole program runs on a grid
    that many times finer: the initial state is reconstructed once, the result restricted once. ``memory`` caps what is
    worked on at a time, in bytes: a larger batch is run in parts, with the same result to the bit.
    """
    if refinement > 1:
        return measure(programs, dictionary, query, refinement=refinement, memory=memory).states
    return _execute(_checked(programs, dictionary, query), dictionary, query, memory, metered=False).states


def measure(
    programs: ProgramBatch | Program,
    dictionary: Dictionary,
    query: Query,
    *,
    refinement: int = 1,
    memory: int = MEMORY,
    strict: bool = True,
) -> Outcome:
    """As ``run``, together with the work of each program: 1 is one update of one channel in one cell.

    Unless ``strict``, a sample that leaves the finite numbers does not raise: its state says so.
    """
    programs = _checked(programs, dictionary, query)
    if refinement == 1:
        return _execute(programs, dictionary, query, memory, metered=True, strict=strict)
    states, work = np.empty_like(query.u0), np.empty(query.batch)
    part = max(1, int(memory // (_COPIES * query.u0[:1].nbytes * refinement**query.grid.axes)))
    for start in range(0, query.batch, part):
        chosen = slice(start, start + part)
        fine = _refined(query.take(chosen), refinement)
        done = _execute(programs.take(chosen), dictionary, fine, memory, metered=True, strict=strict)
        states[chosen], work[chosen] = restrict(done.states, query.grid.shape), done.work
    return Outcome(states, work)


def trace(programs: ProgramBatch | Program, dictionary: Dictionary, query: Query) -> Trace:
    """Runs the steps one by one as they stand, nothing merged, and keeps every state and the work of every step."""
    programs = _checked(programs, dictionary, query)
    engine = _Engine.of(programs, dictionary, query.setting)
    steps = programs.ops.shape[1]
    states = np.empty((query.batch, steps + 1, *query.u0.shape[1:]), dtype=query.u0.dtype)
    work = np.zeros((query.batch, steps))
    states[:, 0] = query.u0
    for k in range(steps):
        states[:, k + 1] = states[:, k]
        for op in np.unique(programs.ops[:, k]):
            if op == EMPTY:
                continue
            samples = np.flatnonzero(programs.ops[:, k] == op)
            local, before = engine.take(samples), states[samples, k]
            durations = np.zeros((samples.size, len(programs.names)))
            durations[:, op] = programs.durations[samples, k]
            work[samples, k] = local.work(before, (int(op),), durations)
            states[samples, k + 1] = local.advance(before, (int(op),), durations)
    return Trace(programs, states, work)
