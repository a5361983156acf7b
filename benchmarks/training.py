"""What ``hycop train PROBLEM`` takes with the preset ``quick``, data included: at most five minutes and 2 GB."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Ratio

MOST_SECONDS, MOST_BYTES = 300.0, 2e9
PROBLEMS = ("ad1d", "burgers1d", "swe1d", "ks1d", "adr2d", "swe2d", "ns2d", "ns2d-pdebench")


def trained(name: str, options: Sequence[str]) -> tuple[float, int]:
    """Seconds and largest resident bytes of a process that trains a model."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "hycop.cli", "train", name, "--out", str(Path(folder) / "run"), *options]
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} failed")
    return seconds, usage.ru_maxrss * 1024


def measure(problems: Sequence[str] = PROBLEMS, options: Sequence[str] = ()) -> list[Ratio]:
    ratios = []
    for name in problems:
        seconds, size = trained(name, options)
        ratios += [
            Ratio("training", f"seconds / allowed, {name}", seconds / MOST_SECONDS, 1.0, False, f"{seconds:.0f} s"),
            Ratio("training", f"memory / allowed, {name}", size / MOST_BYTES, 1.0, False, f"{size / 1e6:.0f} MB"),
        ]
    return ratios
