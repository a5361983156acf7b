"""The gate: a policy is kept when it wins beyond doubt, a tie goes to the classical scheme."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.data import Dataset
from hycop.evaluation import EQUAL_WORK, Rivals
from hycop.execution import Outcome, measure
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.training import Gate
from hycop.training.gate import CONFIDENT, confidence, gate
from hycop.training.unsplit import with_unsplit

PROBLEM = hycop.problem("ad1d")
DICTIONARY = PROBLEM.dictionaries["upwind"]
LIE = hycop.splitting("lie")


@pytest.fixture(scope="module")
def held_out() -> Dataset:
    return PROBLEM.sample(36, "train", seed=1, estimated=0)


def judged(data: Dataset, factors: Array) -> Gate:
    """The gate of states whose errors are those of Lie, times a factor for each query."""
    query, truth = data.query, data.truth
    classical = measure(LIE.programs(query, DICTIONARY), DICTIONARY, query)
    learned = truth + factors.reshape(-1, 1, 1) * (classical.states - truth)
    return gate(Outcome(learned, classical.work), Rivals(LIE, LIE), DICTIONARY, data, np.zeros((query.batch, 1)))


def errors(seed: int, queries: int = 36) -> Array:
    return np.exp(np.random.default_rng(seed).normal(-4.0, 0.5, queries))


def test_a_lead_of_half_a_percent_on_36_queries_is_a_tie(held_out: Dataset) -> None:
    """Half of the queries are much better, half are much worse, and their mean hardly differs."""
    error = judged(held_out, np.ones(36))
    factors = np.where(np.arange(36) % 2, 0.7, 1.3)
    found = judged(held_out, factors * 0.995 * error.learned_error / judged(held_out, factors).learned_error)
    assert found.learned_error == pytest.approx(0.995 * found.classical_error, rel=1e-9)
    assert not found.kept and 0.05 < found.confidence < CONFIDENT  # type: ignore[operator]
    assert "no clear winner: the programs are those of Lie" in found.explained()
    assert found.error == found.classical_error


def test_a_clear_lead_is_kept_and_a_clear_loss_is_not(held_out: Dataset) -> None:
    noise = np.random.default_rng(0).uniform(0.9, 1.1, 36)
    better, worse = judged(held_out, 0.7 * noise), judged(held_out, 1.4 * noise)
    assert better.kept and better.confidence == 1.0 and better.error == better.learned_error
    assert not worse.kept and worse.confidence == 0.0 and "not better" in worse.explained()[1]
    assert judged(held_out, np.ones(36)).confidence == 0.0  # no better than itself


def test_the_decision_belongs_to_the_errors_alone() -> None:
    theirs, noise = errors(0), np.random.default_rng(1).uniform(0.7, 1.25, 36)
    found = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        found.append(confidence(noise * theirs, theirs, 36))
    assert found[0] == found[1] and 0 < found[0] < 1


def test_samples_are_drawn_not_queries() -> None:
    """Errors of one sample at many times are alike: they are no more evidence than one of them."""
    theirs = errors(2, 9)
    ours = theirs * np.where(np.arange(9) % 2, 0.85, 1.08)
    alone = confidence(ours, theirs, 9)
    assert confidence(np.repeat(ours, 20), np.repeat(theirs, 20), 9) == alone < 1
    assert confidence(np.repeat(ours, 20), np.repeat(theirs, 20), 180) != alone


def test_the_more_often_a_policy_wins_by_chance_the_less_sure_the_gate_is() -> None:
    """Policies that are as good as the scheme: about one in twenty passes, not every second one."""
    kept = 0
    for seed in range(200):
        theirs, ours = errors(seed, 200), errors(seed + 1000, 200)
        kept += confidence(ours, theirs, 200) >= CONFIDENT
    assert 1 <= kept <= 24


def test_states_that_became_infinite_lose_against_finite_ones() -> None:
    good, bad = errors(0), np.full(36, np.inf)
    assert confidence(good, bad, 36) == 1.0 and confidence(bad, good, 36) == 0.0 and confidence(bad, bad, 36) == 0.0


def test_an_opened_gate_lets_everything_through_and_a_closed_one_nothing(held_out: Dataset) -> None:
    found = judged(held_out, np.full(36, 1.4))
    opened, closed = found.opened(), found.opened().closed()
    assert opened.kept and not (
        opened.classical_when_clipped or opened.classical_when_far or opened.classical_when_repeated
    )
    assert not closed.kept


def test_a_solver_without_splitting_that_is_better_is_named() -> None:
    """Its numbers are those of the dictionary it names, and none is named where the work does not suffice."""
    problem = hycop.problem("swe1d")
    data = problem.sample(12, "train", seed=3, shape=(32,), estimated=0)
    scheme, query = hycop.splitting("strang x2"), data.query
    done = measure(scheme.programs(query, problem.dictionary), problem.dictionary, query)
    decided = gate(done, Rivals(scheme, scheme), problem.dictionary, data, np.zeros((query.batch, 1)))
    found = with_unsplit(decided, problem.equation, data, 1, "rel_l2")
    assert found.whole is not None and found.whole_refinement is not None
    parts = problem.dictionaries[found.whole]
    whole = measure(hycop.splitting("lie").programs(query, parts), parts, query, refinement=found.whole_refinement)
    assert found.whole_error == float(rel_l2(whole.states, data.truth, query.setting).mean()) < decided.error
    assert found.whole_work == float(whole.work.mean()) <= EQUAL_WORK * decided.work
    assert f"dictionary={found.whole} with refinement={found.whole_refinement}" in found.explained()[-1]
    poor = replace(decided, learned_work=1.0, classical_work=1.0)
    assert with_unsplit(poor, problem.equation, data, 1, "rel_l2") == poor
    assert with_unsplit(decided, PROBLEM.equation, data, 1, "rel_l2") == decided


def test_training_looks_for_such_a_solver_and_folders_keep_it(tmp_path: Path) -> None:
    small = {"samples": 12, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4}
    for name in ("muscl", "unsplit"):
        parts = hycop.problem("swe1d").dictionaries[name]
        model = hycop.HyCOP(parts).fit(hycop.problem("swe1d"), refinement=1, verbose=False, **small)
        model.save(tmp_path / name)
        decided = hycop.HyCOP.load(tmp_path / name).model.gate
        assert decided == model.model.gate and (decided.whole is None) == (name == "unsplit")
