"""A spectral step against the bare FFT pair that it cannot do without, and a fused pair of steps against two."""

from __future__ import annotations

import numba
import scipy.fft

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, interleaved, median_ratio, milliseconds
from hycop.execution import run
from hycop.program import Program


def measure(batch: int = 2000, cells: int = 32, rounds: int = 31) -> list[Ratio]:
    query = adr_query(batch, cells)
    u, tau, setting = query.u0, query.time, query.setting
    workers = numba.get_num_threads()

    def bare_pair() -> object:
        modes = scipy.fft.rfft2(u, workers=workers)
        return scipy.fft.irfft2(modes, s=u.shape[2:], workers=workers, overwrite_x=True)

    seconds = interleaved(
        {
            "FFT pair": bare_pair,
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
            1.3,
            False,
        ),
        Ratio(
            "spectral",
            f"diffusion / bare FFT pair, {where}",
            median_ratio(seconds, "diffusion", "FFT pair"),
            1.3,
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
    ]
