"""Model folders: what is saved comes back to the bit; primitives of others are found or asked for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hycop.primitives
import hycop.storage.registry
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, IncompatibleError, OutputError, UnknownNameError
from hycop.features import FeatureMap, FeatureRange
from hycop.features.times import guessed_from_names
from hycop.grid import Array, Grid
from hycop.model import Answered, Box, Model, Record
from hycop.policy import Allotment, Budget, Inputs, Pattern, Policy, PositionPolicy, SlotPolicy
from hycop.primitive import EXACT, fingerprint
from hycop.primitives import ExactLogistic, MusclAdvection, SpectralAdvection, SpectralDiffusion, UpwindAdvection
from hycop.program import ProgramBatch
from hycop.query import Channel, Query, Setting
from hycop.scope import Scope, View
from hycop.storage import ModelError, load_model, save_model, sealed
from hycop.surrogate import HyCOP
from hycop.training import Gate, TrainingConfig

PROCESSES = ("advection", "diffusion", "reaction")
ADR = Dictionary({"advection": MusclAdvection(cfl=0.4), "diffusion": SpectralDiffusion(), "reaction": ExactLogistic()})
STRANG = Pattern((0, 1, 2, 1, 0), (0.5, 0.5, 1.0, 0.5, 0.5), "Strang")
LIE = Pattern((2, 1, 0), (1.0, 1.0, 1.0), "Lie")
VIEW = View(
    FeatureMap(("peclet_x", "growth")),
    FeatureRange((-0.1, -1.5), (2.0 / 3.0, 0.5)),
    FeatureMap(("cell_peclet",)),
    FeatureRange((0.0,), (4.0,)),
)
EQUATION = guessed_from_names("adr1d", PROCESSES, (Channel("u"),), (), 1)
SCOPE = Scope(VIEW, (0.8, 0.0, 1.2), ("periodic",))
RECORD = Record(
    TrainingConfig(samples=64, max_work=3.5),
    7,
    hashlib.sha256(b"data").hexdigest(),
    {"train_loss": 0.1 + 0.2, "held_out_error": inf},
)
GATE = Gate(True, "Strang x2(outer=diffusion)", 0.01, 0.02, 0.03, 0.02, True, 1e5, 1.1e5, 200)

properties = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@dataclass(frozen=True)
class LinearDrag:
    """u_t = −k u, somebody's own."""

    rate: float = 1.0
    modes: tuple[int, ...] = (1, 2)
    advances = frozenset({"reaction"})
    order = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-self.rate * duration).reshape(-1, *(1,) * (u.ndim - 1))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.full(setting.batch, float(u[0].size))


@dataclass(frozen=True)
class CallableDrag(LinearDrag):
    law: Callable[[float], float] = abs


def slots(dictionary: Dictionary = ADR, budget: Budget = "gain", processes: tuple[str, ...] = PROCESSES) -> SlotPolicy:
    return SlotPolicy((STRANG, LIE), Allotment.of(dictionary, processes, budget, 1), 2)


def a_model(dictionary: Dictionary = ADR, policy: Policy | None = None, **changes: Any) -> Model:
    policy = slots(dictionary) if policy is None else policy
    whole = Model(
        equation=EQUATION,
        dictionary=dictionary,
        policy=policy,
        theta=(np.arange(policy.size) * 5 % 7 - 3) / 10,
        scope=SCOPE,
        gate=GATE,
        box=Box((2.5,), ("periodic",)),
        record=RECORD,
    )
    return replace(whole, **changes)


def queries(batch: int = 12, times: float = 2.0) -> Query:
    rng = np.random.default_rng(1)
    grid = Grid.box((16,), 2.5, batch=batch)
    params = {"cx": rng.uniform(0.1, 1, batch), "Dx": rng.uniform(0.01, 0.9, batch), "r": rng.uniform(0.1, 1, batch)}
    setting = Setting(grid, (Channel("u"),), params)
    return Query(rng.uniform(0.1, 0.9, (batch, 1, 16)), setting, rng.uniform(0.1, times, batch))


def arithmetic() -> Array:
    """Values that tell whether this processor rounds as another one does."""
    x = np.random.default_rng(0).uniform(0.0, 3.0, 64)
    return np.concatenate([np.exp(x), np.log(x), np.abs(np.fft.rfft(x))])


def same(a: Model, b: Model) -> bool:
    """Every field alike; theta, which prints rounded, to the bit."""
    return repr(a) == repr(b) and a.theta.dtype == b.theta.dtype and a.theta.tobytes() == b.theta.tobytes()


def content(folder: Path) -> dict[str, Any]:
    out: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    return out


def refused(folder: Path, *words: str, primitives: Mapping[str, Any] | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        load_model(folder, primitives)
    line = str(caught.value)
    assert "\n" not in line and str(folder) in line
    for word in words:
        assert word in line
    return line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(a_model(), tmp_path / "run")
    return tmp_path / "run"


MODELS = {
    "slot, gain": a_model(),
    "slot, consistent": a_model(policy=slots(budget="consistent")),
    "slot, literal": a_model(policy=slots(budget="literal")),
    "one pattern": a_model(policy=SlotPolicy((STRANG,), Allotment.of(ADR, PROCESSES, "consistent"), 2)),
    "four tilts": a_model(policy=replace(slots(budget="consistent"), tilts=4)),
    "position": a_model(policy=PositionPolicy(Allotment.of(ADR, PROCESSES, "gain", 1), 2, 7, 3)),
    "refused at the gate": a_model(gate=replace(GATE, kept=False, learned_error=inf, learned_extreme=inf)),
    "refined": a_model(refinement=2, box=Box((2.5,), ("wall",))),
    "no features": a_model(
        policy=SlotPolicy((STRANG,), Allotment.of(ADR, PROCESSES, "consistent"), 0),
        scope=replace(SCOPE, view=View.nothing()),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back_to_the_bit(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    save_model(model, tmp_path / "run")
    again = load_model(tmp_path / "run")
    assert same(model, again)
    query = queries()
    assert again.solve(query).states.tobytes() == model.solve(query).states.tobytes()
    assert again.programs(query).durations.tobytes() == model.programs(query).durations.tobytes()
    # writing it once more gives the same file
    save_model(again, tmp_path / "twin")
    assert (tmp_path / "twin/model.json").read_bytes() == (tmp_path / "run/model.json").read_bytes()


KEPT = Answered(np.array([[0.1, -1.0], [0.2, inf], [nan, 0.3]]), np.array([1e-3, 2e-3, inf]))


def test_queries_of_training_come_back_to_the_bit_and_are_sealed(tmp_path: Path) -> None:
    model = a_model(trained=KEPT, held_out=Answered(KEPT.features[:1], KEPT.errors[:1]))
    save_model(model, tmp_path / "run")
    for _ in range(2):  # the second time over the first
        again = load_model(tmp_path / "run")
        for name in ("trained", "held_out"):
            for before, after in zip(getattr(model, name), getattr(again, name), strict=True):
                assert before.tobytes() == after.tobytes()
        save_model(again, tmp_path / "run", overwrite=True)
    (file,) = (tmp_path / "run").glob("queries*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    refused(tmp_path / "run", "damaged", "queries")
    save_model(a_model(), tmp_path / "run", overwrite=True)
    assert not list((tmp_path / "run").glob("queries*")) and load_model(tmp_path / "run").trained is None


def test_queries_of_training_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    save_model(a_model(trained=Answered(KEPT.features[:, :1], KEPT.errors)), tmp_path / "run")
    refused(tmp_path / "run", "queries 'trained' are not features (2 columns)")


@pytest.mark.parametrize("schema", ["schema1", "schema2"])
def test_a_model_of_every_schema_can_be_read_for_ever(schema: str) -> None:
    """Made by ``save_model(a_model(), …)`` when the schema was new, with what ``queries()`` gave then beside it."""
    folder = Path(__file__).parent / "models" / schema
    model, query = load_model(folder), queries()
    assert same(model, a_model())
    found = {"durations": model.programs(query).durations, "states": model.solve(query).states}
    with np.load(folder / "expected.npz") as stored:
        # exp, log and FFT may round otherwise on another processor
        exact = arithmetic().tobytes() == stored["arithmetic"].tobytes()
        for name, values in found.items():
            np.testing.assert_allclose(values, stored[name], rtol=0 if exact else 1e-12)


def test_a_primitive_that_is_not_what_it_was_is_not_trusted(folder: Path) -> None:
    """A folder whose scheme has changed since, or which got another object for it, says so at every later time."""
    data = content(folder)
    data["dictionary"][0]["fingerprint"] = fingerprint(MusclAdvection(cfl=0.3))
    (folder / "model.json").write_text(json.dumps(sealed(data)), encoding="utf-8")
    loaded = load_model(folder)
    assert loaded.scope.untrained == ("advection",)
    assert loaded.record.changes == ("primitive advection: not the one that the model was stored with",)
    query = replace(queries(), time=np.arange(12.0))
    assert loaded.answer(query).outside["primitive advection"].tolist() == [False] + [True] * 11
    save_model(loaded, folder, overwrite=True)
    assert same(load_model(folder), loaded)  # said once


def test_a_scheme_newer_than_a_folder_of_schema_1_is_flagged(folder: Path) -> None:
    """Such folders have no fingerprints: the first version of every scheme made them."""
    old = content(Path(__file__).parent / "models" / "schema1")
    gas = {"name": "diffusion", "primitive": "SqrtDensityViscosity", "options": {}}
    processes, names = ["advection", "viscosity", "reaction"], ["advection", "diffusion", "reaction"]
    changed = {**old, "processes": processes, "dictionary": [old["dictionary"][0], gas, old["dictionary"][2]]}
    assert old["policy"]["allotment"]["names"] == names
    (folder / "model.json").write_text(json.dumps(sealed(changed)), encoding="utf-8")
    assert load_model(folder).scope.untrained == ("diffusion",)
    assert not load_model(Path(__file__).parent / "models" / "schema1").scope.untrained


def test_the_surrogate_saves_and_loads(tmp_path: Path) -> None:
    model = HyCOP.of(a_model())
    model.save(tmp_path / "deep" / "run")
    again = HyCOP.load(tmp_path / "deep" / "run")
    assert repr(again) == repr(model)
    query = queries(2)
    params = {name: np.full(2, 0.4) for name in query.setting.params}
    with pytest.warns(UserWarning, match="outside the trained range"):
        expected = model.predict(query.u0, params, [0.1, 9.0])
    with pytest.warns(UserWarning, match="outside the trained range"):
        assert np.array_equal(again.predict(query.u0, params, [0.1, 9.0]), expected)


@properties
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_every_float_round_trips(tmp_path: Path, numbers: list[float]) -> None:
    model = a_model()
    theta = np.resize(np.array(numbers), model.theta.size)
    save_model(replace(model, theta=theta), tmp_path / "run", overwrite=True)
    assert load_model(tmp_path / "run").theta.tobytes() == theta.tobytes()


def test_the_file_is_plain_json_that_names_its_primitives(folder: Path) -> None:
    data = content(folder)
    assert data["kind"] == "hycop-model" and data["schema_version"] == 2 and data["files"] == {}
    assert data["dictionary"][0] == {
        "name": "advection",
        "primitive": "MusclAdvection",
        "options": {"cfl": 0.4},
        "arrays": False,
        "fingerprint": fingerprint(MusclAdvection(cfl=0.4)),
    }
    assert data["record"]["metrics"]["held_out_error"] == "inf"
    assert sorted(os.listdir(folder)) == ["model.json"]


def test_numpy_numbers_are_stored_as_numbers(tmp_path: Path) -> None:
    dictionary = ADR.swapping("advection", UpwindAdvection(cfl=np.float32(0.25)))
    model = a_model(
        dictionary,
        box=Box((np.float64(2.5),), ("periodic",)),
        record=replace(RECORD, seed=np.int64(7)),
        refinement=np.int64(1),
    )
    save_model(model, tmp_path / "run")
    assert same(load_model(tmp_path / "run"), a_model(ADR.swapping("advection", UpwindAdvection(cfl=0.25))))


# ------------------------------------------------------------------------------------------- saving


def test_saving_over_a_model_must_be_asked_for(folder: Path) -> None:
    before = (folder / "model.json").read_bytes()
    with pytest.raises(OutputError, match="holds a model already"):
        save_model(a_model(record=replace(RECORD, seed=8)), folder)
    assert (folder / "model.json").read_bytes() == before
    save_model(a_model(record=replace(RECORD, seed=8)), folder, overwrite=True)
    assert load_model(folder).record.seed == 8


def test_saving_beside_a_checkpoint_is_fine(tmp_path: Path) -> None:
    for name in ("checkpoint.npz", "history.jsonl", "lock", "config.yaml"):
        (tmp_path / name).write_text("x")
    save_model(a_model(), tmp_path)
    assert same(load_model(tmp_path), a_model())


def test_saving_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(OutputError, match="cannot be made a folder"):
            save_model(a_model(), place)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(OutputError, match="cannot be written"):
        save_model(a_model(), tmp_path / "run")
    assert not (tmp_path / "run" / "model.json").exists()


class OtherPolicy:
    size = 3

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (a_model(record=replace(RECORD, metrics={"loss": nan})), "not JSON compliant"),
        (a_model(theta=np.full(slots().size, nan)), "not JSON compliant"),
        (a_model(theta=np.zeros(3)), "theta"),
        (a_model(policy=OtherPolicy()), "OtherPolicy"),
        (a_model(scope=replace(SCOPE, longest=(1.0,))), "longest"),
        (a_model(equation=replace(EQUATION, name="\ud800")), "cannot be stored"),
        (a_model(box=Box((2.5,), ("periodic", "wall"))), "boundary"),
        (a_model(record=replace(RECORD, metrics={"loss": object()})), "a object is not data"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(model: Model, word: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=word):
        save_model(model, tmp_path / "run")
    assert not (tmp_path / "run").exists()


# ------------------------------------------------------------------------------------------- primitives of others


def test_a_primitive_that_nobody_offers_must_be_given(tmp_path: Path) -> None:
    drag = LinearDrag(0.3, (4,))
    model = a_model(ADR.swapping("reaction", drag))
    save_model(model, tmp_path)
    refused(tmp_path, "'reaction'", "LinearDrag", "primitives={'reaction': …}")
    assert same(load_model(tmp_path, {"reaction": drag}), model)
    with pytest.raises(UnknownNameError, match="drag"):
        load_model(tmp_path, {"drag": drag})
    refused(tmp_path, "dictionary", primitives={"reaction": object()})
    refused(tmp_path, "policy.allotment", "once", primitives={"reaction": SpectralAdvection()})
    assert issubclass(IncompatibleError, HyCOPError)


def offer(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    for module in (hycop.primitives, hycop.storage.registry):
        monkeypatch.setattr(module, "entry_points", lambda group: points)


def test_installed_packages_are_not_searched_for_our_own_primitives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(group: str) -> object:
        raise AssertionError("all installed packages were searched")

    model = a_model(ADR)
    for module in (hycop.primitives, hycop.storage.registry):
        monkeypatch.setattr(module, "entry_points", search)
    save_model(model, tmp_path)
    assert same(load_model(tmp_path), model)


def test_a_primitive_of_another_package_is_found_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = f"{LinearDrag.__module__}:LinearDrag"
    model = a_model(ADR.swapping("reaction", LinearDrag(0.3, (4,))))
    save_model(model, tmp_path / "before")
    monkeypatch.setattr(EntryPoint, "load", lambda self: LinearDrag)
    offer(monkeypatch, EntryPoint("linear_drag", value, "hycop.primitives"))
    save_model(model, tmp_path / "after")
    assert content(tmp_path / "before")["dictionary"][2]["primitive"] == value
    assert content(tmp_path / "after")["dictionary"][2]["primitive"] == "linear_drag"
    assert same(load_model(tmp_path / "before"), model)
    assert same(load_model(tmp_path / "after"), model)

    def broken(self: EntryPoint) -> object:
        raise ImportError("no libfoo")

    monkeypatch.setattr(EntryPoint, "load", broken)
    refused(tmp_path / "after", "linear_drag", "no libfoo")


def test_a_class_with_the_name_of_one_of_ours_is_not_taken_for_it(tmp_path: Path) -> None:
    double = type("ExactLogistic", (LinearDrag,), {})
    save_model(a_model(ADR.swapping("reaction", double())), tmp_path)
    refused(tmp_path, "'reaction'", "ExactLogistic")


@pytest.mark.parametrize("primitive", [CallableDrag(), LinearDrag(inf)])
def test_a_primitive_with_more_than_numbers_must_be_given(primitive: LinearDrag, tmp_path: Path) -> None:
    model = a_model(ADR.swapping("reaction", primitive))
    save_model(model, tmp_path)
    assert content(tmp_path)["dictionary"][2]["options"] is None
    refused(tmp_path, "'reaction'", "holds or runs what a folder may not")
    assert same(load_model(tmp_path, {"reaction": primitive}), model)
