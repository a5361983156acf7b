"""Table ``learner``: what learning gains on advection–diffusion–reaction, and what it cannot do.

- ``adr2d``, programs of at most 7 and 11 steps: the learned policy, the static program trained beside it, the
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

from hycop.evaluation import CURVE, Row, Variant
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, judged
from hycop.experiments.table import Part, Table
from hycop.plots import Figure, curve_figure

PAPER = {"id": 2.10e-2, "ood": 2.87e-2}  # HyCOP on 2D ADR, relative L2
PRESET = {"preset": "paper"}


def _adr(steps: int) -> Part:
    return lambda bench, seed: judged(
        bench, "adr2d", bench.learned("adr2d", seed, max_steps=steps), seed, {"steps": f"<={steps}"}
    )


def _upwind(budget: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned("ad1d", seed, dictionary="upwind", budget=budget)
        # a few queries with hardly any diffusion make up most of the error, so many are needed for a steady mean
        return judged(bench, "ad1d", done, seed, {"budget": budget}, gated=False, samples=5 * bench.samples)

    return rows


def _literal(bench: Bench, seed: int) -> list[Row]:
    done = bench.learned("adr2d", seed, budget="literal")
    return judged(bench, "adr2d", done, seed, {"budget": "literal"}, gated=False)


def _paper(bench: Bench, seed: int) -> list[Row]:
    done = bench.learned("adr2d", seed, preset="paper")
    rows = judged(bench, "adr2d", done, seed, PRESET, gated=False, paper=PAPER)
    curve = replace(rows[-1], metric=CURVE)
    return rows + [
        replace(curve, variant=Variant.of({**PRESET, "generation": generation}, separator=","), value=loss)
        for generation, loss in enumerate(done.history, start=1)
        if generation == 1 or generation % 5 == 0
    ]


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    curve = [row for row in rows if row.metric == CURVE]
    generations = np.array([int(row.variant["generation"]) for row in curve])
    losses, spread = np.array([row.value for row in curve]), np.array([row.std for row in curve])
    classical = [
        row.value
        for row in rows
        if row.variant == Variant.of(PRESET) and row.method == CLASSICAL and row.metric == "rel_l2"
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


TABLE = Table(
    "learner",
    "what learning buys: budgets, presets, length (adr2d, ad1d)",
    {
        "steps<=7": _adr(7),
        "steps<=11": _adr(11),
        "upwind budget=consistent": _upwind("consistent"),
        "upwind budget=gain": _upwind("gain"),
        "literal": _literal,
        "paper": _paper,
    },
    figures,
    samples=200,
    preset="quick",
    seeds=6,
)
