"""What ``run`` adds to the primitives it calls."""

from __future__ import annotations

from benchmarks.data import SPECTRAL, adr_query
from benchmarks.measure import Ratio, compared, interleaved
from hycop.execution import run
from hycop.primitive import flow_of
from hycop.query import Query
from hycop.schemes import splitting


def by_hand(query: Query) -> object:
    """Strang's program as ``run`` executes it: linear half step in one transform pair, reaction, linear half step."""
    linear = SPECTRAL["advection"].symbol(query.setting) + SPECTRAL["diffusion"].symbol(query.setting)
    half = 0.5 * query.time
    u = flow_of(linear, query.u0, half)
    u = SPECTRAL["reaction"].flow(u, query.time, query.setting)
    return flow_of(linear, u, half)


def measure(batch: int = 1000, cells: int = 32, rounds: int = 41) -> list[Ratio]:
    query = adr_query(batch, cells)
    programs = splitting("strang").programs(query, SPECTRAL)
    seconds = interleaved({"run": lambda: run(programs, SPECTRAL, query), "by hand": lambda: by_hand(query)}, rounds)
    what = f"run Strang / its primitives, {batch} × {cells}²"
    return [compared("engine", what, seconds, "run", "by hand", 1.1, at_least=False, queries=batch)]
