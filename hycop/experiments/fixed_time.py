"""Table ``fixed-time``: 2D advection–diffusion–reaction and shallow water at the query time of the source paper, with
all its metrics.

Shallow water is also compared with PyClaw, a solver from outside this project, if ``HYCOP_FIXTURES`` has its file (rows
``pyclaw id`` and ``pyclaw ood``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hycop.data import Dataset
from hycop.evaluation import SPLITTING, Row
from hycop.experiments.fixtures import PYCLAW, pyclaw
from hycop.experiments.judging import compared, training_seconds, unsplit_rows
from hycop.experiments.qualitative import split_figures
from hycop.experiments.table import Bench, Part, Table
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


def _unsplit(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        datasets = datasets_of(bench, name, seed)
        return unsplit_rows(bench, bench.learned(name, seed), seed, datasets, metrics=metrics_of(name))

    return rows


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    return {stem: figure for name in PAPER for stem, figure in split_figures(bench, name).items()}


TABLE = Table(
    "fixed-time",
    "2D systems at one query time, all metrics (adr2d, swe2d)",
    {**{name: _part(name) for name in PAPER}, **{f"{name} unsplit": _unsplit(name) for name in PAPER}},
    figures,
    (PYCLAW,),
    samples=100,
)
