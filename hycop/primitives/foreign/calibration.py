"""The work of foreign code: its seconds over the seconds that one cell update takes on this machine."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from hycop.files import write_json
from hycop.grid import Array, Grid
from hycop.primitive import Primitive, fingerprint
from hycop.primitives.advection import UpwindAdvection
from hycop.query import Channel, Setting

if TYPE_CHECKING:
    from hycop.primitives.foreign.contract import Foreign

REPEATS = 3
"""Runs that are timed; the fastest counts, because other programs can only slow a run down."""

DIGITS = 2
"""Significant digits that are kept of a measured work: the clock tells no more."""


@cache
def seconds_per_update() -> float:
    """Seconds that this machine needs to update one channel in one cell, by first-order upwind advection."""
    params = {"cx": np.ones(8), "cy": np.full(8, 0.5)}
    setting = Setting(Grid.box((128, 128), batch=8), (Channel("u"),), params)
    u, tau = np.random.default_rng(0).random((8, 1, 128, 128)), np.full(8, 0.05)
    upwind = UpwindAdvection()
    return _seconds(upwind, u, tau, setting) / float(upwind.work(u, tau, setting).sum())


def _seconds(primitive: Primitive, u: Array, tau: Array, setting: Setting) -> float:
    """Seconds of the fastest of a few runs, after one that may compile or start something."""
    primitive.flow(u, tau, setting)
    taken = []
    for _ in range(REPEATS):
        start = perf_counter()
        primitive.flow(u, tau, setting)
        taken.append(perf_counter() - start)
    return min(taken)


def measured_work(
    primitive: Foreign, u: Array, tau: Array, setting: Setting, file: str | os.PathLike[str] | None
) -> float:
    """Updates per channel and cell that take as long as the primitive does; measured once and kept in a file."""
    path = kept_file() if file is None else Path(file)
    key, known = fingerprint(primitive), _read(path)
    if key not in known:
        per_cell = _seconds(primitive, u, tau, setting) / u.size
        # as others may have written meanwhile, their numbers are read again and stay
        known = {key: float(f"{per_cell / seconds_per_update():.{DIGITS}g}"), **_read(path)}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, known)
    return known[key]


def kept_file() -> Path:
    """Where measured work is kept on this machine."""
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache_home) / "hycop" / "work.json"


def _read(path: Path) -> dict[str, float]:
    """The numbers of the file; one that is missing or damaged is as good as empty, since all can be measured again."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {str(key): float(value) for key, value in content.items() if 0 < float(value) < np.inf}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
