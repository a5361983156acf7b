"""Transfer without retraining: the same policy with other boundaries or other primitives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import NamedTuple

from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Grid
from hycop.metrics import rel_l2
from hycop.model import MOST_FINER, Model
from hycop.primitive import Primitive, boundaries_of
from hycop.primitives import find_primitive
from hycop.problems import PROBLEMS
from hycop.query import Query
from hycop.surrogate import HyCOP

ELSEWHERE = 2
"""How many times as often programs are repeated once their boundary is not the trained one any more."""


class Swapped(NamedTuple):
    """A model with other parts, and a line about each part that changed."""

    model: HyCOP
    changes: tuple[str, ...]


def swap(
    model: HyCOP,
    *,
    boundary: str | Sequence[str] | None = None,
    primitives: Mapping[str, str | Primitive] | None = None,
    auto: bool = False,
    finer: int | None = None,
    substeps: int | None = None,
) -> Swapped:
    """A new model with the policy, theta and features of the old one, and with other ``boundary`` or ``primitives``.

    A primitive is given as an object, as the name of one (``MusclAdvection``), or as a dictionary of the problem that
    has it (``muscl``). Where a primitive does not know the new boundary, those that do are named, or with ``auto`` the
    one of highest order among them takes its place.

    What commuted in one box may not in another: a program with a single step of advection is exact among periodic ends
    and poor between walls. ``finer`` repeats every program so many times as often; if it is not given, leaving the
    trained boundary doubles what it was and coming back halves it. ``unsettled`` tells whether that is enough.
    """
    finer = substeps if finer is None else finer
    _check_parts(model, primitives)
    before = model.model
    grid = Grid.box((1,) * len(before.boundary), before.lengths, before.boundary)
    after = grid if boundary is None else grid.with_boundary(boundary)
    changes = [] if after.boundary == grid.boundary else [f"boundary {grid.boundary_name} → {after.boundary_name}"]
    dictionary = before.dictionary
    for name, other in (primitives or {}).items():
        chosen = _found(name, other, dictionary[name], before.problem)
        if repr(chosen) == repr(dictionary[name]):
            continue
        changes.append(f"primitive {name}: {_shown(dictionary[name])} → {_shown(chosen)}")
        dictionary = dictionary.swapping(name, chosen)
    for name in dictionary:
        if not set(after.boundary) <= boundaries_of(dictionary[name]):
            able = _able(dictionary, name, before.problem, after)
            if not (auto and able):
                _refuse(dictionary, name, able, after)
            best = max(able.values(), key=lambda primitive: primitive.order)
            changes.append(
                f"primitive {name}: {_kind(dictionary[name])} → {_kind(best)}, which knows {after.boundary_name}"
            )
            dictionary = dictionary.swapping(name, best)
    finer = _fineness(before, after.boundary, finer)
    if finer != before.finer:
        changes.append(
            f"programs repeated as often as their length asks for, times {finer}; before times {before.finer}"
        )
    if not changes:
        raise InvalidInputError("nothing to swap: give another boundary, primitive or fineness than the model has")
    others = [name for name in dictionary if repr(dictionary[name]) != repr(before.dictionary[name])]
    new = replace(
        before,
        boundary=after.boundary,
        dictionary=dictionary,
        finer=finer,
        changes=(*before.changes, *changes),
        untrained=tuple(dict.fromkeys([*before.untrained, *others])),
        trained_boundary=before.trained_boundary or before.boundary,
    )
    return Swapped(HyCOP.of(new), tuple(changes))


def _check_parts(model: HyCOP, primitives: Mapping[str, str | Primitive] | None) -> None:
    if not isinstance(model, HyCOP):
        raise InvalidInputError(f"{model!r} is not a model: give one that fit has made, or HyCOP.load(folder)")
    if not isinstance(primitives, Mapping | None):
        raise InvalidInputError(f"primitives is {primitives!r}: others by name are needed, {{'advection': 'muscl'}}")


def unsettled(model: HyCOP, query: Query) -> float:
    """How much answers change if programs are repeated twice as often: mean relative L2 norm.

    A composition of order p errs by this over 1 − 2^−p: by a third more at second order, by twice this at first and
    more between walls, where layers slow convergence down; unless it has learned to make up for other errors.
    """
    twice = HyCOP.of(replace(model.model, finer=2 * model.model.finer))
    return float(rel_l2(model.measure(query).states, twice.measure(query).states, query.setting).mean())


def _fineness(model: Model, boundary: tuple[str, ...], asked: int | None) -> int:
    """What was asked for, or that of the model, times or over ``ELSEWHERE`` where the swap leaves the trained boundary
    or comes back to it."""
    if asked is not None:
        if type(asked) is not int or not 1 <= asked <= MOST_FINER:
            raise InvalidInputError(f"finer is {asked!r}: a whole number from 1 to {MOST_FINER} is needed")
        return asked
    trained = model.trained_boundary or model.boundary
    if (model.boundary == trained) == (boundary == trained):
        return model.finer
    return max(1, model.finer // ELSEWHERE) if boundary == trained else min(ELSEWHERE * model.finer, MOST_FINER)


def _found(name: str, other: str | Primitive, old: Primitive, problem: str) -> Primitive:
    """The primitive that was asked for, if it advances the processes of the one whose place it takes."""
    if isinstance(other, str):
        known = PROBLEMS.get(problem)
        named = {} if known is None else known.dictionaries
        new = _standing_in(name, other, old, named) if other in named else find_primitive(other)()
    else:
        new = Dictionary({name: other})[name]
    lost, more = (", ".join(sorted(part)) for part in (old.advances - new.advances, new.advances - old.advances))
    if lost:
        raise IncompatibleError(f"primitive '{name}': {_kind(new)} would leave {lost} without a primitive")
    if more:
        raise IncompatibleError(f"primitive '{name}': {_kind(new)} advances {more} too, which others advance already")
    return new


def _standing_in(name: str, other: str, old: Primitive, named: Mapping[str, Dictionary]) -> Primitive:
    """The primitive of a dictionary of the problem that advances the same processes."""
    have = {key: one for key, parts in named.items() for one in parts.values() if one.advances == old.advances}
    if other not in have:
        raise IncompatibleError(
            f"primitive '{name}': dictionary {other} has none that advances {', '.join(sorted(old.advances))} alone; "
            f"{', '.join(have) or 'no dictionary'} of the problem {'have' if len(have) > 1 else 'has'} one"
        )
    return have[other]


def _able(dictionary: Dictionary, name: str, problem: str, grid: Grid) -> dict[str, Primitive]:
    """Primitives of the problem's dictionaries that could stand in for one and know the boundaries, by their kind."""
    known = PROBLEMS.get(problem)
    offered = [*(one for parts in known.dictionaries.values() for one in parts.values())] if known is not None else []
    return {
        _kind(one): one
        for one in offered
        if one.advances == dictionary[name].advances and set(grid.boundary) <= boundaries_of(one)
    }


def _refuse(dictionary: Dictionary, name: str, able: Mapping[str, Primitive], grid: Grid) -> None:
    instead = f"; swap it for one that can ({', '.join(able)}), or let --auto do so" if able else ""
    raise IncompatibleError(
        f"primitive '{name}' ({_kind(dictionary[name])}) does not know the boundary {grid.boundary_name}{instead}"
    )


def _kind(primitive: Primitive) -> str:
    return type(primitive).__name__


def _shown(primitive: Primitive) -> str:
    """With its options, if it is one that shows them."""
    return repr(primitive) if is_dataclass(primitive) else _kind(primitive)
