"""
An equation of your own, declared
=================================

Electrons diffuse and recombine, n_t = D n_xx − b n². The declaration says what the coefficients mean; then time
scales, flags and long times work as for an equation that comes with the package.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import hycop


@dataclass(frozen=True)
class Recombination:
    """n_t = −b n², exact: n / (1 + b n t)."""

    advances = frozenset({"recombination"})
    order = hycop.EXACT

    def flow(self, u, duration, setting):
        return u / (1 + (setting.param("b") * duration)[:, None, None] * u)

    def work(self, u, duration, setting):
        return np.full(setting.batch, float(u[0].size))


coefficients = {"Dx": hycop.Coefficient("diffusivity", axis=0, at_least=0.0), "b": hycop.Coefficient("rate", above=0.0)}
equation = hycop.Equation("electrons", ("diffusion", "recombination"), ("n",), coefficients, positive=("n",))
spectral = hycop.find_primitive("SpectralDiffusion")()
dictionary = hycop.Dictionary({"diffusion": spectral, "recombination": Recombination()})

# %%
# A dataset. A very fine program takes the place of a trusted solver here.
rng, x = np.random.default_rng(0), (np.arange(64) + 0.5) / 64
n0 = 1 + 0.9 * np.sin(2 * np.pi * (rng.integers(1, 4, (120, 1)) * x + rng.random((120, 1))))[:, None]
params = {"Dx": 10 ** rng.uniform(-3, -2, 120), "b": rng.uniform(1, 4, 120)}
setting = hycop.Setting(hycop.Grid.box((64,), lengths=1.0, batch=120), equation.channels, params)
query = hycop.Query(n0, setting, time=1.0)
fine = hycop.splitting("strang x256").programs(query, dictionary)
states = np.stack([n0, hycop.run(fine, dictionary, query)], axis=1)
data = hycop.Dataset("electrons", "train", states, [0.0, 1.0], setting)

# %%
# T = 3 is longer than any trained time: programs in a row, and a flag that says so.
model = hycop.HyCOP(dictionary, equation).fit(data, max_steps=5, tries=1, patterns=1, verbose=False)
answer = model.answer(model.query(n0[:1], {"Dx": 0.005, "b": 2.0}, times=[0.3, 1.0, 3.0]))
for time, program, reasons in zip((0.3, 1.0, 3.0), answer.programs, answer.reasons, strict=True):
    print(f"T = {time:g}: {program}", f"[outside training: {', '.join(reasons)}]" if reasons else "")

# %%
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.plot(x, n0[0, 0], ":", color="0.55", label="t = 0")
for colour, time, u in zip(("#3b6fb6", "#e08a1e", "#4f9d55"), (0.3, 1.0, 3.0), answer.states, strict=True):
    axes.plot(x, u[0], color=colour, label=f"t = {time:g}")
axes.set(xlabel="x", ylabel="density n", title="Diffusion and recombination")
axes.set_ylim(0, 2.4)
axes.legend(frameon=False, ncols=4, loc="upper center")
plt.show()
