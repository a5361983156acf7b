"""PyClaw as a primitive: advection of a line by Clawpack's second-order wave propagation.

python examples/foreign_pyclaw.py        needs Clawpack (https://www.clawpack.org)
"""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import hycop
from hycop.primitives import ForeignFunction, MusclAdvection
from hycop.primitives.examples import line_example


def import_pyclaw():
    """PyClaw opens pyclaw.log in the folder in which it is first imported: let that be one that is thrown away."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            from clawpack import pyclaw, riemann
        finally:
            os.chdir(before)
    return pyclaw, riemann


def advect(u, duration, setting):
    """u_t + cx u_x = 0 for one sample (1, 1, x), on a periodic line."""
    pyclaw, riemann = import_pyclaw()
    solver = pyclaw.ClawSolver1D(riemann.advection_1D)  # Fortran
    solver.limiters = pyclaw.limiters.tvd.MC
    solver.bc_lower[0] = solver.bc_upper[0] = pyclaw.BC.periodic
    cells, length = u.shape[2], float(setting.grid.lengths[0, 0])
    domain = pyclaw.Domain(pyclaw.Dimension(0.0, length, cells, name="x"))
    state = pyclaw.State(domain, 1)
    speed = state.problem_data["u"] = float(setting.param("cx")[0])
    state.q[0] = u[0, 0]
    solution = pyclaw.Solution(state, domain)
    solver.dt_initial = solver.cfl_desired * length / cells / max(abs(speed), 1e-12)
    solver.evolve_to_time(solution, float(duration[0]))
    return solution.state.q[None].copy()


def example(seed):
    u, setting = line_example(seed)
    return u, hycop.Setting(setting.grid, setting.channels, {"cx": 1.0})


def main() -> None:
    if find_spec("clawpack") is None:
        print("clawpack is not installed: nothing to run")
        return
    primitive = ForeignFunction(
        function=advect, advances={"advection"}, conserves={"u"}, boundaries={"periodic"}, work_per_cell=100.0
    )
    print(hycop.check_primitive(primitive.with_example(example)))
    problem = hycop.problem("ad1d")
    data = problem.sample(16, split="id", seed=0)
    for name, advection in {"PyClaw": primitive, "our MUSCL": MusclAdvection()}.items():
        dictionary = problem.dictionary.swapping("advection", advection)
        programs = hycop.splitting("strang x4").programs(data.query, dictionary)
        states = hycop.run(programs, dictionary, data.query)
        errors = hycop.metrics.rel_l2(states, data.truth, data.query.setting)
        print(f"Strang splitting x4 with {name} for advection: error {np.mean(errors):.2e}")


if __name__ == "__main__":
    main()
