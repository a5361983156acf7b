"""Transfer without retraining: the same policy with other boundaries or other primitives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import NamedTuple

from hycop.boundary import Boundaries
from hycop.dictionary import Dictionary
from hycop.economy import rivals_of
from hycop.errors import IncompatibleError, InvalidInputError, NonFiniteStateError
from hycop.grid import Grid
from hycop.metrics import rel_l2
from hycop.model import MOST_SUBSTEPS, Model
from hycop.primitive import Primitive, boundaries_of, fingerprint, order_of
from hycop.problems import PROBLEMS, problem_of, problems_with
from hycop.query import Query
from hycop.storage.network import is_network, primitive_at
from hycop.surrogate import HyCOP

ELSEWHERE = 2
"""Factor on the substeps of programs when a swap leaves the trained boundary."""

COMPARED = 8
"""Queries on which a swapped model is compared with itself."""

WORSE = 5.0
"""More substeps are advised if a swap makes that difference larger by this factor."""


class Swapped(NamedTuple):
    """A model with other parts, and a line about each part that changed."""

    model: HyCOP
    changes: tuple[str, ...]


def swap(
    model: HyCOP,
    *,
    boundary: Boundaries | None = None,
    primitives: Mapping[str, str | Primitive] | None = None,
    auto: bool = False,
    substeps: int | None = None,
) -> Swapped:
    """A new model with the policy, theta and features of the old one, and with other ``boundary`` or ``primitives``.

    A primitive is given as an object, by its name (``MusclAdvection``), as a network folder, or by the name of a
    dictionary that has it (``muscl``), of any problem with this equation, or with this process if the equation was
    enriched. If a primitive cannot handle the new boundary, the error names those that can; with ``auto`` the one of
    highest order replaces it.

    Processes that commute in one box may not commute in another: a program with a single step of advection is exact in
    a periodic box and poor between walls. ``substeps`` cuts every program that many times finer. By default, leaving
    the trained boundary doubles it and coming back halves it. ``unsettled`` tells whether that is enough.

    If neither ``primitives`` nor ``substeps`` are given, a model that leaves its boundary becomes economical: a large
    query is first solved on a coarse grid, to see whether an unsplit solver or a grid without refinement is as good
    (``hycop.economy``).

    A solver of the whole equation that answers instead of a composition (``Gate.instead``) is left out if a primitive
    of the composition is swapped, or if it does not know the new boundary.
    """
    _check_parts(model, primitives)
    before = model.model
    offered = _offered(before)
    grid = Grid.box((1,) * before.box.axes, before.box.lengths, before.box.boundary)
    after = grid if boundary is None else grid.with_boundary(boundary)
    changes = [] if after.boundary == grid.boundary else [f"boundary {grid.boundary_name} → {after.boundary_name}"]
    found = {name: _found(name, other, before.dictionary[name], offered) for name, other in (primitives or {}).items()}
    found = {name: one for name, one in found.items() if fingerprint(one) != fingerprint(before.dictionary[name])}
    instead = before.gate.instead
    if instead is not None and (before.gate.composes(before.dictionary, after) or {*found} - {instead}):
        if instead in found:
            raise IncompatibleError(
                f"primitive '{instead}': it answers instead of compositions, which other primitives are for; swap it "
                "alone"
            )
        changes.append(f"programs are compositions, no longer steps of {instead}")
        before = before.composition()
    dictionary = before.dictionary
    for name, chosen in found.items():
        changes.append(f"primitive {name}: {_shown(dictionary[name])} → {_shown(chosen)}")
        dictionary = dictionary.swapping(name, chosen)
    dictionary, replaced = _knowing(dictionary, offered, after, auto)
    changes += replaced
    finer = _substeps(before, after.boundary, substeps)
    if finer != before.substeps:
        changes.append(f"programs cut {finer} times as finely as their length asks for; before {before.substeps} times")
    if not changes:
        raise InvalidInputError("nothing to swap: give another boundary, primitive or substeps than the model has")
    free = not primitives and substeps is None and after.boundary != before.scope.boundary
    if free and rivals_of(before, after.boundary):
        changes.append("large queries are solved by what is worth its work, as a coarse version of them tells")
    if instead in found:  # what the gate says is about another solver
        before = replace(before, gate=replace(before.gate, whole=None))
    made = _with_parts(before, dictionary, after.boundary, finer, changes)
    return Swapped(HyCOP.of(replace(made, economical=free)), tuple(changes))


def _with_parts(
    before: Model, dictionary: Dictionary, boundary: tuple[str, ...], substeps: int, changes: Sequence[str]
) -> Model:
    scope, record = before.scope, before.record
    known = {name: one for name, one in before.dictionary.everything.items() if name not in scope.untrained}
    trained = {**{name: fingerprint(one) for name, one in known.items()}, **scope.fingerprints}
    others = tuple(name for name, one in dictionary.everything.items() if fingerprint(one) != trained.get(name))
    return replace(
        before,
        box=replace(before.box, boundary=boundary),
        dictionary=dictionary,
        substeps=substeps,
        scope=replace(scope, untrained=others, fingerprints=trained),
        record=replace(record, changes=(*record.changes, *changes)),
    )


def _check_parts(model: HyCOP, primitives: Mapping[str, str | Primitive] | None) -> None:
    if not isinstance(model, HyCOP):
        raise InvalidInputError(f"{model!r} is not a model: give one that fit has made, or HyCOP.load(folder)")
    if not isinstance(primitives, Mapping | None):
        raise InvalidInputError(f"primitives is {primitives!r}: others by name are needed, {{'advection': 'muscl'}}")


def unsettled(model: HyCOP, query: Query) -> float:
    """How much answers change if programs are cut twice as finely: mean relative L2 norm.

    The error of a composition of order p is this divided by 1 − 2^−p: a third more at second order, twice as much at
    first order, and more between walls, where layers slow convergence. A learned program that makes up for other errors
    may do better.
    """
    twice = replace(model.model, substeps=2 * model.model.substeps)
    return float(rel_l2(model.solve(query).states, twice.solve(query).states, query.setting).mean())


class Settled(NamedTuple):
    """Change of the answers under finer programs before and after a swap; ``remark`` says what it means. All empty if
    no problem can draw queries for the model."""

    before: float | None
    after: float | None
    remark: str


def compared(before: HyCOP, after: HyCOP) -> Settled:
    """Whether a swapped model's programs are fine enough, on queries of the problem that the model was trained on."""
    known = problem_of(before.model.equation)
    if known is None or known.lengths != before.model.box.lengths:
        return Settled(None, None, "")
    told = f"with programs twice as fine its answers to {COMPARED} queries of split id"
    found: list[float] = []
    # equally fine, so that any difference is due to the swap
    composes = after.model.gate.instead is None
    as_fine = HyCOP.of(replace(before.model.composition() if composes else before.model, substeps=after.model.substeps))
    try:
        for model in (as_fine, after):
            found.append(unsettled(model, known.queries(COMPARED, boundary=model.model.box.boundary)))
    except NonFiniteStateError as error:
        return Settled(found[0] if found else None, None, f"{told} are lost: {error}")
    remark = f"{told} change by {found[1]:.1e}, before the swap by {found[0]:.1e}"
    if found[1] > WORSE * found[0]:
        remark += (
            f": less commutes here than where it was trained; try --substeps "
            f"{min(4 * after.model.substeps, MOST_SUBSTEPS)}, and compare with 'hycop evaluate --compare'"
        )
    return Settled(found[0], found[1], remark)


def _substeps(model: Model, boundary: tuple[str, ...], asked: int | None) -> int:
    """The substeps that were asked for. By default those of the model, times ``ELSEWHERE`` if the swap leaves the
    trained boundary, divided by it if the swap comes back."""
    if asked is not None:
        if type(asked) is not int or not 1 <= asked <= MOST_SUBSTEPS:
            raise InvalidInputError(f"substeps is {asked!r}: a whole number from 1 to {MOST_SUBSTEPS} is needed")
        return asked
    trained = model.scope.boundary
    if (model.box.boundary == trained) == (boundary == trained):
        return model.substeps
    if boundary == trained:
        return max(1, model.substeps // ELSEWHERE)
    return min(ELSEWHERE * model.substeps, MOST_SUBSTEPS)


def _offered(model: Model) -> dict[str, Dictionary]:
    """The dictionaries of all problems with the model's equation, by name.

    An enriched equation may be that of no problem. Then a problem with the same channels and axes offers its primitives
    for the processes that it has a primitive of the model's own kind for: there it means the same by their names."""
    known = problems_with(model.equation)
    if known:
        return {name: parts for one in known for name, parts in PROBLEMS[one].dictionaries.items()}
    kinds = {(type(one), one.advances) for one in model.dictionary.values()}
    offered: dict[str, Dictionary] = {}
    for problem in PROBLEMS.values():
        if problem.equation.channels != model.equation.channels or len(problem.lengths) != model.box.axes:
            continue
        every = [one for parts in problem.dictionaries.values() for one in parts.values()]
        shared = {one.advances for one in every if (type(one), one.advances) in kinds}
        for name, parts in problem.dictionaries.items():
            some = {key: one for key, one in parts.items() if one.advances in shared}
            if some:
                offered[name] = Dictionary({**offered.get(name, {}), **some})
    return offered


def _found(name: str, other: str | Primitive, old: Primitive, offered: Mapping[str, Dictionary]) -> Primitive:
    """The primitive that was asked for, if it advances the processes of the one whose place it takes."""
    if isinstance(other, str):
        known = other in offered and not is_network(other)
        new = _standing_in(name, other, old, offered) if known else primitive_at(other)
    else:
        new = Dictionary({name: other})[name]
    lost, more = (", ".join(sorted(part)) for part in (old.advances - new.advances, new.advances - old.advances))
    if lost:
        raise IncompatibleError(f"primitive '{name}': {_kind(new)} would leave {lost} without a primitive")
    if more:
        raise IncompatibleError(f"primitive '{name}': {_kind(new)} advances {more} too, which others advance already")
    return new


def _standing_in(name: str, other: str, old: Primitive, offered: Mapping[str, Dictionary]) -> Primitive:
    """The primitive of a dictionary of the problem that advances the same processes."""
    have = {key: one for key, parts in offered.items() for one in parts.values() if one.advances == old.advances}
    if other not in have:
        raise IncompatibleError(
            f"primitive '{name}': dictionary {other} has none that advances {', '.join(sorted(old.advances))} alone; "
            f"{', '.join(have) or 'no dictionary'} of the problem {'have' if len(have) > 1 else 'has'} one"
        )
    return have[other]


def _knowing(
    dictionary: Dictionary, offered: Mapping[str, Dictionary], grid: Grid, auto: bool
) -> tuple[Dictionary, list[str]]:
    """The dictionary with others for primitives that do not know the boundaries, and a line about each."""
    changes = []
    for name, one in dictionary.items():
        if not grid.boundary_kinds <= boundaries_of(one):
            best = _able(dictionary, name, offered, grid, auto)
            changes.append(f"primitive {name}: {_kind(one)} → {_kind(best)}, which knows {grid.boundary_name}")
            dictionary = dictionary.swapping(name, best)
    return dictionary, changes


def _able(dictionary: Dictionary, name: str, offered: Mapping[str, Dictionary], grid: Grid, auto: bool) -> Primitive:
    """With ``auto``, the primitive of highest order that can replace one and handles the boundaries; else an error that
    names those that can."""
    able = {
        _kind(one): one
        for parts in offered.values()
        for one in parts.values()
        if one.advances == dictionary[name].advances and grid.boundary_kinds <= boundaries_of(one)
    }
    if auto and able:
        return max(able.values(), key=order_of)
    instead = f"; swap it for one that can ({', '.join(able)}), or let --auto do so" if able else ""
    raise IncompatibleError(
        f"primitive '{name}' ({_kind(dictionary[name])}) does not know the boundary {grid.boundary_name}{instead}"
    )


def _kind(primitive: Primitive) -> str:
    return type(primitive).__name__


def _shown(primitive: Primitive) -> str:
    """With its options, if it is one that shows them."""
    return repr(primitive) if is_dataclass(primitive) else _kind(primitive)
