"""The tables and figures, one file each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from hycop.errors import UnknownNameError
from hycop.experiments import (
    coverage,
    dam_break,
    es,
    features,
    fixed_time,
    interpretation,
    ks,
    learner,
    ns,
    one_dimensional,
    resolution,
    robustness,
    schemes,
    trajectory,
)
from hycop.experiments.table import Table

__all__ = ["TABLES", "Table", "table"]

TABLES: Mapping[str, Table] = {
    entry.name: entry
    for entry in (
        schemes.TABLE,
        learner.TABLE,
        features.TABLE,
        one_dimensional.TABLE,
        fixed_time.TABLE,
        trajectory.TABLE,
        ns.TABLE,
        ks.TABLE,
        dam_break.TABLE,
        resolution.TABLE,
        interpretation.TABLE,
        robustness.TABLE,
        es.TABLE,
        coverage.TABLE,
    )
}


def table(name: str) -> Table:
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]
