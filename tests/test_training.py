"""Training: better than the textbook, the same bits after a kill and with any workers, and honest refusals."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hycop
from hycop.errors import HyCOPError, IncompatibleError, InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.evaluation import EQUAL_WORK, Composed, Opponents
from hycop.evaluation.opponents import SUBSTEPS
from hycop.evolution import NoFitnessError
from hycop.execution import Outcome, measure
from hycop.executors import executor
from hycop.features import FeatureMap
from hycop.grid import Array
from hycop.metrics import rel_l2
from hycop.policy import PositionPolicy
from hycop.primitives import UpwindAdvection
from hycop.schemes import Scheme, portfolio, splitting
from hycop.training import Task, configured, loop, train
from hycop.training.checkpoint import FILE, RunFolderError, read
from hycop.training.gate import gate
from hycop.training.loop import Trained, _data_hash
from hycop.training.objective import Objective, infinite_if_lost
from hycop.training.portfolio import patterns

PROBLEM = hycop.problem("ad1d")
UPWIND = PROBLEM.dictionaries["upwind"]
SMALL = {"samples": 24, "tries": 2, "patterns": 1, "rounds": 2, "iterations": 3, "budget": "gain", "max_steps": 5}
ES = {"population": 10, "generations": 6, "minibatch": 3, "budget": "gain", "optimizer": "openes", "policy": "position"}


@pytest.fixture(scope="module")
def task() -> Task:
    return Task(
        PROBLEM.equation,
        UPWIND,
        PROBLEM.sample(24, "train", 0, estimated=0),
        PROBLEM.sample(64, "train", 1, estimated=0),
        FeatureMap(PROBLEM.equation.features),
        FeatureMap(PROBLEM.equation.gain_features),
    )


@pytest.fixture(scope="module")
def learned(task: Task) -> Trained:
    return train(task, configured("quick", SMALL))


def test_the_recipe_beats_the_textbook(learned: Trained) -> None:
    done = learned
    assert done.gate.kept and done.gate.learned_error < 0.5 * done.gate.classical_error
    assert done.theta.size == done.policy.size <= 100
    assert done.gate.classical_work <= 1.1 * done.gate.learned_work  # Lie, the cheapest there is


def test_a_policy_that_is_not_better_is_not_kept(task: Task) -> None:
    """Literal budgets solve another equation; the gate must notice."""
    done = train(task, configured("quick", {**SMALL, "budget": "literal", "iterations": 1, "rounds": 1}))
    assert not done.gate.kept and done.gate.learned_error > 0.05


@pytest.mark.parametrize(
    "settings", [SMALL, ES, {**ES, "optimizer": "cma", "start": "random"}], ids=["lm", "es", "cma"]
)
def test_resuming_gives_the_same_bits(task: Task, settings: dict[str, object], tmp_path: Path) -> None:
    config = configured("quick", settings)
    whole = train(task, config, seed=3)
    seen: list[int] = []

    class Killed(Exception):
        pass

    def interrupt(entry: dict[str, object]) -> None:
        seen.append(1)
        if len(seen) in (1, 2, 4, 7):
            raise Killed

    folder = tmp_path / "run"
    resume = False
    while True:
        try:
            done = train(task, config, seed=3, folder=folder, resume=resume, report=interrupt)
            break
        except Killed:
            resume = True
    assert np.array_equal(done.theta, whole.theta)
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert all("stage" in line for line in lines)


def test_a_warm_start_goes_on_from_what_was_learned(task: Task, learned: Trained, tmp_path: Path) -> None:
    """It is never worse on the training queries, belongs to its start, and resumes to the same bits."""
    config = configured("quick", {**SMALL, "rounds": 1, "iterations": 2})
    begin = (learned.policy, learned.theta)
    whole = train(task, config, start=begin)
    assert whole.loss <= learned.loss * (1 + 1e-12) and whole.policy == learned.policy

    class Killed(Exception):
        pass

    seen: list[object] = []

    def interrupt(entry: object) -> None:
        seen.append(entry)
        if len(seen) == 3:
            raise Killed

    with pytest.raises(Killed):
        train(task, config, folder=tmp_path, report=interrupt, start=begin)
    assert (tmp_path / FILE).exists()
    other = (learned.policy, np.nextafter(learned.theta, 9.0))
    for start in (None, other):
        with pytest.raises(RunFolderError, match="another configuration"):
            train(task, config, folder=tmp_path, resume=True, start=start)
    resumed = train(task, config, folder=tmp_path, resume=True, start=begin)
    assert resumed.theta.tobytes() == whole.theta.tobytes()


def test_a_warm_start_is_no_worse_than_its_start_on_other_queries(task: Task, learned: Trained) -> None:
    """Also where polishing from it leads nowhere: then the start itself is returned."""
    config = configured("quick", {**SMALL, "rounds": 1, "iterations": 1})
    far = learned.theta + np.random.default_rng(0).normal(0.0, 2.0, learned.theta.size)
    losses = [train(task, config, start=(learned.policy, theta)).loss for theta in (far, np.zeros_like(far))]
    objective = Objective(task.dictionary, task.query, task.train.truth, task.inputs(task.query))
    starts = objective.losses(learned.policy, np.stack([far, np.zeros_like(far)])).mean(axis=1)
    assert (np.array(losses) <= starts * (1 + 1e-12)).all()


def test_only_slot_policies_are_polished(task: Task) -> None:
    policy = PositionPolicy(task.allotment(configured("quick", SMALL)), len(task.features.names), 5)
    start = (policy, np.zeros(policy.size))
    with pytest.raises(IncompatibleError, match="PositionPolicy cannot be polished by least squares; set optimizer"):
        train(task, configured("quick", SMALL), start=start)
    evolved = train(task, configured("quick", {**ES, "generations": 1}), start=start)
    assert evolved.policy == policy


def test_sigterm_checkpoints_and_exits(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hycop.cli", "train", "ad1d", "--preset", "paper", "--out", str(tmp_path / "run")]
    for key, value in {"samples": 16, "population": 20, "generations": 100000}.items():
        words += ["--set", f"{key}={value}"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 120
    while not (tmp_path / "run" / FILE).exists() and time.time() < deadline:
        time.sleep(0.1)
    second = subprocess.run([*words, "--resume"], capture_output=True, text=True, check=False)
    assert second.returncode == 2 and "another trainer" in second.stderr
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume" in errors and "Traceback" not in errors
    assert read(tmp_path / "run") is not None


@pytest.mark.parametrize("kind", ["lm", "es"])
def test_any_executor_gives_the_same_bits(task: Task, kind: str) -> None:
    config = configured("quick", SMALL if kind == "lm" else ES)
    alone = train(task, config, seed=1)
    with executor("processes", workers=2) as crew:
        shared = train(task, config, seed=1, executor=crew)
    assert np.array_equal(alone.theta, shared.theta)


def test_folders_are_protected(task: Task, tmp_path: Path) -> None:
    config = configured("quick", {**ES, "generations": 2})
    train(task, config, folder=tmp_path / "run")
    with pytest.raises(RunFolderError, match="--resume"):
        train(task, config, folder=tmp_path / "run")
    with pytest.raises(RunFolderError, match="another configuration"):
        train(task, configured("quick", {**ES, "generations": 3}), folder=tmp_path / "run", resume=True)
    with pytest.raises(RunFolderError, match="another configuration"):
        train(task, config, seed=5, folder=tmp_path / "run", resume=True)


def _other_states(task: Task) -> Task:
    return replace(task, train=replace(task.train, states=task.train.states + 1e-12))


def _other_params(task: Task) -> Task:
    setting = task.held_out.setting
    params = {**setting.params, "cx": setting.params["cx"] + 1e-12}
    return replace(task, held_out=replace(task.held_out, setting=replace(setting, params=params)))


def _other_dtype(task: Task) -> Task:
    """The same numbers to the bit, in fewer of them: only the type can tell."""
    whole = replace(task.train, states=task.train.states.astype(np.float32).astype(np.float64))
    assert _data_hash(replace(task, train=whole)) != _data_hash(
        replace(task, train=replace(whole, states=whole.states.astype(np.float32)))
    )
    return replace(task, train=replace(task.train, states=task.train.states.astype(np.float32)))


def _other_dictionary(task: Task) -> Task:
    return replace(task, dictionary=task.dictionary.swapping("advection", UpwindAdvection(cfl=0.4)))


@pytest.mark.parametrize("change", [_other_states, _other_params, _other_dtype, _other_dictionary, "version"])
def test_a_run_goes_on_only_as_what_it_was_unless_forced(
    task: Task, change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured("quick", {**ES, "generations": 2})
    train(task, config, folder=tmp_path)
    if change == "version":
        minor = ".".join([loop.__version__.split(".")[0], "99", "0"])
        monkeypatch.setattr(loop, "__version__", minor)
        train(task, config, folder=tmp_path, resume=True)
        monkeypatch.setattr(loop, "__version__", "99.0.0")
    other = task if change == "version" else change(task)
    with pytest.raises(RunFolderError, match=r"another configuration, seed, dataset or version; [^\n]*--force$"):
        train(other, config, folder=tmp_path, resume=True)
    assert train(other, config, folder=tmp_path, resume=True, force=True).theta.size


def test_a_primitive_without_a_repr_is_the_same_in_every_process(task: Task) -> None:
    config = configured("quick", ES)

    def identity(each: Task) -> str:
        return loop._identity(each, config, 0, None)

    one, two = (replace(task, dictionary=task.dictionary.adding("decay", _Decay())) for _ in range(2))
    assert identity(one) == identity(two) != identity(task)


def test_checkpoints_can_be_fewer(task: Task, tmp_path: Path) -> None:
    train(task, configured("quick", {**ES, "generations": 5, "checkpoint_every": 3}), folder=tmp_path)
    found = read(tmp_path)
    assert found is not None and found.arrays["state_generation"] == 3


def test_no_finite_loss_stops_the_run(task: Task) -> None:
    class Bursting:
        advances = frozenset({"advection"})
        order = 1

        def flow(self, u, duration, setting):  # type: ignore[no-untyped-def]
            return np.full_like(u, np.nan)

        def work(self, u, duration, setting):  # type: ignore[no-untyped-def]
            return np.ones(setting.batch)

        def __repr__(self) -> str:
            return "Bursting()"

    broken = replace(task, dictionary=UPWIND.swapping("advection", Bursting()))
    with pytest.raises(NoFitnessError, match="finite"):
        train(broken, configured("quick", ES))


class _Fragile(UpwindAdvection):
    """An upwind scheme that loses the samples with some speeds in longer steps than it can take."""

    def __init__(self, longest: float, speeds: Any = ()) -> None:
        super().__init__()
        self.longest, self.speeds = longest, speeds

    def flow(self, u, duration, setting):  # type: ignore[no-untyped-def]
        out = super().flow(u, duration, setting)
        out[(duration > self.longest) | np.isin(setting.params["cx"], self.speeds)] = np.nan
        return out


def test_patterns_whose_states_become_infinite_are_not_tried(task: Task) -> None:
    time = task.train.query.time.max()
    few = {**SMALL, "tries": 4, "patterns": 2, "rounds": 1, "iterations": 1}
    some, none = (
        replace(task, dictionary=UPWIND.swapping("advection", _Fragile(share * time))) for share in (0.8, 0.01)
    )
    assert np.isfinite(train(some, configured("quick", few)).loss)
    with pytest.raises(NonFiniteStateError, match="max_steps"):
        train(none, configured("quick", few))


def test_an_evolution_strategy_prefers_what_it_learned_though_a_query_is_always_lost(task: Task) -> None:
    lost = task.train.query.setting.params["cx"][:1]
    broken = replace(task, dictionary=UPWIND.swapping("advection", _Fragile(np.inf, lost)))
    assert train(broken, configured("quick", {**ES, "generations": 2})).theta.any()


def test_what_is_not_finite_is_infinite() -> None:
    assert np.array_equal(infinite_if_lost(np.array([np.nan, np.inf, -np.inf, 1.0])), [np.inf, np.inf, np.inf, 1.0])


def test_nothing_is_polished_where_there_is_no_error(task: Task) -> None:
    still = replace(task.train, states=np.repeat(task.train.states[:, :1], task.train.states.shape[1], axis=1))
    idle = hycop.Dictionary({name: _Decay(frozenset({name})) for name in task.equation.processes})
    done = train(replace(task, dictionary=idle, train=still), configured("quick", {**SMALL, "patterns": 2}))
    assert done.loss == 0 and not done.theta.any()


def test_patterns_hold_the_classics_and_their_lean_variants(task: Task) -> None:
    adr = hycop.problem("adr2d")
    query = adr.sample(1, "id").query
    found = patterns(adr.dictionary, adr.processes, query, 7)
    origins = [pattern.origin for pattern in found]
    assert "Strang" in origins and "ABABA, advection once" in origins
    assert all(len(pattern.ops) <= 7 for pattern in found)
    assert len(patterns(adr.dictionary, adr.processes, query, 11)) > len(found)
    extra = adr.dictionary.adding("decay", _Decay())
    assert all(3 in pattern.ops for pattern in patterns(extra, adr.processes, query, 7))


class _Decay:
    """A primitive that changes nothing."""

    order = hycop.EXACT

    def __init__(self, advances: frozenset[str] = frozenset({"decay"})) -> None:
        self.advances = advances

    def flow(self, u, duration, setting):  # type: ignore[no-untyped-def]
        return u

    def work(self, u, duration, setting):  # type: ignore[no-untyped-def]
        return np.ones(setting.batch)


def test_the_opponent_has_no_more_work(task: Task) -> None:
    adr = hycop.problem("adr2d")
    data = adr.sample(8, "id")
    query, batch = data.query, data.query.batch
    opponents = Opponents(adr.dictionary, query, data.truth)
    found = [str(opponents.best(query, np.full(batch, work))) for work in (32768.0, 11264.0, 1.0)]
    assert found[0] == "ABABA" and found[1].startswith("Lie") and found[2].startswith("Lie")


@pytest.mark.parametrize("name", ["Strang x4", "Lie x2(outer=momentum)"])
def test_what_takes_just_the_work_is_affordable(name: str) -> None:
    swe = hycop.problem("swe1d")
    data = swe.sample(24, "id", shape=(16,))
    query = data.query

    def measured(scheme: Scheme) -> tuple[Array, float]:
        outcome = measure(scheme.programs(query, swe.dictionary), swe.dictionary, query, strict=False)
        return outcome.work, float(rel_l2(outcome.states, data.truth, query.setting).mean())

    work, error = measured(splitting(name))
    found = Opponents(swe.dictionary, query, data.truth).best(query, work)
    cost, best = measured(found)
    assert best <= error * (1 + 1e-12) and cost.mean() <= 1.02 * work.mean(), found


@pytest.mark.parametrize("name", ["Strang x2", "ABABA", "Lie x3(outer=momentum)"])
def test_the_opponent_is_that_of_a_full_search_and_takes_fewer_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full search measures work and error of every scheme on all queries."""
    swe, runs = hycop.problem("swe1d"), []
    data = swe.sample(80, "id", shape=(16,), estimated=0)
    query = data.query
    work = measure(splitting(name).programs(query, swe.dictionary), swe.dictionary, query, strict=False).work
    errors = {}
    offered = portfolio(swe.dictionary, query.setting, SUBSTEPS)
    for scheme in offered:
        done = measure(scheme.programs(query, swe.dictionary), swe.dictionary, query, strict=False)
        if done.work.mean() <= EQUAL_WORK * work.mean():
            errors[scheme] = float(infinite_if_lost(rel_l2(done.states, data.truth, query.setting)).mean())

    def counted(solver: Composed, asked: hycop.Query) -> Outcome:
        runs.append(asked.batch)
        return solve(solver, asked)

    solve = Composed.solve
    monkeypatch.setattr(Composed, "solve", counted)
    monkeypatch.setattr(Composed, "states", lambda solver, asked: counted(solver, asked).states)
    found = Opponents(swe.dictionary, query, data.truth).rivals(query, work)
    assert found.splitting == min(errors, key=errors.__getitem__)
    assert sum(runs) < 0.15 * query.batch * len(offered)


def test_answers_that_have_measured_the_work_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    swe = hycop.problem("swe1d")
    data = swe.sample(40, "id", shape=(16,), estimated=0)
    query = data.query
    learned = measure(splitting("Strang x2").programs(query, swe.dictionary), swe.dictionary, query)
    monkeypatch.setattr("hycop.evaluation.opponents.LEAST_UNSURE", 1.0)  # so that some queries are never enough
    rivals = Opponents(swe.dictionary, query, data.truth).rivals(query, learned.work)
    again = Composed(rivals.best, swe.dictionary).solve(query)
    assert rivals.answers is not None
    np.testing.assert_array_equal(rivals.answers.states, again.states)
    np.testing.assert_array_equal(rivals.answers.work, again.work)
    decided = gate(learned, rivals._replace(answers=None), swe.dictionary, data, np.zeros((40, 0)))
    monkeypatch.setattr(Composed, "solve", None)
    assert gate(learned, rivals, swe.dictionary, data, np.zeros((40, 0))) == decided


def test_settings_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="quick"):
        configured("quik")
    with pytest.raises(UnknownNameError, match="population"):
        configured("quick", {"populaton": 3})
    with pytest.raises(InvalidInputError, match="'population'"):
        configured("quick", {"population": "many"})
    with pytest.raises(HyCOPError, match="max_work"):
        configured("quick", {"max_work": -1.0})
