"""Table ``naming``: planted terms, and whether they are named from pairs of states at T = 0.2.

A solver of its own (``planted``) adds a hidden term to advection, diffusion and reaction on 32²; models of ``ad2d``,
``adr2d`` and ``advection2d`` see the pairs. Every seed is another case of each kind: other constants, coefficients and
initial states. Rows, as means over the cases: ``named exactly`` (the right terms and nothing else; for *nothing* that
nothing is missing, for *nonlocal* that nothing is named), the largest relative error of a constant where they are,
``named wrongly, certainty above 95 %``, the share of the residual that is explained, and CPU seconds. With noise of 1 %
on u_T in the rows that say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import process_time
from zlib import crc32

import numpy as np

from hycop.data import Dataset
from hycop.diagnosis import Missing, name_missing
from hycop.evaluation import Row, Variant
from hycop.experiments.bench import Bench
from hycop.experiments.planted import KINDS, Plant, planted, plants
from hycop.experiments.table import Part, Table

TIME = 0.2
NOISE = 0.01
CERTAIN = 0.95
EXACT, CONSTANT, OVERCONFIDENT = "named exactly", "relative error of constants", "named wrongly, certainty above 95 %"
QUIET_ONLY = ("nonlocal",)
"""Kinds that are planted without noise only."""

AGAIN: Mapping[str, int] = {"nothing": 2}
"""Cases of a kind for each seed, if there are several."""


def case(kind: str, seed: int, samples: int, noise: float) -> tuple[Plant, Dataset]:
    """A plant with random constants, and its pairs."""
    plant = plants(kind, np.random.default_rng([crc32(kind.encode()), seed]))
    return plant, planted(plant, samples, seed, TIME, noise=noise)


def is_right(plant: Plant, missing: Missing) -> bool:
    """Whether naming says what was planted and nothing else."""
    if plant.terms is None:
        return missing.verdict == "unknown"
    named = {term.term for term in missing.terms}
    return named == set(plant.terms) and missing.verdict == ("named" if plant.terms else "nothing")


def is_wrong(plant: Plant, missing: Missing) -> bool:
    """Whether naming claims something that was not planted; a part of it, or no answer, is no such claim."""
    return missing.verdict == "named" and {term.term for term in missing.terms} != set(plant.terms or ())


def _part(kind: str, noise: float) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        found: list[Row] = []
        for again in range(AGAIN.get(kind, 1)):
            found += _case_rows(bench, kind, AGAIN.get(kind, 1) * seed + again, noise)
        return found

    return rows


def _case_rows(bench: Bench, kind: str, seed: int, noise: float) -> list[Row]:
    plant, data = case(kind, seed, bench.samples, noise)
    model = bench.learned(plant.problem, 0).model
    start = process_time()
    missing = name_missing(model, data, verbose=False)
    seconds = process_time() - start
    right, wrong = is_right(plant, missing), is_wrong(plant, missing)
    variant = Variant.of({"hidden": kind, **({"noise": f"{noise:g}"} if noise else {})})
    first = Row.of(
        data, method="naming", metric=EXACT, value=float(right), variant=variant, truth="own spectral solver"
    )
    first = replace(first, problem="ad2d, adr2d", split="planted")
    values = {
        OVERCONFIDENT: float(wrong and missing.certainty > CERTAIN),
        "certainty": missing.certainty,
        "explained": missing.explained,
        "residual before": missing.before,
        "residual after": missing.after,
        "cpu seconds": seconds,
    }
    if right and plant.terms:
        found = {term.term: term.coefficient for term in missing.terms}
        values[CONSTANT] = max(abs(found[term] / value - 1) for term, value in plant.terms.items())
    if not right:
        bench.remark(f"{kind}, seed {seed}, noise {noise:g}: {missing} (planted: {plant.terms})")

    return [first, *(replace(first, metric=metric, value=value) for metric, value in values.items())]


def _parts() -> dict[str, Part]:
    quiet = {kind: _part(kind, 0.0) for kind in KINDS}
    noisy = {f"{kind}, noise": _part(kind, NOISE) for kind in KINDS if kind not in QUIET_ONLY}
    return {**quiet, **noisy}


TABLE = Table("naming", "planted terms and what is named (adr2d)", _parts(), samples=48, preset="quick", seeds=10)
