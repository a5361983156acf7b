"""CPU seconds of new processes: the command without work, the import, and the first answer of a loaded model with
nothing compiled yet (cold) and with kernels from the cache (warm)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.answer import STEPS
from benchmarks.data import adr_model
from benchmarks.measure import Ratio, Seconds, limited
from benchmarks.models import measured_process, trained

FIRST = """
import sys, time, warnings
import numpy as np
import hycop
warnings.simplefilter("ignore")
model = hycop.HyCOP.load(sys.argv[1])
u0 = np.random.default_rng(0).uniform(0.2, 0.8, (1, 1, 32, 32))
start = time.process_time()
model.predict(u0, {"cx": 1.0, "cy": 0.5, "Dx": 0.05, "Dy": 0.05, "r": 1.0}, [0.2])
print(time.process_time() - start)
"""
GOALS = {"hycop --help": 0.4, "import hycop": 0.3, "first predict, cold": 6.0, "first predict, warm": 0.15}
TRAINING = {"adr2d": 20.0, "swe2d": 150.0}
"""CPU seconds at most, of the commands and of training with the preset quick."""


def cpu_seconds(words: Sequence[str]) -> float:
    """CPU seconds of a process from its start to its end."""
    return measured_process(words)[0]


def first_predict(folder: Path, cache: Path | None = None) -> float:
    """CPU seconds of the first answer in a process, without imports and loading; kernels are kept in ``cache``, by
    default where they always are."""
    environment = {**os.environ} if cache is None else {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    words = [sys.executable, "-c", FIRST, str(folder)]
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
    return float(done.stdout)


def measure(rounds: int = 7, cold_rounds: int = 3) -> list[Ratio]:
    seconds: dict[str, list[float]] = {name: [] for name in GOALS}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        adr_model(STEPS).save(place / "model")
        for turn in range(cold_rounds):
            seconds["first predict, cold"].append(first_predict(place / "model", place / f"cache{turn}"))
        first_predict(place / "model")  # compiles what is not kept yet
        for _ in range(rounds):
            seconds["first predict, warm"].append(first_predict(place / "model"))
            seconds["hycop --help"].append(cpu_seconds([sys.executable, "-m", "hycop_command", "--help"]))
            seconds["import hycop"].append(cpu_seconds([sys.executable, "-c", "import hycop"]))
    return [
        limited("start", f"{what} / {most:g} CPU s", Seconds(seconds[what], seconds[what]), most)
        for what, most in GOALS.items()
        if seconds[what]
    ]


def measure_training(options: Sequence[str] = ()) -> list[Ratio]:
    """CPU seconds of ``hycop train`` with the preset quick, from the start of the process to its end: data, gate and
    compilation included. They are those of the training that made the models of the other rows."""
    found = []
    for name, most in TRAINING.items():
        done = trained(name, options)
        told = f"hycop train {name}, preset quick / {most:g} CPU s"
        detail = f"{done.bytes / 1e6:.0f} MB at most"
        found.append(limited("quick-training", told, Seconds([done.cpu], [done.cpu]), most, detail=detail))
    return found
