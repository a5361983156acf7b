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
    the smallest estimate stays.
    """
    runs, climb = Runs.starting_from(ladder, query, own), Climb.of(ladder, query)
    best = np.tile(climb.level[:1], (query.batch, 1))
    error, distance = np.full((2, query.batch), np.inf)
    pending = np.arange(query.batch)
    unseen = np.full(query.batch, np.nan)  # of queries that are refined
    while pending.size:
        going_on = [pending[:0]]
        for level in map(Level._make, np.unique(climb.level[pending], axis=0).tolist()):
            rows = pending[(climb.level[pending] == level).all(axis=1)]
            gap, times = runs.gap(rows, level), query.time[rows]
            total = gap.total if level == ladder.start else np.hypot(gap.total, unseen[rows])
            found = bounded(calibration, total, times)
            kept = found < error[rows]
            error[rows[kept]], distance[rows[kept]], best[rows[kept]] = found[kept], total[kept], level
            more = rows[found > tol]
            if not more.size:
                continue
            if level == ladder.start:
                unseen[more] = runs.unseen(more)
            allowed = _allowed_distance(calibration, tol, query.time[more], unseen[more])
            part = Gap(*(each[found > tol] for each in gap))
            going_on.append(climb.advance(more, level, part, runs.growth(more, level), allowed))
        pending = np.concatenate(going_on)
    states, work = np.empty_like(query.u0), np.empty(query.batch)
    for level in map(Level._make, np.unique(best, axis=0).tolist()):
        rows = np.flatnonzero((best == level).all(axis=1))
        states[rows], work[rows] = runs.outcome(rows, level)
    made = Estimate(error, distance, runs.work() - work, calibration is not None)
    return Reached(best, Outcome(states, work), made)


def _allowed_distance(calibration: Calibration | None, tol: float, times: Array, unseen: Array) -> Array:
    """The largest distance to a refinement with an estimated error of ``tol``; negative if there is none."""
    zero, one = (bounded(calibration, np.full(times.size, value), times) for value in (0.0, 1.0))
    allowed = np.divide(tol - zero, one - zero, out=np.full(times.size, np.inf), where=one > zero)
    out: Array = np.where(allowed > unseen, np.sqrt(np.maximum(allowed**2 - unseen**2, 0.0)), -1.0)
    return out


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
        above = (cut >= 1) & (finer >= 1) & (cut * finer > 1)
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
