"""Why a model errs: budget, regimes, commutators, rates, shift, and a verdict in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

import numpy as np

from hycop import markup
from hycop.data import Dataset
from hycop.diagnosis import page
from hycop.diagnosis.budget import TERMS, Budget, budget
from hycop.diagnosis.case import MOST_QUERIES, Case
from hycop.diagnosis.commutators import Commutator, commutators
from hycop.diagnosis.missing import Missing
from hycop.diagnosis.naming import name_missing
from hycop.diagnosis.oracle import Oracle, oracle
from hycop.diagnosis.rates import Rates, lipschitz_constants, rates
from hycop.diagnosis.regimes import Regime, regimes
from hycop.diagnosis.shift import Shift, shift
from hycop.diagnosis.trusted import Trusted
from hycop.diagnosis.verdict import Verdict, verdict
from hycop.errors import HyCOPError, NonFiniteStateError
from hycop.progress import describing
from hycop.surrogate import HyCOP

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Why a model errs on a dataset. It prints as a page whose first line is the verdict.

    ``budget`` has the terms of the error, per query and as signed fields. ``regimes`` and ``commutators`` say where it
    comes from, ``rates``, ``lipschitz`` and ``oracle`` what finer programs and a better policy would change, ``shift``
    how far the queries are from those of training. ``missing`` names what the equation lacks, which is asked if the
    mismatch is above the errors of trusted part and truth; ``unnamed`` says why there was no naming.
    """

    case: Case
    budget: Budget
    verdict: Verdict
    regimes: list[Regime]
    commutators: list[Commutator]
    rates: Rates | None
    lipschitz: Mapping[str, float]
    oracle: Oracle | None
    shift: Shift | None
    missing: Missing | None = None
    unnamed: str = ""

    @property
    def gaps(self) -> dict[str, float]:
        """What a better optimisation could win (to the best program for each query), and what is lost from training to
        held-out queries (generalisation) and from those to the file (shift)."""
        best = {} if self.oracle is None else {"optimisation": self.oracle.gap}
        return {**best, **({} if self.shift is None else self.shift.gaps)}

    def __str__(self) -> str:
        case, model = self.case, self.case.model
        asked = f"model of {model.equation.name}, data of {case.source.problem} ({case.source.split}), "
        asked += f"{case.batch} of {case.of} queries"
        return "\n".join(
            [
                str(self.verdict),
                *([] if self.missing is None else [str(self.missing)]),
                *([f"nothing was named: {self.unnamed}"] if self.unnamed else []),
                asked,
                *page.section("budget, mean relative L2 error", page.budget_lines(self.budget)),
                *page.section(
                    "where",
                    [
                        *page.share_lines(self.budget),
                        *page.regime_lines(self.regimes),
                        *page.commutator_lines(self.commutators),
                    ],
                ),
                *page.section("rates", page.rate_lines(self.rates, self.lipschitz, self.oracle)),
                *page.section(
                    "shift",
                    [
                        *page.shift_lines(self.shift, case.outside, model.record.changes),
                        *page.gap_lines(self.gaps),
                    ],
                ),
            ]
        )

    def _repr_html_(self) -> str:
        """The verdict, the budget as a table, and the rest of the page, for notebooks."""
        budget, means = self.budget, self.budget.means()
        rows = [("total", f"{budget.total:.2e}", "")]
        for term in TERMS:
            size = means[term]
            blamed = size is not None and budget.floor.exceeded(term, size)
            why = (
                ""
                if blamed or size is None
                else f"not blamed: the trusted part is known to {budget.floor.of(term):.1e}"
            )
            rows.append((term, "not separable" if size is None else f"{size:.2e}", why))
        named = [] if self.missing is None else [markup.note(str(self.missing))]
        named += [markup.note(f"nothing was named: {self.unnamed}")] if self.unnamed else []
        rest = str(self).partition("\n\nwhere\n")[2]
        return markup.page(
            f"Diagnosis: {self.verdict.advice}",
            markup.note(self.verdict.evidence),
            *named,
            markup.table(("term", "mean relative L2 error", ""), rows),
            markup.preformatted("where\n" + rest) if rest else "",
        )

    def to_json(self) -> dict[str, object]:
        shares, case, missing = self.budget.shares, self.case, self.missing
        named = {} if missing is None else missing.to_json()
        content = {
            "verdict": self.verdict.kind,
            "blamed": self.verdict.blamed,
            "missing": named.get("missing", []),
            "explained": named.get("explained"),
            "naming": named or None,
            "not_named": self.unnamed or None,
            "budget": self.budget.means(),
            "line": str(self.verdict),
            "balanced": self.verdict.balanced,
            "floor": self.budget.floor.to_json(),
            "not_separable": self.budget.reason or None,
            "primitives": None if shares is None else shares.to_json(),
            "regimes": [each.to_json() for each in self.regimes],
            "commutators": [each.to_json() for each in self.commutators],
            "rates": None if self.rates is None else self.rates.to_json(),
            "lipschitz": self.lipschitz,
            "oracle": None if self.oracle is None else self.oracle.to_json(),
            "shift": None if self.shift is None else self.shift.to_json(),
            "gaps": self.gaps,
            "outside": {name: int(flags.sum()) for name, flags in case.outside.items()},
            "queries": {
                "sample": case.sample.tolist(),
                "time": case.query.time.tolist(),
                **{name: sizes.tolist() for name, sizes in self.budget.sizes.items()},
            },
        }
        return {name: _plain(value) for name, value in content.items()}


def diagnose(
    model: HyCOP, data: Dataset, *, naming: bool = True, most: int = MOST_QUERIES, seed: int = 0, verbose: bool = True
) -> Diagnosis:
    """Finds out why a model errs on data with truth: missing physics, its programs, a primitive, or the data.

    Data of a larger equation are welcome: coefficients that the model does not know are left out. At most ``most``
    queries are looked at, evenly spread. If physics is missing, ``naming`` asks ``name_missing`` what it is.
    """
    with describing("diagnosis", enabled=verbose) as tell:
        tell("answers of the model", 0.0)
        case = Case.of_data(model, data, most)
        trusted = Trusted.of(case.model, case.query.grid, data.problem)
        found = budget(case, trusted, lambda done: tell("error budget", 0.6 * done))
        errors = found.sizes["total"]
        separable = not found.reason
        tell("commutators", 0.6)
        pairs = _unless_lost(lambda: commutators(case, trusted, separable))
        tell("finer programs", 0.7)
        finer = _unless_lost(lambda: rates(case, trusted, separable))
        constants = lipschitz_constants(case)
        tell("best programs for each query", 0.8)
        best = oracle(case)
        tell("shift", 0.9)
        moved = shift(case, errors)
    judged, missing, unnamed = verdict(found), None, ""
    if naming and found.mismatched:
        try:
            missing = name_missing(model, data, seed=seed, verbose=verbose)
            judged = judged.informed(missing)
        except HyCOPError as error:
            unnamed = str(error)
    trends = regimes(case, errors)
    return Diagnosis(case, found, judged, trends, pairs or [], finer, constants, best, moved, missing, unnamed)


def _unless_lost(compute: Callable[[], T]) -> T | None:
    """What is computed, or None if a state becomes NaN or infinite on the way."""
    try:
        return compute()
    except NonFiniteStateError:
        return None


def _plain(value: object) -> object:
    """Data that JSON can hold; what is not finite is null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not isfinite(value) else value
