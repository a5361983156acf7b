"""Rows of a trained model in a table, beside its static program, the classical schemes at equal work, the unsplit
solver of the same kind, and the limit of its dictionary; and rows of the unsplit solver at equal error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hycop.data import Dataset
from hycop.evaluation import (
    LIMIT,
    SPLITTING,
    Composed,
    Contender,
    DictionaryLimit,
    Opponents,
    Row,
    Rung,
    Solver,
    UnsplitOpponents,
    Variant,
    errors_of,
    evaluate,
    ladder,
)
from hycop.experiments.bench import Bench, Learned
from hycop.model import Model
from hycop.policy import exact_covers
from hycop.problems import find_problem
from hycop.query import Query
from hycop.schemes import Classical, splitting
from hycop.surrogate import HyCOP

CLASSICAL = "classical at equal work"
UNSPLIT = "unsplit"
"""The dictionary of a problem, and the method, that solves the whole equation in one primitive."""

EQUAL_ERROR, LESS_ACCURATE = "unsplit at equal error", "unsplit, less accurate than HyCOP"
"""The unsplit solver with the time step that makes it no worse than the model on held-out queries of the same split, at
the least work; and where no step does, the most accurate."""

JUDGES = 256
"""Held-out queries on which that step and the classical scheme are chosen, at most: one that is barely stable should
show it there."""

HELD_OUT = 2**32
"""Added to a seed for the held-out queries."""

Paper = Mapping[str, float]
"""The source paper's relative L2 errors, by split."""

Truth = Callable[[Dataset], Dataset]
"""The same queries with another truth."""


def as_given(data: Dataset) -> Dataset:
    """The truth that the data came with."""
    return data


def ungated(model: Model) -> HyCOP:
    """The policy as it was learned, whatever the gate decided."""
    return HyCOP.of(replace(model, gate=model.gate.opened()))


def classical_alone(model: Model) -> HyCOP:
    """The opponent at the model's gate: the best classical scheme on its held-out queries, cut into the same segments
    for longer times."""
    return HyCOP.of(replace(model, gate=replace(model.gate, kept=False)))


def label_of(model: Model) -> str:
    """The problem's name for the model's dictionary."""
    return find_problem(model.equation.name).name_of(model.dictionary)


def limit_of(model: Model) -> DictionaryLimit:
    """The limit of the primitives that the equation needs, on the grid on which the model runs."""
    return DictionaryLimit(model.dictionary, label_of(model), model.refinement, model.gate.cover)


def contenders(model: HyCOP, classical: Solver) -> list[Contender]:
    """A model, its static program if it has one, and its classical opponent."""
    static = model.model.static()
    solvers: dict[str, Solver] = {"HyCOP": model}
    solvers |= {} if static is None else {"static": HyCOP.of(static)}
    solvers[CLASSICAL] = classical
    return [Contender(name, solver, label_of(model.model)) for name, solver in solvers.items()]


def unsplit(problem: str, refinement: int = 1) -> Contender:
    """The unsplit solver of a problem."""
    dictionary = find_problem(problem).named_dictionary(UNSPLIT)
    return Contender(UNSPLIT, Composed(splitting("Lie"), dictionary, refinement), UNSPLIT)


def opponents(model: Model, held_out: Dataset) -> Opponents:
    """The classical schemes with the model's dictionary, ranked on the held-out queries."""
    return Opponents(
        model.dictionary,
        held_out.query,
        held_out.truth,
        model.refinement,
        model.record.config.metric,
        model.record.config.substeps,
        exact_covers(model.dictionary, model.equation.processes),
    )


def rival(model: HyCOP, held_out: Dataset, asked: Query) -> Classical:
    """The classical scheme that is best on the held-out queries, of those that take no more work than the model on
    ``asked``."""
    return opponents(model.model, held_out).best(asked, model.solve(asked).work)


def plain_limit(rows: Sequence[Row]) -> list[Row]:
    """The rows with the limit under its plain name, without how it was reached."""
    return [replace(row, method=LIMIT) if row.is_limit else row for row in rows]


def compared(
    bench: Bench,
    learned: Learned,
    seed: int,
    data: Dataset,
    *,
    gated: bool = True,
    metrics: Sequence[str] = ("rel_l2", SPLITTING),
    truth: Truth = as_given,
    against: Classical | None = None,
    paper: Mapping[str, float] | None = None,
) -> list[Row]:
    """The rows of one trained model and its opponents on one dataset, and the paper's numbers by metric.

    The classical scheme is the best at equal work on held-out queries like these, unless another is given.
    """
    inner = learned.model.model
    chosen = find_problem(inner.equation.name)
    model = learned.model if gated else ungated(inner)
    data = truth(data)
    if against is None:
        against = rival(model, truth(judges_for(bench, learned, seed, data)), data.query)
    judge = partial(evaluate, datasets=[data], metrics=metrics, reported_variables=chosen.reported_variables)
    classical = Composed(against, inner.dictionary, inner.refinement)
    found = judge(contenders(model, classical), limit_of=limit_of(inner))
    if UNSPLIT in chosen.dictionaries:
        whole = DictionaryLimit(chosen.dictionaries[UNSPLIT], UNSPLIT, inner.refinement)
        found += [row for row in judge([unsplit(chosen.name, inner.refinement)], limit_of=whole) if not row.is_limit]
    known = {} if paper is None else paper
    return [replace(row, paper=known.get(row.metric) if row.method == "HyCOP" else None) for row in plain_limit(found)]


def judges_for(bench: Bench, learned: Learned, seed: int, data: Dataset) -> Dataset:
    """Held-out queries like those of a dataset: of the same split, grid and time; or those of the model's gate, if the
    data come from elsewhere.

    A classical solver takes the scheme and the step that its queries need, also where the model was not trained: it is
    told their split, so that it is as strong as it can be.
    """
    inner = learned.model.model
    chosen = find_problem(inner.equation.name)
    if data.problem != chosen.name or data.split not in chosen.splits:
        return bench.held_out(chosen.name, seed, inner.record.config)
    elapsed = data.times[:, 1] - data.times[:, 0]
    times = (float(elapsed[0]),) if (elapsed == elapsed[0]).all() else None
    count = min(JUDGES, bench.samples)
    return bench.data(chosen.name, data.split, seed + HELD_OUT, count, shape=data.setting.grid.shape, times=times)


@dataclass(frozen=True)
class UnsplitRival:
    """The unsplit solver whose time step was chosen so that its error on held-out queries is that of a model."""

    problem: str
    method: str
    rung: Rung
    label: str
    refinement: int

    @classmethod
    def of(cls, learned: Learned, judge: Dataset, *, gated: bool = True) -> UnsplitRival | None:
        """Chosen on the held-out queries ``judge``; None for a dictionary with a primitive that has neither a symbol
        nor a rate."""
        model = learned.model if gated else ungated(learned.model.model)
        inner = model.model
        chosen, metric = find_problem(inner.equation.name), inner.record.config.metric
        whole = chosen.dictionaries.get(UNSPLIT)
        names = inner.gate.cover or inner.dictionary.names
        rungs = ladder(
            [inner.dictionary[name] for name in names], None if whole is None else next(iter(whole.values()))
        )
        if not rungs:
            return None
        judge = judge.take(slice(0, JUDGES))
        target = float(errors_of(metric, model.solve(judge.query).states, judge.truth, judge.query).mean())
        choice = UnsplitOpponents(rungs, judge.query, judge.truth, inner.refinement, metric).best(target)
        label = label_of(inner) if whole is None else UNSPLIT
        method = EQUAL_ERROR if choice.reached else LESS_ACCURATE
        return cls(chosen.name, method, choice.rung, label, inner.refinement)

    @property
    def contender(self) -> Contender:
        return Contender(self.method, self.rung.solver(self.refinement), self.label)

    def rows(self, data: Dataset, metrics: Sequence[str] = ("rel_l2",)) -> list[Row]:
        """Its error, work and seconds on one dataset, and a row that names its time step."""
        reported = find_problem(self.problem).reported_variables
        plain = [metric for metric in metrics if metric != SPLITTING]
        found = evaluate([self.contender], [data], metrics=plain, reported_variables=reported)
        return [*found, replace(found[0], metric=self.rung.knob, value=self.rung.value, truth="")]


def unsplit_rows(
    bench: Bench,
    learned: Learned,
    seed: int,
    datasets: Sequence[Dataset],
    *,
    metrics: Sequence[str] = ("rel_l2",),
    gated: bool = True,
    truth: Truth = as_given,
    variant: Mapping[str, object] | None = None,
) -> list[Row]:
    """The rows of a model's unsplit opponent at equal error on some datasets; its time step is chosen for each."""
    rows: list[Row] = []
    for data in datasets:
        rival = UnsplitRival.of(learned, truth(judges_for(bench, learned, seed, data)), gated=gated)
        rows += [] if rival is None else rival.rows(truth(data), metrics)
    return [replace(row, variant=Variant.of(variant or {})) for row in rows]


def training_seconds(learned: Learned, like: Row) -> Row:
    """A row for the seconds that training took, with the other fields of a row of that model."""
    timing = replace(like, split="train", method="HyCOP", metric="training seconds", value=learned.seconds)
    return replace(timing, truth="", limit=0.0, work=0.0, seconds_per_sample=0.0, paper=None)


def judged(
    bench: Bench,
    name: str,
    learned: Learned,
    seed: int,
    variant: Mapping[str, object] | None = None,
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
        rows += [replace(row, variant=Variant.of(variant or {})) for row in found]
    return [*rows, training_seconds(learned, rows[0])]
