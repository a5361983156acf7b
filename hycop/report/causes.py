"""Sections about where the error comes from: its budget, the commutators of the processes, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hycop.diagnosis.budget import TERMS, Budget, budget
from hycop.diagnosis.case import Case
from hycop.diagnosis.commutators import Commutator, commutators
from hycop.diagnosis.trusted import Trusted
from hycop.diagnosis.verdict import Verdict, verdict
from hycop.report.blocks import Block, Picture, Section, Table, Text, counted, number, percent, readable, sentence
from hycop.report.charts import bars
from hycop.report.figures import maps_png
from hycop.report.subject import Subject

EFFORT = 1e8
"""Values of fine states that trusted flows may compute for one budget; decides for how many queries it is made."""

FEWEST, MOST = 1, 6
"""Queries of a budget; a single one is the median query."""

MAPPED = 3
"""Commutators whose map is drawn."""

LONGEST = 12
"""Steps of a program that are listed; of a longer one the worst are."""

MEANING = {
    "total": "the whole error",
    "mismatch": "what the equation of the model lacks, or the data have besides",
    "splitting": "from letting the processes act in turn; a finer program lowers it",
    "primitive": "from the primitives' own discretisation; better primitives or a finer grid lower it",
    "rest": "splitting and primitives together, which cannot be told apart here",
}


@dataclass(frozen=True, eq=False)
class Causes:
    """The causes of the errors on a few queries of a subject, each computed when it is first asked for."""

    subject: Subject

    @cached_property
    def case(self) -> Case:
        whole = self.subject.main.case
        trusted = Trusted.of(whole.model, whole.query.grid, whole.source.problem)
        fine = whole.query.u0[0].size * trusted.refinement**whole.query.grid.axes
        steps = int(whole.programs.ops.shape[1])
        # half the steps on average of every beginning of a program, and two finer runs for the floor
        each = fine * (0.5 * min(steps, 100) ** 2 + 8 * steps)
        count = int(min(MOST, max(FEWEST, EFFORT / each)))
        chosen = whole.few(count) if count > 1 else np.array([self.subject.main.ranked()["median"]])
        return whole.take(chosen)

    @cached_property
    def trusted(self) -> Trusted:
        return Trusted.of(self.case.model, self.case.query.grid, self.case.source.problem)

    @cached_property
    def budget(self) -> Budget:
        return budget(self.case, self.trusted)

    @cached_property
    def verdict(self) -> Verdict:
        return verdict(self.budget)

    @cached_property
    def commutators(self) -> list[Commutator]:
        return commutators(self.case, self.trusted, not self.budget.reason)

    def budget_section(self) -> Section:
        lead = "The error divided into its causes, and what to do about the largest."
        title = "Where the error comes from"
        if not self.subject.judged:
            return Section("budget", title, lead, missing=self.subject.untested)
        found = self.budget
        sizes = {name: float(values.mean()) for name, values in found.sizes.items()}
        floors = {term: found.floor.of(term) for term in TERMS if term in sizes}
        text = "Error budget: " + ", ".join(f"{name} {number(size, 2)}" for name, size in sizes.items())
        picture = Picture(
            bars(sizes, floors, x="mean relative error", alt=text),
            text,
            f"{self._asked}; the mark on a bar is what trusted solvers and "
            "data themselves are unsure by: a smaller term is not blamed. Terms may cancel, so they need not add up",
        )
        rows = [(name, number(size), MEANING[name]) for name, size in sizes.items()]
        advice = self.verdict
        blocks: list[Block] = [
            Text(readable(f"Verdict: {advice.advice}. {sentence(advice.evidence)}."), strong=True),
            picture,
            Table("Terms of the error, relative to the truth", ("Term", "Size", "Meaning"), rows, words=frozenset({2})),
        ]
        if found.reason:
            blocks.append(Text(f"Splitting and primitive error cannot be told apart: {readable(found.reason)}."))
        blocks += self._shares()
        if advice.kind == "enrich":
            blocks.append(Text("'hycop diagnose RUN --data FILE' names the missing terms, 'hycop enrich' adds them."))
        return Section("budget", title, lead, blocks)

    @property
    def _asked(self) -> str:
        """What the budget is that of."""
        few = self.case.batch
        return "Error budget of the median query" if few == 1 else f"Mean error budget of {few} queries"

    def _shares(self) -> list[Block]:
        shares = self.budget.shares
        if shares is None:
            return []
        fractions = [(name, percent(part)) for name, part in shares.fractions().items()]
        steps = [(place + 1, name, size) for place, name, size in shares.steps()]
        caption = "Primitive error of each step of the most frequent program, carried to the end"
        if len(steps) > LONGEST:
            caption = f"The {LONGEST} steps with the largest primitive error, of {len(steps)}"
            steps = sorted(sorted(steps, key=lambda step: -step[2])[:LONGEST])
        rows = [(f"{place}", name, number(size, 2)) for place, name, size in steps]
        return [
            Table("Primitive error by process", ("Primitive", "Part of it"), fractions),
            Table(caption, ("Step", "Primitive", "Error"), rows, words=frozenset({1})),
        ]

    def commutator_section(self) -> Section:
        lead = "Where the order of two processes matters: a small number means that they can be split at no cost."
        title = "Commutators"
        if not self.subject.judged:
            return Section("commutators", title, lead, missing=self.subject.untested)
        found = self.commutators
        if not found:
            why = "The programs use a single primitive, so there is no pair of them to compare."
            return Section("commutators", title, lead, missing=why)
        rows = [(f"{each.pair[0]} – {each.pair[1]}", number(each.strength, 2)) for each in found]
        strongest = found[0]
        channel = int(np.argmax([each.max() for each in strongest.map]))
        name = self.case.query.setting.channels[channel].name
        maps = {f"{each.pair[0]} – {each.pair[1]} ({name})": each.map[channel] for each in found[:MAPPED]}
        alt = f"Maps of the commutators of {', '.join(maps)}: where in space the order of the processes matters"
        said = f"{strongest.pair[0]} and {strongest.pair[1]} commute least: to leading order, one step of each "
        said += f"for the whole query time would err by {number(strongest.strength / 2, 2)} of the state's size."
        blocks: list[Block] = [
            Text(sentence(said), strong=True),
            Table(
                "Strength T²‖[F, G]u‖/‖u‖ of each pair: twice the error of one unsymmetric step",
                ("Pair", "Strength"),
                rows,
            ),
            Picture(
                maps_png(maps, self.case.query.grid.lengths[0].tolist()),
                alt,
                f"Root mean square of the commutator over {counted(self.case.batch, 'query')} at the initial state and "
                "at the truth, each map on a scale of its own",
                drawn=False,
            ),
        ]
        return Section("commutators", title, lead, blocks)
