"""The problems, one file per family of equations, found by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.pde import Equation, same_equation
from hycop.primitive import Primitive, fingerprint
from hycop.problems import adr, burgers, compressible, dam_break, kuramoto_sivashinsky, shallow_water
from hycop.problems.definition import Problem, Split
from hycop.problems.own import own_problem

__all__ = [
    "PROBLEMS",
    "Problem",
    "Split",
    "find_problem",
    "own_problem",
    "problem",
    "problem_of",
    "problems_with",
    "register",
    "unsplit_solvers",
]

FAMILIES = (adr, burgers, shallow_water, dam_break, kuramoto_sivashinsky, compressible)

_shipped = {entry.name: entry for family in FAMILIES for entry in family.PROBLEMS}
_known = dict(_shipped)

PROBLEMS: Mapping[str, Problem] = _known
"""The problems by name: those that come with HyCOP, and those of one's own that were registered."""


def register(own: Problem) -> Problem:
    """Makes a problem of one's own known by its name, as those that come with HyCOP are; returns it.

    ``file.py:name`` on the command line does this.
    """
    if own.name in _shipped:
        raise InvalidInputError(f"problem '{own.name}' comes with HyCOP; give yours another name")
    _known[own.name] = own
    return own


def find_problem(name: str) -> Problem:
    """A problem by its name.

    >>> find_problem("adr2d").equation.formula
    'u_t + c·∇u = Σ D_i ∂_ii u + r u (1 − u)'
    """
    if name not in PROBLEMS:
        if str(name).endswith(".py"):
            raise InvalidInputError(f"{name} is a file: name the problem in it too, as {name}:problem")
        raise UnknownNameError("problem", name, PROBLEMS, "(your own: file.py:name, or --with file.py for a run)")
    return PROBLEMS[name]


problem = find_problem
"""Its name in the package ``hycop``, where nothing else is called so."""


def problem_of(equation: Equation) -> Problem | None:
    """The problem that an equation belongs to, or another one that asks about the same; None for one's own."""
    found = [PROBLEMS[name] for name in problems_with(equation)]
    return next((each for each in found if each.equation.name == equation.name), found[0] if found else None)


def problems_with(equation: Equation) -> tuple[str, ...]:
    """Names of the problems with an equation: a model of one can answer the queries of the others.

    >>> problems_with(find_problem("swe2d").equation)
    ('swe2d', 'dambreak2d')
    """
    return tuple(name for name, each in PROBLEMS.items() if same_equation(each.equation, equation))


def unsplit_solvers(equation: Equation) -> Mapping[str, tuple[str, Primitive]]:
    """Primitives that advance all processes of an equation at once and may be used on any grid, with their names, each
    by the dictionary that has nothing else.

    >>> list(unsplit_solvers(find_problem("swe2d").equation))
    ['unsplit', 'unsplit-hancock']
    """
    return _unsplit_solvers(problems_with(equation), frozenset(equation.processes))


@cache
def _unsplit_solvers(problems: tuple[str, ...], processes: frozenset[str]) -> Mapping[str, tuple[str, Primitive]]:
    found: dict[str, tuple[str, str, Primitive]] = {}
    for problem in problems:
        for label, dictionary in PROBLEMS[problem].dictionaries.items():
            for name, one in dictionary.items():
                if len(dictionary) == 1 and one.advances == processes and one.order is not None:
                    found.setdefault(fingerprint(one), (label, name, one))
    return {label: (name, one) for label, name, one in found.values()}
