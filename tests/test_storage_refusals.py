"""Model folders that are not ours, not whole or not right are refused in one line, whatever is wrong with them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hycop.errors import HyCOPError
from hycop.model import Model
from hycop.storage import ModelError, load_model, sealed
from hycop.surrogate import HyCOP

OLD = Path(__file__).parent / "models" / "schema1"
GOOD = Path(__file__).parent / "models" / "schema2"

properties = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(GOOD, tmp_path / "run")
    return tmp_path / "run"


def content(folder: Path) -> dict[str, Any]:
    out: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return out


def rewrite(folder: Path, data: Mapping[str, object]) -> None:
    (folder / "model.json").write_text(json.dumps(data), encoding="utf-8")


def refused(folder: Path, *words: str) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    line = str(caught.value)
    assert "\n" not in line and str(folder) in line
    for word in words:
        assert word in line
    return line


def same(a: Model, b: Model) -> bool:
    """Every field alike; theta, which prints rounded, to the bit."""
    return repr(a) == repr(b) and a.theta.tobytes() == b.theta.tobytes()


def test_folders_that_are_none(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", "no such folder")
    refused(tmp_path, "has no model.json")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file")
    (tmp_path / "model.json").mkdir()
    refused(tmp_path, "has no model.json")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1, 2]", "not a model of HyCOP"),
        ('{"a": 1}', "not a model of HyCOP"),
        ('{"kind": ["hycop-model"]}', "not a model of HyCOP"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "not a finite number"),
        ('{"a": -Infinity}', "not a finite number"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "nested too deeply"),
        ("1" * 10_000, "not JSON"),
        ('"\\ud800"', "not a model of HyCOP"),
        ('{"kind": "hycop-model", "schema_version": 2, "x": "\\ud800"}', "damaged"),
        ('{"kind": "hycop-model", "schema_version": 2, "x": 1e999}', "damaged"),
        ('{"kind": "hycop-model", "schema_version": 2}', "sha256 does not match"),
        ('{"kind": "hycop-model", "schema_version": 3, "new": 1}', "made by a newer hycop"),
        ('{"kind": "hycop-model", "schema_version": 0}', "schema_version"),
        ('{"kind": "hycop-model", "schema_version": true}', "schema_version"),
        ('{"kind": "hycop-model", "schema_version": "2"}', "schema_version"),
        ('{"kind": "hycop-model"}', "schema_version"),
    ],
    ids=range(20),
)
def test_files_that_are_not_ours(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(text)
    refused(tmp_path, "model.json", word)


def test_bytes_that_are_no_text_and_files_that_are_too_large(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(b"\xff\xfe{}")
    refused(tmp_path, "not JSON")
    with path.open("wb") as file:
        file.truncate(2**34)
    refused(tmp_path, "larger than 16 MiB")


def test_a_file_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, *_: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    refused(folder, "cannot be read", "Permission denied")


def test_a_change_by_hand_is_noticed(folder: Path) -> None:
    data = content(folder)
    data["theta"][0] += 1e-12
    rewrite(folder, data)
    refused(folder, "sha256 does not match")
    rewrite(folder, sealed(data))
    assert load_model(folder).theta[0] == data["theta"][0]


def put(place: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Sets the field at a dotted place."""

    def change(data: dict[str, Any]) -> None:
        *way, last = (int(step) if step.isdigit() else step for step in place.split("."))
        target: Any = data
        for step in way:
            target = target[step]
        target[last] = value

    return change


NESTED: Any = 1
for _ in range(400):
    NESTED = [NESTED]

CHANGES: list[tuple[Callable[[dict[str, Any]], Any], list[str]]] = [
    (put("extra", 1), ["unknown field 'extra'"]),
    (put("gate.extra", 1), ["unknown field 'gate.extra'"]),
    (put("record.config.extra", 1), ["unknown field 'record.config.extra'"]),
    (put("line\nbreak\x1b[31m", 1), ["unknown field"]),
    (lambda data: data.pop("theta"), ["field 'theta' is missing"]),
    (lambda data: data["gate"].pop("kept"), ["field 'gate.kept' is missing"]),
    (lambda data: data["theta"].pop(), ["theta", "this policy needs"]),
    (put("theta", [0.0] * 100_001), ["theta", "100000"]),
    (put("theta.0", "0.5"), ["theta.0"]),
    (put("theta.0", None), ["theta.0"]),
    (put("theta.0", NESTED), ["nested too deeply"]),
    (put("dtype", "float16"), ["dtype"]),
    (put("record.seed", -1), ["seed"]),
    (put("record.seed", 1.0), ["seed"]),
    (put("refinement", 0), ["refinement"]),
    (put("record.data_hash", "../x"), ["data_hash"]),
    (put("box.lengths", [0.0]), ["lengths"]),
    (put("box.lengths", [1.0] * 4), ["lengths"]),
    (put("box.boundary", ["open"]), ["boundary", "open"]),
    (put("box.boundary", ["wall", "wall"]), ["boundary"]),
    (put("equation.channels.0.normal", 1), ["channels"]),
    (put("equation.processes", ["advection"]), ["policy.allotment", "advection once"]),
    (put("scope.longest", [1.0, 2.0]), ["longest"]),
    (put("scope.longest.0", -1.0), ["scope.longest.0"]),
    (put("record.config.samples", 1), ["config.samples"]),
    (put("record.config.samples", "256"), ["config.samples"]),
    (put("record.metrics.loss", "nan"), ["metrics.loss"]),
    (put("scope.features.names.0", "peclet"), ["features", "unknown feature 'peclet'", "peclet_x"]),
    (put("scope.features.names.0", "peclet_y"), ["features", "peclet_y", "axis"]),
    (put("scope.features.low", [0.0]), ["features", "bounds"]),
    (
        put("scope.features", {"names": ["growth"], "low": [0.0, 0.0], "high": [1.0, 1.0]}),
        ["features", "2 ranges for 1"],
    ),
    (put("scope.features.low.0", 5.0), ["features", "ends before"]),
    (put("scope.gain_features", {"names": [], "low": [], "high": []}), ["policy.allotment", "gain_features"]),
    (put("gate.classical", "strange"), ["gate.classical", "unknown scheme 'strange'"]),
    (put("gate.classical", "Strang(outer=gravity)"), ["gate.classical", "gravity"]),
    (put("gate.classical", "Strang x999999999"), ["gate.classical", "substeps"]),
    (put("gate.classical", "Yoshida"), ["gate.classical", "backwards"]),
    (put("gate.classical", "SABA" + "9" * 190), ["gate.classical"]),
    (put("gate.learned_error", "-inf"), ["gate.learned_error"]),
    (put("policy.kind", "other"), ["policy", "other"]),
    (put("policy.features", 1), ["policy.features"]),
    (put("policy.patterns", []), ["policy.slot.patterns"]),
    (put("policy.patterns.0.ops.0", 3), ["policy.patterns.0", "3 primitives"]),
    (put("policy.patterns.0.ops.0", -1), ["patterns.0.ops.0"]),
    (put("policy.patterns.0.ops", [0, 1, 0, 1, 0]), ["policy.patterns.0", "cover"]),
    (put("policy.patterns.0.ops", [0, 1, 2] * 7), ["patterns.0.ops"]),
    (put("policy.patterns.0.shares.0", 0.0), ["policy.patterns.0", "positive share"]),
    (put("policy.patterns.0.shares", [1.0]), ["policy.patterns.0", "positive share"]),
    (put("policy.allotment.covers", [[0, 1]]), ["policy.allotment", "cover"]),
    (put("policy.allotment.covers", [[0, 1, 5]]), ["policy.allotment", "beyond"]),
    (put("policy.allotment.covers", [[0, 1, 2, 2]]), ["policy.allotment", "cover"]),
    (put("policy.allotment.redundant", [2]), ["policy.allotment", "redundant"]),
    (put("policy.allotment.names", ["a", "b", "c"]), ["policy.allotment", "names"]),
    (put("dictionary.0.primitive", "Muscle"), ["'advection'", "Muscle"]),
    (put("dictionary.0.primitive", "os:system"), ["'advection'", "os:system"]),
    (put("dictionary.0.options", {"cfl": 5.0}), ["dictionary.0", "cfl is 5.0"]),
    (put("dictionary.0.options", {"cfl": "a"}), ["dictionary.0", "MusclAdvection"]),
    (put("dictionary.0.options", {"speed": 1.0}), ["dictionary.0", "speed"]),
    (put("dictionary.0.options", {"cfl": {"a": 1}}), ["dictionary.0", "cfl is"]),
    (put("dictionary.0.options", {"cfl": {"a": {"b": 1}}}), ["dictionary.0.options.cfl"]),
    (put("dictionary.1.name", "advection"), ["dictionary", "twice"]),
    (put("dictionary", []), ["dictionary"]),
    (put("scope.boundary", ["open"]), ["scope.boundary", "open"]),
    (put("equation.coefficients", {"k": {"kind": "speed"}}), ["equation.coefficients.k.kind"]),
    (put("equation.coefficients", {"k": {"kind": "rate", "axis": 2}}), ["equation", "axis"]),
    (put("equation.speeds", ["light"]), ["equation", "unknown speed 'light'"]),
    (put("equation.features", ["growht"]), ["equation", "did you mean growth"]),
    (put("gate.confidence", 1.5), ["gate.confidence"]),
    (put("substeps", 65), ["substeps"]),
    (put("dictionary.0.arrays", True), ["dictionary.0", "misses its weights"]),
    (put("dictionary.0.fingerprint", "abc"), ["dictionary.0.fingerprint"]),
    (put("files", {"weights.safetensors": "0" * 64}), ["weights.safetensors", "missing"]),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[words[0] for _, words in CHANGES])
def test_a_sealed_file_with_a_wrong_field_is_refused(
    change: Callable[[dict[str, Any]], Any], words: list[str], folder: Path
) -> None:
    data = content(folder)
    change(data)
    rewrite(folder, sealed(data))
    line = refused(folder, *words)
    assert len(line) < 1000 and line.isprintable()


def test_a_position_policy_is_checked_too(folder: Path) -> None:
    data = content(folder)
    position = {"kind": "position", "allotment": data["policy"]["allotment"], "features": 2}
    good = {"longest": 7, "shortest": 3}
    theta = [0.1] * (7 * 4 + 1 + 4 * 2 + 3)
    rewrite(folder, sealed({**data, "policy": {**position, **good}, "theta": theta}))
    assert load_model(folder).theta.tolist() == theta
    for wrong, word in (
        ({"shortest": 9}, "policy.shortest"),
        ({"longest": 99}, "policy.position.longest"),
        ({"features": 3}, "policy.features"),
        ({"longest": 8}, "theta"),
    ):
        rewrite(folder, sealed({**data, "policy": {**position, **good, **wrong}, "theta": theta}))
        refused(folder, word)


@pytest.mark.parametrize("name", sorted(content(OLD)))
def test_a_file_of_schema_1_without_a_field_is_refused_in_one_line(name: str, folder: Path) -> None:
    data = content(OLD)
    del data[name]
    rewrite(folder, sealed(data) if name != "sha256" else data)
    refused(folder, "model.json")


@pytest.mark.parametrize(
    "name", ["../x", "..", "/etc/passwd", "a/b", "a\\b", ".hidden", "", "a..b", "C:x", "x\0y", "ä", "~x", "a" * 101]
)
def test_odd_paths_are_refused(name: str, folder: Path) -> None:
    rewrite(folder, sealed({**content(folder), "files": {name: "0" * 64}}))
    refused(folder, "field 'files'", "plain name")


def test_listed_files_must_be_there_and_whole(folder: Path) -> None:
    weights = folder / "weights.safetensors"
    weights.write_bytes(safetensors.numpy.save({}))
    rewrite(
        folder, sealed({**content(folder), "files": {weights.name: hashlib.sha256(weights.read_bytes()).hexdigest()}})
    )
    assert same(load_model(folder), load_model(GOOD))
    weights.write_bytes(weights.read_bytes() + b" ")
    refused(folder, weights.name, "damaged")
    weights.unlink()
    refused(folder, weights.name, "missing")
    weights.mkdir()
    refused(folder, weights.name, "missing")


# ------------------------------------------------------------------------------------------- damage of any kind


def loads_or_refuses(folder: Path, model: Model) -> None:
    try:
        again = load_model(folder)
    except HyCOPError as error:
        assert "\n" not in str(error)
    else:
        assert same(again, model)


def test_a_flipped_bit_never_passes_unnoticed(folder: Path) -> None:
    path, model = folder / "model.json", load_model(GOOD)
    whole = path.read_bytes()
    for position in range(0, len(whole) * 8, 29):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(bytes(damaged))
        loads_or_refuses(folder, model)


@properties
@given(st.data())
def test_cut_or_overwritten_files_never_pass_unnoticed(folder: Path, data: st.DataObject) -> None:
    path = folder / "model.json"
    whole = (GOOD / "model.json").read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 200)))
    path.write_bytes(whole[:start] + data.draw(st.binary(max_size=20)) + whole[end:])
    loads_or_refuses(folder, load_model(GOOD))


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for step, part in steps for place in places(part, (*way, step)))]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10)
    | st.sampled_from([2**70, 1e300, -1e-300, 0.5])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["inf", "gain", "literal", "position", "advection", "SABA3", "wall", "Rk4Logistic", "growth"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)


@pytest.mark.parametrize("good", [OLD, GOOD], ids=["schema 1", "schema 2"])
@properties
@given(st.data())
def test_any_sealed_value_in_any_field_is_refused_or_makes_a_model(
    folder: Path, good: Path, data: st.DataObject
) -> None:
    """As if an adversary had written the file and its hash: errors are typed all the same, and what loads runs."""
    whole = content(good)
    *way, last = data.draw(st.sampled_from(places(whole)[1:]))
    target: Any = whole
    for step in way:
        target = target[step]
    target[last] = data.draw(JSON)
    rewrite(folder, sealed(whole))
    try:
        model = load_model(folder)
    except HyCOPError as error:
        assert "\n" not in str(error)
    else:
        u0 = np.full((2, len(model.equation.channels), *(8,) * model.box.axes), 0.5)
        with np.errstate(all="ignore"):
            query = HyCOP.of(model).query(u0, {"cx": 0.5, "Dx": 0.1, "r": 0.3}, 0.2)
            assert model.programs(query).ops.shape[0] == 2
