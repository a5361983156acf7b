"""A spectral step against the bare transforms that it cannot do without, and a fused pair of steps against two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import scipy.fft

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, compared, interleaved, median_ratio, milliseconds
from hycop.execution import run
from hycop.grid import Array
from hycop.program import Program


def bare_pair(u: Array) -> Callable[[], Array]:
    """rfft2, a multiplier that is there already, irfft2."""
    multiplier = np.ones_like(scipy.fft.rfft2(u))

    def pair() -> Array:
        modes = scipy.fft.rfft2(u)
        modes *= multiplier
        out: Array = scipy.fft.irfft2(modes, s=u.shape[2:], overwrite_x=True)
        return out

    return pair


def alone(cells: int, rounds: int) -> list[Ratio]:
    """A step of one sample."""
    query = adr_query(1, cells)
    u, tau, setting = query.u0, query.time, query.setting
    seconds = interleaved(
        {
            "FFT pair": bare_pair(u),
            "advection": lambda: SPECTRAL["advection"].flow(u, tau, setting),
            "diffusion": lambda: SPECTRAL["diffusion"].flow(u, tau, setting),
        },
        rounds,
        pause=0.0,
    )
    return [
        compared("spectral", f"{name} / bare FFT pair, 1 × {cells}²", seconds, name, "FFT pair", 1.3, at_least=False)
        for name in ("advection", "diffusion")
    ]


def measure(batch: int = 2000, cells: int = 32, rounds: int = 31, single: Sequence[int] = (32, 64, 128)) -> list[Ratio]:
    query = adr_query(batch, cells)
    u, tau, setting = query.u0, query.time, query.setting
    seconds = interleaved(
        {
            "FFT pair": bare_pair(u),
            "advection": lambda: SPECTRAL["advection"].flow(u, tau, setting),
            "diffusion": lambda: SPECTRAL["diffusion"].flow(u, tau, setting),
            "run advection": lambda: run(Program.of(("advection", 0.2)), SPECTRAL, query),
            "run diffusion": lambda: run(Program.of(("diffusion", 0.2)), SPECTRAL, query),
            "run both": lambda: run(Program.of(("advection", 0.2), ("diffusion", 0.2)), SPECTRAL, query),
        },
        rounds,
    )
    where = f"{batch} × {cells}²"
    row = partial(compared, "spectral", seconds=seconds, theirs="FFT pair", goal=1.1, at_least=False, queries=batch)
    two = median_ratio(seconds, ("run advection", "run diffusion"), "run both")
    return [
        *(row(f"{name} / bare FFT pair, {where}", ours=name) for name in ("advection", "diffusion")),
        Ratio("spectral", f"two runs / fused run, {where}", two, 1.6, True, milliseconds(seconds)),
        *(each for n in single for each in alone(n, 10 * rounds)),
    ]
