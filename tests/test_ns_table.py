"""Table ``ns`` at the smallest size: its rows, what the conservative dictionary keeps, and its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hycop.baselines import find_baseline
from hycop.data import Dataset, write_pdebench
from hycop.evaluation import Row, limits, opponents
from hycop.experiments import assembled, find_table, fixtures, ns
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL, EQUAL_ERROR, LESS_ACCURATE
from hycop.problems import PROBLEMS, compressible
from hycop.training import TrainingConfig, source
from tests.helpers import tiny_baselines

SMALLEST = {"samples": 8, "max_steps": 5, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "metric": "nrmse"}
SPLITS = ("pdebench", "id", "ood"), ("converged", "id", "ood")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """Two samples on small grids with coarse truths; models that learn next to nothing and are judged by few."""
    monkeypatch.setattr(compressible, "FINEST", 8)
    monkeypatch.setattr(opponents, "SUBSTEPS", (1,))
    monkeypatch.setattr(limits, "LIMIT_SCHEME", "Strang")
    monkeypatch.setattr(ns, "GRIDS", {"ns2d-pdebench": {}, "ns2d": {"shape": (8, 8)}})
    for name in ("ns2d", "ns2d-pdebench"):
        small = replace(PROBLEMS[name], shape=(8, 8), settings=SMALLEST, presets={}, estimated=0)
        monkeypatch.setitem(PROBLEMS, name, small)

    def held_out(self: Bench, name: str, seed: int, config: TrainingConfig) -> Dataset:
        return self.data(name, "train", seed + 1, 4)

    monkeypatch.setattr(Bench, "held_out", held_out)
    monkeypatch.setattr(source, "FEWEST_HELD_OUT", 1)
    tiny_baselines(monkeypatch)
    ns.converged.cache_clear()
    return Bench(2, 1, lambda text, share: None, "quick", tmp_path)


def values(rows: list[Row], **fields: str) -> dict[tuple[str, str], float]:
    """Values by method and variant of the rows with these fields."""
    chosen = [row for row in rows if all(getattr(row, name) == value for name, value in fields.items())]
    return {(row.method, str(row.variant)): row.value for row in chosen}


@pytest.mark.validate
def test_ns(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = PROBLEMS["ns2d-pdebench"].sample(2, "id", seed=9, times=[0.05])
    write_pdebench(data, tmp_path / fixtures.PDEBENCH)
    monkeypatch.setenv(fixtures.FOLDER, str(tmp_path))
    rows = assembled(find_table("ns"), bench)
    lengths = [(method, variant) for method in ("HyCOP", "static", CLASSICAL) for variant in map(str, ns.LENGTHS)]
    for name, splits in zip(("ns2d-pdebench", "ns2d"), SPLITS, strict=True):
        for split in splits:
            central = values(rows, problem=name, split=split, metric="nrmse", dictionary="central")
            assert set(central) == {*lengths, (ns.STRANG, ""), ("limit", "")}
            kept = values(rows, problem=name, split=split, metric="drift mass", dictionary="conservative")
            moved = values(rows, problem=name, split=split, metric="drift momentum", dictionary="conservative")
            assert set(kept) == {("HyCOP", variant) for variant in map(str, ns.LENGTHS)}
            assert max(*kept.values(), *moved.values()) < 1e-12
            whole = {
                method for method, _ in values(rows, problem=name, split=split, metric="nrmse", dictionary="unsplit")
            }
            assert "unsplit" in whole and len(whole & {EQUAL_ERROR, LESS_ACCURATE}) == 1 and len(whole) == 2
    quoted = {(row.method, row.split): row.paper for row in rows if row.paper is not None}
    theirs = {(find_baseline(name).label, "pdebench"): value for name, value in ns.BASELINES.items()}
    assert quoted == {("HyCOP", "pdebench"): 4.04e-2, (ns.STRANG, "pdebench"): 7.56e-2, **theirs}
    speedups = [row for row in rows if row.metric.startswith("speedup")]
    assert len(speedups) == 4 and all(row.value > 0 for row in speedups)
    assert set(ns.figures(bench, rows)) == {"ns_pdebench", "ns_id", "ns_ood"}


def test_without_the_file_of_pdebench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(fixtures.FOLDER, str(tmp_path))
    ns.converged.cache_clear()
    assert ns.pdebench() is None and ns.converged() is None
