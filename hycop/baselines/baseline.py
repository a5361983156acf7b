"""What a monolithic baseline is, as data: its network, its protocol of training, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hycop.errors import HyCOPError

Protocol = Literal["fixed", "step", "any"]
"""How a baseline answers: at one trained time; by steps of one size, rolled out; or after any duration."""


class BaselineError(HyCOPError, ValueError):
    """A baseline is asked for what it was not trained for."""


@dataclass(frozen=True)
class Baseline:
    """One network for the whole equation, from the initial state to the end state.

    ``label`` is its name in tables. ``family`` is its network and ``options`` are the sizes of that, where these are
    not the family's own. ``settings`` of training are over those of every preset. With a ``residual``, the weight of
    the equation's own error in the loss, training begins from the weights of the baseline ``begins_from``.
    ``source`` is the publication. ``remark`` is said wherever it is listed.
    """

    name: str
    label: str
    family: str
    protocol: Protocol
    source: str
    options: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    residual: float = 0.0
    begins_from: str | None = None
    remark: str = ""
