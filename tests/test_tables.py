"""The tables of the systems, each built at the smallest size: what rows they have, not how good the numbers are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycop.data import Dataset
from hycop.evaluation import Composed, Row, Variant, opponents
from hycop.experiments import (
    assembled,
    dam_break,
    es,
    find_table,
    fixed_time,
    fixtures,
    interpretation,
    one_dimensional,
    resolution,
    robustness,
    trajectory,
)
from hycop.experiments.bench import Bench
from hycop.experiments.coverage import TRAITS
from hycop.experiments.judging import CLASSICAL, EQUAL_ERROR, LESS_ACCURATE, ungated
from hycop.experiments.table import Table
from hycop.metrics import rel_l2
from hycop.policy import Pattern, SlotPolicy
from hycop.problems import PROBLEMS, adr, burgers, shallow_water
from hycop.program import Program, ProgramBatch
from hycop.schemes import splitting
from hycop.training import TrainingConfig, source
from tests.helpers import tiny_baselines

SMALLEST = {"samples": 8, "max_steps": 3, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "refinement": 1}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """Two samples on small grids with coarse truths; models that learn next to nothing and are judged by few."""
    for family in (adr, shallow_water):
        monkeypatch.setattr(family, "FINEST", {1: 64, 2: 32, 3: 16})
    monkeypatch.setattr(burgers, "FINEST", 64)
    monkeypatch.setattr(opponents, "SUBSTEPS", (1,))
    for name in ("ad1d", "burgers1d", "swe1d", "ad2d", "adr2d", "swe2d", "adr3d"):
        known = PROBLEMS[name]
        shape = (16,) if len(known.shape) == 1 else (8,) * len(known.shape)
        small = replace(known, shape=shape, settings=SMALLEST, presets={}, estimated=0)
        monkeypatch.setitem(PROBLEMS, name, small)

    def held_out(self: Bench, name: str, seed: int, config: TrainingConfig) -> Dataset:
        return self.data(name, "trajectory" if config.horizon == "trajectory" else "train", seed + 1, 8)

    monkeypatch.setattr(Bench, "held_out", held_out)
    tiny_baselines(monkeypatch)
    monkeypatch.setattr(source, "FEWEST_HELD_OUT", 1)
    return Bench(2, 1, lambda text, share: None, "quick", tmp_path)


def methods(rows: list[Row], **fields: str) -> set[str]:
    """The methods of the rows with these fields."""
    return {row.method for row in rows if all(getattr(row, name) == value for name, value in fields.items())}


SPLIT = {"HyCOP", "static", CLASSICAL, "limit"}
WHOLE = {*SPLIT, "unsplit"}
MONOLITHIC = {"DeepONet", "FNO", "PINO", "LocalNO"}
AT_EQUAL_ERROR = {EQUAL_ERROR, LESS_ACCURATE}


def test_one_dimension(bench: Bench) -> None:
    rows = assembled(find_table("1d"), bench)
    assert methods(rows, problem="ad1d", split="id", metric="rel_l2") <= {*SPLIT, EQUAL_ERROR, "FNO", "LocalNO"}
    assert methods(rows, problem="swe1d", split="ood", metric="rmse") - AT_EQUAL_ERROR == {*WHOLE, "FNO", "LocalNO"}
    for name in one_dimensional.PAPER:
        for variant in ("", "truth=same grid") if name == "burgers1d" else ("",):
            mine = [row for row in rows if (row.problem, str(row.variant)) == (name, variant)]
            unsplit = [row for row in mine if row.method in AT_EQUAL_ERROR and row.split == "ood"]
            assert {row.metric for row in unsplit} > {"rel_l2", "rmse", "max_error"} and len(unsplit) == 4
            assert all(row.work > 0 and row.seconds_per_sample > 0 for row in unsplit)
    same = [row for row in rows if row.variant.get("truth") == "same grid" and row.metric == "rel_l2"]
    assert {row.split for row in same} == {"id", "ood"} and all(row.truth.startswith("same grid") for row in same)
    assert all(row.value == 0 for row in same if row.method == "limit")  # which is that truth
    told = [row for row in rows if row.paper is not None and not row.variant]
    quoted = {(row.problem, row.split): row.paper for row in told if row.method == "HyCOP"}
    assert quoted["swe1d", "ood"] == 3.07e-2 and len(quoted) == 6
    theirs = {(row.problem, row.split, row.method, row.metric): row.paper for row in told}
    assert theirs["swe1d", "ood", "LocalNO", "max_error"] == 3.88 and len(theirs) == 6 + 3 * 2 * 2 * 3
    trainings = {row.metric for row in rows if (row.method, row.split) == ("FNO", "train")}
    assert {"training seconds", "training forward passes", "slope of the curve"} <= trainings
    drawn = one_dimensional.figures(bench, rows)
    assert set(drawn) == {f"{name}_{split}" for name in one_dimensional.PAPER for split in ("id", "ood")}


@pytest.mark.validate
def test_fixed_time(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(fixtures.FOLDER, str(pyclaw_like(tmp_path)))
    rows = assembled(find_table("fixed-time"), bench)
    for split in ("id", "ood", "pyclaw id", "pyclaw ood"):
        found = methods(rows, problem="swe2d", split=split, metric="crmse_paper")
        assert found - AT_EQUAL_ERROR == {*WHOLE, *MONOLITHIC}
    assert not methods(rows, problem="adr2d", metric="crmse_paper")
    judges = [row for row in rows if row.split.startswith("pyclaw")]
    assert {(row.samples, row.time, row.truth) for row in judges if row.metric == "rmse"} == {
        (6, 0.3, "PyClaw 512x512"),
        (2, 0.3, "PyClaw 512x512"),
    }
    told = [row for row in rows if row.paper is not None]
    quoted = {(row.problem, row.split, row.metric): row.paper for row in told if row.method == "HyCOP"}
    assert quoted["swe2d", "ood", "brmse_paper"] == 4.35e-2 and len(quoted) == 7 * 2 + 8 * 2
    (one,) = (
        row for row in told if (row.problem, row.split, row.method, row.metric) == ("adr2d", "ood", "FNO", "rmse")
    )
    assert one.paper == 9.58e-2 and len(told) == 5 * len(quoted)
    assert set(fixed_time.figures(bench, rows)) == {"adr2d_id", "adr2d_ood", "swe2d_id", "swe2d_ood"}


@pytest.mark.validate
def test_trajectory(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[str] = []
    monkeypatch.setenv(fixtures.FOLDER, str(tmp_path))
    rows = assembled(find_table("trajectory"), replace(bench, remark=told.append))
    assert len(told) == 1 and fixtures.PYCLAW in told[0] and fixtures.FOLDER in told[0]
    assert {row.split for row in rows} == {"id", "ood", "train"}
    ours = {(row.problem, str(row.variant)): row for row in rows if (row.method, row.metric) == ("HyCOP", "rel_l2")}
    assert {variant for _, variant in ours} == {f"steps={steps}" for steps in (1, 5, 10, 20)}
    assert ours["adr2d", "steps=20"].time == 0.4 and ours["swe2d", "steps=20"].time == 1.0
    assert ours["swe2d", "steps=5"].paper is not None
    rolled = {
        (row.problem, row.split, str(row.variant), row.metric): row.paper for row in rows if row.method == "AR-U-Net"
    }
    assert rolled["swe2d", "id", "steps=20", "rel_l2"] == 4.20 and rolled["adr2d", "ood", "steps=1", "rmse"] == 5.05e-2
    drawn = trajectory.figures(bench, rows)
    assert set(drawn) == {f"trajectory_{name}_{split}" for name in ("adr2d", "swe2d") for split in ("id", "ood")}


def test_coverage() -> None:
    rows = assembled(find_table("coverage"), Bench(1, 1, lambda text, share: None))
    assert {row.problem for row in rows} == set(PROBLEMS)
    ticks = [row for row in rows if row.metric in TRAITS and row.paper is not None]
    assert len(ticks) == 8 * len(TRAITS) and all(row.value == row.paper for row in ticks)
    sizes = {row.problem: row.value for row in rows if row.metric == "policy parameters"}
    assert all(size <= 100 for size in sizes.values()) and sizes["adr2d"] > 20


def pyclaw_like(folder: Path) -> Path:
    """A file as PyClaw's, of still water on a few cells."""
    still = np.zeros((8, 3, 8, 8), dtype=np.float32)
    still[:, 0] = 1.0
    later = np.repeat(still[:, None], 5, axis=1)
    times = np.array([0.05, 0.15, 0.3, 0.5, 1.0])
    np.savez(folder / fixtures.PYCLAW, u0_32=still, u_32=later, g=np.full(8, 9.81), times=times)
    return folder


def test_dam_breaks(bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(fixtures.FOLDER, str(tmp_path))
    monkeypatch.setitem(PROBLEMS, "dambreak2d", replace(PROBLEMS["dambreak2d"], shape=(24, 24)))
    rows = assembled(find_table("dambreak"), bench)
    assert methods(rows, split="ritter") == {"unsplit"}
    known = {row.method: row for row in rows if row.metric == "rel_l2 of h" and row.split == "stoker"}
    expected = {"HyCOP (periodic)", "HyCOP (walls)", CLASSICAL, "unsplit", dam_break.NETWORK}
    assert set(known) - AT_EQUAL_ERROR == expected and known[dam_break.NETWORK].paper == 3.84e-1
    assert len(set(known) & AT_EQUAL_ERROR) == 1
    found = [row for row in rows if row.metric == "rel_l2 of h"]
    errors = {str(row.variant): row.value for row in found if row.method == "HyCOP (walls)" and row.split == "stoker"}
    (periodic,) = (
        row.value for row in found if (row.method, str(row.variant)) == ("HyCOP (periodic)", "program^m, T=5")
    )
    assert errors["program^m, T=5"] < 0.2 * periodic and errors["program^2m, T=5"] < 0.2 * periodic
    assert all(row.value < 1e-12 for row in rows if row.metric == "mass drift" and row.method != dam_break.NETWORK)
    assert all(row.value >= 0 for row in rows if row.metric == "least depth")
    assert set(find_table("dambreak").figures(bench, rows)) == {"dambreak_stoker"}


def test_resolution(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolution, "GRIDS", {(8, 8): 1, (9, 9): 1, (16, 16): 2})
    rows = assembled(find_table("resolution"), bench)
    assert methods(rows, metric="max_error", grid="9x9", split="ood") == {"HyCOP", CLASSICAL, "unsplit"}
    assert {row.dictionary for row in rows if row.method != "truth"} == {"weno5", "unsplit"}
    assert {row.grid for row in rows if row.method == "truth"} == {"8x8"}  # the only one that is there doubled
    known = {(row.split, row.grid, row.metric, row.method): row for row in rows}
    one, other = bench.data("swe2d", "id", 0, 2, shape=(8, 8), estimated=0), known["id", "16x16", "rel_l2", "unsplit"]
    first = Composed(splitting("Lie"), PROBLEMS["swe2d"].dictionaries["unsplit"]).solve(one.query)
    coarse = float(rel_l2(first.states, one.truth, one.setting)[0])  # of the one sample that the finer grid has too
    assert known["id", "16x16", "fall", "unsplit"].value == pytest.approx(coarse / other.value)
    assert other.samples == 1
    assert set(find_table("resolution").figures(bench, rows)) == {"resolution"}


def test_changes_of_programs() -> None:
    names = ("a", "b")
    one = ProgramBatch.of([Program.of(("a", 0.1), ("b", 0.2))], names)
    near = ProgramBatch.of([Program.of(("a", 0.1), ("b", 0.25))], names)
    other = ProgramBatch.of([Program.of(("b", 0.1), ("b", 0.2))], names)
    longer = ProgramBatch.of([Program.of(("a", 0.1), ("b", 0.1), ("b", 0.1))], names)
    changes = [resolution.program_change(one, batch) for batch in (one, near, other, longer)]
    assert changes == pytest.approx([0.0, 0.2, 1.0, 1.0])


def test_interpretation(bench: Bench) -> None:
    rows = assembled(find_table("interpretation"), bench)
    assert {(row.problem, row.dictionary) for row in rows} == {
        ("adr2d", "spectral"),
        ("adr2d", "upwind"),
        ("swe2d", "weno5"),
    }
    for budget in ("consistent", "gain", "literal"):
        for number in ("damkohler", "peclet"):
            mine = {
                (row.variant, row.metric): row.value
                for row in rows
                if row.problem == "adr2d" and row.variant["budget"] == budget and row.variant.get(number)
            }
            numbers = [value for (_, metric), value in mine.items() if metric == number]
            assert len(numbers) == 4 and numbers == sorted(numbers)  # two queries of either split, a bin each
            for place in (variant for variant, metric in mine if metric == number):
                of = {
                    metric: [mine[place.adding({name: ""}), metric] for name in ("advection", "diffusion", "reaction")]
                    for metric in ("steps", "work share", "gain", "time share")
                    if (place.adding({"reaction": ""}), metric) in mine
                }
                assert ("time share" in of) == (budget != "consistent")
                assert sum(of["work share"]) == pytest.approx(1.0) and min(of["steps"]) >= 1
                if budget == "consistent":
                    assert of["gain"] == pytest.approx([1.0] * 3)
                if budget == "literal":
                    assert of["gain"] == pytest.approx(of["time share"]) and sum(of["gain"]) == pytest.approx(1.0)
    trends = {str(row.variant): row.value for row in rows if row.metric == "gain trend"}
    assert trends["budget=consistent, damkohler, reaction"] == 0.0
    assert all(-1 <= row.value <= 1 for row in rows if row.metric.endswith("trend"))
    assert len(interpretation.figures(bench, rows)) == 4


def test_robustness(bench: Bench) -> None:
    whole = find_table("robustness")
    parts = {name: part for name, part in whole.parts.items() if name != "redundant swe1d"}  # which is as swe2d
    rows = assembled(replace(whole, parts=parts), replace(bench, samples=8))
    both = [row for row in rows if row.variant in (robustness.OWN, robustness.EXTENDED) and row.metric == "rel_l2"]
    assert {(row.problem, row.split) for row in both} == {("swe2d", "id"), ("swe2d", "ood")}
    assert {row.method for row in both} == {"HyCOP", robustness.BEFORE, "limit"}
    paper = {(row.split, row.metric): row.paper for row in rows if row.paper is not None and row.problem == "swe2d"}
    assert paper["id", robustness.TIME_SHARE] == 0.035 and not any(split == "ood" for split, _ in paper)
    missing = {row.variant: row for row in rows if (row.split, row.method, row.metric) == ("id", "HyCOP", "rel_l2")}
    without = missing[robustness.WITHOUT]
    assert without.paper == 1.81e-1 and without.value > 5 * missing[robustness.FULL].value
    assert without.value > 5 * missing[robustness.SWITCHED_OFF].value
    quarters = [missing[robustness.WITHOUT.adding({f"quarter {index} by rT": ""})] for index in (1, 2, 3, 4)]
    assert quarters[0].value < quarters[-1].value
    assert np.mean([row.value for row in quarters]) == pytest.approx(without.value)
    drawn = find_table("robustness").figures(replace(bench, samples=8), rows)
    assert set(drawn) == {"robustness_missing_id", "robustness_missing_ood"}
    kept = replace(bench, _models={})  # as another process finds it
    learned = [robustness.trained_with_dummy(each, "swe2d", 0).model.model for each in (bench, kept)]
    np.testing.assert_array_equal(learned[0].theta, learned[1].theta)
    assert learned[1].dictionary[robustness.DUMMY] == robustness.DummyReaction()


def test_shares_count_what_a_primitive_gets(bench: Bench) -> None:
    """Of a policy whose dummy has half the query time and one of three steps."""
    model = robustness.trained_with_dummy(bench, "swe1d", 0).model.model
    policy = SlotPolicy((Pattern((0, 1, 2), (1.0, 1.0, 1.0)),), model.policy.allotment, 0)  # type: ignore[attr-defined]
    halved = ungated(replace(model, policy=policy, theta=np.zeros(policy.size)))
    query = bench.data("swe1d", "id", 0).query
    time, work = robustness.shares(halved, query, robustness.DUMMY)
    assert time == pytest.approx(0.5 / 2.5)
    assert work == pytest.approx(query.u0.size / halved.solve(query).work.sum())


def test_evolution_strategy(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(es, "POPULATIONS", (100,))
    monkeypatch.setattr(es, "SIGMAS", (0.02,))
    changes = {"generations": 2, "samples": 8, "max_steps": 4, "shape": (8, 8)}
    monkeypatch.setattr(es, "SETTINGS", {**es.SETTINGS, **changes})
    rows = assembled(replace(es.TABLE, parts=es.parts()), bench)
    ours = {str(row.variant): row for row in rows if (row.method, row.metric) == ("HyCOP", "rel_l2")}
    assert set(ours) == {"M=100,sigma=0.02"}
    assert {row.grid for row in ours.values()} == {"8x8"}
    quoted = {(row.split, str(row.variant)): row.paper for row in rows if row.paper is not None}
    assert quoted == {("id", "M=100,sigma=0.02"): 0.035}
    drawn = es.TABLE.figures(bench, rows)
    assert [text.get_text() for text in drawn["es"].axes[0].texts] == ["0.035"]


def test_parts_are_kept_until_a_file_comes_or_a_primitive_changes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(fixtures.FOLDER, str(tmp_path / "files"))
    data, computed = bench.data("ad1d", "id", 0), []

    def part(bench: Bench, seed: int) -> list[Row]:
        computed.append(seed)
        return [Row.of(data, method="m", metric="v", value=float(seed), variant=Variant.of({"direct": "", "T": 5}))]

    table = Table("one", "one", {"part": part}, fixtures=("file.npz",))
    twice = [assembled(table, replace(bench, seeds=2)) for _ in range(2)]
    assert computed == [0, 1] and twice[0] == twice[1] and twice[0][0].variant["T"] == "5"
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "file.npz").touch()
    assembled(table, bench)
    upwind = PROBLEMS["ad1d"].dictionaries["upwind"]
    monkeypatch.setitem(PROBLEMS, "ad1d", replace(PROBLEMS["ad1d"], dictionaries={"upwind": upwind}))
    assembled(table, bench)
    assert computed == [0, 1, 0, 0]


def test_without_a_folder_there_are_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fixtures.FOLDER, raising=False)
    assert fixtures.fixture(fixtures.PYCLAW) is None and fixtures.pyclaw() == {} == fixtures.dam_breaks()
