"""Networks and foreign code on the command line, as somebody uses them who breaks things: one line, exit code 2, and
nothing is written."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra 'learned'")

import hycop
from hycop.storage.network import Network, save_network
from tests.helpers import hycop_command, tiny_network

SMALL = {"width": 4, "modes": 4, "layers": 1, "film": 8}
CODE = """
from hycop.primitives import ExternalProgram
gone = ExternalProgram(command=("./nowhere",), advances={"diffusion"})
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with networks (ad for adr2d, line for ad1d, alien for no known problem), a model, data and code."""
    place = tmp_path_factory.mktemp("place")
    ad = tiny_network(("advection", "diffusion"), ("cx", "cy", "Dx", "Dy"), 2, **SMALL)
    line = tiny_network(("advection",), ("cx",), 1, **SMALL)
    for name, solver, problem in (("ad", ad, "adr2d"), ("line", line, "ad1d"), ("alien", ad, "mars")):
        save_network(Network(solver, problem, {}, 0, "nothing", [0.5]), place / name)
    shutil.copytree(Path(__file__).parent / "models" / "schema2", place / "model")
    hycop.save(hycop.problem("adr2d").sample(96, "train", 0, shape=(8, 8), estimated=0), place / "data.nc")
    (place / "empty").mkdir()
    (place / "file").write_text("text")
    (place / "code.py").write_text(CODE)
    return place


PRETRAIN = "pretrain adr2d --out new --processes advection,diffusion"
TRAIN = "train adr2d --out new --data data.nc --set max_steps=3 --set tries=1 --set rounds=1"
REFUSED = {
    "pretrain mars --out new --processes advection": "unknown problem 'mars'",
    "pretrain adr2d --out new --processes advection,advektion": "unknown process 'advektion': did you mean",
    "pretrain adr2d --out new --processes advection,advection": "each once",
    "pretrain adr2d --out new --processes ,": "unknown process ''",
    "pretrain adr2d --out ad --processes advection": "ad: holds a network already",
    "pretrain adr2d --out ad --processes advection --resume": "ad: holds a network already",
    "pretrain adr2d --out model --processes advection": "model: holds a model already",
    "pretrain adr2d --out file --processes advection": "file: cannot be made a folder",
    f"{PRETRAIN} --network transformer": "unknown network 'transformer'",
    f"{PRETRAIN} --preset fast": "unknown preset 'fast'",
    f"{PRETRAIN} --set rounds": "give key=value",
    f"{PRETRAIN} --set rounds=0": "setting rounds is 0",
    f"{PRETRAIN} --set rate=nan": "setting rate",
    f"{PRETRAIN} --set width=100000": "width is 100000",
    f"{PRETRAIN} --set shape=8": "shape (8,): problem adr2d has 2 axes",
    f"{PRETRAIN} --set shape=8x8x8": "problem adr2d has 2 axes",
    f"{PRETRAIN} --set shape=0x8": "at least one cell",
    f"{PRETRAIN} --set shape=wide": "give whole numbers with 'x' between them",
    f"{PRETRAIN} --network pointwise --set modes=3": "network pointwise has no modes",
    f"{PRETRAIN} --seed -1": "--seed is -1",
    f"{PRETRAIN} --data data.nc": "data.nc: the data are solutions of advection, diffusion, reaction",
    f"{PRETRAIN} --json nowhere/x.json": "there is no folder nowhere",
    "evaluate empty": "empty: has no model.json",
    "evaluate alien": "unknown problem 'mars'",
    "evaluate ad --split mars": "unknown split 'mars'",
    "evaluate ad --samples 0": "--samples is 0",
    "evaluate ad --times 0.2,0.1": "--times '0.2,0.1'",
    "evaluate ad --times 1e9 --samples 1": "sub-steps of a network; make it shorter",
    "evaluate ad --compare": "--compare has no meaning for the network ad",
    "evaluate ad --seed -1": "seed is -1",
    "check empty": "empty: has no net.json; it is not a network folder",
    "check nowhere": "give module:Name, path/to/file.py:Name or a network folder",
    "check ad:NeuralOperator": "unknown primitive 'NeuralOperator'",
    "check code.py:gone": "there is no program './nowhere'",
    "check code.py:": "does not say where",
    f"{TRAIN} --primitive ad": "give key=value, as ad=nets/ad",
    f"{TRAIN} --primitive ad=": "give a primitive or a network folder",
    f"{TRAIN} --primitive ad=nowhere": "unknown primitive 'nowhere'",
    f"{TRAIN} --primitive ad=./nowhere": "nowhere: there is no such folder",
    f"{TRAIN} --primitive ad=model": "model: has no net.json",
    f"{TRAIN} --primitive a/b=ad --only a/b,reaction": "a name has letters",
    f"{TRAIN} --primitive ad=line --only ad,reaction": "ad=line: the network takes channels u in 1D, but adr2d",
    f"{TRAIN} --primitive ad=ad --primitive ad=line": "ad is given twice",
    f"{TRAIN} --primitive ad=ad --only ad,reaktion": "unknown primitive 'reaktion': did you mean reaction",
    f"{TRAIN} --primitive ad=ad --only ad,ad,reaction": "a name is given twice",
    f"{TRAIN} --primitive ad=ad --only ad": "reaction",
    f"{TRAIN} --primitive reaction=ad": "reaction",
    f"{TRAIN} --primitive ad=NeuralOperator": "is made from weights",
    f"{TRAIN} --primitive diffusion=ExternalProgram": "needs to know what it runs",
    f"{TRAIN} --primitive diffusion=code.py:gone": "code.py:gone: is code, which a model folder cannot hold",
    "train burgers1d --out new --primitive advection=ad": "takes channels u in 2D, but burgers1d has u in 1D",
    "swap model new --primitive advection=./nowhere": "nowhere: there is no such folder",
    "swap model new --primitive advection=empty": "empty: has no net.json",
    "swap model new --primitive advection=ad": "advances diffusion too",
    "swap model new --primitive reaction=line": "would leave reaction without a primitive",
    "swap model new --primitive advection=NeuralOperator": "is made from weights",
    "swap model new --primitive advection=code.py:gone": "is code",
    "swap model new --primitive advection=line --boundary wall": "does not know the boundary wall",
    "swap model ad --primitive advection=line": "ad: exists already",
    "swap ad new --primitive advection=line": "ad: has no model.json",
    "predict ad data.nc new.nc": "ad: has no model.json",
    "program ad": "ad: has no model.json",
}


def contents(place: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in place.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize("command", REFUSED)
def test_a_mistake_is_one_line_and_writes_nothing(command: str, place: Path) -> None:
    before = contents(place)
    result = hycop_command(*shlex.split(command), folder=place)
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1 and REFUSED[command] in result.stderr and result.stdout == ""
    assert contents(place) == before


def test_a_shape_on_a_line_is_one_number(tmp_path: Path) -> None:
    tiny = [word for pair in ("shape=8", "rounds=1", "samples=4", "held_out=2", "width=4") for word in ("--set", pair)]
    words = ["pretrain", "advection1d", "--out", "net", "--processes", "advection", *tiny]
    made = hycop_command(*words, folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == ["lock", "net.json", "weights.safetensors"]
