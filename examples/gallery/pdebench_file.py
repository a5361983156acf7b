"""
Read a file in PDEBench's layout
================================

PDEBench's files are read as they are, and only the samples and frames that you ask for. This script writes a
small file in the layout of its 1D Burgers data and judges two schemes with it.
"""

import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np

import hycop
from hycop.data import PDEBenchFile

problem = hycop.problem("burgers1d")
times = np.linspace(0.1, 0.5, 5)
made = problem.sample(6, split="id", seed=0, times=times, estimated=0)
made = made.take(slice(0, 1))

# %%
# PDEBench's layout: one array ``tensor`` (sample, time, x), the centres of the cells, and the times. The viscosity
# stands in the file's name only, so you give it.
length, cells = float(made.setting.grid.lengths[0, 0]), made.states.shape[-1]
nu = float(made.setting.param("nu")[0])
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "1D_Burgers_Sols_small.hdf5")
    with h5py.File(path, "w") as file:
        file["tensor"] = made.states[:, :, 0].astype(np.float32)
        file["x-coordinate"] = (np.arange(cells) + 0.5) * length / cells
        file["t-coordinate"] = np.append(np.concatenate([[0.0], times]), times[-1] + 0.1)
    data = PDEBenchFile(path, problem="burgers1d", params={"nu": nu}).read(frames=[0, 3])
print(data.states.shape, "at T =", data.query.time)

# %%
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
x = (np.arange(cells) + 0.5) * length / cells
axes.plot(x, data.query.u0[0, 0], ":", color="0.55", label="first frame")
axes.plot(x, data.truth[0, 0], "k", linewidth=2, label="frame 3 of the file")
for style, colour, name in (("--", "#e08a1e", "lie x2"), ("-.", "#3b6fb6", "strang x4")):
    programs = hycop.splitting(name).programs(data.query, problem.dictionary)
    states = hycop.run(programs, problem.dictionary, data.query, refinement=problem.refinement)
    error = hycop.metrics.rel_l2(states, data.truth, data.setting)[0]
    axes.plot(x, states[0, 0], style, color=colour, label=f"{name}, error {error:.1e}")
axes.set(xlabel="x", ylabel="u")
axes.legend(frameon=False)
plt.show()
