"""
An equation as text: Gray–Scott
===============================

Two species that diffuse and react, written as one line of text. HyCOP reads it without evaluating anything, splits it
into processes and finds a primitive for each. With ranges and initial states it is a problem like any other.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.problems.initial_conditions import Bumps

split = hycop.equation("u_t = Du*lap(u) - u*v^2 + F*(1-u); v_t = Dv*lap(v) + u*v^2 - (F+k)*v", name="gray-scott")
print(split)


# %%
# Coefficients have ranges, and each species has a family of initial states: here a gap in u and a spot of v.
def gaps(draw, box):
    return 1 - 0.7 * Bumps((0.08, 0.15))(draw, box)


problem = split.problem(
    ranges={"Du": (1e-4, 3e-4), "Dv": (5e-5, 1.5e-4), "F": (0.02, 0.06), "k": (0.05, 0.065)},
    initial={"u": gaps, "v": Bumps((0.08, 0.15))},
    time=(2.0, 12.0),
    at=10.0,
)
data = problem.sample(4, "id", seed=1, estimated=0)
print(data.reference)

# %%
# Every classical splitting works at once; ``hycop.HyCOP(problem.dictionary).fit(problem)`` trains a policy.
for name in ("lie", "strang", "strang x4"):
    programs = hycop.splitting(name).programs(data.query, problem.dictionary)
    states = hycop.run(programs, problem.dictionary, data.query)
    error = hycop.metrics.rel_l2(states, data.truth, data.setting).mean()
    print(f"{name:10} {error:.1e}   {programs[0]}")

# %%
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), layout="constrained")
shown = {
    "u, t = 0": data.query.u0[0, 0],
    "u, t = 10": states[0, 0],
    "v, t = 0": data.query.u0[0, 1],
    "v, t = 10": states[0, 1],
}
for ax, (title, values) in zip(axes, shown.items(), strict=True):
    image = ax.imshow(values.T, origin="lower", extent=(0, 1, 0, 1), cmap="viridis")
    ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=ax, shrink=0.8)
plt.show()
