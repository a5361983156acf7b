"""What one evaluation judges: a trained model, its opponents, classical schemes and a program written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.cli.common import (
    program_of,
)
from hycop.cli.terminal import tell
from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import SPLITTING, ByHand, Method, Named, Row, answered, evaluate
from hycop.metrics import metric as find_metric
from hycop.policy import exact_covers
from hycop.problems import Problem
from hycop.program import ProgramBatch
from hycop.progress import counting
from hycop.splitting import portfolio, splitting
from hycop.surrogate import HyCOP
from hycop.training.gate import EQUAL_WORK

ALL = "all"
"""Every classical scheme, as the name of one."""


@dataclass(frozen=True)
class Trial:
    """Methods that answer with one dictionary on one refinement of the grid, and the metrics of their answers."""

    problem: Problem
    model: HyCOP | None
    parts: Dictionary
    refinement: int
    metrics: Sequence[str]
    by_hand: ByHand | None
    schemes: Sequence[Method]
    every_scheme: bool
    compare: bool

    @classmethod
    def of(
        cls,
        problem: Problem,
        model: HyCOP | None,
        dictionary: str | None,
        refinement: int | None,
        metrics: Sequence[str] | None,
        schemes: Sequence[str] | None,
        program: str | None,
        compare: bool,
    ) -> Trial:
        """A trial as it was asked for; names that nobody knows and what the dictionary cannot run are refused."""
        parts = problem.named_dictionary(dictionary) if model is None or dictionary else model.dictionary
        if model is not None and refinement is not None:
            model = HyCOP.of(replace(model.model, refinement=refinement))
        for name in metrics or ():
            if name != SPLITTING:
                find_metric(name)
        rules = [splitting(name) for name in dict.fromkeys(schemes or ()) if name != ALL]
        for rule in rules:
            rule.check(parts)
        by_hand = None if program is None else ByHand(program_of(program))
        if by_hand is not None:
            ProgramBatch.of([by_hand.program], parts.names)
        return cls(
            problem,
            model,
            parts,
            refinement or (problem.refinement if model is None else model.model.refinement),
            tuple(dict.fromkeys(metrics or ("rel_l2", SPLITTING))),
            by_hand,
            rules,
            ALL in (schemes or ()),
            compare,
        )

    def rows(self, datasets: Sequence[Dataset]) -> list[Row]:
        """The rows of all methods on the datasets of one split."""
        methods = self._methods(datasets[0])
        with counting(len(methods) * len(datasets), f"methods on {datasets[0].split}") as advance:
            rows = evaluate(
                methods,
                self.parts,
                datasets,
                metrics=self.metrics,
                label=self.problem.name_of(self.parts),
                refinement=self.refinement,
                border=self.problem.border,
                cover=None if self.model is None else self.model.model.gate.cover,
                progress=advance,
            )
        if self.by_hand is not None:
            self._say_durations(self.by_hand, datasets[0])
        return rows

    def _methods(self, data: Dataset) -> list[Method]:
        """All that was asked for; if that is nothing, each classical scheme once."""
        methods = [*([] if self.by_hand is None else [self.by_hand]), *self.schemes]
        if self.model is not None:
            static = self.model.model.static()
            methods += [self.model, *([] if static is None else [Named("static", HyCOP.of(static))])]
            methods += self._rivals(self.model, data) if self.compare else []
        if self.every_scheme:
            methods += portfolio(self.parts, data.setting)
        methods = methods or list(portfolio(self.parts, data.setting, copies=(1,)))
        return list({str(method): method for method in methods}.values())  # one that was named twice is judged once

    def _rivals(self, model: HyCOP, data: Dataset) -> list[Method]:
        """The classical schemes whose mean work is at most 1.02 times the model's."""
        most = EQUAL_WORK * float(model.measure(data.query, self.parts).work.mean())
        few = data.query.take(slice(0, 8))
        return [
            scheme
            for scheme in portfolio(self.parts, data.setting, covers=exact_covers(self.parts, model.model.processes))
            if float(answered(scheme, few, self.parts, self.refinement).work.mean()) <= most
        ]

    def _say_durations(self, by_hand: ByHand, data: Dataset) -> None:
        """A program by hand lasts as long as it says, whatever is asked: said where some process does not get T."""
        times = data.query.time
        given = {
            process: sum(step.duration for step in by_hand.program if process in self.parts[step.primitive].advances)
            for process in self.problem.processes
        }
        other = [f"{process} {total:g}" for process, total in given.items() if not np.allclose(times, total, atol=0.0)]
        if other:
            asked = f"{times.min():g}" if np.ptp(times) == 0 else f"{times.min():g}..{times.max():g}"
            tell(f"--program takes {', '.join(other)} in all, but T is {asked}: every process needs T in all")
