"""PyClaw as a primitive: advection of a line by Clawpack's second-order wave propagation.

python examples/foreign_pyclaw.py        needs Clawpack (https://www.clawpack.org)
"""

from importlib.util import find_spec

import numpy as np

import hycop
from hycop.primitives import ForeignFunction
from hycop.primitives.examples import line_example


def advect(u, duration, setting):
    """u_t + cx u_x = 0 for one sample (1, 1, x), on a periodic line."""
    from clawpack import pyclaw, riemann

    solver = pyclaw.ClawSolver1D(riemann.advection_1D_py.advection_1D)
    solver.kernel_language = "Python"
    solver.bc_lower[0] = solver.bc_upper[0] = pyclaw.BC.periodic
    cells, length = u.shape[2], float(setting.grid.lengths[0, 0])
    domain = pyclaw.Domain(pyclaw.Dimension(0.0, length, cells, name="x"))
    state = pyclaw.State(domain, 1)
    state.problem_data["u"] = float(setting.param("cx")[0])
    state.q[0] = u[0, 0]
    solution = pyclaw.Solution(state, domain)
    solver.dt_initial = 0.5 * length / cells / max(abs(state.problem_data["u"]), 1e-12)
    solver.evolve_to_time(solution, float(duration[0]))
    return solution.state.q[None].copy()


def example(seed):
    u, setting = line_example(seed)
    return u, hycop.Setting(setting.grid, setting.channels, {"cx": 1.0})


def main() -> None:
    if find_spec("clawpack") is None:
        print("clawpack is not installed: nothing to run")
        return
    primitive = ForeignFunction(function=advect, advances={"advection"}, boundaries={"periodic"}, work_per_cell=100.0)
    print(hycop.check_primitive(primitive.with_example(example)))
    u, setting = example(0)
    exact = hycop.primitives.SpectralAdvection().flow(u, np.full(3, 0.1), setting)
    print("largest error", float(np.abs(primitive.flow(u, np.full(3, 0.1), setting) - exact).max()))


if __name__ == "__main__":
    main()
