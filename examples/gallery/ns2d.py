"""
Compressible Navier–Stokes in PDEBench's setting
================================================

``ns2d`` is the compressible gas of PDEBench: density, velocity and pressure. Euler steps alternate with exact
viscous steps. Which primitive comes first matters as much as the number of steps.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.plots import draw_difference, draw_states

problem = hycop.problem("ns2d")
data = problem.sample(2, split="id", seed=0, shape=(32, 32), estimated=0)
print(f"T = {data.query.time[0]:.3g}, channels: {', '.join(channel.name for channel in problem.channels)}")

# %%
states, truth = {}, data.truth
for name in ("lie x8", "strang x4", "strang x8"):
    programs = hycop.splitting(name).programs(data.query, problem.dictionary)
    states[name] = hycop.run(programs, problem.dictionary, data.query)
    error = hycop.metrics.rel_l2(states[name], truth, data.setting).mean()
    print(f"{name:10} error {error:.2e}")

# %%
figure, panels = plt.subplots(1, 4, figsize=(10, 2.7), layout="constrained")
lengths = [float(each) for each in data.setting.grid.lengths[0]]
fields = {"initial density": data.query.u0[0, 0], "truth": truth[0, 0], "Strang x8": states["strang x8"][0, 0]}
draw_states(panels[:3], fields, lengths)
draw_difference(panels[3], states["strang x8"][0, 0] - truth[0, 0], lengths, "difference")
plt.show()
