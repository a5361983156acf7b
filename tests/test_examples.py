"""The examples run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

ROOT = Path(__file__).parents[1]
QUICK = ("burgers1d", "first_steps", "legacy_program", "pdebench_file", "swe1d")
"""Scripts of the gallery that 'make test' runs; 'make docs' and 'make validate' run all of them."""
NEEDS = {
    "foreign_onnx.py": ("torch", "onnx", "onnxruntime"),
    "foreign_pyclaw.py": ("clawpack",),
}
"""Packages and programs without which an example has nothing to run."""
GALLERY = [
    pytest.param(path, marks=[] if path.stem in QUICK else [pytest.mark.validate])
    for path in sorted((ROOT / "examples" / "gallery").glob("*.py"))
]
DRAWN = """
import runpy, sys, matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
plt.show = lambda: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
assert plt.get_fignums(), "no picture"
"""
"""Runs a script as the gallery does, and wants a picture."""


def run(*arguments: str | Path, cwd: Path) -> str:
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example(path: Path, tmp_path: Path) -> None:
    missing = [name for name in NEEDS.get(path.name, ()) if not (find_spec(name) or which(name))]
    printed = run(path, cwd=tmp_path)
    assert printed and ("nothing to run" in printed) == bool(missing)
    assert not list(tmp_path.iterdir())
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; without, it only says so")


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery(path: Path, tmp_path: Path) -> None:
    run("-c", DRAWN, path, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_gallery_is_large_enough() -> None:
    assert len(GALLERY) >= 12 and set(QUICK) <= {param.values[0].stem for param in GALLERY}


@pytest.mark.validate
def test_readme(tmp_path: Path) -> None:
    """Its Python runs as it stands, but for a smaller training run."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert block.count('preset="quick"') == 1
    small = 'preset="quick", samples=32, tries=1, patterns=1, rounds=1, shape=(16, 16)'
    assert "advection" in run("-c", block.replace('preset="quick"', small), cwd=tmp_path)
    assert (tmp_path / "run" / "model.json").exists()


FAKE_JOBQUEUE = """
from dask.distributed import LocalCluster

class SLURMCluster(LocalCluster):
    \"\"\"Takes what SLURM's takes, and runs its jobs as processes here.\"\"\"

    def __init__(self, *, queue, account, cores, processes, job_cpu, memory, walltime, worker_extra_args,
                 job_script_prologue, log_directory):
        super().__init__(n_workers=0, threads_per_worker=cores, dashboard_address=":0")

    def adapt(self, minimum_jobs, maximum_jobs):
        self.scale(min(2, minimum_jobs))
"""


@pytest.mark.validate
@pytest.mark.parametrize("block", [0, 1], ids=["LocalCluster", "SLURMCluster"])
def test_scripts_for_clusters(block: int, tmp_path: Path) -> None:
    """As they stand in the documentation, but for a smaller run, and without SLURM."""
    pytest.importorskip("distributed", reason="needs the extra 'cluster'")
    text = (ROOT / "docs" / "tutorials" / "cluster.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[block]
    small = 'preset="paper", samples=8, population=8, generations=2, '
    assert script.count('preset="paper", ') == 1 and script.count('"adr2d"') == 1
    script = script.replace('preset="paper", ', small).replace('"adr2d"', '"ad1d"')
    (tmp_path / "dask_jobqueue.py").write_text(FAKE_JOBQUEUE)
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    assert run("script.py", cwd=tmp_path).startswith("Gate(") and (tmp_path / "runs" / "adr" / "model.json").exists()
