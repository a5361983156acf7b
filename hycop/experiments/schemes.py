"""Table ``schemes``: every classical splitting on 2D advection–diffusion–reaction, at several lengths.

The bar that a learned policy has to clear: error against an independent truth and against the dictionary's limit,
with the work of each, in and out of distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hycop.evaluation import SPLITTING, DictionaryLimit, Row, composed, evaluate, family
from hycop.experiments.bench import Bench
from hycop.experiments.table import Part, Table
from hycop.plots import Figure, Point, error_figure
from hycop.problems import find_problem
from hycop.schemes import portfolio

SPLITS = ("id", "ood")


def _part(split: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        dictionary = find_problem("adr2d").dictionary
        data = bench.data("adr2d", split, seed)
        schemes = composed(portfolio(dictionary, data.setting), dictionary, label="spectral")
        return evaluate(schemes, [data], limit_of=DictionaryLimit(dictionary, "spectral"))

    return rows


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    out = {}
    for split in SPLITS:
        chosen = [row for row in rows if row.split == split and row.metric == "rel_l2" and row.work > 0]
        floor = next(row.limit for row in chosen)
        points = [
            Point(family(row.method), row.work, row.value, row.std) for row in chosen if "(outer" not in row.method
        ]
        out[f"schemes_{split}"] = error_figure(points, floor, f"adr2d, {split}: classical schemes, reaction inside")
        splitting = [row for row in rows if row.split == split and row.metric == SPLITTING]
        points = [Point(family(row.method), row.work, row.value, row.std) for row in splitting]
        out[f"schemes_{split}_splitting"] = error_figure(points, None, f"adr2d, {split}: splitting error alone")
    return out


TABLE = Table(
    "schemes",
    "classical splittings on adr2d",
    {split: _part(split) for split in SPLITS},
    figures,
    samples=200,
    preset="quick",
)
