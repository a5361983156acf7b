"""Steps in time for a stiff system w' = F(w): stabilised Runge–Kutta–Chebyshev, and third order where nothing is stiff.

Sommeijer, Shampine & Verwer, J. Comput. Appl. Math. 88 (1998) 315: second order, and s stages are stable up to a
damping of about s²/3 along the negative axis, where s explicit steps reach 2 s. The damping parameter is as large as
Verwer, Sommeijer & Hundsdorfer (J. Comput. Phys. 201 (2004) 61) take for advection with diffusion: it widens the stable
strip and damps what the grid does not resolve.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numba
import numpy as np

from hycop.grid import Array

DAMPING = 10.0
FEWEST_STAGES = 4
STABLE = 0.348
"""Length of the stable interval over the square of many stages."""

Rate = Callable[[Array, Array], bool]
"""(state, out) → whether the state is valid; fills ``out`` with its rate of change."""


@cache
def chebyshev_weights(stages: int) -> tuple[Array, float]:
    """Weights (stages + 1, 5) of w, of the two stages before, of h F before and of h F(w); and the stable interval.

    Chebyshev polynomials T_j and their derivatives at 1 + ε/s², by recurrence.
    """
    centre = 1.0 + DAMPING / stages**2
    t, dt, ddt = np.ones(stages + 1), np.zeros(stages + 1), np.zeros(stages + 1)
    t[1], dt[1] = centre, 1.0
    for j in range(2, stages + 1):
        t[j] = 2.0 * centre * t[j - 1] - t[j - 2]
        dt[j] = 2.0 * centre * dt[j - 1] - dt[j - 2] + 2.0 * t[j - 1]
        ddt[j] = 2.0 * centre * ddt[j - 1] - ddt[j - 2] + 4.0 * dt[j - 1]
    slope = dt[stages] / ddt[stages]
    b = np.empty(stages + 1)
    b[2:] = ddt[2:] / dt[2:] ** 2
    b[:2] = b[2]
    weights = np.zeros((stages + 1, 5))
    weights[1] = 1.0, 0.0, 0.0, 0.0, b[1] * slope
    for j in range(2, stages + 1):
        before, earlier = 2.0 * b[j] * centre / b[j - 1], -b[j] / b[j - 2]
        rate = 2.0 * b[j] * slope / b[j - 1]
        weights[j] = 1.0 - before - earlier, before, earlier, rate, -(1.0 - b[j - 1] * t[j - 1]) * rate
    return weights, float((centre + 1.0) / slope)


def stages_for(damping: float) -> int:
    """The fewest stages that are stable for ``damping``, a step times the fastest rate of decay."""
    stages = FEWEST_STAGES
    while chebyshev_weights(stages)[1] < damping:
        stages += 1
    return stages


@numba.njit(cache=True, nogil=True)
def combine(out, weights, start, before, earlier, rate, first):  # type: ignore[no-untyped-def]
    """out = a·start + b·before + c·earlier + d·rate + e·first, value by value."""
    a, b, c, d, e = weights
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                known = a * start[k, i, j] + b * before[k, i, j] + c * earlier[k, i, j]
                out[k, i, j] = known + d * rate[k, i, j] + e * first[k, i, j]


class Stepper:
    """Takes steps of states of one shape, in arrays of its own."""

    def __init__(self, rate: Rate, like: Array) -> None:
        self._rate = rate
        self._stages = [np.empty_like(like) for _ in range(3)]
        self._change = np.empty_like(like)

    def chebyshev(self, w: Array, first: Array, h: float, damping: float) -> bool:
        """One step of w, in place, given its rate of change; whether every stage is valid.

        ``damping`` is h times the fastest rate of decay.
        """
        stages = stages_for(damping)
        weights = chebyshev_weights(stages)[0] * np.array([1.0, 1.0, 1.0, h, h])
        before, earlier, later = self._stages
        earlier[:] = w
        combine(before, tuple(weights[1]), w, w, w, first, first)
        for j in range(2, stages + 1):
            if not self._rate(before, self._change):
                return False
            combine(later, tuple(weights[j]), w, before, earlier, self._change, first)
            before, earlier, later = later, before, earlier
        w[:] = before
        return True

    def third_order(self, w: Array, first: Array, h: float) -> bool:
        """The same by Shu & Osher's explicit method (1988)."""
        stage, later, _ = self._stages
        combine(stage, (1.0, 0.0, 0.0, 0.0, h), w, w, w, first, first)
        if not self._rate(stage, self._change):
            return False
        combine(later, (0.75, 0.25, 0.0, h / 4.0, 0.0), w, stage, w, self._change, first)
        if not self._rate(later, self._change):
            return False
        combine(w, (1.0 / 3.0, 2.0 / 3.0, 0.0, 2.0 * h / 3.0, 0.0), w, later, w, self._change, first)
        return True
