"""In which regime a model errs: its error against every feature and coefficient of the queries."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from hycop.diagnosis.case import Case
from hycop.grid import Array

FEWEST = 8
"""Queries without which a correlation means nothing."""

CHANCE = 0.01
"""A trend counts if chance alone would make it with less than this probability."""


@dataclass(frozen=True)
class Regime:
    """How the error depends on one number of the queries: its rank correlation (Spearman), the probability that chance
    makes one so large for any of the numbers, and the mean errors in the lowest and in the highest third."""

    name: str
    correlation: float
    chance: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        return self.chance < CHANCE

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def numbers_of(case: Case) -> dict[str, Array]:
    """Features and coefficients (batch,) that vary over the queries; of the coefficients those that a feature does not
    show by its name."""
    found = dict(zip(case.model.scope.view.features.names, case.features.T, strict=True))
    found |= {name: column for name, column in case.coefficients.items() if name not in found}
    found |= {"time": case.query.time}
    return {name: column for name, column in found.items() if np.isfinite(column).all() and np.ptp(column) > 0}


def regimes(case: Case, errors: Array) -> list[Regime]:
    """The trend of the errors (batch,) with every number that varies, strongest first."""
    if case.batch < FEWEST or np.ptp(errors) == 0:
        return []
    from scipy.stats import spearmanr  # takes a second to import

    found, numbers = [], numbers_of(case)
    for name, column in numbers.items():
        order = np.argsort(column, kind="stable")
        third = max(1, case.batch // 3)
        trend = spearmanr(column, errors)
        found.append(
            Regime(
                name,
                float(trend.statistic),
                min(1.0, float(trend.pvalue) * len(numbers)),
                float(errors[order[:third]].mean()),
                float(errors[order[-third:]].mean()),
            )
        )
    return sorted(found, key=lambda each: -abs(each.correlation))
