"""Table ``1d``: advection–diffusion, Burgers and shallow water on 64 cells, with the source paper's numbers.

The truth is independent and fine: Fourier, Cole–Hopf, and finite volumes on 1024 cells. The source paper most likely
took the truth of Burgers' equation from the same 64 cells, so that unresolved scales are no error. Rows with
``truth=same grid`` do the same: their truth is the dictionary's own limit without refinement, and the policy was
trained against it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hycop.data import Dataset
from hycop.evaluation import LIMIT_SCHEME, SPLITTING, Row, Variant, limit
from hycop.experiments.judging import Paper, judged, unsplit_rows
from hycop.experiments.monolithic import baseline_part
from hycop.experiments.qualitative import split_figures
from hycop.experiments.table import Bench, Part, Table
from hycop.plots import Figure
from hycop.problems import find_problem

PAPER: Mapping[str, Paper] = {
    "ad1d": {"id": 2.97e-2, "ood": 9.06e-2},
    "burgers1d": {"id": 2.05e-3, "ood": 9.61e-3},
    "swe1d": {"id": 2.81e-2, "ood": 3.07e-2},
}
BASELINES: Mapping[str, Mapping[str, Paper]] = {
    "ad1d": {"fno": {"id": 1.59e-2, "ood": 3.43e-1}, "local-no": {"id": 1.34e-2, "ood": 3.33e-1}},
    "burgers1d": {"fno": {"id": 2.52e-2, "ood": 1.87e-1}, "local-no": {"id": 1.83e-2, "ood": 1.77e-1}},
    "swe1d": {"fno": {"id": 4.32e-2, "ood": 1.86e-1}, "local-no": {"id": 3.05e-2, "ood": 1.54e-1}},
}
METRICS = ("rel_l2", SPLITTING, "rmse", "max_error")


def same_grid(data: Dataset) -> Dataset:
    """The queries with the dictionary's limit on their own grid as truth: the same cells and fluxes, infinitely many
    steps."""
    reached = limit(find_problem(data.problem).dictionary, data.query)
    states = data.states.copy()
    states[:, 1] = reached.states
    return replace(data, states=states, reference=f"same grid ({LIMIT_SCHEME} x{reached.substeps})")


def _fine(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        return judged(bench, name, bench.learned(name, seed), seed, metrics=METRICS, paper=PAPER[name])

    return rows


def _same_grid(bench: Bench, seed: int) -> list[Row]:
    # the gate of that model used the fine truth, not the one of these rows
    learned = bench.learned("burgers1d", seed, refinement=1, target="limit")
    return judged(
        bench,
        "burgers1d",
        learned,
        seed,
        {"truth": "same grid"},
        gated=False,
        metrics=METRICS,
        truth=same_grid,
        paper=PAPER["burgers1d"],
    )


def _unsplit(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        datasets = [bench.data(name, split, seed) for split in PAPER[name]]
        return unsplit_rows(bench, bench.learned(name, seed), seed, datasets, metrics=METRICS)

    return rows


def _unsplit_same_grid(bench: Bench, seed: int) -> list[Row]:
    learned = bench.learned("burgers1d", seed, refinement=1, target="limit")
    datasets = [bench.data("burgers1d", split, seed) for split in PAPER["burgers1d"]]
    variant = {"truth": "same grid"}
    return unsplit_rows(bench, learned, seed, datasets, metrics=METRICS, gated=False, truth=same_grid, variant=variant)


def _baseline(name: str, baseline: str) -> Part:
    paper = {(split, Variant()): {"rel_l2": value} for split, value in BASELINES[name][baseline].items()}

    def datasets(bench: Bench, seed: int) -> list[Dataset]:
        return [bench.data(name, split, seed) for split in PAPER[name]]

    return baseline_part(name, baseline, datasets, METRICS, paper)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    return {stem: figure for name in PAPER for stem, figure in split_figures(bench, name).items()}


TABLE = Table(
    "1d",
    "advection–diffusion, Burgers and shallow water in 1D",
    {
        **{name: _fine(name) for name in PAPER},
        "burgers1d same grid": _same_grid,
        **{f"{name} unsplit": _unsplit(name) for name in PAPER},
        "burgers1d same grid unsplit": _unsplit_same_grid,
        **{f"{name} {baseline}": _baseline(name, baseline) for name in PAPER for baseline in BASELINES[name]},
    },
    figures,
    samples=200,
)
