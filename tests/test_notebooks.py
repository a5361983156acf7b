"""The notebooks run as they stand, show what they promise, and are stored without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel, of the extra 'dev'")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel, of the extra 'dev'")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel, of the extra 'dev'")

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SLOWEST_CELL = 120
"""Seconds, on a machine that does something else as well; all cells together take less than 30 on an idle one."""

PROMISED = {
    "first_steps": ("kept: the programs are the policy", "Answer of adr2d to 9 queries"),
    "missing_physics": ("enrich the dictionary with u_t = … + 0.8", "enriched with closure"),
    "own_pde": ("HyCOP, fitted on electrons", "not to be trusted from T ="),
}
"""Text that a reader of the notebook sees."""


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(PROMISED)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert cells and all(not cell.outputs and cell.execution_count is None for cell in cells)


@pytest.mark.parametrize(
    "path",
    [path if path.stem == "first_steps" else pytest.param(path, marks=pytest.mark.validate) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_notebook(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook: Any = nbformat.read(path, 4)
    nbclient.NotebookClient(
        notebook, timeout=SLOWEST_CELL, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    text = "".join("".join(str(output.get("text", ""))) + str(output.get("data", "")) for output in shown)
    for promised in PROMISED[path.stem]:
        assert promised in text
    for cell in notebook.cells:  # a picture appears where one is drawn, once
        if cell.cell_type == "code" and "hycop.plot." in cell.source:
            assert sum("image/png" in output.get("data", ()) for output in cell.outputs) == 1, cell.source
    assert "<table style=" in text  # of a model, an answer or a diagnosis
    assert not list(tmp_path.iterdir())
