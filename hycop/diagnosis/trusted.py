"""Trusted flows for the parts of a model: what its programs would do with perfect primitives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, IncompatibleError
from hycop.evaluation import limit
from hycop.execution import refined_query, run
from hycop.grid import Array, Grid
from hycop.model import Model
from hycop.pde import Equation
from hycop.policy import exact_covers
from hycop.primitive import Primitive
from hycop.problems import PROBLEMS, Problem, problem_of
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.references import Reference
from hycop.references.reference import checked_finite

OWN_REFINEMENT = {1: 4, 2: 2, 3: 2}
"""How many times finer than the model's is the grid on which its own primitives are trusted, by the axes."""

MOST_SUBSTEPS = 16
"""Substeps of the scheme that finds the limit of parts without an unsplit reference."""


@dataclass(frozen=True, eq=False)
class Trusted:
    """Trusted flows on a grid ``refinement`` times finer than that of the queries.

    ``references`` are independent solvers of the parts, by the name of the primitive that they stand for, and ``whole``
    of all processes of the equation together. ``own`` are numerical primitives of the model that no reference stands
    for: on the finer grid they are better than themselves. ``lacking`` says why a part has neither.
    """

    model: Model
    references: Mapping[str, Reference]
    own: Mapping[str, Primitive]
    whole: Reference | None
    refinement: int
    lacking: Mapping[str, str]

    @classmethod
    def of(cls, model: Model, grid: Grid, data_problem: str) -> Trusted:
        problem = _judge(model.equation, grid, data_problem)
        references: dict[str, Reference] = {}
        own: dict[str, Primitive] = {}
        lacking: dict[str, str] = {}
        for name in model.names:
            primitive = model.dictionary[name]
            found = None if problem is None else _reference(problem, primitive.advances, grid)
            if found is not None and not found.distrust:
                references[name] = found
            elif found is not None:
                lacking[name] = found.distrust
            elif primitive.order is not None:
                own[name] = primitive
            else:
                lacking[name] = (
                    f"'{name}' has no order, and no reference solves {', '.join(sorted(primitive.advances))}"
                )
        whole = None if problem is None else _reference(problem, frozenset(model.equation.processes), grid)
        if whole is not None and whole.distrust:
            whole = None
        known = [each.refinement for each in (*references.values(), *([] if whole is None else [whole]))]
        wanted = max(known) if known else OWN_REFINEMENT[grid.axes] * model.refinement
        # a multiple of the model's grid, so that its states can be handed over
        return cls(model, references, own, whole, -(-wanted // model.refinement) * model.refinement, lacking)

    @cached_property
    def dictionary(self) -> Dictionary:
        """The trusted parts as primitives on the fine grid."""
        parts: dict[str, Primitive] = {name: each.on_fine_grid() for name, each in self.references.items()}
        return Dictionary({**parts, **self.own})

    def reason(self, programs: ProgramBatch) -> str:
        """Why programs cannot run with trusted parts; empty if they can."""
        used = [programs.names[op] for op in np.unique(programs.ops) if op >= 0]
        return "; ".join(dict.fromkeys(self.lacking[name] for name in used if name in self.lacking))

    @cached_property
    def cover(self) -> tuple[str, ...] | None:
        """Trusted parts that advance every process once; None if there are none."""
        try:
            return exact_covers(self.dictionary, self.model.equation.processes)[0]
        except HyCOPError:
            return None

    @property
    def has_limit(self) -> bool:
        return self.whole is not None or self.cover is not None

    def finer(self) -> Trusted:
        """The same with twice the cells along each axis, and half the time step of the references."""
        return replace(
            self,
            references={name: each.finer() for name, each in self.references.items()},
            whole=None if self.whole is None else self.whole.finer(),
            refinement=2 * self.refinement,
        )

    def start(self, query: Query) -> Query:
        """The queries on the fine grid, by way of the grid on which the model runs."""
        return self.handed_over(_refined(query, self.model.refinement))

    def handed_over(self, query: Query) -> Query:
        """Queries on the grid on which the model runs, taken to the fine grid."""
        return _refined(query, self.refinement // self.model.refinement)

    def run(self, programs: ProgramBatch, fine: Query) -> Array:
        """Ψ: states on the fine grid at the end of programs of trusted parts."""
        names = [name for name in programs.names if name in self.dictionary]
        index = np.array([names.index(name) if name in names else -1 for name in programs.names] + [-1])
        return run(ProgramBatch(tuple(names), index[programs.ops], programs.durations), self.dictionary, fine)

    def limit(self, fine: Query) -> Array:
        """Ψ∞: states on the fine grid to which the programs converge when they are refined and every process runs for
        the whole time."""
        if self.whole is not None:
            solver = Dictionary({"whole": self.whole.on_fine_grid()})
            return run(ProgramBatch(("whole",), np.zeros((fine.batch, 1), dtype=int), fine.time[:, None]), solver, fine)
        return checked_finite(limit(self.dictionary, fine, most=MOST_SUBSTEPS, cover=self.cover).states)


def _refined(query: Query, factor: int) -> Query:
    return query if factor == 1 else refined_query(query, factor)


def _judge(equation: Equation, grid: Grid, data_problem: str) -> Problem | None:
    """The problem whose references know the model's equation or a part of it, or of which it is a part. The process of
    another equation may have the same name, so channels and coefficients must agree too."""
    for problem in (problem_of(equation), PROBLEMS.get(equation.name), PROBLEMS.get(data_problem)):
        if problem is None or problem.channels != equation.channels or len(problem.shape) != grid.axes:
            continue
        ours, theirs = equation.coefficients, problem.equation.coefficients
        nested = _nested(set(equation.processes), set(problem.processes)) and _nested(set(ours), set(theirs))
        if nested and all(ours[name].kind == theirs[name].kind for name in set(ours) & set(theirs)):
            return problem
    return None


def _nested(one: set[str], other: set[str]) -> bool:
    return one <= other or other <= one


def _reference(problem: Problem, processes: frozenset[str], grid: Grid) -> Reference | None:
    if not processes <= set(problem.processes):
        return None
    try:
        return problem.subflows(grid, Dictionary({"part": problem.subflow(processes)})).references["part"]
    except IncompatibleError:  # a boundary that the reference cannot handle
        return None
