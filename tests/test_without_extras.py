"""What a user sees without the extras: everything but what needs them, and one line that says what to install.

``make test-core`` runs this where torch is really missing; elsewhere torch is made to look so.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.executors import executor
from hycop.networks import FAMILIES, MissingTorchError
from hycop.primitives.learned import NeuralOperator
from hycop.storage import ModelError, sealed
from hycop.storage.network import Network, save_network
from hycop.storage.registry import described
from hycop.storage.weights import write_weights
from tests.helpers import hycop_command

MODEL = Path(__file__).parent / "models" / "schema2"
ADVICE = "pip install 'hycop[learned]'"
EXTRAS = ("torch", "neuralop", "onnxruntime", "onnx", "tesseract_core", "dask", "distributed", "panel", "bokeh")


def bare(family: str = "fno-film") -> NeuralOperator:
    """A network without weights: that much of it is data."""
    sizes = {"axes": 1, "channels": 1, "numbers": 1, "timed": 1}
    ranges = {"u": (0.0, 1.0)}, {"cx": ("velocity", 0)}, {"cx": (0.5, 1.0)}
    return NeuralOperator({"family": family, **sizes}, ("advection",), *ranges, 0.25, ("periodic",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A network folder, where there is no torch."""
    monkeypatch.setitem(sys.modules, "torch", None)
    save_network(Network(bare(), "ad1d", {}, 0, "nothing", [0.5]), tmp_path / "net")
    return tmp_path / "net"


@pytest.fixture
def hybrid(folder: Path, tmp_path: Path) -> Path:
    """A model folder whose advection is a network."""
    shutil.copytree(MODEL, tmp_path / "model")
    path, weights = tmp_path / "model" / "model.json", tmp_path / "model" / "weights.safetensors"
    content = json.loads(path.read_text())
    write_weights(weights, {"advection": {"weight": np.zeros(1)}})
    content["dictionary"][0] = {**described("advection", bare()), "arrays": True}
    content["files"] = {weights.name: hashlib.sha256(weights.read_bytes()).hexdigest()}
    path.write_text(json.dumps(sealed(content)))
    return path.parent


def test_hycop_and_its_command_line_import_no_extra() -> None:
    script = "import sys, hycop, hycop.cli, hycop.primitives.learned, hycop.primitives.foreign, hycop.pretraining\n"
    script += f"print([name for name in {EXTRAS} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_python_says_which_extra_to_install(folder: Path, hybrid: Path) -> None:
    for family in FAMILIES:
        with pytest.raises(MissingTorchError, match=r"^network [a-z-]+ needs torch; install it with: pip install"):
            bare(family).plan.build()
    with pytest.raises(MissingTorchError, match="needs torch"):
        hycop.pretrain(hycop.problem("ad1d"), ["advection"], folder=folder.parent / "new")
    for load in (hycop.load_primitive, hycop.HyCOP.load):
        with pytest.raises(ModelError) as caught:
            load(folder if load is hycop.load_primitive else hybrid)
        assert "\n" not in str(caught.value) and ADVICE in str(caught.value)
    assert not (folder.parent / "new").exists()


def test_a_missing_neuraloperator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    users = ("neuralop.", "hycop.networks.fno_film", "hycop.networks.library", "hycop.networks.spectral")
    for name in [name for name in sys.modules if name.startswith(users)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "neuralop", None)
    with pytest.raises(MissingTorchError, match=r"needs neuralop.*; install it with"):
        bare().plan.build()


COMMANDS = [
    "pretrain ad1d --out new --processes advection",
    "pretrain ad1d --out new --processes diffusion --network pointwise --json report.json",
    "train ad1d --out new --primitive advection=net",
    "train ad1d --out new --primitive a=net --only a,diffusion --json report.json",
    "evaluate net",
    "check net",
    "evaluate model",
    "program model --sample 0",
    "predict model in.nc new.nc",
    "swap model new --primitive advection=SpectralAdvection",
    "swap numerical new --primitive advection=net",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_which_extra_to_install(command: str, hybrid: Path) -> None:
    place = hybrid.parent
    shutil.copytree(MODEL, place / "numerical")
    before = sorted(place.rglob("*"))
    result = hycop_command(*command.split(), folder=place)
    assert result.returncode == 2, result.stderr
    assert result.stderr.count("\n") == 1 and ADVICE in result.stderr
    assert sorted(place.rglob("*")) == before


def test_the_cluster_says_which_extra_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(hycop.HyCOPError, match=r"pip install 'hycop\[cluster\]'"):
        executor("dask").open()
    result = hycop_command("train", "ad1d", "--out", "new", "--executor", "dask", folder=tmp_path)
    assert result.returncode == 2 and "pip install 'hycop[cluster]'" in result.stderr
    assert not list(tmp_path.iterdir())
