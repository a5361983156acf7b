"""The result of naming: missing terms with their coefficients and errors, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Literal

from hycop.corrections import Correction

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

Verdict = Literal["nothing", "named", "unknown"]


@dataclass(frozen=True)
class MissingTerm:
    """A term that the equation of a ``channel`` lacks (None: a whole process), with its coefficient and standard error.

    ``correction`` is the coefficient of the model whose value is off, if that is what the term means. ``alternatives``
    are terms that the data cannot tell from it.
    """

    channel: str | None
    term: str
    coefficient: float
    error: float
    correction: Correction | None = None
    alternatives: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "term": self.term,
            "coefficient": self.coefficient,
            "error": self.error,
            "as": None if self.correction is None else str(self.correction),
            "channel": self.channel,
            "alternatives": list(self.alternatives),
        }

    def __str__(self) -> str:
        """As a summand: ``+ 0.967 u²``."""
        sign = "−" if self.coefficient < 0 else "+"
        names = [written(each) for each in (self.term, *self.alternatives)]
        named = names[0] if len(names) == 1 else f"({' or '.join(names)})"
        number = rounded(abs(self.coefficient), self.error)
        return f"{sign} {number}" if self.term == "1" and not self.alternatives else f"{sign} {number} {named}"


@dataclass(frozen=True)
class Missing:
    """What a model lacks to explain data.

    - ``verdict``: ``nothing`` (the residual is that of grid, steps and truth), ``named``, or ``unknown`` (something is
      missing, and no candidate explains it).
    - ``terms``: what was named; ``guess``: the best candidates where nothing is named.
    - ``explained``: the share of the squared residual that the terms (or the guess) explain.
    - ``certainty``: the fraction of resamples of the data that give the same answer.
    - ``before``, ``after``: root mean square of the relative residual without and with the terms; ``floor``: what grid,
      steps and truth leave; ``noise``: white noise in the data.
    """

    verdict: Verdict
    terms: tuple[MissingTerm, ...]
    guess: tuple[MissingTerm, ...]
    explained: float
    certainty: float
    before: float
    after: float
    floor: float
    noise: float
    pairs: int
    channels: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "verdict": self.verdict,
            "missing": [term.to_json() for term in self.terms],
            "explained": self.explained,
            "certainty": self.certainty,
            "guess": [term.to_json() for term in self.guess],
            "residual": {"before": self.before, "after": self.after, "floor": self.floor, "noise": self.noise},
            "pairs": self.pairs,
        }

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """Coefficients that are off, each once."""
        return tuple(dict.fromkeys(term.correction for term in self.terms if term.correction is not None))

    @property
    def unknown_terms(self) -> tuple[MissingTerm, ...]:
        """The terms that are not corrections of a coefficient."""
        return tuple(term for term in self.terms if term.correction is None)

    def __str__(self) -> str:
        level = f"residual {self.before:.1e}"
        if self.verdict == "nothing":
            noise = f" and noise {self.noise:.1e}" if self.noise > self.floor else ""
            return f"nothing is missing: {level}, at the level of grid, steps and truth ({self.floor:.1e}){noise}"
        if self.verdict == "unknown":
            best = ", ".join(equations(self.guess, self.channels))
            tried = f"; the best guess, {best}, explains {percent(self.explained)}" if best else ""
            return f"something is missing ({level}), no candidate explains it{tried}"
        error = max(term.error for term in self.terms)
        found = ", ".join(equations(self.terms, self.channels))
        shown = [f"that is {' and '.join(map(str, self.corrections))}"] if self.corrections else []
        share = f"explains {percent(self.explained)} of the residual"
        return f"{found}  ({'; '.join([f'± {error:.1g}', share, *shown])})"


def equations(terms: Sequence[MissingTerm], channels: Sequence[str]) -> list[str]:
    """``u_t = … + 0.967 u − 0.967 u²``, one text for each channel that lacks something."""
    found = []
    for channel in channels:
        own = [str(term) for term in terms if term.channel == channel]
        if own:
            found.append(f"{channel}_t = … {' '.join(own)}")
    found += [f"process {str(term).lstrip('+ ')}" for term in terms if term.channel is None]
    return found


def written(term: str) -> str:
    """A term for readers: u^2*u_x as u² u_x."""
    return " ".join(
        word if "^" not in word else word.partition("^")[0] + word.partition("^")[2].translate(SUPERSCRIPTS)
        for word in term.split("*")
    )


def rounded(value: float, error: float) -> str:
    """A number with the digits that its error leaves, at least three and at most six.

    >>> rounded(0.96671234, 0.001), rounded(0.4, 1e-9), rounded(0.00012345, 0.0)
    ('0.967', '0.400000', '0.000123450')
    """
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    digits = 6 if error <= 0 else floor(log10(value)) - floor(log10(error)) + 1
    return f"{value:#.{max(3, min(6, digits))}g}".rstrip(".")


def percent(share: float) -> str:
    """A share in per cent, with more digits the closer it is to one: 93.1 %, 99.998 %."""
    rest = 100 * (1 - share)
    digits = 1 if rest >= 1 else max(1, min(4, -floor(log10(max(rest, 1e-4)))))
    return f"{min(100 * share, 100 - 10.0**-digits if rest > 0 else 100.0):.{digits}f} %"
