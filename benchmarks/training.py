"""What ``hycop train PROBLEM`` takes with the preset ``quick``, data included: at most five minutes and 2 GB."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Ratio
from benchmarks.models import measured_process

MOST_SECONDS, MOST_BYTES = 300.0, 2e9
PROBLEMS = ("ad1d", "burgers1d", "swe1d", "ks1d", "adr2d", "swe2d", "ns2d", "ns2d-pdebench")


def measure(problems: Sequence[str] = PROBLEMS, options: Sequence[str] = ()) -> list[Ratio]:
    ratios = []
    for name in problems:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-m", "hycop.cli", "train", name, "--out", str(Path(folder) / "run"), *options]
            start = time.perf_counter()
            _, size = measured_process(words)
            seconds = time.perf_counter() - start
        ratios += [
            Ratio("training", f"seconds / allowed, {name}", seconds / MOST_SECONDS, 1.0, False, f"{seconds:.0f} s"),
            Ratio("training", f"memory / allowed, {name}", size / MOST_BYTES, 1.0, False, f"{size / 1e6:.0f} MB"),
        ]
    return ratios
