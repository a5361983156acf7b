"""The benchmarks run, at a size at which their numbers mean nothing."""

from __future__ import annotations

import json
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import answer, engine, gas, memory, muscl, population, spectral, start, studio, training
from benchmarks.measure import Ratio, median_ratio

TINY = {
    "spectral": partial(spectral.measure, batch=8, cells=8, rounds=2, single=(8,)),
    "muscl": partial(muscl.measure, batch=8, cells=8, rounds=2),
    "engine": partial(engine.measure, batch=8, cells=8, rounds=2),
    "answer": partial(answer.measure, batches=(2, 1), rounds=2),
    "start": partial(start.measure, rounds=1, cold_rounds=0),
    "memory": partial(memory.measure, batch=8, cells=8),
    "gas": partial(gas.measure, batch=1, rounds=1),
    "population": partial(population.measure, members=4, batch=2, cells=8, rounds=2),
    "studio": partial(studio.measure, problems=()),
    "training": partial(training.measure, ["ad1d"], ["--set", "samples=8", "--set", "tries=1"]),
}


def test_all_topics_are_tried_here() -> None:
    assert list(TINY) == list(command.TOPICS)


def test_they_run_and_write_their_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "TOPICS", TINY)
    file = tmp_path / "bench.json"
    command.main([*TINY, "--json", str(file)])
    printed = capsys.readouterr().out
    assert "ratio" in printed
    written = json.loads(file.read_text())
    without = {"studio"} if find_spec("torch") else {"studio", "population"}
    assert {row["topic"] for row in written["rows"]} == set(TINY) - without
    assert all(row["value"] > 0 for row in written["rows"])
    assert written["meta"]["command"].startswith("python -m benchmarks spectral muscl")
    assert written["meta"]["packages"]["numpy"]


@pytest.mark.validate
def test_the_studio_answers_in_a_browser() -> None:
    if studio.missing():
        pytest.skip(studio.missing())
    at_rest, in_a_row = studio.measure(["adr2d"], moves=3)
    # the machine may be busy: the goal is that of a quiet one
    assert 0 < at_rest.value < 10 and 0 < in_a_row.value < 10
    assert int(in_a_row.detail.split()[0]) <= studio.IN_A_ROW


def test_without_a_browser_the_studio_is_skipped_with_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("HYCOP_CHROMIUM", raising=False)
    assert studio.measure() == [] and "studio: skipped, it needs" in capsys.readouterr().out


def test_goals_have_a_direction() -> None:
    assert Ratio("t", "w", 1.2, 1.3, at_least=False).met
    assert not Ratio("t", "w", 1.2, 1.3, at_least=True).met


def test_ratios_are_medians_over_the_rounds() -> None:
    seconds = {"a": [1.0, 2.0, 30.0], "b": [1.0, 1.0, 10.0], "c": [1.0, 1.0, 1.0]}
    assert median_ratio(seconds, "a", "b") == 2.0
    assert median_ratio(seconds, ("a", "b"), "c") == 3.0


def test_an_unknown_topic_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["spectrall"])
    assert "unknown topic 'spectrall'" in capsys.readouterr().err
