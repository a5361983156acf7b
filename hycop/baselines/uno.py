"""U-shaped neural operator at one query time."""

from __future__ import annotations

from hycop.baselines.baseline import Baseline

BASELINE = Baseline(
    "uno",
    "U-NO",
    "uno-direct",
    "fixed",
    "Rahman, Ross, Azizzadenesheli: U-NO: U-shaped neural operators, TMLR 2023",
)
