"""Arrays of primitives in safetensors: what is written comes back to the bit, and what is not ours is refused."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hycop.errors import InvalidInputError, OutputError
from hycop.grid import Array
from hycop.storage import ModelError
from hycop.storage.weights import DTYPES, LARGEST, LARGEST_HEADER, read_weights, write_weights

WEIGHTS: dict[str, dict[str, Array]] = {
    "learned advection": {
        "layers/0.weight": np.arange(6.0).reshape(2, 3).T,
        "scale": np.array(0.1, np.float32),
        "none": np.zeros((0, 3)),
        "odd": np.array([np.nan, -0.0, np.inf]),
    },
    "κ": {name: np.arange(5).astype(name) for name in DTYPES.values()} | {"big": np.arange(3, dtype=">i8")},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weights.safetensors"


def refused(path: Path, *words: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_weights(path)
    line = str(caught.value)
    assert "\n" not in line and line.startswith(str(path)) and len(line) < 1000
    for word in words:
        assert word in line


def write_raw(path: Path, header: object, body: bytes = b"") -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def test_arrays_come_back_to_the_bit(path: Path) -> None:
    write_weights(path, WEIGHTS)
    back = read_weights(path)
    assert {name: set(arrays) for name, arrays in back.items()} == {name: set(each) for name, each in WEIGHTS.items()}
    for primitive, arrays in WEIGHTS.items():
        for name, array in arrays.items():
            read = back[primitive][name]
            assert read.shape == array.shape and read.dtype == array.dtype.newbyteorder("=")
            assert read.tobytes() == array.astype(read.dtype).tobytes() and read.flags.writeable
    write_weights(path, {"a": {}})
    assert read_weights(path) == {}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a/b": {"w": np.ones(1)}}, "without '/'"),
        ({"": {"w": np.ones(1)}}, "without '/'"),
        ({"a": {"": np.ones(1)}}, "array name ''"),
        ({"a": {"w": np.ones(1, complex)}}, "dtype complex128"),
        ({"a": {"w": np.array([None])}}, "dtype object"),
        ({"a": {"w" * (LARGEST_HEADER + 1): np.ones(1)}}, "can be stored"),
    ],
)
def test_what_cannot_come_back_is_not_written(path: Path, weights: Mapping[str, Any], message: str) -> None:
    path.write_bytes(b"before")
    with pytest.raises(InvalidInputError, match=message):
        write_weights(path, weights)
    assert path.read_bytes() == b"before" and len(list(path.parent.iterdir())) == 1
    with pytest.raises(OutputError):
        write_weights(path.parent, {})


def entry(dtype: object = "F64", shape: object = (2,), offsets: object = (0, 16), **more: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


@pytest.mark.parametrize(
    ("header", "word"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 5000, "damaged"),
        (b'{"a/w": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a/w": 1, "a/w": 1}', "twice"),
        ([], "mapping"),
        ({"w": entry()}, "primitive/array"),
        ({"a/": entry()}, "primitive/array"),
        ({"a/w": 1}, "fields"),
        ({"a/w": entry(more=1)}, "fields"),
        ({"a/w": entry("F16")}, "dtype"),
        ({"a/w": entry(["F64"])}, "dtype"),
        ({"a/w": entry(shape=[-2])}, "shape"),
        ({"a/w": entry(shape=[True, 2])}, "shape"),
        ({"a/w": entry(shape=[2.0])}, "shape"),
        ({"a/w": entry(shape=[1] * 40)}, "shape"),
        ({"a/w": entry(shape=[2**62] * 16)}, "needs"),
        ({"a/w": entry(offsets=[0])}, "offsets"),
        ({"a/w": entry(offsets=[0, 8])}, "needs"),
        ({"a/w": entry(offsets=[16, 0])}, "needs"),
        ({"a/w": entry(offsets=[8, 24])}, "begins"),
        ({"a/w": entry(), "a/v": entry()}, "begins"),
        ({"a/w": entry(), "a/v": entry(offsets=[16, 32])}, "the file holds"),
        ({}, "the file holds"),
        ({"a/w": entry("BOOL", [16])}, "true and false"),
        ({"a/\x1b[31m\n": entry("F16")}, "dtype"),
    ],
)
def test_headers_that_lie_are_refused(path: Path, header: object, word: str) -> None:
    write_raw(path, header, b"\x07" * 16)
    refused(path, word)


def test_files_that_are_no_weights_are_refused(path: Path, tmp_path: Path) -> None:
    refused(path, "No such file")
    path.write_bytes(b"")
    refused(path, "damaged")
    path.write_bytes((2**63).to_bytes(8, "little"))
    refused(path, "header")
    path.write_bytes((LARGEST_HEADER + 1).to_bytes(8, "little") + b" " * (LARGEST_HEADER + 1))
    refused(path, "header")
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)  # sparse
    refused(path, "more than")
    path.unlink()
    os.mkfifo(path)
    refused(path, "plain file")
    path.unlink()
    path.symlink_to("/dev/zero")
    refused(path, "link")
    path.unlink()
    path.symlink_to(path)
    refused(path)
    path.unlink()
    path.mkdir()
    refused(path)
    good = tmp_path / "good.safetensors"
    write_weights(good, WEIGHTS)
    link = tmp_path / "link.safetensors"
    link.symlink_to(good.name)
    assert set(read_weights(link)) == set(WEIGHTS)


@given(data=st.data())
@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_damage_is_refused_or_harmless(path: Path, data: st.DataObject) -> None:
    write_weights(path, {"a": {"w": np.arange(4.0), "b": np.ones((2, 2), bool)}})
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    path.write_bytes(bytes(raw[:cut] if data.draw(st.booleans()) else raw))
    try:
        read_weights(path)
    except ModelError as error:
        assert "\n" not in str(error)
