"""
Data of your own: from an HDF5 file to a model
==============================================

Somebody's solver has written an HDF5 file. Make it a dataset, train on it, save the model, and ask it for times
that are not in the file. The same works for arrays from npz, netCDF or anywhere else. On the command line:
``hycop train ad1d --data mine.nc --out runs/mine``.
"""

import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np

import hycop


def somebody_writes(path, samples):
    """Advection–diffusion of a few waves on a periodic line, in the names of another code."""
    rng = np.random.default_rng(0)
    x, t = (np.arange(64) + 0.5) * 10 / 64, np.array([0.0, 0.25, 0.5, 1.0])
    speed, kappa = rng.uniform(0.5, 3.0, (samples, 1, 1)), rng.uniform(0.01, 0.5, (samples, 1, 1))
    u = np.full((samples, t.size, x.size), 0.5)
    for k in 2 * np.pi / 10 * np.arange(1, 6):
        a, b = rng.uniform(0, 0.1, (samples, 1, 1)), rng.uniform(0, 2 * np.pi, (samples, 1, 1))
        u += a * np.exp(-kappa * k**2 * t[:, None]) * np.sin(k * (x - speed * t[:, None]) + b)
    with h5py.File(path, "w") as file:
        file["concentration"], file["t"] = u, t
        file["speed"], file["kappa"] = speed[:, 0, 0], kappa[:, 0, 0]


folder = tempfile.TemporaryDirectory()
theirs, mine, run = (Path(folder.name, name) for name in ("theirs.h5", "mine.nc", "model"))
somebody_writes(theirs, samples=120)

# %%
# What is needed: states (sample, time, channel, x), their times, the length of the box and the coefficients by name.
with h5py.File(theirs) as file:
    states = file["concentration"][:][:, :, None]
    times = np.tile(file["t"][:], (len(states), 1))
    params = {"cx": file["speed"][:], "Dx": file["kappa"][:]}
grid = hycop.Grid.box((64,), lengths=10.0, boundary="periodic", batch=len(states))
setting = hycop.Setting(grid, (hycop.Channel("u"),), params)
data = hycop.Dataset("ad1d", "train", states, times, setting, reference="theirs.h5")
hycop.save(data, mine)  # and hycop.load(mine); a name that ends in .npz works too

# %%
dictionary = hycop.problem("ad1d").dictionaries["upwind"]
model = hycop.HyCOP(dictionary).fit(data, budget="gain", max_steps=4, tries=1, patterns=1, verbose=False)
print(model)
model.save(run)
model = hycop.HyCOP.load(run)
folder.cleanup()

# %%
# The file has states at t = 0.25, 0.5 and 1. The model answers at any time.
asked = [0.1, 0.4, 0.7, 1.0]
answer = model.predict(data.states[:1, 0], {name: value[:1] for name, value in params.items()}, times=asked)
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
x = (np.arange(64) + 0.5) * 10 / 64
axes.plot(x, data.states[0, 0, 0], ":", color="0.55", label="t = 0")
for colour, time, u in zip(plt.get_cmap("viridis")(np.linspace(0.1, 0.85, 4)), asked, answer[0, :, 0], strict=True):
    axes.plot(x, u, color=colour, label=f"t = {time:g}")
axes.plot(x, data.states[0, 3, 0], "k--", linewidth=1, label="file, t = 1")
axes.set(xlabel="x", ylabel="concentration")
axes.legend(frameon=False, ncols=2)
plt.show()
