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
from hycop.experiments.bench import Bench
from hycop.experiments.judging import Paper, judged, unsplit_rows
from hycop.experiments.monolithic import baseline_part
from hycop.experiments.qualitative import split_figures
from hycop.experiments.table import Part, Table
from hycop.plots import Figure
from hycop.problems import find_problem

PAPER: Mapping[str, Paper] = {
    "ad1d": {"id": 2.97e-2, "ood": 9.06e-2},
    "burgers1d": {"id": 2.05e-3, "ood": 9.61e-3},
    "swe1d": {"id": 2.81e-2, "ood": 3.07e-2},
}


def _reported(*values: float) -> Mapping[str, float]:
    return dict(zip(("rel_l2", "rmse", "max_error"), values, strict=True))


BASELINES: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]] = {
    "ad1d": {
        "fno": {"id": _reported(1.59e-2, 2.14e-2, 5.02e-1), "ood": _reported(3.43e-1, 4.92e-1, 7.97)},
        "local-no": {"id": _reported(1.34e-2, 1.80e-2, 5.30e-1), "ood": _reported(3.33e-1, 4.59e-1, 8.01)},
    },
    "burgers1d": {
        "fno": {"id": _reported(2.52e-2, 2.59e-2, 1.29), "ood": _reported(1.87e-1, 2.67e-1, 7.55)},
        "local-no": {"id": _reported(1.83e-2, 2.10e-2, 1.12), "ood": _reported(1.77e-1, 2.60e-1, 8.09)},
    },
    "swe1d": {
        "fno": {"id": _reported(4.32e-2, 4.64e-2, 7.51e-1), "ood": _reported(1.86e-1, 3.58e-1, 5.29)},
        "local-no": {"id": _reported(3.05e-2, 3.66e-2, 7.72e-1), "ood": _reported(1.54e-1, 3.09e-1, 3.88)},
    },
}
"""The source paper's numbers of its monolithic baselines."""

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


def _spectral(bench: Bench, seed: int) -> list[Row]:
    """Burgers' equation with the dictionary that has an exponential solver, which beats the splittings."""
    learned = bench.learned("burgers1d", seed, dictionary="spectral")
    return judged(bench, "burgers1d", learned, seed, {"dictionary": "spectral"}, metrics=METRICS)


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
    paper = {(split, Variant()): values for split, values in BASELINES[name][baseline].items()}

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
        "burgers1d spectral": _spectral,
        "burgers1d same grid": _same_grid,
        **{f"{name} unsplit": _unsplit(name) for name in PAPER},
        "burgers1d same grid unsplit": _unsplit_same_grid,
        **{f"{name} {baseline}": _baseline(name, baseline) for name in PAPER for baseline in BASELINES[name]},
    },
    figures,
    samples=200,
)
