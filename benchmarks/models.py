"""Models and queries with truth for the benchmarks: made once, and kept in a folder under a hash of the code and the
settings that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import move

import numpy as np

from hycop.data import Dataset, load, save
from hycop.experiments.code import solver_version, truth_version
from hycop.grid import Array
from hycop.problems import find_problem
from hycop.surrogate import HyCOP

KEPT = Path(os.environ.get("HYCOP_BENCHMARKS", ".benchmarks"))
"""Folder of what is kept; the variable HYCOP_BENCHMARKS names another one."""


def _place(*parts: object, version: str) -> Path:
    text = json.dumps([*parts, version], default=str)
    KEPT.mkdir(parents=True, exist_ok=True)
    return KEPT / "-".join([*map(str, parts[:2]), hashlib.sha256(text.encode()).hexdigest()[:12]])


def data(name: str, split: str, count: int, seed: int = 0) -> Dataset:
    """Queries of a problem with their truth."""
    file = _place(name, split, count, seed, version=truth_version()).with_suffix(".nc")
    if not file.exists():
        save(find_problem(name).sample(count, split, seed, estimated=0), file)
    return load(file)


@dataclass(frozen=True)
class Trained:
    """A model, and what its training took: CPU seconds of its process, data and compilation included, wall seconds
    and largest resident bytes."""

    model: HyCOP
    cpu: float
    bytes: int


def trained(name: str, options: Sequence[str] = ()) -> Trained:
    """The model of ``hycop train PROBLEM`` with these options, trained in a process of its own."""
    place = _place(name, "model", *options, version=solver_version())
    facts = place / "took.json"
    if not facts.exists():
        with tempfile.TemporaryDirectory(dir=KEPT) as folder:
            words = [sys.executable, "-m", "hycop.cli", "train", name, "--out", f"{folder}/run", *options]
            cpu, size = measured_process(words)
            (Path(folder) / "run" / facts.name).write_text(json.dumps({"cpu": cpu, "bytes": size}))
            move(f"{folder}/run", place)
    took = json.loads(facts.read_text())
    return Trained(HyCOP.load(place), took["cpu"], took["bytes"])


def measured_process(words: Sequence[str]) -> tuple[float, int]:
    """CPU seconds and largest resident bytes of a process; an error if it fails."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()  # until it ends
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {said.decode(errors='replace')[-500:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def kept_array(name: str, parts: Sequence[object], make: Callable[[], Array]) -> Array:
    """An array that takes long to make, kept under a hash of what it depends on."""
    file = _place(name, "array", *parts, version="").with_suffix(".npy")
    if not file.exists():
        np.save(file, make())
    return np.load(file)
