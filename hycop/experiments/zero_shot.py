"""Table ``zero-shot``: models of advection and diffusion asked about advection, diffusion and reaction.

All were trained on ``ad2d`` and answer queries of ``adr2d`` at T = 0.2, with r in [0.1, 1] or in [1, 2.5]; nothing
tells them r. The source paper does not state its range, so its numbers stand beside both: for T = 0.2 only the second
can give its errors. The exact solution without reaction stands beside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hycop.evaluation import Composed, Contender, Row, Variant, evaluate
from hycop.experiments.bench import Bench
from hycop.experiments.monolithic import contender
from hycop.experiments.regime_b_residual import KNOWN, RANGES, drawn, without_r
from hycop.experiments.table import Part, Table
from hycop.problems import find_problem
from hycop.schemes import splitting

TIME = 0.2
METRICS = ("rel_l2", "rmse", "max_error")
NETWORKS = ("U-Net", "LocalNO")
EXACT = "exact without reaction"
PAPER: Mapping[str, Sequence[float]] = {
    "U-Net": (1.81e-1, 7.41e-2, 1.76e-1),
    "LocalNO": (1.86e-1, 7.61e-2, 1.60e-1),
    "HyCOP": (1.81e-1, 7.42e-2, 1.05e-1),
}


def _asked(contenders: Sequence[Contender], bench: Bench, range_of: str, seed: int) -> list[Row]:
    if not contenders:
        return []
    data = without_r(drawn(range_of, "id", seed, bench.samples, (TIME,)))
    rows = evaluate(contenders, [data], metrics=METRICS)
    known = {name: dict(zip(METRICS, values, strict=True)) for name, values in PAPER.items()}
    variant = Variant.of({"r": range_of})
    return [replace(row, variant=variant, paper=known.get(row.method, {}).get(row.metric)) for row in rows]


def _composed(range_of: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        chosen = find_problem(KNOWN)
        label = chosen.name_of(chosen.dictionary)
        # the bare model: a surrogate would refuse queries of another problem
        model = bench.learned(KNOWN, seed).model.model
        exact = Composed(splitting("Lie"), chosen.dictionary)
        return _asked([Contender("HyCOP", model, label), Contender(EXACT, exact, label)], bench, range_of, seed)

    return rows


def _baselines(range_of: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        everyone = [] if seed else [contender(bench, KNOWN, name, seed) for name in NETWORKS]
        return _asked(everyone, bench, range_of, seed)

    return rows


TABLE = Table(
    "zero-shot",
    "models of ad2d asked about adr2d",
    {
        **{range_of: _composed(range_of) for range_of in RANGES},
        **{f"{range_of} baselines": _baselines(range_of) for range_of in RANGES},
    },
    samples=120,
    preset="quick",
)
