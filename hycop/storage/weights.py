"""``weights.safetensors``: the arrays of primitives. The whole layout is checked before any array is read."""

from __future__ import annotations

import json
import os
import reprlib
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from hycop.errors import InvalidInputError
from hycop.files import replacing
from hycop.grid import Array
from hycop.storage.document import ModelError, refusal
from hycop.storage.sealing import LARGEST, check_inside

LARGEST_HEADER = 2**20
"""Most bytes in the header that describes the arrays."""

MOST_AXES = 16

DTYPES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64", "U8": "uint8", "BOOL": "bool"}
"""The types of values in a file, and their names in NumPy."""

Weights = Mapping[str, Mapping[str, Array]]


def write_weights(path: str | os.PathLike[str], weights: Weights) -> None:
    """Writes the arrays of primitives, {primitive: {name: array}}, as "primitive/name", all or nothing.

    Primitives without arrays are not in the file.
    """
    tensors: dict[str, Array] = {}
    for primitive, arrays in weights.items():
        if not primitive or "/" in primitive:
            raise InvalidInputError(f"primitive {primitive!r}: to store its arrays it needs a name without '/'")
        for name, array in arrays.items():
            tensors[f"{primitive}/{name}"] = _storable(primitive, name, array)
    content = safetensors.numpy.save(tensors)
    header = int.from_bytes(content[:8], "little")
    if header > LARGEST_HEADER or len(content) > LARGEST:
        raise InvalidInputError(
            f"{len(tensors)} arrays of {len(content)} bytes: at most {LARGEST} bytes, and {LARGEST_HEADER} for their "
            "names, can be stored"
        )
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _storable(primitive: str, name: object, array: object) -> Array:
    values = np.asarray(array)
    if not isinstance(name, str) or not name:
        raise InvalidInputError(f"primitive '{primitive}': array name {name!r}: a non-empty text is needed")
    if values.dtype.name not in DTYPES.values() or values.ndim > MOST_AXES:
        raise InvalidInputError(
            f"primitive '{primitive}': array '{name}' has dtype {values.dtype} and {values.ndim} axes; "
            f"{', '.join(DTYPES.values())} on at most {MOST_AXES} can be stored"
        )
    return np.array(values, dtype=values.dtype.newbyteorder("="), order="C")


@dataclass(frozen=True)
class Layout:
    """What the header of a file says of one array: its type, as in ``DTYPES``, and its shape."""

    dtype: str
    shape: tuple[int, ...]


def read_layout(path: str | os.PathLike[str]) -> dict[str, dict[str, Layout]]:
    """The types and shapes of the arrays of primitives, {primitive: {name: layout}}. No array is read."""
    path = Path(path)
    with _opened(path) as file:
        _, header, _ = _checked_header(path, file)
    out: dict[str, dict[str, Layout]] = {}
    for key, entry in header.items():
        primitive, _, name = key.partition("/")
        out.setdefault(primitive, {})[name] = Layout(entry["dtype"], tuple(entry["shape"]))
    return out


def read_weights(path: str | os.PathLike[str]) -> dict[str, dict[str, Array]]:
    """Reads the arrays of primitives, {primitive: {name: array}}. Refuses any file that ``write_weights`` cannot have
    written. Size, header and layout are checked before the arrays are read."""
    path = Path(path)
    with _opened(path) as file:
        start, _, size = _checked_header(path, file)
        body = file.read(size)
    if len(body) != size:
        raise _damaged(path, "it became shorter while it was read")
    try:
        tensors: dict[str, Array] = safetensors.numpy.load(start + body)
    except (SafetensorError, ValueError) as error:
        raise _damaged(path, str(error)) from None
    out: dict[str, dict[str, Array]] = {}
    for key, array in tensors.items():
        primitive, _, name = key.partition("/")
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            raise _damaged(path, f"array {reprlib.repr(key)} has values other than true and false")
        out.setdefault(primitive, {})[name] = np.array(array)
    return out


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, if it is one of the folder's own; what cannot be read is refused."""
    try:
        check_inside(path)
        # without blocking, since a FIFO would wait for a writer
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            yield file
    except (OSError, RuntimeError) as error:
        if isinstance(error, ModelError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise refusal(path, f"cannot be read ({reason}); restore it or train again") from None


def _damaged(path: Path, reason: str) -> ModelError:
    return refusal(path, f"damaged: {reason}; restore it or train again")


def _checked_header(path: Path, file: BinaryIO) -> tuple[bytes, dict[str, Any], int]:
    """The first bytes of a file up to its arrays, what they say, and how many bytes the arrays have."""
    about = os.fstat(file.fileno())
    if not stat.S_ISREG(about.st_mode):
        raise refusal(path, "is not a plain file; replace it by one")
    if about.st_size > LARGEST:
        raise refusal(path, f"has {about.st_size} bytes, more than the {LARGEST} that weights may have")
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(LARGEST_HEADER, about.st_size - 8):
        raise _damaged(path, f"its header has {length} bytes, the file {about.st_size}")
    header = file.read(length)
    size = about.st_size - 8 - length
    content = _parsed(path, header)
    _check_layout(path, content, size)
    return start + header, content, size


def _parsed(path: Path, header: bytes) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        out = dict(pairs)
        if len(out) != len(pairs):
            raise ValueError("a name stands there twice")
        return out

    try:
        content = json.loads(header.decode(), object_pairs_hook=unique)
    except RecursionError:
        raise _damaged(path, "its header is nested too deeply") from None
    except ValueError as error:
        raise _damaged(path, f"its header is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise _damaged(path, "its header is not a mapping of names")
    content.pop("__metadata__", None)
    return content


def _check_layout(path: Path, header: dict[str, Any], size: int) -> None:
    """Arrays must have known types and names, and fill the file one after the other without gap or overlap."""
    spans = []
    for key, entry in header.items():
        shown = reprlib.repr(key)
        primitive, _, name = key.partition("/")
        if not primitive or not name:
            raise _damaged(path, f"array {shown} is not named 'primitive/array'")
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise _damaged(path, f"array {shown} is described by other fields than dtype, shape and data_offsets")
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
            raise _damaged(
                path, f"array {shown} has dtype {reprlib.repr(entry['dtype'])}, not one of {', '.join(DTYPES)}"
            )
        if not _counts(entry["shape"]) or len(entry["shape"]) > MOST_AXES:
            raise _damaged(path, f"array {shown} has the shape {reprlib.repr(entry['shape'])}")
        if not _counts(entry["data_offsets"]) or len(entry["data_offsets"]) != 2:
            raise _damaged(path, f"array {shown} has the offsets {reprlib.repr(entry['data_offsets'])}")
        first, last = entry["data_offsets"]
        needed = prod(entry["shape"]) * np.dtype(DTYPES[entry["dtype"]]).itemsize
        if last - first != needed:
            raise _damaged(path, f"array {shown} has {last - first} bytes, its shape needs {reprlib.repr(needed)}")
        spans.append((first, last, shown))
    end = 0
    for first, last, shown in sorted(spans):
        if first != end:
            raise _damaged(path, f"array {shown} begins at byte {first}, the one before ends at {end}")
        end = last
    if end != size:
        raise _damaged(path, f"its arrays have {end} bytes, the file holds {size} of them")


def _counts(value: object) -> bool:
    """Whether it is a list of whole numbers from 0 to 2^63."""
    if not isinstance(value, list):
        return False
    return all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**63 for n in value)
