"""
Chaos: Kuramoto–Sivashinsky in space and time
=============================================

Two solutions of ``ks1d`` part exponentially, so pointwise errors mean little at late times. What counts is the
statistics: here the spectrum, beside the picture in space and time.
"""

import matplotlib.pyplot as plt
import numpy as np

import hycop

problem = hycop.problem("ks1d")
times = np.linspace(0.5, 40.0, 80)
data = problem.sample(1, split="id", seed=0, times=times, estimated=0)
length = float(data.setting.grid.lengths[0, 0])

# %%
# One query for every time, each straight from the initial state. The program for time T takes steps of half a unit.
asked = hycop.Query(data.states[:1, 0], data.setting, np.zeros(1)).at(times)
answer = np.empty((times.size, data.states.shape[-1]))
for index, time in enumerate(times):
    one = asked.take(slice(index, index + 1))
    scheme = hycop.splitting(f"strang x{max(1, round(2 * time))}")
    answer[index] = hycop.run(scheme.programs(one, problem.dictionary), problem.dictionary, one)[0, 0]
truth = data.states[0, 1:, 0]


# %%
def spectrum(u):
    """Mean energy of each mode over the second half of the time."""
    return np.mean(np.abs(np.fft.rfft(u[len(u) // 2 :], axis=1)) ** 2, axis=0)


figure, panels = plt.subplots(1, 3, figsize=(10, 4), layout="constrained", width_ratios=[1, 1, 1.1])
for axes, (name, u) in zip(panels, {"truth": truth, "Strang, steps of 0.5": answer}.items(), strict=False):
    axes.imshow(u, aspect="auto", origin="lower", extent=(0, length, 0, 40), cmap="cividis", vmin=-3, vmax=3)
    axes.set(title=name, xlabel="x", ylabel="t")
modes = np.arange(1, 49)
panels[2].loglog(modes, spectrum(truth)[modes], "k", linewidth=2, label="truth")
panels[2].loglog(modes, spectrum(answer)[modes], "--", color="#e08a1e", label="Strang")
panels[2].set(title="spectrum, 20 < t < 40", xlabel="mode", ylabel="energy")
panels[2].legend(frameon=False)
plt.show()
