"""How a trained model is judged in a table: beside its static program, the classical schemes at equal work, the unsplit
solver of the same kind, and the limit of its dictionary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from hycop.data import Dataset
from hycop.evaluation import SPLITTING, Method, Named, Row, evaluate, merged
from hycop.experiments.table import Bench, Learned
from hycop.model import Model
from hycop.problems import problem
from hycop.query import Query
from hycop.splitting import Scheme, splitting
from hycop.surrogate import HyCOP
from hycop.training.gate import best_classical

CLASSICAL = "classical at equal work"
UNSPLIT = "unsplit"
"""The dictionary of a problem, and the method, that solves the whole equation in one primitive."""

Paper = Mapping[str, float]
"""The source paper's relative L2 errors, by split."""


def ungated(model: Model) -> HyCOP:
    """The policy as it was learned, whatever the gate decided."""
    return HyCOP.of(replace(model, gate=replace(model.gate, kept=True, classical_when_clipped=False)))


def rival(model: HyCOP, held_out: Dataset, asked: Query) -> Scheme:
    """The best classical scheme, on the held-out queries, of those that take no more work than the model on others."""
    inner = model.model
    work = model.measure(asked).work
    refinement, metric = inner.refinement, inner.config.metric
    return best_classical(inner.dictionary, held_out.query, held_out.truth, asked, work, refinement, metric)


def judged(
    bench: Bench,
    name: str,
    learned: Learned,
    seed: int,
    variant: str = "",
    *,
    gated: bool = True,
    splits: Sequence[str] = ("id", "ood"),
    metrics: Sequence[str] = ("rel_l2", SPLITTING),
    times: Sequence[float] | None = None,
    samples: int | None = None,
    paper: Paper | None = None,
) -> list[Row]:
    """The rows of one trained model on the splits of its problem, and the seconds that training took."""
    inner, chosen = learned.model.model, problem(name)
    static = inner.static()
    model = learned.model if gated else ungated(inner)
    methods: list[Method] = [Named("HyCOP", model)]
    methods += [] if static is None else [Named("static", HyCOP.of(static))]
    held_out = bench.held_out(name, seed, inner.config)
    label = inner.config.dictionary or next(iter(chosen.dictionaries))
    rows: list[Row] = []
    for split in splits:
        data = bench.data(name, split, seed, samples, times=times)
        compare = partial(evaluate, metrics=metrics, refinement=inner.refinement, border=chosen.border)
        against = Named(CLASSICAL, rival(model, held_out, data.query))
        found = compare([*methods, against], inner.dictionary, [data], label=label)
        if UNSPLIT in chosen.dictionaries:
            whole: list[Method] = [Named(UNSPLIT, splitting("Lie"))]
            parts = chosen.dictionaries[UNSPLIT]
            found += compare(whole, parts, [data], label=UNSPLIT)[: len(metrics)]
        known = None if paper is None else paper.get(split)
        rows += [
            replace(
                row,
                variant=variant,
                method=row.method.partition(" (")[0],
                paper=known if row.method == "HyCOP" and row.metric in ("rel_l2", "nrmse") else None,
            )
            for row in found
        ]
    timing = replace(rows[0], split="train", method="HyCOP", metric="training seconds", value=learned.seconds)
    return [*rows, replace(timing, truth="", limit=0.0, work=0.0, seconds_per_sample=0.0, paper=None)]


Part = tuple[str, Callable[[Bench, int], list[Row]]]
"""A part of a table: its name, and its rows for a seed."""


def assembled(bench: Bench, table: str, parts: Sequence[Part]) -> list[Row]:
    """The rows of all parts for all seeds, with those that the bench has kept."""
    tables: list[list[Row]] = []
    for index, (name, part) in enumerate(parts):
        for seed in range(bench.seeds):
            bench.progress(f"{name}, seed {seed}", (index * bench.seeds + seed) / (len(parts) * bench.seeds))

            def compute(part: Callable[[Bench, int], list[Row]] = part, seed: int = seed) -> list[Row]:
                return part(bench, seed)

            tables.append(bench.rows((table, name, seed), compute))
    bench.progress("done", 1.0)
    return merged(tables)
