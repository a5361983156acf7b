"""Boundaries with values: their texts, what carries them, who refuses them, and their reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hycop
from hycop.boundary import Dirichlet, Neumann, checked_boundary, kinds_of, sides_of
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.grid import Grid, prolong, restrict
from hycop.primitives import (
    ExactLogistic,
    GivenSource,
    MusclAdvection,
    PointwiseRate,
    SpectralAdvection,
    VariableDiffusion,
)
from hycop.query import Query, Setting
from hycop.references import VariableReference
from tests.helpers import SUFFIXES, assert_same, hycop_command, make
from tests.worlds import composing

INFLOW = [(Dirichlet(1.0), "outflow")]


def test_texts() -> None:
    assert checked_boundary("wall", 2) == ("wall", "wall")
    assert checked_boundary(Dirichlet(1), 1) == ("dirichlet:1",)
    assert checked_boundary(INFLOW, 1) == ("dirichlet:1/outflow",)
    assert checked_boundary([("neumann:0.50", Neumann(0.5)), "periodic"], 2) == ("neumann:0.5", "periodic")
    assert checked_boundary("dirichlet:-0.0", 1) == checked_boundary("dirichlet", 1) == ("dirichlet:0",)
    low, high = sides_of("dirichlet:1:-2.5/neumann:1e-05")
    assert (low.value(1), high.value(1)) == (-2.5, 1e-5)
    assert kinds_of("dirichlet:1/dirichlet:2") == {"dirichlet"}
    assert kinds_of("wall/outflow") == {"wall", "outflow", "mixed"}


@pytest.mark.parametrize(
    ("boundary", "said"),
    [
        ("dirichlett", "did you mean dirichlet"),
        ("dirichlet:one", "boundary value 'one': a finite number"),
        ("dirichlet:nan", "a finite number"),
        ("wall:1", "wall holds no value"),
        ("periodic/wall", "periodic at both ends or at none"),
        ("wall/wall/wall", "3 ends"),
        (("wall", "outflow"), "2 names for 1 axes.*stands inside a list"),
        ([("wall", "wall", "wall")], "a name or a pair"),
        ([3.0], "unknown boundary"),
        (3.0, "give a name"),
    ],
)
def test_mistakes_are_named(boundary: object, said: str) -> None:
    with pytest.raises((InvalidInputError, UnknownNameError), match=said):
        Grid.box((8,), 1.0, boundary)  # type: ignore[arg-type]


def test_values_fit_the_channels() -> None:
    grid = Grid.box((8,), 1.0, Dirichlet((1.0, 2.0)))
    assert Setting(grid, ("u", "v"), {}).grid.boundary == ("dirichlet:1:2",)
    with pytest.raises(InvalidInputError, match="dirichlet:1:2 along x has 2 values for 1 channels"):
        Setting(grid, ("u",), {})
    u = VariableDiffusion().flow(np.zeros((1, 2, 8)), np.array([5.0]), Setting(grid, ("u", "v"), {"Dx": 1.0}))
    assert np.allclose(u[0], [[1.0] * 8, [2.0] * 8])


def test_refinement_keeps_averages_between_walls_with_values() -> None:
    u = np.random.default_rng(0).uniform(size=(2, 1, 9))
    assert np.allclose(restrict(prolong(u, ("dirichlet:1/neumann:0",), 3), (9,)), u)


def test_primitives_refuse_what_they_do_not_know() -> None:
    query = Query(np.ones((1, 1, 16)), Setting(Grid.box((16,), 1.0, INFLOW), ("u",), {"cx": 1.0}), np.array([0.1]))
    dictionary = hycop.Dictionary({"wind": SpectralAdvection(), "muscl": MusclAdvection()})
    with pytest.raises(IncompatibleError, match=r"'wind' cannot handle the dirichlet:1/outflow .* use .*: muscl"):
        hycop.run(hycop.Program.of(("wind", 0.1)), dictionary, query)
    mixed = Query(query.u0, query.setting.with_grid(query.grid.with_boundary([("wall", "outflow")])), query.time)
    with pytest.raises(IncompatibleError, match="wall/outflow"):
        hycop.run(hycop.Program.of(("wind", 0.1)), dictionary, mixed)
    assert np.isfinite(hycop.run(hycop.Program.of(("muscl", 0.1)), dictionary, mixed)).all()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shape", [(6,), (6, 5)])
def test_files_keep_fields_and_values(tmp_path: Path, suffix: str, shape: tuple[int, ...]) -> None:
    data = make(shape, boundary=[(Dirichlet(0.1), Neumann(-2.0)), "wall"][: len(shape)])
    field = np.random.default_rng(0).normal(size=(3, *shape))
    setting = Setting(data.setting.grid, data.setting.channels, {**data.setting.params, "Dx": field})
    data = hycop.Dataset("toy", "train", data.states, data.times, setting, 7, "exact", 1e-9, "0.1.0")
    hycop.save(data, tmp_path / f"data{suffix}")
    again = hycop.load(tmp_path / f"data{suffix}")
    assert_same(data, again)
    assert again.setting.grid.boundary[0] == "dirichlet:0.1/neumann:-2"


@pytest.mark.filterwarnings("ignore::hycop.surrogate.UntrustedWarning")
def test_models_answer_with_fields_and_values(tmp_path: Path) -> None:
    parts = {"advection": MusclAdvection(), "diffusion": VariableDiffusion()}
    model = composing(parts, (hycop.Channel("u"),), "cx", "Dx")  # type: ignore[arg-type]
    u0 = np.full((2, 1, 32), 1.0)
    params = {"cx": [1.0, 0.5], "Dx": 0.01 + 0.02 * np.linspace(0, 1, 32)}
    answer = model.predict(u0, params, times=[0.1, 0.2], boundary=INFLOW)
    assert np.allclose(answer, 1.0, atol=1e-9)  # what enters is what is there
    assert not np.allclose(model.predict(u0, params, times=0.1, boundary="dirichlet:2"), 1.0)
    swapped, changes = hycop.swap(model, boundary=Dirichlet(2.0))
    assert "dirichlet:2" in changes[0]
    swapped.save(tmp_path / "run")
    loaded = hycop.HyCOP.load(tmp_path / "run")
    assert loaded.model.box.boundary == ("dirichlet:2",)
    np.testing.assert_array_equal(loaded.predict(u0, params, times=0.1), swapped.predict(u0, params, times=0.1))
    with pytest.raises(InvalidInputError, match=r"'Dx' is -0.03.* for sample 0, cell \(16,\): it must not be negative"):
        model.predict(u0, {"cx": 1.0, "Dx": np.linspace(1, -1, 32)}, times=0.1)


def test_features_of_a_field() -> None:
    x = (np.arange(32) + 0.5) / 32
    grid = Grid.box((32,), batch=2)
    field = np.stack([np.full(32, 0.2), 0.2 + 0.1 * np.sin(2 * np.pi * x)])
    setting = Setting(grid, ("u",), {"cx": 1.0, "Dx": field})
    query = Query(np.ones((2, 1, 32)), setting, np.ones(2))
    names = hycop.features.available(("peclet_x", "field_variation", "field_contrast"), query)
    values = hycop.features.FeatureMap(names)(query)
    assert np.allclose(values[:, 0], np.log10(5.0))
    assert np.allclose(values[:, 1], np.log10([1.0, 1.0 + 0.5 / np.sqrt(2)]), atol=1e-12)
    assert np.allclose(values[:, 2], np.log10([1.0, 3.0]), atol=0.02)
    constant = Query(query.u0, Setting(grid, ("u",), {"cx": 1.0, "Dx": 0.2}), query.time)
    assert hycop.features.available(names, constant) == ("peclet_x",)


def between_a_value_and_a_slope(n: int) -> Query:
    grid = Grid.box((n,), 1.0, [(Dirichlet(0.8), Neumann(0.0))])
    x = grid.centres()[0]
    params = {"cx": 0.5 + 0.3 * np.sin(3 * x), "Dx": 0.05 + 0.04 * np.cos(2 * x), "r": 1 + x}
    return Query((0.3 + 0.5 * np.cos(1.5 * x) ** 2)[:, None], Setting(grid, ("u",), params), np.array([0.4]))


PARTS = {"advection": MusclAdvection(), "diffusion": VariableDiffusion(), "reaction": ExactLogistic()}


@pytest.mark.parametrize("process", PARTS)
def test_the_reference_agrees_with_each_primitive(process: str) -> None:
    """A truth that shares no code with the primitives, with fields and values at the ends."""

    def error(n: int) -> float:
        query = between_a_value_and_a_slope(n)
        truth = VariableReference(frozenset({process}), 4).flow(query.u0, query.time, query.setting)
        return float(np.abs(PARTS[process].flow(query.u0, query.time, query.setting) - truth).mean())

    assert error(96) < min(2e-4, 0.4 * error(48))


def test_the_reference_agrees_with_a_program_of_all_parts() -> None:
    """Values at the ends cost a splitting some of its order, but not its limit."""
    query, dictionary = between_a_value_and_a_slope(48), hycop.Dictionary(PARTS)  # type: ignore[arg-type]
    truth = VariableReference(frozenset(PARTS), 4).flow(query.u0, query.time, query.setting)
    errors = []
    for scheme in ("strang x4", "strang x16", "strang x64"):
        programs = hycop.splitting(scheme).programs(query, dictionary)
        errors.append(np.abs(hycop.run(programs, dictionary, query) - truth).mean())
    assert errors[2] < 2e-4 and errors[0] > 4 * errors[1] > 8 * errors[2]


def test_formulas_use_fields() -> None:
    query = between_a_value_and_a_slope(24)
    flows = [
        primitive.flow(query.u0, query.time, query.setting)
        for primitive in (PointwiseRate(("u",), ("r*u*(1-u)",)), ExactLogistic())
    ]
    assert np.allclose(*flows, atol=1e-11)


def test_a_given_source_and_diffusion_come_to_rest() -> None:
    """u_xx = −s with u = 0 at both ends: x (1 − x) for s = 2."""
    grid = Grid.box((40,), 1.0, Dirichlet(0.0))
    setting = Setting(grid, ("u",), {"Dx": 1.0, "s": np.full(40, 2.0)})
    dictionary = hycop.Dictionary({"diffusion": VariableDiffusion(), "source": GivenSource()})
    query = Query(np.zeros((1, 1, 40)), setting, np.array([1.5]))
    u = hycop.run(hycop.splitting("strang x64").programs(query, dictionary), dictionary, query)[0, 0]
    x = grid.centres()[0][0]
    assert np.abs(u - x * (1 - x)).max() < 2e-2


@pytest.mark.parametrize(
    ("problem", "boundary", "message"),
    [
        (
            "swe1d",
            "dirichlet:1",
            "boundary dirichlet:1 along x: there is no truth for it, only for outflow, periodic, wall",
        ),
        ("swe2d", "wall,neumann:0", "boundary neumann:0 along y: there is no truth for it"),
        ("ks1d", "dirichlet:1/wall", "every axis must be periodic"),
        ("adr2d", "dirichlet:one", "boundary value 'one': a finite number is needed, as dirichlet:1"),
        ("adr2d", "dirichlet:1,wall,wall", "3 names for 2 axes; give one name, or one per axis"),
        ("adr2d", "walls", "unknown boundary 'walls'"),
        ("adr2d", "periodic/wall", "an axis is periodic at both ends or at none"),
    ],
)
def test_data_for_boundaries_without_a_truth_end_in_one_line(
    problem: str, boundary: str, message: str, tmp_path: Path
) -> None:
    result = hycop_command("data", problem, tmp_path / "out.nc", "--samples", "1", "--boundary", boundary)
    assert result.returncode == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out.nc").exists()


def test_data_with_boundary_values_on_the_command_line(tmp_path: Path) -> None:
    file, boundary = tmp_path / "out.nc", "dirichlet:1/neumann:-0.5"
    result = hycop_command(
        "data", "ad1d", file, "--samples", "2", "--shape", "16", "--times", "0.05", "--boundary", boundary
    )
    assert result.returncode == 0, result.stderr
    data = hycop.load(file)
    assert data.setting.grid.boundary == (boundary,)
    assert "VariableReference" in data.reference
    assert (data.truth[:, 0, 0] > 0.2).all()  # the value 1 comes in at the low end
    assert (data.truth[:, 0, -1] < data.truth[:, 0, -2]).all()  # and the state falls towards the high one


def test_the_truth_of_values_at_the_ends_in_3d() -> None:
    data = hycop.problem("adr3d").sample(1, "train", shape=(6, 6, 6), times=[0.02], boundary="dirichlet:1/wall")
    assert data.reference_error is None  # it would take the better part of an hour on 32³
    assert np.isfinite(data.truth).all() and data.truth[0, 0, 0].mean() > data.truth[0, 0, -1].mean()
