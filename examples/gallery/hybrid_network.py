"""
A network beside textbook solvers
=================================

A dictionary may mix numerical solvers and networks. Here a small pointwise network learns the reaction and
replaces the exact one in the same programs. It needs the extra ``learned`` (torch).
"""

from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.metrics import rel_l2
from hycop.plots import draw_difference, draw_states

problem = hycop.problem("adr2d")
data = problem.sample(12, split="id", seed=0, shape=(16, 16), estimated=0)
dictionaries = {"all numerical": problem.dictionary}
if find_spec("torch") is None:
    print("torch is not installed: the network is left out")
else:
    small = {"samples": 64, "rounds": 12, "shape": (16, 16)}
    network = hycop.pretrain(problem, ["reaction"], network="pointwise", seed=0, verbose=False, **small)
    dictionaries["network for the reaction"] = problem.dictionary.swapping("reaction", network)

# %%
# The same Strang programs with each dictionary.
states = {}
for name, dictionary in dictionaries.items():
    programs = hycop.splitting("strang x2").programs(data.query, dictionary)
    states[name] = hycop.run(programs, dictionary, data.query)
    errors = rel_l2(states[name], data.truth, data.setting)
    print(f"{name:26} error {np.mean(errors):.1e}")

# %%
figure, panels = plt.subplots(1, 1 + 2 * len(states), figsize=(10, 2.7), layout="constrained", squeeze=False)
panels = panels[0]
draw_states(
    panels[: 1 + len(states)], {"truth": data.truth[0, 0], **{k: u[0, 0] for k, u in states.items()}}, (1.0, 1.0)
)
for axes, (name, u) in zip(panels[1 + len(states) :], states.items(), strict=True):
    draw_difference(axes, u[0, 0] - data.truth[0, 0], (1.0, 1.0), f"error, {name.split()[0]}")
plt.show()
