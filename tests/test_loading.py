"""Primitives found by module or by file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hycop.conformance import load_primitive
from hycop.errors import InvalidInputError, UnknownNameError

SOURCE = """
from __future__ import annotations
from dataclasses import dataclass
from helper_of_mine import EXACT

@dataclass(frozen=True)
class Decay:
    rate: float = 1.0
    advances = frozenset({"decay"})
    order = EXACT
    def flow(self, u, duration, setting): return u
    def work(self, u, duration, setting): return u

class Scaled(Decay):
    def __init__(self, scale): ...

ready = Decay(2.0)
number = 3
class Half:
    advances = frozenset({"decay"})
    def flow(self, u, duration, setting): return u
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "decay_of_mine.py").write_text(SOURCE)
    (tmp_path / "helper_of_mine.py").write_text("from hycop.primitive import EXACT\n")
    (tmp_path / "broken_of_mine.py").write_text("value = 1 / 0\n")
    (tmp_path / "needy_of_mine.py").write_text("import no_such_package.inside\n")
    (tmp_path / "garbled_of_mine.py").write_text("def f(:\n")
    (tmp_path / "leaving_of_mine.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.endswith("_of_mine")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def test_loads_by_module_and_by_file(folder: Path) -> None:
    path = list(sys.path)
    assert repr(load_primitive("hycop.primitives:MusclAdvection")) == "MusclAdvection(cfl=0.5)"
    assert repr(load_primitive("decay_of_mine:Decay")) == "Decay(rate=1.0)"
    assert repr(load_primitive("decay_of_mine.py:ready")) == "Decay(rate=2.0)"
    assert repr(load_primitive(f"{folder / 'decay_of_mine.py'}:Decay")) == "Decay(rate=1.0)"
    assert sys.path == path


BAD_TARGETS: dict[str, tuple[type[Exception], str]] = {
    "UpwindAdvection": (InvalidInputError, "give module:Name, path/to/file.py:Name or a network folder"),
    ":Decay": (InvalidInputError, "give module:Name, path/to/file.py:Name or a network folder"),
    "decay_of_mine:": (InvalidInputError, "give module:Name, path/to/file.py:Name or a network folder"),
    "no_such_module_at_all:Decay": (InvalidInputError, "there is no module 'no_such_module_at_all'"),
    "no_such.module:Decay": (InvalidInputError, "there is no module 'no_such'"),
    "hycop.nothing:Decay": (InvalidInputError, "there is no module 'hycop.nothing'"),
    "absent_of_mine.py:Decay": (InvalidInputError, "absent_of_mine.py: there is no such file"),
    "decay_of_mine:Decoy": (UnknownNameError, "did you mean Decay"),
    "decay_of_mine:zzz": (UnknownNameError, "known: Decay, Scaled, ready (in decay_of_mine)"),
    "decay_of_mine:number": (InvalidInputError, "int is not a primitive, it lacks advances, order, flow, work"),
    "decay_of_mine:Half": (InvalidInputError, "Half is not a primitive, it lacks order, work"),
    "decay_of_mine:Scaled": (InvalidInputError, "cannot be made without arguments"),
    "broken_of_mine:Decay": (InvalidInputError, "importing it raised ZeroDivisionError: division by zero"),
    "broken_of_mine.py:Decay": (InvalidInputError, "importing it raised ZeroDivisionError: division by zero"),
    "needy_of_mine:Decay": (InvalidInputError, "importing it raised ModuleNotFoundError: No module named 'no_such_p"),
    "garbled_of_mine:Decay": (InvalidInputError, "importing it raised SyntaxError"),
    "leaving_of_mine:Decay": (InvalidInputError, "importing it raised SystemExit: 3"),
    "..:Decay": (InvalidInputError, "..: importing it raised"),
}


@pytest.mark.parametrize(("target", "expected"), BAD_TARGETS.items(), ids=BAD_TARGETS)
@pytest.mark.usefixtures("folder")
def test_bad_targets_say_what_is_wrong(target: str, expected: tuple[type[Exception], str]) -> None:
    kind, message = expected
    with pytest.raises(kind) as caught:
        load_primitive(target)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
