"""Diagnosis: the guilty term is found, the terms add up, and each vanishes with its cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.data import Dataset
from hycop.diagnosis.budget import TERMS, Budget, budget
from hycop.diagnosis.case import Case
from hycop.diagnosis.commutators import commutator
from hycop.diagnosis.floor import noise
from hycop.diagnosis.oracle import oracle
from hycop.diagnosis.rates import Rate, rates
from hycop.diagnosis.regimes import regimes
from hycop.diagnosis.shift import shift
from hycop.diagnosis.trusted import Trusted
from hycop.diagnosis.verdict import Verdict, verdict
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.grid import Array, Grid
from hycop.model import Answered
from hycop.primitives import ExactLogistic
from hycop.query import Channel, Query, Setting
from tests.helpers import EXACT_FLOWS, hycop_command
from tests.planted import classical_model, without

ADR, BURGERS, WATER = (hycop.problem(name) for name in ("adr2d", "burgers1d", "swe1d"))
DATA: Mapping[str, Dataset] = {
    "adr2d": ADR.sample(4, "id", 0, estimated=1),
    "burgers1d": BURGERS.sample(4, "id", 1, estimated=1),
    "swe1d": WATER.sample(4, "id", 1, estimated=1),
}


@pytest.fixture(autouse=True)
def few_queries_for_the_error_of_the_trusted_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the cells in both directions cost eight times the rest."""
    monkeypatch.setattr("hycop.diagnosis.floor.HALVED", 1)
    monkeypatch.setattr("hycop.diagnosis.floor.COARSENED", 4)


def found(model: hycop.HyCOP, data: Dataset) -> tuple[Case, Budget, Verdict]:
    case = Case.of_data(model, data)
    terms = budget(case, Trusted.of(case.model, case.query.grid, data.problem))
    return case, terms, verdict(terms)


PLANTED = {
    "adr2d without reaction": (lambda: without(ADR, "reaction"), "mismatch", "enrich", None),
    "adr2d in three moves": (lambda: classical_model(ADR), "splitting", "policy", None),
    "adr2d upwind": (
        lambda: classical_model(ADR, "strang x2", ADR.dictionaries["upwind"]),
        "primitive",
        "primitive",
        "advection",
    ),
    "burgers1d upwind": (
        lambda: classical_model(BURGERS, "strang x5", BURGERS.dictionaries["upwind"]),
        "primitive",
        "primitive",
        "advection",
    ),
    "swe1d without momentum": (lambda: without(WATER, "momentum", 2), "mismatch", "enrich", None),
    "swe1d in three steps": (lambda: classical_model(WATER, refinement=2), "splitting", "policy", None),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_guilty_term_is_found(name: str) -> None:
    make, term, kind, blamed = PLANTED[name]
    case, terms, judged = found(make(), DATA[name.split()[0]])
    assert (terms.sizes[term] >= 0.8 * terms.sizes["total"]).all()
    assert (judged.kind, judged.blamed) == (kind, blamed) and terms.leads(term) == 1.0
    # the terms add up, as fields and in the triangle inequality; so do the parts of the steps
    np.testing.assert_allclose(sum(terms.fields[each] for each in TERMS), terms.fields["total"], atol=1e-13)
    assert (terms.sizes["total"] <= sum(terms.sizes[each] for each in TERMS) * (1 + 1e-12)).all()
    assert terms.shares is not None
    chosen = case.few(len(terms.shares.programs))
    np.testing.assert_allclose(
        sum(terms.shares.fields.values()), terms.fields["primitive"][chosen], atol=1e-13 * np.abs(case.truth).max()
    )
    assert (terms.shares.by_step.sum(axis=1) >= terms.sizes["primitive"][chosen] * (1 - 1e-9)).all()


def test_every_term_vanishes_with_its_cause() -> None:
    data = DATA["swe1d"]
    _, whole, judged = found(classical_model(WATER, "strang x12", refinement=4), data)
    assert all(size is not None and size < 1e-4 for size in whole.means().values())
    assert judged.kind == "trust" and "the error is that of the data" in str(judged)
    coarse, fine = (found(classical_model(WATER, f"strang x{n}", refinement=2), data)[1] for n in (1, 4))
    assert fine.sizes["splitting"].mean() < coarse.sizes["splitting"].mean() / 10  # second order: 16
    upwind = BURGERS.dictionaries["upwind"]
    sizes = [
        found(classical_model(BURGERS, "strang x2", upwind, n), DATA["burgers1d"])[1].sizes["primitive"].mean()
        for n in (1, 4)
    ]
    assert sizes[1] < sizes[0] / 2.5  # first order, less at shocks


def test_a_poor_network_is_blamed() -> None:
    pytest.importorskip("torch")
    options = {"rounds": 1, "samples": 16, "held_out": 4, "width": 4, "modes": 4, "layers": 2, "shape": (16, 16)}
    network = hycop.pretrain(ADR, ("advection", "diffusion"), preset="quick", verbose=False, **options)
    parts = Dictionary({"reaction": ExactLogistic(), "network": network})
    _, terms, judged = found(classical_model(ADR, "strang x2", parts), DATA["adr2d"])
    assert (judged.kind, judged.blamed) == ("primitive", "network")
    assert (terms.sizes["primitive"] >= 0.8 * terms.sizes["total"]).all()


def test_noise_of_the_data_is_not_blamed_on_the_model() -> None:
    rng, data = np.random.default_rng(0), DATA["adr2d"]
    size = 0.01 * np.sqrt((data.states[:, 1] ** 2).mean(axis=(1, 2, 3), keepdims=True))
    noisy = data.states.copy()
    noisy[:, 1] += size * rng.standard_normal(noisy[:, 1].shape)
    blurred = replace(data, states=noisy)
    _, terms, judged = found(classical_model(ADR), blurred)
    assert judged.kind == "trust" and terms.floor.noise == pytest.approx(0.01, rel=0.2)
    assert found(without(ADR, "reaction"), blurred)[2].kind == "enrich"
    step = np.zeros((1, 1, 64))
    step[..., 20:40] = 1.0
    assert noise(step, Grid.box((64,))) == 0.0


def test_two_terms_of_the_same_size_are_balanced() -> None:
    _, terms, _ = found(classical_model(WATER), DATA["swe1d"])
    same = replace(terms, sizes={**terms.sizes, "primitive": 0.9 * terms.sizes["splitting"]})
    judged = verdict(same)
    assert judged.kind == "policy" and judged.balanced == ("primitive",) and "balanced with primitive" in str(judged)
    assert verdict(terms).balanced == ()


# ------------------------------------------------------------------------------------------- not separable


@dataclass(frozen=True)
class Damping:
    """u_t = −k u, somebody's own; ``order`` None as for a network."""

    strength: float = 1.0
    order: float | None = None
    advances = frozenset({"damping"})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-self.strength * duration).reshape(-1, *(1,) * (u.ndim - 1))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(u[0].size))


def own_case(order: float | None, strength: float = 1.0) -> tuple[hycop.HyCOP, Dataset]:
    """Advection and damping on a line, an equation that no problem has."""
    base = hycop.problem("ad1d")
    known = replace(
        base.equation,
        name="mine",
        processes=("advection", "damping"),
        coefficients={"cx": base.equation.coefficients["cx"]},
        features=("variation",),
        gain_features=(),
    )
    parts = Dictionary({"advection": base.dictionary["advection"], "damping": Damping(strength, order)})
    asked = base.queries(4, "id", 0)
    setting = replace(asked.setting, params={"cx": asked.setting.params["cx"]})
    query = Query(asked.u0, setting, asked.time)
    truth = hycop.run(hycop.splitting("strang").programs(query, parts), parts.swapping("damping", Damping(1.0)), query)
    states = np.stack([query.u0, truth], axis=1)
    return classical_model(base, "strang", parts, 1, known), Dataset(
        "mine", "own", states, np.stack([0 * query.time, query.time], axis=1), setting
    )


def test_what_no_trusted_flow_knows_is_not_separable() -> None:
    model, data = own_case(None, strength=2.0)
    _, terms, judged = found(model, data)
    assert judged.kind is None and "'damping' has no order" in terms.reason
    assert terms.means()["splitting"] is None and terms.means()["primitive"] is None
    page = str(hycop.diagnose(model, data, verbose=False))
    assert page.startswith("not separable") and "splitting  not separable" in page


def test_numerical_primitives_of_ones_own_are_trusted_on_a_finer_grid() -> None:
    model, data = own_case(2.0, strength=2.0)
    _, terms, judged = found(model, data)
    assert judged.kind == "enrich" and terms.reason == ""
    _, terms, judged = found(*own_case(2.0))
    assert judged.kind == "trust" and terms.total < 1e-10


# ------------------------------------------------------------------------------------------- where, rates, shift


def test_the_commutator_of_diffusion_and_reaction() -> None:
    """[D Δ, r u(1 − u)] u = 2 r (D_x u_x² + D_y u_y²); advection commutes with both."""
    cells = 48
    grid = Grid.box((cells, cells))
    x, y = (2 * np.pi * each for each in grid.centres())
    params = {"cx": 0.7, "cy": -0.4, "Dx": 0.03, "Dy": 0.05, "r": 0.9}
    u = 0.5 + 0.2 * np.sin(x) + 0.1 * np.cos(2 * y)
    query = Query(u[:, None], Setting(grid, (Channel("u"),), params), np.array([0.01]))
    slopes = (0.2 * 2 * np.pi * np.cos(x)) ** 2, (0.1 * 4 * np.pi * np.sin(2 * y)) ** 2
    wanted = 2 * params["r"] * (params["Dx"] * slopes[0] + params["Dy"] * slopes[1])
    got = commutator(EXACT_FLOWS, ("diffusion", "reaction"), query)[0, 0]
    # [F, G] = G'F − F'G has this sign: reaction after diffusion loses what gradients would have grown
    assert np.abs(np.abs(got) - wanted[0]).max() < 0.02 * wanted.max()
    for pair in (("advection", "diffusion"), ("advection", "reaction")):
        assert np.abs(commutator(EXACT_FLOWS, pair, query)).max() < 0.02 * wanted.max()


def test_the_regime_of_a_missing_reaction_is_its_rate() -> None:
    data = ADR.sample(40, "id", 3, shape=(12, 12), estimated=0)
    case = Case.of_data(without(ADR, "reaction"), data)
    errors = case.relative(case.truth - case.answers)
    first = regimes(case, errors)[0]
    assert first.name == "r" and first.correlation > 0.6 and first.clear and first.high > 2 * first.low
    assert not any(each.clear for each in regimes(case, np.random.default_rng(0).random(case.batch)))
    assert regimes(case.take(np.arange(4)), errors[:4]) == []


def test_rates_and_the_best_program() -> None:
    assert Rate.of((1, 2, 4), (0.08, 0.02, 0.005)).order == pytest.approx(2.0)
    short = WATER.sample(6, "id", 2, times=[0.1], estimated=0)
    case = Case.of_data(classical_model(WATER, refinement=2), short)
    measured = rates(case, Trusted.of(case.model, case.query.grid, "swe1d"), True)
    assert 1.7 < measured.terms["splitting"].order < 2.6 and abs(measured.terms["primitive"].order) < 0.5
    before, after = measured.next_doubling()["total"]
    assert after < before / 3
    best = oracle(case)
    assert best is not None and 0 <= best.best < 0.7 * best.error
    # one step of each primitive leaves nothing to choose
    assert oracle(Case.of_data(classical_model(WATER, "lie", refinement=2), short)) is None


def test_the_shift_is_bounded() -> None:
    model = classical_model(ADR)
    drawn = {split: ADR.sample(24, split, 5, shape=(12, 12), estimated=0) for split in ("train", "ood")}
    trained = replace(model.model, trained=model.model.answered(drawn["train"]))
    same, away = (
        shift(case, case.relative(case.truth - case.answers))
        for case in (Case.of_data(hycop.HyCOP.of(trained), data) for data in drawn.values())
    )
    assert same is not None and away is not None
    assert same.distance == pytest.approx(0.0, abs=1e-9) and same.gap == pytest.approx(0.0, abs=1e-12)
    assert away.distance > 0.3 and abs(away.gap) <= away.bound and away.gaps == {"shift": away.gap}
    assert set(away.features) == set(ADR.equation.features or ())
    case = Case.of_data(model, drawn["ood"])
    assert shift(case, np.zeros(case.batch)) is None
    empty = replace(trained, trained=Answered(np.full((2, 12), np.nan), np.ones(2)))
    assert shift(Case.of_data(hycop.HyCOP.of(empty), drawn["ood"]), np.zeros(24)) is None


# ------------------------------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "ad"
    hycop.HyCOP.of(replace(without(ADR, "reaction").model, held_out=None)).save(folder)
    return folder


def test_what_is_missing_is_named_in_the_verdict() -> None:
    data = ADR.sample(10, "id", 5, estimated=1)
    found = hycop.diagnose(without(ADR, "reaction"), data, verbose=False)
    content = found.to_json()
    terms = {each["term"]: each["coefficient"] for each in content["missing"]}  # type: ignore[attr-defined]
    assert content["verdict"] == "enrich" and set(terms) == {"r*u", "r*u^2"}
    assert terms["r*u"] == pytest.approx(1, abs=0.01) and terms["r*u^2"] == pytest.approx(-1, abs=0.01)
    first, second = str(found).splitlines()[:2]
    assert first.startswith("enrich the dictionary with u_t = … + ") and second.endswith("% of the residual)")
    assert isinstance(content["explained"], float) and content["explained"] > 0.999
    shown = found._repr_html_()
    assert escape(second) in shown and escape(found.verdict.advice) in shown and f"{found.budget.total:.2e}" in shown
    axes = hycop.plot.budget(found)
    assert [label.get_text() for label in axes.get_xticklabels()] == list(found.budget.sizes)


def test_too_few_pairs_and_no_mismatch_are_not_named() -> None:
    few = DATA["adr2d"].take(slice(0, 3))
    page = hycop.diagnose(without(ADR, "reaction"), few, verbose=False)
    assert page.missing is None and "at least 8 are needed" in str(page).splitlines()[1]
    assert "nothing was named" in page._repr_html_()
    assert hycop.diagnose(classical_model(ADR), few, verbose=False).to_json()["missing"] == []


def test_the_command_writes_page_json_and_figures(run_folder: Path, tmp_path: Path) -> None:
    hycop.save(DATA["adr2d"], tmp_path / "adr.nc")
    words = ["diagnose", run_folder, "--data", tmp_path / "adr.nc", "--samples", "4"]
    done = hycop_command(*words, "--json", tmp_path / "d.json", "--figures", tmp_path / "figures")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("enrich the dictionary; mismatch")
    for title in ("budget", "where", "rates", "shift"):
        assert f"\n{title}" in done.stdout
    content = json.loads((tmp_path / "d.json").read_text())
    assert (content["verdict"], content["blamed"], content["missing"]) == ("enrich", None, [])
    assert set(content["budget"]) == {"total", "mismatch", "splitting", "primitive"}
    assert len(content["queries"]["total"]) == 4
    drawn = {path.name: path.stat().st_size for path in (tmp_path / "figures").iterdir()}
    assert set(drawn) == {f"{name}.png" for name in ("budget", "features", "maps", "commutators", "commutator_maps")}
    assert min(drawn.values()) > 5000


def test_results_that_cannot_be_written_are_refused_first(tmp_path: Path) -> None:
    """Neither the model nor the data are looked at."""
    (tmp_path / "file").write_text("")
    for command in (["diagnose", "none"], ["enrich", "none", tmp_path / "out"]):
        done = hycop_command(*command, "--data", "none.nc", "--json", tmp_path / "no" / "d.json")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "there is no folder" in done.stderr
    for words in (
        ["diagnose", "none", "--figures", tmp_path / "file" / "in"],
        ["enrich", "none", tmp_path / "file" / "in"],
    ):
        done = hycop_command(*words, "--data", "none.nc")
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "is a file; give a folder" in done.stderr


def bad_files(folder: Path) -> dict[str, tuple[Path, str]]:
    data = DATA["adr2d"].take(slice(0, 2))
    states = data.states
    files = {
        "equation": (DATA["burgers1d"], "axes"),
        "coefficients": (
            replace(data, setting=replace(data.setting, params={"cx": 1.0, "nu": 0.1})),
            "no coefficient 'cy'",
        ),
        "initial": (replace(data, states=states[:, 1:], times=data.times[:, 1:]), "states:"),
        "one": (data.take(slice(0, 1)), "1 sample"),
        "huge": (replace(data, states=1e200 * states), "too large"),
        "zero": (replace(data, states=states[:, [0, 0]], times=0 * data.times), "no state is later"),
    }
    found = {}
    for name, (content, words) in files.items():
        hycop.save(content, folder / f"{name}.nc")
        found[name] = (folder / f"{name}.nc", words)
    np.savez(
        folder / "nan.npz",
        u=np.where(np.arange(32)[:, None] == 3, np.nan, states[:, :, 0]),
        time=data.times,
        lengths=data.setting.grid.lengths,
        **data.setting.params,
    )
    return {**found, "nan": (folder / "nan.npz", "NaN"), "missing": (folder / "nothing.nc", "no such file")}


def test_bad_data_are_refused_with_one_line(run_folder: Path, tmp_path: Path) -> None:
    for name, (path, words) in bad_files(tmp_path).items():
        before = sorted(tmp_path.iterdir())
        options = ["--json", tmp_path / "d.json", "--figures", tmp_path / "figures"]
        done = hycop_command("diagnose", run_folder, "--data", path, *options)
        assert done.returncode == 2 and done.stdout == "", (name, done)
        assert len(done.stderr.splitlines()) == 1 and words in done.stderr and str(path) in done.stderr, (name, done)
        assert sorted(tmp_path.iterdir()) == before


def test_arguments_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="model is a Problem"):
        hycop.diagnose(ADR, DATA["adr2d"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="data is a str"):
        hycop.diagnose(classical_model(ADR), "adr2d.nc")  # type: ignore[arg-type]
