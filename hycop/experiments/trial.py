"""One evaluation: a trained model, its opponents, classical schemes and a hand-written program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.evaluation import (
    SPLITTING,
    ByHand,
    Composed,
    Contender,
    DictionaryLimit,
    Opponents,
    Row,
    Solver,
    check_metrics,
    composed,
    evaluate_blocks,
    merged,
)
from hycop.executors import Executor, LocalExecutor
from hycop.grid import Array
from hycop.policy import exact_covers
from hycop.primitive import fingerprint
from hycop.problems import Problem, unsplit_solvers
from hycop.program import Program
from hycop.schemes import Classical, classical, portfolio
from hycop.surrogate import HyCOP

ALL = "all"
"""Scheme name that stands for every classical scheme."""


@dataclass(frozen=True)
class Trial:
    """What is evaluated, with which dictionary, refinement and metrics.

    ``compare`` adds the classical schemes that take no more work than the model composes with. They have the dictionary
    and the refinement of the model's compositions, also if a solver of the whole equation answers instead. ``other``
    says that the dictionary is not the model's own.
    """

    problem: Problem
    model: HyCOP | None
    dictionary: Dictionary
    refinement: int
    metrics: tuple[str, ...]
    program: Program | None
    schemes: tuple[Classical, ...]
    every_scheme: bool
    compare: bool
    other: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        model: HyCOP | None = None,
        *,
        dictionary: str | None = None,
        refinement: int | None = None,
        metrics: Sequence[str] | None = None,
        schemes: Sequence[str] = (),
        program: Program | None = None,
        compare: bool = False,
    ) -> Trial:
        """A trial by names; unknown names and what the dictionary cannot run are refused."""
        parts = problem.named_dictionary(dictionary) if model is None or dictionary else model.dictionary
        if model is not None and refinement is not None:
            model = _refined(model, refinement)
        rules = tuple(classical(name) for name in dict.fromkeys(schemes) if name != ALL)
        for rule in rules:
            rule.check(parts)
        if program is not None:
            parts.names_in(step.primitive for step in program)
        own = problem.refinement if model is None else model.model.composition().refinement
        judged_by = check_metrics(metrics or ("rel_l2", SPLITTING), DictionaryLimit(parts))
        chosen = ALL in schemes, compare, dictionary is not None
        return cls(problem, model, parts, refinement or own, judged_by, program, rules, *chosen)

    @property
    def boundary(self) -> tuple[str, ...]:
        """The boundary of drawn queries: a model answers in its own box."""
        return self.problem.boundary if self.model is None else self.model.model.box.boundary

    @property
    def label(self) -> str:
        return self.problem.name_of(self.dictionary)

    def contenders(self, data: Dataset) -> list[Contender]:
        """All contenders that were asked for, or else every classical scheme. No name occurs twice."""
        found = [] if self.program is None else self._composed([ByHand(self.program)])
        found += self._composed(self.schemes)
        if self.model is not None:
            static = self.model.model.static()
            found.append(Contender("HyCOP", self._solver(self.model), self._answering(self.model)))
            if static is not None:
                found.append(Contender("static", self._solver(HyCOP.of(static)), self.label))
            found += self._composed(self._rivals(self.model, data)) if self.compare else []
        if self.every_scheme:
            found += self._composed(portfolio(self.dictionary, data.setting))
        found = found or self._composed(portfolio(self.dictionary, data.setting, (1,)))
        return list({contender.method: contender for contender in found}.values())

    def rows(
        self,
        datasets: Iterable[Iterable[Dataset]],
        executor: Executor | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Row]:
        """The rows of all contenders on the datasets of one split, each given block by block, and the limit of the
        dictionary. Contenders that depend on data are chosen by the first block."""
        cover = None if self.model is None else self.model.model.gate.cover
        workforce = executor or LocalExecutor()
        tables: list[list[Row]] = []
        contenders: list[Contender] = []
        for blocks in datasets:
            parts = iter(blocks)
            first = next(parts)
            contenders = contenders or self.contenders(first)
            tables.append(
                evaluate_blocks(
                    contenders,
                    chain([first], parts),
                    workforce,
                    together=getattr(workforce, "workers", 1),
                    limit_of=DictionaryLimit(self.dictionary, self.label, self.refinement, cover),
                    metrics=self.metrics,
                    reported_variables=self.problem.reported_variables,
                    progress=progress,
                )
            )
        return merged(tables)

    def check_durations(self, times: Array) -> None:
        """Refuses a hand-written program in which some process does not run for the query time T."""
        if self.program is None:
            return
        given = {
            process: sum(step.duration for step in self.program if process in self.dictionary[step.primitive].advances)
            for process in self.problem.processes
        }
        other = [f"{process} {total:g}" for process, total in given.items() if not np.allclose(times, total, atol=0.0)]
        if other:
            asked = f"{np.min(times):g}" if np.ptp(times) == 0 else f"{np.min(times):g}..{np.max(times):g}"
            raise InvalidInputError(
                f"the program takes {', '.join(other)} in all, but T is {asked}: every process needs T in all"
            )

    def _answering(self, model: HyCOP) -> str:
        """The name of the dictionary that answers: that of the solver beside the model's own, if there is one."""
        beside = (
            {} if self.other else {fingerprint(one): type(one).__name__ for one in model.dictionary.beside.values()}
        )
        known = unsplit_solvers(model.model.equation).items()
        found = [label for label, (_, one) in known if fingerprint(one) in beside]
        return next(iter([*found, *beside.values(), self.label]))

    def _composed(self, writers: Sequence[Classical | ByHand]) -> list[Contender]:
        return composed(writers, self.dictionary, label=self.label, refinement=self.refinement)

    def _solver(self, model: HyCOP) -> Solver:
        """The model as it is, or with another dictionary."""
        return Composed(model, self.dictionary, self.refinement) if self.other else model

    def _rivals(self, model: HyCOP, data: Dataset) -> list[Classical]:
        """The classical schemes whose mean work is at most 1.02 times that of the model's compositions."""
        inner = model.model
        opponents = Opponents(
            self.dictionary,
            data.query,
            data.truth,
            self.refinement,
            substeps=inner.record.config.substeps,
            covers=exact_covers(self.dictionary, inner.equation.processes),
        )
        composing = HyCOP.of(replace(model.model.composition(), economical=False))
        return opponents.affordable(data.query, self._solver(composing).solve(data.query).work)


def _refined(model: HyCOP, refinement: int) -> HyCOP:
    """The model on a grid so many times finer than that of queries, and its compositions too."""
    inner = model.model
    config = inner.record.config.model_copy(update={"refinement": refinement})
    return HyCOP.of(replace(inner, refinement=refinement, record=replace(inner.record, config=config)))
