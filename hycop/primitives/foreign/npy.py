"""States as ``.npy`` bytes; what comes back is checked before it is believed."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from numpy.lib import format as npy

from hycop.grid import Array

HEADER = 2**16
"""Most bytes that the header of an answer may have."""


class BadAnswer(Exception):
    """What is wrong with an answer of foreign code, in a few words."""


class Stopped(Exception):
    """The sample was given up because another one failed."""


def encoded(array: Array) -> bytes:
    """The array as the bytes of a ``.npy`` file."""
    out = io.BytesIO()
    npy.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    return out.getvalue()


def most_bytes(shape: tuple[int, ...]) -> int:
    """Most bytes that an answer of this shape can have."""
    return HEADER + 16 * math.prod(shape)


def decoded(content: bytes, shape: tuple[int, ...]) -> Array:
    """The state in the bytes of a ``.npy`` file. Its header is checked before its data are touched."""
    file = io.BytesIO(content)
    try:
        version = npy.read_magic(file)
        header: Any = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[version]
        found, fortran, dtype = header(file)
    except Exception:  # the bytes may be anything, and NumPy's parser fails in many ways
        raise BadAnswer(f"gave {len(content)} bytes that are not a .npy array") from None
    checked_kind(dtype, found, shape)
    data = content[file.tell() :]
    if len(data) != math.prod(shape) * dtype.itemsize:
        raise BadAnswer(f"gave {len(data)} bytes of data, but {math.prod(shape) * dtype.itemsize} are needed")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def checked_kind(dtype: np.dtype[Any], found: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuses anything but real numbers of the given shape."""
    if dtype.kind not in "fiu":
        raise BadAnswer(f"gave values of dtype {dtype}, but real numbers are needed")
    if found != shape:
        raise BadAnswer(f"gave an array of shape {found}, but the state has shape {shape}")


def as_state(value: object, shape: tuple[int, ...]) -> Array:
    """A value that Python code returned, as real numbers of the given shape."""
    try:
        array = np.asarray(value)
    except Exception:  # an object may do anything when it is converted
        raise BadAnswer(f"gave a {type(value).__name__} that is not an array") from None
    if array.dtype.kind == "O":
        raise BadAnswer(f"gave a {type(value).__name__}, but an array of real numbers is needed")
    checked_kind(array.dtype, array.shape, shape)
    return array
