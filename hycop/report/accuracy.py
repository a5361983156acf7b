"""Sections about how well a model answers: errors beside classical schemes, chosen queries, estimates and trust."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from hycop.errors import HyCOPError, InvalidInputError
from hycop.evaluation import EQUAL_WORK, Composed, Contender, Opponents, Row, composed, errors_of, evaluate, limit
from hycop.grid import Array
from hycop.metrics import find_metric
from hycop.policy import exact_covers
from hycop.problems.definition import ReportedVariables
from hycop.report.blocks import Block, Code, Picture, Section, Table, Text, counted, number, percent, ratio
from hycop.report.charts import Series, chart, legend
from hycop.report.figures import Fields, SpaceTime, fields_png, space_time_png
from hycop.report.subject import Judged, Subject
from hycop.report.timelines import described, timelines
from hycop.schemes import Classical, Scheme, portfolio, splitting
from hycop.surrogate import HyCOP

SHOWN = 8
"""Classical schemes in a table: the best ones."""

SECONDS = 6.0
"""Seconds that the search for opponents, and the limit of a dictionary, may take for each set of queries."""

TEXTBOOK = ("Lie", "Strang")
"""Schemes that are shown whatever their error."""

FRAMES = 48
"""Times of a picture over space and time."""

SMALLEST = 0.1
"""Smallest error that is drawn beside estimates, as a fraction of the smallest estimate."""

HYCOP, STATIC, LIMIT = "HyCOP", "one program for all (ablation)", "limit of the dictionary"


def errors(subject: Subject) -> Section:
    whole = subject.model.gate.instead is not None
    lead = (
        "Mean relative error of the model and of textbook schemes that cost no more"
        f"{' than its composition' if whole else ''}; smaller is better."
    )
    if not subject.judged:
        return Section("errors", "Errors at equal work", lead, missing=subject.untested)
    blocks: list[Block] = []
    limited = True
    for judged in subject.judged:
        rows = _rows(subject, judged)
        ours = next(row for row in rows if row.method == HYCOP)
        rivals = [row for row in rows if row.method not in (HYCOP, STATIC, LIMIT)]
        subject.timing.setdefault("seconds", ours.seconds_per_sample)
        subject.timing.setdefault("work", ours.work)
        subject.timing.setdefault("error", ours.value)
        if rivals:
            best = min(rivals, key=lambda row: row.value)
            subject.timing.setdefault("best", best.value)
            said = f"On queries {judged.label} the error of HyCOP is {number(ours.value, 2)}, "
            said += f"{ratio(ours.value, best.value)} than that of the best scheme here, {best.method}."
            blocks.append(Text(said.replace("2 % than that of", "2 % to that of"), strong=True))
        blocks.append(_table(judged, rows))
        blocks += [Text(remark) for remark in judged.remarks]
        limited = limited and any(row.method == LIMIT for row in rows)
    if not limited:
        blocks.append(Text("The limit of the dictionary is not in every table: to find it would take too long here."))
    blocks.append(
        Text(
            "Work counts updates of one channel in one cell. The limit is what the same primitives reach when programs "
            "are refined until nothing changes; a program can beat it where errors cancel."
        )
    )
    if subject.problem is not None and subject.problem.reported_variables is not None:
        blocks.append(Text("Errors are measured in the variables in which this problem is reported, not in the state."))
    return Section("errors", "Errors at equal work", lead, blocks)


def _table(judged: Judged, rows: Sequence[Row]) -> Table:
    shown = [
        (
            row.method,
            number(row.value),
            number(row.work) if row.work else "–",
            number(1e3 * row.seconds_per_sample) if row.seconds_per_sample else "–",
        )
        for row in rows
    ]
    caption = f"Queries {judged.label}: means over {counted(judged.case.batch, 'query')}"
    return Table(caption, ("Method", "Relative error", "Work", "Milliseconds"), shown, frozenset({0}))


def _rows(subject: Subject, judged: Judged) -> list[Row]:
    """HyCOP first, then the ablation, the opponents by error, and the limit."""
    case, model = judged.case, judged.case.model
    start = perf_counter()
    work = HyCOP.of(model.composition()).solve(case.query).work
    rivals = _opponents(judged, work, perf_counter() - start)
    contenders = [Contender(HYCOP, HyCOP.of(model))]
    static = model.static()
    if static is not None:
        contenders.append(Contender(STATIC, HyCOP.of(static)))
    parts = model.composition()
    contenders += composed(rivals, parts.dictionary, refinement=parts.refinement)
    reported = None if subject.problem is None else subject.problem.reported_variables
    metric = model.record.config.metric
    found = evaluate(contenders, [judged.dataset], metrics=[metric], reported_variables=reported)
    mine = [row for row in found if row.method in (HYCOP, STATIC)]
    others = sorted((row for row in found if row.method not in (HYCOP, STATIC)), key=lambda row: row.value)
    return [*mine, *others, *_limit(judged, reported)]


def _opponents(judged: Judged, work: Array, seconds: float) -> list[Classical]:
    """The best classical schemes at equal work, and those of the textbook. All are tried where that is quick; else the
    opponent of the gate and those of the textbook are, as finely cut as equal work allows."""
    case, model = judged.case, judged.case.model.composition()
    covers = exact_covers(model.dictionary, model.equation.processes)
    known = [splitting(name).within(model.gate.cover) for name in TEXTBOOK]
    every = portfolio(model.dictionary, case.query.setting, covers=covers)
    if seconds * len(every) < SECONDS:
        opponents = Opponents(
            model.dictionary,
            case.query,
            case.truth,
            model.refinement,
            substeps=model.record.config.substeps,
            covers=covers,
        )
        found = opponents.affordable(case.query, work)
        found = sorted(found, key=lambda scheme: _mean_error(judged, scheme))[:SHOWN]
        names = {str(scheme) for scheme in found}
        return [*found, *(scheme for scheme in known if str(scheme) not in names and _fits(judged, scheme, work))]
    own = model.scheme_for(case.query.setting)
    chosen = {str(scheme): scheme for scheme in (own, *(_cut(judged, each, work) for each in known))}
    return [scheme for scheme in chosen.values() if _fits(judged, scheme, work)]


def _mean_error(judged: Judged, scheme: Classical) -> float:
    case, model = judged.case, judged.case.model.composition()
    states = Composed(scheme, model.dictionary, model.refinement).solve(case.query).states
    return float(errors_of(case.model.record.config.metric, states, case.truth, case.query).mean())


def _share(judged: Judged, scheme: Classical, work: Array) -> float:
    """Work of a scheme divided by the model's, on a few queries."""
    few = judged.case.few(2)
    model = judged.case.model.composition()
    theirs = Composed(scheme, model.dictionary, model.refinement).solve(judged.case.query.take(few)).work
    return float(theirs.mean()) / (float(work[few].mean()) or 1.0)


def _fits(judged: Judged, scheme: Classical, work: Array) -> bool:
    return _share(judged, scheme, work) <= EQUAL_WORK


def _cut(judged: Judged, scheme: Scheme, work: Array) -> Scheme:
    """The scheme in as many substeps as equal work allows."""
    finest = scheme.with_substeps(max(1, int(EQUAL_WORK / _share(judged, scheme, work))))
    while finest.substeps > 1 and not _fits(judged, finest, work):
        finest = scheme.with_substeps(finest.substeps - 1)
    return finest


def _limit(judged: Judged, reported: ReportedVariables | None) -> list[Row]:
    """The limit of the dictionary, refined as far as a few seconds allow; nothing if that is not far."""
    case, model = judged.case, judged.case.model.composition()
    start = perf_counter()
    Composed(splitting("SABA4").with_substeps(4).within(model.gate.cover), model.dictionary, model.refinement).solve(
        case.query
    )
    # runs of 4, 8, … substeps take about twice as long as the last of them
    affordable = SECONDS / max(1e-6, perf_counter() - start)
    most = max((count for count in (64, 32, 16, 8) if 2 * count / 4 <= affordable), default=0)
    if not most:
        return []
    try:
        found = limit(
            model.dictionary, case.query, case.truth, most=most, refinement=model.refinement, cover=model.gate.cover
        )
    except HyCOPError:
        return []
    states, truth, setting = found.states, case.truth, case.query.setting
    if reported is not None:
        (states, setting), (truth, _) = reported(states, setting), reported(truth, setting)
    value = float(find_metric(model.record.config.metric)(states, truth, setting).mean())
    return [Row.of(judged.dataset, method=LIMIT, metric=model.record.config.metric, value=value)]


def queries(subject: Subject) -> Section:
    lead = "Three queries: where the model is best, typical and worst. Truth and prediction share one scale of colours."
    title = "Best, median and worst query"
    if not subject.judged:
        return Section("queries", title, lead, missing=subject.untested)
    judged = subject.main
    blocks: list[Block] = []
    for name, place in judged.ranked().items():
        blocks += _query(judged, name, place)
    blocks += [Text(remark) for remark in judged.remarks]
    return Section("queries", title, lead, blocks)


def _query(judged: Judged, name: str, place: int) -> list[Block]:
    case = judged.case
    query, error = case.query.take(slice(place, place + 1)), float(judged.errors[place])
    given = ", ".join(f"{key} = {number(float(value[0]))}" for key, value in query.setting.params.items())
    lengths = query.grid.lengths[0].tolist()
    box = f"box {' × '.join(number(length) for length in lengths)}"
    about = ", ".join(filter(None, (f"T = {number(float(query.time[0]))}", given, box)))
    said = f"{name.capitalize()}: relative error {number(error, 2)} (sample {int(case.sample[place])}; {about})"
    channels = [channel.name for channel in query.setting.channels]
    fields = Fields(channels, lengths, query.u0[0], case.truth[place], case.answers[place])
    alt = (
        f"Initial state, truth, prediction and their difference for the {name} query, relative error {number(error, 2)}"
    )
    blocks: list[Block] = [Picture(fields_png(fields), alt, said, drawn=False)]
    if query.grid.axes == 1 and float(query.time[0]) > 0:
        blocks.append(_over_time(judged, name, place, channels[0]))
    program = case.programs[place]
    text = f"Timeline of the program of the {name} query: {described(program)}"
    blocks.append(Picture(timelines([("its program", program)], case.programs.names, text), text, ""))
    if len(program) <= 24:
        blocks.append(Code(str(program), f"Program of the {name} query"))
    return blocks


def _over_time(judged: Judged, name: str, place: int, channel: str) -> Picture:
    """A query on a line at many times, each answered directly; the truth is drawn again, or taken from the data."""
    case = judged.case
    end = float(case.query.time[place])
    times, truth = _later_truth(judged, place, end)
    asked = case.query.take(slice(place, place + 1)).at(times)
    states = np.concatenate([case.query.u0[place : place + 1, 0], HyCOP.of(case.model).solve(asked).states[:, 0]])
    picture = SpaceTime(np.concatenate([[0.0], times]), float(case.query.grid.lengths[place, 0]), states, truth)
    parts = "truth, prediction and their difference" if truth is not None else "the prediction"
    alt = f"{channel} over space and time for the {name} query: {parts}"
    caption = (
        f"{channel} over space and time: every time is answered directly from the initial state, without a roll-out"
    )
    if truth is None:
        caption += "; the truth is known at T alone"
    return Picture(space_time_png(picture), alt, caption, drawn=False)


def _later_truth(judged: Judged, place: int, end: float) -> tuple[Array, Array | None]:
    """Times up to the end and, if it can be known, the truth (1 + time, x) of the first channel at them."""
    case, sample = judged.case, int(judged.case.sample[place])
    even = np.linspace(0.0, end, FRAMES + 1)[1:]
    if judged.drawn is not None:
        source = case.source
        again = judged.drawn.sample(
            sample + 1,
            source.split,
            source.seed,
            shape=source.setting.grid.shape,
            times=even.tolist(),
            boundary=source.setting.grid.boundary,
            estimated=0,
        )
        return even, again.arranged(case.query.setting.channels).states[sample, :, 0]
    elapsed = case.source.times[sample] - case.source.times[sample, 0]
    kept = np.flatnonzero((elapsed > 0) & (elapsed <= end * (1 + 1e-9)))
    if kept.size < 4:
        return even, None
    states = case.source.arranged(case.query.setting.channels).states[sample, np.concatenate([[0], kept]), 0]
    return elapsed[kept], states


def trust(subject: Subject) -> Section:
    lead = "The model estimates its own error without a truth, and flags queries outside of what it was trained for."
    title = "Error estimates and trust"
    if not subject.judged:
        return Section("trust", title, lead, missing=subject.untested)
    series, rows, reasons = [], [], []
    # errors at rounding would squeeze all others together
    least = SMALLEST * min(float(each.answer.error.min()) for each in subject.judged)
    for judged in subject.judged:
        answer, true = judged.answer, judged.errors
        flagged, estimated = answer.untrusted, answer.error
        for kind, mask in (("trusted", ~flagged), ("flagged", flagged)):
            if mask.any():
                shown = np.maximum(true[mask], least).tolist()
                series.append(Series(f"{judged.label}, {kind}", estimated[mask].tolist(), shown))
                rows.append(
                    (
                        f"{judged.label}, {kind}",
                        str(int(mask.sum())),
                        number(float(true[mask].mean())),
                        number(float(estimated[mask].mean())),
                        percent(float((true[mask] <= estimated[mask]).mean())),
                    )
                )
        reasons += [
            (name, judged.label, f"{int(flags.sum())} of {judged.case.batch}") for name, flags in answer.outside.items()
        ]
    text = "True error of each query against its estimated error; points below the dashed diagonal are covered."
    picture = Picture(
        chart(series, "estimated relative error", "true relative error", alt=text, log_x=True, diagonal=True),
        text,
        "True against estimated error of every query; below the dashed line the error is smaller than its estimate. "
        "Errors far below all estimates are drawn at the lower edge",
        legend(series),
    )
    headings = ("Queries", "Number", "Mean true error", "Mean estimate", "Error below estimate")
    blocks: list[Block] = [
        Text(_calibration(subject), strong=True),
        picture,
        Table("Estimates and truth", headings, rows),
    ]
    if reasons:
        caption = "Why queries are flagged: each of these lies outside of its trained range"
        blocks.append(Table(caption, ("Reason", "Queries", "Flagged"), reasons, words=frozenset({1})))
    else:
        blocks.append(Text("No query is flagged: all lie within the ranges of training."))
    return Section("trust", title, lead, blocks)


def _calibration(subject: Subject) -> str:
    judged = subject.main
    if not np.isfinite(judged.answer.error).any():
        raise InvalidInputError("no estimate is finite: refinements of the answers failed")
    covered = float((judged.errors <= judged.answer.error).mean())
    subject.timing.setdefault("covered", covered)
    if judged.answer.estimate.calibrated:
        return (
            f"{percent(covered)} of the queries {judged.label} err less than their estimate; estimates are calibrated "
            "so that 90 % of queries like those of training do."
        )
    return (
        f"{percent(covered)} of the queries {judged.label} err less than their estimate. It is not calibrated for "
        "them: primitives, boundary or data are not those of training, so it is twice the distance to a refined answer."
    )
