"""Corrections of coefficients: what a model adds to the values that it is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from hycop.errors import InvalidInputError
from hycop.grid import Array


@dataclass(frozen=True)
class Correction:
    """A coefficient c that is off: ``times``·c + ``plus`` stands for it.

    >>> print(Correction("cx", 0.4), Correction("Dx", times=1.25), Correction("k", -0.1).applied(2.0))
    cx + 0.4 Dx * 1.25 1.9
    """

    name: str
    plus: float = 0.0
    times: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.plus) and isfinite(self.times)):
            raise InvalidInputError(f"correction of '{self.name}': finite numbers are needed")

    def __str__(self) -> str:
        scaled = self.name if self.times == 1 else f"{self.name} * {self.times:.4g}"
        if self.plus == 0:
            return scaled
        return f"{scaled} {'-' if self.plus < 0 else '+'} {abs(self.plus):.4g}"

    def applied(self, value: Array | float) -> Array | float:
        return self.times * value + self.plus

    def after(self, earlier: Correction) -> Correction:
        """Both corrections as one, the earlier first."""
        return Correction(self.name, self.times * earlier.plus + self.plus, self.times * earlier.times)


def corrected(params: Mapping[str, Array], corrections: Mapping[str, Correction]) -> dict[str, Array]:
    """Coefficients after their corrections."""
    return {
        name: corrections[name].applied(value) if name in corrections else value  # type: ignore[misc]
        for name, value in params.items()
    }
