"""
An answer to a tolerance, with an error bar
===========================================

``answer(query, tol=…)`` refines programs and grids, query by query, until the estimated error is small enough.
No truth is needed. Here the truth is known, so the estimates can be judged.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.metrics import rel_l2

problem = hycop.problem("ad1d")
train = problem.sample(150, split="train", seed=0, estimated=0)
muscl = problem.dictionaries["muscl"]
model = hycop.HyCOP(muscl).fit(train, seed=0, max_steps=3, tries=1, patterns=1, verbose=False)

# %%
# The plain answer and its error bar, then the same queries to one per cent and to one per mille.
test = problem.sample(40, split="id", seed=1, estimated=0)
found = {"as it is": model.answer(test.query)}
found |= {f"tol = {tol:g}": model.answer(test.query, tol=tol) for tol in (1e-2, 1e-3)}
for name, answer in found.items():
    true = rel_l2(answer.states, test.truth, test.setting)
    met = "" if answer.tolerance_met is None else f", claimed by {answer.tolerance_met.mean():.0%}"
    print(f"{name:12} median error {np.median(true):.1e}, work {answer.work.mean():.3g}{met}")

# %%
figure, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
for marker, colour, (name, answer) in zip("os^", ("#3b6fb6", "#e08a1e", "#4f9d55"), found.items(), strict=True):
    true = rel_l2(answer.states, test.truth, test.setting)
    axes.loglog(answer.error, true, marker, color=colour, label=name, markersize=5)
low, high = axes.get_xlim()
axes.plot([low, high], [low, high], "k--", linewidth=1, label="estimate = truth")
axes.set(xlabel="estimated error", ylabel="true error", title="Below the line the error bar holds")
axes.legend(frameon=False)
plt.show()
