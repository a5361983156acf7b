"""Table ``coverage``: facts about every registered problem. Nothing is trained.

One row a fact: ``metric`` names it, ``value`` counts it (or is 1 for yes and 0 for no), ``variant`` spells it out where
it is more than a number. ``policy parameters`` is the size of the largest theta of one pattern that the default
settings allow; a policy that chooses between patterns has at most 100.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evaluation import Row, Variant
from hycop.experiments.bench import Bench
from hycop.experiments.table import Table
from hycop.policy import Allotment, SlotPolicy, affordable_tilts
from hycop.primitive import boundaries_of
from hycop.problems import PROBLEMS, Problem
from hycop.query import Query, Setting
from hycop.training import configured
from hycop.training.portfolio import patterns

TRAITS = ("nonlinear", "multi-physics", "multiscale", "chaotic", "long-time")

PAPER: Mapping[str, Sequence[bool]] = {
    "ad1d": (False, True, True, False, True),
    "burgers1d": (True, False, True, False, True),
    "swe1d": (True, True, True, False, True),
    "adr2d": (True, True, True, False, True),
    "swe2d": (True, True, True, False, True),
    "ns2d": (True, True, True, False, True),
    "dambreak2d": (True, True, True, False, True),
    "ks1d": (True, False, True, True, True),
}
"""The source paper's ticks, in the order of the traits."""

PARAMETERS: Mapping[str, int] = {**dict.fromkeys(PAPER, 50), "adr2d": 73}
"""Approximate sizes of the policy in the source paper."""

LINEAR = frozenset({"advection2d", "diffusion2d", "advection1d", "diffusion1d", "ad1d", "ad2d"})
CHAOTIC = frozenset({"ks1d"})
ONE_PHYSICS = frozenset({"burgers1d", "ks1d"})
"""Problems that are split by their terms, although those are of one physics: momentum, or one phase equation."""

ONE_SCALE = frozenset({"diffusion1d", "diffusion2d", "reaction2d"})
"""Problems without transport: nothing gets sharp."""


def traits(problem: Problem) -> Sequence[bool]:
    """Whether the problem is nonlinear, of several physics, of many scales, chaotic, and asked over a range of times to
    several times its usual one."""
    return (
        problem.name not in LINEAR,
        len(problem.processes) > 1 and problem.name not in ONE_PHYSICS,
        problem.name not in ONE_SCALE,
        problem.name in CHAOTIC,
        "trajectory" in problem.splits,
    )


def policy_size(problem: Problem, dictionary: Dictionary | None = None) -> int:
    """The size of the largest theta of one pattern with the ``quick`` settings of the problem, and its dictionary or
    another."""
    config = configured("quick", problem.suited("quick"))
    dictionary = problem.named_dictionary(config.dictionary) if dictionary is None else dictionary
    split = next(iter(problem.splits.values()))
    params = {name: np.array([intervals[0][0]]) for name, intervals in split.params.items()}
    setting = Setting(problem.grid(), problem.channels, params)
    state = np.ones((1, len(problem.channels), *problem.shape))
    allotment = Allotment.of(dictionary, problem.processes, config.budget)
    found = patterns(dictionary, problem.processes, Query(state, setting, np.ones(1)), config.max_steps)
    features = len(problem.equation.features or ())
    tilts = affordable_tilts(config.tilts, allotment, features, config.max_steps)
    return max(SlotPolicy((pattern,), allotment, features, tilts).size for pattern in found)


def boundaries(problem: Problem) -> list[str]:
    """Boundaries that all primitives of the default dictionary can handle."""
    return sorted(frozenset.intersection(*map(boundaries_of, problem.dictionary.values())))


def _facts(problem: Problem) -> Iterator[Row]:
    reference = problem.subflow(problem.processes)
    first = next(iter(problem.dictionaries))

    def fact(metric: str, value: float, text: str = "", dictionary: str = first, paper: float | None = None) -> Row:
        return Row(
            problem=problem.name,
            split="",
            method="",
            dictionary=dictionary,
            variant=Variant.of({text: ""} if text else {}),
            time="",
            grid="x".join(map(str, problem.shape)),
            boundary=problem.grid().boundary_name,
            metric=metric,
            value=value,
            std=0.0,
            seeds=1,
            samples=0,
            work=0.0,
            seconds_per_sample=0.0,
            truth=str(reference),
            limit=0.0,
            paper=paper,
        )

    yield fact("processes", len(problem.processes), ", ".join(problem.processes))
    for name, dictionary in problem.dictionaries.items():
        text = ", ".join(f"{process}: {type(primitive).__name__}" for process, primitive in dictionary.items())
        yield fact("primitives", len(dictionary), text, name)
    ticks = PAPER.get(problem.name, (None,) * len(TRAITS))
    for trait, have, tick in zip(TRAITS, traits(problem), ticks, strict=True):
        yield fact(trait, float(have), paper=None if tick is None else float(tick))
    yield fact("policy parameters", policy_size(problem), paper=PARAMETERS.get(problem.name))
    yield fact("features", len(problem.equation.features or ()), ", ".join(problem.equation.features or ()))
    yield fact("cells", float(np.prod(problem.shape)), "x".join(map(str, problem.shape)))
    yield fact("boundaries", len(boundaries(problem)), ", ".join(boundaries(problem)))
    yield fact("splits", len(problem.splits), ", ".join(problem.splits))
    yield fact("reference", reference.refinement, f"{reference}, as many times finer")


def _all_facts(bench: Bench, seed: int) -> list[Row]:
    return [row for problem in PROBLEMS.values() for row in _facts(problem)]


TABLE = Table(
    "coverage",
    "what every problem is: processes, primitives, traits, sizes",
    {"facts": _all_facts},
    preset="quick",
    seeds=1,
)
