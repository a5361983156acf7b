"""Answers to a tolerance: programs and grids are refined, query by query, until the estimated error is small enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hycop.errors import InvalidInputError
from hycop.estimation import (
    CUT,
    OWN_CUT,
    Calibration,
    Estimate,
    Gap,
    Ladder,
    Level,
    Runs,
    bounded,
)
from hycop.execution import Outcome
from hycop.grid import Array
from hycop.query import Query

CUTS = (1, OWN_CUT, 4, 8, 16, 32, 64)
GRIDS = (1, 1.5, 2, 3, 4, 6, 8)
MOST_FINER = {1: 8, 2: 4, 3: 2}
"""Refinements of answers to a tolerance: cuts of programs, and cells along an axis relative to the model's own, where
these are whole; the most of them by number of axes."""

LEAST_ORDER, EXPECTED_ORDER, BEST_ORDER = 0.5, 4.0, 5.0
"""Orders of convergence with the grid: at least and at most that measured; and that expected before it is."""

LIKELY_UNSEEN = 0.5
"""Fraction of the estimated effect of detail below a cell that is added to other errors. Where that effect is above
5e-5, the errors of the finest answers to fresh queries of ``swe1d`` and ``burgers1d`` were 0.3 of it in the median, and
0.3 to 1 of it at 90 %. Smaller effects may be estimated too small, but then other errors are larger."""

HOPE = 1.5
"""Cheaper levels are tried if their expected distance to a known answer is up to this many times what is allowed."""


def levels_of(ladder: Ladder, query: Query) -> tuple[Level, ...]:
    """The levels of answers to a tolerance, the model's own first."""
    most = MOST_FINER[query.grid.axes] if ladder.refines_grid(query) else 1
    grids = [ladder.refinement * factor for factor in GRIDS if factor <= most]
    return tuple(Level(cut, int(grid)) for grid in grids if grid == int(grid) for cut in CUTS)


def checked_tolerance(tol: object, name: str = "tol") -> float:
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.integer | np.floating) or not 0 < tol < np.inf:
        raise InvalidInputError(f"{name} is {tol!r}: a relative error above zero is needed, as 1e-3")
    return float(tol)


class Reached(NamedTuple):
    """Answers to a tolerance: the level (batch, 2) of each, its states and work, and its estimate."""

    levels: Array
    outcome: Outcome
    estimate: Estimate


def to_tolerance(ladder: Ladder, query: Query, own: Outcome, calibration: Calibration | None, tol: float) -> Reached:
    """Refines each query's program and grid until its estimated error is at most ``tol``.

    Each estimate also says what part of the error a finer program and a finer grid would remove, and how much work they
    would take. The next level is the cheapest that is expected to reach the tolerance. Where none is, the answer with
    the smallest estimate stays. From a level that reaches it, ``Descent`` goes back to the cheapest that does.
    """
    runs, climb = Runs.starting_from(ladder, query, own), Climb.of(ladder, query)
    first = runs.gap(np.arange(query.batch), ladder.start).total
    judge = Judge(calibration, query.time, first, bounded(calibration, first, query.time))
    best, error, distance = climb.level.copy(), judge.error.copy(), first.copy()
    pending = np.flatnonzero(~(error <= tol))
    unseen = np.zeros(query.batch)  # of queries that are refined
    if pending.size:
        unseen[pending] = runs.unseen(pending)
    while pending.size:
        going_on = [pending[:0]]
        # a copy: queries move on while others of their level are looked at
        for level, rows in _by_level(pending, climb.level.copy()):
            gap = runs.gap(rows, level)
            climb.measure(rows, level, gap)
            if level != ladder.start:
                found = _with_unseen(judge.refined(rows, gap.total), unseen[rows])
                kept = found < error[rows]
                error[rows[kept]], distance[rows[kept]], best[rows[kept]] = found[kept], gap.total[kept], level
                gap, rows = Gap(*(each[found > tol] for each in gap)), rows[found > tol]
            if rows.size:
                allowed = judge.allowed(rows, _room(tol, unseen[rows]))
                going_on.append(climb.advance(rows, level, gap, runs.growth(rows, level), allowed))
        pending = np.concatenate(going_on)
    descent = Descent(runs, tol, unseen, best, runs.at(best).work, error, distance)
    refined = (best != ladder.start).any(axis=1)
    for level, rows in _by_level(np.flatnonzero(refined & (error <= tol)), best.copy()):
        descent.start_from(rows, level, judge, climb)
    made = Estimate(error, distance, runs.work() - descent.work, calibration is not None)
    return Reached(best, runs.at(best), made)


def _by_level(rows: Array, levels: Array) -> list[tuple[Level, Array]]:
    """The levels (batch, 2) of some queries, and which of these queries stand there."""
    there = levels[rows]
    return [(Level(*level), rows[(there == level).all(axis=1)]) for level in np.unique(there, axis=0).tolist()]


def _with_unseen(error: Array, unseen: Array) -> Array:
    """Estimated errors together with the effect of detail below a cell."""
    return np.maximum(np.hypot(error, LIKELY_UNSEEN * unseen), unseen)


def _room(tol: float, unseen: Array) -> Array:
    """The largest errors that are within the tolerance together with the effect of detail below a cell; −1 if none."""
    with np.errstate(invalid="ignore"):
        return np.where(unseen <= tol, np.sqrt(np.maximum(tol**2 - (LIKELY_UNSEEN * unseen) ** 2, 0.0)), -1.0)


@dataclass(frozen=True, eq=False)
class Descent:
    """Goes back from refined answers that are within the tolerance to the cheapest that are: their levels (batch, 2),
    and work, estimated error and distance to a finer answer, (batch,) each.

    The refinement v of an answer tells the error of any coarser answer w, and better than the refinement of w does:
    ‖w − u‖ ≤ ‖w − v‖ + ‖v − u‖. The last part is taken to be what the estimate of the refined answer adds to its
    distance to v; as the calibration itself, that is no bound for every query. Trying w takes one run that costs less
    than the answer, and no refinement of w.
    """

    runs: Runs
    tol: float
    unseen: Array
    levels: Array
    work: Array
    error: Array
    distance: Array

    def start_from(self, rows: Array, level: Level, judge: Judge, climb: Climb) -> None:
        """Looks for answers that are cheaper than those at a level, the runs known already first."""
        runs, gap = self.runs, self.runs.gap(rows, level)
        finer = np.empty_like(runs.query.u0)
        finer[rows] = runs.refined(rows, level)
        margin = np.zeros(runs.query.batch)
        margin[rows] = np.abs(judge.refined(rows, gap.total) - gap.total)
        cost = climb.cost(level, runs.growth(rows, level)) * self.work[rows, None]
        for known in sorted(runs.known):
            self._try(rows[runs.known[known][0][rows]], known, finer, margin)
        allowed = _room(self.tol, self.unseen[rows]) - margin[rows]
        promising = climb.expected(level, gap, climb.orders(rows)) <= HOPE * allowed[:, None]
        levels = np.array(climb.levels)
        while True:
            promising &= cost < self.work[rows, None]
            left = promising.any(axis=1)
            if not left.any():
                return
            rows, cost, promising = rows[left], cost[left], promising[left]
            choice = np.argmin(np.where(promising, cost, np.inf), axis=1)
            for index in np.unique(choice).tolist():
                here = np.flatnonzero(choice == index)
                taken = self._try(rows[here], climb.levels[index], finer, margin)
                promising[here[taken]] = False  # all that are left cost more
                coarser = (levels <= levels[index]).all(axis=1)
                promising[np.ix_(here[~taken], coarser)] = False

    def _try(self, rows: Array, level: Level, finer: Array, margin: Array) -> Array:
        """Takes the answers at a level that are within the tolerance and cheaper; returns which, (rows,)."""
        if not rows.size:
            return np.zeros(0, dtype=bool)
        states, work = self.runs.outcome(rows, level)
        away = self.runs.ladder.distance(states, finer[rows], self.runs.query.take(rows))
        error = _with_unseen(away + margin[rows], self.unseen[rows])
        taken: Array = (error <= self.tol) & (work < self.work[rows])
        some = rows[taken]
        self.levels[some], self.work[some] = level, work[taken]
        self.error[some], self.distance[some] = error[taken], away[taken]
        return taken


@dataclass(frozen=True, eq=False)
class Judge:
    """Estimated errors of refined answers by their distance to a refinement, beside those of the model's own answers:
    ``distance`` and ``error``, (batch,) each.

    An estimate is that of the calibration, or that of the own answer in proportion to the distance if this is less:
    what a calibration adds to every distance is for the model's own errors and falls with them.
    """

    calibration: Calibration | None
    times: Array
    distance: Array
    error: Array

    def refined(self, rows: Array, distances: Array) -> Array:
        plain = bounded(self.calibration, distances, self.times[rows])
        return np.fmin(plain, self._multiple(rows) * distances)

    def allowed(self, rows: Array, errors: Array) -> Array:
        """The largest distances whose estimates are these errors; negative if there are none."""
        tol, times = np.maximum(errors, 0.0), self.times[rows]
        zero, one = (bounded(self.calibration, np.full(rows.size, value), times) for value in (0.0, 1.0))
        plain = np.divide(tol - zero, one - zero, out=np.full(rows.size, np.inf), where=one > zero)
        return np.where(errors > 0, np.fmax(plain, tol / self._multiple(rows)), -1.0)

    def _multiple(self, rows: Array) -> Array:
        distance, error = self.distance[rows], self.error[rows]
        known = np.isfinite(distance) & (distance > 0)
        return np.divide(error, distance, out=np.full(rows.size, np.inf), where=known)


@dataclass(frozen=True, eq=False)
class Climb:
    """Where each query stands on the ladder, and the order of its grid: NaN until two grids have been tried."""

    ladder: Ladder
    levels: tuple[Level, ...]
    level: Array
    order: Array
    coarser: Array
    """The grid and the distance to a finer one, at the last grid before this, (batch, 2)."""

    @classmethod
    def of(cls, ladder: Ladder, query: Query) -> Climb:
        unknown = np.full(query.batch, np.nan)
        levels = levels_of(ladder, query)
        return cls(ladder, levels, np.tile(levels[0], (query.batch, 1)), unknown, np.full((query.batch, 2), np.nan))

    def advance(self, rows: Array, level: Level, gap: Gap, growth: tuple[Array, Array], allowed: Array) -> Array:
        """Moves queries at one level to the next; returns those that moved."""
        cuts, grids = np.array(self.levels).T
        # a finer grid may need fewer cuts
        above = (grids > level.refinement) | ((grids == level.refinement) & (cuts > level.cut))
        cost = np.where(above, self.cost(level, growth), np.inf)

        def reaching(order: Array) -> Array:
            return np.asarray(np.isfinite(cost) & (self.expected(level, gap, order) <= allowed[:, None]))

        near = reaching(self.orders(rows))
        hoped = np.isnan(self.order[rows]) & reaching(np.full(rows.size, BEST_ORDER)).any(axis=1)
        following = np.array(self.levels)[np.argmin(np.where(near, cost, np.inf), axis=1)]
        found = near.any(axis=1)
        # a finer grid is known already, and shows the order
        known = self.ladder.finer_grid_than(level)
        if known in self.levels:
            following[~found & hoped] = known
            found |= hoped
        self.level[rows[found]] = following[found]
        return rows[found]

    def cost(self, level: Level, growth: tuple[Array, Array]) -> Array:
        """Work of all levels relative to one of them, by its exponents, (rows, levels)."""
        cuts, grids = np.array(self.levels).T
        with_cuts, with_grid = growth
        out: Array = (cuts / level.cut) ** with_cuts[:, None] * (grids / level.refinement) ** with_grid[:, None]
        return out

    def expected(self, level: Level, gap: Gap, order: Array) -> Array:
        """Expected distances of all levels to a refinement, by those of one of them, (rows, levels)."""
        cuts, grids = np.array(self.levels).T
        gain = np.array([_program_gain(cut) for cut in cuts]) / _program_gain(level.cut)
        finer = (grids / level.refinement) ** order[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # where a refinement failed, or changed nothing
            share = (gap.total / (gap.program + gap.grid))[:, None]
            return np.asarray(share * (gap.program[:, None] / gain + gap.grid[:, None] / finer))

    def orders(self, rows: Array) -> Array:
        """Orders of convergence with the grid, as measured or else as expected."""
        return np.where(np.isnan(self.order[rows]), EXPECTED_ORDER, self.order[rows])

    def measure(self, rows: Array, level: Level, gap: Gap) -> None:
        """Measures the order where a coarser grid has been tried."""
        grid, before = self.coarser[rows].T
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = np.log(before / gap.grid) / np.log(level.refinement / grid)
        finer = level.refinement > grid
        self.order[rows[finer]] = np.clip(seen[finer], LEAST_ORDER, BEST_ORDER)
        self.coarser[rows] = np.stack([np.full(rows.size, level.refinement), gap.grid], axis=1)


def _program_gain(cut: int) -> float:
    """By how much a cut lowers the error of the composition."""
    return 1.0 if cut == 1 else 1.6 if cut == OWN_CUT else 6.0 * (cut / CUT) ** 2
