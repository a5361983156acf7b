"""
A diffusivity that varies in space, and walls with values
=========================================================

Heat in a wall of two layers: u = 1 on the left, u = 0 on the right, a layer that conducts well and one that hardly
does. A coefficient that is given with the shape of the grid is a field; a boundary may hold a value or a slope.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.references import VariableReference

CELLS, TIME = 96, 2.0
grid = hycop.Grid.box((CELLS,), lengths=1.0, boundary=[(hycop.Dirichlet(1.0), hycop.Dirichlet(0.0))])
x = grid.centres()[0][0]
conductivity = np.where(x < 0.5, 0.5, 0.05)
wind = 0.2 * np.sin(np.pi * x)
setting = hycop.Setting(grid, ("u",), {"Dx": conductivity, "cx": wind})

# %%
# ``MusclAdvection`` and ``VariableDiffusion`` can use fields and values at the ends; others refuse them by name.
dictionary = hycop.Dictionary(
    {"advection": hycop.primitives.MusclAdvection(), "diffusion": hycop.primitives.VariableDiffusion()}
)
start = hycop.Query(np.zeros((1, 1, CELLS)), setting, np.zeros(1))
query = start.at([0.1, 0.5, TIME])

# %%
# The truth is a solver that shares no code with the primitives: sparse matrices, and SciPy's BDF in time. Next to a
# value that is held a splitting of wind and diffusion loses some of its order, so it takes more substeps.
reference = VariableReference(frozenset({"advection", "diffusion"}), refinement=2)
truth = reference.flow(query.u0, query.time, query.setting)
for name in ("strang x4", "strang x16", "strang x64"):
    states = hycop.run(hycop.splitting(name).programs(query, dictionary), dictionary, query)
    errors = np.abs(states - truth).max(axis=(1, 2))
    print(f"{name:10}", *(f"t = {time:g}: {error:.1e}" for time, error in zip(query.time, errors, strict=True)))

# %%
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.axvspan(0.5, 1.0, color="0.93")
for time, one, other, colour in zip(query.time, states, truth, ("#4477aa", "#e08a1e", "#228833"), strict=True):
    axes.plot(x, other[0], color="0.2", linewidth=3, alpha=0.25)
    axes.plot(x, one[0], color=colour, label=f"t = {time:g}")
axes.set(xlabel="x", ylabel="u", title="Two layers, with the values 1 and 0 at the ends (wide lines: truth)")
axes.legend(frameon=False)
plt.show()
