"""A hundred faults of each kind of foreign primitive: a typed error each, no process and no file left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hycop.dictionary import Dictionary
from hycop.errors import ForeignError, HyCOPError
from hycop.execution import run
from hycop.grid import Array, Grid
from hycop.primitives import ExactLogistic, ExternalProgram, ForeignFunction, OnnxNetwork, TesseractSolver
from hycop.program import Program
from hycop.query import Channel, Query, Setting

FAULTS, BATCH = 100, 4
SLOW, MEMORY = 1.0, 2**26  # seconds and bytes that a faulty program may take


def query(fault: float, sample: int) -> Query:
    """Four states of which one meets the fault."""
    faults = np.zeros(BATCH)
    faults[sample] = fault
    setting = Setting(Grid.box((6, 5), batch=BATCH), (Channel("u"),), {"fault": faults, "r": 1.0})
    return Query(np.random.default_rng(0).random((BATCH, 1, 6, 5)), setting, np.ones(BATCH))


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files, which must be empty in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert not list(folder.iterdir())


def processes(mark: str) -> list[str]:
    """The command lines of all living processes that have a text in theirs."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in line:
            found.append(line)
    return found


def inject(primitive: object, faults: list[float], label: str) -> None:
    """Runs a program in which step 2 of 3 fails on one sample, for each of the faults."""
    dictionary = Dictionary({"reaction": ExactLogistic(), "odd": primitive})  # type: ignore[dict-item]
    program = Program.parse("reaction 0.1, odd 0.2, reaction 0.1")
    sound = run(program, dictionary, query(0, 0))
    for index, fault in enumerate(faults):
        sample = index % BATCH
        with pytest.raises(ForeignError, match=rf"^sample {sample}[ :].*at step 2 of 3 \(odd 0.2\)") as caught:
            run(program, dictionary, query(fault, sample))
        assert "\n" not in str(caught.value) and (label in str(caught.value) or "NaN" in str(caught.value)), fault
    assert np.array_equal(run(program, dictionary, query(0, 0)), sound)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    out = tmp_path_factory.mktemp("faulty") / "faulty"
    subprocess.run([compiler, "-O1", "-o", out, Path(__file__).with_name("foreign_faults.c")], check=True)
    return out


@pytest.mark.parametrize("persistent", [False, True], ids=["files", "pipes"])
def test_programs(binary: Path, persistent: bool) -> None:
    program = ExternalProgram(
        command=(binary, "--serve") if persistent else (binary,),
        persistent=persistent,
        arguments=("duration", "fault"),
        advances={"odd"},
        timeout=SLOW,
        memory=MEMORY,
    )
    quick = [float(fault) for fault in range(1, 20) if fault not in (4, 18)]
    inject(program, [*(6 * quick)[: FAULTS - 3], 4.0, 4.0, 18.0], "program faulty")
    program.close()
    assert not processes(str(binary))


def misbehave(u: Array, duration: Array, setting: Setting) -> object:
    """Gives the state back, or commits the fault that the setting names."""
    fault = int(setting.param("fault").max())
    if fault in KILLING:
        KILLING[fault]()
    return RETURNED.get(fault, lambda u: u)(u)


def exhaust() -> None:
    hoard = []
    while True:
        hoard.append(bytearray(2**26))


def divide() -> None:
    raise ZeroDivisionError("of\ntwo lines")


RETURNED: dict[int, Callable[[Array], object]] = {
    1: lambda u: None,
    2: lambda u: u[..., 1:],
    3: lambda u: u * np.nan,
    4: lambda u: "garbage",
    5: lambda u: u + 1j,
    6: lambda u: [[1.0], [2.0, 3.0]],
    7: lambda u: np.broadcast_to(u, (10**9, *u.shape)),
    8: lambda u: u[0],
    9: lambda u: u.astype(object),
    10: lambda u: u / 0.0 if u.any() else u,
}
KILLING: dict[int, Callable[[], object]] = {
    11: divide,
    12: sys.exit,
    13: lambda: [][1],
    20: lambda: time.sleep(60),
    21: lambda: os.kill(os.getpid(), signal.SIGSEGV),
    23: exhaust,
}


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("batched", [False, True], ids=["samples", "batches"])
def test_functions(batched: bool) -> None:
    function = ForeignFunction(function=misbehave, batched=batched, advances={"odd"})
    # the function does the same to a whole batch, and then only an error tells which sample was meant
    faults = [float(fault) for fault in range(1, 14) if not (batched and fault in (3, 10))]
    inject(function, (10 * faults)[:FAULTS], "function misbehave")


@pytest.mark.validate
def test_functions_in_processes_of_their_own() -> None:
    """Of a hundred faults three kill their process, since a new one takes a second or two to start."""
    function = ForeignFunction(function=misbehave, advances={"odd"}, timeout=2.0, memory=2**32)
    harmless = [float(fault) for fault in range(1, 14)]
    inject(function, [*(8 * harmless)[: FAULTS - 3], 20.0, 21.0, 23.0], "function misbehave")
    function.close()
    assert not processes("foreign.isolated")


def test_networks() -> None:
    pytest.importorskip("onnx", reason="needs the extra 'onnx', and onnx")
    content = faulty_graph()
    network = OnnxNetwork(model=content, arguments=("duration", "fault"), advances={"odd"}, timeout=SLOW)
    inject(network, [*(25 * [1.0, 2.0, 4.0, 5.0])[: FAULTS - 2], 3.0, 3.0], "ONNX network")
    for cut in (0, 10, len(content) // 2):
        broken = OnnxNetwork(model=content[:cut], arguments=("duration", "fault"), advances={"odd"})
        with pytest.raises(HyCOPError, match="not an ONNX graph that can be run"):
            broken.flow(query(0, 0).u0, np.ones(BATCH), query(0, 0).setting)


def faulty_graph() -> Array:
    """A graph that adds to the state what each fault needs: a wrong shape, NaN, a loop without end, too much memory."""
    from onnx import TensorProto, helper

    def value(name: str, shape: list[int | str], kind: int = TensorProto.DOUBLE) -> object:
        return helper.make_tensor_value_info(name, kind, shape)

    def constant(name: str, number: float, kind: int = TensorProto.DOUBLE) -> object:
        return helper.make_tensor(name, kind, [], [number])

    def branch(fault: float, nodes: list[object], otherwise: str, name: str) -> list[object]:
        """name = the outcome of the nodes if this fault is asked for, else what there was before."""
        then = helper.make_graph(nodes, f"then{name}", [], [value(f"{name}_then", ["a", "b", "c", "d"])])
        same = helper.make_node("Identity", [otherwise], [f"{name}_else"])
        other = helper.make_graph([same], f"else{name}", [], [value(f"{name}_else", ["a", "b", "c", "d"])])
        return [
            helper.make_node("Equal", ["fault", f"number{fault}"], [f"is{name}"]),
            helper.make_node("If", [f"is{name}"], [name], then_branch=then, else_branch=other),
        ]

    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["more"]), helper.make_node("Identity", ["v"], ["w"])],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", ["a", "b", "c", "d"])],
        [value("more", [], TensorProto.BOOL), value("w", ["a", "b", "c", "d"])],
    )
    faults = [
        [helper.make_node("Transpose", ["u"], ["one_then"], perm=[0, 1, 3, 2])],
        [helper.make_node("Mul", ["u", "nan"], ["two_then"])],
        [helper.make_node("Loop", ["", "true", "u"], ["three_then"], body=body)],
        [helper.make_node("Expand", ["u", "huge"], ["four_then"])],
        [helper.make_node("Reshape", ["u", "bad"], ["five_then"])],
    ]
    nodes, before = [], "u"
    for number, (made, name) in enumerate(zip(faults, ("one", "two", "three", "four", "five"), strict=True), 1):
        nodes += branch(number, made, before, name)  # type: ignore[arg-type]
        before = name
    nodes.append(helper.make_node("Identity", [before], ["out"]))
    constants = [constant(f"number{number}", float(number)) for number in range(1, 6)]
    constants += [constant("nan", np.nan), constant("true", True, TensorProto.BOOL)]
    constants.append(helper.make_tensor("huge", TensorProto.INT64, [5], [10**9, 10**3, 1, 6, 5]))
    constants.append(helper.make_tensor("bad", TensorProto.INT64, [2], [7, 7]))
    inputs = [value("u", [1, 1, "x", "y"]), value("duration", []), value("fault", [])]
    graph = helper.make_graph(nodes, "faulty", inputs, [value("out", ["a", "b", "c", "d"])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return np.frombuffer(model.SerializeToString(), dtype=np.uint8)


TESSERACT = """
from typing import Any
import os, time
import numpy as np
from pydantic import BaseModel
from tesseract_core.runtime import Array, Float64

class InputSchema(BaseModel):
    u: Array[(None, None, None), Float64]
    dt: float
    fault: float

class OutputSchema(BaseModel):
    u: Any

def apply(inputs: InputSchema) -> OutputSchema:
    u = inputs.u
    match int(inputs.fault):
        case 1: raise ZeroDivisionError
        case 2: u = u[..., 1:]
        case 3: u = u * np.nan
        case 4: u = "garbage"
        case 5: u = None
        case 6: raise SystemExit(3)
        case 7: u = u.tolist()[0]
        case 20: time.sleep(60)
    return OutputSchema(u=u)
"""
FIELDS = {"u": "state", "dt": "duration", "fault": "fault"}


@pytest.mark.parametrize(
    "own",
    [
        pytest.param(False, id="in process"),
        pytest.param(True, id="in processes of its own", marks=pytest.mark.validate),
    ],
)
def test_tesseracts(own: bool, tmp_path: Path) -> None:
    pytest.importorskip("tesseract_core", reason="needs the extra 'tesseract'")
    pytest.importorskip("lz4", reason="needs the extra 'tesseract'")
    (tmp_path / "tesseract_api.py").write_text(TESSERACT)
    solver = TesseractSolver.from_tesseract_api(
        tmp_path / "tesseract_api.py",
        inputs=FIELDS,
        outputs={"u": "state"},
        advances={"odd"},
        timeout=2 if own else None,
    )
    deadly = [20.0] if own else []
    inject(solver, (15 * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])[: FAULTS - len(deadly)] + deadly, "Tesseract")
    solver.close()
    assert not processes("foreign.isolated")
    import gc

    from hycop.primitives.foreign import tesseract

    tesseract._opened.cache_clear()
    gc.collect()  # its client keeps a temporary folder as long as it lives
