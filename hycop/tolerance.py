"""Answers to a tolerance: programs and grids are refined, query by query, until the estimated error is small enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hycop.errors import InvalidInputError
from hycop.estimation import (
    CUT,
    FINER,
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
    the smallest estimate stays. Of all runs that are then known to be within the tolerance the cheapest is the answer.
    """
    runs, climb = Runs.starting_from(ladder, query, own), Climb.of(ladder, query)
    first = runs.gap(np.arange(query.batch), ladder.start).total
    judge = Judge(calibration, query.time, first, bounded(calibration, first, query.time))
    best, error, distance = climb.level.copy(), judge.error.copy(), first.copy()
    pending = np.flatnonzero(~(error <= tol))
    unseen = np.full(query.batch, np.nan)  # of queries that are refined
    if pending.size:
        unseen[pending] = runs.unseen(pending)
    while pending.size:
        going_on = [pending[:0]]
        standing = climb.level[pending]  # a copy: queries move on while others of their level are looked at
        for level in map(Level._make, np.unique(standing, axis=0).tolist()):
            rows = pending[(standing == level).all(axis=1)]
            gap = runs.gap(rows, level)
            if level != ladder.start:
                found = np.hypot(judge.refined(rows, gap.total), unseen[rows])
                kept = found < error[rows]
                error[rows[kept]], distance[rows[kept]], best[rows[kept]] = found[kept], gap.total[kept], level
                gap, rows = Gap(*(each[found > tol] for each in gap)), rows[found > tol]
            if rows.size:
                allowed = judge.allowed(rows, tol**2 - unseen[rows] ** 2)
                going_on.append(climb.advance(rows, level, gap, runs.growth(rows, level), allowed))
        pending = np.concatenate(going_on)
    made = Estimate(error, distance, runs.work(), calibration is not None)
    return _cheapest(runs, Reached(best, runs.at(best), made), tol)


def _cheapest(runs: Runs, found: Reached, tol: float) -> Reached:
    """Takes the cheapest run that is known to be within the tolerance. With an answer v of estimated error, that of a
    cheaper run w is better known than when w was judged: ‖w − u‖ ≤ ‖w − v‖ + ‖v − u‖."""
    levels, (states, work), made = found.levels.copy(), found.outcome, found.estimate
    least, error, distance = work.copy(), made.error.copy(), made.distance.copy()
    for level, (done, known) in runs.known.items():
        rows = np.flatnonzero(done & (made.error <= tol) & (known.work < least))
        if not rows.size:
            continue
        away = runs.ladder.distance(known.states[rows], states[rows], runs.query.take(rows))
        near = away + made.error[rows] <= tol
        rows, away = rows[near], away[near]
        levels[rows], least[rows] = level, known.work[rows]
        error[rows], distance[rows] = away + made.error[rows], away
    return Reached(levels, runs.at(levels), Estimate(error, distance, made.work - least, made.calibrated))


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

    def allowed(self, rows: Array, squares: Array) -> Array:
        """The largest distances whose estimates have these squares; negative if there are none."""
        tol, times = np.sqrt(np.maximum(squares, 0.0)), self.times[rows]
        zero, one = (bounded(self.calibration, np.full(rows.size, value), times) for value in (0.0, 1.0))
        plain = np.divide(tol - zero, one - zero, out=np.full(rows.size, np.inf), where=one > zero)
        return np.where(squares > 0, np.fmax(plain, tol / self._multiple(rows)), -1.0)

    def _multiple(self, rows: Array) -> Array:
        distance, error = self.distance[rows], self.error[rows]
        known = np.isfinite(distance) & (distance > 0)
        return np.divide(error, distance, out=np.full(rows.size, np.inf), where=known)


@dataclass(frozen=True, eq=False)
class Climb:
    """Where each query stands on the ladder, and the order of its grid: NaN until two grids have been tried."""

    levels: tuple[Level, ...]
    level: Array
    order: Array
    coarser: Array
    """The grid and the distance to a finer one, at the last grid before this, (batch, 2)."""

    @classmethod
    def of(cls, ladder: Ladder, query: Query) -> Climb:
        unknown = np.full(query.batch, np.nan)
        levels = levels_of(ladder, query)
        return cls(levels, np.tile(levels[0], (query.batch, 1)), unknown, np.full((query.batch, 2), np.nan))

    def advance(self, rows: Array, level: Level, gap: Gap, growth: tuple[Array, Array], allowed: Array) -> Array:
        """Moves queries at one level to the next; returns those that moved."""
        self._measure(rows, level, gap)
        order = self.order[rows, None]
        cuts, grids = np.array(self.levels).T
        cut, finer = cuts / level.cut, grids / level.refinement
        gain = np.array([_program_gain(one) for one in cuts]) / _program_gain(level.cut)
        above = (finer > 1) | ((finer == 1) & (cut > 1))  # a finer grid may need fewer cuts
        cost = np.where(above, cut ** growth[0][:, None] * finer ** growth[1][:, None], np.inf)

        def reaching(order: Array) -> Array:
            with np.errstate(divide="ignore", invalid="ignore"):  # where a refinement failed, or changed nothing
                share = (gap.total / (gap.program + gap.grid))[:, None]
                expected = share * (gap.program[:, None] / gain + gap.grid[:, None] / finer**order)
                return np.asarray(np.isfinite(cost) & (expected <= allowed[:, None]))

        near = reaching(np.where(np.isnan(order), EXPECTED_ORDER, order))
        hoped = (np.isnan(order) & reaching(np.full_like(order, BEST_ORDER))).any(axis=1)
        following = np.array(self.levels)[np.argmin(np.where(near, cost, np.inf), axis=1)]
        found = near.any(axis=1)
        # a finer grid is known already, and shows the order
        known = Level(level.cut, FINER * level.refinement)
        if known in self.levels:
            following[~found & hoped] = known
            found |= hoped
        self.level[rows[found]] = following[found]
        return rows[found]

    def _measure(self, rows: Array, level: Level, gap: Gap) -> None:
        grid, before = self.coarser[rows].T
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = np.log(before / gap.grid) / np.log(level.refinement / grid)
        finer = level.refinement > grid
        self.order[rows[finer]] = np.clip(seen[finer], LEAST_ORDER, BEST_ORDER)
        self.coarser[rows] = np.stack([np.full(rows.size, level.refinement), gap.grid], axis=1)


def _program_gain(cut: int) -> float:
    """By how much a cut lowers the error of the composition."""
    return 1.0 if cut == 1 else 1.6 if cut == OWN_CUT else 6.0 * (cut / CUT) ** 2
