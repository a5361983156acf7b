"""
A dam break between walls, from a model of periodic waves
=========================================================

The model knows smooth waves in a periodic box. Swap the boundary, and the same policy answers a dam break in a
basin with walls. Nothing is retrained: the primitives know the walls, and the features are dimensionless.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.metrics import rel_l2

water = hycop.problem("swe2d")
train = water.sample(96, split="train", seed=0, shape=(16, 16), estimated=0)
small = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "refinement": 1, "max_steps": 5}
model = hycop.HyCOP(water.dictionaries["muscl"]).fit(train, seed=0, verbose=False, **small)
walled, changes = hycop.swap(model, boundary="wall")
print(*changes, sep="\n")

# %%
# A basin of 100 m on a small grid; the waves come back from the walls after some ten seconds.
basin = hycop.problem("dambreak2d").sample(1, split="straight", shape=(48, 48), times=[5.0, 15.0], estimated=0)
u0, params = basin.states[:, 0], basin.setting.params
query = walled.query(u0, params, times=[5.0, 15.0], lengths=(100.0, 100.0))
answer = walled.answer(query)
print("not to be trusted:", *answer.reasons[0], sep="\n  ")
errors = rel_l2(answer.states, basin.states[0, 1:], query.setting)
print("error after 5 s and 15 s:", *(f"{error:.1e}" for error in errors))

# %%
x = (np.arange(48) + 0.5) * 100 / 48
figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for index, (axes, time) in enumerate(zip(panels, (5, 15), strict=True)):
    axes.plot(x, u0[0, 0, :, 24], ":", color="0.55", label="dam at t = 0")
    axes.plot(x, basin.states[0, index + 1, 0, :, 24], "k", linewidth=2, label="truth")
    axes.plot(x, answer.states[index, 0, :, 24], "--", color="#e08a1e", label="HyCOP, walls swapped in")
    axes.set(xlabel="x in m", title=f"depth in m after {time} s")
panels[0].legend(frameon=False)
plt.show()
