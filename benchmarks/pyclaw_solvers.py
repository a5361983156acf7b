"""PyClaw and SharpClaw (Ketcheson et al. 2012) as opponents: shallow water in a plane by their Fortran solvers, on
grids finer and finer. The initial state is reconstructed as HyCOP does it. PyClaw's solvers are set up beforehand;
SharpClaw's work arrays exist once, so that it is set up for every sample."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import needed
from hycop.execution import refined_query
from hycop.grid import Array, restrict
from hycop.query import Query

HOW = "pip install -c constraints.txt clawpack (which needs gfortran and takes minutes)"


def imported() -> tuple[Any, Any]:
    """PyClaw and its Riemann solvers. It opens pyclaw.log in the folder in which it is first imported: let that be one
    that is thrown away."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            pyclaw = needed("clawpack.pyclaw", HOW)
        finally:
            os.chdir(before)
    logging.getLogger("pyclaw").setLevel(logging.CRITICAL)
    return pyclaw, needed("clawpack.riemann", HOW)


@dataclass(frozen=True)
class PyClaw:
    """Wave propagation with the monotonised central limiter (or, ``sharp``, WENO5 with Runge–Kutta), Roe's solver with
    an entropy fix. A level is how many times finer than the query its grid is."""

    sharp: bool = False
    levels: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16)

    @property
    def name(self) -> str:
        return "SharpClaw" if self.sharp else "PyClaw"

    def solver(self, level: int, query: Query) -> Callable[[], Array]:
        fine = query if level == 1 else refined_query(query, level)
        each = [self._one(fine.take(slice(sample, sample + 1))) for sample in range(query.batch)]

        def solve() -> Array:
            states = np.stack([call() for call in each])
            return states if level == 1 else restrict(states, query.grid.shape)

        return solve

    def _one(self, query: Query) -> Callable[[], Array]:
        pyclaw, riemann = imported()
        lengths, u0, time = query.grid.lengths[0], query.u0[0], float(query.time[0])
        axes = [
            pyclaw.Dimension(0.0, float(length), cells, name=name)
            for name, length, cells in zip("xy", lengths, query.grid.shape, strict=True)
        ]
        domain = pyclaw.Domain(axes)
        state = pyclaw.State(domain, 3)
        state.problem_data["grav"] = g = float(query.setting.param("g")[0])
        solution = pyclaw.Solution(state, domain)
        fastest = np.sqrt(g * u0[0].max()) + float(np.abs(u0[1:] / u0[:1]).max())
        first = 0.5 * float(min(query.grid.spacing[0])) / fastest
        kept = None if self.sharp else self._set_up(pyclaw, riemann, query)

        def solve() -> Array:
            solver = self._set_up(pyclaw, riemann, query) if kept is None else kept
            solution.state.q[:] = u0
            solution.t, solver.dt = 0.0, first
            if solver.fmod is not None:  # all solvers share the Fortran block of coefficients
                solution.state.set_cparam(solver.fmod)
                solution.state.set_cparam(solver.rp)
            solver.evolve_to_time(solution, time)
            return np.array(solution.state.q)

        return solve

    def _set_up(self, pyclaw: Any, riemann: Any, query: Query) -> Any:
        make = pyclaw.SharpClawSolver2D if self.sharp else pyclaw.ClawSolver2D
        solver = make(riemann.shallow_roe_with_efix_2D)
        if self.sharp:
            solver.time_integrator = "SSP33"
            solver.cfl_desired, solver.cfl_max = 0.6, 0.7
        else:
            solver.limiters = pyclaw.limiters.tvd.MC
            solver.dimensional_split = False  # the sweeps of PyClaw are of first order
            solver.cfl_desired, solver.cfl_max = 0.9, 1.0
        for axis, boundary in enumerate(query.grid.boundary):
            kind = pyclaw.BC.periodic if boundary == "periodic" else pyclaw.BC.wall
            solver.bc_lower[axis] = solver.bc_upper[axis] = kind
        solver.max_steps = 10**6
        return solver
