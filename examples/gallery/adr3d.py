"""
Advection, diffusion and reaction in 3D
=======================================

``adr3d`` is ``adr2d`` with a third axis, on 32³ cells. Primitives, schemes, models and every command take a grid of
one, two or three dimensions; pictures of a 3D state show its middle slice.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.plots import draw_difference, draw_states

problem = hycop.problem("adr3d")
data = problem.sample(1, split="id", seed=5, estimated=0)
print(data.query.u0.shape, "at T =", data.query.time, "truth by", data.reference)

# %%
# Classical schemes at growing cost. One sample has 32,768 cells; a program holds a few copies of it.
answers, errors = {}, {}
for name in ("lie", "strang", "ababa", "saba4", "saba4 x2"):
    programs = hycop.splitting(name).programs(data.query, problem.dictionary)
    done = hycop.measure(programs, problem.dictionary, data.query)
    answers[name] = done.states[0, 0]
    errors[name] = done.work[0], hycop.metrics.rel_l2(done.states, data.truth, data.setting)[0]
    print(f"{name:9} work {errors[name][0]:9.3g}  error {errors[name][1]:.1e}")

# %%
# A grid of unequal sides needs nothing else.
brick = problem.queries(1, split="id", seed=5, shape=(32, 16, 8))
states = hycop.run(hycop.splitting("strang").programs(brick, problem.dictionary), problem.dictionary, brick)
print(states.shape)

# %%
figure, panels = plt.subplots(1, 5, figsize=(14, 2.9), layout="constrained")
truth = data.truth[0, 0]
shown = {"initial state, z = 1/2": data.query.u0[0, 0], "truth": truth, "Strang": answers["strang"]}
draw_states(panels[:3], shown, (1.0, 1.0))
middle = np.s_[:, :, truth.shape[2] // 2]
draw_difference(panels[3], answers["strang"][middle] - truth[middle], (1.0, 1.0), "Strang − truth")
for name, (work, error) in errors.items():
    panels[4].semilogy(work / 1e6, error, "o", label=name)
panels[4].set(xlabel="work per sample, 10⁶ updates", ylabel="relative error")
panels[4].legend(fontsize=7, frameon=False)
plt.show()
