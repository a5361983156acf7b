"""Table ``features``: what a policy has from what it sees, on 2D advection–diffusion–reaction.

The same recipe with dimensionless features, with raw ones (coefficients with their units, the time, block means of the
state), and with none (one program for all queries).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hycop.evaluation import Row
from hycop.experiments.judging import Part, assembled, judged
from hycop.experiments.table import Bench, Table
from hycop.plots import Figure


def _part(kind: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned("adr2d", seed, features=kind)
        found = judged(bench, "adr2d", done, seed, f"features={kind}", gated=False)
        return [row for row in found if row.method != "static"]

    return kind, rows


PARTS = tuple(_part(kind) for kind in ("dimensionless", "raw", "none"))


def build(bench: Bench) -> list[Row]:
    return assembled(bench, "features", PARTS)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    return {}


TABLE = Table("features", "dimensionless, raw and no features (adr2d)", 200, build, figures, "quick")
