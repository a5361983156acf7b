"""The surrogate: fit, predict at any time on any grid, trust, save and load."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.data import load, save
from hycop.errors import HyCOPError, InvalidInputError
from hycop.execution import run
from hycop.features import FeatureMap, FeatureRange, Observed, dimensionless_times
from hycop.grid import Array, Grid
from hycop.metrics import rel_l2
from hycop.model import Model
from hycop.program import Program
from hycop.query import Channel, Query, Setting
from hycop.scope import coefficient_ranges
from hycop.surrogate import NotFittedError, UntrustedWarning

PROBLEM = hycop.problem("ad1d")
SMALL = {"samples": 24, "tries": 2, "patterns": 1, "rounds": 1, "iterations": 3, "budget": "gain"}


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP(PROBLEM.dictionaries["upwind"]).fit(PROBLEM, seed=0, **SMALL)


def ask(model: hycop.HyCOP, data: hycop.Dataset, times: list[float], **options: object) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedWarning)
        return model.predict(data.states[:, 0], data.setting.params, times, **options)  # type: ignore[arg-type]


def segments(model: Model, query: Query) -> list[int]:
    """Into how many parts the query times are cut."""
    return model.segments(Observed(query, model.equation)).tolist()


def test_many_times_without_roll_out(model: hycop.HyCOP) -> None:
    data = PROBLEM.sample(6, "id", seed=2, times=[0.2, 0.5])
    states = ask(model, data, [0.2, 0.5])
    assert states.shape == (6, 2, 1, 64)
    assert np.array_equal(states[:, 1:], ask(model, data, [0.5]))
    error = rel_l2(states.reshape(12, 1, 64), data.truth, data.query.setting)
    strang = hycop.splitting("strang").programs(data.query, model.dictionary)
    classical = rel_l2(hycop.run(strang, model.dictionary, data.query), data.truth, data.query.setting)
    assert error.mean() < 0.6 * classical.mean()


def test_zero_time_and_scalar_parameters(model: hycop.HyCOP) -> None:
    u0 = np.random.default_rng(0).random((2, 1, 50))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedWarning)
        states = model.predict(u0, {"cx": 1.0, "Dx": 0.1}, 0.0)
    assert np.allclose(states[:, 0], u0)


@pytest.mark.parametrize("cells", [16, 96])
def test_the_work_of_an_answer_is_that_of_its_programs(model: hycop.HyCOP, cells: int) -> None:
    states = np.random.default_rng(2).uniform(0.2, 0.8, (3, 1, cells))
    query = model.query(states, {"cx": 1.0, "Dx": [0.1, 0.1, 0.3]}, 0.2)
    answer = model.answer(query)
    done = model.solve(query)
    np.testing.assert_array_equal(answer.work, done.work)
    np.testing.assert_array_equal(answer.states, done.states)
    assert answer.work is answer.work and answer.work.min() > 0


def test_programs_can_be_read_and_depend_on_the_query(model: hycop.HyCOP) -> None:
    data = PROBLEM.sample(4, "id", seed=2)
    programs = [
        model.program(data.states[i : i + 1, 0], {k: v[i] for k, v in data.setting.params.items()}, 0.5)
        for i in range(4)
    ]
    assert "advection" in str(programs[0]) and len({str(program) for program in programs}) == 4


def test_untrusted_queries_are_flagged(model: hycop.HyCOP) -> None:
    data = PROBLEM.sample(10, "ood", seed=0)
    flags = model.untrusted(data.states[:, 0], data.setting.params, 0.5)
    values = model.model.scope.view.features(data.query)
    ranges = model.model.scope.view.ranges
    outside = ((values < np.array(ranges.low)) | (values > np.array(ranges.high))).any(axis=1)
    assert flags.shape == (10, 1) and np.array_equal(flags[:, 0], outside) and outside.any()
    with pytest.warns(UntrustedWarning, match="outside the trained range"):
        model.predict(data.states[:, 0], data.setting.params, 0.5)


def test_far_from_training_programs_are_classical(model: hycop.HyCOP) -> None:
    """Slightly outside the policy is used, further than a range is wide the scheme of the gate."""
    query = PROBLEM.sample(1, "id", seed=2).query
    inner = replace(model.model, gate=replace(model.model.gate, kept=True, classical_when_clipped=False))
    scope, view = inner.scope, inner.scope.view
    value = float(view.features(query)[0, 0])
    wide = [(-99.0, 99.0)] * (len(view.features.names) - 1)
    classical = str(inner.gate.scheme.programs(query, inner.dictionary)[0])
    for widths, far in ((0.5, False), (1.5, True)):
        low, high = zip((value - 0.4 * (widths + 1), value - 0.4 * widths), *wide, strict=True)
        other = replace(view, ranges=FeatureRange(low, high))
        moved = replace(inner, scope=replace(scope, view=other))
        assert moved.outside_training(query) and other.far(other.values(query)).tolist() == [far]
        assert (str(moved.programs(query)[0]) == classical) is far
    for share, other in ((0.05, False), (0.2, True)):
        constants = {"Dx": float(query.setting.params["Dx"][0]) * (1 + share)}
        known = replace(inner, scope=replace(scope, constants=constants))
        assert (str(known.programs(query)[0]) == classical) is other


def test_features_that_are_no_numbers_are_not_trusted() -> None:
    ranges = FeatureRange((0.0, 1.0), (2.0, 1.0))
    values = np.array([[1.0, 1.0], [np.nan, 1.05], [5.0, 1.2]])
    assert ranges.outside(values).tolist() == [[False, False], [True, True], [True, True]]
    assert ranges.far(values).tolist() == [[False, False], [True, False], [True, False]]
    assert ranges.normalised(values).tolist() == [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("dtype", [">f8", ">f4", "f2", "f4", "i4"])
def test_states_of_any_real_kind(model: hycop.HyCOP, dtype: str) -> None:
    u0 = np.round(4 * np.random.default_rng(0).random((2, 1, 50))).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedWarning)
        states = model.predict(u0, {"cx": 1.0, "Dx": 0.1}, 0.2)
        exact = model.predict(u0.astype(np.float64), {"cx": 1.0, "Dx": 0.1}, 0.2)
    assert states.dtype == (np.float32 if dtype == "f4" else np.float64)
    np.testing.assert_allclose(states, exact, rtol=1e-5, atol=1e-5)


def test_longer_times_repeat_the_program(model: hycop.HyCOP) -> None:
    data = PROBLEM.sample(2, "id", seed=5)
    params = {key: value[0] for key, value in data.setting.params.items()}
    short = model.program(data.states[:1, 0], params, 0.9)
    long = model.program(data.states[:1, 0], params, 20.0)
    assert len(long) > len(short)


def test_another_grid_and_boundary(model: hycop.HyCOP) -> None:
    fine = PROBLEM.sample(3, "id", seed=2, shape=(150,))
    states = ask(model, fine, [0.5])
    assert rel_l2(states[:, 0], fine.truth, fine.query.setting).mean() < 0.02
    closed = ask(model, fine, [0.5], boundary="wall")
    assert np.allclose(closed.sum(axis=-1)[:, 0], fine.states[:, 0].sum(axis=-1), rtol=1e-10)


def test_refinement_runs_on_a_finer_grid(model: hycop.HyCOP) -> None:
    data = PROBLEM.sample(6, "id", seed=2)
    upwind = PROBLEM.dictionaries["upwind"]
    plain = hycop.HyCOP(upwind).fit(PROBLEM, seed=0, **{**SMALL, "budget": "consistent"})
    refined = hycop.HyCOP(upwind).fit(PROBLEM, seed=0, refinement=4, **{**SMALL, "budget": "consistent"})
    errors = [rel_l2(ask(each, data, [0.5])[:, 0], data.truth, data.query.setting).mean() for each in (plain, refined)]
    assert errors[1] < 0.5 * errors[0]


def test_save_and_load(model: hycop.HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = hycop.HyCOP.load(tmp_path / "model")
    data = PROBLEM.sample(3, "id", seed=2)
    assert np.array_equal(ask(model, data, [0.3, 0.7]), ask(again, data, [0.3, 0.7]))
    with pytest.raises(HyCOPError):
        model.save(tmp_path / "model")


def test_one_s_own_dataset(tmp_path: Path) -> None:
    data = PROBLEM.sample(120, "train", seed=0)
    hycop.save(data, tmp_path / "mine.npz")
    own = hycop.load(tmp_path / "mine.npz")
    fitted = hycop.HyCOP(PROBLEM.dictionaries["upwind"]).fit(own, **SMALL)
    assert fitted.model.gate.samples == 40
    with pytest.raises(InvalidInputError, match="at least 96"):
        hycop.HyCOP(PROBLEM.dictionaries["upwind"]).fit(own.take(slice(0, 30)), **SMALL)


@dataclass(frozen=True)
class Decay:
    """u_t = −k u, a process of one's own."""

    advances = frozenset({"decay"})
    order = hycop.EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-setting.param("k") * duration)[:, None, None]

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(u[0].size))


def of_my_own(name: str, coefficient: str) -> hycop.HyCOP:
    """Diffusion and decay of a channel and with a coefficient of these names, at T = 0.5 and 1."""
    rng = np.random.default_rng(0)
    setting = Setting(
        Grid.box((16,), batch=120),
        (Channel(name),),
        {"Dx": 10 ** rng.uniform(-3, -2, 120), "k": rng.uniform(1.0, 2.0, 120), coefficient: rng.uniform(1, 2, 120)},
    )
    dictionary = hycop.Dictionary({"diffusion": hycop.primitives.SpectralDiffusion(), "decay": Decay()})
    times = np.tile([0.0, 0.5, 1.0], (120, 1))
    start = Query(rng.random((120, 1, 16)), setting, np.ones(120))
    states = [start.u0, *(run(Program.of(("diffusion", t), ("decay", t)), dictionary, start) for t in (0.5, 1.0))]
    data = hycop.Dataset("diffusion and decay", "train", np.stack(states, axis=1), times, setting)
    return hycop.HyCOP(dictionary).fit(data, **{**SMALL, "samples": 8, "budget": "consistent", "max_steps": 3})


def test_what_no_feature_knows_is_watched(tmp_path: Path) -> None:
    """Of an equation of one's own: its coefficients, and times longer than trained."""
    model = of_my_own("u", "spare")
    u0 = np.random.default_rng(1).random((1, 1, 16))
    usual = {"Dx": 0.005, "k": 1.5, "spare": 1.5}
    model.save(tmp_path / "model")
    loaded = hycop.HyCOP.load(tmp_path / "model", primitives={"decay": Decay()})
    assert loaded.model.scope.coefficients == model.model.scope.coefficients and loaded.model.scope.longest_time == 1.0
    for params, time, reasons in (
        (usual, 1.0, []),
        (usual, 2.5, ["time"]),
        ({**usual, "k": 0.5}, 1.0, ["k"]),
        ({**usual, "spare": 9.0}, 1.0, ["spare"]),
    ):
        answer = loaded.answer(loaded.query(u0, params, time))
        found = answer.reasons[0]
        assert [reason for reason in found if reason in ("time", *usual)] == reasons
        assert answer.untrusted.all() == bool(found)
    assert segments(loaded.model, loaded.query(u0, usual, [1.0, 2.5])) == [1, 3]


@pytest.mark.parametrize(("name", "coefficient"), [("density", "gamma"), ("h", "g")])
def test_names_of_other_equations_are_only_names(name: str, coefficient: str) -> None:
    assert of_my_own(name, coefficient).model.scope.longest[0] == 0.0


def test_held_out_data_have_the_same_coefficients() -> None:
    data = hycop.Dataset(
        "mine",
        "train",
        np.ones((40, 2, 1, 4)),
        np.tile([0.0, 1.0], (40, 1)),
        Setting(Grid.box((4,), batch=40), (Channel("u"),), {"k": 1.0, "spare": 1.0}),
    )
    other = replace(data, setting=replace(data.setting, params={"k": data.setting.params["k"]}))
    with pytest.raises(InvalidInputError, match="held-out data have the coefficients k, but the others k, spare"):
        hycop.HyCOP(hycop.Dictionary({"decay": Decay()})).fit(data, other, **SMALL)


def test_a_coefficient_may_be_called_as_a_feature_is(model: hycop.HyCOP) -> None:
    query = PROBLEM.sample(1, "id", seed=2).query
    name = model.model.scope.view.names[0]
    moved = {"Dx": (0.0, 10.0), name: (0.0, 1.0)}
    known = replace(model.model, scope=replace(model.model.scope, constants={"Dx": 9.0}, coefficients=moved))
    assert known.outside_training(query)["Dx"].all()
    assert (name in known.outside_training(query)) == (name in model.model.outside_training(query))


def test_a_sign_that_training_had_not_is_flagged() -> None:
    adr = hycop.problem("adr2d")
    query = adr.sample(2, "id", shape=(8, 8)).query
    ranges = coefficient_ranges([query], adr.equation, FeatureMap(adr.equation.features))
    assert ranges["r"] == (0.0, np.finfo(np.float64).max)
    assert "cx" not in ranges


def test_a_run_with_other_data_is_refused_before_these_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"samples": 8, "population": 4, "generations": 1, "dictionary": "upwind"}
    problem = hycop.problem("ad1d")
    hycop.HyCOP(problem.dictionary).fit(problem, preset="paper", seed=1, folder=tmp_path, **settings)
    monkeypatch.setattr(type(problem), "sample", lambda *_, **__: pytest.fail("solved in vain"))
    with pytest.raises(HyCOPError, match="another configuration, seed"):
        hycop.HyCOP(problem.dictionary).fit(problem, preset="paper", seed=2, folder=tmp_path, resume=True, **settings)
    monkeypatch.undo()
    longer = {**settings, "generations": 2}
    for force in (True, False):  # what was forced can be resumed
        hycop.HyCOP(problem.dictionary).fit(
            problem, preset="paper", seed=2, folder=tmp_path, resume=True, force=force, **longer
        )
        assert load(tmp_path / "train.nc").seed == 2


def test_bad_input(model: hycop.HyCOP) -> None:
    u0 = np.zeros((1, 1, 16))
    with pytest.raises(NotFittedError, match="fit"):
        hycop.HyCOP(PROBLEM.dictionary).predict(u0, {}, 0.1)
    with pytest.raises(InvalidInputError, match="u0"):
        model.predict(np.zeros((1, 16)), {"cx": 1.0, "Dx": 0.1}, 0.1)
    with pytest.raises(InvalidInputError, match="'Dx'"):
        model.predict(u0, {"cx": 1.0}, 0.1)
    with pytest.raises(InvalidInputError, match="time"):
        model.predict(u0, {"cx": 1.0, "Dx": 0.1}, -0.1)


def test_data_of_another_run_in_the_folder_are_not_taken_for_ones_own(tmp_path: Path) -> None:
    """A run that was killed before its first checkpoint leaves its data behind."""
    settings = {"samples": 8, "population": 4, "generations": 1, "dictionary": "upwind"}
    problem = hycop.problem("ad1d")
    alone = hycop.HyCOP(problem.dictionary).fit(problem, preset="paper", seed=1, **settings)
    save(problem.sample(8, "train", 0), tmp_path / "train.nc")
    resumed = hycop.HyCOP(problem.dictionary).fit(
        problem, preset="paper", seed=1, folder=tmp_path, resume=True, **settings
    )
    assert np.array_equal(resumed.model.theta, alone.model.theta)
    assert resumed.model.record.data_hash == alone.model.record.data_hash and load(tmp_path / "train.nc").seed == 1


def test_a_time_rounded_to_single_precision_is_no_longer_time(model: hycop.HyCOP) -> None:
    """Else the program for the longest trained time would be repeated for data of a file in single precision."""
    query = PROBLEM.sample(1, "id", seed=5).query
    seen = Observed(query, model.model.equation)
    scope = replace(model.model.scope, longest=tuple(dimensionless_times(seen)[0]))
    longest = replace(model.model, scope=scope)
    rounded = hycop.Query(query.u0, query.setting, query.time * (1 + 2.0**-24))
    assert segments(longest, rounded) == [1]
    assert segments(longest, hycop.Query(query.u0, query.setting, query.time * 1.001)) == [2]


def test_a_query_of_another_equation_is_refused(model: hycop.HyCOP) -> None:
    other = hycop.problem("burgers1d").queries(2)
    for ask in (model.answer, model.solve, model.programs, model.trace):
        with pytest.raises(HyCOPError):
            ask(other)
        with pytest.raises(InvalidInputError, match="give a Query"):
            ask(other.u0)  # type: ignore[arg-type]
