"""The tables of sizes and costs: ``dictionary``, ``cost``, ``zero-shot`` and ``frontier``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hycop.data import Dataset
from hycop.evaluation import Row, Variant, opponents, unsplit
from hycop.experiments import assembled, cost, find_table, frontier, regime_b_residual, zero_shot
from hycop.experiments import dictionary as sizes
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, EQUAL_ERROR, LESS_ACCURATE
from hycop.experiments.monolithic import PASSES, SECONDS
from hycop.experiments.table import summarised
from hycop.problems import PROBLEMS, adr, shallow_water
from hycop.training import TrainingConfig, source
from tests.helpers import tiny_baselines

MONOLITHIC = {"DeepONet", "FNO", "PINO", "LocalNO"}
SMALLEST = {"samples": 8, "max_steps": 5, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "refinement": 1}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """Few samples on small grids with coarse truths; models that learn next to nothing and are judged by few."""
    for family in (adr, shallow_water):
        monkeypatch.setattr(family, "FINEST", {1: 64, 2: 32})
    monkeypatch.setattr(opponents, "SUBSTEPS", (1,))
    monkeypatch.setattr(unsplit, "STEPS", (1, 4))
    monkeypatch.setattr(unsplit, "REACHES", (0.5,))
    for name in ("ad2d", "adr2d", "swe2d"):
        small = replace(PROBLEMS[name], shape=(8, 8), settings=SMALLEST, presets={}, estimated=0)
        monkeypatch.setitem(PROBLEMS, name, small)

    def held_out(self: Bench, name: str, seed: int, config: TrainingConfig) -> Dataset:
        return self.data(name, "trajectory" if config.horizon == "trajectory" else "train", seed + 1, 8)

    monkeypatch.setattr(Bench, "held_out", held_out)
    tiny_baselines(monkeypatch)
    monkeypatch.setattr(source, "FEWEST_HELD_OUT", 1)
    for table in (cost, frontier):
        monkeypatch.setattr(table, "BATCHES", (1, 2))
    regime_b_residual.drawn.cache_clear()
    return Bench(2, 1, lambda text, share: None, "quick", tmp_path)


def test_dictionary(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    rows = assembled(find_table("dictionary"), bench, ["dictionaries"])
    known = {(row.problem, row.dictionary, row.metric): row for row in rows}
    assert len(known) == len(rows) == 3 * (len(sizes.PAPER) + len(sizes.TRANSFERS))
    assert known["adr2d", "spectral", sizes.COUNT].value == 3 and known["ks1d", "spectral", sizes.COUNT].value == 2
    for row in rows:
        if row.metric == sizes.ALLOWED:
            assert (row.value > 5 or row.problem == "ad1d") and row.value <= 100  # whose one step of each is exact
        if row.metric == sizes.PUBLISHED_FORM:
            assert row.value >= row.paper  # type: ignore[operator]
    path_b = known["adr2d", "path (b): learned advection–diffusion, reaction", sizes.COUNT]
    assert path_b.value == 2 and "ad: Network" in str(path_b.variant)
    monkeypatch.setattr(sizes, "PAPER", {"adr2d": 73.0})
    (trained,) = assembled(find_table("dictionary"), bench, ["trained"])
    assert trained.value == bench.learned("adr2d", 0).model.model.theta.size


@pytest.mark.validate
def test_cost(bench: Bench) -> None:
    rows = assembled(find_table("cost"), bench)
    found = {(row.method, str(row.variant), row.metric): row for row in rows}
    told = found["HyCOP", "steps=20, batch=1", cost.SECONDS]
    assert told.paper == 1.341 and told.value == told.seconds_per_sample > 0
    assert found["AR-LocalNO", "steps=5, batch=1", cost.SECONDS].paper == 0.258
    assert found["AR-LocalNO", "steps=5, batch=2", cost.SECONDS].paper is None
    assert found["HyCOP", "", PASSES].value > 0 and found["HyCOP", "", PASSES].paper == 5e5
    assert any(
        row.value == 20 for (method, _, metric), row in found.items() if (method, metric) == ("AR-U-Net", PASSES)
    )
    methods = {row.method for row in rows} - {EQUAL_ERROR, LESS_ACCURATE}
    assert methods == {"HyCOP", CLASSICAL, *cost.NETWORKS}


def test_zero_shot(bench: Bench) -> None:
    rows = assembled(find_table("zero-shot"), bench)
    found = {(row.method, row.variant["r"], row.metric): row for row in rows}
    assert {method for method, _, _ in found} == {"HyCOP", zero_shot.EXACT, *zero_shot.NETWORKS}
    assert found["U-Net", "[0.1, 1]", "rmse"].paper == 7.41e-2
    for metric in zero_shot.METRICS:  # a faster reaction is missed more
        assert found["HyCOP", "[1, 2.5]", metric].value > 2 * found["HyCOP", "[0.1, 1]", metric].value
    assert found["HyCOP", "[1, 2.5]", "rel_l2"].value > 0.05


def test_frontier(bench: Bench) -> None:
    table = find_table("frontier")
    rows = summarised(table, assembled(table, bench, table.parts_about("adr2d")))
    families = {row.variant[frontier.FAMILY] for row in rows if frontier.FAMILY in row.variant}
    assert families == {"HyCOP", "splitting", "unsplit", *MONOLITHIC}
    points = [row for row in rows if frontier.FAMILY in row.variant]
    assert {row.variant["batch"] for row in points} == {"1", "2"} and {row.split for row in points} == {"id", "ood"}
    assert all(row.seconds_per_sample > 0 for row in points)
    (passes,) = (row for row in rows if (row.method, row.metric) == ("HyCOP", PASSES))
    assert passes.value > 0
    ahead = [row for row in rows if row.metric == frontier.FASTEST]
    assert ahead and all(row.part == "summary" for row in ahead)
    assert summarised(table, rows) == rows  # and it is not summarised twice
    assert set(frontier.figures(bench, rows)) == {"frontier_adr2d"}
    again = bench.front("adr2d", 0, frontier.POINTS)  # is read from the folder
    assert again.passes == passes.value and len(again.models) >= 1


def test_who_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier, "LEVELS", (1e-1, 1e-3, 1e-5))
    fields: dict[str, Any] = {
        "std": 0.0,
        "seeds": 1,
        "samples": 1,
        "work": 1.0,
        "truth": "",
        "limit": 0.0,
        "metric": "rel_l2",
    }

    def made(method: str, family: str, error: float, seconds: float, batch: int = 1) -> Row:
        variant = Variant.of({frontier.FAMILY: family, "batch": batch})
        about: dict[str, Any] = {
            "problem": "p",
            "split": "id",
            "dictionary": "",
            "time": 1.0,
            "grid": "8",
        }
        return Row(**about, **fields, method=method, variant=variant, value=error, seconds_per_sample=seconds)

    rows = [made("HyCOP", "HyCOP", 1e-4, 2.0), made("FNO", "FNO", 5e-2, 1.0), made("Strang", "splitting", 1e-2, 4.0)]
    found = {(row.metric, row.variant["error"]): (row.method, row.value) for row in frontier.summary(rows)}
    assert found == {
        (frontier.FASTEST, "<=0.1"): ("FNO", 1.0),
        (frontier.TIMES_FASTEST, "<=0.1"): ("HyCOP", 2.0),
        (frontier.FASTEST, "<=0.001"): ("HyCOP", 2.0),
        (frontier.TIMES_FASTEST, "<=0.001"): ("HyCOP", 1.0),
    }
    assert frontier.hull([(1, 3.0), (2, 4.0), (3, 1.0)]) == ([1, 3], [3.0, 1.0])
    whole = [made("HyCOP", "HyCOP", 1e-4, 2.0, 64), made("FNO", "FNO", 5e-2, 1.0, 64)]
    trained = [replace(made(name, "", took, 0.0), metric=SECONDS) for name, took in (("HyCOP", 40.0), ("FNO", 800.0))]
    told = [replace(row, variant=Variant()) for row in trained]
    over = {row.metric: row.value for row in frontier.summary([*whole, *told]) if row.method == "FNO"}
    assert over[frontier.ERROR_OVER] == pytest.approx(500) and over[frontier.TRAINING_OVER] == pytest.approx(20)
