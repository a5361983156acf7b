"""Memory of ``run``: linear in the batch, and capped by ``memory=``; and of ``hycop predict``, whatever the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, peak_bytes
from hycop.data import Dataset, dataset_writer
from hycop.data.blocks import blocks
from hycop.execution import run
from hycop.problems import find_problem
from hycop.schemes import splitting
from hycop.surrogate import HyCOP

MOST_RESIDENT = 10**9
"""Bytes that ``hycop predict`` may hold at a time, for any number of samples."""

MEASURED = """
import resource
from pathlib import Path
from hycop.cli import main
try:
    main()
finally:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    known = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    print(known[0] if known else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
"""Prints the most kilobytes that were resident. ``ru_maxrss`` also counts those of the process that started it."""


def run_peak(batch: int, cells: int, axes: int, memory: int) -> int:
    """Bytes that ``run`` takes beyond its arguments and its result."""
    query = adr_query(batch, cells, axes)
    programs = splitting("strang").programs(query, SPECTRAL)
    run(programs.take(slice(0, 2)), SPECTRAL, query.take(slice(0, 2)))  # compile first
    return peak_bytes(lambda: run(programs, SPECTRAL, query, memory=memory)) - query.u0.nbytes


def predict_peak(samples: int, cells: int) -> int:
    """Bytes that a process takes at most while it answers a file of that many samples on a square of cells."""
    problem = find_problem("adr2d")
    learn, held_out = (problem.sample(32, "train", seed, shape=(16, 16), estimated=0) for seed in (0, 1))
    least = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 6}
    model = HyCOP(problem.dictionary).fit(learn, held_out, verbose=False, **least)  # type: ignore[arg-type]
    query = problem.queries(min(samples, 64), "id", shape=(cells, cells))
    start = Dataset(problem.name, "id", query.u0[:, None].astype(np.float32), [0.0], query.setting)
    with TemporaryDirectory(prefix="hycop-") as folder:
        model.save(Path(folder) / "run")
        with dataset_writer(Path(folder) / "in.nc", samples) as target:
            for some in blocks(samples, start.samples):
                target.append(start.take(slice(0, some.stop - some.start)))
        words = ("predict", "run", "in.nc", "out.nc", "--times", "0.1")
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *words], cwd=folder, capture_output=True, text=True, check=True
        )
        written = (Path(folder) / "out.nc").stat().st_size
    assert written > 2 * samples * query.u0[0].size * query.u0.itemsize / 2
    return 1024 * int(done.stdout.split()[-1])


def measure(batch: int = 1000, cells: int = 32, files: bool = True) -> list[Ratio]:
    """``files``: also ``hycop predict`` on a large file, which takes two CPU minutes."""
    ample = 2**40
    one, four = run_peak(batch, cells, 2, ample), run_peak(4 * batch, cells, 2, ample)
    ratios = [
        Ratio(
            "memory", f"four times the batch / one, {batch} × {cells}²", four / one, 4.2, False, f"{one / 2**20:.0f} MB"
        )
    ]
    for axes, samples, n in ((2, 4 * batch, cells), (1, 64 * batch, 2 * cells)):
        cap = samples * n**axes * 8 // 2
        used = run_peak(samples, n, axes, cap)
        detail = f"cap {cap / 2**20:.1f} MB, used {used / 2**20:.1f} MB"
        ratios.append(Ratio("memory", f"used / cap, {samples} × {n}^{axes}", used / cap, 1.0, False, detail))
    if not files:
        return ratios
    samples, cells = 10 * batch, 4 * cells
    peak = predict_peak(samples, cells)
    what = f"predict, resident / 1 GB, {samples} × {cells}²"
    ratios.append(Ratio("memory", what, peak / MOST_RESIDENT, 1.0, False, f"{peak / 1e6:.0f} MB"))
    return ratios
