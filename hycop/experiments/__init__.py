"""The tables and figures, one file each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from hycop.errors import UnknownNameError
from hycop.experiments import features, ks, learner, schemes
from hycop.experiments.table import Table

__all__ = ["TABLES", "Table", "table"]

TABLES: Mapping[str, Table] = {entry.name: entry for entry in (schemes.TABLE, learner.TABLE, features.TABLE, ks.TABLE)}


def table(name: str) -> Table:
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]
