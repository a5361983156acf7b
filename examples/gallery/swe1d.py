"""
Shallow water on a line, and the states on the way
==================================================

``swe1d`` splits shallow water into gravity waves and the advection of momentum. A trace keeps the state after
every step of a program, so you can see what each primitive does.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop

problem = hycop.problem("swe1d")
data = problem.sample(4, split="id", seed=1, estimated=0)
query = data.query.take(slice(0, 1))
programs = hycop.splitting("strang").programs(query, problem.dictionary)
print(programs[0])

# %%
# ``trace`` runs what ``run`` runs. Here are the depth and the momentum after each of the three steps.
found = hycop.trace(programs, problem.dictionary, query, refinement=problem.refinement)
states = hycop.run(programs, problem.dictionary, query, refinement=problem.refinement)
error = hycop.metrics.rel_l2(states, data.truth[:1], query.setting)[0]
print(f"error of the whole program: {error:.1e}")

# %%
length = float(query.setting.grid.lengths[0, 0])
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
colours = plt.get_cmap("viridis")(np.linspace(0.05, 0.8, found.states.shape[1]))
names = ["initial state", *(f"after {step.primitive}" for step in programs[0])]
for channel, (axes, label) in enumerate(zip(panels, ("depth h", "momentum m"), strict=True)):
    for colour, name, state in zip(colours, names, found.states[0], strict=True):
        u = state[channel]
        axes.plot((np.arange(u.size) + 0.5) * length / u.size, u, color=colour, label=name)
    x = (np.arange(data.truth.shape[-1]) + 0.5) * length / data.truth.shape[-1]
    axes.plot(x, data.truth[0, channel], "k:", linewidth=2, label="truth")
    axes.set(xlabel="x", title=label)
panels[0].legend(frameon=False, fontsize=8)
plt.show()
