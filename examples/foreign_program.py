"""Somebody's C program as a primitive: the diffusion of advection–diffusion–reaction by examples/heat.c.

python examples/foreign_program.py       compile it, prove it, and run programs with it
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import hycop
from hycop.primitives import ExternalProgram
from hycop.primitives.examples import scalar_example

NUMBERS = ("duration", "length_x", "length_y", "Dx", "Dy")


def heat(folder: str, compiler: str) -> ExternalProgram:
    """The program, kept alive between calls; what it claims to do is declared here, and checked by hycop."""
    binary = Path(folder, "heat")
    subprocess.run([compiler, "-O2", "-o", binary, Path(__file__).parent / "heat.c"], check=True)
    return ExternalProgram(
        command=(binary, "--serve"),
        persistent=True,
        arguments=NUMBERS,
        advances={"diffusion"},
        order=2,
        conserves=hycop.ALL_CHANNELS,
        boundaries={"periodic"},
        timeout=10.0,
        memory=2**30,
    )


def main() -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        print("there is no C compiler (cc): nothing to run")
        return
    with tempfile.TemporaryDirectory() as folder:
        # its cost, in updates per cell, is measured once; here the number is not kept for later runs
        primitive = heat(folder, compiler).with_example(lambda seed: scalar_example(seed, ("D",)))
        primitive = primitive.calibrated(file=Path(folder, "work.json"))
        print(hycop.check_primitive(primitive))
        problem = hycop.problem("adr2d")
        data = problem.sample(4, split="id", seed=0)
        dictionary = problem.dictionary.swapping("diffusion", primitive)
        programs = hycop.splitting("strang").programs(data.query, dictionary)
        states = hycop.run(programs, dictionary, data.query)
        errors = hycop.metrics.rel_l2(states, data.truth, data.query.setting)
        print(f"Strang splitting with {primitive.label}: error {np.mean(errors):.3g}")
        primitive.close()


if __name__ == "__main__":
    main()
