"""Table ``features``: what features are worth, on 2D advection–diffusion–reaction.

The same recipe with dimensionless features, with raw ones (coefficients with their units, the time, block means of the
state), and with none (one program for all queries).
"""

from __future__ import annotations

from hycop.evaluation import Row
from hycop.experiments.bench import Bench
from hycop.experiments.judging import judged
from hycop.experiments.table import Part, Table


def _part(kind: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned("adr2d", seed, features=kind)
        found = judged(bench, "adr2d", done, seed, {"features": kind}, gated=False)
        return [row for row in found if row.method != "static"]

    return rows


TABLE = Table(
    "features",
    "dimensionless, raw and no features (adr2d)",
    {kind: _part(kind) for kind in ("dimensionless", "raw", "none")},
    samples=200,
    preset="quick",
)
