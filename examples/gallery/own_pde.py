"""
A PDE of your own from data: Allen–Cahn
=======================================

u_t = D u_xx + u − u³, from one primitive that exists and one that is new. The data come from SciPy; HyCOP
guesses from the names in the dataset what the coefficients mean.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import solve_ivp

import hycop


@dataclass(frozen=True)
class DoubleWell:
    """u_t = u − u³, exactly: u → u / √(u² + (1 − u²) e^{−2t})."""

    advances = frozenset({"double well"})
    order = hycop.EXACT

    def flow(self, u, duration, setting):
        fade = np.exp(-2 * duration).reshape((-1,) + (1,) * (u.ndim - 1))
        return u / np.sqrt(u**2 + (1 - u**2) * fade)

    def work(self, u, duration, setting):
        return np.full(setting.batch, float(u[0].size))


# %%
# Somebody's trusted solver, here SciPy's, for 120 initial states and diffusivities.
CELLS, TIMES = 32, np.array([0.0, 0.5, 1.0])
SQUARE = (2 * np.pi * np.fft.rfftfreq(CELLS, 1 / CELLS)) ** 2


def truth(u0, diffusivity):
    def rate(_, u):
        return np.fft.irfft(-diffusivity * SQUARE * np.fft.rfft(u), CELLS) + u - u**3

    return solve_ivp(rate, (0, TIMES[-1]), u0, "BDF", t_eval=TIMES, rtol=1e-6, atol=1e-8).y.T


rng, x = np.random.default_rng(0), (np.arange(CELLS) + 0.5) / CELLS
diffusivity = 10.0 ** rng.uniform(-3, -2, 120)
waves = sum(rng.normal(size=(120, 1)) * np.sin(2 * np.pi * (k * x + rng.random((120, 1)))) / k for k in (1, 2, 3))
states = np.stack([truth(0.7 * np.tanh(u), D) for u, D in zip(waves, diffusivity, strict=True)])
setting = hycop.Setting(hycop.Grid.box((CELLS,), batch=120), (hycop.Channel("u"),), {"Dx": diffusivity})
data = hycop.Dataset("allen-cahn", "train", states[:, :, None], np.tile(TIMES, (120, 1)), setting)

# %%
dictionary = hycop.Dictionary({"diffusion": hycop.primitives.SpectralDiffusion(), "double well": DoubleWell()})
model = hycop.HyCOP(dictionary).fit(data.take(slice(0, 100)), max_steps=5, tries=1, patterns=1, verbose=False)
print(model)
judge = data.take(slice(100, 120))
answer = model.predict(judge.states[:, 0], judge.setting.params, times=[0.5, 1.0])
print(model.program(judge.states[:1, 0], {"Dx": 0.005}, t=1.0))
print("relative error", float(np.linalg.norm(answer - judge.states[:, 1:]) / np.linalg.norm(judge.states[:, 1:])))

# %%
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axes.plot(x, judge.states[0, 0, 0], ":", color="0.55", label="t = 0")
axes.plot(x, judge.states[0, 2, 0], "k", linewidth=2, label="SciPy, t = 1")
axes.plot(x, answer[0, 1, 0], "--", color="#e08a1e", label="HyCOP, t = 1")
axes.set(xlabel="x", ylabel="u", title="Allen–Cahn")
axes.legend(frameon=False)
plt.show()
