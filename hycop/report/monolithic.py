"""The report of a baseline: a network for the whole equation, which writes no programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hycop.baselines import Monolith, load_baseline
from hycop.data import Dataset
from hycop.errors import HyCOPError, InvalidInputError
from hycop.evaluation import Composed, Contender, Row, evaluate
from hycop.execution import Outcome
from hycop.files import provenance
from hycop.metrics import rel_l2
from hycop.problems import Problem, find_problem
from hycop.report.blocks import Block, Code, Facts, Page, Picture, Section, Table, Text, counted, number
from hycop.report.charts import Series, chart, legend
from hycop.report.figures import Fields, fields_png
from hycop.report.plan import MOST, planned
from hycop.report.subject import Tell
from hycop.schemes import splitting

HORIZONS = (1, 5, 10, 20)
"""Steps after which a baseline that is rolled out is judged."""

CLASSICAL = ("Lie", "Strang")
"""Schemes of the problem's own dictionary that are shown beside it."""


@dataclass(frozen=True, eq=False)
class Monolithic:
    """A trained baseline, its problem, and the datasets that it is judged by, each with a label."""

    monolith: Monolith
    problem: Problem
    folder: Path | None
    judged: Sequence[tuple[str, Dataset]]
    untested: str = ""
    options: str = ""
    remark: str = ""
    """What was left out, and why."""

    @property
    def parameters(self) -> int:
        return sum(array.size for array in self.monolith.primitive.arrays().values())

    @cached_property
    def rows(self) -> list[tuple[str, list[Row]]]:
        """Rows by what they are about: one table for each dataset and time."""
        baseline = Contender(self.monolith.baseline.label, self.monolith)
        parts = self.problem.dictionary
        others = [
            Contender(f"{name} (classical)", Composed(splitting(name), parts, self.problem.refinement))
            for name in CLASSICAL
        ]
        found = []
        for label, data in self.judged:
            for index in range(1, data.times.shape[1]):
                part = data.at(index)
                time = float(part.query.time.mean())
                rows = evaluate([baseline, *others], [part], reported_variables=self.problem.reported_variables)
                found.append((f"{label}, T = {number(time)}", rows))
        return found

    def page(self) -> Page:
        label, curve = self.monolith.baseline.label, self.monolith.curve
        figures = [
            (number(min(curve), 2), "smallest held-out relative error of training"),
            (number(self.parameters), "parameters of the network"),
            (f"{self.monolith.seconds:.0f} s", "of CPU time for training"),
        ]
        made = (self._learned, self._curve, self._errors, self._queries, self._facts, self._rebuild)
        sections = [each() for each in made]
        subtitle = f"A monolithic network for {self.problem.name}, trained to compare with: it writes no programs."
        return Page(f"{label} for {self.problem.name}", subtitle, figures, sections, _footer())

    def _learned(self) -> Section:
        baseline, network = self.monolith.baseline, self.monolith.network
        equation = self.problem.equation
        how = f"answers at T = {number(self.monolith.time)} alone, by one evaluation"
        if baseline.protocol != "fixed":
            how = f"takes steps of {number(self.monolith.time)}, each from the state before (roll-out)"
        plan = ", ".join(f"{key} {value}" for key, value in self.monolith.primitive.plan.to_json().items())
        facts = [
            ("Equation", f"{equation.name}: {equation.formula}"),
            ("Network", f"{baseline.label}: {plan}"),
            ("Parameters", f"{self.parameters:,}".replace(",", " ")),
            ("How it answers", how),
            ("Source", baseline.source),
            *([("Remark", baseline.remark)] if baseline.remark else []),
            ("Trained on", network.source),
        ]
        lead = "One network from the initial state to the solution: no programs, primitives or gate, so those sections "
        return Section("learned", "What was learned", f"{lead}do not exist here.", [Facts(facts)])

    def _curve(self) -> Section:
        errors = [float(error) for error in self.monolith.curve]
        rounds = list(range(1, len(errors) + 1))
        series = [Series("held-out error", [float(each) for each in rounds], errors, joined=True)]
        text = f"Held-out error over {counted(len(errors), 'round')} of training: from {number(errors[0])} to "
        text += f"{number(min(errors))} at best."
        picture = Picture(
            chart(series, "round of training", "relative error", alt=text), text, "Held-out error", legend(series)
        )
        slope = self.monolith.slope
        said = (
            f"Training took {number(self.monolith.passes)} forward passes and {self.monolith.seconds:.0f} CPU seconds. "
        )
        if np.isfinite(slope):
            state = "has converged" if self.monolith.converged else "has not converged"
            said += f"It {state}: the second half of it lowered the error {number(2**slope, 2)} times."
        lead = "How the error on held-out solutions fell during training, and what that cost."
        return Section("curve", "Learning curve and cost", lead, [Text(said), picture])

    def _errors(self) -> Section:
        lead = "Mean relative error of the network, and of two textbook schemes for comparison; smaller is better."
        if not self.judged:
            return Section("errors", "Errors", lead, missing=self.untested)
        blocks: list[Block] = []
        for label, rows in self.rows:
            cells = [
                (row.method, number(row.value), number(row.work), number(1e3 * row.seconds_per_sample)) for row in rows
            ]
            caption = f"Queries {label}: means over {counted(rows[0].samples, 'query')}"
            headings = ("Method", "Relative error", "Work", "Milliseconds")
            blocks.append(Table(caption, headings, cells, frozenset({0})))
        blocks.append(
            Text("Work counts updates of one channel in one cell; the schemes are not cut to equal work here.")
        )
        if self.remark:
            blocks.append(Text(self.remark))
        return Section("errors", "Errors", lead, blocks)

    def _queries(self) -> Section:
        lead = "Where the network is best, typical and worst. Truth and prediction share one scale of colours."
        title = "Best, median and worst query"
        if not self.judged:
            return Section("queries", title, lead, missing=self.untested)
        data = self.judged[0][1].at(1)
        query, truth = data.query, data.truth
        done: Outcome = self.monolith.solve(query)
        errors = np.nan_to_num(rel_l2(done.states, truth, query.setting), nan=np.inf)
        order = np.argsort(errors, kind="stable")
        blocks: list[Block] = []
        chosen = {"best": order[0], "median": order[(order.size - 1) // 2], "worst": order[-1]}
        for name, place in chosen.items():
            channels = [channel.name for channel in query.setting.channels]
            lengths = query.grid.lengths[place].tolist()
            fields = Fields(channels, lengths, query.u0[place], truth[place], done.states[place])
            error = number(float(errors[place]), 2)
            alt = f"Initial state, truth, prediction and their difference for the {name} query, relative error {error}"
            caption = (
                f"{name.capitalize()}: relative error {error} (sample {int(place)}, T = {number(query.time[place])})"
            )
            blocks.append(Picture(fields_png(fields), alt, caption, drawn=False))
        return Section("queries", title, lead, blocks)

    def _facts(self) -> Section:
        network = self.monolith.network
        settings = ", ".join(f"{key} = {value}" for key, value in sorted(network.settings.items()))
        versions = provenance("")["versions"]
        assert isinstance(versions, dict)
        entries = [
            ("Seed", str(network.seed)),
            ("Settings of training", settings),
            ("Versions here", ", ".join(f"{name} {each}" for name, each in versions.items())),
        ]
        return Section("facts", "Data and versions", "What this report is made from.", [Facts(entries)])

    def _rebuild(self) -> Section:
        place = self.folder or Path("RUN")
        name, seed = self.monolith.baseline.name, self.monolith.network.seed
        lines = [
            f"hycop baseline {name} {self.problem.name} --out {place} --seed {seed}",
            f"hycop report {place}{self.options}",
        ]
        remark = "Settings that differ from the preset are listed above; give them with --set key=value."
        lead = "The commands that train this network again and write this report."
        return Section("rebuild", "How to rebuild it", lead, [Code("\n".join(lines), "Commands"), Text(remark)])


def monolithic(
    run: Path | Monolith, data: Dataset | None, samples: int | None, seed: int, data_file: str, options: str, tell: Tell
) -> Page:
    """The page of a baseline: judged by ``data``, or by queries that are drawn from its problem."""
    monolith = run if isinstance(run, Monolith) else load_baseline(run)
    folder = None if isinstance(run, Monolith) else run
    problem = find_problem(monolith.network.problem)
    if data is not None:
        given = f"of {data_file or 'the given data'}"
        judged = [(given, _answerable(monolith, problem.checked(data), samples or MOST))]
        return Monolithic(monolith, problem, folder, judged, options=options).page()
    steps = (1,) if monolith.baseline.protocol == "fixed" else HORIZONS
    times = [float(np.round(monolith.time * count, 12)) for count in steps]
    shape = monolith.network.settings.get("shape")
    cells = tuple(shape) if isinstance(shape, list | tuple) else None
    judged, why, remark = [], "", ""
    for label, split in (("like training (id)", "id"), ("beyond training (ood)", "ood")):
        if split not in problem.splits:
            continue
        tell(f"truth of {problem.name}/{split}", 0.1 if split == "id" else 0.4)
        try:
            plan = None if samples else planned(problem, split, seed, cells, time=times[-1])
            count = plan.count if plan is not None else samples or 0
            judged.append((label, problem.sample(count, split, seed, shape=cells, times=times, estimated=0)))
            remark = plan.remark if plan is not None and plan.remark else remark
        except HyCOPError as error:
            why = f"the truth cannot be computed: {error}"
    return Monolithic(monolith, problem, folder, judged, why, options, remark).page()


def _answerable(monolith: Monolith, data: Dataset, most: int) -> Dataset:
    """The data at the times that the network can answer."""
    few = data.take(slice(0, most))
    indices = []
    for index in range(1, few.times.shape[1]):
        try:
            monolith.solve(few.take(slice(0, 1)).at(index).query)
            indices.append(index)
        except HyCOPError as error:
            refused = error
    if not indices:
        raise InvalidInputError(f"no time of the data can be answered: {refused}")
    return few.only(indices[: len(HORIZONS)])


def _footer() -> str:
    versions = provenance("")["versions"]
    assert isinstance(versions, dict)
    return f"hycop {versions['hycop']}"
