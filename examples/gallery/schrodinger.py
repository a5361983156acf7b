"""
Nonlinear Schrödinger equation
==============================

i ψ_t = −½ ψ_xx − (u² + v²) ψ with ψ = u + i v: two real channels that rotate into each other. The linear part is
exact in Fourier space (a rotation of each pair of modes), the rest is exact in each cell, and mass is kept to rounding.
The soliton ψ = sech(x) e^{it/2} keeps its shape.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop

split = hycop.equation("u_t = -v_xx/2 - (u^2+v^2)*v; v_t = u_xx/2 + (u^2+v^2)*u", name="schrodinger")
print(split)

# %%
# The exact soliton is the judge.
CELLS, LENGTH, TIME = 128, 30.0, 3.0
x = (np.arange(CELLS) + 0.5) * LENGTH / CELLS
envelope = 1 / np.cosh(x - LENGTH / 2)
u0 = np.stack([envelope, np.zeros(CELLS)])[None]
setting = hycop.Setting(hycop.Grid.box((CELLS,), LENGTH), split.equation.channels, {})
query = hycop.Query(u0, setting, TIME)
truth = np.stack([envelope * np.cos(TIME / 2), envelope * np.sin(TIME / 2)])[None]

errors = {}
for substeps in (4, 8, 16, 32, 64):
    programs = hycop.splitting(f"strang x{substeps}").programs(query, split.dictionary)
    states = hycop.run(programs, split.dictionary, query)
    errors[substeps] = np.linalg.norm(states - truth) / np.linalg.norm(truth)
    drift = (states**2).sum() / (u0**2).sum() - 1
    print(f"strang x{substeps:<3} error {errors[substeps]:.1e}, mass changes by {drift:.0e}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(x, states[0, 0], label="u, Strang x64")
left.plot(x, states[0, 1], label="v")
left.plot(x, truth[0, 0], "k:", label="exact")
left.plot(x, truth[0, 1], "k:")
left.set(xlabel="x", title=f"Soliton at t = {TIME:g}")
left.legend(frameon=False)
right.loglog(list(errors), list(errors.values()), "o-")
right.loglog(list(errors), [errors[4] * (4 / n) ** 2 for n in errors], "k:", label="second order")
right.set(xlabel="Strang steps", ylabel="relative error")
right.legend(frameon=False)
plt.show()
