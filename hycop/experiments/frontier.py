"""Table ``frontier``: error against cost, and who is ahead where.

For every problem: HyCOP's models for several amounts of work, classical splittings, the unsplit solver with several
time steps, and the monolithic baselines. Each is timed in the same process with the same threads, alone (``batch=1``)
and in a batch of 64; its error is that of the whole batch, so both rows have it. Work stands beside, and what training
took. The table can be about any problem, also one of your own: ``hycop table frontier file.py:name``.

Summary, for each error level and batch: ``fewest seconds`` of a method that is at least as accurate, with the name of
the method, and how many times those seconds HyCOP takes. For each baseline: its error over that of HyCOP's most
accurate model, and its CPU seconds of training over those of all HyCOP's models together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hycop.data import Dataset
from hycop.evaluation import Contender, Row, Variant, composed, ladder, timed
from hycop.experiments.bench import Bench
from hycop.experiments.fixed_time import BASELINES as IN_2D
from hycop.experiments.judging import UNSPLIT
from hycop.experiments.monolithic import PASSES, SECONDS, contender, seeds_of, training_rows
from hycop.experiments.one_dimensional import BASELINES as IN_1D
from hycop.experiments.table import Part, Table
from hycop.metrics import find_metric
from hycop.plots import Figure, Panel, lines_figure
from hycop.problems import find_problem
from hycop.schemes import portfolio

PROBLEMS = ("adr2d", "burgers1d", "swe1d", "swe2d", "ks1d")
BASELINES = {name: tuple(each) for name, each in {**IN_2D, **IN_1D}.items() if name in PROBLEMS}
"""The monolithic baselines of each problem: those of the other tables."""

SPLITS = ("id", "ood")
BATCHES = (1, 64)
POINTS = 6
SCHEMES = ("Strang", "ABABA", "SABA4")
SUBSTEPS = (1, 2, 4, 8)
HYCOP, SPLITTINGS, OWN = "HyCOP", "splitting", "unsplit"
FAMILY = "family"
LEVELS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
FASTEST, TIMES_FASTEST = "fewest seconds", "times the fewest seconds"
ERROR_OVER, TRAINING_OVER = "error over HyCOP's", "training seconds over HyCOP's"


def measured(contenders: Sequence[Contender], family: str, data: Dataset) -> Iterator[Row]:
    """The error of each, with its seconds alone and in a batch."""
    chosen = find_problem(data.problem)
    metric = chosen.settings.get("metric", "rel_l2")
    for each in contenders:
        runs = {batch: timed(each, data.query.take(slice(0, batch))) for batch in BATCHES}
        whole = runs[max(BATCHES)]
        states, truth, setting = whole.states, data.truth, data.setting
        if chosen.reported_variables is not None:
            (states, setting), (truth, _) = (chosen.reported_variables(u, setting) for u in (states, truth))
        error = float(find_metric(metric)(states, truth, setting).mean())
        for batch, done in runs.items():
            row = Row.of(data, method=each.method, metric=metric, value=error, dictionary=each.dictionary)
            row = replace(row, work=float(whole.work.mean()), seconds_per_sample=done.seconds)
            yield replace(row, variant=each.variant.adding({FAMILY: family, "batch": batch}))


def _data(bench: Bench, name: str, seed: int) -> list[Dataset]:
    own = find_problem(name).splits
    return [bench.data(name, split, seed, max(BATCHES)) for split in SPLITS if split in own]


def splittings(name: str, data: Dataset) -> list[Contender]:
    chosen = find_problem(name)
    schemes = [each for each in portfolio(chosen.dictionary, data.setting, SUBSTEPS) if each.name in SCHEMES]
    label = chosen.name_of(chosen.dictionary)
    return composed(schemes, chosen.dictionary, label=label, refinement=chosen.refinement)


def unsplit(name: str) -> list[Contender]:
    """The unsplit solver with each of its time steps."""
    chosen = find_problem(name)
    whole = chosen.dictionaries.get(UNSPLIT)
    rungs = ladder(list(chosen.dictionary.values()), None if whole is None else next(iter(whole.values())))
    label = chosen.name_of(chosen.dictionary) if whole is None else UNSPLIT
    return [
        Contender(f"{UNSPLIT}, {rung.knob} {rung.value:g}", rung.solver(chosen.refinement), label) for rung in rungs
    ]


def _classical(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        return [
            row
            for data in _data(bench, name, seed)
            for family, everyone in ((SPLITTINGS, splittings(name, data)), (OWN, unsplit(name)))
            for row in measured(everyone, family, data)
        ]

    return rows


def _learned(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        front = bench.front(name, seed, POINTS)
        label = find_problem(name).name_of(front.models[0].dictionary)
        models = [
            Contender(HYCOP, model, label, Variant.of({"point": index})) for index, model in enumerate(front.models)
        ]
        found = [row for data in _data(bench, name, seed) for row in measured(models, HYCOP, data)]
        took = replace(found[0], split="train", variant=Variant(), truth="", work=0.0, seconds_per_sample=0.0)
        values = {SECONDS: front.seconds, PASSES: float(front.passes)}
        return [*found, *(replace(took, metric=metric, value=value) for metric, value in values.items())]

    return rows


def _baselines(name: str) -> Part:
    def rows(bench: Bench, seed: int) -> list[Row]:
        found: list[Row] = []
        for each in BASELINES[name]:
            if seed >= seeds_of(name, each):
                continue
            solver = contender(bench, name, each, seed)
            mine = [row for data in _data(bench, name, seed) for row in measured([solver], solver.method, data)]
            found += [*mine, *training_rows(bench.baseline(name, each, seed), mine[0])]
        return found

    return rows


def _parts(name: str) -> Mapping[str, Part]:
    return {name: _learned(name), f"{name} classical": _classical(name)}


def _points(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """The measured rows by problem, split and batch."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if FAMILY in row.variant and row.value == row.value:
            found.setdefault((row.problem, row.split, row.variant["batch"]), []).append(row)
    return found


def summary(rows: Sequence[Row]) -> list[Row]:
    """Who is ahead at which error: the fewest seconds of all that are as accurate, and HyCOP's over those."""
    out = []
    for (_, _, batch), points in _points(rows).items():
        for level in LEVELS:
            enough = [row for row in points if row.value <= level]
            if not enough:
                continue
            first = min(enough, key=lambda row: row.seconds_per_sample)
            seconds = first.seconds_per_sample
            like = replace(first, variant=Variant.of({"error": f"<={level:g}", "batch": batch}), std=0.0, paper=None)
            out.append(replace(like, metric=FASTEST, value=seconds))
            ours = [row for row in enough if row.variant[FAMILY] == HYCOP]
            if ours:
                best = min(ours, key=lambda row: row.seconds_per_sample)
                like = replace(best, variant=like.variant, std=0.0)
                out.append(replace(like, metric=TIMES_FASTEST, value=best.seconds_per_sample / seconds))
    return [*out, *_over_hycop(rows)]


def _over_hycop(rows: Sequence[Row]) -> Iterator[Row]:
    """What the baselines err, and what their training takes, as multiples of HyCOP's."""
    took = {(row.problem, row.method): row.value for row in rows if row.metric == SECONDS}
    for (problem, _, batch), points in _points(rows).items():
        ours = [row.value for row in points if row.variant[FAMILY] == HYCOP]
        if batch != str(max(BATCHES)) or not ours:
            continue
        for row in points:
            seconds = took.get((problem, row.method))
            if seconds is None or row.method == HYCOP:
                continue
            like = replace(row, variant=Variant(), std=0.0, paper=None)
            yield replace(like, metric=ERROR_OVER, value=row.value / min(ours))
            yield replace(like, metric=TRAINING_OVER, value=seconds / took[problem, HYCOP])


def hull(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The points (cost, error) that no other beats in both, from cheap to dear."""
    kept: list[tuple[float, float]] = []
    for cost, error in sorted(points):
        if not kept or error < kept[-1][1]:
            kept.append((cost, error))
    return [cost for cost, _ in kept], [error for _, error in kept]


def figures(bench: Bench, rows: Sequence[Row]) -> Mapping[str, Figure]:
    """Of each problem: error against seconds alone and in a batch, and against work, in both splits."""
    out, points = {}, _points(rows)
    for name in dict.fromkeys(problem for problem, _, _ in points):
        panels = []
        for split in SPLITS:
            found = {batch: points.get((name, split, str(batch)), []) for batch in BATCHES}
            panels.append(
                [
                    *(_panel(f"{split}, batch {batch}", "seconds per sample", found[batch]) for batch in BATCHES),
                    _panel(f"{split}, work", "work per sample", found[max(BATCHES)]),
                ]
            )
        out[f"frontier_{name}"] = lines_figure(panels, f"{name}: error against cost")
    return out


def _panel(title: str, cost: str, rows: Sequence[Row]) -> Panel:
    lines = {}
    for family in dict.fromkeys(row.variant[FAMILY] for row in rows):
        mine = [row for row in rows if row.variant[FAMILY] == family]
        spent = [row.seconds_per_sample if "seconds" in cost else row.work for row in mine]
        lines[family] = hull([(at, row.value) for at, row in zip(spent, mine, strict=True) if at > 0])
    return Panel(title, cost, "error", {name: line for name, line in lines.items() if line[0]}, log=True)


TABLE = Table(
    "frontier",
    "error against seconds and work, and who is ahead where",
    {
        **{part: rows for name in PROBLEMS for part, rows in _parts(name).items()},
        **{f"{name} baselines": _baselines(name) for name in BASELINES},
    },
    figures,
    samples=max(BATCHES),
    preset="quick",
    summary=summary,
    any_problem=_parts,
)
