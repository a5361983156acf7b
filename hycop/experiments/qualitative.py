"""Figures of solutions: a few queries of a split, with the truth and the answers of a trained model."""

from __future__ import annotations

from collections.abc import Mapping

from hycop.evaluation import Composed
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, rival
from hycop.plots import Figure, Solution, solutions_figure
from hycop.problems import find_problem

SHOWN = 3
"""Most queries in a figure."""


def split_figures(bench: Bench, name: str) -> Mapping[str, Figure]:
    """The first queries of id and ood, in the first channel: initial state, truth, HyCOP, classical, errors."""
    model = bench.learned(name, 0).model
    inner = model.model
    held_out = bench.held_out(name, 0, inner.record.config)
    out = {}
    for split in ("id", "ood"):
        data = bench.data(name, split, 0).take(slice(0, SHOWN))
        query, truth = data.query, data.truth
        scheme = rival(model, held_out, query)
        ours = model.solve(query).states
        theirs = Composed(scheme, inner.dictionary, inner.refinement).solve(query).states
        solutions = [
            Solution(query.u0[sample, 0], truth[sample, 0], {"HyCOP": ours[sample, 0], CLASSICAL: theirs[sample, 0]})
            for sample in range(query.batch)
        ]
        title = f"{name}, {split}: {find_problem(name).channels[0].name} at T={query.time[0]:g}"
        out[f"{name}_{split}"] = solutions_figure(solutions, query.grid.lengths[0].tolist(), title)
    return out
