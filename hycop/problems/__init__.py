"""The problems, one file per family of equations, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from hycop.errors import UnknownNameError
from hycop.problems import adr, burgers, compressible, dam_break, kuramoto_sivashinsky, shallow_water
from hycop.problems.definition import Problem, Split

__all__ = ["PROBLEMS", "Problem", "Split", "find_problem", "kin_of", "problem", "same_equation"]

FAMILIES = (adr, burgers, shallow_water, dam_break, kuramoto_sivashinsky, compressible)

PROBLEMS: Mapping[str, Problem] = {entry.name: entry for family in FAMILIES for entry in family.PROBLEMS}


def problem(name: str) -> Problem:
    """A problem by its name.

    >>> problem("adr2d").equation
    'u_t + c·∇u = Σ D_i ∂_ii u + r u (1 − u)'
    """
    if name not in PROBLEMS:
        raise UnknownNameError("problem", name, PROBLEMS)
    return PROBLEMS[name]


def kin_of(name: str) -> frozenset[str]:
    """Problems with the same equation, asked elsewhere: a model of one can answer queries of the others.

    >>> sorted(kin_of("swe2d"))
    ['dambreak2d', 'swe2d']
    """
    known = PROBLEMS.get(name)
    return frozenset() if known is None else frozenset(key for key, one in PROBLEMS.items() if _alike(one, known))


def _alike(one: Problem, other: Problem) -> bool:
    return (one.processes, one.channels, set(one.parameters)) == (
        other.processes,
        other.channels,
        set(other.parameters),
    )


find_problem = problem
same_equation = kin_of
