"""
Burgers: a shock, and its error against work
============================================

``burgers1d`` is u_t + u u_x = ν u_xx. The truth is the exact solution of Cole and Hopf. Longer programs cost
more work and err less, until the limit of the dictionary is reached.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.metrics import rel_l2
from hycop.plots import Point, Solution, draw_error_against_work, draw_lines

problem = hycop.problem("burgers1d")
data = problem.sample(40, split="id", seed=0, estimated=0)

# %%
# Every classical scheme at several lengths, on the problem's own grid.
points, drawn = [], {}
for family in ("Lie", "Strang", "ABABA"):
    for substeps in (1, 2, 4, 8):
        name = f"{family} x{substeps}"
        programs = hycop.splitting(name).programs(data.query, problem.dictionary)
        states, work = hycop.measure(programs, problem.dictionary, data.query, refinement=problem.refinement)
        error = rel_l2(states, data.truth, data.setting)
        points.append(Point(family, float(work.mean()), float(error.mean())))
        drawn[name] = states[0, 0]
        print(f"{name:10} {error.mean():.2e}")

# %%
figure = plt.figure(figsize=(10, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2)
above, below = left.subplots(2, 1, sharex=True, height_ratios=[2, 1])
shown = {name: drawn[name] for name in ("Lie x1", "ABABA x4")}
draw_lines(above, below, Solution(data.query.u0[0, 0], data.truth[0, 0], shown), float(data.setting.grid.lengths[0, 0]))
draw_error_against_work(right.subplots(), points)
plt.show()
