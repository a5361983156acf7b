"""An opponent from outside the dictionary: a solver of the problem that advances the whole equation at once."""

from __future__ import annotations

from dataclasses import replace

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError
from hycop.evaluation import EQUAL_WORK, Composed, errors_of
from hycop.pde import Equation
from hycop.primitive import boundaries_of, fingerprint
from hycop.problems import unsplit_solvers
from hycop.schemes import splitting
from hycop.training.gate import MARGIN, Gate

FINER = 2
"""An unsplit solver saves work, which finer grids may take: at most so many levels of refinement more."""


def with_unsplit(found: Gate, equation: Equation, held_out: Dataset, refinement: int, error: str) -> Gate:
    """The gate, with the best unsplit solver that has a smaller error on the held-out queries at no more work."""
    best, most = found, EQUAL_WORK * found.work
    for label, (name, one) in unsplit_solvers(equation).items():
        for level, mean, work in _levels(Dictionary({name: one}), held_out, refinement, error, most):
            least = found.error * (1 - MARGIN) if best.whole_error is None else best.whole_error
            if mean < least and work <= most:
                best = replace(best, whole=label, whole_refinement=level, whole_error=mean, whole_work=work)
    return best


def taking_over(found: Gate, dictionary: Dictionary, equation: Equation) -> tuple[Gate, Dictionary, int] | None:
    """What answers instead of a composition that loses: the gate, the dictionary with the unsplit solver beside it, and
    the refinement of its grid. None if there is no such solver, the dictionary has it, or a part of it was trained: a
    network is there to be used."""
    if found.whole is None or found.whole_refinement is None:
        return None
    name, one = unsplit_solvers(equation)[found.whole]
    parts = dictionary.values()
    if any(each.order is None or hasattr(each, "outside") or fingerprint(each) == fingerprint(one) for each in parts):
        return None
    instead = f"{name}'" if name in dictionary else name
    return replace(found, instead=instead), dictionary.with_beside(instead, one), found.whole_refinement


def _levels(
    parts: Dictionary, held_out: Dataset, refinement: int, error: str, most: float
) -> list[tuple[int, float, float]]:
    """Refinement, mean error and mean work of a solver, until work is expected to be more than ``most``."""
    query, found = held_out.query, list[tuple[int, float, float]]()
    (one,) = parts.values()
    if not query.grid.boundary_kinds <= boundaries_of(one):
        return found
    for level in range(refinement, refinement + FINER + 1):
        if found and found[-1][2] * (level / (level - 1)) ** (query.grid.axes + 1) > most:
            break
        try:
            states, work = Composed(splitting("Lie"), parts, level).solve(query)
        except HyCOPError:  # it cannot solve these queries
            break
        found.append((level, float(errors_of(error, states, held_out.truth, query).mean()), float(work.mean())))
    return found
