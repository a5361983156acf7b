"""The verdict: which term of the budget is guilty, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hycop.diagnosis.budget import Budget
from hycop.diagnosis.floor import MARGIN
from hycop.diagnosis.missing import Missing, equations

Kind = Literal["enrich", "policy", "primitive", "trust"]

GUILTY: dict[str, Kind] = {"mismatch": "enrich", "splitting": "policy", "primitive": "primitive"}
"""What each term of the budget asks for."""

CERTAIN = 0.95
"""Certainty of a naming that outweighs noise."""

SAME_SIZE = 2 / 3
"""Two terms are balanced if the smaller is at least this fraction of the larger."""


@dataclass(frozen=True)
class Verdict:
    """What to do about the error: ``kind`` is None where its causes cannot be told apart. ``blamed`` names the
    primitive to improve. ``balanced`` are terms as large as the guilty one. ``remedy`` says with what to enrich."""

    kind: Kind | None
    blamed: str | None = None
    balanced: tuple[str, ...] = ()
    evidence: str = ""
    remedy: str = ""

    @property
    def advice(self) -> str:
        improve = f"improve primitive {self.blamed}" if self.blamed else "improve the primitives"
        return {
            "enrich": f"enrich the dictionary {self.remedy}".strip(),
            "policy": "refine the policy",
            "primitive": improve,
            "trust": "trust it: the error is that of the data",
            None: "not separable",
        }[self.kind]

    def informed(self, missing: Missing) -> Verdict:
        """The verdict after naming: with what to enrich. Terms that are named for sure are worth adding even where they
        are smaller than the noise of the data."""
        if self.kind == "trust" and missing.verdict == "named" and missing.certainty > CERTAIN:
            sure = f"below the noise of the data, but named with a certainty of {missing.certainty:.0%}"
            return Verdict("enrich", evidence=sure).informed(missing)
        if self.kind != "enrich":
            return self
        if missing.verdict == "nothing":
            return replace(self, remedy="(naming sees nothing above the errors of grid and steps)")
        if missing.verdict == "unknown":
            return replace(
                self, remedy="(no term explains what is missing: a network may, hycop enrich --closure network)"
            )
        terms, corrections = missing.unknown_terms, missing.corrections
        parts = [f"with {', '.join(equations(terms, missing.channels))}"] if terms else []
        parts += [f"(correct the coefficient: {each})" for each in corrections]
        return replace(self, remedy=" ".join(parts))

    def __str__(self) -> str:
        """One line."""
        return f"{self.advice}; {self.evidence}"


def verdict(budget: Budget) -> Verdict:
    """The guilty term: the largest of those that exceed the errors of the trusted part and of the data."""
    total, floor = budget.total, budget.floor
    if total <= MARGIN * floor.data:
        return Verdict("trust", evidence=f"{total:.1e}, with data known to {floor.data:.1e} as cell averages")
    found = budget.blamable()
    rest = float(budget.sizes["rest"].mean()) if "rest" in budget.sizes else 0.0
    if not found or rest > next(iter(found.values())):
        why = budget.reason or f"every term is below the error of the trusted part ({floor.limit + floor.programs:.1e})"
        return Verdict(None, evidence=f"of the error {total:.1e}, {why}")
    term, size = next(iter(found.items()))
    balanced = tuple(other for other, theirs in found.items() if other != term and theirs >= SAME_SIZE * size)
    evidence = f"{term} {size:.1e} of the error {total:.1e}, the largest term in {budget.leads(term):.0%} of queries"
    blamed = None
    if term == "primitive" and budget.shares is not None:
        blamed, part = next(iter(budget.shares.fractions().items()))
        evidence += f"; {blamed} has {part:.0%} of it"
    if balanced:
        cancel = ", and they cancel" if total < 0.5 * size else ""
        evidence += f"; balanced with {' and '.join(balanced)}{cancel}"
    return Verdict(GUILTY[term], blamed, balanced, evidence)
