"""Table ``features``: what a policy has from what it sees, on 2D advection–diffusion–reaction.

The same recipe with dimensionless features, with raw ones (coefficients with their units, the time, block means of the
state), and with none (one program for all queries).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hycop.evaluation import Row, merged
from hycop.experiments.learner import judged
from hycop.experiments.table import Bench, Table
from hycop.plots import Figure

KINDS = ("dimensionless", "raw", "none")


def build(bench: Bench) -> list[Row]:
    tables: list[list[Row]] = []
    for index, kind in enumerate(KINDS):
        for seed in range(bench.seeds):
            bench.progress(f"{kind}, seed {seed}", (index * bench.seeds + seed) / (len(KINDS) * bench.seeds))
            tables.append(bench.rows(("features", kind, seed), lambda kind=kind, seed=seed: _part(bench, kind, seed)))  # type: ignore[misc]
    bench.progress("done", 1.0)
    return merged(tables)


def _part(bench: Bench, kind: str, seed: int) -> list[Row]:
    done = bench.learned("adr2d", seed, features=kind)
    rows = judged(bench, "adr2d", done, seed, f"features={kind}", gated=False)
    return [row for row in rows if row.method != "static"]


def figures(rows: Sequence[Row]) -> Mapping[str, Figure]:
    return {}


TABLE = Table("features", "dimensionless, raw and no features (adr2d)", 200, build, figures)
