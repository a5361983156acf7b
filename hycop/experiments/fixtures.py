"""Solutions of public solvers, against which trained models are evaluated. Nothing is trained on them."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import numpy as np

from hycop.data import Dataset
from hycop.problems import find_problem
from hycop.query import Setting

FOLDER = "HYCOP_FIXTURES"
"""Environment variable that names the folder of the files."""

PYCLAW = "swe2d_periodic_pyclaw.npz"
DAMS = "dambreak_walls_pyclaw.npz"
PDEBENCH = "2D_CFD_Rand_M0.1_Eta0.1_Zeta0.1_periodic_128_sample.hdf5"
FAMILIAR = 6
"""Number of samples in the PyClaw file, from its start, that are in distribution; the others are not."""


def fixture(name: str) -> Path | None:
    """The file of that name in the folder ``HYCOP_FIXTURES``; None if either is missing."""
    folder = os.environ.get(FOLDER)
    path = None if not folder else Path(folder) / name
    return path if path is not None and path.exists() else None


def fixture_version(name: str) -> str | None:
    """The SHA-256 of a file, as far as it is there."""
    path = fixture(name)
    return None if path is None else _hash_of(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _hash_of(path: Path, changed: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pyclaw() -> dict[str, Dataset]:
    """2D shallow water by PyClaw (Roe, MC limiter, 512², averaged to 32²) at T = 0.05, 0.15, 0.3, 0.5 and 1, by split;
    empty without the file."""
    path = fixture(PYCLAW)
    if path is None:
        return {}
    with np.load(path) as file:
        found = {name: np.asarray(file[name], dtype=np.float64) for name in ("u0_32", "u_32", "g", "times")}
    chosen = find_problem("swe2d")
    states = np.concatenate([found["u0_32"][:, None], found["u_32"]], axis=1)
    samples = states.shape[0]
    grid = chosen.grid(states.shape[3:], batch=samples)
    data = Dataset(
        problem=chosen.name,
        split="pyclaw",
        states=states,
        times=np.tile(np.concatenate([[0.0], found["times"]]), (samples, 1)),
        setting=Setting(grid, chosen.channels, {"g": found["g"]}),
        reference="PyClaw 512x512",
    )
    parts = {"pyclaw id": slice(0, FAMILIAR), "pyclaw ood": slice(FAMILIAR, None)}
    return {split: _named(data.take(part), split) for split, part in parts.items()}


def _named(data: Dataset, split: str) -> Dataset:
    return Dataset(data.problem, split, data.states, data.times, data.setting, reference=data.reference)


def dam_breaks() -> dict[str, Dataset]:
    """Dam breaks with walls by PyClaw (640², averaged to 320²) at 2, 5, 10 and 15 s; empty without the file."""
    path = fixture(DAMS)
    if path is None:
        return {}
    with np.load(path) as file:
        found = {name: np.asarray(file[name]) for name in ("u0_320", "u_320", "times", "names")}
        g = float(file["g"])
    chosen = find_problem("dambreak2d")
    states = np.concatenate([found["u0_320"][:, None], found["u_320"]], axis=1).astype(np.float64)
    grid = chosen.grid(states.shape[3:])
    times = np.concatenate([[0.0], found["times"]])[None]
    return {
        split: Dataset(
            problem=chosen.name,
            split=split,
            states=states[index : index + 1],
            times=times,
            setting=Setting(grid, chosen.channels, {"g": np.array([g])}),
            reference="PyClaw 640x640",
        )
        for index, split in enumerate(f"pyclaw {str(name).partition('_')[0]}" for name in found["names"])
    }
