"""What can be swapped in a model: its boundary, and primitives for others that advance the same processes."""

from __future__ import annotations

from collections.abc import Mapping

from hycop.errors import HyCOPError
from hycop.grid import Grid
from hycop.primitive import Primitive, fingerprint
from hycop.problems import PROBLEMS, problems_with
from hycop.surrogate import HyCOP
from hycop.transfer import swap

UNIFORM = ("periodic", "wall", "outflow")


def choices_of(model: HyCOP) -> dict[str, dict[str, Primitive]]:
    """For each name of the dictionary the primitives that can stand there, by a label; the model's own is first."""
    offered = [
        primitive
        for name in problems_with(model.model.equation)
        for parts in PROBLEMS[name].dictionaries.values()
        for primitive in parts.values()
    ]
    found: dict[str, dict[str, Primitive]] = {}
    for name, own in model.dictionary.everything.items():
        found[name], seen = {_label(own, {}): own}, {fingerprint(own)}
        for other in offered:
            if other.advances == own.advances and fingerprint(other) not in seen:
                seen.add(fingerprint(other))
                found[name][_label(other, found[name])] = other
    return found


def boundaries_for(model: HyCOP) -> dict[str, tuple[str, ...]]:
    """The boundaries that the model can answer with, if need be with other primitives; its own is first."""
    box = model.model.box
    own = Grid.box((1,) * box.axes, box.lengths, box.boundary)
    found = {own.boundary_name: own.boundary}
    for name in UNIFORM:
        try:
            other = own.with_boundary(name).boundary
            if other != own.boundary:
                swap(model, boundary=name, auto=True)
            found[name] = other
        except HyCOPError:  # no primitive knows it
            continue
    return found


def with_parts(
    model: HyCOP, boundary: tuple[str, ...], primitives: Mapping[str, Primitive]
) -> tuple[HyCOP, tuple[str, ...]]:
    """The model with another boundary and other primitives, and a line about each change."""
    others = {
        name: other for name, other in primitives.items() if fingerprint(other) != fingerprint(model.dictionary[name])
    }
    if boundary == model.model.box.boundary and not others:
        return model, ()
    return swap(model, boundary=boundary, primitives=others, auto=True)


def _label(primitive: Primitive, taken: Mapping[str, Primitive]) -> str:
    kind = type(primitive).__name__
    return kind if kind not in taken else repr(primitive)
