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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hycop.data import Dataset
from hycop.evaluation import CURVE, Method, Named, Row, evaluate, merged
from hycop.experiments.table import Bench, Learned, Table
from hycop.model import Model
from hycop.plots import Figure, curve_figure
from hycop.problems import problem
from hycop.query import Query
from hycop.splitting import Scheme
from hycop.surrogate import HyCOP
from hycop.training.gate import best_classical

SPLITS = ("id", "ood")
PAPER = {"id": 2.10e-2, "ood": 2.87e-2}  # HyCOP on 2D ADR, relative L2
CLASSICAL = "classical at equal work"


def ungated(model: Model) -> HyCOP:
    """The policy as it was learned, whatever the gate decided."""
    return HyCOP.of(replace(model, gate=replace(model.gate, kept=True, classical_when_clipped=False)))


def rival(model: HyCOP, held_out: Dataset, asked: Query) -> Scheme:
    """The best classical scheme, on the held-out queries, of those that take no more work than the model on others."""
    inner = model.model
    work = model.measure(asked).work
    return best_classical(inner.dictionary, held_out.query, held_out.truth, asked, work, inner.refinement)


def judged(bench: Bench, name: str, learned: Learned, seed: int, variant: str, gated: bool = True) -> list[Row]:
    """The rows of one trained model: itself, its static program, the best classical scheme at equal work, the limit."""
    inner = learned.model.model
    static = inner.static()
    model = learned.model if gated else ungated(inner)
    methods: list[Method] = [Named("HyCOP", model)]
    methods += [] if static is None else [Named("static", HyCOP.of(static))]
    held_out = bench.held_out(name, seed, inner.config)
    rows: list[Row] = []
    for split in SPLITS:
        data = bench.data(name, split, seed)
        against = Named(CLASSICAL, rival(model, held_out, data.query))
        label = inner.config.dictionary or "spectral"
        found = evaluate(
            [*methods, against],
            inner.dictionary,
            [data],
            label=label,
            refinement=inner.refinement,
            border=problem(name).border,
        )
        rows += [replace(row, variant=variant, method=row.method.partition(" (")[0]) for row in found]
    timing = replace(rows[0], split="train", method="HyCOP", metric="training seconds", value=learned.seconds)
    return [*rows, replace(timing, truth="", limit=0.0, work=0.0, seconds_per_sample=0.0)]


Part = tuple[str, Callable[[Bench, int], list[Row]]]


def _adr(steps: int) -> Part:
    variant = f"steps<={steps}"
    return variant, lambda bench, seed: judged(
        bench, "adr2d", bench.learned("adr2d", seed, max_steps=steps), seed, variant
    )


def _upwind(budget: str) -> Part:
    variant = f"budget={budget}"

    def rows(bench: Bench, seed: int) -> list[Row]:
        done = bench.learned("ad1d", seed, dictionary="upwind", budget=budget)
        return judged(bench, "ad1d", done, seed, variant, gated=False)

    return f"upwind {variant}", rows


def _literal(bench: Bench, seed: int) -> list[Row]:
    return judged(bench, "adr2d", bench.learned("adr2d", seed, budget="literal"), seed, "budget=literal", gated=False)


def _paper(bench: Bench, seed: int) -> list[Row]:
    done = bench.learned("adr2d", seed, preset="paper")
    rows = judged(bench, "adr2d", done, seed, "preset=paper", gated=False)
    rows = [replace(row, paper=PAPER.get(row.split) if row.metric == "rel_l2" else None) for row in rows]
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
    tables: list[list[Row]] = []
    total = len(PARTS) * bench.seeds
    for index, (name, part) in enumerate(PARTS):
        for seed in range(bench.seeds):
            bench.progress(f"{name}, seed {seed}", (index * bench.seeds + seed) / total)
            tables.append(bench.rows(("learner", name, seed), lambda part=part, seed=seed: part(bench, seed)))  # type: ignore[misc]
    bench.progress("done", 1.0)
    return merged(tables)


def figures(rows: Sequence[Row]) -> Mapping[str, Figure]:
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


TABLE = Table("learner", "what learning buys: budgets, presets, length (adr2d, ad1d)", 200, build, figures)
