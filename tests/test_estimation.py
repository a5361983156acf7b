"""Error estimates without a truth, their calibration, and answers to a tolerance."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import hycop
from hycop.errors import InvalidInputError
from hycop.estimation import COVERED, CUT, GRADING, LESS_WORK, UNCALIBRATED, Calibration, Level, Runs
from hycop.execution import measure
from hycop.experiments.estimates import oracle
from hycop.metrics import rel_l2
from hycop.model import Model
from hycop.primitives import ExactLogistic
from hycop.program import ProgramBatch
from hycop.tolerance import _room, _with_unseen, levels_of
from tests.helpers import hycop_command

PROBLEM = hycop.problem("adr2d")
SMALL: dict[str, Any] = {"samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4}
SHAPE = (20, 20)
MODELS = Path(__file__).parent / "models"


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP(PROBLEM.dictionary).fit(PROBLEM, seed=0, verbose=False, shape=SHAPE, **SMALL)


def drawn(split: str, samples: int, seed: int = 1) -> hycop.Dataset:
    return PROBLEM.sample(samples, split, seed, shape=SHAPE, estimated=0)


# ------------------------------------------------------------------------------------------- calibration


def synthetic(seed: int, samples: int, growth: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    distances, times = 10 ** rng.uniform(-5, -2, samples), rng.uniform(0.2, 1.0, samples)
    return distances * times**growth * np.exp(rng.normal(0.0, 0.4, samples)), distances, times


@given(st.integers(0, 1000), st.integers(20, 300), st.sampled_from([0.0, 1.0, -2.0]))
@settings(max_examples=25, deadline=None)
def test_nine_tenths_of_the_held_out_errors_are_covered(seed: int, samples: int, growth: float) -> None:
    errors, distances, times = synthetic(seed, samples, growth)
    found = Calibration.of(errors, distances, times)
    assert found is not None
    covered = int((errors <= found.bound(distances, times) * (1 + 1e-9)).sum())
    assert covered >= COVERED * samples and covered <= COVERED * samples + 4  # ties on the quantile line
    twice = Calibration.of(2 * errors, 2 * distances, times)
    assert twice is not None
    assert np.allclose(twice.bound(2 * distances, times), 2 * found.bound(distances, times))


def test_fresh_queries_are_covered_at_every_time() -> None:
    found = Calibration.of(*synthetic(0, 400, growth=-2.0))
    assert found is not None and found.bound(np.ones(1), np.ones(1)) * 3**2 == pytest.approx(
        found.bound(np.ones(1), np.full(1, 1 / 3)), rel=0.3
    )
    errors, distances, times = synthetic(1, 4000, growth=-2.0)
    covered = errors <= found.bound(distances, times)
    for part in np.array_split(np.argsort(times), 4):
        assert 0.83 <= covered[part].mean() <= 0.96


def test_a_calibration_follows_a_curve_in_time() -> None:
    """Detail below a cell matters early, the program late: the ratio of error to distance is least in between."""

    def bent(seed: int, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        errors, distances, times = synthetic(seed, samples)
        return errors * np.exp(1.5 * np.log(times / 0.45) ** 2), distances, times

    found = Calibration.of(*bent(0, 400))
    assert found is not None and found.curvature == pytest.approx(1.5, abs=0.4)
    errors, distances, times = bent(1, 4000)
    covered = errors <= found.bound(distances, times)
    for part in np.array_split(np.argsort(times), 4):
        assert 0.83 <= covered[part].mean() <= 0.96


def test_what_cannot_be_calibrated() -> None:
    errors, distances, times = synthetic(0, 40)
    assert Calibration.of(errors[:8], distances[:8], times[:8]) is None  # nine are needed for nine tenths
    assert Calibration.of(errors, distances, np.zeros(40)) is None
    assert Calibration.of(np.where(np.arange(40) < 30, errors, np.inf), distances, times) is None
    some = Calibration.of(np.where(np.arange(40) < 39, errors, np.inf), distances, times)
    assert some is not None and np.isfinite(some.bound(distances, times)).all()
    same = Calibration.of(errors, distances, np.ones(40))
    assert same is not None and same.growth == 0.0 and same.bound(distances, np.zeros(40)).tolist() == [0.0] * 40


# ------------------------------------------------------------------------------------------- estimates


def test_the_estimate_knows_the_error(model: hycop.HyCOP) -> None:
    data = [drawn(split, 60) for split in ("train", "ood")]
    answers = [model.answer(each.query) for each in data]
    errors = [rel_l2(a.states, d.truth, d.query.setting) for a, d in zip(answers, data, strict=True)]
    assert all(answer.estimate.calibrated for answer in answers)
    assert 0.78 <= (errors[0] <= answers[0].error).mean() <= 0.98
    assert spearmanr(np.concatenate(errors), np.concatenate([answer.error for answer in answers]))[0] > 0.85
    assert all(answer.estimate.work.mean() <= 9 * answer.work.mean() for answer in answers)


def test_graded_cuts_see_the_initial_layer(model: hycop.HyCOP) -> None:
    """Strong diffusion smooths a bump long before the first of equal cuts ends; graded ones start with a shorter."""
    x = (np.arange(20) + 0.5) / 20 - 0.5
    bump = np.exp(-(x[:, None] ** 2 + x[None, :] ** 2) / (2 * 0.05**2))[None, None]
    setting = replace(drawn("id", 1).setting, params={"cx": 0.1, "cy": 0.1, "Dx": 0.3, "Dy": 0.3, "r": 1.0})
    query = hycop.Query(bump, setting, np.array([0.2]))
    scheme = hycop.splitting("ababa").programs(query, PROBLEM.dictionary)

    def run(programs: ProgramBatch) -> np.ndarray:
        return measure(programs, PROBLEM.dictionary, query).states

    limit = run(scheme.with_substeps(512))
    equal, graded = run(scheme.with_substeps(CUT)), run(scheme.with_graded_substeps(CUT, GRADING))
    assert rel_l2(graded, limit, setting)[0] < 0.3 * rel_l2(equal, limit, setting)[0]
    ladder = model.model.ladder
    expected = model.model.classical().programs(query).with_graded_substeps(CUT, GRADING)
    assert np.array_equal(ladder.programs(query, CUT).durations, expected.durations)


def test_estimates_that_take_too_much_work_cut_programs_less(
    model: hycop.HyCOP, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_out = drawn("train", 60)
    usual = model.model.calibrated(held_out)
    monkeypatch.setattr("hycop.estimation.MOST_WORK", 0.0)
    less = model.model.calibrated(held_out)
    assert usual.calibration is not None and usual.calibration.finer_cut == CUT
    assert less.calibration is not None
    assert (less.calibration.finer_cut, less.calibration.finer_grid) == LESS_WORK[-1]
    query = drawn("id", 3).query
    assert (less.answer(query).estimate.work < usual.answer(query).estimate.work).all()


def test_grids_are_refined_by_half_where_twice_takes_too_much_work(
    model: hycop.HyCOP, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    held_out, query = drawn("train", 60), drawn("id", 3).query
    finer = replace(model.model, refinement=2, calibration=None)
    monkeypatch.setattr("hycop.estimation.MOST_WORK", 6.0)
    half = finer.calibrated(held_out)
    assert half.calibration is not None
    assert (half.calibration.finer_cut, half.calibration.finer_grid) == LESS_WORK[1] == (4, 1.5)
    start = half.ladder.start
    assert half.ladder.finer_grid_than(start) == Level(1, 3)
    assert half.ladder.finer_grid_than(Level(1, 3)) == Level(1, 5)  # cells are whole
    assert (half.answer(query).estimate.work <= 6.5 * half.answer(query).work).all()
    hycop.HyCOP.of(half).save(tmp_path / "run")
    assert hycop.HyCOP.load(tmp_path / "run").model.calibration == half.calibration
    # what is doubled without a calibration is the distance to a grid twice as fine
    other = replace(half, scope=replace(half.scope, untrained=("advection",)))
    assert np.array_equal(other.answer(query).estimate.distance, finer.answer(query).estimate.distance)


def test_an_estimate_belongs_to_its_query_alone(model: hycop.HyCOP) -> None:
    query = drawn("id", 5).query
    query = replace(query, time=np.array([0.2, 0.0, 0.1, 0.3, 0.2]))
    answer = model.answer(query)
    assert answer.error[1] == 0.0 and (answer.error[[0, 2, 3, 4]] > 0).all()
    for sample in range(5):
        alone = model.answer(query.take(slice(sample, sample + 1)))
        assert alone.error[0] == answer.error[sample]
    assert answer.tolerance is None and answer.tolerance_met is None


def test_swapped_parts_are_not_calibrated(model: hycop.HyCOP) -> None:
    walled = hycop.swap(model, boundary="wall", auto=True).model
    query = PROBLEM.queries(3, "id", shape=SHAPE, boundary="wall")
    estimate = walled.answer(query).estimate
    assert not estimate.calibrated and np.array_equal(estimate.error, UNCALIBRATED * estimate.distance)
    reached = walled.answer(query, tol=1e-2)
    assert not reached.estimate.calibrated and reached.tolerance_met is not None
    assert model.model.opened().calibration is None  # other programs have other errors


@dataclass(frozen=True)
class Learned(ExactLogistic):
    """A primitive without an order, as a network is."""

    order = None  # type: ignore[assignment]


def test_grids_of_networks_are_not_refined(model: hycop.HyCOP) -> None:
    inner = model.model
    learned = replace(inner, dictionary=inner.dictionary.swapping("reaction", Learned()))
    query = drawn("id", 3).query
    own = measure(learned.programs(query), learned.dictionary, query)
    gap = Runs.starting_from(learned.ladder, query, own).gap(np.arange(3), Level(1, 1))
    assert not gap.grid.any() and np.array_equal(gap.total, gap.program) and gap.program.all()
    assert {level.refinement for level in levels_of(learned.ladder, query)} == {1}


# ------------------------------------------------------------------------------------------- tolerance


def test_nothing_is_claimed_on_grids_that_cannot_be_refined(model: hycop.HyCOP) -> None:
    query = PROBLEM.sample(3, "id", 1, shape=(4, 4), estimated=0).query
    answer = model.answer(query, tol=1e-2)
    assert np.isinf(answer.error).all() and not np.any(answer.tolerance_met)


def test_answers_to_a_tolerance(model: hycop.HyCOP) -> None:
    data = drawn("id", 24)
    own, work = model.answer(data.query), np.zeros(24)
    for tol in (1e-1, 2e-3, 1e-3):  # on this grid half of the queries cannot reach 3e-4, which is said
        answer = model.answer(data.query, tol)
        met = answer.tolerance_met
        assert met is not None and np.array_equal(met, answer.error <= tol) and answer.tolerance == tol
        errors = rel_l2(answer.states, data.truth, data.query.setting)
        assert met.mean() >= 0.6 and (errors[met] <= tol).mean() >= 0.9
        assert (answer.work[met] >= work[met]).all()
        work = np.where(met, answer.work, work)
        for refinement in np.unique(answer.refinement).tolist():  # the programs are those of the states
            rows = np.flatnonzero(answer.refinement == refinement)
            programs, query = answer.programs.take(rows), data.query.take(rows)
            again = measure(programs, model.dictionary, query, refinement=refinement)
            assert np.array_equal(again.states, answer.states[rows]) and np.allclose(again.work, answer.work[rows])
        kept = own.error <= tol  # what is good enough is not refined
        assert np.array_equal(answer.states[kept], own.states[kept])
    assert (work > own.work).any()


def test_an_answer_to_a_tolerance_belongs_to_its_query_alone(model: hycop.HyCOP) -> None:
    query = drawn("ood", 12).query
    together = model.answer(query, tol=3e-4)
    for sample in range(12):
        alone = model.answer(query.take(slice(sample, sample + 1)), tol=3e-4)
        assert np.array_equal(alone.states[0], together.states[sample])
        assert (alone.error[0], alone.work[0]) == (together.error[sample], together.work[sample])
        assert alone.estimate.work[0] == together.estimate.work[sample]


def test_a_better_run_may_show_that_a_cheaper_one_is_good_enough(model: hycop.HyCOP) -> None:
    """A tolerance just below an estimate that is too large: a refined answer is computed, and tells."""
    data = drawn("id", 8)
    own, kept = model.answer(data.query), 0
    for sample in range(8):
        one, tol = data.take(slice(sample, sample + 1)), 0.97 * float(own.error[sample])
        answer = model.answer(one.query, tol)
        assert answer.tolerance_met is not None
        if answer.tolerance_met[0] and answer.work[0] == own.work[sample]:
            kept += 1
            assert np.array_equal(answer.states[0], own.states[sample])
            assert rel_l2(answer.states, one.truth, one.query.setting)[0] <= tol
    assert kept >= 2


@pytest.mark.parametrize("split", ["id", "ood"])
def test_answers_to_a_tolerance_take_little_more_work_than_needed(model: hycop.HyCOP, split: str) -> None:
    """The oracle knows the truth, and takes the cheapest level of the same ladder that meets the tolerance."""
    data, refined = drawn(split, 24), 0
    for tol in (2e-3, 1e-3, 5e-4):
        answer = model.answer(data.query, tol)
        errors = rel_l2(answer.states, data.truth, data.query.setting)
        true = np.flatnonzero(np.asarray(answer.tolerance_met) & (errors <= tol))
        least = oracle(model.model, data, answer, true)
        assert answer.work[true].sum() <= 1.5 * least.sum()
        refined += int((answer.work[true] > model.answer(data.query).work[true]).sum())
    assert refined >= 4


def test_detail_below_a_cell_leaves_room_for_other_errors() -> None:
    unseen = np.array([0.0, 0.5, 0.99, 1.0, 1.01, np.inf])
    room = _room(1.0, unseen)
    assert room[0] == 1.0 and (np.diff(room) <= 0).all() and (room[4:] == -1).all()
    assert room[3] > 0.8  # an effect that just fits does not ask for exact answers
    assert np.allclose(_with_unseen(room[:4], unseen[:4]), 1.0)
    assert (_with_unseen(np.zeros(6), unseen) >= unseen).all()


def test_a_tolerance_out_of_reach_is_said(model: hycop.HyCOP) -> None:
    query = drawn("id", 4).query
    answer = model.answer(query, tol=1e-13)
    assert answer.tolerance_met is not None and not answer.tolerance_met.any()
    assert np.isfinite(answer.states).all() and (answer.error > 1e-13).all()


@pytest.mark.parametrize("tol", [0, -1e-3, np.nan, np.inf, True, "1e-3", [1e-3]])
def test_a_tolerance_is_a_positive_number(model: hycop.HyCOP, tol: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^tol is .*: a relative error above zero is needed, as 1e-3$"):
        model.answer(drawn("id", 1).query, tol)


# ------------------------------------------------------------------------------------------- files


def test_a_calibration_comes_back_to_the_bit(model: hycop.HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    again = hycop.HyCOP.load(tmp_path / "run")
    assert again.model.calibration == model.model.calibration is not None
    query = drawn("id", 2).query
    assert np.array_equal(again.answer(query).error, model.answer(query).error)


@pytest.mark.parametrize("schema", ["schema1", "schema2"])
def test_folders_of_earlier_versions_are_not_calibrated(schema: str) -> None:
    old: Model = hycop.HyCOP.load(MODELS / schema).model
    assert old.calibration is None


@pytest.mark.parametrize("suffix", ["nc", "npz"])
def test_predict_writes_estimates(model: hycop.HyCOP, tmp_path: Path, suffix: str) -> None:
    run, given, target = tmp_path / "run", tmp_path / "in.nc", tmp_path / f"out.{suffix}"
    model.save(run)
    data = drawn("id", 6)
    data.save(given)
    result = hycop_command("predict", run, given, target, "--times", "0.1,0.2", "--error-estimate")
    assert result.returncode == 0, result.stderr
    assert "90% of queries like those of training err less" in result.stderr and "missing physics" in result.stderr
    plain = hycop.load(target)
    expected = model.answer(model.query(data.states[:, 0], data.setting.params, [0.1, 0.2])).error
    assert plain.error_estimate is not None and plain.tolerance_met is None
    assert np.array_equal(plain.error_estimate, np.pad(expected.reshape(6, 2), ((0, 0), (1, 0))))
    words = ("--times", "0.1,0.2", "--tol", "2e-4", "--overwrite", "--json", tmp_path / "rows.json")
    result = hycop_command("predict", run, given, target, *words)
    assert result.returncode == 0 and "tolerance 0.0002: met by" in result.stdout, result.stderr
    told, rows = hycop.load(target), json.loads((tmp_path / "rows.json").read_text())
    assert told.tolerance_met is not None and told.error_estimate is not None
    assert np.array_equal(told.tolerance_met, told.error_estimate <= 2e-4) and told.tolerance_met[:, 0].all()
    assert [row["tolerance_met"] for row in rows["rows"]] == told.tolerance_met[:, 1:].reshape(-1).tolist()
    assert rows["calibrated"] is True and rows["tolerance"] == 2e-4 and rows["estimate_work"] > rows["work"] > 0
    assert np.array_equal(told.take(slice(1, 3)).at(2).error_estimate, told.error_estimate[1:3][:, [0, 2]])


def test_predict_refuses_a_tolerance_and_writes_nothing(model: hycop.HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    drawn("id", 2).save(tmp_path / "in.nc")
    for tol in ("0", "-1", "nan", "inf"):
        result = hycop_command("predict", tmp_path / "run", tmp_path / "in.nc", tmp_path / "out.nc", "--tol", tol)
        assert result.returncode == 2 and result.stderr.count("\n") == 1 and "--tol is" in result.stderr
        assert not (tmp_path / "out.nc").exists()


def test_predict_says_that_an_old_model_is_not_calibrated(model: hycop.HyCOP, tmp_path: Path) -> None:
    hycop.HyCOP.of(replace(model.model, calibration=None)).save(tmp_path / "run")
    drawn("id", 2).save(tmp_path / "in.nc")
    result = hycop_command("predict", tmp_path / "run", tmp_path / "in.nc", tmp_path / "out.nc", "--error-estimate")
    assert result.returncode == 0 and "the estimate is not calibrated" in result.stderr


def test_estimates_of_a_dataset_are_checked() -> None:
    data = drawn("id", 2)
    with pytest.raises(InvalidInputError, match="error_estimate has shape"):
        replace(data, error_estimate=np.zeros(3))
    with pytest.raises(InvalidInputError, match="NaN or negative"):
        replace(data, error_estimate=np.full((2, 2), np.nan))
    with pytest.raises(InvalidInputError, match="tolerance_met has shape"):
        replace(data, tolerance_met=np.ones(2, dtype=bool))
