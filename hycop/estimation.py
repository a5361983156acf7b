"""Error estimates without a truth, and answers to a tolerance.

The estimate is the distance of an answer u(m, h) to its refinement in the program and in the grid:

    d = ‖u − v‖ / ‖v‖,   v = u(4m, h) + u(m, h/2) − u(m, h)      (3m, 2m or 2h/3 where this takes too much work)

where m counts the cuts of the program and h is the width of a cell. The two refinements are run one by one and their
corrections added, which costs less than to refine both at once. For m = 1 the program is the policy's own. Finer ones
are those of the classical scheme at the model's gate, because a learned program that is repeated is of first order and
a classical one of second.

``Calibration`` turns d into an error that 90 % of the held-out queries of a run stay below. It holds for queries like
those of training. What both the answer and its refinement lack is not seen: a process that the equation of the model
misses, or wrong coefficients. Detail of the initial state below the width of a cell is not in the grid values either;
its effect is estimated where answers are refined to a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import errors_of
from hycop.execution import Outcome, measure, refined_query
from hycop.grid import STENCIL, Array, Grid, changed, restrict
from hycop.program import ProgramBatch
from hycop.query import Query

COVERED = 0.9
"""Fraction of the queries in distribution whose error is below the calibrated estimate."""

CUT, FINER = 4, 2.0
"""The refined program is cut this many times as finely; the refined grid is this many times finer."""

COSTED = 12
LESS_WORK = ((3, 2.0), (4, 1.5), (3, 1.5), (2, 2.0), (2, 1.5))
MOST_WORK = 8.0
"""Where the estimates of ``COSTED`` held-out queries take more than this times the work of the answers, programs and
grids are refined less. A grid only 1.5 times finer comes before a program cut only twice, which is the policy's own."""

GRADING = 1.5
"""The first j of m cuts of a refined program last for (j/m)^1.5 of the query time. Detail of the initial state may
decay in a time much shorter than a cut: equal cuts all miss what it does until then, and agree with each other."""

UNCALIBRATED = 2.0
"""Times the distance that an estimate is without a calibration. Calibrated ones are 1.2 to 1.6 times the distance."""

UNSEEN = 0.05
"""Fraction of the median held-out error that is added to every distance: errors may cancel in a distance."""

MOST_CALIBRATED = 100
"""Held-out queries of a calibration, at most."""

LEAST_CURVED = 30
"""Held-out queries from which a calibration follows the query time."""

OWN_CUT = 2
"""Up to this many cuts the policy writes the program, for as many parts of the query time; beyond, the scheme."""


class Level(NamedTuple):
    """How far an answer is refined: cuts of the program, and cells along each axis for each of the query's."""

    cut: int
    refinement: int


Writer = Callable[[Query, int], ProgramBatch]
"""Writes programs for queries, cut that many times."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Answers of one model at any level; its own are of level (1, ``refinement``). Refined programs are cut
    ``finer_cut`` times as finely, and refined grids are ``finer_grid`` times finer."""

    own: Writer
    classical: Writer
    dictionary: Dictionary
    refinement: int
    metric: str
    finer_cut: int = CUT
    finer_grid: float = FINER

    @property
    def start(self) -> Level:
        return Level(1, self.refinement)

    def programs(self, query: Query, cut: int) -> ProgramBatch:
        return (self.own if cut <= OWN_CUT else self.classical)(query, cut)

    def run(self, query: Query, level: Level) -> Outcome:
        """States that became NaN or infinite are results."""
        programs = self.programs(query, level.cut)
        return measure(programs, self.dictionary, query, refinement=level.refinement, strict=False)

    def finer_program_than(self, level: Level) -> Level:
        return Level(self.finer_cut * level.cut, level.refinement)

    def finer_grid_than(self, level: Level) -> Level:
        return Level(level.cut, ceil(self.finer_grid * level.refinement))

    def refines_grid(self, query: Query) -> bool:
        """Whether a finer grid says something about the error: networks do not converge with it."""
        return self.converges and min(query.grid.shape) >= STENCIL

    @property
    def converges(self) -> bool:
        return all(primitive.order is not None for primitive in self.dictionary.values())

    def distance(self, states: Array, finer: Array, query: Query) -> Array:
        return errors_of(self.metric, states, finer, query)


class Gap(NamedTuple):
    """Distances (batch,) of answers to their refinement: ``total``, and to the finer ``program`` and ``grid`` alone."""

    total: Array
    program: Array
    grid: Array


@dataclass(frozen=True, eq=False)
class Runs:
    """Answers to a batch of queries at several levels. Each is computed once: ``known`` has, by level, which queries
    (batch,) have been run, and their outcome."""

    ladder: Ladder
    query: Query
    known: dict[Level, tuple[Array, Outcome]]
    _more: Array

    @classmethod
    def starting_from(cls, ladder: Ladder, query: Query, own: Outcome) -> Runs:
        return cls(ladder, query, {ladder.start: (np.ones(query.batch, dtype=bool), own)}, np.zeros(query.batch))

    def outcome(self, rows: Array, level: Level) -> Outcome:
        """States and work of some queries at a level."""
        if level not in self.known:
            blank = Outcome(np.empty_like(self.query.u0), np.zeros(self.query.batch))
            self.known[level] = np.zeros(self.query.batch, dtype=bool), blank
        done, (states, work) = self.known[level]
        new = rows[~done[rows]]
        if new.size:
            states[new], work[new] = self.ladder.run(self.query.take(new), level)
            done[new] = True
        return Outcome(states[rows], work[rows])

    def at(self, levels: Array) -> Outcome:
        """States and work of all queries, each at its own level (batch, 2)."""
        states, work = np.empty_like(self.query.u0), np.empty(self.query.batch)
        for level in map(Level._make, np.unique(levels, axis=0).tolist()):
            rows = np.flatnonzero((levels == level).all(axis=1))
            states[rows], work[rows] = self.outcome(rows, level)
        return Outcome(states, work)

    def work(self) -> Array:
        """The work of all runs together, (batch,), summed in the order of the levels whatever was run first."""
        total: Array = sum((self.known[level][1].work for level in sorted(self.known)), self._more)
        return total

    def refinements(self, level: Level) -> tuple[Level, ...]:
        """The levels whose answers make the refinement of an answer: a finer program, and a finer grid if that says
        something."""
        program, grid = self.ladder.finer_program_than(level), self.ladder.finer_grid_than(level)
        return (program, grid) if self.ladder.refines_grid(self.query) else (program,)

    def refined(self, rows: Array, level: Level) -> Array:
        """The refinement v of answers at a level; runs that are not known yet are made."""
        cut, *fine = (self.outcome(rows, finer).states for finer in self.refinements(level))
        with np.errstate(invalid="ignore", over="ignore"):
            both: Array = cut + fine[0] - self.outcome(rows, level).states if fine else cut
        return both

    def gap(self, rows: Array, level: Level) -> Gap:
        """Distances of answers to their refinement."""
        ladder, query = self.ladder, self.query.take(rows)
        own = self.outcome(rows, level).states
        program, *grid = (
            ladder.distance(own, self.outcome(rows, finer).states, query) for finer in self.refinements(level)
        )
        if grid:
            return Gap(ladder.distance(own, self.refined(rows, level), query), program, grid[0])
        # on too few cells nothing is known of the error of the grid
        unknown = np.full(rows.size, np.inf)
        return Gap(program, program, np.zeros(rows.size)) if not ladder.converges else Gap(unknown, program, unknown)

    def unseen(self, rows: Array) -> Array:
        """What no refinement removes: the effect of detail of the initial state below the width h of a cell, (batch,).

        The effect of detail between h and 2h is measured by leaving it out. It is extrapolated by the ratio of the
        details of the initial state left out at 2h and at 4h. Zero on grids that cannot be coarsened that far."""
        query = self.query.take(rows)
        if not all(n % 4 == 0 and n // 4 >= STENCIL for n in query.grid.shape):
            return np.zeros(rows.size)
        distance = self.ladder.distance
        twice, four = (_without_detail(query, factor) for factor in (2, 4))
        done = self.ladder.run(twice, self.ladder.start)
        self._more[rows] += done.work
        half, quarter = (distance(query.u0, other.u0, query) for other in (twice, four))
        ratio = np.divide(half, quarter, out=np.zeros(rows.size), where=quarter > 0)
        effect = distance(self.outcome(rows, self.ladder.start).states, done.states, query)
        return np.where(np.isfinite(effect), effect * ratio, np.inf)  # a run that failed tells nothing

    def growth(self, rows: Array, level: Level) -> tuple[Array, Array]:
        """Exponents of the work with the cuts of the program and with the refinement of the grid, (batch,) each, from
        the runs of ``gap``."""
        own = self.outcome(rows, level).work
        cut, *fine = (np.log(self.outcome(rows, finer).work / own) for finer in self.refinements(level))
        times_finer = self.ladder.finer_grid_than(level).refinement / level.refinement
        return cut / np.log(self.ladder.finer_cut), fine[0] / np.log(times_finer) if fine else np.zeros(rows.size)


def _without_detail(query: Query, factor: int) -> Query:
    """The query with an initial state that knows only the averages of ``factor`` cells along each axis."""
    grid = query.grid
    shape = tuple(n // factor for n in grid.shape)
    coarse = query.setting.with_grid(Grid(shape, grid.lengths, grid.boundary))
    averages = changed(query, u0=restrict(query.u0, shape), setting=coarse)
    return changed(query, u0=refined_query(averages, factor).u0)


@dataclass(frozen=True)
class Calibration:
    """An error that 90 % of the queries in distribution stay below: scale · exp(growth x + curvature x²) · (d + floor)
    with x = log(T / longest).

    ``growth`` and ``curvature`` are those of the 90 % quantile of error over distance with the query time T, which is
    clipped to the times of training. ``scale`` makes the fraction of the ``samples`` held-out queries right (split
    conformal). It holds for distances to programs that are cut ``finer_cut`` times as finely, and to grids that are
    ``finer_grid`` times finer.
    """

    scale: float
    growth: float
    shortest: float
    longest: float
    floor: float
    samples: int
    curvature: float = 0.0
    finer_cut: int = CUT
    finer_grid: float = FINER

    @classmethod
    def of(
        cls, errors: Array, distances: Array, times: Array, finer_cut: int = CUT, finer_grid: float = FINER
    ) -> Calibration | None:
        """The calibration on queries whose errors are known; None if too few of them are finite or take time."""
        later = times > 0
        errors, distances, times = errors[later], distances[later], times[later]
        if not errors.size or not np.isfinite(np.median(errors)):
            return None
        tiny = np.finfo(np.float64).tiny
        floor = max(UNSEEN * float(np.median(errors)), tiny)
        with np.errstate(invalid="ignore"):
            ratio = np.log(np.maximum(errors, tiny)) - np.log(distances + floor)
        ratio[np.isnan(ratio)] = -np.inf  # an infinite error with an infinite estimate
        shortest, longest = float(times.min()), float(times.max())
        x = np.log(times / longest)
        growth, curvature = _quantile_curve(x, ratio)
        rest = np.sort(ratio - growth * x - curvature * x**2)
        rank = int(np.ceil(COVERED * (rest.size + 1)))
        if rank > rest.size or not np.isfinite(rest[rank - 1]):
            return None
        scale = float(np.exp(rest[rank - 1]))
        return cls(scale, growth, shortest, longest, floor, int(rest.size), curvature, finer_cut, finer_grid)

    def bound(self, distances: Array, times: Array) -> Array:
        x = np.log(np.clip(times, self.shortest, self.longest) / self.longest)
        lasting = np.exp(self.growth * x + self.curvature * x**2)
        out: Array = np.where(times > 0, self.scale * lasting * (distances + self.floor), 0.0)
        return out


def _quantile_curve(x: Array, y: Array) -> tuple[float, float]:
    """b and c of the curve a + b x + c x² below which 90 % of y lie: argmin Σ ρ(y − a − b x − c x²) with
    ρ(r) = 0.9 r⁺ + 0.1 r⁻."""
    finite = np.isfinite(y)
    x, y = x[finite], y[finite]
    if x.size < LEAST_CURVED or np.ptp(x) < 1e-6:
        return 0.0, 0.0
    from scipy.optimize import linprog  # takes a second to import

    curve, unit = np.stack([np.ones(x.size), x, x**2], axis=1), np.eye(x.size)
    cost = np.concatenate([np.zeros(6), np.full(x.size, COVERED), np.full(x.size, 1 - COVERED)])
    found = linprog(cost, A_eq=np.hstack([curve, -curve, unit, -unit]), b_eq=y, method="highs")
    return (0.0, 0.0) if found.x is None else (float(found.x[1] - found.x[4]), float(found.x[2] - found.x[5]))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated relative errors (batch,) of answers, without a truth, in the metric that the model was trained with.

    ``error`` is calibrated so that 90 % of the queries in distribution err less, or else twice the ``distance`` to the
    refined answer, which is as large as the error in most cases. ``work`` (batch,) is what the estimate took, without
    the answer itself.
    """

    error: Array
    distance: Array
    work: Array
    calibrated: bool


def bounded(calibration: Calibration | None, distances: Array, times: Array) -> Array:
    """The estimated errors of answers by their distance to the refined ones."""
    return UNCALIBRATED * distances if calibration is None else calibration.bound(distances, times)


def estimate(ladder: Ladder, query: Query, own: Outcome, calibration: Calibration | None) -> Estimate:
    """The estimated errors of a model's own answers."""
    runs = Runs.starting_from(ladder, query, own)
    distance = runs.gap(np.arange(query.batch), ladder.start).total
    error = bounded(calibration, distance, query.time)
    return Estimate(error, distance, runs.work() - own.work, calibration is not None)


def calibrated(ladder: Ladder, held_out: Dataset) -> Calibration | None:
    """The calibration of a model's estimates on queries that it was not trained on. Programs and grids are refined less
    if the estimates took too much work otherwise."""
    count = min(held_out.query.batch, MOST_CALIBRATED)
    some = np.linspace(0, held_out.query.batch - 1, count).astype(np.int64)
    query = held_out.query.take(some)
    own = ladder.run(query, ladder.start)
    errors = errors_of(ladder.metric, own.states, held_out.truth[some], query)
    every, runs = np.arange(count), Runs.starting_from(ladder, query, own)
    few = every[:: -(-count // COSTED)]
    for finer_cut, finer_grid in ((CUT, FINER), *LESS_WORK):
        # each answer is run once
        runs = replace(runs, ladder=replace(ladder, finer_cut=finer_cut, finer_grid=finer_grid))
        work = sum(float(runs.outcome(few, level).work.sum()) for level in runs.refinements(ladder.start))
        if work <= MOST_WORK * own.work[few].sum():
            break
    return Calibration.of(errors, runs.gap(every, ladder.start).total, query.time, finer_cut, finer_grid)
