"""
Predator and prey with winds of their own
=========================================

u_t = −c u_x + D u_xx + u (1 − u) − a u v/(1 + h u), and predators v that are carried the other way and starve without
prey. The quotient is Holling's: a predator can only eat so much. What has no derivatives is solved in each cell to
rounding (``PointwiseRate``), the two winds and diffusions together in Fourier space.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.problems.initial_conditions import Wave

split = hycop.equation(
    """u_t = -c*u_x + D*u_xx + u*(1-u) - a*u*v/(1+h*u)
       v_t = c*v_x + D*v_xx + a*u*v/(1+h*u) - m*v""",
    name="predator-prey",
)
print(split)
problem = split.problem(
    ranges={"c": (0.1, 0.4), "D": (1e-3, 4e-3), "a": (1.0, 2.0), "h": (0.5, 1.0), "m": (0.3, 0.6)},
    initial={"u": Wave(1, 2), "v": Wave(1, 2)},
    time=(0.5, 2.0),
    shape=(64,),
)
data = problem.sample(4, "id", seed=1, estimated=0)

# %%
for name in ("lie", "strang", "strang x4"):
    programs = hycop.splitting(name).programs(data.query, problem.dictionary)
    states = hycop.run(programs, problem.dictionary, data.query)
    print(f"{name:10} {hycop.metrics.rel_l2(states, data.truth, data.setting).mean():.1e}   {programs[0]}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
x = data.setting.grid.centres()[0][0]
for ax, start, after, title in zip(axes, data.query.u0[0], states[0], ("prey u", "predators v"), strict=True):
    ax.plot(x, start, ":", color="0.55", label="t = 0")
    ax.plot(x, after, label=f"t = {data.query.time[0]:g}")
    ax.set(xlabel="x", title=title)
axes[0].legend(frameon=False)
plt.show()
