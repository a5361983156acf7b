"""The benchmarks run, at a size at which their numbers mean nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks import (
    answer,
    cluster,
    data,
    engine,
    equal_error,
    gas,
    growth,
    memory,
    models,
    muscl,
    population,
    solving,
    spectral,
    start,
    studio,
    training,
    water,
    water_training,
)
from benchmarks.measure import Ratio, Seconds, Skipped, median_ratio, needed
from hycop.policy import Pattern
from hycop.problems import find_problem

FEW = ("--set", "samples=8", "--set", "tries=1")
TINY = {
    "quick-training": start.measure_training,
    **{f"{name}-answer": partial(solving.measure, name, (4, 1), 2, (), 60) for name in solving.GOALS},
    "fno": partial(solving.measure_fno, (4, 1), 2),
    "swe2d-answer": partial(water.measure, 2, 1, (), 2),
    "dam-break": partial(water.measure_dam, 1, 32, 2.0, 2),
    "adr2d-training": partial(population.measure, 4, 2, 8, 2, (4, 8)),
    "swe2d-training": partial(water_training.measure, 2, 2, 1, (2, 4)),
    "spectral": partial(spectral.measure, batch=8, cells=8, rounds=2, single=(8,)),
    "ns2d-batch": partial(gas.measure_batch, 2, 1, (16, 16)),
    "precision": partial(answer.measure_single, ((2, 8),), 2),
    "answer": partial(answer.measure, batches=(2, 1), rounds=2),
    "start": partial(start.measure, rounds=1, cold_rounds=0),
    "growth": partial(growth.measure, (8, 16, 32), (2, 4), 1, 8),
    "cluster": partial(cluster.measure, 4, 1),
    "muscl": partial(muscl.measure, batch=8, cells=8, rounds=2),
    "engine": partial(engine.measure, batch=8, cells=8, rounds=2),
    "memory": partial(memory.measure, batch=8, cells=8, files=False),
    "gas": partial(gas.measure, batch=1, rounds=1),
    "studio": partial(studio.measure, problems=()),
    "training": partial(training.measure, ["ad1d"], FEW),
}
QUICK = ("spectral", "precision", "answer", "muscl", "engine", "memory")
"""Topics that take seconds also where kernels have to be compiled; the others compile opponents or train models."""


def untrained(name: str, options: Sequence[str] = ()) -> models.Trained:
    """In place of a model that takes minutes to train: Strang's splitting with other shares of time."""
    dictionary = find_problem(name).dictionary
    inner = range(1, len(dictionary) - 1)
    there = [0, *inner]
    ops = (*there, len(dictionary) - 1, *reversed(there))
    shares = (*(0.5 for _ in there), 1.0, *(0.5 for _ in there))
    return models.Trained(data.untrained(name, dictionary, Pattern(ops, shares, "Strang")), 1.0, 1)


def test_all_topics_are_tried_here() -> None:
    assert list(TINY) == list(command.TOPICS)


@pytest.mark.parametrize(
    "topics",
    [QUICK, pytest.param(tuple(topic for topic in TINY if topic not in QUICK), marks=pytest.mark.validate)],
    ids=["quick", "others"],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # opponents leave sockets open
def test_they_run_and_write_their_results(
    topics: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "TOPICS", TINY)
    monkeypatch.setattr(models, "KEPT", tmp_path)
    for module in (solving, start, water):
        monkeypatch.setattr(module, "trained", untrained)
    file = tmp_path / "bench.json"
    command.main([*topics, "--json", str(file)])
    assert "ratio" in capsys.readouterr().out
    written = json.loads(file.read_text())
    assert not [reason for reason in written["meta"]["without"].values() if reason.startswith("failed")]
    without = {"studio", *written["meta"]["without"]}
    assert {row["topic"] for row in written["rows"]} == set(topics) - without
    assert all(isinstance(row["value"], float) for row in written["rows"])
    assert written["meta"]["command"].startswith(f"python -m benchmarks {topics[0]}")
    assert written["meta"]["packages"]["numpy"]


def test_an_opponent_that_is_missing_is_skipped_with_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def without() -> list[Ratio]:
        needed("no_such_package.part", "pip install it")
        return []

    def disagrees() -> list[Ratio]:
        raise AssertionError("the two disagree")

    monkeypatch.setattr(command, "TOPICS", {"a": without, "b": disagrees, "c": lambda: [Ratio("c", "w", 1, 1, True)]})
    assert command.main([]) == 1
    printed = capsys.readouterr().out
    assert "a: skipped, it needs no_such_package: pip install it" in printed
    assert "b: failed: AssertionError: the two disagree" in printed
    with pytest.raises(Skipped):
        without()


class Halving:
    """Errors 1, 1/2, 1/4, … at levels 0, 1, 2, …"""

    name, levels = "halving", (0, 1, 2, 3)

    def solver(self, level: int, query: object) -> partial[float]:
        return partial(float, 2.0**-level)


def test_an_opponent_is_taken_at_equal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_error, "mean_error", lambda states, data: float(states))
    judged = SimpleNamespace(query=None)
    near = equal_error.match(Halving(), judged, 0.26)  # type: ignore[arg-type]
    assert (near.coarse, near.fine, near.error, near.reached) == (2, 2, 0.25, True)
    between = equal_error.match(Halving(), judged, 0.5**1.5)  # type: ignore[arg-type]
    assert (between.coarse, between.fine) == (1, 2) and between.error == pytest.approx(0.5**1.5)
    seconds = {"halving 1": Seconds([1.0], [2.0]), "halving 2": Seconds([4.0], [8.0])}
    assert between.at_equal_error(seconds) == Seconds([pytest.approx(2.0)], [pytest.approx(4.0)])
    assert not equal_error.match(Halving(), judged, 1e-3).reached  # type: ignore[arg-type]


def test_exponents_of_growth() -> None:
    assert growth.exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2.0)


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
    times = {"a": [1.0, 2.0, 30.0], "b": [1.0, 1.0, 10.0], "c": [1.0, 1.0, 1.0]}
    seconds = {name: Seconds(each, each) for name, each in times.items()}
    assert median_ratio(seconds, "a", "b") == 2.0
    assert median_ratio(seconds, ("a", "b"), "c") == 3.0


def test_an_unknown_topic_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["spectrall"])
    assert "unknown topic 'spectrall'" in capsys.readouterr().err
