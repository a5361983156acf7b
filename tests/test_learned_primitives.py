"""``NeuralOperator`` as a primitive: contract, dimensionless numbers, trained range, storage, and inside a model."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra 'learned'")

import hycop
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Grid
from hycop.networks import FAMILIES, Architecture
from hycop.networks.module import arrays_of
from hycop.primitives.learned import NeuralOperator, Numbers
from hycop.query import Setting
from hycop.storage import ModelError
from hycop.storage.network import Network, load_network, save_network

PROBLEM = hycop.problem("adr2d")
PARTS = {
    "fno-film": ("advection", "diffusion"),
    "fno-film-direct": ("advection", "diffusion"),
    "multiplier-film": ("advection", "diffusion"),
    "pointwise": ("reaction",),
    "uno": ("advection", "diffusion"),
    "fno": ("advection", "diffusion"),
    "local-no": ("advection", "diffusion"),
    "deeponet": ("advection", "diffusion"),
    "uno-direct": ("advection", "diffusion"),
    "unet": ("advection", "diffusion"),
}
NAMES = {"advection": ("cx", "cy"), "diffusion": ("Dx", "Dy"), "reaction": ("r",)}
OPTIONS = {
    "fno-film": {"width": 4, "modes": 4, "layers": 2},
    "fno-film-direct": {"width": 4, "modes": 4, "layers": 2},
    "multiplier-film": {"width": 6, "layers": 1, "film": 8},
    "pointwise": {"width": 8},
    "uno": {"width": 4, "modes": 4, "layers": 2},
    "fno": {"width": 4, "modes": 4, "layers": 2},
    "local-no": {"width": 4, "modes": 4, "layers": 2, "cells": 16},
    "deeponet": {"width": 8, "basis": 8},
    "uno-direct": {"width": 4, "modes": 4, "layers": 2},
    "unet": {"width": 4, "layers": 2},
}
SMALL = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "max_steps": 3}
SMALL["verbose"] = False
DATA, HELD_OUT = (PROBLEM.sample(n, "train", n, shape=(8, 8), estimated=0) for n in (24, 32))
every_family = pytest.mark.parametrize("family", FAMILIES)


def network(family: str = "fno-film", seed: int = 1, size: float = 0.1) -> NeuralOperator:
    """Random weights, small enough for programs to stay finite."""
    names = [name for process in PARTS[family] for name in NAMES[process]]
    seen = PROBLEM.queries(32, "train", 0, shape=(8, 8))
    told = Numbers.of(PROBLEM.equation, names, seen.u0, seen.setting, 0.25)
    sizes = {"axes": 2, "channels": 1, "numbers": len(names), "timed": len(names)}
    plan = Architecture.of({"family": family, **sizes, **OPTIONS[family]})
    blank = NeuralOperator(
        plan.to_json(),
        PARTS[family],
        {"u": (0.0, 1.0)},
        told.kinds,
        told.ranges,
        told.longest,
        ("periodic", "periodic"),
    )
    arrays = arrays_of(plan.build(seed))
    last = [name for name in arrays if "project" in name]
    return blank.with_arrays({name: size * array if name in last else array for name, array in arrays.items()})


def query(samples: int = 5, shape: tuple[int, ...] = (16, 12)) -> hycop.Query:
    return PROBLEM.queries(samples, "id", 3, shape=shape)


@every_family
def test_it_keeps_the_contract_of_what_has_no_order(family: str) -> None:
    report = hycop.check_primitive(network(family, size=0.3))
    assert report.passed == FAMILIES[family].identity, str(report)
    if report.passed:
        assert "Lipschitz constant" in report["learned"].detail


@every_family
def test_no_bit_depends_on_batch_threads_or_process(family: str) -> None:
    solver, asked = network(family), query(70, (16, 16))
    together = solver.flow(asked.u0, asked.time, asked.setting)
    some = np.array([69, 3, 41, 8, 27, 66, 31, 50, 1])
    assert np.array_equal(solver.flow(asked.u0[some], asked.time[some], asked.setting.take(some)), together[some])
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        alone = pickle.loads(pickle.dumps(solver)).flow(asked.u0, asked.time, asked.setting)
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(alone, together)


@every_family
def test_a_box_of_another_length_is_the_same_task(family: str) -> None:
    """Twice as long, with c twice and D four times as large: the same numbers, the same bits."""
    solver, asked = network(family), query()
    there = asked.setting.grid
    powers = {"c": 1, "D": 2, "r": 0}
    params = {name: 2.0 ** powers[name[0]] * values for name, values in asked.setting.params.items()}
    long = replace(asked.setting, grid=Grid(there.shape, 2 * there.lengths, there.boundary), params=params)
    assert np.array_equal(solver.flow(asked.u0, asked.time, asked.setting), solver.flow(asked.u0, asked.time, long))
    assert not solver.outside(asked.u0, asked.setting).any() and not solver.outside(asked.u0, long).any()


def test_long_durations_are_taken_in_steps_of_the_trained_size() -> None:
    solver, asked = network("pointwise"), query(2)
    setting = replace(asked.setting, params={**asked.setting.params, "r": np.array([1.0, 1e-3])})
    high = solver.ranges["r"][1] * solver.longest
    long = np.array([3 * high, 3 * high])
    by_hand = asked.u0
    for _ in range(3):
        by_hand = solver.flow(by_hand, np.array([high, 0.0]), setting)
    out = solver.flow(asked.u0, long, setting)
    assert np.allclose(out[0], by_hand[0], atol=1e-12) and not np.allclose(
        out[0], solver.flow(asked.u0, long / 3, setting)[0]
    )
    work = solver.work(asked.u0, long, setting)
    assert work[0] == 3 * work[1]  # a slow reaction needs one step


def changed(setting: Setting, **factors: float) -> Setting:
    return replace(setting, params={k: v * factors.get(k, 1.0) for k, v in setting.params.items()})


def test_the_trained_range_is_one_of_ratios_and_of_values() -> None:
    solver, asked = network(), query()
    u, setting = asked.u0, asked.setting
    every = dict.fromkeys(("cx", "cy", "Dx", "Dy"), 7.0)
    assert not solver.outside(u, changed(setting, **every, r=100.0)).any()  # only another unit of time
    assert solver.outside(u, changed(setting, Dx=0.01)).all()  # another Péclet number
    assert solver.outside(u, changed(setting, cx=-1.0)).all() and solver.outside(u, changed(setting, cx=0.0)).all()
    assert solver.outside(u + 1.5, setting).all()
    assert not network("multiplier-film").outside(3 * u, setting).any()  # linear: any amplitude
    walls = setting.with_grid(setting.grid.with_boundary("wall"))
    assert solver.outside(u, walls).all() and not network("pointwise").outside(u, walls).any()


def test_what_it_was_not_made_for_is_refused() -> None:
    solver, asked = network(), query(1)
    two = Setting(asked.grid, ("u", "v"), asked.setting.params)
    with pytest.raises(IncompatibleError, match="channels u: the query has 2 and u, v"):
        solver.flow(np.repeat(asked.u0, 2, axis=1), asked.time, two)
    bare = NeuralOperator(
        **{name: getattr(solver, name) for name in vars(solver) if name not in ("weights", "_module")}
    )
    with pytest.raises(InvalidInputError, match="has no weights"):
        bare.flow(asked.u0, asked.time, asked.setting)
    with pytest.raises(InvalidInputError, match=r"'film\.hidden\.bias' has shape"):
        solver.with_arrays({**solver.weights, "film.hidden.bias": np.zeros(3)})
    with pytest.raises(InvalidInputError, match="NaN"):
        solver.with_arrays({name: array * np.nan for name, array in solver.weights.items()})


# inside models

HYBRID = hycop.Dictionary({"ad": network("multiplier-film"), "reaction": PROBLEM.dictionary["reaction"]})


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP(HYBRID).fit(DATA, HELD_OUT, seed=0, **SMALL)


def test_a_model_folder_is_whole_by_itself(model: hycop.HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = hycop.HyCOP.load(tmp_path / "model")
    for shape in ((16, 16), (13, 10)):
        asked = query(3, shape)
        assert np.array_equal(model.solve(asked).states, again.solve(asked).states)
    assert not again.model.scope.untrained


def test_answers_outside_the_range_of_the_network_are_not_trusted(model: hycop.HyCOP) -> None:
    asked = query(3)
    reason = "primitive ad"
    assert reason not in model.answer(asked).outside
    far = replace(asked, setting=changed(asked.setting, Dx=1e-2))
    assert model.answer(far).outside[reason].all()
    assert reason in model.model.outside_training(far)


def test_networks_are_swapped_in_and_out(model: hycop.HyCOP, folder: Path) -> None:
    out = hycop.swap(model, primitives={"reaction": network("pointwise"), "ad": str(folder)})
    assert out.model.dictionary["ad"].weights.keys() == network().weights.keys()  # type: ignore[attr-defined]
    back = hycop.swap(out.model, primitives={"reaction": "spectral", "ad": network("multiplier-film")})
    asked = query(2)
    assert np.array_equal(back.model.solve(asked).states, model.solve(asked).states)


# network folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_network(Network(network(seed=5), "adr2d", {"rounds": 3}, 7, "nothing", [0.5, 0.4]), tmp_path / "net")
    return tmp_path / "net"


def test_a_network_folder_gives_the_same_primitive(folder: Path) -> None:
    found, solver = load_network(folder), hycop.load_primitive(folder)
    assert hycop.fingerprint(solver) == hycop.fingerprint(network(seed=5)) != hycop.fingerprint(network(seed=6))
    assert (found.problem, found.seed, list(found.errors)) == ("adr2d", 7, [0.5, 0.4])
    assert sorted(path.name for path in folder.iterdir()) == ["net.json", "weights.safetensors"]


def test_a_network_is_not_a_model(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"model\.json"):
        hycop.HyCOP.load(folder)
