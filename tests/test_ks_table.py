"""Table ``ks``: statistics of the attractor, answers segment after segment, and a tiny table with its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hycop.experiments.ks as ks
from hycop.evaluation import Composed
from hycop.experiments import assembled, find_table
from hycop.experiments.bench import Bench, Learned
from hycop.experiments.judging import CLASSICAL, EQUAL_ERROR, LESS_ACCURATE
from hycop.metrics import rel_l2
from hycop.model import Model
from hycop.problems import find_problem as problem
from hycop.query import Query
from hycop.schemes import classical as classical_scheme
from hycop.schemes import splitting
from hycop.surrogate import HyCOP

TINY: dict[str, Any] = {
    "target": "truth",
    "tries": 1,
    "rounds": 1,
    "iterations": 1,
    "max_steps": 3,
}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attractors of eight segments, models that hardly learn, small figures."""
    monkeypatch.setattr(ks, "TIMES", np.arange(1, 9) * ks.SEGMENT)
    changes = {
        "TRANSIENT": 5.0,
        "LESSONS": 25,
        "EVERY": 1,
        "LONG_SAMPLES": 2,
        "LEARNING": TINY,
        "SHOWN": 1,
        "FRAMES": 3,
    }
    for name, value in changes.items():
        monkeypatch.setattr(ks, name, value)
    trained: dict[int, HyCOP] = {}
    train = ks._trained_on_segments

    def once(bench: Bench, seed: int) -> HyCOP:
        """The same model for both parts of the table."""
        trained[seed] = trained.get(seed) or train(bench, seed)
        return trained[seed]

    monkeypatch.setattr(ks, "_trained_on_segments", once)
    monkeypatch.setattr(Bench, "learned", lambda bench, name, seed: Learned(once(bench, seed), 1.0, ()))


def test_statistics_see_all_late_times_and_no_early_ones(short: None) -> None:
    data = problem("ks1d").sample(2, "id", 3, times=ks.TIMES.tolist())
    truth = data.states[:, 1:]
    early, late = truth.copy(), truth.copy()
    early[:, :2] = 0.0
    late[:, 2] *= 2.0
    for name in ks.STATISTICS:
        assert ks.attractor_statistic(name, early, truth, data.setting) == 0.0
        assert ks.attractor_statistic(name, late, truth, data.setting) > 1e-4
        assert ks.attractor_statistic(name, truth[::-1], truth, data.setting) < 1e-12  # which sample is of no account


def test_segments_follow_each_other(short: None) -> None:
    chosen, scheme = problem("ks1d"), splitting("Strang x8(outer=nonlinear)")
    data = chosen.sample(2, "id", 3, times=ks.TIMES.tolist())
    start = Query(data.states[:, 0], data.setting, np.full(2, ks.SEGMENT))
    run = ks.rolled(Composed(scheme, chosen.dictionary, chosen.refinement), start)
    assert run.states.shape == data.states[:, 1:].shape and run.longest == ks.SEGMENT / 8
    assert rel_l2(run.states[:, 3], data.states[:, 4], data.setting).max() < 0.05
    lessons = ks.segments(2, 0)
    assert lessons.samples == 16 and (lessons.times == [0.0, ks.SEGMENT]).all()
    np.testing.assert_array_equal(lessons.states[:7, 1], lessons.states[1:8, 0])


def test_the_perturbed_truth_parts_slowly() -> None:
    data = problem("ks1d").sample(2, "id", 0, times=[1.0, 6.0])
    for size, least, most in ((0.0, 0.0, 1e-6), (1e-3, 1e-5, 1e-2)):
        again = ks.perturbed_truth(data.states[:, 0], data.setting, data.times[:, 1:], 0, size)
        apart = rel_l2(again[:, 1], data.states[:, 2], data.setting)
        assert (apart >= least).all() and (apart <= most).all()


@pytest.mark.validate
def test_table(short: None) -> None:
    bench = Bench(3, 1, lambda what, share: None)
    rows = assembled(ks.TABLE, bench)
    assert all(np.isfinite(row.value) for row in rows)
    found = {(str(row.variant), row.split, row.method, row.metric): row for row in rows}
    for method in ("HyCOP", "static", CLASSICAL, ks.PERTURBED, "limit"):
        for metric in ks.STATISTICS:
            assert all(("direct", split, method, metric) in found for split in ks.SPLITS)
    unsplit = {row.method for row in rows if row.method in (EQUAL_ERROR, LESS_ACCURATE)}
    # the model may have chosen an unsplit solver itself, and a better one than the steps that are tried
    assert unsplit and any(("direct", "ood-w", each, "kl_divergence") in found for each in unsplit)
    assert found["direct", "ood-wt", "HyCOP", "spectrum_error"].paper == 5.75e-2
    assert found["direct", "id", CLASSICAL, "spectrum_error"].paper is None
    assert found["attractor", "ood-w", "HyCOP", "longest step"].value <= ks.SEGMENT
    assert set(ks.figures(bench, rows)) == {"ks_id", "ks_ood-w", "ks_ood-t", "ks_ood-wt"}
    assert find_table("ks") is ks.TABLE
    check_what_follows(bench.learned("ks1d", 0).model.model)


def check_what_follows(model: Model) -> None:
    """Beyond the trained times the learned program is repeated, or followed by the classical one."""
    one = problem("ks1d").sample(1, "id", 0, times=[2.0]).query
    twice = Query(one.u0, one.setting, 2 * one.time)
    gate = replace(model.gate, kept=True, classical_when_clipped=False)
    classical = classical_scheme(gate.classical).programs(one, model.dictionary)[0].steps
    for follows in (False, True):
        asked = replace(model, gate=replace(gate, classical_when_repeated=follows))
        learned = asked.programs(one)[0].steps
        assert asked.programs(twice)[0].steps == (*learned, *(classical if follows else learned))
    refused = replace(model, gate=replace(gate, kept=False))
    assert refused.programs(twice)[0].steps == (*classical, *classical)
