"""A part of table ``regime-b``: HyCOP-Hyb on PDEBench's compressible flow, learned Euler steps, numerical viscosity.

The network (``fno-film``, in units of the sample's own density and speed of sound) was trained on short Euler steps of
PDEBench's scheme, averaged to 64². It keeps the totals of mass, momentum and energy by construction. Policies are
learned on 32² and asked on 128², on PDEBench's own file if ``HYCOP_FIXTURES`` has it and on queries of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hycop.dictionary import Dictionary
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, training_seconds
from hycop.experiments.ns import pdebench, totals
from hycop.primitives import FiniteVolumeGasViscosity
from hycop.problems import find_problem

PROBLEM = "ns2d-pdebench"
NETWORK: Mapping[str, Any] = {"shape": (64, 64), "modes": 32, "longest": 0.0075, "rounds": 80, "samples": 192}
POLICY: Mapping[str, Any] = {
    "shape": (32, 32),
    "samples": 16,
    "max_steps": 17,
    "tilts": 1,
    "tries": 1,
    "patterns": 1,
    "rounds": 1,
    "iterations": 1,
}
PAPER = 7.97e-2
"""nRMSE of HyCOP-Hyb in the source paper."""

SAMPLES = 8
LABEL, CONSERVATIVE = "{Euler learned, viscosity}", "{Euler learned, viscosity conservative}"


def rows(bench: Bench, seed: int) -> list[Row]:
    """nRMSE and PDEBench's conservation errors of the hybrid, of its classical opponent and of the numerical model."""
    chosen = find_problem(PROBLEM)
    network = bench.network(PROBLEM, ("euler",), "fno-film", **NETWORK)
    hybrid = Dictionary({"euler": network, "viscosity": chosen.dictionary["viscosity"]})
    learned = bench.learned(PROBLEM, seed, using=hybrid, **POLICY)
    model = learned.model.model
    careful = replace(model, dictionary=hybrid.swapping("viscosity", FiniteVolumeGasViscosity()))
    contenders = [
        Contender("HyCOP", model, LABEL),
        Contender("HyCOP", careful, CONSERVATIVE),
        Contender(CLASSICAL, model.classical(), LABEL),
        Contender("HyCOP", replace(model, dictionary=chosen.dictionary), "the same programs, numerical"),
    ]
    judge = pdebench()
    datasets = [*([] if judge is None else [judge]), bench.data(PROBLEM, "id", seed, SAMPLES)]
    found: list[Row] = []
    for data in datasets:
        for contender in contenders:
            (row,) = evaluate([contender], [data], metrics=("nrmse",), reported_variables=chosen.reported_variables)
            published = PAPER if data.split == "pdebench" and contender.dictionary == LABEL else None
            row = replace(row, paper=published if row.method == "HyCOP" else None)
            found += [row, *totals(replace(row, paper=None), contender.solve(data.query).states, data)]
    seconds = bench.network_seconds(PROBLEM, ("euler",), "fno-film", **NETWORK)
    timing = training_seconds(learned, found[0])
    return [*found, timing, replace(timing, method="euler: fno-film", variant=Variant(), value=seconds)]
