"""The best program of the same pattern for each single query: what a better policy could still win."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hycop.diagnosis.case import Case
from hycop.execution import measure
from hycop.grid import Array
from hycop.program import EMPTY, ProgramBatch

QUERIES, FEWEST = 8, 2
"""Most and fewest queries whose best programs are sought, evenly spread."""

MOST_WORK = 2e9
"""Work of the whole search, which decides for how many queries it is done."""

ITERATIONS = 6
DIFFERENCE = 1e-6
"""Change of a duration, as a fraction of the query time, for derivatives."""

DAMPINGS = (1e-6, 1e-3, 1e-1)
"""Levenberg–Marquardt dampings that every iteration tries."""

LONGEST = 64
"""Steps of the longest program whose durations are optimised."""


@dataclass(frozen=True)
class Oracle:
    """Mean errors of the model and of the best programs on some queries; the gap is the policy's."""

    error: float
    best: float
    queries: int

    @property
    def gap(self) -> float:
        return self.error - self.best

    def to_json(self) -> dict[str, object]:
        return {"error": self.error, "oracle": self.best, "gap": self.gap, "queries": self.queries}


def oracle(case: Case) -> Oracle | None:
    """Damped Gauss–Newton on ‖Ψ̂ − S‖ over the durations of each query's steps. Every primitive keeps its total time;
    its steps share it by a softmax. None if no primitive has two steps, or programs are very long."""
    steps = case.programs.ops.shape[1]
    if steps > LONGEST or not _free(case.programs).any():
        return None
    one = case.take(case.few(1))
    work = measure(one.programs, case.model.dictionary, one.query, refinement=case.model.refinement).work[0]
    affordable = int(MOST_WORK / (work * ITERATIONS * (1 + steps + len(DAMPINGS))))
    some = case.take(case.few(min(QUERIES, max(FEWEST, affordable))))
    programs = some.programs
    start = errors = some.relative(some.truth - some.answers)
    for _ in range(ITERATIONS):
        moves = _moves(some, programs)
        trials = [_moved(programs, move) for move in moves]
        found = np.stack([some.relative(some.truth - _states(some, each)) for each in trials])
        found = np.where(np.isfinite(found), found, np.inf)
        best, which = found.min(axis=0), found.argmin(axis=0)
        better = best < errors
        if not better.any():
            break
        durations = np.stack([each.durations for each in trials])[which, np.arange(some.batch)]
        durations = np.where(better[:, None], durations, programs.durations)
        programs = ProgramBatch(programs.names, programs.ops, durations)
        errors = np.where(better, best, errors)
    return Oracle(float(start.mean()), float(errors.mean()), some.batch)


def _states(case: Case, programs: ProgramBatch) -> Array:
    """States of programs, one or more for each query; lost ones are not finite."""
    members = len(programs) // case.batch
    return measure(
        programs, case.model.dictionary, case.query, refinement=case.model.refinement, strict=False, members=members
    ).states


def _free(programs: ProgramBatch) -> Array:
    """Steps (batch, step) of primitives that have several of positive duration."""
    there = (programs.ops != EMPTY) & (programs.durations > 0)
    same = (programs.ops[:, :, None] == programs.ops[:, None, :]) & there[:, None, :]
    return np.asarray(there & (same.sum(axis=2) > 1))


def _moves(case: Case, programs: ProgramBatch) -> list[Array]:
    """Changes (batch, step) of the logarithms of the durations, one for each damping."""
    free, steps = _free(programs), programs.ops.shape[1]
    nudge = DIFFERENCE * case.query.time
    durations = np.repeat(programs.durations[None], 1 + steps, axis=0)
    for step in range(steps):
        durations[1 + step, :, step] += np.where(free[:, step], nudge, 0.0)
    every = ProgramBatch(programs.names, np.tile(programs.ops, (1 + steps, 1)), durations.reshape(-1, steps))
    states = _states(case, every).reshape(1 + steps, case.batch, -1)
    residual = states[0] - case.truth.reshape(case.batch, -1)
    slopes = (states[1:] - states[:1]) / nudge[None, :, None]
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    # d τ_i / d z_j = τ_i (δ_ij − share_j) within the steps of a primitive
    same = (programs.ops[:, :, None] == programs.ops[:, None, :]) & free[:, None, :] & free[:, :, None]
    together = np.einsum("bij,bj->bi", same, programs.durations)
    share = programs.durations / np.where(together > 0, together, 1.0)
    chain = programs.durations[:, :, None] * (np.eye(steps) - np.where(same, share[:, None, :], 0.0))
    jacobian = np.einsum("bij,ibn->bjn", chain, slopes)
    normal = np.einsum("bin,bjn->bij", jacobian, jacobian)
    gradient = np.einsum("bjn,bn->bj", jacobian, residual)
    scale = np.maximum(np.einsum("bii->bi", normal).max(axis=1), np.finfo(float).tiny)
    eye = np.eye(steps)
    return [
        -np.linalg.solve(normal + (damping * scale)[:, None, None] * eye, gradient[..., None])[..., 0]
        for damping in DAMPINGS
    ]


def _moved(programs: ProgramBatch, move: Array) -> ProgramBatch:
    """Programs after a change of the logarithms of their durations; each primitive keeps its total time."""
    free = _free(programs)
    weights = programs.durations * np.exp(np.clip(np.where(free, move, 0.0), -2.0, 2.0))
    durations = programs.durations.copy()
    for op in range(len(programs.names)):
        mine = free & (programs.ops == op)
        before = np.where(mine, programs.durations, 0.0).sum(axis=1, keepdims=True)
        after = np.where(mine, weights, 0.0).sum(axis=1, keepdims=True)
        durations = np.where(mine, weights * before / np.where(after > 0, after, 1.0), durations)
    return ProgramBatch(programs.names, programs.ops, durations)
