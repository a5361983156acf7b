"""Closures that are networks: learned from end states or short-time pairs, chosen, stored, and refused."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hycop.conformance import check_primitive
from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.enrichment import Enriched, NetworkPlan, enrich
from hycop.enrichment.known import KnownFlow, modes_of
from hycop.enrichment.learning import Lesson, learned_closure
from hycop.enrichment.rates import ShortTimes, has_short_pairs
from hycop.errors import HyCOPError
from hycop.grid import Array, Grid
from hycop.metrics import rel_l2
from hycop.primitive import fingerprint
from hycop.primitives import ExactLogistic, SpectralDiffusion
from hycop.primitives.learned import NeuralClosure
from hycop.primitives.symbolic import SymbolicTerms
from hycop.query import Channel, Query, Setting
from hycop.surrogate import HyCOP
from tests.helpers import hycop_command
from tests.worlds import LINEAR, column, composing, known, world

POINTWISE = NetworkPlan("pointwise", {"width": 12, "layers": 2}, rounds=40, rate=1e-2)
UNO = NetworkPlan("uno", {"width": 6, "modes": 4, "layers": 2}, rounds=8, rate=1e-2)
SAMPLES = 36


def coefficients(samples: int) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {
        "cx": rng.uniform(0.2, 1.5, samples),
        "Dx": rng.uniform(0.01, 0.03, samples),
        "r": rng.uniform(0.2, 2.0, samples),
    }


def growing(samples: int = SAMPLES) -> Dataset:
    """u_t + c u_x = D u_xx + r u (1 − u), r from sample to sample."""
    params = coefficients(samples)
    rest, growth = known(params), column(params["r"])
    return world(lambda u, derivative: rest(u, derivative) + growth * u * (1 - u), params, samples)


def without(data: Dataset, name: str) -> Dataset:
    params = {each: values for each, values in data.setting.params.items() if each != name}
    return replace(data, setting=replace(data.setting, params=params))


def shrinking(samples: int = SAMPLES) -> Dataset:
    """A hidden process outside the library: −1.5 u ū², ū the mean of u."""
    params = coefficients(samples)
    del params["r"]
    rest = known(params)
    mean = {"axis": 2, "keepdims": True}
    return world(lambda u, derivative: rest(u, derivative) - 1.5 * u * u.mean(**mean) ** 2, params, samples)


@pytest.fixture(scope="module")
def linear() -> HyCOP:
    return composing(dict(LINEAR), (Channel("u"),), "cx", "Dx")


@pytest.fixture(scope="module")
def told(linear: HyCOP) -> Enriched:
    """The model with a network that is told r."""
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    return enrich(linear, growing(), closure="network", inputs=["r"], networks=[POINTWISE], verbose=False)


def test_a_network_that_is_told_the_coefficient_mends_the_model(linear: HyCOP, told: Enriched) -> None:
    closure = told.model.model.dictionary["closure"]
    assert isinstance(closure, NeuralClosure) and list(closure.inputs) == ["r"]
    assert told.before > 0.05 and told.after < 0.1 * told.before and told.correlation > 0.99
    fresh = growing(48).take(slice(SAMPLES, None))
    u = np.linspace(0.35, 0.65, 32)[None, None]
    setting = fresh.setting.take(slice(0, 1))
    growth = setting.param("r")[0] * u * (1 - u)
    assert np.abs(closure.rate(u, setting) - growth).max() < 0.1 * growth.max()
    assert told.model.model.equation.processes[-1] == "closure" and "R(u, r)" in told.model.model.equation.formula


def test_a_closure_keeps_the_contract_of_primitives(told: Enriched) -> None:
    report = check_primitive(told.model.model.dictionary["closure"])
    assert report.passed, str(report)


def test_outside_its_range_a_closure_is_flagged_and_bounded(told: Enriched) -> None:
    closure = told.model.model.dictionary["closure"]
    assert isinstance(closure, NeuralClosure)
    u, setting = closure.example(0)
    low, high = closure.inputs["r"]
    far = replace(setting, params={"r": np.array([0.5 * (low + high), 10 * high, high])})
    assert closure.outside(u, far).tolist() == [False, True, False] and closure.outside(u + 9.0, far).all()
    ends = replace(setting, params={"r": np.full(3, high)})
    np.testing.assert_array_equal(closure.rate(u, far)[1:], closure.rate(u, ends)[1:])
    assert np.abs(closure.rate(1e6 * u, far)).max() < 1e3


def test_an_enriched_model_is_stored_to_the_bit_and_needs_its_coefficient(told: Enriched, tmp_path: Path) -> None:
    told.model.save(tmp_path / "run")
    again = HyCOP.load(tmp_path / "run")
    query = growing(8).query
    np.testing.assert_array_equal(again.solve(query).states, told.model.solve(query).states)
    written = json.loads((tmp_path / "run" / "model.json").read_text())
    assert next(part for part in written["dictionary"] if part["name"] == "closure")["primitive"] == "NeuralClosure"
    with pytest.raises(HyCOPError, match="'r'"):
        again.predict(query.u0[:1], {"cx": 1.0, "Dx": 0.1}, [0.1])
    text = (tmp_path / "run" / "model.json").read_text()
    (tmp_path / "run" / "model.json").write_text(text.replace('"width": 12', '"width": 13'))
    with pytest.raises(HyCOPError) as caught:
        HyCOP.load(tmp_path / "run")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("plan", [POINTWISE, UNO], ids=lambda plan: plan.family)
def test_a_closure_runs_on_other_grids_for_any_duration(plan: NetworkPlan) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    rng = np.random.default_rng(0)
    grid = Grid.box((16, 12), 1.0, batch=8)
    setting = Setting(grid, (Channel("u"),), {"Dx": np.full(8, 0.02), "Dy": np.full(8, 0.02)})
    u = rng.uniform(0.2, 0.4) + 0.2 * np.cos(2 * np.pi * sum(grid.centres()) + rng.uniform(0, 6, (8, 1, 1)))[:, None]
    truth = u * np.exp(-0.2)
    data = Dataset("own", "planted", np.stack([u, truth], axis=1), np.array([0.0, 0.2]), setting)
    flow = KnownFlow(Dictionary({"diffusion": SpectralDiffusion()}), 1)
    closure = learned_closure(Lesson(flow, data, data, "decay"), replace(plan, rounds=3), verbose=False)
    assert check_primitive(closure).passed, str(check_primitive(closure))
    fine = Setting(Grid.box((48, 40), 1.0, batch=2), (Channel("u"),), {})
    states = np.broadcast_to(0.3 + 0.1 * np.cos(2 * np.pi * fine.grid.centres()[0])[:, None], (2, 1, 48, 40)).copy()
    after = closure.flow(states, np.array([0.0, 7.3]), fine)
    np.testing.assert_array_equal(after[0], states[0])
    assert np.isfinite(after).all() and (after[1] != states[1]).any()
    assert closure.work(states, np.array([0.1, 7.3]), fine)[1] >= closure.work(states, np.array([0.1, 7.3]), fine)[0]


def test_short_time_pairs_teach_the_rate_at_the_half_way_state() -> None:
    """The error of the rate falls from first to second order in Δt."""
    params = {"Dx": np.full(4, 0.02), "r": np.full(4, 1.5)}
    flow = KnownFlow(Dictionary({"diffusion": SpectralDiffusion()}), 1)
    both = Dictionary({"diffusion": SpectralDiffusion(), "reaction": ExactLogistic()})
    setting = Setting(Grid.box((64,), 1.0, batch=4), (Channel("u"),), params)
    wave = np.cos(2 * np.pi * setting.grid.centres()[0])
    u = np.broadcast_to(0.5 + 0.3 * wave[:, None], (4, 1, 64)).copy()
    frames = [u] + [
        KnownFlow(both, 1).after(Query(u, setting, np.full(4, t)), [(False, 1.0)])[:, 0] for t in (0.01, 0.2)
    ]
    data = Dataset("own", "planted", np.stack(frames, axis=1), np.array([0.0, 0.01, 0.2]), setting)
    assert has_short_pairs(data) and not has_short_pairs(data.at(-1))
    errors = []
    for halfway in (False, True):
        source = ShortTimes.of(flow, data, 0, halfway)
        rates = 1.5 * source.states * (1 - source.states)
        if source.multipliers is not None:
            rates = np.fft.irfft(source.multipliers[:, 0, :, 0] * np.fft.rfft(rates))
        errors.append(np.abs(source.estimates - rates).max())
    assert errors[1] < 0.05 * errors[0]


def test_the_response_of_a_linear_flow_is_exact() -> None:
    """K of diffusion is e^{−Dk²(T − t)}."""
    flow = KnownFlow(Dictionary({"diffusion": SpectralDiffusion()}), 1)
    setting = Setting(Grid.box((16,), 1.0, batch=2), (Channel("u"),), {"Dx": np.array([0.01, 0.03])})
    query = Query(1 + np.random.default_rng(0).random((2, 1, 16)), setting, np.array([0.2, 0.1]))
    found = flow.multipliers(query, 0)[:, :, 0, 0]
    k = 2 * np.pi * np.arange(9)
    for node, (time, weight) in enumerate(zip(flow.times, (5 / 18, 4 / 9, 5 / 18), strict=True)):
        left = (1 - time) * query.time[:, None]
        wanted = weight * query.time[:, None] * np.exp(-setting.param("Dx")[:, None] * k**2 * left)
        np.testing.assert_allclose(found[:, node], wanted, atol=1e-8)
    assert modes_of(query.u0, query).shape == (2, 1, 9)


def test_short_time_pairs_are_used_where_the_data_have_them(linear: HyCOP) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    data = growing()
    model = Dictionary({**LINEAR, "reaction": ExactLogistic()})
    early = KnownFlow(model, 1).after(Query(data.states[:, 0], data.setting, np.full(SAMPLES, 0.01)), [(False, 1.0)])
    states = np.stack([data.states[:, 0], early[:, 0], data.states[:, 1]], axis=1)
    data = replace(data, states=states, times=np.tile([0.0, 0.01, 0.2], (SAMPLES, 1)))
    made = enrich(linear, data, closure="network", inputs=["r"], networks=[POINTWISE], verbose=False)
    assert made.after < 0.2 * made.before and made.model.model.gate.samples == SAMPLES // 3


def test_auto_prefers_named_terms_and_says_why(linear: HyCOP) -> None:
    made = enrich(linear, growing(), verbose=False)
    assert isinstance(made.closure, SymbolicTerms) and made.after < 1e-2 * made.before
    assert "named terms" in made.reasons[0]


@pytest.mark.validate
def test_auto_takes_a_network_where_nothing_can_be_named(linear: HyCOP) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    made = enrich(linear, shrinking(), networks=[POINTWISE, UNO], verbose=False)
    assert isinstance(made.closure, NeuralClosure) and made.after < 0.5 * made.before
    assert any("no candidate explains it" in reason for reason in made.reasons)


@pytest.mark.parametrize("plan", [replace(POINTWISE, rounds=2), replace(UNO, rounds=2)], ids=lambda plan: plan.family)
def test_the_same_seed_gives_the_same_bits(linear: HyCOP, plan: NetworkPlan) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    data = shrinking(12)
    lesson = Lesson(KnownFlow.of(linear.model), data.take(slice(0, 8)), data.take(slice(8, None)), "closure")
    one, again = (learned_closure(lesson, plan, verbose=False) for _ in range(2))
    other = learned_closure(replace(lesson, seed=1), plan, verbose=False)
    assert fingerprint(one) == fingerprint(again) != fingerprint(other)


def test_without_torch_auto_uses_named_terms_and_networks_say_what_to_install(
    linear: HyCOP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert isinstance(enrich(linear, growing(), verbose=False).closure, SymbolicTerms)
    for closure, data in (("network", growing()), ("auto", shrinking())):
        with pytest.raises(HyCOPError, match=r"pip install 'hycop\[learned\]'") as caught:
            enrich(linear, data, closure=closure, verbose=False)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"closure": "network", "inputs": ["k"]}, "unknown input 'k'"),
        ({"closure": "symbolic", "inputs": ["r"]}, "inputs are those of a network"),
        ({"closure": "unet"}, "unknown closure 'unet'"),
    ],
)
def test_bad_inputs_are_refused_in_one_line(linear: HyCOP, options: dict[str, object], words: str) -> None:
    with pytest.raises(HyCOPError) as caught:
        enrich(linear, growing(), verbose=False, **options)  # type: ignore[arg-type]
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_closure_that_blows_up_or_does_not_help_is_refused(linear: HyCOP, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    rate = NeuralClosure.rate
    monkeypatch.setattr(NeuralClosure, "rate", lambda self, u, setting: np.exp(1e3 * rate(self, u, setting) ** 2))
    with np.errstate(all="ignore"), pytest.raises(HyCOPError) as caught:
        enrich(linear, growing(), closure="network", networks=[replace(POINTWISE, rounds=1)], verbose=False)
    assert "NaN or infinite" in str(caught.value) and "\n" not in str(caught.value)
    monkeypatch.setattr(NeuralClosure, "rate", lambda self, u, setting: -30.0 * u)
    with pytest.raises(HyCOPError, match="does not lower the held-out error"):
        enrich(linear, growing(), closure="network", networks=[replace(POINTWISE, rounds=1)], verbose=False)


def test_the_command_writes_a_model_or_nothing(linear: HyCOP, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra 'learned'")
    linear.save(tmp_path / "run")
    growing().save(tmp_path / "target.nc")
    run, out, data = tmp_path / "run", tmp_path / "out", tmp_path / "target.nc"
    bad = hycop_command("enrich", run, out, "--data", data, "--closure", "network", "--inputs", "k")
    assert bad.returncode == 2 and not out.exists() and bad.stderr.strip().count("\n") == 0 and "'k'" in bad.stderr
    good = hycop_command("enrich", run, out, "--data", data, "--json", tmp_path / "report.json")
    assert good.returncode == 0 and "named terms" in good.stdout, good.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["closure"] == "SymbolicTerms" and report["reasons"]
    later = HyCOP.load(out).solve(growing(8).query).states
    assert rel_l2(later, growing(8).truth, growing(8).setting).max() < 0.01
