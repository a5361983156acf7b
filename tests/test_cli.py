"""The command line, run as a user runs it: output, exit codes, nothing half-written."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.cli.common import app as registry
from hycop.cli.lazy import COMMANDS
from hycop.experiments.demo import TRAINING
from tests.helpers import ROOT, hycop_command


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "id.nc"
    result = hycop_command("data", "adr2d", path, "--split", "id", "--samples", "6", "--seed", "4")
    assert result.returncode == 0, result.stderr
    assert "6 samples of adr2d/id on 32x32" in result.stdout and "estimated error" in result.stdout
    return path


def test_data_is_what_python_makes(dataset: Path) -> None:
    made = hycop.problem("adr2d").sample(6, "id", seed=4)
    stored = hycop.load(dataset)
    assert np.array_equal(stored.states, made.states) and stored.seed == 4 and stored.split == "id"
    assert stored.reference_error == made.reference_error


def test_problems(tmp_path: Path) -> None:
    result = hycop_command("problems", "--json", tmp_path / "p.json")
    assert result.returncode == 0 and "adr2d" in result.stdout and "ad1d" in result.stdout
    content = json.loads((tmp_path / "p.json").read_text())
    assert {entry["name"] for entry in content["problems"]} == set(hycop.problems.PROBLEMS)
    one = hycop_command("problems", "adr2d")
    assert "near saturation" in one.stdout and "r in [0.05, 0.1] or [1, 2.5]" in one.stdout


def test_evaluate_a_file(dataset: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = hycop_command(
        "evaluate", "adr2d", "--data", dataset, "--scheme", "strang x2", "--scheme", "saba7",
        "--program", "advection 0.2 -> diffusion 0.2 -> reaction 0.2", "--json", file,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    content = json.loads(file.read_text())
    methods = [row["method"] for row in content["rows"]]
    assert {"Strang x2", "SABA7", "advection 0.2 → diffusion 0.2 → reaction 0.2"} <= set(methods)
    assert content["meta"]["command"].startswith("hycop evaluate adr2d")
    assert all(row["work"] > 0 for row in content["rows"] if not row["method"].startswith("limit"))


def test_evaluate_all(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = hycop_command(
        "evaluate", "ad1d", "--scheme", "all", "--split", "ood", "--samples", "5", "--seeds", "2",
        "--dictionary", "upwind", "--metric", "rel_l2", "--json", file,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    rows = json.loads(file.read_text())["rows"]
    assert any(row["method"].startswith("limit") for row in rows) and len(rows) > 50
    assert all(row["seeds"] == 2 and row["dictionary"] == "upwind" for row in rows)


def test_program(tmp_path: Path) -> None:
    result = hycop_command(
        "program", "adr2d", "--scheme", "ababa", "--sample", "2", "--time", "0.3",
        "--figure", tmp_path / "line.png", "--json", tmp_path / "p.json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "ABABA     advection 0.05795" in result.stdout and "T=0.3" in result.stdout
    assert (tmp_path / "line.png").stat().st_size > 5000
    content = json.loads((tmp_path / "p.json").read_text())
    assert sum(step["duration"] for step in content["program"]) == pytest.approx(0.9)
    file = tmp_path / "steps.json"
    file.write_text(json.dumps(content["program"]))
    both = hycop_command(
        "evaluate", "adr2d", "--program", tmp_path / "p.json", "--samples", "2", "--seeds", "1", "--force"
    )
    assert both.returncode == 0, both.stderr
    again = hycop_command("evaluate", "adr2d", "--program", file, "--samples", "2", "--seeds", "1", "--times", "0.3")
    assert again.returncode == 0, again.stderr


def test_the_work_of_a_program_is_that_of_an_evaluation(tmp_path: Path) -> None:
    """On the finer grid on which both run; what is named twice is judged once."""
    shown = hycop_command("program", "burgers1d", "--scheme", "strang", "--json", tmp_path / "p.json")
    twice = ("--scheme", "strang", "--metric", "rel_l2")
    judged = hycop_command(
        "evaluate", "burgers1d", "--samples", "1", "--seeds", "1", *twice, *twice, "--json", tmp_path / "e.json"
    )
    assert shown.returncode == judged.returncode == 0, shown.stderr + judged.stderr
    row = json.loads((tmp_path / "e.json").read_text())["rows"][0]
    assert row["seeds"] == 1 and row["work"] == json.loads((tmp_path / "p.json").read_text())["work"]


def test_check() -> None:
    good = hycop_command("check", "hycop.primitives:ExactLogistic")
    assert good.returncode == 0, good.stdout + good.stderr
    own = hycop_command("check", "examples/own_primitive.py:LinearDecay")
    assert own.returncode == 0, own.stdout + own.stderr


def test_check_fails_with_two(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(
        (ROOT / "examples" / "own_primitive.py")
        .read_text()
        .replace("order = hycop.EXACT", "order = 1")
        .replace("return u * factor", "return 1.01 * u * factor")
    )
    bad = hycop_command("check", f"{file}:LinearDecay")
    assert bad.returncode == 2 and "identity" in bad.stdout


def test_table(tmp_path: Path) -> None:
    listed = hycop_command("table", "--list")
    assert "schemes" in listed.stdout
    result = hycop_command(
        "table", "schemes", "--samples", "4", "--seeds", "1", "--figures", tmp_path, "--json", tmp_path / "t.json"
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "schemes_id.png").exists() and json.loads((tmp_path / "t.json").read_text())["rows"]


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smaller training and a coarser truth than the command has, which take a minute."""
    small = {"samples": 8, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 5, "shape": (8, 8)}
    monkeypatch.setattr("hycop.experiments.demo.TRAINING", {**TRAINING, **small})
    monkeypatch.setitem(hycop.problems.adr.FINEST, 2, 32)
    made = hycop_command("demo", "--out", tmp_path / "demo", "--samples", "4")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "demo" / "demo.png").stat().st_size > 20_000
    assert "limit" in made.stdout and "→" in made.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["evaluate", "adr4d"], "unknown problem 'adr4d': did you mean adr"),
        (["evaluate", "adr2d", "--scheme", "strong"], "unknown scheme 'strong': did you mean Strang"),
        (["evaluate", "adr2d", "--dictionary", "spectal"], "did you mean spectral"),
        (["evaluate", "adr2d", "--metric", "rel_l1", "--samples", "2"], "unknown metric"),
        (["evaluate", "adr2d", "--program", "advection"], "program step 'advection'"),
        (["evaluate", "adr2d", "--program", "advektion 0.1", "--samples", "2"], "did you mean advection"),
        (["evaluate", "adr2d", "--program", "diffusion -0.1", "--samples", "2", "--force"], "cannot run backwards"),
        (["evaluate", "adr2d", "--program", "diffusion nan", "--samples", "2"], "must be finite"),
        (["evaluate", "adr2d", "--scheme", "yoshida", "--samples", "2"], "cannot run backwards"),
        (["evaluate", "adr2d", "--boundary", "wall", "--samples", "2"], "primitive 'advection' cannot handle the wall"),
        (["evaluate", "adr2d", "--shape", "8by8"], "--shape '8by8'"),
        (["evaluate", "adr2d", "--times", "0.1;0.2"], "--times"),
        (["evaluate", "adr2d", "--times", "-0.1"], "times"),
        (["evaluate", "adr2d", "--samples", "0"], "samples"),
        (["evaluate", "adr2d", "--seeds", "0"], "--seeds"),
        (["evaluate", "adr2d", "--data", "nowhere.nc"], "nowhere.nc: no such file"),
        (["data", "adr2d", "/nowhere/x.nc"], "/nowhere"),
        (["data", "adr2d", "x.csv", "--samples", "1"], ".csv"),
        (["data", "adr2d", "x.nc", "--seed", "-3", "--samples", "1"], "seed"),
        (["program", "adr2d", "--sample", "-1"], "--sample"),
        (["program", "adr2d", "--sample", "10000"], "--sample is 10000: a number from 0 to 9999"),
        (["check", "hycop.primitives:MusclAdvektion"], "MusclAdvection"),
        (["check", "nowhere.module:Name"], "nowhere"),
        (["table", "skemes"], "did you mean schemes"),
        (["table", "--samples", "few"], "--samples"),
        (["swap", "run"], "Missing argument 'OUT' (see 'hycop swap --help')"),
        (["evaluate", "adr2d", "--shcheme", "strang"], "No such option: --shcheme"),
    ],
)
def test_mistakes_are_one_line_and_two(words: list[str], said: str, tmp_path: Path) -> None:
    result = hycop_command(*words, "--json", tmp_path / "out.json", folder=tmp_path)
    assert result.returncode == 2, (result.stdout, result.stderr)
    assert said in result.stderr and "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_dataset_of_another_problem(dataset: Path) -> None:
    result = hycop_command("evaluate", "ad2d", "--data", dataset)
    assert result.returncode == 2 and "adr2d" in result.stderr and str(dataset) in result.stderr


def test_a_truncated_dataset(dataset: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.nc"
    broken.write_bytes(dataset.read_bytes()[:3000])
    result = hycop_command("evaluate", "adr2d", "--data", broken)
    assert result.returncode == 2 and str(broken) in result.stderr and "Traceback" not in result.stderr


def test_every_command_has_an_example() -> None:
    listed = hycop_command("--help")
    assert listed.returncode == 0
    for name in ("problems", "data", "evaluate", "program", "check", "table", "demo"):
        assert name in listed.stdout
        assert f"Example: hycop {name}" in " ".join(hycop_command(name, "--help").stdout.split())


def test_as_a_process(tmp_path: Path) -> None:
    """Exit codes and streams as a shell sees them, with a traceback only if asked for."""
    command = [sys.executable, "-m", "hycop.cli"]
    wrong = subprocess.run([*command, "evaluate", "adr4d"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and wrong.stdout == "" and len(wrong.stderr.splitlines()) == 1
    shown = subprocess.run([*command, "--debug", "evaluate", "adr4d"], capture_output=True, text=True, check=False)
    assert shown.returncode != 0 and "Traceback" in shown.stderr


UNWRITABLE = {
    "{} problems | true; exit ${{PIPESTATUS[0]}}": (1, ""),
    "{} problems >/dev/full": (2, "hycop: the output cannot be written (No space left on device)\n"),
    "LC_ALL=C PYTHONUTF8=0 {} problems >/dev/null": (0, ""),
    "{} problems >&- 2>&-": (0, ""),
}
"""Outputs that are closed, full, without Unicode, or not there at all."""


def test_output_that_cannot_be_written() -> None:
    started = {}
    for shell in UNWRITABLE:  # side by side, as each takes two seconds to start
        words = ["bash", "-c", shell.format(f"{sys.executable} -m hycop")]
        started[shell] = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    for shell, process in started.items():
        said = process.communicate()[1]
        assert (process.returncode, said) == UNWRITABLE[shell], shell


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("package", "said"),
    [
        ("typer", "interrupted before it began"),
        ("numpy", "interrupted; nothing is left half-written"),
    ],
)
def test_an_interrupt_during_imports_is_one_line(package: str, said: str, number: signal.Signals) -> None:
    """Python reports every import on stderr, so it is known when the package is half imported."""
    command = [sys.executable, "-X", "importtime", "hycop_command.py", "problems"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(f" {package}"):
                process.send_signal(number)
                break
        rest = [line for line in process.stderr if not line.startswith("import time:")]
    assert process.returncode == 130 and rest == [f"hycop: {said}\n"]


def _loaded(script: str, *names: str) -> list[str]:
    """Those of the modules that a script imports, directly or not."""
    ask = f"import sys\n{script}\nprint(sorted({set(names)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return list(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_a_command_loads_only_what_it_needs() -> None:
    """Seconds of imports that few commands need would be waited for by all."""
    every = ", ".join(f"hycop.cli.{entry.module}" for entry in COMMANDS.values())
    assert _loaded(f"import {every}", "matplotlib", "scipy.stats", "torch") == []
    assert _loaded("import hycop, hycop.cli", "numpy", "numba", "scipy", "pydantic", "xarray", "multiprocessing") == []


def test_every_command_is_listed() -> None:
    for entry in COMMANDS.values():
        import_module(f"hycop.cli.{entry.module}")
    modules = {path.stem for path in (ROOT / "hycop" / "cli").glob("*.py")}
    registered = {info.name or info.callback.__name__ for info in registry.registered_commands if info.callback}
    assert registered == set(COMMANDS) and {entry.module for entry in COMMANDS.values()} <= modules
    said = hycop_command("--help").stdout
    assert all(name in said for name in COMMANDS)
