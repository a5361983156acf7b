"""Each kind of foreign primitive keeps the contract, travels to other processes, and is stored safely."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.errors import ForeignError, HyCOPError, InvalidInputError
from hycop.executors import ProcessExecutor
from hycop.grid import Array, Grid
from hycop.primitive import ALL_CHANNELS, fingerprint
from hycop.primitives import ExternalProgram, ForeignFunction, OnnxNetwork, TesseractSolver
from hycop.primitives.examples import scalar_example
from hycop.primitives.foreign import calibration
from hycop.primitives.foreign.contract import Foreign
from hycop.query import Channel, Setting

PROBLEM = hycop.problem("adr2d")
SMALL = {"shape": (16, 16), "samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "verbose": False}
NUMBERS = ("duration", "length_x", "length_y", "Dx", "Dy")


def logistic(u: Array, duration: Array, setting: Setting) -> Array:
    growth = np.exp(setting.param("r") * duration)[:, None, None, None]
    return u * growth / (1 + u * (growth - 1))


def reaction_example(seed: int) -> tuple[Array, Setting]:
    return scalar_example(seed, (), {"r": 1.5})


def diffusion_example(seed: int) -> tuple[Array, Setting]:
    return scalar_example(seed, ("D",))


FUNCTION = ForeignFunction(function=logistic, advances={"reaction"}, order=hycop.EXACT, work_per_cell=3.0)


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    out = tmp_path_factory.mktemp("heat") / "heat"
    source = Path(__file__).parents[1] / "examples" / "heat.c"
    subprocess.run([compiler, "-O2", "-o", out, source], check=True)
    return out


def program(binary: Path, *, persistent: bool = False) -> ExternalProgram:
    return ExternalProgram(
        command=(binary, "--serve") if persistent else (binary,),
        persistent=persistent,
        arguments=NUMBERS,
        advances={"diffusion"},
        conserves=ALL_CHANNELS,
        boundaries={"periodic"},
        work_per_cell=20.0,
    )


def network() -> OnnxNetwork:
    """u + duration·r·u (1 − u) in single precision."""
    pytest.importorskip("onnx", reason="needs the extra 'onnx', and onnx")
    from onnx import TensorProto, helper

    def value(name: str, shape: list[int | str]) -> object:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [
        helper.make_node("Sub", ["one", "u"], ["left"]),
        helper.make_node("Mul", ["u", "left"], ["logistic"]),
        helper.make_node("Mul", ["duration", "r"], ["growth"]),
        helper.make_node("Mul", ["growth", "logistic"], ["change"]),
        helper.make_node("Add", ["u", "change"], ["out"]),
    ]
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    inputs = [value("u", ["b", "c", "x", "y"]), value("duration", ["b"]), value("r", ["b", 1])]
    graph = helper.make_graph(nodes, "reaction", inputs, [value("out", ["b", "c", "x", "y"])], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    content = np.frombuffer(model.SerializeToString(), dtype=np.uint8)
    return OnnxNetwork(model=content, arguments=("duration", "r"), advances={"reaction"}, work_per_cell=5.0)


API = """
import numpy as np
from pydantic import BaseModel
from tesseract_core.runtime import Array, Float64

class Physics(BaseModel):
    r: float

class InputSchema(BaseModel):
    field: Array[(None, None), Float64]
    dt: float
    physics: Physics

class OutputSchema(BaseModel):
    field: Array[(None, None), Float64]

def apply(inputs: InputSchema) -> OutputSchema:
    growth = np.exp(inputs.physics.r * inputs.dt)
    return OutputSchema(field=inputs.field * growth / (1 + inputs.field * (growth - 1)))
"""
MAPPING = {
    "inputs": {"field": "u", "dt": "duration", "physics.r": "r"},
    "outputs": {"field": "u"},
    "advances": {"reaction"},
    "order": hycop.EXACT,
    "work_per_cell": 9.0,
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tesseract_core", reason="needs the extra 'tesseract'")
    pytest.importorskip("lz4", reason="needs the extra 'tesseract'")
    out = tmp_path_factory.mktemp("tesseract") / "tesseract_api.py"
    out.write_text(API)
    return out


def same_flow(a: Foreign, b: Foreign, example: Callable[[int], tuple[Array, Setting]]) -> bool:
    u, setting = example(1)
    tau = np.array([0.02, 0.0, 0.05])
    first = a.flow(u, tau, setting)
    assert np.array_equal(first[1], u[1]) and not np.array_equal(first[0], u[0])
    return np.array_equal(first, b.flow(u, tau, setting))


def conforms(primitive: Foreign, example: Callable[[int], tuple[Array, Setting]]) -> None:
    report = hycop.check_primitive(primitive.with_example(example))
    assert report.passed, str(report)


class TestFunction:
    @pytest.mark.parametrize("batched", [False, True])
    def test_contract(self, batched: bool) -> None:
        one = replace(FUNCTION, batched=batched)
        conforms(one, reaction_example)
        assert same_flow(one, FUNCTION, reaction_example)

    def test_fingerprint_and_declarations(self) -> None:
        assert fingerprint(FUNCTION) == fingerprint(
            pickle.loads(pickle.dumps(FUNCTION.with_example(lambda seed: None)))
        )  # type: ignore[arg-type,return-value]
        others = [replace(FUNCTION, work_per_cell=4.0), replace(FUNCTION, function=np.sin), replace(FUNCTION, order=2)]
        assert len({fingerprint(one) for one in [FUNCTION, *others]}) == 4
        for wrong in ({"advances": "reaction"}, {"advances": ()}, {"boundaries": {"open"}}, {"work_per_cell": -1.0}):
            with pytest.raises(InvalidInputError):
                replace(FUNCTION, **wrong)  # type: ignore[arg-type]
        for wrong in ({"function": 3}, {"memory": 2**30}, {"timeout": 0.0}, {"timeout": 1.0, "batched": True}):
            with pytest.raises(InvalidInputError):
                replace(FUNCTION, **wrong)  # type: ignore[arg-type]

    def test_a_lost_sample_is_not_passed_on(self) -> None:
        u, setting = reaction_example(0)
        u[1] = np.nan
        out = FUNCTION.flow(u, np.full(3, 0.1), setting)
        assert np.isnan(out[1]).all() and np.isfinite(out[[0, 2]]).all()

    def test_a_missing_coefficient_is_the_fault_of_the_query(self, heat: Path) -> None:
        setting = Setting(Grid.box((6, 5)), (Channel("u"),), {})
        with pytest.raises(InvalidInputError, match="parameter 'Dx' is missing"):
            program(heat).flow(np.ones((1, 1, 6, 5)), np.ones(1), setting)

    def test_work_is_measured_once_and_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bare, kept = replace(FUNCTION, work_per_cell=None).with_example(reaction_example), tmp_path / "work.json"
        u, setting = reaction_example(0)
        with pytest.raises(InvalidInputError, match="calibrated"):
            bare.work(u, np.ones(3), setting)
        first = bare.calibrated(file=kept)
        assert first.work_per_cell == float(f"{first.work_per_cell:.2g}") > 0
        assert list(json.loads(kept.read_text())) == [fingerprint(bare)]
        monkeypatch.setattr(calibration, "_seconds", None)  # a second measurement would fail
        assert fingerprint(bare.calibrated(file=kept)) == fingerprint(first) != fingerprint(bare)


class TestProgram:
    def test_contract_in_both_modes(self, heat: Path) -> None:
        alive = program(heat, persistent=True)
        conforms(alive, diffusion_example)
        assert same_flow(program(heat), alive, diffusion_example)
        assert same_flow(program(heat), pickle.loads(pickle.dumps(alive)), diffusion_example)
        alive.close()

    def test_it_solves_the_heat_equation(self, heat: Path) -> None:
        u, setting = diffusion_example(0)
        fine = np.repeat(np.repeat(u, 6, axis=2), 6, axis=3)
        setting = setting.with_grid(setting.grid.refined(6))
        smooth = hycop.primitives.SpectralDiffusion().flow(fine, np.full(3, 0.02), setting)
        exact = hycop.primitives.SpectralDiffusion().flow(smooth, np.full(3, 0.1), setting)
        assert np.abs(program(heat).flow(smooth, np.full(3, 0.1), setting) - exact).max() < 2e-3

    def test_a_changed_program_is_another_one(self, heat: Path, tmp_path: Path) -> None:
        copy = Path(shutil.copy(heat, tmp_path / "heat"))
        first = program(copy)
        with copy.open("ab") as file:
            file.write(b"\0")
        assert fingerprint(program(copy)) != fingerprint(first)
        u, setting = diffusion_example(0)
        with pytest.raises(InvalidInputError, match="has changed"):
            first.flow(u, np.ones(3), setting)
        with pytest.raises(InvalidInputError, match="not the program that was meant"):
            replace(first, advances={"diffusion"})
        with pytest.raises(InvalidInputError, match=r"no program '\./missing'"):
            ExternalProgram(command=("./missing",), advances={"x"})

    def test_no_shell_reads_the_command(self, tmp_path: Path) -> None:
        script = tmp_path / "echo.py"
        script.write_text("import sys, shutil; assert '$(touch x); *' in sys.argv; shutil.copy(*sys.argv[2:4])")
        one = ExternalProgram(command=(sys.executable, script, "$(touch x); *"), advances={"x"})
        u, setting = diffusion_example(0)
        assert np.array_equal(one.flow(u, np.ones(3), setting), u) and not (tmp_path / "x").exists()

    def test_what_it_prints_last_is_shown(self, tmp_path: Path) -> None:
        script = tmp_path / "fail.py"
        script.write_text("import sys; print('starting'); sys.exit('the mesh is\\ttangled')")
        one = ExternalProgram(command=(sys.executable, script), advances={"x"})
        u, setting = diffusion_example(0)
        with pytest.raises(ForeignError, match=r"program fail.py ended with exit code 1: the mesh is\?tangled"):
            one.flow(u, np.ones(3), setting)


class TestNetwork:
    def test_contract(self) -> None:
        one = network()
        conforms(one, reaction_example)
        assert same_flow(one, pickle.loads(pickle.dumps(one)), reaction_example)

    def test_files(self, tmp_path: Path) -> None:
        path = tmp_path / "net.onnx"
        path.write_bytes(network().model.tobytes())
        one = OnnxNetwork.from_file(path, arguments=("duration", "r"), advances={"reaction"}, work_per_cell=5.0)
        assert fingerprint(one) == fingerprint(network())
        with pytest.raises(InvalidInputError, match=r"net.onnx: the ONNX graph has the inputs u, duration, r"):
            OnnxNetwork.from_file(path, advances={"reaction"})
        path.write_bytes(b"not a graph")
        with pytest.raises(InvalidInputError, match=r"net.onnx: is not an ONNX graph"):
            OnnxNetwork.from_file(path, advances={"reaction"})

    def test_other_files_are_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx', and onnx")
        monkeypatch.chdir(tmp_path)
        np.ones(1, np.float32).tofile("secret.bin")
        graph = onnx.load_model_from_string(network().model.tobytes())
        weight = graph.graph.initializer[0]
        weight.ClearField("float_data")
        weight.dims.append(1)
        weight.data_location = onnx.TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="secret.bin")
        content = np.frombuffer(graph.SerializeToString(), dtype=np.uint8)
        with pytest.raises(InvalidInputError, match="not an ONNX graph that can be run"):
            replace(network(), model=content).prepare()

    def test_a_missing_package_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        one = network()
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        from hycop.primitives.foreign import network as module

        monkeypatch.setattr(module, "_SESSIONS", module._Sessions())
        with pytest.raises(InvalidInputError, match=r"pip install 'hycop\[onnx\]'"):
            one.prepare()


class TestTesseract:
    def test_contract(self, api: Path) -> None:
        solver = TesseractSolver.from_tesseract_api(api, **MAPPING)
        conforms(solver, reaction_example)
        u, setting = reaction_example(0)
        np.testing.assert_allclose(
            solver.flow(u, np.full(3, 0.1), setting), FUNCTION.flow(u, np.full(3, 0.1), setting), rtol=1e-14
        )

    def test_served(self, api: Path, tmp_path: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [Path(sys.executable).with_name("tesseract-runtime"), "serve", "--port", str(port)]
        with subprocess.Popen(
            command,
            env={"TESSERACT_API_PATH": str(api), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,  # a server keeps a log of every call
        ) as server:
            try:
                url = f"http://127.0.0.1:{port}"
                solver = served(url)
                assert same_flow(solver, TesseractSolver.from_tesseract_api(api, **MAPPING), reaction_example)
                assert fingerprint(solver) == fingerprint(TesseractSolver.from_url(url, timeout=20.0, **MAPPING))
            finally:
                server.kill()
        u, setting = reaction_example(0)
        with pytest.raises(ForeignError, match=r"^sample 0: Tesseract http://127.0.0.1"):
            solver.flow(u, np.full(3, 0.1), setting)
        with pytest.raises(InvalidInputError, match="does not answer"):
            TesseractSolver.from_url(url, **MAPPING)

    def test_wrong_mappings(self, api: Path) -> None:
        for wrong in ({"inputs": {}}, {"inputs": "u"}, {"outputs": {"u": 3}}, {"memory": 2**30}):
            with pytest.raises(InvalidInputError):
                TesseractSolver.from_tesseract_api(api, **{**MAPPING, **wrong})
        u, setting = reaction_example(0)
        for wrong in ({"inputs": {"other": "u"}}, {"outputs": {"other": "u"}}):
            with pytest.raises(ForeignError, match="Tesseract tesseract"):
                TesseractSolver.from_tesseract_api(api, **{**MAPPING, **wrong}).flow(u, np.full(3, 0.1), setting)


def served(url: str) -> TesseractSolver:
    """The Tesseract at an address, once its server has started."""
    for _ in range(200):
        try:
            return TesseractSolver.from_url(url, timeout=20.0, **MAPPING)
        except InvalidInputError:
            time.sleep(0.1)
    raise AssertionError("the server did not start")


@dataclass(frozen=True)
class Job:
    """The first states of some members, advanced by primitives that came with the job."""

    primitives: tuple[Foreign, ...]

    def __call__(self, first: int, count: int) -> Array:
        u, setting = scalar_example(3, ("D",), {"r": 1.5})
        out = [u * (1.0 + 0.01 * member) for member in range(first, first + count)]
        for primitive in self.primitives:
            out = [primitive.flow(one, np.full(3, 0.02), setting) for one in out]
        return np.stack(out)


def test_other_processes_give_the_same_bits(heat: Path) -> None:
    job = Job((program(heat, persistent=True), network(), FUNCTION))
    with ProcessExecutor(workers=1) as executor:
        assert np.array_equal(executor.map(job, 4), job(0, 4))
    job.primitives[0].close()  # type: ignore[attr-defined]


class TestModels:
    @pytest.mark.validate
    def test_a_folder_never_starts_a_program(self, heat: Path, tmp_path: Path) -> None:
        numerical = hycop.HyCOP(PROBLEM.dictionary).fit(PROBLEM, seed=0, **SMALL)
        foreign: dict[str, Foreign] = {"diffusion": program(heat, persistent=True), "reaction": network()}
        model = hycop.swap(numerical, primitives=foreign).model
        model.save(tmp_path / "model")
        with pytest.raises(HyCOPError, match=r"cannot make 'diffusion' \(ExternalProgram\)") as caught:
            hycop.HyCOP.load(tmp_path / "model")
        assert "'reaction'" not in str(caught.value)  # an ONNX network is in the folder
        again = hycop.HyCOP.load(tmp_path / "model", {"diffusion": foreign["diffusion"]})
        query = PROBLEM.queries(3, "id", 5)
        assert np.array_equal(again.solve(query).states, model.solve(query).states)
        assert again.model.scope.untrained == model.model.scope.untrained
        assert fingerprint(again.model.dictionary["reaction"]) == fingerprint(foreign["reaction"])
        with pytest.raises(InvalidInputError, match="OnnxNetwork needs to know what it runs"):
            hycop.swap(model, primitives={"reaction": "OnnxNetwork"})


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, hycop; assert not {'onnxruntime', 'tesseract_core', 'hycop.primitives.foreign'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
