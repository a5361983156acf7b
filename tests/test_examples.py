"""The examples run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest

SLOW = ("missing_physics.py", "own_pde.py")
NEEDS = {
    "foreign_onnx.py": ("torch", "onnx", "onnxruntime"),
    "foreign_program.py": ("cc",),
    "foreign_pyclaw.py": ("clawpack",),
}
"""Packages and programs without which an example has nothing to run."""
EXAMPLES = [
    pytest.param(path, marks=[pytest.mark.validate] if path.name in SLOW else [])
    for path in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example(path: Path, tmp_path: Path) -> None:
    missing = [name for name in NEEDS.get(path.name, ()) if not (find_spec(name) or which(name))]
    result = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout and ("nothing to run" in result.stdout) == bool(missing)
    assert not list(tmp_path.iterdir()) or path.name not in NEEDS
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; without, it only says so")


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
    text = (Path(__file__).parents[1] / "docs" / "cluster.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[block]
    small = 'preset="paper", samples=8, population=8, generations=2, '
    assert script.count('preset="paper", ') == 1 and script.count('"adr2d"') == 1
    script = script.replace('preset="paper", ', small).replace('"adr2d"', '"ad1d"')
    (tmp_path / "dask_jobqueue.py").write_text(FAKE_JOBQUEUE)
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    result = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Gate(") and (tmp_path / "runs" / "adr" / "model.json").exists()
