"""Bars that show on a terminal only, and the one word about compilation."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from hycop import progress
from hycop.progress import Progress, counting, describing, training_bar, waiting

ENTRY = Progress("search", 3, 8, 0.2, 0.1, "Strang", 0.15, 512, 0.4)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, enabled: bool = True) -> str:
    """What the bars write to a stream that stands for stderr."""
    with contextlib.redirect_stderr(stream):
        with training_bar("[/]data", enabled) as report:
            report(ENTRY)
        if enabled:
            with counting(4, "truth") as advance:
                advance(2)
            with describing("table") as describe:
                describe("part [/]", 0.5)
            with waiting("checking [/]"):
                pass
    return stream.getvalue()


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    progress._announce_compilation.cache_clear()


def test_a_terminal_shows_where_a_run_stands() -> None:
    text = shown(Screen())
    assert "search 3/8  best 1.00e-01  Strang 1.50e-01" in text and "programs/s" in text
    assert "2/4" in text and "part [/]" in text and "checking [/]" in text  # brackets are no markup


def test_nothing_shows_when_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(Screen(), enabled=False) == shown(io.StringIO()) == capsys.readouterr().out == ""


def test_the_first_compilation_is_announced_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert shown(Screen()).count(progress.COMPILING) == 1
    progress._announce_compilation.cache_clear()
    (tmp_path / "kernel.nbi").touch()
    assert progress.COMPILING not in shown(Screen())
