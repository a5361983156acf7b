"""
Train a model and read its programs
===================================

A policy of fewer than 100 parameters learns which primitive to run for how long. It is kept only if it beats
the best classical scheme at equal work on held-out queries (the gate). Then it answers at any time, with no
roll-out.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.plots import draw_difference, draw_states, draw_timelines

problem = hycop.problem("adr2d")
train = problem.sample(120, split="train", seed=0, shape=(16, 16), estimated=0)
model = hycop.HyCOP(problem.dictionary).fit(train, seed=0, tries=1, patterns=1, rounds=1, verbose=False)
print(model)

# %%
# The program depends on the physics: here the reaction becomes faster from row to row.
data = problem.sample(1, split="id", seed=3, estimated=0)
u0, params = data.states[:, 0], {"cx": 1.0, "cy": 0.5, "Dx": 0.1, "Dy": 0.1}
programs = {f"r = {r:g}": model.program(u0, {**params, "r": r}, t=0.2) for r in (0.1, 0.5, 1.0)}
for name, program in programs.items():
    print(f"{name:8} {program}")

# %%
# An answer holds states, programs, work, an error estimate that needs no truth, and whether to trust it.
answer = model.answer(data.query)
print(f"estimated error {answer.error[0]:.1e}, untrusted: {bool(answer.untrusted[0])}")
true = hycop.metrics.rel_l2(answer.states, data.truth, data.setting)[0]
print(f"true error      {true:.1e}")

# %%
figure = plt.figure(figsize=(10, 5.4), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1.4, 1.0])
panels = top.subplots(1, 4)
shown = {"initial state": u0[0, 0], "truth": data.truth[0, 0], "HyCOP": answer.states[0, 0]}
draw_states(panels[:3], shown, (1.0, 1.0))
draw_difference(panels[3], answer.states[0, 0] - data.truth[0, 0], (1.0, 1.0), "HyCOP − truth")
draw_timelines(bottom.subplots(), programs, problem.dictionary.names)
plt.show()
