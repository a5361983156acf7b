"""How the error falls when programs are refined, and how primitives amplify disturbances.

‖S − Ψ̂_h‖ ≲ C_1 h^p + C_2 h^q   splitting and primitive error of programs cut 1/h times finer
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hycop.conformance.learned import lipschitz
from hycop.diagnosis.case import Case
from hycop.diagnosis.trusted import Trusted
from hycop.errors import HyCOPError
from hycop.grid import restrict

REFINEMENTS = (1, 2, 4)
"""How many times finer programs are cut."""

QUERIES = 8
"""Queries whose programs are refined, evenly spread."""

MOST_STEPS = 400
"""Steps of the longest refined program: longer ones are not run."""


@dataclass(frozen=True)
class Rate:
    """A term of the budget as C h^p, fitted to its mean ``sizes`` for programs cut 1/h times finer."""

    constant: float
    order: float
    sizes: tuple[float, ...]

    @classmethod
    def of(cls, substeps: tuple[int, ...], sizes: tuple[float, ...]) -> Rate:
        """Least squares in logarithms; a term that vanishes has order 0."""
        if len(sizes) < 2 or min(sizes) <= 0:
            return cls(sizes[0], 0.0, sizes)
        slope, intercept = np.polyfit(-np.log(substeps), np.log(sizes), 1)
        return cls(float(np.exp(intercept)), float(slope), sizes)

    def at(self, substeps: float) -> float:
        """C h^p for h = 1 / substeps."""
        return float(self.constant * substeps**-self.order)


@dataclass(frozen=True)
class Rates:
    """Mean errors of programs cut ``substeps`` times finer: the ``total``, and where they are separable ``splitting``
    (C_1 h^p) and ``primitive`` (C_2 h^q), of some queries."""

    substeps: tuple[int, ...]
    terms: Mapping[str, Rate]
    queries: int

    def next_doubling(self) -> dict[str, tuple[float, float]]:
        """Each mean error as it is and with programs cut twice as finely, measured."""
        return {name: (rate.sizes[0], rate.sizes[1]) for name, rate in self.terms.items() if len(rate.sizes) > 1}

    def to_json(self) -> dict[str, object]:
        terms = {
            name: {"constant": rate.constant, "order": rate.order, "sizes": list(rate.sizes)}
            for name, rate in self.terms.items()
        }
        return {"substeps": list(self.substeps), "terms": terms, "queries": self.queries}


def rates(case: Case, trusted: Trusted, separable: bool) -> Rates:
    """Refines the programs of some queries, with the model's primitives and with trusted ones."""
    some = case.take(case.few(QUERIES))
    steps = some.programs.ops.shape[1]
    substeps = tuple(each for each in REFINEMENTS if each == 1 or each * steps <= MOST_STEPS)
    sizes: dict[str, list[float]] = {"total": []}
    shape = some.query.grid.shape
    if separable:
        start = trusted.start(some.query)
        limits = restrict(trusted.limit(start), shape)
        sizes |= {"splitting": [], "primitive": []}
    for each in substeps:
        programs = some.programs.with_substeps(each)
        answers = some.answers_of(programs)
        sizes["total"].append(float(some.relative(some.truth - answers).mean()))
        if separable:
            composed = restrict(trusted.run(programs, start), shape)
            sizes["splitting"].append(float(some.relative(limits - composed).mean()))
            sizes["primitive"].append(float(some.relative(composed - answers).mean()))
    return Rates(substeps, {name: Rate.of(substeps, tuple(found)) for name, found in sizes.items()}, some.batch)


def lipschitz_constants(case: Case) -> dict[str, float]:
    """Largest ‖Φ̂_τ(u + δ) − Φ̂_τ u‖ / ‖δ‖ of every primitive in use, for the mean τ of its steps in each query."""
    some = case.take(case.few(QUERIES))
    query = some.query_from(np.arange(some.batch), some.traced([0])[:, 0])
    found = {}
    for op, name in enumerate(some.programs.names):
        mine = some.programs.ops == op
        used = np.flatnonzero(mine.any(axis=1))
        if used.size:
            mean = np.where(mine, some.programs.durations, 0.0).sum(axis=1) / np.maximum(1, mine.sum(axis=1))
            try:
                found[name] = lipschitz(
                    some.model.dictionary[name], query.u0[used], mean[used], query.setting.take(used)
                )
            except HyCOPError:  # a disturbed state that the primitive cannot take
                found[name] = float("inf")
    return found
