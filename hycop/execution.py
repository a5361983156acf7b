"""Runs programs: samples side by side, neighbours that share a transform in one move, an error for every NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.engine import NEVER, Engine, Plan, Walk, used_primitives
from hycop.errors import ForeignError, InvalidInputError, LostForeignSampleError, LostSampleError, SampleError
from hycop.grid import Array, all_finite, changed, of_one_sign, prolong, restrict
from hycop.kernels.distance import squared_distances
from hycop.primitive import is_small
from hycop.program import EMPTY, Program, ProgramBatch
from hycop.query import Query, Setting

MEMORY = 512 * 2**20
"""Default memory cap of ``run`` in bytes; larger batches run in parts."""

PROBE_FRACTION = 1e-9
"""Fraction of the query time for which ``probe`` runs each primitive."""

_COPIES = 6  # states alive at once while a primitive works: input, output, modes, multipliers and temporaries


class Outcome(NamedTuple):
    """States (batch, channel, *grid) at the end of the programs, and the work (batch,) that they took."""

    states: Array
    work: Array


@dataclass(frozen=True, eq=False)
class Trace:
    """Intermediate states of programs: ``states[:, i]`` of (batch, kept, channel, *grid) is the state after step
    ``steps[i]``. Step 0 is the start; a program that has ended keeps its last state.

    ``programs`` has the name and duration of every step. ``work`` (batch, step) is the cost of each step on its own;
    ``run`` costs less where neighbours share a transform pair.
    """

    programs: ProgramBatch
    steps: tuple[int, ...]
    states: Array
    work: Array


def simplify(programs: ProgramBatch, dictionary: Dictionary, setting: Setting) -> ProgramBatch:
    """The programs as ``run`` executes them: no steps of zero duration, and equal neighbours merged. Steps that share a
    transform commute, so equal steps merge across them too."""
    plan = Engine.of(programs, dictionary, setting).plan(programs)
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


def _checked(programs: ProgramBatch | Program, dictionary: Dictionary, query: Query, members: int = 1) -> ProgramBatch:
    if isinstance(programs, Program):
        names = dictionary.names_in(step.primitive for step in programs)
        programs = ProgramBatch.of([programs], names).take(np.zeros(query.batch, dtype=np.int64))
    if len(programs) != members * len(query.u0):
        needed = "one" if members == 1 else f"{members}"
        raise InvalidInputError(f"{len(programs)} programs for {query.batch} queries: {needed} each is needed")
    return programs


def _execute(
    programs: ProgramBatch, dictionary: Dictionary, query: Query, memory: int, metered: bool, strict: bool = True
) -> Outcome:
    """Program i answers query i mod batch."""
    used, batch = used_primitives(programs, dictionary, query.setting), len(query.u0)
    members = max(1, len(programs) // max(1, batch))
    # a symbol holds a complex rate per mode and axis, and its exponents and exponentials are as large
    per_sample = _COPIES * query.u0[:1].nbytes + 16 * sum(query.grid.shape) * (2 * len(used) + 3)
    part = max(1, int(memory // per_sample))
    if members > 1 or part >= batch:
        engine = Engine.tied(programs.names, used, query.setting)
        if members == 1 or engine.fits_cache(query.u0.shape):
            return _execute_part(engine, programs, dictionary, query, metered, strict)
        tiled = query.take(np.tile(np.arange(batch), members))
        try:
            return _execute(programs, dictionary, tiled, memory, metered, strict)
        except SampleError as error:
            raise error.at(error.sample % batch) from None
    states, work = np.empty_like(query.u0), np.zeros(batch)
    for start in range(0, batch, part):
        chosen = slice(start, start + part)
        some, asked = programs.take(chosen), query.take(chosen)
        engine = Engine.tied(programs.names, used, asked.setting)
        try:
            states[chosen], work[chosen] = _execute_part(engine, some, dictionary, asked, metered, strict)
        except SampleError as error:
            raise error.at(start + error.sample) from None
    return Outcome(states, work)


def _execute_part(
    engine: Engine, programs: ProgramBatch, dictionary: Dictionary, query: Query, metered: bool, strict: bool
) -> Outcome:
    """All programs at once: from first move to last in cache where they fit, else move by move."""
    plan, work = engine.plan(programs), np.zeros(len(programs))
    advance = _run_in_cache if engine.fits_cache(query.u0.shape) else _run_moves
    try:
        u = advance(engine, plan, query.u0, work if metered else None)
    except ForeignError as error:
        if error.slot is None:
            raise
        step = programs.step_text(error.sample, error.slot)
        raise ForeignError(error.sample, f" at {step}{error.args[1]}") from error.__cause__
    if strict and not all_finite(u):
        _raise_non_finite(programs, dictionary, query, u)
    # a program without steps returns the query's own array, which the caller must not be able to change
    owned = u.dtype == query.u0.dtype and not np.may_share_memory(u, query.u0)
    return Outcome(u if owned else u.astype(query.u0.dtype), work)


def _run_in_cache(engine: Engine, plan: Plan, u: Array, work: Array | None) -> Array:
    """Every program from its first move to the last, one after the other."""
    if work is not None:
        work += _exact_work(engine, plan, u)
    return engine.in_cache(plan).run(u)


def _exact_work(engine: Engine, plan: Plan, u: Array) -> Array:
    """The work of programs whose steps take no more or less for another state."""
    if plan.alike and plan.kind.size:  # so are the programs of all members
        durations, used = plan.durations.reshape(-1, len(u), *plan.durations.shape[1:]), plan.step[0] < NEVER
        least, most = (_work_alike(engine, u, bound, used) for bound in (durations.min(axis=0), durations.max(axis=0)))
        if len(durations) == 1 or np.array_equal(least, most):  # more time never takes less work
            return np.tile(least, len(durations))
        return np.concatenate([_work_alike(engine, u, member, used) for member in durations])
    work = np.zeros(len(plan.kind))
    for kind in range(len(engine.kinds)):
        at = np.nonzero(plan.kind == kind)
        # the cost of an exact flow does not depend on the state, so any state will do
        some = np.broadcast_to(u[:1], (at[0].size, *u.shape[1:]))
        cost = engine.of_setting(at[0] % len(u)).work(some, kind, plan.durations[at], plan.step[at] < NEVER)
        work += np.bincount(at[0], cost, minlength=work.size)
    return work


def _work_alike(engine: Engine, u: Array, durations: Array, used: Array) -> Array:
    """The work of programs with the same moves; ``used`` is (move, name)."""
    moves = enumerate(used.tolist())
    return sum((engine.work_alike(u, durations[:, k], there) for k, there in moves), np.zeros(len(u)))


def _run_moves(engine: Engine, plan: Plan, u: Array, work: Array | None) -> Array:
    """Advances samples side by side: each round takes the kind of move that most samples wait for."""
    if (plan.kind == plan.kind[:1]).all():
        for k, kind in enumerate(plan.kind[0].tolist() if len(plan.kind) else ()):
            u = _advance(engine, plan, u, work, kind, (slice(None), k))
        return u
    order = plan.order()
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
        # they are usually neighbours, and then a slice avoids the copy
        some = slice(int(rows[0]), int(rows[-1]) + 1) if rows[-1] - rows[0] < rows.size else rows
        part = None if cost is None else cost[some]
        try:
            u[some] = _advance(engine.take(some), plan, u[some], part, int(waiting.argmax()), (rows, done[rows]))
        except SampleError as error:
            raise error.at(int(order[rows[error.sample]])) from None
        if cost is not None:
            cost[some] = part
        done[rows] += 1
    out = np.empty_like(u)
    out[order] = u
    if work is not None and cost is not None:
        work[order] = cost
    return out


def _advance(engine: Engine, plan: Plan, u: Array, work: Array | None, kind: int, at: tuple[Any, Any]) -> Array:
    durations = plan.durations[at]
    if work is not None:
        work += engine.work(u, kind, durations, plan.step[at] < NEVER)
    try:
        return engine.advance(u, kind, durations)
    except ForeignError as error:
        error.slot = int(plan.step[at][error.sample].min())
        raise


def _raise_non_finite(programs: ProgramBatch, dictionary: Dictionary, query: Query, u: Array) -> None:
    """Reruns the first lost sample step by step and names the step at which it became NaN or infinite."""
    lost = int(np.flatnonzero(~np.isfinite(u.reshape(u.shape[0], -1)).all(axis=1))[0])
    one = np.array([lost])
    slots = range(programs.ops.shape[1])
    walk = Walk(programs.take(one), dictionary, query.take(one % query.batch))
    finite = [bool(np.isfinite(u).all()) for u in walk.states(frozenset(slot + 1 for slot in slots))]
    slot = finite.index(False) - 1 if not all(finite) else slots[-1]
    primitive = dictionary[programs.names[programs.ops[lost, slot]]]
    kind = LostForeignSampleError if getattr(primitive, "foreign", False) else LostSampleError
    step = programs.step_text(lost, slot)
    raise kind(lost % query.batch, f": the state became NaN or infinite at {step}")


def refined_query(query: Query, factor: int) -> Query:
    """The query on a grid ``factor`` times finer, its initial state reconstructed once."""
    setting = query.setting
    fine = prolong(query.u0, setting.grid.boundary, factor, setting.wall_signs())
    return changed(query, u0=of_one_sign(fine, query.u0, factor), setting=setting.refined(factor))


def run(
    programs: ProgramBatch | Program,
    dictionary: Dictionary,
    query: Query,
    *,
    refinement: int = 1,
    memory: int = MEMORY,
    strict: bool = True,
    members: int = 1,
) -> Array:
    """The states (batch, channel, *grid) at the end of each query's program (or of one program for all of them).

    Samples whose next step is of the same kind take it together. With a ``refinement`` the whole program runs on a grid
    that many times finer: the initial state is reconstructed once, the result restricted once. ``memory`` caps the
    bytes in use: a larger batch runs in parts, with the same result to the bit. ``strict`` and ``members`` as in
    ``measure``.
    """
    programs = _checked(programs, dictionary, query, members)
    done = _outcome(programs, dictionary, query, refinement, memory, metered=False, strict=strict, members=members)
    return done.states


def probe(dictionary: Dictionary, query: Query, refinement: int = 1) -> None:
    """Runs every primitive on every state for a tiny time, so that what cannot run is refused before a long
    computation."""
    ops = np.tile(np.arange(len(dictionary)), (query.batch, 1))
    short = ProgramBatch(dictionary.names, ops, np.tile(PROBE_FRACTION * query.time[:, None], len(dictionary)))
    measure(short, dictionary, query, refinement=refinement, strict=False)


def measure(
    programs: ProgramBatch | Program,
    dictionary: Dictionary,
    query: Query,
    *,
    refinement: int = 1,
    memory: int = MEMORY,
    strict: bool = True,
    members: int = 1,
) -> Outcome:
    """As ``run``, together with the work of each program: 1 is one update of one channel in one cell.

    With ``strict=False`` a state may become NaN or infinite without an error. A population has several ``members``,
    each with a program for every query: program i is for query i mod batch.
    """
    programs = _checked(programs, dictionary, query, members)
    return _outcome(programs, dictionary, query, refinement, memory, metered=True, strict=strict, members=members)


def run_and_meter(
    programs: ProgramBatch, dictionary: Dictionary, query: Query, *, refinement: int = 1
) -> tuple[Array, Callable[[], Array]]:
    """The states and the work of ``measure``; work that does not depend on the states is computed when asked for."""
    if refinement == 1 and is_small(query.setting):
        engine = Engine.of(_checked(programs, dictionary, query), dictionary, query.setting)
        plan = engine.plan(programs)
        exact = engine.fits_cache(query.u0.shape)
        if exact or (plan.alike and plan.kind.shape[1] == 1):  # a single move starts from the query's own state
            states = _execute_part(engine, programs, dictionary, query, metered=False, strict=True).states
            return states, lambda: (_exact_work if exact else _work_at_start)(engine, plan, query.u0)
    done = measure(programs, dictionary, query, refinement=refinement)
    return done.states, lambda: done.work


def _outcome(
    programs: ProgramBatch,
    dictionary: Dictionary,
    query: Query,
    refinement: int,
    memory: int,
    *,
    metered: bool,
    strict: bool = True,
    members: int = 1,
) -> Outcome:
    """On the query's grid or a finer one; the work is zero unless it is ``metered``."""
    if refinement == 1:
        return _execute(programs, dictionary, query, memory, metered, strict)
    queries = query.batch
    if members > 1:
        query = query.take(np.tile(np.arange(queries), members))
    states, work = np.empty_like(query.u0), np.empty(query.batch)
    part = max(1, int(memory // max(1, _COPIES * query.u0[:1].nbytes * refinement**query.grid.axes)))
    for start in range(0, query.batch, part):
        chosen = slice(start, start + part)
        fine = refined_query(query.take(chosen), refinement)
        try:
            done = _execute(programs.take(chosen), dictionary, fine, memory, metered, strict)
        except SampleError as error:
            raise error.at((start + error.sample) % queries) from None
        states[chosen], work[chosen] = restrict(done.states, query.grid.shape), done.work
    still = ~programs.durations.any(axis=1)
    states[still] = query.u0[still]  # not reconstructed and averaged
    return Outcome(states, work)


def expected_work(programs: ProgramBatch, dictionary: Dictionary, query: Query, *, refinement: int = 1) -> Array:
    """The work (batch,) that ``measure`` would find if all states stayed as they are at the start: an estimate without
    a run where all programs have the same steps."""
    asked = query if refinement == 1 else refined_query(query, refinement)
    engine = Engine.of(_checked(programs, dictionary, query), dictionary, asked.setting)
    plan = engine.plan(programs)
    if not plan.alike:
        return measure(programs, dictionary, query, refinement=refinement, strict=False).work
    return _work_at_start(engine, plan, asked.u0)


def _work_at_start(engine: Engine, plan: Plan, u: Array) -> Array:
    """The work (batch,) of programs with the same steps, if all states stayed as they are at the start."""
    work = np.zeros(len(u))
    known: dict[tuple[int, bytes, bytes], Array] = {}  # most moves of a classical scheme are alike
    for k, kind in enumerate(plan.kind[0].tolist() if len(u) else ()):
        durations, used = plan.durations[:, k], plan.step[:, k] < NEVER
        move = kind, durations.tobytes(), used.tobytes()
        if move not in known:
            known[move] = engine.work(u, kind, durations, used)
        work += known[move]
    return work


def distances(
    programs: ProgramBatch, dictionary: Dictionary, query: Query, truth: Array, *, refinement: int, members: int
) -> tuple[Array, Array]:
    """Squared distances Σ (u − truth)² over channels and cells of a population's states, and their work, each
    (members, batch). Where whole programs run in cache, no state leaves it."""
    shape = (members, query.batch)
    if refinement == 1:
        engine = Engine.of(_checked(programs, dictionary, query, members), dictionary, query.setting)
        if engine.fits_cache(query.u0.shape):
            plan = engine.plan(programs)
            work = _exact_work(engine, plan, query.u0)
            return engine.in_cache(plan).squared_distances(query.u0, truth).reshape(shape), work.reshape(shape)
    done = measure(programs, dictionary, query, refinement=refinement, strict=False, members=members)
    return squared_distances(done.states, truth).reshape(shape), done.work.reshape(shape)


def trace(
    programs: ProgramBatch | Program,
    dictionary: Dictionary,
    query: Query,
    *,
    refinement: int = 1,
    steps: Sequence[int] | None = None,
    fine: bool = False,
    memory: int = MEMORY,
) -> Trace:
    """Runs what ``run`` runs, and keeps the states after all steps, or after those in ``steps`` (−1 is the last).

    The last state equals that of ``run`` to the bit. Where ``run`` merges neighbours into one move, the state after a
    step is that move from its start up to the step. With a ``refinement`` the initial state is reconstructed once,
    every step runs on the fine grid, and the kept states are restricted to the query grid (not if ``fine``).
    ``memory`` caps the bytes in use beside the kept states. A state that becomes NaN or infinite does not raise.
    """
    programs = _checked(programs, dictionary, query)
    kept = _checked_steps(steps, programs.ops.shape[1])
    grid = query.grid.refined(refinement) if fine else query.grid
    # as ``run``: a refined state is double, whatever the precision of the query, and restricted to that at the end
    dtype = np.float64 if fine and refinement > 1 else query.u0.dtype
    states = np.empty((query.batch, len(kept), query.u0.shape[1], *grid.shape), dtype=dtype)
    work = np.zeros(programs.ops.shape)
    part = max(1, int(memory // max(1, 2 * _COPIES * query.u0[:1].nbytes * refinement**query.grid.axes)))
    for start in range(0, query.batch, part):
        chosen = slice(start, start + part)
        asked = query.take(chosen) if refinement == 1 else refined_query(query.take(chosen), refinement)
        walk = Walk(programs.take(chosen), dictionary, asked, work[chosen])
        try:
            for step, u in enumerate(walk.states(frozenset(kept))):
                for place in [place for place, wanted in enumerate(kept) if wanted == step]:
                    states[chosen, place] = u if u.shape[2:] == grid.shape else restrict(u, grid.shape)
        except SampleError as error:
            raise error.at(start + error.sample) from None
    if not fine:
        still = ~programs.durations.any(axis=1)
        states[still] = query.u0[still, None]
    return Trace(programs, kept, states, work)


def _checked_steps(steps: Sequence[int] | None, longest: int) -> tuple[int, ...]:
    if steps is None:
        return tuple(range(longest + 1))
    if isinstance(steps, int | str) or not all(isinstance(step, int | np.integer) for step in steps):
        raise InvalidInputError(f"steps is {steps!r:.60}: give a list of whole numbers, as [0, -1]")
    for step in steps:
        if not -longest - 1 <= step <= longest:
            raise InvalidInputError(f"steps: there is no step {step}; 0 is the start, {longest} or -1 the last")
    return tuple(int(step) % (longest + 1) for step in steps)
