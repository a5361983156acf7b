"""Swapping boundaries and primitives: the policy stays, nothing is retrained, and what cannot be is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.features import Observed
from hycop.grid import Array
from hycop.primitives import ExactLogistic, MusclAdvection, SpectralAdvection, UpwindAdvection
from hycop.query import Query
from hycop.surrogate import HyCOP
from hycop.transfer import unsettled
from tests.helpers import hycop_command

PROBLEM = hycop.problem("adr2d")


@pytest.fixture(scope="module", autouse=True)
def coarse() -> Iterator[None]:
    """An exact truth is needed nowhere here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(hycop.problems.adr.FINEST, 2, 32)
        yield


@pytest.fixture(scope="module")
def model(coarse: None) -> HyCOP:
    small = {"samples": 8, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 1, "max_steps": 3, "shape": (8, 8)}
    learned = HyCOP(PROBLEM.dictionary).fit(PROBLEM, **small).model
    # programs of a policy so little trained, whatever the gate thinks of them
    return HyCOP.of(replace(learned, gate=replace(learned.gate, kept=True, classical_when_clipped=False)))


def segments(model: HyCOP, query: Query) -> Array:
    """Into how many parts the query times are cut."""
    return model.model.segments(Observed(query, model.model.equation))


def test_the_policy_stays_as_it_was(model: HyCOP) -> None:
    swapped, changes = hycop.swap(model, boundary="wall", auto=True, substeps=1)
    assert swapped.model.box.boundary == ("wall", "wall")
    assert isinstance(swapped.dictionary["advection"], MusclAdvection)
    assert swapped.dictionary["diffusion"] == model.dictionary["diffusion"]
    assert len(changes) == 2 and "periodic → wall" in changes[0] and "MusclAdvection" in changes[1]
    np.testing.assert_array_equal(swapped.model.theta, model.model.theta)
    data = PROBLEM.sample(4, "train", seed=9, shape=(8, 8), boundary="wall")
    durations = [each.programs(data.query).durations for each in (model, swapped)]
    np.testing.assert_array_equal(durations[0], durations[1])
    states = [each.solve(data.query).states for each in (swapped, HyCOP.of(swapped.model))]
    np.testing.assert_array_equal(*states)
    periodic = Query(
        data.query.u0, data.setting.with_grid(data.setting.grid.with_boundary("periodic")), data.query.time
    )
    before, after = model.solve(periodic).states, states[0]
    errors = [hycop.metrics.rel_l2(each, data.truth, data.setting).mean() for each in (before, after)]
    assert errors[1] < 0.7 * errors[0]


def test_what_was_not_trained_is_not_trusted(model: HyCOP, tmp_path: Path) -> None:
    """Between walls that were swapped in nothing was learned, in the old box nothing is new; also after a reload."""
    queries = {name: PROBLEM.queries(4, "train", boundary=name) for name in ("periodic", "wall")}
    inside = ~model.answer(queries["periodic"]).untrusted
    assert inside.any()
    hycop.swap(model, boundary="wall", auto=True).model.save(tmp_path / "walls")
    walls = HyCOP.load(tmp_path / "walls")
    answer = walls.answer(queries["wall"])
    assert answer.untrusted.all() and all(
        {"primitive advection", "boundary wall"} <= set(own) for own in answer.reasons
    )
    assert "boundary periodic" not in walls.answer(queries["periodic"]).outside
    back = hycop.swap(hycop.swap(model, substeps=2).model, substeps=3).model
    np.testing.assert_array_equal(back.answer(queries["periodic"]).untrusted, ~inside)


@pytest.mark.parametrize("other", ["UpwindAdvection", "upwind", UpwindAdvection()], ids=str)
def test_primitives_by_name_by_dictionary_or_as_they_are(model: HyCOP, other: str | UpwindAdvection) -> None:
    swapped, changes = hycop.swap(model, primitives={"advection": other})
    assert isinstance(swapped.dictionary["advection"], UpwindAdvection)
    assert len(changes) == 1 and changes[0].startswith(
        "primitive advection: SpectralAdvection() → UpwindAdvection(cfl="
    )
    assert swapped.model.box.boundary == model.model.box.boundary


def test_what_cannot_be_swapped_is_refused_with_what_can(model: HyCOP) -> None:
    with pytest.raises(IncompatibleError, match=r"'advection' .* wall; .*MusclAdvection, UpwindAdvection.* --auto"):
        hycop.swap(model, boundary="wall")
    with pytest.raises(IncompatibleError, match="would leave reaction without a primitive"):
        hycop.swap(model, primitives={"reaction": "MusclAdvection"})
    with pytest.raises(UnknownNameError, match="unknown primitive 'Muscl'"):
        hycop.swap(model, primitives={"advection": "Muscl"})
    ns = hycop.problem("ns2d")
    gas = HyCOP.of(replace(model.model, equation=ns.equation, dictionary=ns.dictionary))
    with pytest.raises(IncompatibleError, match=r"dictionary unsplit has none .* euler alone; central, conservative"):
        hycop.swap(gas, primitives={"euler": "unsplit"})
    with pytest.raises(UnknownNameError, match="unknown primitive 'advction'"):
        hycop.swap(model, primitives={"advction": "muscl"})
    with pytest.raises(InvalidInputError, match="nothing to swap"):
        hycop.swap(model, boundary="periodic")
    with pytest.raises(InvalidInputError, match="nothing to swap"):
        hycop.swap(model, primitives={"advection": "spectral"})
    with pytest.raises(UnknownNameError, match="unknown boundary 'wal': did you mean wall"):
        hycop.swap(model, boundary="wal")
    with pytest.raises(InvalidInputError, match="'run' is not a model"):
        hycop.swap("run", boundary="wall")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"primitives is \['muscl'\]"):
        hycop.swap(model, primitives=["muscl"])  # type: ignore[arg-type]
    own = replace(PROBLEM.equation, name="somebody's")
    assert hycop.swap(
        HyCOP.of(replace(model.model, equation=own)), boundary="wall", auto=True
    )  # the same by another name
    other = replace(own, coefficients={**own.coefficients, "k": hycop.Coefficient("rate")})
    named = HyCOP.of(replace(model.model, equation=other))
    assert hycop.swap(named, boundary="wall", auto=True)  # another equation, with the same primitives
    unknown = HyCOP.of(replace(named.model, dictionary=named.dictionary.swapping("advection", OwnSpectral())))
    with pytest.raises(IncompatibleError, match=r"does not know the boundary wall$"):
        hycop.swap(unknown, boundary="wall", auto=True)


@dataclass(frozen=True)
class OwnSpectral(SpectralAdvection):
    """Somebody's own."""


@dataclass(frozen=True)
class OwnAdvection(UpwindAdvection):
    """Somebody's own."""


@dataclass(frozen=True)
class Closure(ExactLogistic):
    """A process that no problem knows."""

    advances = frozenset({"closure"})


def test_an_enriched_equation_keeps_the_primitives_of_its_processes(model: HyCOP) -> None:
    inner = model.model
    enriched = replace(
        inner,
        equation=inner.equation.with_process("closure"),
        dictionary=inner.dictionary.adding("closure", Closure()),
    )
    walls = hycop.swap(HyCOP.of(enriched), boundary="wall", auto=True).model
    assert isinstance(walls.dictionary["advection"], MusclAdvection)
    assert walls.dictionary["closure"] == Closure()
    named = hycop.swap(HyCOP.of(enriched), primitives={"advection": "upwind"}).model
    assert isinstance(named.dictionary["advection"], UpwindAdvection)
    with pytest.raises(IncompatibleError, match="dictionary muscl has none that advances closure alone"):
        hycop.swap(HyCOP.of(enriched), primitives={"closure": "muscl"})
    # a process of the same name, advanced by a primitive of another kind, may be another process
    foreign = replace(enriched, dictionary=enriched.dictionary.swapping("advection", OwnAdvection()))
    with pytest.raises(IncompatibleError, match="advection"):
        hycop.swap(HyCOP.of(foreign), primitives={"advection": "upwind"})


def test_what_no_longer_commutes_is_seen_and_made_finer(model: HyCOP) -> None:
    """A single step of advection is exact in the periodic box, and poor between walls."""
    walled = hycop.swap(model, boundary="wall", auto=True, substeps=1).model
    query = PROBLEM.queries(4, boundary="wall")
    finer, changes = hycop.swap(walled, substeps=8)
    assert len(changes) == 1 and "cut 8 times" in changes[0]
    np.testing.assert_array_equal(segments(finer, query), 8 * segments(walled, query))
    assert unsettled(finer, query) < 0.5 * unsettled(walled, query)
    limit = hycop.swap(walled, substeps=64).model.solve(query).states
    distance = hycop.metrics.rel_l2(walled.solve(query).states, limit, query.setting).mean()
    assert 0.3 * distance < unsettled(walled, query) < 1.5 * distance
    for wrong in (0, 65, 1.5, True):
        with pytest.raises(InvalidInputError, match="substeps is"):
            hycop.swap(walled, substeps=wrong)  # type: ignore[arg-type]


def test_programs_are_finer_behind_other_boundaries_unless_told(model: HyCOP) -> None:
    walled, changes = hycop.swap(model, boundary="wall", auto=True)
    assert (
        walled.model.substeps == 2 and "cut 2 times as finely as their length asks for; before 1 times" in changes[-1]
    )
    assert hycop.swap(walled, boundary="outflow").model.model.substeps == 2
    assert hycop.swap(walled, primitives={"advection": "upwind"}).model.model.substeps == 2
    assert hycop.swap(walled, boundary="periodic").model.model.substeps == 1
    assert hycop.swap(walled, boundary="periodic", substeps=3).model.model.substeps == 3
    half = hycop.swap(model, boundary=("wall", "periodic"), auto=True).model
    assert half.model.substeps == 2 and hycop.swap(half, boundary="wall").model.model.substeps == 2
    most = hycop.swap(hycop.swap(model, substeps=64).model, boundary="wall", auto=True)
    assert most.model.model.substeps == 64 and not any("finely" in line for line in most.changes)
    query = PROBLEM.queries(4, boundary="wall")
    as_trained = hycop.swap(walled, substeps=1).model
    np.testing.assert_array_equal(segments(walled, query), 2 * segments(as_trained, query))
    assert unsettled(walled, query) < unsettled(as_trained, query)
    with pytest.raises(InvalidInputError, match=r"cut 2 times finer are repeated at most 512 times"):
        walled.programs(Query(query.u0, query.setting, 5000 * query.time))


def test_finer_programs_are_still_those_of_the_policy(model: HyCOP) -> None:
    """A gate that trusts the policy for the trained time only trusts it for all of that, in however many parts."""
    gate = replace(model.model.gate, classical="SABA2", classical_when_repeated=True, classical_when_far=False)
    query = PROBLEM.queries(4, "train")
    trusting = replace(gate, classical_when_repeated=False)
    models = [HyCOP.of(replace(model.model, substeps=2, gate=each)) for each in (gate, trusting)]
    np.testing.assert_array_equal(*(each.solve(query).states for each in models))
    later = Query(query.u0, query.setting, 3 * query.time)
    assert (models[0].solve(later).states != models[1].solve(later).states).any()


def test_the_command_writes_a_new_model_or_nothing(model: HyCOP, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    words = ("swap", tmp_path / "run", tmp_path / "out", "--boundary", "wall")
    refused = hycop_command(*words, folder=tmp_path)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
    result = hycop_command(*words, "--auto", "--json", tmp_path / "swap.json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    told = json.loads((tmp_path / "swap.json").read_text())
    assert len(told["changes"]) == 3 and told["unsettled"]["after"] > told["unsettled"]["before"]
    assert HyCOP.load(tmp_path / "out").model.box.boundary == ("wall", "wall")
    assert list(HyCOP.load(tmp_path / "out").model.record.changes) == told["changes"]
    assert "periodic → wall" in hycop_command("program", tmp_path / "out", folder=tmp_path).stdout
    rows = {}
    for name in ("run", "out"):
        done = hycop_command(
            "evaluate",
            tmp_path / name,
            "--samples",
            "4",
            "--seeds",
            "1",
            "--shape",
            "8x8",
            "--json",
            "e.json",
            folder=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        rows[name] = json.loads((tmp_path / "e.json").read_text())["rows"][0]["value"]
    assert rows["run"] != rows["out"]  # each in its own box
    again = hycop_command(*words, "--auto", folder=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr
