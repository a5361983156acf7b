"""A tiny network with weights is a primitive like any other: dictionary, training, storage, swap and resumption."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import hycop
from benchmarks.data import adr_query
from hycop.errors import HyCOPError
from hycop.grid import Array
from hycop.primitive import fingerprint, update_work
from hycop.primitives.examples import scalar_example
from hycop.query import Setting
from hycop.surrogate import UntrustedWarning

PROBLEM = hycop.problem("adr2d")
SMALL = {"tries": 1, "patterns": 1, "rounds": 1, "iterations": 2, "max_steps": 4, "verbose": False}


@dataclass(frozen=True, eq=False)
class TinyNetwork:
    """Reaction u' = r u (1 − u) as u + τ·r·N(u), with a network N of one hidden layer: the identity at τ = 0."""

    hidden: Array
    output: Array
    slope: float = 1.0

    advances: ClassVar[frozenset[str]] = frozenset({"reaction"})
    order: ClassVar[float | None] = None

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        growth = (duration * setting.param("r")).reshape((-1,) + (1,) * (u.ndim - 1))
        layer = np.tanh(self.slope * u[..., None] * self.hidden[0] + self.hidden[1])
        return u + growth * (layer * self.output).sum(axis=-1)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, self.output.size)

    def arrays(self) -> Mapping[str, Array]:
        return {"hidden": self.hidden, "output": self.output}

    def with_arrays(self, arrays: Mapping[str, Array]) -> TinyNetwork:
        return replace(self, hidden=arrays["hidden"], output=arrays["output"])

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, (), {"r": 0.9})


def network(width: int = 8) -> TinyNetwork:
    """The last layer fitted to u (1 − u) by least squares."""
    rng = np.random.default_rng(0)
    hidden = rng.uniform(-2.0, 2.0, (2, width))
    u = np.linspace(0.0, 1.0, 50)
    layer = np.tanh(u[:, None] * hidden[0] + hidden[1])
    return TinyNetwork(hidden, np.linalg.lstsq(layer, u * (1 - u), rcond=None)[0])


def nudged(one: TinyNetwork) -> TinyNetwork:
    output = one.output.copy()
    output[3] = np.nextafter(output[3], 9.0)
    return replace(one, output=output)


DICTIONARY = PROBLEM.dictionary.swapping("reaction", network())


def dataset() -> hycop.Dataset:
    """A small task whose truth is that of a costly scheme with the exact reaction."""
    query = adr_query(96, 8)
    truth = hycop.run(hycop.splitting("saba4 x4").programs(query, PROBLEM.dictionary), PROBLEM.dictionary, query)
    times = np.stack([np.zeros(96), query.time], axis=1)
    return hycop.Dataset("adr2d", "train", np.stack([query.u0, truth], axis=1), times, query.setting)


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP(DICTIONARY).fit(dataset(), seed=0, **SMALL)


def answers(model: hycop.HyCOP) -> Array:
    return model.solve(PROBLEM.queries(3, "id", 5, shape=(8, 8))).states


def test_it_keeps_the_contract_of_what_has_no_order() -> None:
    report = hycop.check_primitive(network())
    assert report.passed, str(report)


def test_a_changed_weight_is_another_primitive() -> None:
    assert fingerprint(network()) == fingerprint(network()) != fingerprint(nudged(network()))
    assert DICTIONARY.fingerprint() != DICTIONARY.swapping("reaction", nudged(network())).fingerprint()


def test_it_is_trained_with(model: hycop.HyCOP) -> None:
    data = dataset()
    errors = hycop.metrics.rel_l2(model.solve(data.query).states, data.truth, data.query.setting)
    assert errors.mean() < 2e-2 and "TinyNetwork" in str(model)


def test_save_and_load_give_the_same_bits(model: hycop.HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    files = ["model.json", "queries.safetensors", "weights.safetensors"]
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == files
    with pytest.raises(HyCOPError, match=r"cannot make 'reaction' .*primitives="):
        hycop.HyCOP.load(tmp_path / "model")
    again = hycop.HyCOP.load(tmp_path / "model", {"reaction": network()})
    assert np.array_equal(answers(model), answers(again)) and not again.model.scope.untrained
    other = hycop.HyCOP.load(tmp_path / "model", {"reaction": nudged(network())})  # the weights are the folder's
    assert np.array_equal(answers(model), answers(other)) and not other.model.scope.untrained
    steeper = hycop.HyCOP.load(tmp_path / "model", {"reaction": replace(network(), slope=2.0)})
    assert steeper.model.scope.untrained == ("reaction",)
    assert "stored with" in steeper.model.record.changes[0]


def test_a_registered_network_is_restored_from_the_folder_alone(
    model: hycop.HyCOP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hycop.storage import registry

    known = registry.find_primitive
    monkeypatch.setattr(registry, "_registered", lambda name: TinyNetwork if "TinyNetwork" in name else known(name))
    model.save(tmp_path / "model")
    again = hycop.HyCOP.load(tmp_path / "model")
    assert np.array_equal(answers(model), answers(again)) and not again.model.scope.untrained
    weights = tmp_path / "model" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(HyCOPError, match=r"weights.safetensors: damaged"):
        hycop.HyCOP.load(tmp_path / "model")
    model.save(tmp_path / "model", overwrite=True)
    assert np.array_equal(answers(model), answers(hycop.HyCOP.load(tmp_path / "model")))
    assert len(list((tmp_path / "model").iterdir())) == 3  # and queries; no old files are left


def test_swaps_take_it_out_and_in(model: hycop.HyCOP) -> None:
    numerical = hycop.swap(model, primitives={"reaction": "ExactLogistic"}).model
    query = PROBLEM.queries(3, "id", 5, shape=(8, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrustedWarning)
        assert numerical.answer(query).untrusted.all()
    assert not np.array_equal(answers(model), answers(numerical))
    back = hycop.swap(numerical, primitives={"reaction": network()}).model
    assert np.array_equal(answers(model), answers(back)) and not back.model.scope.untrained
    assert hycop.swap(model, primitives={"reaction": nudged(network())}).model.model.scope.untrained == ("reaction",)
    with pytest.raises(HyCOPError, match="nothing to swap"):
        hycop.swap(model, primitives={"reaction": network()})


RUN = """
import sys
sys.path.insert(0, {tests!r})
import hycop, os
from test_network_primitive import DICTIONARY, SMALL, dataset, network, nudged
dictionary = DICTIONARY.swapping("reaction", nudged(network())) if {nudge} else DICTIONARY
steps = []
def report(entry):
    steps.append(entry)
    if len(steps) == {kill}:
        os.kill(os.getpid(), 9)
model = hycop.HyCOP(dictionary).fit(dataset(), seed=0, folder={folder!r}, resume={resume}, report=report, **SMALL)
model.save({folder!r}, overwrite=True)
"""


def run(folder: Path, kill: int = 0, resume: bool = False, nudge: bool = False) -> subprocess.CompletedProcess[str]:
    tests = str(Path(__file__).parent)
    code = RUN.format(tests=tests, folder=str(folder), kill=kill, resume=resume, nudge=nudge)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)


@pytest.mark.validate
def test_killed_and_resumed_it_ends_in_the_same_bits(model: hycop.HyCOP, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert run(folder, kill=3).returncode == -9
    refused = run(folder, resume=True, nudge=True)
    assert refused.returncode == 1 and "another configuration, seed, dataset" in refused.stderr
    done = run(folder, resume=True)
    assert done.returncode == 0, done.stderr
    again = hycop.HyCOP.load(folder, {"reaction": network()})
    assert np.array_equal(again.model.theta, model.model.theta)
