"""
What accuracy costs: a Pareto front
===================================

``front`` trains a model for each of several amounts of work. Each point is the best composition that was found
for that work, and the classical schemes stand beside.
"""

import matplotlib.pyplot as plt

import hycop
from hycop.metrics import rel_l2
from hycop.plots import Point, draw_error_against_work

problem = hycop.problem("adr2d")
train = problem.sample(96, split="train", seed=0, shape=(16, 16), estimated=0)
test = problem.sample(60, split="id", seed=1, shape=(16, 16), estimated=0)
settings = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 4, "max_steps": 7}
models = hycop.HyCOP(problem.dictionary).front(train, points=3, seed=0, verbose=False, **settings)

# %%
points = []
for model in models:
    answer = model.answer(test.query)
    error = float(rel_l2(answer.states, test.truth, test.setting).mean())
    points.append(Point("HyCOP", float(answer.work.mean()), error))
    print(f"work {answer.work.mean():8.0f}  error {error:.1e}  {answer.programs[0]}")
for name in ("Lie", "Strang", "ABABA", "SABA3"):
    programs = hycop.splitting(name).programs(test.query, problem.dictionary)
    states, work = hycop.measure(programs, problem.dictionary, test.query)
    error = float(rel_l2(states, test.truth, test.setting).mean())
    points.append(Point("classical schemes", float(work.mean()), error))

# %%
figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
draw_error_against_work(axes, points)
plt.show()
