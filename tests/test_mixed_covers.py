"""A numerical and a learned solver of one process side by side: the learned one is used where it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import hycop
from hycop.grid import Array
from hycop.primitive import update_work
from hycop.primitives import SpectralAdvection, SpectralDiffusion, UpwindAdvection
from hycop.query import Setting

PROBLEM = hycop.problem("ad1d")
SLOWEST = 1.5
"""The wind up to which the stand-in for a network is good."""


@dataclass(frozen=True)
class TrainedTransport:
    """Advection and diffusion, good for winds up to ``most`` and wrong beyond, as a network outside its training is."""

    most: float = SLOWEST

    advances: ClassVar[frozenset[str]] = frozenset({"advection", "diffusion"})
    order: ClassVar[float | None] = None
    boundaries: ClassVar[frozenset[str]] = frozenset({"periodic"})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        known = {**setting.params, "cx": np.minimum(setting.param("cx"), self.most)}
        here = replace(setting, params=known)
        return SpectralDiffusion().flow(SpectralAdvection().flow(u, duration, here), duration, here)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)

    def outside(self, u: Array, setting: Setting) -> Array:
        return setting.param("cx") > self.most

    def arrays(self) -> Mapping[str, Array]:
        return {}


NUMERICAL = hycop.Dictionary({"advection": UpwindAdvection(), "diffusion": SpectralDiffusion()})
MIXED = NUMERICAL.adding("network", TrainedTransport())
SMALL = {"samples": 48, "tries": 2, "rounds": 1, "iterations": 3, "verbose": False}


@pytest.fixture(scope="module")
def model() -> hycop.HyCOP:
    return hycop.HyCOP(MIXED).fit(PROBLEM, seed=0, **SMALL)


def test_each_query_gets_what_serves_it(model: hycop.HyCOP) -> None:
    data = PROBLEM.sample(60, "id", seed=4)
    fast = data.setting.params["cx"] > SLOWEST
    answer = model.answer(data.query)
    used = [{step.primitive for step in program} for program in answer.programs]
    assert {"network"} in used and {"advection", "diffusion"} in used
    assert all(("network" in names) != there for names, there in zip(used, fast, strict=True))
    assert not any("network" in reason for reason in answer.outside)
    errors = hycop.metrics.rel_l2(answer.states, data.truth, data.query.setting).mean()
    for pure in (NUMERICAL, hycop.Dictionary({"network": TrainedTransport()})):
        lie = hycop.Composed(hycop.splitting("strang"), pure).solve(data.query).states
        assert errors < hycop.metrics.rel_l2(lie, data.truth, data.query.setting).mean()


def test_alone_it_is_flagged_where_it_was_not_trained() -> None:
    alone = hycop.HyCOP(hycop.Dictionary({"network": TrainedTransport()})).fit(PROBLEM, seed=0, **SMALL)
    query = PROBLEM.queries(40, "id", 4)
    flagged = alone.answer(query).outside["primitive network"]
    assert np.array_equal(flagged, query.setting.params["cx"] > SLOWEST)


def test_classical_programs_too_use_what_was_trained(model: hycop.HyCOP) -> None:
    """Where the gate decides for a classical scheme, that of the network must not be taken outside its range."""
    query = PROBLEM.queries(40, "id", 5)
    fast = query.setting.params["cx"] > SLOWEST
    gate = replace(model.model.gate, classical="Strang(outer=network)", cover=("network",))
    programs = replace(model.model, gate=gate.closed()).programs(query)
    used = [{step.primitive for step in program} for program in programs]
    assert fast.any() and not fast.all()
    assert [names == {"advection", "diffusion"} for names in used] == fast.tolist()
    assert [names == {"network"} for names in used] == (~fast).tolist()
