"""Polynomials in channels, their derivatives and coefficients: the algebra that a formula needs, with bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import isfinite
from typing import NamedTuple

from hycop.errors import InvalidInputError

MOST_TERMS = 200
"""Terms of a polynomial beyond which a formula is refused: a few brackets with large powers make millions."""


class Atom(NamedTuple):
    """A coefficient (``derivative`` is None), or a channel with the letters of its derivative."""

    name: str
    derivative: str | None = None

    @property
    def is_field(self) -> bool:
        return self.derivative is not None

    def __str__(self) -> str:
        return f"{self.name}_{self.derivative}" if self.derivative else self.name


Monomial = tuple[tuple[Atom, int], ...]
"""Atoms with their powers, in a fixed order."""


@dataclass(frozen=True)
class Polynomial:
    """Σ number · monomial; terms with the number zero are left out.

    >>> u, r = Polynomial.atom(Atom("u", "")), Polynomial.atom(Atom("r"))
    >>> {written(monomial): number for monomial, number in (r * u * (Polynomial.number(1.0) - u)).terms.items()}
    {'r*u': 1.0, 'r*u^2': -1.0}
    """

    terms: Mapping[Monomial, float]

    @classmethod
    def number(cls, value: float) -> Polynomial:
        return cls({(): value} if value else {})

    @classmethod
    def atom(cls, atom: Atom) -> Polynomial:
        return cls({((atom, 1),): 1.0})

    @property
    def constant(self) -> float | None:
        """Its value if it is a number."""
        if not self.terms:
            return 0.0
        return self.terms[()] if set(self.terms) == {()} else None

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for monomial, number in other.terms.items():
            total[monomial] = total.get(monomial, 0.0) + number
        return _bounded(total)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.times(-1.0)

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, float] = {}
        if len(self.terms) * len(other.terms) > MOST_TERMS**2:
            raise InvalidInputError(f"more than {MOST_TERMS} terms: write a shorter formula")
        for (one, a), (two, b) in product(self.terms.items(), other.terms.items()):
            powers = Counter(dict(one))
            powers.update(dict(two))
            monomial = tuple(sorted(powers.items(), key=lambda item: (item[0].is_field, str(item[0]))))
            total[monomial] = total.get(monomial, 0.0) + a * b
        return _bounded(total)

    def times(self, number: float) -> Polynomial:
        return _bounded({monomial: number * each for monomial, each in self.terms.items()})

    def power(self, exponent: int) -> Polynomial:
        out = Polynomial.number(1.0)
        for _ in range(exponent):
            out = out * self
        return out

    def differentiated(self, letter: str) -> Polynomial:
        """Its derivative along an axis, by the product rule; coefficients do not vary in space."""
        total = Polynomial({})
        for monomial, number in self.terms.items():
            for atom, power in monomial:
                if atom.is_field:
                    rest = Polynomial({tuple(item for item in monomial if item[0] != atom): number * power})
                    inner = Polynomial.atom(atom).power(power - 1)
                    steeper = Atom(atom.name, "".join(sorted((atom.derivative or "") + letter)))
                    total = total + rest * inner * Polynomial.atom(steeper)
        return total


def _bounded(terms: Mapping[Monomial, float]) -> Polynomial:
    found = {monomial: number for monomial, number in terms.items() if number}
    if len(found) > MOST_TERMS:
        raise InvalidInputError(f"more than {MOST_TERMS} terms: write a shorter formula")
    if not all(map(isfinite, found.values())):
        raise InvalidInputError("its numbers are too large")
    return Polynomial(found)


def written(monomial: Monomial) -> str:
    """A monomial as the text of a term: ``r*u^2*u_x``, or ``1``."""
    return "*".join(str(atom) if power == 1 else f"{atom}^{power}" for atom, power in monomial) or "1"
