"""Primitives as names and options, and back again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib.metadata import entry_points
from math import isfinite
from pathlib import Path
from typing import cast

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import UnknownNameError
from hycop.grid import Array
from hycop.model import Model
from hycop.primitive import Primitive, fingerprint
from hycop.primitives import FOREIGN, HELD, LEARNED, PRIMITIVES, find_primitive
from hycop.storage.document import Document, PrimitivePart, at_field, refusal

GROUP = "hycop.primitives"


def registry_name(kind: type) -> str:
    """The name under which ``find_primitive`` finds a class, or else 'module:class'."""
    name = kind.__name__
    for known in (PRIMITIVES, LEARNED, FOREIGN):
        if name in known and known[name] is kind:
            return name
    for point in entry_points(group=GROUP):
        if point.attr == kind.__qualname__ and point.name not in PRIMITIVES and point.load() is kind:
            return point.name
    return f"{kind.__module__}:{kind.__qualname__}"


def arrays_of(primitive: object) -> Mapping[str, Array]:
    """The weights of a primitive, if it has any."""
    own = getattr(primitive, "arrays", None)
    return {} if own is None else own()


def described(name: str, primitive: Primitive) -> dict[str, object]:
    """A primitive as data: registry name, options, whether it has weights, and its fingerprint."""
    arrays = arrays_of(primitive)
    return {
        "name": name,
        "primitive": registry_name(type(primitive)),
        "options": options_of(primitive, arrays),
        "arrays": bool(arrays),
        "fingerprint": fingerprint(primitive),
    }


def options_of(primitive: object, arrays: Collection[str] = ()) -> dict[str, object] | None:
    """The options of a primitive without its ``arrays``; None if a file cannot hold them."""
    if not is_dataclass(primitive):
        return None if getattr(primitive, "__dict__", {}) else {}
    values = {
        field.name: getattr(primitive, field.name)
        for field in fields(primitive)
        if field.init and field.name not in arrays
    }
    plain = {name: _plain(value) for name, value in values.items()}
    return plain if all(map(_storable, plain.values())) else None


def _plain(value: object) -> object:
    """A NumPy scalar as a number, a set of names as a tuple in order."""
    if isinstance(value, frozenset) and all(isinstance(name, str) for name in value):
        return tuple(sorted(value))
    return value.item() if isinstance(value, np.generic) else value


def _storable(value: object) -> bool:
    if isinstance(value, Mapping):
        plain = (not isinstance(entry, Mapping) and _storable(entry) for entry in value.values())
        return all(isinstance(key, str) for key in value) and all(plain)
    if isinstance(value, tuple):
        return all(_storable(entry) and not isinstance(entry, tuple) for entry in value)
    return isfinite(value) if isinstance(value, float) else value is None or isinstance(value, bool | int | str)


def restored(
    path: Path, document: Document, given: Mapping[str, Primitive], weights: Mapping[str, Mapping[str, Array]]
) -> Dictionary:
    """The dictionary of a document, or an error that names every primitive that is neither found nor given."""
    names = [part.name for part in document.dictionary]
    if len(set(names)) != len(names):
        raise refusal(path, "field 'dictionary': a name stands there twice")
    for name in given:
        if name not in names:
            raise UnknownNameError("primitive", str(name), names, f"(the names in {path})")
    found = {name: _with_weights(path, name, one, weights.get(name, {})) for name, one in given.items()}
    missing: list[PrimitivePart] = []
    for index, part in enumerate(document.dictionary):
        if part.name not in given:
            primitive = _made(path, f"dictionary.{index}", part, weights.get(part.name, {}))
            if primitive is None:
                missing.append(part)
            else:
                found[part.name] = primitive
    if missing:
        kinds = ", ".join(f"'{part.name}' ({part.primitive})" for part in missing)
        example = ", ".join(f"{part.name!r}: …" for part in missing)
        raise refusal(
            path,
            f"cannot make {kinds}: no installed package offers it, or it holds or runs what a folder may not; "
            f"give it with load(folder, primitives={{{example}}}), or --with FILE.py on the command line",
        )
    with at_field(path, "dictionary"):
        beside = {name: found.pop(name) for name in names if name == document.gate.instead}
        return Dictionary({name: found[name] for name in names if name in found}, beside)


def _with_weights(path: Path, name: str, given: Primitive, arrays: Mapping[str, Array]) -> Primitive:
    """A primitive that was given, with the weights of the folder."""
    if not arrays or not hasattr(given, "with_arrays"):
        return given
    try:
        return cast(Primitive, given.with_arrays(arrays))
    except Exception as error:  # somebody else's code
        raise refusal(path, f"primitive '{name}' does not take the weights of the folder ({error})") from None


def _made(path: Path, place: str, part: PrimitivePart, arrays: Mapping[str, Array]) -> Primitive | None:
    """A primitive with its options and weights; None if it is not registered here."""
    if part.arrays != bool(arrays):
        missing = "misses its weights" if part.arrays else "has weights that it should not have"
        raise refusal(path, f"field '{place}': {part.primitive} {missing}; restore the folder or train again")
    try:
        kind = _registered(part.primitive)
        # what a folder says may choose among primitives and their options, but never start code
        if kind is None or part.options is None or getattr(kind, "runs_code", False):
            return HELD.get(part.fingerprint or "")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in part.options.items()}
        if not arrays:
            return kind(**values)
        accepted: list[str] = [field.name for field in fields(kind)] if is_dataclass(kind) else []
        made = kind(**values, **{name: array for name, array in arrays.items() if name in accepted})
        return cast(Primitive, made.with_arrays(arrays))  # type: ignore[attr-defined]
    except Exception as error:  # a foreign package may fail in any way
        raise refusal(path, f"field '{place}': {part.primitive} cannot be made ({error})") from None


def changed_since(model: Model, document: Document) -> Model:
    """Marks as untrained every primitive whose fingerprint differs from the stored one: its scheme is newer, or another
    object was given. Folders of schema 1 have no fingerprints; there every primitive had the first version of its
    scheme."""
    changed = [part.name for part in document.dictionary if _changed(part, model.dictionary[part.name])]
    fresh = [name for name in changed if name not in model.scope.untrained]
    if not fresh:
        return model
    lines = tuple(f"primitive {name}: not the one that the model was stored with" for name in fresh)
    return replace(
        model,
        scope=replace(model.scope, untrained=(*model.scope.untrained, *fresh)),
        record=replace(model.record, changes=(*model.record.changes, *lines)),
    )


def _changed(part: PrimitivePart, primitive: Primitive) -> bool:
    if part.fingerprint is None:
        return getattr(primitive, "scheme_version", 1) > 1
    return part.fingerprint != fingerprint(primitive)


def _registered(name: str) -> Callable[..., Primitive] | None:
    # to look through all installed packages takes as long as to load a model
    for point in entry_points(group=GROUP) if ":" in name else ():
        if f"{point.module}:{point.attr}" == name:
            return cast(Callable[..., Primitive], point.load())
    try:
        return find_primitive(name)
    except UnknownNameError:
        return None
