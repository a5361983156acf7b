"""
Read and write files of The Well
================================

Files of `The Well <https://polymathic-ai.org/the_well>`_ are read as they are, and only the samples and frames that you
ask for. What HyCOP writes in that layout opens with ``the_well.data.WellDataset``.
"""

import tempfile
from pathlib import Path

import h5py
import matplotlib.pyplot as plt

import hycop
from hycop.data import WellFile, write_well
from hycop.plots import draw_difference, draw_states

problem = hycop.problem("swe2d")
made = problem.sample(2, split="id", seed=0, shape=(16, 16), times=[0.05, 0.1], estimated=0)

# %%
# Depth is a scalar field, momentum a vector field, gravity a scalar, and the box has its boundary conditions. On the
# command line: ``hycop data swe2d water.hdf5 --layout well``.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "water.hdf5")
    write_well(made, path)
    with h5py.File(path) as raw:
        raw.visititems(lambda name, held: print(f"{name:32} {getattr(held, 'shape', '')}"))
    file = WellFile(path, problem="swe2d")
    print([channel.name for channel in file.channels], file.samples, "samples of", file.shape)
    data = file.read(slice(1, 2), frames=[0, 2])

# %%
# The part is a dataset like any other. Its states were stored in single precision.
data = problem.checked(data)
programs = hycop.splitting("strang x2").programs(data.query, problem.dictionary)
states = hycop.run(programs, problem.dictionary, data.query, refinement=problem.refinement)
error = hycop.metrics.rel_l2(states, data.truth, data.setting)[0]
figure, panels = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
shown = {"first frame, depth": data.query.u0[0, 0], "frame 2": data.truth[0, 0], "Strang x2": states[0, 0]}
lengths = data.setting.grid.lengths[0].tolist()
draw_states(panels[:3], shown, lengths)
draw_difference(panels[3], states[0, 0] - data.truth[0, 0], lengths, f"difference, error {error:.1e}")
plt.show()
