"""
Shallow water in the plane, on three grids
==========================================

Programs do not know the grid. The same program runs on 24², 32² and 48² cells, and its error falls with the
cell width until the splitting is what is left.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.metrics import rel_l2
from hycop.plots import draw_difference, draw_states

problem = hycop.problem("swe2d")
program = hycop.splitting("strang x2")
muscl = problem.dictionaries["muscl"]
shown, errors = {}, {}
for cells in (24, 32, 48):
    data = problem.sample(2, split="id", seed=6, shape=(cells, cells), estimated=0)
    states = hycop.run(program.programs(data.query, muscl), muscl, data.query)
    errors[cells] = float(rel_l2(states, data.truth, data.setting).mean())
    print(f"{cells} x {cells}: error {errors[cells]:.2e}")

# %%
figure, panels = plt.subplots(1, 4, figsize=(10, 2.7), layout="constrained")
lengths = [float(each) for each in data.setting.grid.lengths[0]]
fields = {"initial depth": data.query.u0[0, 0], "truth": data.truth[0, 0], "Strang x2": states[0, 0]}
draw_states(panels[:3], fields, lengths)
draw_difference(panels[3], states[0, 0] - data.truth[0, 0], lengths, "difference")
plt.show()
