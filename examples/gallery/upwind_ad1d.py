"""
Durations that make up for a biased primitive
=============================================

First-order upwind advection diffuses. With ``budget="gain"`` the policy learns to give diffusion less time, so
that numerical and physical diffusion together are right. The gain itself is a diagnosis.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.metrics import rel_l2

problem = hycop.problem("ad1d")
upwind = problem.dictionaries["upwind"]
train = problem.sample(150, split="train", seed=0, estimated=0)
test = problem.sample(100, split="id", seed=1, estimated=0)
models, answers = {}, {}
for budget in ("consistent", "gain"):
    small = {"max_steps": 4, "tries": 1, "patterns": 1}
    models[budget] = hycop.HyCOP(upwind).fit(train, seed=0, budget=budget, verbose=False, **small)
    answers[budget] = models[budget].answer(test.query).states
    print(f"{budget:10} error {rel_l2(answers[budget], test.truth, test.setting).mean():.2e}")
    print("          ", models[budget].program(test.states[:1, 0], {"cx": 1.0, "Dx": 0.2}, t=0.5))

# %%
worst = int(np.argmax(rel_l2(answers["consistent"], test.truth, test.setting)))
x = (np.arange(64) + 0.5) * test.setting.grid.lengths[worst, 0] / 64
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
axes.plot(x, test.query.u0[worst, 0], ":", color="0.55", label="initial state")
axes.plot(x, test.truth[worst, 0], color="black", linewidth=2, label="truth")
axes.plot(x, answers["consistent"][worst, 0], "--", color="#e08a1e", label="every process for all of T")
axes.plot(x, answers["gain"][worst, 0], "-.", color="#3b6fb6", label="learned gain")
axes.set(xlabel="x", ylabel="u", title="Upwind advection and diffusion, the query that suffers most")
axes.legend(frameon=False)
plt.show()
