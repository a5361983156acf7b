"""Network folders, and models with networks, that are not ours, not whole or not right: refused in one line, before
memory is allocated for what they claim."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs the extra 'learned'")

import hycop
from hycop.errors import HyCOPError
from hycop.primitives.learned import NeuralOperator
from hycop.storage import sealed
from hycop.storage.network import Network, save_network
from hycop.storage.registry import described
from hycop.storage.weights import LARGEST, read_weights, write_weights
from tests.helpers import tiny_network

WEIGHTS = "weights.safetensors"
MODEL = Path(__file__).parent / "models" / "schema2"


def network(family: str = "fno-film", **options: int) -> NeuralOperator:
    found: NeuralOperator = tiny_network(("advection",), ("cx",), 1, family, **options)
    return found


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A network folder, and a model whose advection is that network."""
    place, solver = tmp_path_factory.mktemp("originals"), network(width=4, modes=4, layers=1, film=8)
    save_network(Network(solver, "ad1d", {}, 0, "nothing", [0.5]), place / "net")
    shutil.copytree(MODEL, place / "model")
    write_weights(place / "model" / WEIGHTS, {"advection": solver.arrays()})
    edited(place / "model", lambda content: content["dictionary"].__setitem__(0, described("advection", solver)))
    resealed(place / "model")
    return {"net": place / "net", "model": place / "model"}


@pytest.fixture(params=["net", "model"])
def folder(request: pytest.FixtureRequest, originals: dict[str, Path], tmp_path: Path) -> Path:
    shutil.copytree(originals[request.param], tmp_path / request.param)
    return tmp_path / request.param


def load(folder: Path) -> NeuralOperator:
    if folder.name == "net":
        return hycop.load_primitive(folder)
    found = hycop.HyCOP.load(folder).dictionary["advection"]
    assert isinstance(found, NeuralOperator)
    return found


# somebody who knows how the files are sealed


def edited(folder: Path, change: Callable[[Any], object]) -> None:
    """Changes the JSON of a folder and seals it again."""
    (path,) = folder.glob("*.json")
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(sealed(content)))


def resealed(folder: Path) -> None:
    """Writes the hash of the weights as they are."""
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    edited(folder, lambda content: content.update(files={WEIGHTS: digest}))


def options(**values: object) -> Callable[[Path], None]:
    return part(lambda entry: entry["options"].update(values))


def plan(**values: object) -> Callable[[Path], None]:
    return part(lambda entry: entry["options"]["architecture"].update(values))


def part(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        edited(folder, lambda content: change(content.get("primitive") or content["dictionary"][0]))

    return damage


def arrays(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        weights = read_weights(folder / WEIGHTS)
        change(next(iter(weights.values())))
        write_weights(folder / WEIGHTS, weights)
        resealed(folder)

    return damage


def each(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    return arrays(lambda held: held.update({name: change(array) for name, array in held.items()}))


def claiming(count: int, size: int) -> Callable[[Path], None]:
    """A header that claims an array of so many numbers, and a file of so many bytes behind it, all holes."""

    def damage(folder: Path) -> None:
        (group,) = read_weights(folder / WEIGHTS)
        entry = {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}
        header = json.dumps({f"{group}/film.hidden.bias": entry}).encode()
        with (folder / WEIGHTS).open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size)
        if size < 2**20:
            resealed(folder)

    return damage


def replaced(make: Callable[[Path, Path], object]) -> Callable[[Path], None]:
    """Something else in the place of the weights; the file itself lies elsewhere."""

    def damage(folder: Path) -> None:
        elsewhere = folder.parent / "elsewhere"
        shutil.move(folder / WEIGHTS, elsewhere)
        make(folder / WEIGHTS, elsewhere)

    return damage


def cut(share: float) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(content[: int(share * (len(content) - 1))])
        resealed(folder)

    return damage


HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "huge architecture": (plan(width=512, modes=256, layers=8), "at most"),
    "a large architecture without its weights": (plan(width=512, modes=256, layers=1), "has shape"),
    "unknown architecture": (plan(family="transformer"), "unknown network 'transformer'"),
    "code as architecture": (plan(family="os:system"), "unknown network 'os:system'"),
    "another architecture": (plan(family="pointwise", width=4, layers=1), "unknown option|does not belong|is missing"),
    "unknown option": (plan(heads=8), "unknown option 'heads'"),
    "no layers": (plan(layers=0), "layers is 0"),
    "half a layer": (plan(layers=0.5), "layers is 0.5"),
    "other sizes": (plan(width=5), "has shape"),
    "too many axes": (plan(axes=2), "one boundary for each"),
    "a number of another axis": (options(numbers={"cx": ["velocity", 2]}), "no such axis"),
    "processes that are no names": (options(processes=[1, 2]), "names are needed"),
    "processes that are letters": (options(processes="advection"), "names are needed"),
    "ranges of text": (options(states={"u": ["a", "b"]}), "states of a network|ufunc|isfinite"),
    "a range that ends before it begins": (options(ranges={"cx": [2, 1]}), "must not end before it begins"),
    "an unknown field of the network": (options(run="rm"), "unexpected keyword argument 'run'"),
    "code": (part(lambda entry: entry.update(primitive="os:system")), "os:system"),
    "a missing array": (arrays(lambda held: held.popitem()), "is missing"),
    "an array too many": (arrays(lambda held: held.update(more=np.zeros(1, np.float32))), "does not belong"),
    "wrong shapes": (each(lambda array: array[None]), "has shape"),
    "double precision": (each(lambda array: array.astype(np.float64)), "is F64"),
    "whole numbers": (each(lambda array: array.astype(np.int32)), "is I32"),
    "NaN": (each(lambda array: array * np.nan), "NaN or infinite"),
    "infinity": (each(lambda array: array + np.inf), "NaN or infinite"),
    "terabytes that are not there": (claiming(2**40, 64), "the file holds 64"),
    "more numbers than there can be": (claiming(2**62, 64), "the file holds 64|offsets"),
    "terabytes of holes": (claiming(2**38, 2**40), f"more than the {LARGEST}"),
    "gigabytes of holes": (claiming(2**29, 2**31), "has shape|is missing"),
    "a cut file": (cut(0.5), "damaged"),
    "a cut header": (cut(0.01), "damaged"),
    "an empty file": (cut(0.0), "damaged"),
    "bad hash": (lambda folder: resealed(folder) or (folder / WEIGHTS).write_bytes(b"0" * 99), "damaged"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), "missing"),
    "a link": (replaced(lambda here, there: here.symlink_to(there)), "is a link"),
    "a link to a device": (replaced(lambda here, there: here.symlink_to("/dev/zero")), "is a link"),
    "a link to itself": (replaced(lambda here, there: here.symlink_to(here)), "cannot be read|is a link|missing"),
    "a pipe": (replaced(lambda here, there: os.mkfifo(here)), "missing|plain file"),
    "a folder": (replaced(lambda here, there: here.mkdir()), "missing|plain file"),
    "another listed file": (
        lambda folder: edited(folder, lambda content: content["files"].update(more="0" * 64)),
        "files|missing",
    ),
    "another listed path": (
        lambda folder: edited(folder, lambda content: content.update(files={"../net/x": "0" * 64})),
        "is needed|plain name",
    ),
    "an unknown field": (lambda folder: edited(folder, lambda content: content.update(run="rm")), "unknown field"),
    "a newer schema": (
        lambda folder: edited(folder, lambda content: content.update(schema_version=9)),
        "newer hycop",
    ),
    "changed by hand": (
        lambda folder: [path.write_text(path.read_text().replace("0.25", "0.26")) for path in folder.glob("*.json")],
        "sha256",
    ),
    "no folder": (shutil.rmtree, "no such folder"),
}


@pytest.fixture
def peak() -> Iterator[Callable[[], int]]:
    """Bytes of memory that this process has held at most since the test began, beyond those of its beginning."""

    def highest() -> int:
        lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])

    Path("/proc/self/clear_refs").write_text("5")
    before = highest()
    yield lambda: highest() - before


def test_memory_is_measured(peak: Callable[[], int]) -> None:
    np.ones(2**24)
    assert peak() > 2**26


def test_the_folders_load_as_they_were_made(folder: Path) -> None:
    u, setting = network().example(0)
    (folder / "notes.txt").write_text("files that are not listed are not read")
    found = load(folder)
    assert hycop.fingerprint(found) == hycop.fingerprint(network(width=4, modes=4, layers=1, film=8))
    assert np.isfinite(found.flow(u, np.full(len(u), 0.1), setting)).all()


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_hostile_folder_is_refused_in_one_line_without_memory(
    fault: str, folder: Path, peak: Callable[[], int]
) -> None:
    damage, reason = HOSTILE[fault]
    damage(folder)
    with pytest.raises(HyCOPError, match=reason) as caught:
        load(folder)
    line = str(caught.value)
    assert line.isprintable() and len(line) < 1000 and str(folder) in line
    assert peak() < 2**26


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way, *(place for step, inner in steps for place in places(inner, (*way, step)))]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10)
    | st.sampled_from(
        [2**70, 1e300, -1e-300, 0.5, 512, "inf", "wall", "u", "rate", "time", "other", "fno-film", "\x1b"]
    )
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["u", "cx", "v"]), inner, max_size=2),
    max_leaves=5,
)


@given(data=st.data())
@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_sealed_value_in_any_field_is_refused_or_makes_a_network(tmp_path: Path, data: st.DataObject) -> None:
    """As if an adversary had written the file and its hash: errors are typed all the same, and what loads runs."""
    place = tmp_path / "net"
    if not place.exists():
        save_network(Network(network("pointwise", width=4), "ad1d", {"rounds": 3}, 0, "nothing", [0.5]), place)
        shutil.copy(place / "net.json", tmp_path / "whole.json")
    whole = json.loads((tmp_path / "whole.json").read_text())
    *way, last = data.draw(st.sampled_from(places(whole)[1:]))
    target: Any = whole
    for step in way:
        target = target[step]
    target[last] = data.draw(VALUES)
    (place / "net.json").write_text(json.dumps(sealed(whole)))
    try:
        found = hycop.load_primitive(place)
        u, setting = found.example(0)
        assert np.isfinite(found.flow(u, np.full(len(u), 1e-3), setting)).all()
        assert isinstance(repr(found), str) and found.outside(u, setting).shape == (len(u),)
    except HyCOPError as error:
        assert str(error).isprintable()
