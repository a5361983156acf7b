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


RECIPROCAL = "1/"
"""How the name of a function begins that divides."""


class Names(NamedTuple):
    """The channels and the coefficients in a function, sorted."""

    channels: tuple[str, ...]
    coefficients: tuple[str, ...]


class Atom(NamedTuple):
    """A coefficient (``derivative`` is None), or a channel with the letters of its derivative.

    A function, as ``sin(k*u)``, is an atom that has its text as name, and ``inside`` the names in it. It counts as a
    coefficient if there are no channels in it.
    """

    name: str
    derivative: str | None = None
    inside: Names | None = None

    @property
    def is_field(self) -> bool:
        return self.derivative is not None

    @property
    def is_function(self) -> bool:
        return self.inside is not None

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of coefficients that it needs."""
        if self.inside is not None:
            return self.inside.coefficients
        return () if self.is_field else (self.name,)

    @property
    def channels(self) -> tuple[str, ...]:
        if self.inside is not None:
            return self.inside.channels
        return (self.name,) if self.is_field else ()

    def __str__(self) -> str:
        if self.is_function:
            return f"d{self.derivative}({self.name})" if self.derivative else self.name
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

    @property
    def names(self) -> Names:
        """The channels and coefficients in it."""
        atoms = [atom for monomial in self.terms for atom, _ in monomial]
        return Names(
            tuple(sorted({name for atom in atoms for name in atom.channels})),
            tuple(sorted({name for atom in atoms for name in atom.coefficients})),
        )

    @property
    def pointwise(self) -> bool:
        """Whether it has no derivatives."""
        return not any(atom.derivative for monomial in self.terms for atom, _ in monomial)

    @property
    def text(self) -> str:
        """A formula of it, which reads the same."""
        parts = []
        for monomial, number in self.terms.items():
            size = repr(abs(number)).removesuffix(".0")
            factors = [*([] if size == "1" and monomial else [size]), *([written(monomial)] if monomial else [])]
            parts.append(f"{'-' if number < 0 else '+'} {'*'.join(factors)}")
        joined = " ".join(parts) or "0"
        return joined.removeprefix("+ ") if joined.startswith("+") else joined.replace("- ", "-", 1)

    @classmethod
    def function(cls, text: str, *arguments: Polynomial) -> Polynomial:
        """A function of arguments without derivatives, by its text."""
        channels = {name for each in arguments for name in each.names.channels}
        coefficients = {name for each in arguments for name in each.names.coefficients}
        inside = Names(tuple(sorted(channels)), tuple(sorted(coefficients)))
        return cls.atom(Atom(text, "" if channels else None, inside))

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
        """Its derivative along an axis, by the product rule; coefficients do not vary in space. A product with a
        function of channels stays whole: its derivative is that of a flux."""
        total = Polynomial({})
        for monomial, number in self.terms.items():
            if any(atom.is_function and atom.is_field for atom, _ in monomial):
                total = total + _flux(monomial, number, letter)
                continue
            for atom, power in monomial:
                if atom.is_field:
                    rest = Polynomial({tuple(item for item in monomial if item[0] != atom): number * power})
                    inner = Polynomial.atom(atom).power(power - 1)
                    steeper = Atom(atom.name, "".join(sorted((atom.derivative or "") + letter)))
                    total = total + rest * inner * Polynomial.atom(steeper)
        return total


def _flux(monomial: Monomial, number: float, letter: str) -> Polynomial:
    if any(atom.derivative for atom, _ in monomial):
        raise InvalidInputError("functions as sin(u) can be differentiated once only; derivatives cannot stand in them")
    outside = tuple(item for item in monomial if not item[0].is_field)
    within = Polynomial({tuple(item for item in monomial if item[0].is_field): 1.0})
    flux = Polynomial.atom(Atom(within.text, letter, within.names))
    return Polynomial({outside: number}) * flux


def _bounded(terms: Mapping[Monomial, float]) -> Polynomial:
    found = {monomial: number for monomial, number in terms.items() if number}
    if len(found) > MOST_TERMS:
        raise InvalidInputError(f"more than {MOST_TERMS} terms: write a shorter formula")
    if not all(map(isfinite, found.values())):
        raise InvalidInputError("its numbers are too large")
    return Polynomial(found)


def written(monomial: Monomial) -> str:
    """A monomial as the text of a term: ``r*u^2*u_x``, ``r*u/(1 + u)``, or ``1``."""
    above = [(atom, power) for atom, power in monomial if not atom.name.startswith(RECIPROCAL)]
    below = [(atom.name.removeprefix(RECIPROCAL), power) for atom, power in monomial if (atom, power) not in above]
    top = "*".join(
        _powered(f"({atom})" if atom.is_function and power > 1 else str(atom), power) for atom, power in above
    )
    return (top or "1") + "".join(f"/{_powered(text, power)}" for text, power in below)


def _powered(text: str, power: int) -> str:
    return text if power == 1 else f"{text}^{power}"


def bracketed(text: str) -> str:
    """The text as a base or an exponent."""
    return text if text.isidentifier() or text.replace(".", "", 1).isdigit() else f"({text})"
