"""Policies: small functions of a query's features that write its program.

Durations are budgeted per process. A step r of primitive p lasts

    T · gain_p(x) · mass_p · share[p, r](x),

where the shares of a primitive sum to one and the masses of the primitives that advance a process of the equation sum
to one: a softmax over *exact covers*, the sets of primitives that advance every process exactly once. A primitive for a
process that the equation does not have is redundant; its mass is free between 0 and 1 and starts at one half.
"""

from __future__ import annotations

from typing import Protocol

from hycop.grid import Array
from hycop.policy.allotment import Allotment, Budget, Inputs, exact_covers, redundant_primitives, softmax
from hycop.policy.position import PositionPolicy
from hycop.policy.slot import LONGEST, MOST_PARAMETERS, Pattern, SlotPolicy, affordable_tilts
from hycop.policy.theta import Layout
from hycop.program import ProgramBatch

__all__ = [
    "LONGEST",
    "MOST_PARAMETERS",
    "Allotment",
    "Budget",
    "Inputs",
    "Layout",
    "Pattern",
    "Policy",
    "PositionPolicy",
    "SlotPolicy",
    "affordable_tilts",
    "exact_covers",
    "redundant_primitives",
    "softmax",
]


class Policy(Protocol):
    """Writes programs. ``theta`` is one flat vector of ``size`` numbers; zero is a sensible start."""

    @property
    def size(self) -> int: ...

    @property
    def allotment(self) -> Allotment: ...

    @property
    def features(self) -> int:
        """How many features of a query it sees."""
        ...

    def layout(self) -> Layout:
        """The names of the parameters and their slices of theta."""
        ...

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        """The programs of every member (members, size) for every query: members × batch programs, member by member."""
        ...

    def adding(self, theta: Array, name: str, allotment: Allotment) -> tuple[Policy, Array]:
        """The policy for a dictionary with one more primitive, and its theta. ``allotment`` is that of the new
        dictionary. All that was learned stays; the new primitive starts as in a classical scheme."""
        ...

    def without(self, theta: Array, name: str, allotment: Allotment | None = None) -> tuple[Policy, Array]:
        """The policy whose programs do not use a primitive, and its theta. Give the ``allotment`` of the new dictionary
        if that does not have the primitive either."""
        ...
