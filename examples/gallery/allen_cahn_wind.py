"""
Allen–Cahn with wind
====================

u_t = −c u_x + D u_xx + u − u³: domains that move with the wind while their borders sharpen. One line of text, ranges
and a family of initial states are a problem; advection and diffusion are fused, as both are exact in Fourier space.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.problems.initial_conditions import Wave

split = hycop.equation("u_t = -c*u_x + D*u_xx + u - u^3", name="allen-cahn")
print(split)


def domains(draw, box):
    return 2 * Wave(1, 2)(draw, box) - 1


problem = split.problem(
    ranges={"c": (0.2, 0.6), "D": (1e-3, 4e-3)}, initial={"u": domains}, time=(0.4, 1.6), shape=(64,)
)
data = problem.sample(8, "id", seed=1, estimated=0)

# %%
# Reaction and diffusion do not commute, so the error falls with the number of steps.
for name in ("lie", "strang", "strang x4", "strang x16"):
    programs = hycop.splitting(name).programs(data.query, problem.dictionary)
    states = hycop.run(programs, problem.dictionary, data.query)
    print(f"{name:11} {hycop.metrics.rel_l2(states, data.truth, data.setting).mean():.1e}")

# %%
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
x = data.setting.grid.centres()[0][0]
axes.plot(x, data.query.u0[0, 0], ":", color="0.55", label="t = 0")
axes.plot(x, data.truth[0, 0], "k", linewidth=2, label=f"truth, t = {data.query.time[0]:g}")
axes.plot(x, states[0, 0], "--", color="#e08a1e", label="Strang x16")
axes.set(xlabel="x", ylabel="u", title="Allen–Cahn with wind")
axes.legend(frameon=False)
plt.show()
