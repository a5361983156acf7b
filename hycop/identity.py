"""A hash of any Python value by its content, the same in every process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from numbers import Integral, Number
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

DEEPEST = 100
"""Deepest level of nesting that is read; anything deeper counts by its class."""


def described(value: object) -> bytes:
    """SHA-256 of a value: equal for equal values in every process, without ``id``, ``repr`` or ``hash``.

    The rules are those of ``hycop.primitive.fingerprint``.
    """
    return _described(value, ())


def _digest(kind: str, *parts: bytes) -> bytes:
    """The hash of a kind and its parts, each with its length, so that no two lists of parts read the same."""
    out = hashlib.sha256()
    for part in (kind.encode(), *parts):
        out.update(len(part).to_bytes(8, "little") + part)
    return out.digest()


def _described(value: Any, inside: tuple[object, ...]) -> bytes:
    """``inside`` holds the enclosing objects, so that an object that contains itself counts by its class."""
    plain = _scalar(value)
    if plain is not None:
        return plain
    if len(inside) > DEEPEST or any(value is outer for outer in inside):
        return _digest("nested", _place(type(value)))
    around = (*inside, value)

    def of(part: object) -> bytes:
        return _described(part, around)

    if isinstance(value, np.ndarray):
        return _array(value) if value.dtype.kind != "O" else _digest("objects", *map(of, (value.shape, value.tolist())))
    if isinstance(value, Mapping):
        return _digest("mapping", *sorted(of(key) + of(entry) for key, entry in value.items()))
    if isinstance(value, AbstractSet):
        return _digest("set", *sorted(map(of, value)))
    if isinstance(value, list | tuple):
        return _digest("sequence", *map(of, value))
    if isinstance(value, FunctionType | CodeType | MethodType | partial):
        return _digest("code", *map(of, _code_parts(value)))
    parts = sorted(of(name) + of(part) for name, part in _parts(value))
    return _digest("object", _place(type(value)), *parts)


def _scalar(value: Any) -> bytes | None:
    """The hash of a value without parts; None for any other value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Enum):
        return _digest("enum", _place(type(value)), value.name.encode())
    if value is None or isinstance(value, bool):
        return _digest("constant", str(value).encode())
    if isinstance(value, float):  # whole floats count as integers, because 1 and 1.0 are equal options
        return _digest("number", (hex(int(value)) if value.is_integer() else value.hex()).encode())
    if isinstance(value, Integral):
        return _digest("number", hex(int(value)).encode())
    if isinstance(value, Number):
        return _digest("number", _place(type(value)), str(value).encode())
    if isinstance(value, str):
        return _digest("text", value.encode(errors="surrogatepass"))
    if isinstance(value, bytes | bytearray):
        return _digest("bytes", bytes(value))
    if isinstance(value, os.PathLike):
        return _digest("path", os.fsencode(value))
    if isinstance(value, np.dtype):
        return _digest("dtype", str(value).encode())
    if isinstance(value, type | BuiltinFunctionType | np.ufunc):
        return _digest("name", _place(value))
    if isinstance(value, ModuleType):
        return _digest("module", value.__name__.encode())
    return None


def _place(thing: Any) -> bytes:
    """Module and name of a class or function; the main script has one name in all processes."""
    module, name = getattr(thing, "__module__", None) or "", getattr(thing, "__qualname__", thing.__name__)
    return f"{'__main__' if module == '__mp_main__' else module}:{name}".encode()


def _array(value: np.ndarray[Any, Any]) -> bytes:
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return _digest("array", little.dtype.str.encode(), str(value.shape).encode(), little.tobytes())


def _code_parts(value: Any) -> tuple[object, ...]:
    """A function by its name if its module can look it up, else by its bytecode and closure."""
    if isinstance(value, partial):
        return "partial", value.func, value.args, value.keywords
    if isinstance(value, MethodType):
        return "method", value.__self__, value.__func__.__qualname__
    if isinstance(value, CodeType):
        return value.co_code, value.co_consts, value.co_names, value.co_freevars
    if "<" not in value.__qualname__:
        return (_place(value),)
    held = [cell.cell_contents for cell in value.__closure__ or ()]
    return _place(value), value.__code__, value.__defaults__, value.__kwdefaults__, held


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    """What an object is made of: options, and the arrays and the version of a primitive that has them."""
    if hasattr(value, "__wrapped__"):  # a compiled or cached function, whose attributes change with every call
        yield "__wrapped__", value.__wrapped__
    elif is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value) if field.init)
    else:
        names = {*getattr(value, "__dict__", {}), *(name for kind in type(value).__mro__ for name in _slots(kind))}
        yield from ((name, getattr(value, name)) for name in names if name[:1] != "_" and hasattr(value, name))
    if hasattr(value, "flow"):
        arrays = value.arrays() if hasattr(value, "arrays") else {}
        yield "arrays()", {name: np.asarray(array) for name, array in arrays.items()}
        yield "scheme_version", getattr(value, "scheme_version", 1)


def _slots(kind: type) -> tuple[str, ...]:
    slots: str | tuple[str, ...] = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
