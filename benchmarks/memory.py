"""Memory of ``run``: linear in the batch, and capped by ``memory=``."""

from __future__ import annotations

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, peak_bytes
from hycop.execution import run
from hycop.schemes import splitting


def run_peak(batch: int, cells: int, axes: int, memory: int) -> int:
    """Bytes that ``run`` takes beyond its arguments and its result."""
    query = adr_query(batch, cells, axes)
    programs = splitting("strang").programs(query, SPECTRAL)
    run(programs.take(slice(0, 2)), SPECTRAL, query.take(slice(0, 2)))  # compile first
    return peak_bytes(lambda: run(programs, SPECTRAL, query, memory=memory)) - query.u0.nbytes


def measure(batch: int = 1000, cells: int = 32) -> list[Ratio]:
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
    return ratios
