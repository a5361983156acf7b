"""A spectral step against the bare transforms that it cannot do without, and a fused pair of steps against two."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numba
import numpy as np
import scipy.fft

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, interleaved, median_ratio, milliseconds, spread
from hycop.execution import run
from hycop.grid import Array
from hycop.program import Program


def bare_pair(u: Array, workers: int = 1) -> Callable[[], Array]:
    """rfft2, a multiplier that is there already, irfft2."""
    multiplier = np.ones_like(scipy.fft.rfft2(u))

    def pair() -> Array:
        modes = scipy.fft.rfft2(u, workers=workers)
        modes *= multiplier
        out: Array = scipy.fft.irfft2(modes, s=u.shape[2:], workers=workers, overwrite_x=True)
        return out

    return pair


def alone(cells: int, rounds: int) -> Ratio:
    """A step of one sample: the mean of advection and diffusion, CPU time."""
    query = adr_query(1, cells)
    u, tau, setting = query.u0, query.time, query.setting
    seconds = interleaved(
        {
            "FFT pair": bare_pair(u),
            "advection": lambda: SPECTRAL["advection"].flow(u, tau, setting),
            "diffusion": lambda: SPECTRAL["diffusion"].flow(u, tau, setting),
        },
        rounds,
        time.process_time,
        pause=0.0,
    )
    ratio = 0.5 * median_ratio(seconds, ("advection", "diffusion"), "FFT pair")
    what = f"advection or diffusion / bare FFT pair, 1 × {cells}²"
    return Ratio("spectral", what, ratio, 1.3, False, f"CPU time: {spread(seconds)}")


def measure(batch: int = 2000, cells: int = 32, rounds: int = 31, single: Sequence[int] = (32, 64, 128)) -> list[Ratio]:
    query = adr_query(batch, cells)
    u, tau, setting = query.u0, query.time, query.setting
    seconds = interleaved(
        {
            "FFT pair": bare_pair(u, numba.get_num_threads()),
            "advection": lambda: SPECTRAL["advection"].flow(u, tau, setting),
            "diffusion": lambda: SPECTRAL["diffusion"].flow(u, tau, setting),
            "run advection": lambda: run(Program.of(("advection", 0.2)), SPECTRAL, query),
            "run diffusion": lambda: run(Program.of(("diffusion", 0.2)), SPECTRAL, query),
            "run both": lambda: run(Program.of(("advection", 0.2), ("diffusion", 0.2)), SPECTRAL, query),
        },
        rounds,
    )
    two = ("run advection", "run diffusion")
    where = f"{batch} × {cells}²"
    return [
        Ratio(
            "spectral",
            f"advection / bare FFT pair, {where}",
            median_ratio(seconds, "advection", "FFT pair"),
            1.1,
            False,
        ),
        Ratio(
            "spectral",
            f"diffusion / bare FFT pair, {where}",
            median_ratio(seconds, "diffusion", "FFT pair"),
            1.1,
            False,
        ),
        Ratio(
            "spectral",
            f"two runs / fused run, {where}",
            median_ratio(seconds, two, "run both"),
            1.6,
            True,
            milliseconds(seconds),
        ),
        *(alone(n, 10 * rounds) for n in single),
    ]
