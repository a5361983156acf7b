"""
A legacy program as a primitive
===============================

Somebody's C program solves the heat equation. Wrapped as a primitive it takes part in programs like any other
solver, and ``check_primitive`` proves what you declare about it. The program is ``examples/heat.c``; any
language will do.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import hycop
from hycop.metrics import rel_l2
from hycop.plots import draw_difference, draw_states
from hycop.primitives import ExternalProgram
from hycop.primitives.examples import scalar_example

SOURCE = Path(sys.argv[0]).resolve().parents[1] / "heat.c"  # it stands beside the gallery
compiler = shutil.which("cc")
problem = hycop.problem("adr2d")
data = problem.sample(4, split="id", seed=0, shape=(24, 24), estimated=0)
dictionaries = {"own diffusion": problem.dictionary}
if compiler is None:
    print("there is no C compiler (cc): the C program is left out")

# %%
# The program stays alive between calls. What it needs besides the state, and what is true of it, is declared here.
folder = tempfile.TemporaryDirectory()
if compiler is not None:
    binary = Path(folder.name, "heat")
    subprocess.run([compiler, "-O2", "-o", binary, SOURCE], check=True)
    heat = ExternalProgram(
        command=(binary, "--serve"),
        persistent=True,
        arguments=("duration", "length_x", "length_y", "Dx", "Dy"),
        advances={"diffusion"},
        order=2,
        conserves=hycop.ALL_CHANNELS,
        boundaries={"periodic"},
        timeout=10.0,
        memory=2**30,
    )
    # its cost, in updates per cell, is measured once; here the number is not kept for later runs
    heat = heat.with_example(lambda seed: scalar_example(seed, ("D",)))
    heat = heat.calibrated(file=Path(folder.name, "work.json"))
    print(hycop.check_primitive(heat))
    dictionaries["diffusion by heat.c"] = problem.dictionary.swapping("diffusion", heat)

# %%
states = {}
for name, dictionary in dictionaries.items():
    programs = hycop.splitting("strang").programs(data.query, dictionary)
    states[name] = hycop.run(programs, dictionary, data.query)
    print(f"Strang, {name:20} error {rel_l2(states[name], data.truth, data.setting).mean():.2e}")
if compiler is not None:
    heat.close()
folder.cleanup()

# %%
figure, panels = plt.subplots(1, 1 + 2 * len(states), figsize=(10, 2.7), layout="constrained")
fields = {"truth": data.truth[0, 0], **{name: u[0, 0] for name, u in states.items()}}
draw_states(panels[: len(fields)], fields, (1.0, 1.0))
for axes, (name, u) in zip(panels[len(fields) :], states.items(), strict=True):
    draw_difference(axes, u[0, 0] - data.truth[0, 0], (1.0, 1.0), f"error, {name}")
plt.show()
