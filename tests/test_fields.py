"""Coefficients that vary in space: exact solutions, conservation, refusals, refinement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import hycop
from hycop.channels import water_channels
from hycop.conformance import check_primitive
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.features import FeatureMap
from hycop.grid import Array, Grid
from hycop.primitives import (
    FiniteVolumeDiffusion,
    GravityWaveOverBed,
    MusclAdvection,
    ShallowWaterOverBed,
    SpectralAdvection,
    UpwindAdvection,
    VariableDiffusion,
)
from hycop.primitives.examples import varied
from hycop.query import Query, Setting

NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)


def averages(f: Callable[..., Array], grid: Grid) -> Array:
    """Cell averages (*grid,) of a function of the coordinates, by Gauss's rule with four points along each axis."""
    out = np.zeros(grid.shape)
    offsets = [0.5 * dx * NODES for dx in grid.spacing[0]]
    for place in np.ndindex(*(len(NODES),) * grid.axes):
        points = [x[0] + offsets[axis][place[axis]] for axis, x in enumerate(grid.centres())]
        out += np.prod([0.5 * WEIGHTS[i] for i in place]) * f(*points)
    return out


def measured_order(error: Callable[[int], float], coarse: int, levels: int = 3) -> float:
    errors = [error(coarse * 2**level) for level in range(levels)]
    return float(np.log2(errors[-2] / errors[-1]))


def scalar(grid: Grid, **params: object) -> Setting:
    return Setting(grid, ("u",), params)


def test_advection_in_a_varying_wind_is_second_order() -> None:
    """u_t + (c u)_x = 0 with c = 1 + ½ sin x: c u is kept along dX/dt = c, with tan(X/2) known in closed form."""
    root, time = np.sqrt(0.75), 1.3

    def back(x: Array) -> Array:
        """Where the wind carried x from: ∫ dx/c = t."""
        age = 2.0 / root * (np.arctan((np.tan(0.5 * x) + 0.5) / root) + np.pi * np.floor(0.5 * x / np.pi + 0.5)) - time
        turns = np.floor(age * root / (2 * np.pi) + 0.5)
        return 2.0 * np.arctan(root * np.tan(0.5 * root * age) - 0.5) + 2 * np.pi * turns

    def wind(x: Array) -> Array:
        return 1.0 + 0.5 * np.sin(x)

    def start(x: Array) -> Array:
        return 1.0 + 0.5 * np.cos(x)

    def error(n: int) -> float:
        grid = Grid.box((n,), 2 * np.pi)
        setting = scalar(grid, cx=averages(wind, grid))
        u = MusclAdvection().flow(averages(start, grid)[None, None], np.array([time]), setting)[0, 0]
        return float(np.abs(u - averages(lambda x: start(back(x)) * wind(back(x)) / wind(x), grid)).mean())

    assert error(64) < 5e-3
    assert measured_order(error, 64) > 1.8


def test_rotation_is_second_order() -> None:
    def error(n: int) -> float:
        grid = Grid.box((n, n), 4.0, "outflow")
        u0 = averages(lambda x, y: np.exp(-3 * ((x - 2.3) ** 2 + (y - 2.0) ** 2)), grid)
        setting = scalar(grid, cx=averages(lambda x, y: 2.0 - y + 0 * x, grid), cy=averages(lambda x, y: x - 2.0, grid))
        u = MusclAdvection().flow(u0[None, None], np.array([np.pi / 2]), setting)[0, 0]
        return float(np.abs(u - averages(lambda x, y: np.exp(-3 * ((x - 2.0) ** 2 + (y - 2.3) ** 2)), grid)).mean())

    assert measured_order(error, 32) > 1.8


def euler_mode(x: Array, mode: int) -> Array:
    """A solution of (x² v′)′ = −(¼ + k²) v with v(1) = v(2) = 0, k = mode π/ln 2."""
    k = mode * np.pi / np.log(2.0)
    return np.sin(k * np.log(x)) / np.sqrt(x)


def decay(mode: int) -> float:
    return 0.25 + (mode * np.pi / np.log(2.0)) ** 2


def test_diffusion_with_a_field_and_values_at_the_walls_is_second_order() -> None:
    """D = x² on [1, 2]; 3 − 2/x is the steady state with the values 1 and 2."""
    time = 0.02

    def solution(x: Array, t: float) -> Array:
        return 3.0 - 2.0 / x + np.exp(-decay(1) * t) * euler_mode(x, 1) + np.exp(-decay(2) * t) * euler_mode(x, 2)

    def error(n: int) -> float:
        grid = Grid.box((n,), 1.0, [(hycop.Dirichlet(1.0), hycop.Dirichlet(2.0))])
        setting = scalar(grid, Dx=averages(lambda x: (1 + x) ** 2, grid))
        u0 = averages(lambda x: solution(1 + x, 0.0), grid)
        u = VariableDiffusion().flow(u0[None, None], np.array([time]), setting)[0, 0]
        return float(np.abs(u - averages(lambda x: solution(1 + x, time), grid)).max())

    assert error(32) < 3e-3
    assert measured_order(error, 32) > 1.8


def test_diffusion_in_two_dimensions_with_walls_of_one_value_is_second_order() -> None:
    time = 0.01

    def solution(x: Array, y: Array, t: float) -> Array:
        return 0.5 + np.exp(-2 * decay(1) * t) * euler_mode(1 + x, 1) * euler_mode(1 + y, 1)

    def error(n: int) -> float:
        grid = Grid.box((n, n + 4), 1.0, hycop.Dirichlet(0.5))
        setting = scalar(
            grid,
            Dx=averages(lambda x, y: (1 + x) ** 2 + 0 * y, grid),
            Dy=averages(lambda x, y: (1 + y) ** 2 + 0 * x, grid),
        )
        u0 = averages(lambda x, y: solution(x, y, 0.0), grid)
        u = VariableDiffusion().flow(u0[None, None], np.array([time]), setting)[0, 0]
        return float(np.abs(u - averages(lambda x, y: solution(x, y, time), grid)).max())

    assert measured_order(error, 16) > 1.8


def test_diffusion_with_slopes_at_the_walls_is_second_order() -> None:
    """D = 1 + x, u = e^{−t} w(x) + s(x): 1 + ln(1 + x) is steady with the slopes −1 and ½ along the outward normal."""

    def error(n: int) -> float:
        grid = Grid.box((n,), 1.0, [(hycop.Neumann(-1.0), hycop.Neumann(0.5))])
        setting = scalar(grid, Dx=averages(lambda x: 1 + x, grid))
        u0 = averages(lambda x: 1 + np.log(1 + x) + 0.1 * np.cos(np.pi * x), grid)
        # all but the mean decays, so the steady state is reached at last, with the mean of the start
        u = VariableDiffusion().flow(u0[None, None], np.array([3.0]), setting)[0, 0]
        return float(np.abs(u - averages(lambda x: 1 + np.log(1 + x), grid)).max())

    assert error(16) < 3e-3
    assert measured_order(error, 16) > 1.8


def test_inflow_and_slope_bring_in_what_they_say() -> None:
    """u_t + ((1 + x) u)_x = 0 with u = 1 on the left: the start has left after a while, and (1 + x) u = 1 remains."""

    def error(n: int) -> float:
        grid = Grid.box((n,), 1.0, hycop.Dirichlet(1.0))
        setting = scalar(grid, cx=averages(lambda x: 1 + x, grid))
        u0 = averages(lambda x: 1 / (1 + x) + 0.2 * x**2, grid)
        u = MusclAdvection().flow(u0[None, None], np.array([1.0]), setting)[0, 0]
        return float(np.abs(u - averages(lambda x: 1 / (1 + x), grid)).max())

    assert measured_order(error, 32) > 1.8
    grid = Grid.box((40,), 1.0, [(hycop.Neumann(-2.0), hycop.Neumann(2.0))])
    x = grid.centres()[0]
    u = MusclAdvection().flow(2 * x[:, None], np.array([0.3]), scalar(grid, cx=1.0))
    assert np.allclose(u[0, 0], 2 * (x[0] - 0.3), atol=1e-12)  # a straight line that comes in from the left


def test_what_leaves_does_not_see_the_value_at_the_wall() -> None:
    u0 = 1.0 + np.linspace(0, 1, 24)[None, None] ** 2
    out = [
        MusclAdvection().flow(u0, np.array([0.1]), scalar(Grid.box((24,), 1.0, f"dirichlet:1/dirichlet:{value}"), cx=1))
        for value in (-5, 7)
    ]
    assert np.array_equal(*out)


@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("kind", [MusclAdvection, UpwindAdvection, VariableDiffusion])
def test_closed_boxes_keep_the_total(kind: type, boundary: str) -> None:
    rng = np.random.default_rng(0)
    grid = Grid.box((9, 7, 8), (1.0, 0.7, 1.3), boundary, batch=2)
    params = {name: rng.uniform(-1, 1, (2, *grid.shape)) for name in ("cx", "cy", "cz")}
    params |= {"D" + name[1]: np.abs(value) for name, value in params.items()}
    u0 = rng.uniform(0, 1, (2, 1, *grid.shape))
    u = kind().flow(u0, np.array([0.3, 0.2]), scalar(grid, **params))
    assert np.abs(u - u0).max() > 0.05
    assert np.allclose(u.sum(axis=(2, 3, 4)), u0.sum(axis=(2, 3, 4)), rtol=1e-13)


def test_a_constant_field_is_a_constant() -> None:
    rng = np.random.default_rng(1)
    grid = Grid.box((16, 12), 1.0, ("periodic", "wall"))
    u0, tau = rng.uniform(size=(1, 1, 16, 12)), np.array([0.01])
    numbers = {"cx": 0.7, "cy": -0.4, "Dx": 0.3, "Dy": 0.1}
    fields = {name: np.full(grid.shape, value) for name, value in numbers.items()}
    wind = [MusclAdvection().flow(u0, tau, scalar(grid, **params)) for params in (numbers, fields)]
    assert np.allclose(*wind, atol=1e-13)
    for kind in (tau, 30 * tau):
        exact = FiniteVolumeDiffusion().flow(u0, kind, scalar(grid, **numbers))
        assert np.allclose(VariableDiffusion().flow(u0, kind, scalar(grid, **fields)), exact, atol=1e-9)


@dataclass(frozen=True)
class InAVaryingWind(MusclAdvection):
    def example(self, seed: int) -> tuple[Array, Setting]:
        return varied(*super().example(seed))


def test_the_conformance_suite_passes_with_fields() -> None:
    report = check_primitive(InAVaryingWind())
    assert report.passed, report


def test_a_program_with_refinement_refines_its_fields() -> None:
    """With twice the cells the error is a quarter: the fields are refined with the state, and stay positive."""

    def error(refinement: int) -> float:
        grid = Grid.box((32,), 1.0, "dirichlet:0")
        setting = scalar(grid, Dx=averages(lambda x: (1 + x) ** 2, grid))
        query = Query(averages(lambda x: euler_mode(1 + x, 1), grid)[None, None], setting, np.array([0.05]))
        program = hycop.Program.of(("diffusion", 0.05))
        dictionary = hycop.Dictionary({"diffusion": VariableDiffusion()})
        u = hycop.run(program, dictionary, query, refinement=refinement)[0, 0]
        exact = averages(lambda x: np.exp(-decay(1) * 0.05) * euler_mode(1 + x, 1), grid)
        return float(np.linalg.norm(u - exact) / np.linalg.norm(exact))

    assert error(2) < 0.35 * error(1)
    rough = scalar(Grid.box((8,)), D=np.array([1e-3, 1, 1, 1e-3, 1e-3, 1, 1e-3, 1e-3]))
    assert (rough.refined(4).field("D") > 0).all()
    layers = scalar(Grid.box((8,), 1.0, "wall"), D=np.repeat([0.5, 0.01], 4))
    assert np.allclose(layers.refined(3).field("D")[0], np.repeat([0.5, 0.01], 12))
    assert np.allclose(rough.refined(3).with_grid(rough.grid).field("D"), rough.field("D"))


def test_primitives_that_need_a_constant_refuse_by_name() -> None:
    grid = Grid.box((16,))
    query = Query(np.ones((1, 1, 16)), scalar(grid, cx=np.linspace(1, 2, 16)), np.array([0.1]))
    with pytest.raises(IncompatibleError, match=r"'wind' \(SpectralAdvection\).*'cx' varies in space.*MusclAdvection"):
        hycop.run(hycop.Program.of(("wind", 0.1)), hycop.Dictionary({"wind": SpectralAdvection()}), query)
    with pytest.raises(InvalidInputError, match=r"'Dx' has shape \(15,\).*a field of cell averages, \(16,\)"):
        scalar(grid, Dx=np.ones(15))
    with pytest.raises(InvalidInputError, match="'Dx' has a NaN or infinite value in sample 0"):
        scalar(grid, Dx=np.full(16, np.inf))
    with pytest.raises(InvalidInputError, match="'Dx' is negative for sample 0"):
        VariableDiffusion().flow(np.ones((1, 1, 16)), np.array([0.1]), scalar(grid, Dx=np.linspace(-1, 1, 16)))
    with pytest.raises(InvalidInputError, match="one must divide the other"):
        scalar(grid, Dx=np.ones((1, 16))).with_grid(Grid.box((24,)))


def test_batches_of_fields() -> None:
    rng = np.random.default_rng(2)
    grid = Grid.box((10, 11), batch=3)
    setting = scalar(grid, Dx=rng.uniform(0.1, 1, (3, 10, 11)), Dy=0.2, r=[1.0, 2.0, 3.0])
    assert setting.fields.keys() == {"Dx"}
    assert setting.field("r").shape == (3, 10, 11)
    joined = Setting.joined([setting.take(slice(0, 1)), setting.take(np.array([2]))])
    assert np.array_equal(joined.field("Dx"), setting.field("Dx")[[0, 2]])
    assert np.allclose(setting.averaged().param("Dx"), setting.field("Dx").mean(axis=(1, 2)))


def over_a_bump(grid: Grid, level: float = 1.0) -> tuple[Array, Setting]:
    """A lake at rest: flat surface, a bump and a slope in the bed."""
    x = grid.centres()
    bed = 0.4 * np.exp(-20 * sum((each - 0.5) ** 2 for each in x)) + 0.2 * x[0] + 0.0 * x[-1]
    setting = Setting(grid, water_channels(grid.axes), {"g": 9.81, "b": bed})
    return np.stack([level - bed, *[np.zeros_like(bed)] * grid.axes], axis=1), setting


@pytest.mark.parametrize("kind", [ShallowWaterOverBed, GravityWaveOverBed])
@pytest.mark.parametrize(("shape", "boundary"), [((50,), "periodic"), ((24, 20), "wall"), ((24, 20), "outflow")])
def test_a_lake_at_rest_stays_at_rest(kind: type, shape: tuple[int, ...], boundary: str) -> None:
    u, setting = over_a_bump(Grid.box(shape, 1.0, boundary))
    assert np.abs(kind().flow(u, np.array([1.0]), setting) - u).max() < 1e-12
    waves = u.copy()
    waves[:, 0] += 1e-3 * np.random.default_rng(0).uniform(size=waves[:, 0].shape)
    later = kind().flow(waves, np.array([0.1]), setting)
    assert 1e-4 < np.abs(later - u).max() < 1e-2
    if boundary != "outflow":
        assert np.allclose(later[:, 0].sum(), waves[:, 0].sum(), rtol=1e-13)


@pytest.mark.parametrize("kind", [ShallowWaterOverBed, GravityWaveOverBed])
def test_primitives_over_a_bed_keep_their_contract(kind: type) -> None:
    report = check_primitive(kind())
    assert report.passed, report


@pytest.mark.parametrize("shape", [(16,), (8, 6), (8, 6, 4)])
def test_features_of_one_field_in_any_number_of_axes(shape: tuple[int, ...]) -> None:
    grid = Grid.box(shape, batch=2)
    field = np.ones((2, *shape))
    field[1, : shape[0] // 2] = 3.0
    varied_query, plain = (
        Query(np.ones((2, 1, *shape)), scalar(grid, Dx=Dx, r=1.0), np.ones(2)) for Dx in (field, np.array([1.0, 2.0]))
    )
    names = ("field_mean:Dx", "field_high:Dx", "field_low:Dx", "field_variation:Dx", "field_variation:r")
    values = 10.0 ** FeatureMap(names)(varied_query)
    assert np.allclose(values, [[1, 1, 1, 1, 1], [2, 1.5, 0.5, 1.5, 1]])
    # a model of fields is also asked with constants
    assert np.allclose(10.0 ** FeatureMap(names)(plain), [[1, 1, 1, 1, 1], [2, 1, 1, 1, 1]])
    assert np.allclose(FeatureMap(("field_variation", "field_contrast"))(plain), 0.0)
    with pytest.raises(UnknownNameError, match=r"unknown feature 'field_hihg:Dx'.*field_high:NAME"):
        FeatureMap(("field_hihg:Dx",))
    with pytest.raises(InvalidInputError, match="'Dz'"):
        FeatureMap(("field_high:Dz",))(plain)


def test_a_model_in_3d_sees_the_features_of_a_field_that_its_equation_names() -> None:
    rng = np.random.default_rng(3)
    grid = Grid.box((8, 6, 4), batch=96)
    ripple = np.cos(2 * np.pi * grid.centres()[0] - 1.0)
    wind = rng.uniform(0.5, 1.5, 96).reshape(-1, 1, 1, 1) * (1 + rng.uniform(0, 0.5, (96, 1, 1, 1)) * ripple)
    setting = scalar(grid, cx=np.broadcast_to(wind, (96, *grid.shape)), cy=0.2, cz=0.1, Dx=0.01, Dy=0.01, Dz=0.01)
    equation = hycop.equation(
        "u_t = -cx*u_x - cy*u_y - cz*u_z + Dx*u_xx + Dy*u_yy + Dz*u_zz",
        features=("fourier_x", "field_high:cx", "field_variation:cx"),
    ).equation
    parts = hycop.Dictionary({"advection": MusclAdvection(), "diffusion": VariableDiffusion()})
    query = Query(1.0 + 0.5 * np.broadcast_to(ripple, (96, 8, 6, 4))[:, None], setting, rng.uniform(0.1, 0.3, 96))
    later = hycop.run(hycop.splitting("strang").with_substeps(4).programs(query, parts), parts, query)
    data = hycop.Dataset(
        "own", "train", np.stack([query.u0, later], axis=1), np.stack([0 * query.time, query.time], axis=1), setting
    )
    model = hycop.HyCOP(parts, equation).fit(data, preset="quick", tries=1, rounds=1, patterns=1, verbose=False)
    answer = model.answer(query)
    assert list(answer.features) == ["fourier_x", "field_high:cx", "field_variation:cx"]
    assert answer.features["field_high:cx"].std() > 0.01
