"""Sections about what was learned: the model, its programs, the gate, and how it was trained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.model import Model
from hycop.policy import Inputs, PositionPolicy, SlotPolicy
from hycop.primitive import ALL_CHANNELS, EXACT
from hycop.program import EMPTY, Program, ProgramBatch
from hycop.report.blocks import (
    Block,
    Code,
    Facts,
    Picture,
    Section,
    Table,
    Text,
    counted,
    number,
    percent,
    ratio,
    readable,
    sentence,
)
from hycop.report.charts import Series, chart, legend
from hycop.report.subject import Subject
from hycop.report.timelines import described, timelines
from hycop.report.timelines import legend as step_legend
from hycop.scope import Values

ROWS = 12
"""Programs that are drawn, spread over the queries."""

MOST_POINTS = 400
"""Points of a learning curve."""

STAGES = {"try": "trying a pattern", "polish": "fitting a pattern", "static": "ablation: one program for all queries"}
"""What the stages of training do, by the first word of their name."""


def learned(subject: Subject) -> Section:
    model, equation = subject.model, subject.model.equation
    box = " × ".join(number(length) for length in model.box.lengths)
    facts = [
        ("Equation", f"{equation.name}: {equation.formula or 'u_t = ' + ' + '.join(equation.processes)}"),
        ("Processes", ", ".join(equation.processes)),
        ("State", ", ".join(channel.name for channel in equation.channels)),
        ("Coefficients", ", ".join(equation.coefficients) or "none"),
        ("Box", f"{box}, {', '.join(dict.fromkeys(model.box.boundary))} boundary"),
        ("Policy", _policy(model)),
        ("It sees", ", ".join(model.scope.view.features.names) or "nothing of a query: one program for all"),
        *((f"Corrected {name}", str(each)) for name, each in model.corrections.items()),
    ]
    blocks: list[Block] = [
        Text(
            "A dictionary of simple solvers, called primitives, is composed by a small policy. For each query it "
            "writes a program: which primitive acts, for how long, and in what order."
        ),
        Facts(facts),
        _dictionary(model),
    ]
    changes = model.record.changes
    if changes:
        rows = [(str(place + 1), change) for place, change in enumerate(changes)]
        blocks.append(Table("Changes since training, in order", ("Change", "What"), rows, numeric=False))
    typical = typical_program(subject)
    if typical is not None:
        names = model.dictionary.names_in(step.primitive for step in typical)
        caption = "Typical program; the width of a box is the duration of the step"
        text = f"Timeline of the typical program: {described(typical)}"
        blocks.append(Picture(timelines([("typical query", typical)], names, text), text, caption, step_legend(names)))
        blocks.append(Code(str(typical), "The same program as text, durations as fractions of the query time T"))
    lead = "The equation, the simple solvers that the model composes, and the policy that composes them."
    return Section("learned", "What was learned", lead, blocks)


def _policy(model: Model) -> str:
    policy = model.policy
    size = counted(model.theta.size, "parameter")
    if isinstance(policy, SlotPolicy):
        patterns = ", ".join(pattern.origin for pattern in policy.patterns)
        return f"{size}; it varies {patterns}, which it is when all parameters are zero"
    return (
        f"{size}; at every position it chooses a primitive and a duration"
        if isinstance(policy, PositionPolicy)
        else size
    )


def _dictionary(model: Model) -> Table:
    rows = []
    for name, primitive in model.dictionary.everything.items():
        order = primitive.order
        shown = "none" if order is None else "exact" if order == EXACT else number(float(order))
        kept: frozenset[str] = getattr(primitive, "conserves", frozenset())
        keeps = "everything" if kept == ALL_CHANNELS else ", ".join(sorted(kept)) or "nothing"
        untrained = " (swapped in after training)" if name in model.scope.untrained else ""
        rows.append((name, f"{primitive!r}{untrained}", ", ".join(sorted(primitive.advances)), shown, keeps))
    caption = "Dictionary: each primitive advances some processes of the equation"
    return Table(caption, ("Name", "Primitive", "Advances", "Order", "Conserves"), rows, numeric=False)


def typical_program(subject: Subject) -> Program | None:
    """The program for a query in the middle of training, durations as fractions of T; None if no query is at hand."""
    model = subject.model
    view = model.scope.view
    if model.gate.learned:
        middle = Inputs(
            np.zeros((1, len(view.features.names))), np.zeros((1, len(view.gain_features.names))), np.ones(1)
        )
        return model.policy.programs(model.theta[None], middle)[0]
    if not subject.judged:
        return None
    case = subject.main.case
    chosen = case.programs.take(slice(subject.main.ranked()["median"], None)).take(slice(0, 1))
    return ProgramBatch(chosen.names, chosen.ops, chosen.durations / case.query.time[subject.main.ranked()["median"]])[
        0
    ]


def gate(subject: Subject) -> Section:
    decision = subject.model.gate
    better = ratio(decision.learned_error, decision.classical_error)
    if decision.instead is not None:
        verdict = f"Not composed: {decision.instead}, which advances the whole equation, errs less at no more work."
    elif decision.kept:
        verdict = f"Kept: the learned policy writes the programs. Its held-out error is {better} than that of the best "
        verdict += f"classical scheme at equal work, {decision.classical}."
        verdict = verdict.replace("equal within 2 % than that of", "within 2 % of that of")
    else:
        verdict = f"Not kept: the programs are those of the classical scheme {decision.classical}, because the learned "
        verdict += "policy was not better beyond doubt."
    rows = [
        (
            "Learned policy",
            number(decision.learned_error),
            number(decision.learned_extreme),
            number(decision.learned_work),
        ),
        (
            decision.classical,
            number(decision.classical_error),
            number(decision.classical_extreme),
            number(decision.classical_work),
        ),
    ]
    if decision.instead is not None:
        rows.append((decision.instead, number(decision.error), "", number(decision.work)))
    caption = f"The gate's numbers on {decision.samples} held-out queries: mean relative errors and work per query"
    table = Table(
        caption,
        ("Programs of", "Error", "Error, most extreme tenth", "Work"),
        rows,
        frozenset({2 if decision.instead is not None else 0 if decision.kept else 1}),
    )
    blocks: list[Block] = [Text(verdict, strong=True), table]
    if decision.confidence is not None:
        blocks.append(
            Text(
                f"In {percent(decision.confidence)} of the bootstrap resamples of these queries the learned policy has "
                "the smaller mean error; 95 % are needed to keep it."
            )
        )
    blocks += [Text(readable(f"{sentence(line)}.")) for line in decision.explained()[2:]]
    lead = (
        "One decision per run: the learned policy is used only if it beats the best textbook scheme of the same cost."
    )
    return Section("gate", "The gate's decision", lead, blocks)


def curve(subject: Subject) -> Section:
    entries = subject.history
    kinds = list(dict.fromkeys(str(entry["stage"]).split()[0] for entry in entries))
    series = []
    for kind in kinds:
        mine = [
            (place + 1, float(entry["loss"]))
            for place, entry in enumerate(entries)
            if str(entry["stage"]).split()[0] == kind
        ]
        mine = mine[:: max(1, len(mine) // MOST_POINTS)]
        series.append(Series(STAGES.get(kind, kind), [x for x, _ in mine], [y for _, y in mine], joined=kind != "try"))
    decision = subject.model.gate
    levels = {f"{decision.classical}, held-out": decision.classical_error, "learned, held-out": decision.learned_error}
    if not entries:
        raise InvalidInputError("the history of the run is empty: the policy is that of the classical scheme")
    text = f"Learning curve of {counted(len(entries), 'step')}: the loss goes from {number(entries[0]['loss'])}"
    text += f" to {number(min(float(entry['loss']) for entry in entries))} at best."
    picture = Picture(
        chart(series, "step of training", "mean relative error", alt=text, levels=levels),
        text,
        "Loss on the training queries after each step; dashed: errors on the held-out queries of the gate",
        legend(series),
    )
    lead = "How the error on the training queries fell while patterns of primitives were tried and fitted."
    return Section("curve", "Learning curve", lead, [picture])


def programs(subject: Subject) -> Section:
    values, names, written = _written(subject)
    feature, order = telling(values, names, written)
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(ROWS, len(order))).round().astype(int))]
    column = values[:, list(names).index(feature)]
    rows = [(f"{feature} = {number(float(column[row]))}", written[int(row)]) for row in chosen]
    used = [name for op, name in enumerate(written.names) if (written.ops == op).any()]
    text = f"Timelines of {counted(len(rows), 'program')} for queries sorted by {feature}. For the lowest value: "
    text += f"{described(rows[0][1])}. For the highest: {described(rows[-1][1])}."
    picture = Picture(
        timelines(rows, used, text),
        text,
        f"Programs for queries sorted by {feature}; the width of a box is the part of all time that the step takes",
        step_legend(used),
    )
    patterns = len(np.unique(written.ops, axis=0))
    lengths = written.lengths()
    steps = f"{lengths.min()}" if np.ptp(lengths) == 0 else f"{lengths.min()} to {lengths.max()}"
    remark = (
        f"The programs have {steps} step{'' if steps == '1' else 's'} and {counted(patterns, 'pattern')} of primitives "
        f"in {len(written)} queries. "
    )
    if subject.model.gate.learned:
        remark += f"Of the features, {feature} goes with the durations most closely."
    elif subject.model.gate.instead is not None:
        remark += "They are single steps of a solver of the whole equation: nothing is composed."
    else:
        remark += "They are those of the classical scheme: every query gets the same fractions of its time."
    lead = (
        "The program that the model writes depends on the query; each row is one query, from one end of the regime to "
    )
    lead += "the other."
    return Section("programs", "Programs across the regime", lead, [picture, Text(remark)])


def _written(subject: Subject) -> tuple[Array, Sequence[str], ProgramBatch]:
    """Features (query, name) and programs: of queries with truth, else of those of training that the model keeps."""
    model, view = subject.model, subject.model.scope.view
    if subject.judged:
        cases = [each.case for each in subject.judged]
        longest = max(case.programs.ops.shape[1] for case in cases)
        ops = [_padded(case.programs.ops, longest, EMPTY) for case in cases]
        spent = [_padded(case.programs.durations / case.query.time[:, None], longest, 0.0) for case in cases]
        known = max((case.programs.names for case in cases), key=len)  # one may have an unsplit solver, too
        batch = ProgramBatch(known, np.concatenate(ops), np.concatenate(spent))
        values = np.concatenate([np.column_stack([case.features, case.query.time]) for case in cases])
        return values, (*view.features.names, "time"), batch
    if not model.gate.learned or model.trained is None or view.gain_features.names or not view.features.names:
        raise InvalidInputError(f"programs are written for queries, and {subject.untested or 'none are at hand'}")
    kept = model.trained.features
    inputs = view.inputs(Values(kept, np.zeros((len(kept), 0))), np.ones(len(kept)))
    return kept, view.features.names, model.policy.programs(model.theta[None], inputs)


def _padded(values: Array, width: int, fill: float) -> Array:
    return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=fill)


def telling(values: Array, names: Sequence[str], written: ProgramBatch) -> tuple[str, Array]:
    """The feature that the durations follow most closely, and the queries in its order."""
    spent = written.durations / (np.abs(written.durations).sum(axis=1, keepdims=True) + 1e-300)
    ranks = np.argsort(np.argsort(values, axis=0, kind="stable"), axis=0, kind="stable").astype(float)
    ranks -= ranks.mean(axis=0)
    moved = spent - spent.mean(axis=0)
    varied = np.ptp(values, axis=0) > 0
    score = np.abs(ranks.T @ moved).sum(axis=1) / (np.linalg.norm(ranks, axis=0) + 1e-300)
    best = int(np.argmax(np.where(varied, score, -1.0)))
    return names[best], np.argsort(values[:, best], kind="stable")


def front(subject: Subject) -> Section:
    lead = "Models for several amounts of work: more work buys a smaller error, up to a point."
    title = "Accuracy against cost"
    if not subject.front:
        missing = "This run is a single model; 'hycop train … --pareto' trains a front of several."
        return Section("front", title, lead, missing=missing)
    points = subject.front
    series = [
        Series(name, [p[f"{kind}work"] for p in points], [p[f"{kind}error"] for p in points], joined=True)
        for name, kind in (("HyCOP", ""), ("best classical scheme at equal work", "classical_"))
    ]
    text = f"Error against work of {counted(len(points), 'model')} and of the best classical schemes at equal work."
    picture = Picture(
        chart(series, "work per query (channel-cell updates)", "mean relative error", alt=text, log_x=True),
        text,
        "Error on held-out queries against the work of a query",
        legend(series),
    )
    rows = [
        (
            str(point["folder"]),
            number(point["work"]),
            number(point["error"]),
            str(point["classical"]),
            number(point["classical_error"]),
            point.get("instead") or ("learned" if point["kept"] else "classical"),
        )
        for point in points
    ]
    folder = "" if subject.folder is None else subject.folder.name
    mine = frozenset(place for place, point in enumerate(points) if point["folder"] == folder)
    headings = ("Model", "Work", "Error", "Best classical scheme", "Its error", "Programs")
    remark = f"The rest of this report is about {folder}, the most accurate of them."
    table = Table("Models of the front, by increasing work", headings, rows, mine, words=frozenset({3, 5}))
    return Section("front", title, lead, [picture, table, Text(remark)])
