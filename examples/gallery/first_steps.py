"""
First steps: a program and what it costs
========================================

Draw queries with a trusted solution, run a classical program and one written by hand, and compare both with the
truth.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.metrics import rel_l2
from hycop.plots import draw_difference, draw_states, draw_timelines

# %%
# A problem draws queries and solves them with a reference that shares no code with the primitives.
problem = hycop.problem("adr2d")
data = problem.sample(8, split="ood", seed=0, estimated=0)

# %%
# A scheme writes one program per query. A program prints on one line, and you may write one yourself.
strang = hycop.splitting("strang").programs(data.query, problem.dictionary)
by_hand = hycop.Program.parse("advection 0.2 → reaction 0.1 → diffusion 0.2 → reaction 0.1")
print(strang[0])
states = {}
for name, program in {"Strang": strang, "by hand": by_hand}.items():
    states[name], work = hycop.measure(program, problem.dictionary, data.query)
    error = rel_l2(states[name], data.truth, data.query.setting).mean()
    print(f"{name:8} error {error:.2e}, work {work.mean():.3g}")

# %%
# The limit of the dictionary is what these primitives reach when the program is refined until nothing changes.
limit = hycop.limit(problem.dictionary, data.query)
print(f"limit    error {rel_l2(limit.states, data.truth, data.query.setting).mean():.2e}")

# %%
# Nothing so far depends on the grid or the boundary: here is the same kind of program in a box with walls.
walled = problem.sample(4, split="id", seed=0, shape=(24, 20), boundary="wall", estimated=0)
muscl = problem.dictionaries["muscl"]
ababa = hycop.splitting("ababa x4").programs(walled.query, muscl)
answer = hycop.run(ababa, muscl, walled.query)
print(f"walls    error {rel_l2(answer, walled.truth, walled.query.setting).mean():.2e}")

# %%
figure = plt.figure(figsize=(10, 5.4), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1.4, 1.0])
panels = top.subplots(1, 4)
pick = int(data.truth.std(axis=(1, 2, 3)).argmax())  # a query of which much is left to see
u0, truth, found = data.query.u0[pick, 0], data.truth[pick, 0], states["Strang"][pick, 0]
shown = {"initial state": u0, "truth": truth, "Strang": found}
draw_states(panels[:3], shown, (1.0, 1.0))
draw_difference(panels[3], found - truth, (1.0, 1.0), "Strang − truth")
draw_timelines(bottom.subplots(), {"Strang": strang[0], "by hand": by_hand}, problem.dictionary.names)
plt.show()
