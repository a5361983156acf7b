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
from hycop.policy import exact_covers
from hycop.problems import problem
from hycop.query import Query
from hycop.splitting import Scheme, splitting
from hycop.surrogate import HyCOP
from hycop.training.gate import Opponents

CLASSICAL = "classical at equal work"
UNSPLIT = "unsplit"
"""The dictionary of a problem, and the method, that solves the whole equation in one primitive."""

Paper = Mapping[str, float]
"""The source paper's relative L2 errors, by split."""

Truth = Callable[[Dataset], Dataset]
"""The same queries with another truth."""


def as_given(data: Dataset) -> Dataset:
    """The truth that the data came with."""
    return data


def ungated(model: Model) -> HyCOP:
    """The policy as it was learned, whatever the gate decided."""
    gate = replace(model.gate, kept=True, classical_when_clipped=False, classical_when_far=False)
    return HyCOP.of(replace(model, gate=gate))


def classical_alone(model: Model) -> HyCOP:
    """The opponent of the model's gate: the best classical scheme on its held-out queries, repeated as its programs are
    for longer times."""
    return HyCOP.of(replace(model, gate=replace(model.gate, kept=False)))


def opponents(model: Model, held_out: Dataset) -> Opponents:
    """The classical schemes with the model's dictionary, ranked on the held-out queries."""
    return Opponents(
        model.dictionary,
        held_out.query,
        held_out.truth,
        model.refinement,
        model.config.metric,
        model.config.repeats,
        exact_covers(model.dictionary, model.processes),
    )


def rival(model: HyCOP, held_out: Dataset, asked: Query) -> Scheme:
    """The best classical scheme, on the held-out queries, of those that take no more work than the model on others."""
    return opponents(model.model, held_out).best(asked, model.measure(asked).work)


def compared(
    bench: Bench,
    learned: Learned,
    seed: int,
    data: Dataset,
    *,
    gated: bool = True,
    metrics: Sequence[str] = ("rel_l2", SPLITTING),
    truth: Truth = as_given,
    against: Scheme | None = None,
    paper: Mapping[str, float] | None = None,
) -> list[Row]:
    """The rows of one trained model and its opponents on one dataset, and the paper's figures by metric.

    The classical scheme is the best at equal work on these data, unless another is given.
    """
    inner = learned.model.model
    chosen, static = problem(inner.problem), inner.static()
    model = learned.model if gated else ungated(inner)
    data = truth(data)
    if against is None:
        against = rival(model, truth(bench.held_out(inner.problem, seed, inner.config)), data.query)
    methods: list[Method] = [Named("HyCOP", model)]
    methods += [] if static is None else [Named("static", HyCOP.of(static))]
    methods += [Named(CLASSICAL, against)]
    measured = partial(evaluate, metrics=metrics, refinement=inner.refinement, border=chosen.border)
    found = measured(methods, inner.dictionary, [data], label=chosen.name_of(inner.dictionary), cover=inner.gate.cover)
    if UNSPLIT in chosen.dictionaries:
        whole: list[Method] = [Named(UNSPLIT, splitting("Lie"))]
        found += measured(whole, chosen.dictionaries[UNSPLIT], [data], label=UNSPLIT)[: len(metrics)]
    known = {} if paper is None else paper
    return [
        replace(
            row,
            method=row.method.partition(" (")[0],
            paper=known.get(row.metric) if row.method == "HyCOP" else None,
        )
        for row in found
    ]


def training_seconds(learned: Learned, like: Row) -> Row:
    """A row for the seconds that training took, with the other fields of a row of that model."""
    timing = replace(like, split="train", method="HyCOP", metric="training seconds", value=learned.seconds)
    return replace(timing, truth="", limit=0.0, work=0.0, seconds_per_sample=0.0, paper=None)


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
    truth: Truth = as_given,
    paper: Paper | None = None,
) -> list[Row]:
    """The rows of one trained model on the splits of its problem, and the seconds that training took."""
    rows: list[Row] = []
    for split in splits:
        data = bench.data(name, split, seed, samples, times=times)
        known = {} if paper is None or split not in paper else dict.fromkeys(("rel_l2", "nrmse"), paper[split])
        found = compared(bench, learned, seed, data, gated=gated, metrics=metrics, truth=truth, paper=known)
        rows += [replace(row, variant=variant) for row in found]
    return [*rows, training_seconds(learned, rows[0])]


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
