"""A user's equation, from its text to the report, by the commands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import hycop_command

FILE = '''
import hycop
from hycop.problems.initial_conditions import Wave

split = hycop.equation(
    """u_t = -c*u_x + D*u_xx + u*(1-u) - a*u*v/(1+h*u)
       v_t = c*v_x + D*v_xx + a*u*v/(1+h*u) - m*v""",
    name="hunters",
)
problem = split.problem(
    ranges={"c": (0.1, 0.4), "D": (1e-3, 4e-3), "a": (1.0, 2.0), "h": (0.5, 1.0), "m": (0.3, 0.6)},
    ood={"c": (0.4, 0.7)},
    initial={"u": Wave(1, 2), "v": Wave(1, 2)},
    time=(0.5, 2.0),
    shape=(32,),
    settings={"samples": 32, "max_steps": 5, "tries": 1, "patterns": 1, "rounds": 1},
)
'''
COMMANDS = (
    ("problems", "own.py:problem"),
    ("data", "own.py:problem", "id.nc", "--split", "id", "--samples", "6"),
    ("data", "own.py:problem", "ood.nc", "--split", "ood", "--samples", "6"),
    ("train", "own.py:problem", "--out", "run"),
    ("evaluate", "run", "--data", "id.nc", "--compare"),
    ("program", "run", "--with", "own.py", "--sample", "1", "--time", "1.0"),
    ("predict", "run", "id.nc", "answers.nc", "--times", "0.5,1.0"),
    ("diagnose", "run", "--with", "own.py", "--data", "ood.nc"),
    ("report", "run", "--with", "own.py", "--data", "id.nc"),
)


@pytest.mark.validate
def test_from_data_to_report(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FILE)
    for words in COMMANDS:
        done = hycop_command(*words, folder=tmp_path)
        assert done.returncode == 0, f"hycop {' '.join(words)}: {done.stderr}"
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) == 1 and "hunters" in pages[0].read_text(encoding="utf-8")
