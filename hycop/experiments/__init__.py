"""The tables and figures, one file each, found by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from hycop.errors import UnknownNameError
from hycop.experiments.bench import Bench
from hycop.experiments.table import Table, assembled

__all__ = ["TABLES", "Bench", "Table", "assembled", "find_table"]

MODULES = (
    "schemes",
    "learner",
    "features",
    "one_dimensional",
    "fixed_time",
    "trajectory",
    "ns",
    "ks",
    "coverage",
    "dam_break",
    "resolution",
    "robustness",
    "interpretation",
    "es",
    "regime_b",
    "regime_b_residual",
    "estimates",
    "naming",
    "dictionary",
    "cost",
    "zero_shot",
    "frontier",
    "own",
)
"""The files that hold a table, in the order in which ``make tables`` computes them; each has it as ``TABLE``."""


def _tables() -> dict[str, Table]:
    found: list[Table] = [import_module(f"hycop.experiments.{module}").TABLE for module in MODULES]
    return {table.name: table for table in found}


TABLES: Mapping[str, Table] = _tables()


def find_table(name: str) -> Table:
    """A table by its name.

    >>> find_table("1d").seeds
    3
    """
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    return TABLES[name]
