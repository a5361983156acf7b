"""
Error against work, and the limit of a dictionary
=================================================

Every comparison here is at equal work. This picture shows all classical schemes on one problem, each at several
lengths, and the error below which no refinement goes.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.plots import Point, draw_error_against_work

problem = hycop.problem("adr2d")
data = problem.sample(32, split="id", seed=0, estimated=0)
schemes = [hycop.splitting(f"{name} x{n}") for name in ("Lie", "Strang", "ABABA", "SABA4") for n in (1, 2, 4)]
rows = hycop.evaluate(hycop.composed(schemes, problem.dictionary), [data], metrics=["rel_l2"])
points = [Point(row.method.partition(" x")[0], row.work, row.value) for row in rows if not row.is_limit]
for row in rows:
    print(f"{row.method:12} error {row.value:.1e}  work {row.work:,.0f}")

# %%
limit = hycop.limit(problem.dictionary, data.query)
floor = float(hycop.metrics.rel_l2(limit.states, data.truth, data.setting).mean())
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
draw_error_against_work(axes, points, floor)
plt.show()
