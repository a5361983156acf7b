"""The limit of a dictionary: what its programs converge to when they are refined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evaluation.contender import Composed
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.query import Query
from hycop.schemes import splitting

LIMIT_SCHEME = "SABA4"


class Limit(NamedTuple):
    """States of a program refined until they stop changing; ``change`` is how far the last doubling moved them."""

    states: Array
    substeps: int
    change: float


def limit(
    dictionary: Dictionary,
    query: Query,
    truth: Array | None = None,
    *,
    most: int = 64,
    refinement: int = 1,
    cover: Sequence[str] | None = None,
) -> Limit:
    """What the dictionary converges to on the query's grid (or one ``refinement`` times finer).

    SABA4 is cut into 4, 8, 16, … substeps until the mean relative change of the states is below 1e-7, or below half a
    per cent of the error against the ``truth``, or until there are ``most`` substeps. ``cover`` names the primitives to
    use where the dictionary has more than the equation needs. A program can beat the limit where biases cancel.
    """
    scheme = splitting(LIMIT_SCHEME).within(cover)

    def states_of(substeps: int) -> Array:
        return Composed(scheme.with_substeps(substeps), dictionary, refinement).states(query)

    substeps, change, tolerance = 4, np.inf, 1e-7
    states = states_of(substeps)
    if truth is not None:
        tolerance = max(tolerance, 0.005 * float(rel_l2(states, truth, query.setting).mean()))
    while change > tolerance and substeps < most:
        substeps *= 2
        finer = states_of(substeps)
        change = float(rel_l2(states, finer, query.setting).mean())
        states = finer
    return Limit(states, substeps, change)


@dataclass(frozen=True)
class DictionaryLimit:
    """The dictionary whose limit a table shows, its name in rows, and how it runs."""

    dictionary: Dictionary
    label: str = ""
    refinement: int = 1
    cover: tuple[str, ...] | None = None

    def reached(self, query: Query, truth: Array) -> Limit:
        return limit(self.dictionary, query, truth, refinement=self.refinement, cover=self.cover)
