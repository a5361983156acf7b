"""Table ``fixed-time``: advection–diffusion–reaction and shallow water in 2D at the query time of the source paper,
with all its metrics.

Shallow water is also compared with PyClaw, a solver from outside this project, if ``HYCOP_FIXTURES`` has its file (rows
``pyclaw id`` and ``pyclaw ood``). ``adr3d``, which the paper does not have, is asked fewer queries, and has a row for
the memory of an answer.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hycop.data import Dataset
from hycop.evaluation import SPLITTING, Row, Variant
from hycop.experiments.bench import Bench
from hycop.experiments.fixtures import PYCLAW, pyclaw
from hycop.experiments.judging import compared, training_seconds, unsplit_rows
from hycop.experiments.monolithic import baseline_part
from hycop.experiments.qualitative import split_figures
from hycop.experiments.table import Part, Table
from hycop.plots import Figure

HORIZON_OF_PYCLAW = 3
"""Index of T = 0.3, the query time of the other splits, among its times."""

METRICS = (
    "rel_l2",
    SPLITTING,
    "frmse_paper_low",
    "frmse_paper_mid",
    "frmse_paper_high",
    "rmse",
    "max_error",
    "brmse_paper",
)
PER_CHANNEL = "nrmse"
"""Mean over the channels of their relative errors: the source paper's errors of shallow water fit this one."""

CONSERVED = "crmse_paper"
"""Metric for problems with conserved totals, which ``adr2d`` does not have."""

REPORTED = (*(name for name in METRICS if name != SPLITTING), CONSERVED)


def _reported(*values: float) -> Mapping[str, float]:
    return dict(zip(REPORTED, values, strict=False))


PAPER: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "adr2d": {
        "id": _reported(2.10e-2, 1.12, 1.30e-4, 3.80e-7, 8.34e-3, 5.91e-2, 8.17e-3),
        "ood": _reported(2.87e-2, 1.56, 2.48e-2, 3.34e-4, 1.87e-2, 3.48e-1, 1.88e-2),
    },
    "swe2d": {
        "id": _reported(2.40e-2, 7.23e-1, 1.02e-1, 2.66e-2, 1.03e-2, 1.90e-1, 1.69e-2, 2.16e-8),
        "ood": _reported(5.00e-2, 1.25, 3.17e-1, 5.54e-2, 5.00e-2, 3.46e-1, 4.35e-2, 3.03e-8),
    },
}


BASELINES: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]] = {
    "adr2d": {
        "deeponet": {
            "id": _reported(1.58e-1, 8.49, 3.35e-1, 1.19e-1, 5.95e-2, 4.55e-1, 6.35e-2),
            "ood": _reported(2.82e-1, 1.34e1, 3.90e-1, 1.21e-1, 1.12e-1, 7.79e-1, 1.02e-1),
        },
        "fno": {
            "id": _reported(8.42e-2, 4.46, 6.41e-2, 2.69e-2, 3.28e-2, 2.94e-1, 3.21e-2),
            "ood": _reported(2.60e-1, 1.20e1, 1.46e-1, 7.00e-2, 9.58e-2, 6.89e-1, 9.05e-2),
        },
        "pino": {
            "id": _reported(8.42e-2, 4.47, 5.33e-2, 2.39e-2, 3.29e-2, 2.95e-1, 3.20e-2),
            "ood": _reported(2.35e-1, 1.18e1, 1.31e-1, 5.99e-2, 9.59e-2, 6.95e-1, 9.08e-2),
        },
        "local-no": {
            "id": _reported(3.15e-2, 1.63, 1.03e-1, 2.03e-2, 1.22e-2, 1.37e-1, 1.25e-2),
            "ood": _reported(1.89e-1, 9.66, 2.45e-1, 7.23e-2, 7.86e-2, 6.56e-1, 7.81e-2),
        },
    },
    "swe2d": {
        "deeponet": {
            "id": _reported(3.89e-1, 3.95, 1.10, 3.82e-1, 6.47e-2, 1.38, 7.23e-2, 3.62e-3),
            "ood": _reported(5.61e-1, 3.10e1, 3.35, 5.67e-1, 5.52e-1, 4.32, 4.55e-1, 2.27e-1),
        },
        "fno": {
            "id": _reported(1.19e-1, 1.33, 6.57e-1, 3.69e-1, 2.86e-2, 5.80e-1, 3.86e-2, 3.50e-3),
            "ood": _reported(3.80e-1, 1.69e1, 3.03, 5.38e-1, 4.15e-1, 3.99, 3.60e-1, 2.27e-1),
        },
        "pino": {
            "id": _reported(1.17e-1, 1.33, 6.49e-1, 3.70e-1, 2.86e-2, 5.58e-1, 3.82e-2, 3.68e-3),
            "ood": _reported(3.83e-1, 1.77e1, 3.01, 5.48e-1, 4.18e-1, 3.97, 3.65e-1, 2.37e-1),
        },
        "local-no": {
            "id": _reported(7.49e-2, 6.57e-1, 1.77e-1, 8.61e-2, 1.25e-2, 4.26e-1, 1.48e-2, 2.51e-3),
            "ood": _reported(3.54e-1, 2.22e1, 1.78, 3.76e-1, 3.53e-1, 3.46, 3.16e-1, 1.79e-1),
        },
    },
}
"""The source paper's numbers of its monolithic baselines."""


SPACE = "adr3d"
SPACE_SAMPLES = 16
"""Queries per split of ``adr3d``, at most: each truth is solved on 64³ cells."""

MEMORY = "memory of an answer, bytes"
"""The most that arrays take while the model answers one query, its result included."""


def metrics_of(name: str) -> tuple[str, ...]:
    return METRICS if name == "adr2d" else (*METRICS, CONSERVED)


def datasets_of(bench: Bench, name: str, seed: int) -> list[Dataset]:
    """The queries of both splits, and PyClaw's."""
    found = [bench.data(name, split, seed) for split in PAPER[name]]
    return found + ([data.at(HORIZON_OF_PYCLAW) for data in pyclaw().values()] if name == "swe2d" else [])


def _part(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        learned, metrics = bench.learned(name, seed), metrics_of(name)
        found = [
            row
            for data in datasets_of(bench, name, seed)
            for row in compared(bench, learned, seed, data, metrics=metrics, paper=PAPER[name].get(data.split))
        ]
        return [*found, training_seconds(learned, found[0])]

    return rows


def _space(bench: Bench, seed: int) -> list[Row]:
    """``adr3d``: the rows of a 2D problem for fewer queries, and the memory that an answer takes."""
    learned, count = bench.learned(SPACE, seed), min(bench.samples, SPACE_SAMPLES)
    found: list[Row] = []
    for split in ("id", "ood"):
        data = bench.data(SPACE, split, seed, count)
        found += compared(bench, learned, seed, data, metrics=METRICS)
    query = data.query.take(slice(0, 1))
    tracemalloc.start()
    try:
        learned.model.solve(query)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    memory = replace(training_seconds(learned, found[0]), split="id", metric=MEMORY, value=float(peak), samples=1)
    return [*found, memory, training_seconds(learned, found[0])]


def _unsplit(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        datasets = datasets_of(bench, name, seed)
        return unsplit_rows(bench, bench.learned(name, seed), seed, datasets, metrics=metrics_of(name))

    return rows


def _baseline(name: str, baseline: str) -> Part:
    paper = {(split, Variant()): values for split, values in BASELINES[name][baseline].items()}
    metrics = (*metrics_of(name), *(() if name == "adr2d" else (PER_CHANNEL,)))
    return baseline_part(name, baseline, lambda bench, seed: datasets_of(bench, name, seed), metrics, paper)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    return {stem: figure for name in PAPER for stem, figure in split_figures(bench, name).items()}


TABLE = Table(
    "fixed-time",
    "2D and 3D systems at one query time, all metrics (adr2d, swe2d, adr3d)",
    {
        **{name: _part(name) for name in PAPER},
        SPACE: _space,
        **{f"{name} unsplit": _unsplit(name) for name in PAPER},
        **{f"{name} {baseline}": _baseline(name, baseline) for name in PAPER for baseline in BASELINES[name]},
    },
    figures,
    (PYCLAW,),
    samples=100,
)
