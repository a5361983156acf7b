"""Sections about where the error comes from: its budget, the commutators of the processes, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hycop.diagnosis.budget import LONGEST_DIVIDED, TERMS, Budget, budget
from hycop.diagnosis.case import Case
from hycop.diagnosis.commutators import Commutator, commutators
from hycop.diagnosis.trusted import Trusted
from hycop.diagnosis.verdict import Verdict, verdict
from hycop.errors import NonFiniteStateError
from hycop.grid import changed
from hycop.report.blocks import Block, Picture, Section, Table, Text, counted, number, percent, readable, sentence
from hycop.report.charts import bars
from hycop.report.figures import maps_png
from hycop.report.plan import cpu_seconds
from hycop.report.subject import Subject

SECONDS = 40.0
"""CPU seconds that the trusted flows of a budget may take; decides for how many queries it is made, if any."""

MOST = 6
"""Queries of a budget; a single one is the median query."""

MAPPED = 3
"""Commutators whose map is drawn."""

LONGEST = 12
"""Steps of a program that are listed; of a longer one the worst are."""

TOO_LONG = (
    "The error budget is left out: even for one query, trusted solvers of the parts would take more than "
    f"{SECONDS:.0f} CPU seconds. 'hycop diagnose RUN --data FILE' takes the time and computes it."
)

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
    def affordable(self) -> int:
        """Queries for which a budget can be made in time; 0 if it takes too long for one.

        With k steps a program with trusted parts is run from each of its k beginnings, and the limit Ψ∞ once. For the
        floor both are run once more, on twice the cells along each axis and in half the time steps, and the limit three
        times from coarser states.
        """
        whole = self.subject.main.case
        one = whole.take(np.array([self.subject.main.ranked()["median"]]))
        trusted, steps = self.trusted, min(int(one.programs.ops.shape[1]), LONGEST_DIVIDED)
        asked = one.query

        def limit(part: float) -> None:
            trusted.limit(trusted.start(changed(asked, time=part * asked.time)))

        def program(part: float) -> None:
            short = replace(one.programs, durations=part * one.programs.durations)
            trusted.run(short, trusted.start(asked))

        finer = 1 + 2 ** (asked.grid.axes + 1)
        try:
            cost = (4 + finer) * cpu_seconds(limit) if trusted.has_limit else 0.0
            if cost < SECONDS and not trusted.reason(one.programs):
                cost += (0.5 * (steps + 1) + finer) * cpu_seconds(program)
        except NonFiniteStateError:  # the budget says so
            return 1
        return int(min(MOST, SECONDS / max(cost, 1e-9)))

    @cached_property
    def case(self) -> Case:
        """The queries whose causes are sought: the median one if there is time for one alone, or for none."""
        whole, count = self.subject.main.case, self.affordable
        return whole.take(whole.few(count) if count > 1 else np.array([self.subject.main.ranked()["median"]]))

    @cached_property
    def trusted(self) -> Trusted:
        whole = self.subject.main.case
        return Trusted.of(whole.model, whole.query.grid, whole.source.problem)

    @cached_property
    def budget(self) -> Budget:
        return budget(self.case, self.trusted)

    @cached_property
    def verdict(self) -> Verdict:
        return verdict(self.budget)

    @cached_property
    def commutators(self) -> list[Commutator]:
        unknown = self.budget.reason if self.affordable else self.trusted.reason(self.case.programs)
        return commutators(self.case, self.trusted, not unknown)

    def budget_section(self) -> Section:
        lead = "The error divided into its causes, and what to do about the largest."
        title = "Where the error comes from"
        if not self.subject.judged:
            return Section("budget", title, lead, missing=self.subject.untested)
        if not self.affordable:
            return Section("budget", title, lead, missing=TOO_LONG)
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
