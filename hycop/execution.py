"""How programs run: samples side by side, neighbours of one transform as one, nothing lost without a word."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError, NonFiniteStateError
from hycop.grid import Array, prolong, restrict
from hycop.kernels.spectral import evolve
from hycop.primitive import Primitive, is_reversible, transform_work
from hycop.program import EMPTY, Program, ProgramBatch
from hycop.query import Query, Setting

MEMORY = 512 * 2**20
"""Default cap in bytes on what ``run`` works on at a time; a larger batch is run in parts."""

NEVER = np.iinfo(np.int64).max

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


class _Plan(NamedTuple):
    """Moves of every sample, neighbouring steps that run as one: ``kind[sample, k]`` indexes the engine's kinds (or is
    EMPTY); durations are (sample, k, name); ``step`` is where a name first occurs in the program, if at all."""

    kind: Array
    durations: Array
    step: Array

    def take(self, samples: Array) -> _Plan:
        return _Plan(self.kind[samples], self.durations[samples], self.step[samples])


class _Engine:
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
    def of(cls, programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> _Engine:
        return cls(programs.names, _used(programs, dictionary, setting), dictionary, setting)

    def take(self, samples: Array | slice) -> _Engine:
        part = copy(self)
        part.setting = self.setting.take(samples)
        part.symbols = {
            kind: (transforms, tuple(rate[samples] for rate in rates))
            for kind, (transforms, rates) in self.symbols.items()
        }
        return part

    def plan(self, programs: ProgramBatch) -> _Plan:
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
        return _Plan(kind[:, :longest], durations[:, :longest], step[:, :longest])

    def advance(self, u: Array, kind: int, durations: Array, overwrite: bool = False) -> Array:
        """One move of every sample; durations are (sample, name). With ``overwrite`` u may be changed and returned."""
        ops = self.kinds[kind]
        if kind in self.symbols:
            return evolve(u, *self.symbols[kind], durations[:, list(ops)], overwrite=overwrite)
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


def simplify(programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> ProgramBatch:
    """The same programs as ``run`` executes them: no idle steps, equal neighbours merged, also across steps that
    share a transform and so commute (``run`` then takes such neighbours through one transform pair)."""
    plan = _Engine.of(programs, dictionary, setting).plan(programs)
    batch = len(programs)
    step = plan.step.reshape(batch, -1)
    order = np.argsort(step, axis=1, kind="stable")  # as they first occur, those that do not at the end
    longest = int((step < NEVER).sum(axis=1).max(initial=0))
    order = order[:, :longest]
    there = np.take_along_axis(step, order, axis=1) < NEVER
    ops = np.where(there, order % len(programs.names), EMPTY)
    durations = np.take_along_axis(plan.durations.reshape(batch, -1), order, axis=1)
    short = ProgramBatch(programs.names, ops, durations)
    # steps forwards and backwards may have cancelled, which brings new neighbours together
    return simplify(short, dictionary, setting) if (there & (durations == 0)).any() else short


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
    """Takes samples through their moves side by side: in every round, those whose next one is of the kind that most
    of them wait for."""
    if (plan.kind == plan.kind[:1]).all():
        given = u
        for k, kind in enumerate(plan.kind[0].tolist() if len(plan.kind) else ()):
            ours = not np.may_share_memory(u, given)  # a primitive may return what it was given
            u = _advance(engine, plan, u, work, kind, (slice(None), k), ours)
        return u
    order = _order(plan.kind)
    engine, plan, u = engine.take(order), plan.take(order), u[order]
    cost = None if work is None else np.zeros(len(order))
    ahead = np.pad(plan.kind, ((0, 0), (0, 1)), constant_values=EMPTY)
    done = np.zeros(len(order), dtype=np.int64)
    while True:
        next_ = np.take_along_axis(ahead, done[:, None], axis=1)[:, 0]
        waiting = np.bincount(next_ + 1, minlength=2)[1:]
        if not waiting.any():
            break
        rows = np.flatnonzero(next_ == waiting.argmax())
        # most often they are neighbours, and then nothing has to be copied
        some = slice(int(rows[0]), int(rows[-1]) + 1) if rows[-1] - rows[0] < rows.size else rows
        part, before = None if cost is None else cost[some], u[some]
        after = _advance(engine.take(some), plan, before, part, int(waiting.argmax()), (rows, done[rows]), True)
        if after is not before or some is rows:
            u[some] = after
        if cost is not None:
            cost[some] = part
        done[rows] += 1
    out = np.empty_like(u)
    out[order] = u
    if work is not None and cost is not None:
        work[order] = cost
    return out


def _advance(
    engine: _Engine, plan: _Plan, u: Array, work: Array | None, kind: int, at: tuple[Any, Any], overwrite: bool
) -> Array:
    durations = plan.durations[at]
    if work is not None:
        work += engine.work(u, kind, durations, plan.step[at] < NEVER)
    return engine.advance(u, kind, durations, overwrite)


def _order(kind: Array) -> Array:
    """Samples in such an order that, if there are two kinds of moves, which then alternate, those that move together
    are always neighbours: late starters by increasing length, then early ones by decreasing length."""
    length = (kind != EMPTY).sum(axis=1)
    early = kind[:, 0] == np.bincount(kind[:, 0] + 1).argmax() - 1
    return np.lexsort((np.where(early, -length, length), early))


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
            work[samples, k] = local.primitives[int(op)].work(before, durations[:, op], local.setting)
            states[samples, k + 1] = local.advance(before, int(local.kind_of[op]), durations)
    return Trace(programs, states, work)
