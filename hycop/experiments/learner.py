"""Table ``learner``: what learning buys on advection–diffusion–reaction, and what it cannot do.

- ``adr2d``, programs of at most 7 and 11 steps: the learned policy, the static program that was learned beside it, the
  best classical scheme at equal work (chosen on the training queries), and the limit.
- ``ad1d`` with first-order upwind advection: budgets ``consistent`` and ``gain``.
- ``adr2d`` with the ``literal`` budget, in which all durations together sum to T: no such program can be right, because
  a process that runs for less than T solves another equation.
- The source paper's own method: ``PositionPolicy`` trained by ``OpenES`` from a random start, before the gate.

A model is trained for every seed and judged on a dataset of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from hycop.evaluation import CURVE, Row
from hycop.experiments.judging import CLASSICAL, Part, assembled, judged
from hycop.experiments.table import Bench, Table
from hycop.plots import Figure, curve_figure

PAPER = {"id": 2.10e-2, "ood": 2.87e-2}  # HyCOP on 2D ADR, relative L2


def _adr(steps: int) -> Part:
    variant = f"steps<={steps}"
    return variant, lambda bench, seed: judged(
        bench, "adr2d", bench.learned("adr2d", seed, max_steps=steps), seed, variant
    )


def _upwind(budget: str) -> Part:
    variant = f"budget={budget}"

    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned("ad1d", seed, dictionary="upwind", budget=budget)
        # a few queries with hardly any diffusion make up most of the error, so many are needed for a steady mean
        return judged(bench, "ad1d", done, seed, variant, gated=False, samples=5 * bench.samples)

    return f"upwind {variant}", rows


def _literal(bench: Bench, seed: int) -> list[Row]:
    return judged(bench, "adr2d", bench.learned("adr2d", seed, budget="literal"), seed, "budget=literal", gated=False)


def _paper(bench: Bench, seed: int) -> list[Row]:
    done = bench.learned("adr2d", seed, preset="paper")
    rows = judged(bench, "adr2d", done, seed, "preset=paper", gated=False, paper=PAPER)
    curve = replace(rows[-1], metric=CURVE)
    return rows + [
        replace(curve, variant=f"preset=paper,generation={generation}", value=loss)
        for generation, loss in enumerate(done.history, start=1)
        if generation == 1 or generation % 5 == 0
    ]


PARTS: tuple[Part, ...] = (
    _adr(7),
    _adr(11),
    _upwind("consistent"),
    _upwind("gain"),
    ("literal", _literal),
    ("paper", _paper),
)


def build(bench: Bench) -> list[Row]:
    return assembled(bench, "learner", PARTS)


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    curve = [row for row in rows if row.metric == CURVE]
    generations = np.array([int(row.variant.rpartition("=")[2]) for row in curve])
    losses, spread = np.array([row.value for row in curve]), np.array([row.std for row in curve])
    classical = [
        row.value
        for row in rows
        if row.variant == "preset=paper" and row.method == CLASSICAL and row.metric == "rel_l2"
    ]
    return {
        "learner_paper_curve": curve_figure(
            generations,
            losses,
            spread,
            {"best classical at equal work (id)": classical[0]} if classical else {},
            "adr2d, the paper's evolution strategy: median loss of a generation",
        )
    }


TABLE = Table("learner", "what learning buys: budgets, presets, length (adr2d, ad1d)", 200, build, figures, "quick", 6)
