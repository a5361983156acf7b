"""What happens at the ends of an axis: a name, or a value or slope that is held at each side.

A boundary is kept as a text, one per axis, which files, model folders and the command line share: ``periodic``,
``wall``, ``outflow``, ``dirichlet:1`` (the value 1 at both ends), ``neumann:0.5`` (the derivative ½ along the outward
normal), ``dirichlet:1/outflow`` (low end / high end) or ``dirichlet:1:0`` (a value for each channel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hycop.errors import InvalidInputError, UnknownNameError

PLAIN: frozenset[str] = frozenset({"periodic", "wall", "outflow"})
"""Boundaries without a value, the same at both ends of an axis."""

VALUED: frozenset[str] = frozenset({"dirichlet", "neumann"})
MIXED = "mixed"
"""What a primitive declares beside the names at the two ends if these may differ."""

EVERY: frozenset[str] = PLAIN | VALUED | {MIXED}


@dataclass(frozen=True)
class _Held:
    value: float | tuple[float, ...] = 0.0

    def __str__(self) -> str:
        values = self.value if isinstance(self.value, tuple | list) else (self.value,)
        return str(Side(type(self).__name__.lower(), tuple(map(_number, values))))


@dataclass(frozen=True)
class Dirichlet(_Held):
    """The state has this value at the end of the axis: one for all channels, or a tuple with one for each.

    >>> str(Dirichlet(1.0)), str(Dirichlet((1.0, 0.25)))
    ('dirichlet:1', 'dirichlet:1:0.25')
    """


@dataclass(frozen=True)
class Neumann(_Held):
    """The state has this derivative along the outward normal at the end of the axis, one for all channels or a tuple.

    >>> str(Neumann(-2.0))
    'neumann:-2'
    """


End: TypeAlias = str | Dirichlet | Neumann
"""One end of an axis, or both."""

Boundaries: TypeAlias = End | Sequence[End | Sequence[End]]
"""What a user may give: one boundary for all axes, or one per axis; each is an end for both, or a pair (low, high)."""


class Side(NamedTuple):
    """One end of an axis: its kind, and the values it holds, none, one for all channels, or one for each."""

    kind: str
    values: tuple[float, ...] = ()

    def __str__(self) -> str:
        return ":".join([self.kind, *(repr(value).removesuffix(".0") for value in self.values)])

    def value(self, channel: int) -> float:
        return 0.0 if not self.values else self.values[channel if len(self.values) > 1 else 0]


def checked_boundary(boundary: object, axes: int) -> tuple[str, ...]:
    """One boundary text per axis, from one boundary for all axes or one each.

    >>> checked_boundary([(Dirichlet(1.0), "outflow"), "periodic"], 2)
    ('dirichlet:1/outflow', 'periodic')
    """
    if not isinstance(boundary, str | Sequence | Dirichlet | Neumann):
        raise InvalidInputError(f"grid boundary {boundary!r:.60}: give a name, as 'periodic', or one per axis")
    one = isinstance(boundary, str | Dirichlet | Neumann)
    names = tuple(_text(each) for each in ((boundary,) * axes if one else boundary))  # type: ignore[union-attr]
    if len(names) != axes:
        pair = "; a pair (low, high) stands inside a list, as [('wall', 'outflow')]" if axes == 1 else ""
        raise InvalidInputError(
            f"grid boundary: {len(names)} names for {axes} axes; give one name, or one per axis{pair}"
        )
    return names


def sides_of(boundary: str) -> tuple[Side, Side]:
    """The low and the high end of an axis with a boundary of ``checked_boundary``."""
    return _sides(boundary)


def kinds_of(boundary: str) -> frozenset[str]:
    """What a primitive must know to handle the boundary of an axis."""
    low, high = _sides(boundary)
    return frozenset({low.kind}) if low.kind == high.kind else frozenset({low.kind, high.kind, MIXED})


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not isfinite(number):
        raise InvalidInputError(f"boundary value {value!r:.40}: a finite number is needed, as dirichlet:1")
    return number + 0.0  # no negative zero, which would be another text


def _text(given: object) -> str:
    """The one text of the boundary of an axis."""
    if isinstance(given, str) and given in PLAIN:
        return given
    if isinstance(given, Sequence) and not isinstance(given, str):
        if len(given) != 2 or not all(isinstance(each, str | Dirichlet | Neumann) for each in given):
            raise InvalidInputError(f"boundary {given!r:.60} of an axis: a name or a pair (low, high) is needed")
        return _text("/".join(map(str, given)))
    low, high = _sides(str(given))
    return str(low) if low == high else f"{low}/{high}"


@lru_cache(maxsize=256)
def _sides(text: str) -> tuple[Side, Side]:
    ends = [_side(part.strip()) for part in text.split("/")]
    if len(ends) > 2:
        raise InvalidInputError(f"boundary '{text:.60}' has {len(ends)} ends: an axis has two, low/high")
    low, high = ends[0], ends[-1]
    if "periodic" in (low.kind, high.kind) and low != high:
        raise InvalidInputError(f"boundary '{text:.60}': an axis is periodic at both ends or at none")
    return low, high


def _side(text: str) -> Side:
    kind, *values = text.split(":")
    if kind not in PLAIN | VALUED:
        raise UnknownNameError("boundary", text, PLAIN | VALUED)
    if kind in PLAIN and values:
        raise InvalidInputError(f"boundary '{text:.60}': {kind} holds no value; dirichlet and neumann do")
    return Side(kind, tuple(map(_number, values)) or ((0.0,) if kind in VALUED else ()))
