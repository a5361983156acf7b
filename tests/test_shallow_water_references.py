"""The truth of shallow water: linear waves, exact dam breaks, conservation, mirrors, and a public solver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from hycop.channels import water_channels
from hycop.errors import InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.grid import Array, Grid, restrict
from hycop.query import Channel, Setting
from hycop.references import ColeHopfReference, ShallowWaterReference
from tests.helpers import WATER, hills, line, relative, water

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def fixture(name: str) -> Any:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the fixture {path} is not here")
    return np.load(path)


@pytest.mark.parametrize("processes", [WATER, frozenset({"gravity"})])
@pytest.mark.parametrize("shape", [(24,), (24, 20)])
def test_a_small_standing_wave_is_that_of_linear_theory(processes: frozenset[str], shape: tuple[int, ...]) -> None:
    setting = water(shape)
    k = 2 * np.pi / 10.0
    omega = np.sqrt(9.81) * k * np.sqrt(len(shape))
    size = 1e-6

    def exact(grid: Grid, t: float) -> Array:
        x = grid.centres()
        cosines = np.prod(np.broadcast_arrays(*(np.cos(k * s) for s in x)), axis=0)
        momenta = []
        for axis in range(grid.axes):
            factors = [np.sin(k * s) if i == axis else np.cos(k * s) for i, s in enumerate(x)]
            slope = np.prod(np.broadcast_arrays(*factors), axis=0)
            momenta.append(9.81 * k / omega * np.sin(omega * t) * slope)
        return np.stack([cosines * np.cos(omega * t), *momenta], axis=1)

    def start(grid: Grid) -> Array:
        state = size * exact(grid, 0.0)
        state[:, 0] += 1
        return state

    reference = ShallowWaterReference(processes)
    later = reference.trajectory(start, setting, np.array([[0.7]]))[:, 1]
    later[:, 0] -= 1
    fine = reference.refined(setting)
    expected = restrict(reference.fine_averages(exact(fine.grid, 0.7), fine), shape)
    assert relative(later / size, expected) < 1e-5


def stoker(faces: Array, t: float, deep: float, shallow: float, g: float) -> Array:
    """Cell averages (2, n) of h and hu of a dam break at x = 0 onto a wet bed (Stoker 1957)."""
    c = np.sqrt(g * deep)

    def mismatch(h: float) -> float:
        return float(2 * (c - np.sqrt(g * h)) - (h - shallow) * np.sqrt(g / 2 * (h + shallow) / (h * shallow)))

    h = brentq(mismatch, shallow * (1 + 1e-9), deep)
    u = 2 * (c - np.sqrt(g * h))
    front = h * u / (h - shallow)
    parts = 2000
    width = np.diff(faces)[:, None]
    xi = (faces[:-1, None] + (np.arange(parts) + 0.5) / parts * width) / t
    fan = np.clip((2 * c - xi) / 3, np.sqrt(g * h), c)
    depth = np.where(xi < front, fan**2 / g, shallow)
    velocity = np.where(xi < front, 2 * (c - fan), 0.0)
    return np.stack([depth, depth * velocity]).mean(axis=2)


def dam(deep: float, shallow: float, g: float = 9.81) -> Any:
    def start(grid: Grid) -> Array:
        x = grid.centres()[0]
        depth = np.where(x < grid.lengths[:, :1] / 2, deep, shallow)
        return np.stack([depth, np.zeros_like(depth)], axis=1)

    return start


@pytest.mark.parametrize(("shallow", "most"), [(1.0, 3e-3), (0.2, 5e-3)])
def test_dam_break_onto_a_wet_bed(shallow: float, most: float) -> None:
    setting = water((64,), lengths=100.0, boundary="outflow")
    exact = stoker(np.linspace(-50, 50, 65), 5.0, 2.0, shallow, 9.81)
    errors = [
        relative(ShallowWaterReference(WATER, r).trajectory(dam(2.0, shallow), setting, np.array([[5.0]]))[0, 1], exact)
        for r in (8, 16)
    ]
    assert errors[1] < most and errors[1] < 0.65 * errors[0]


def test_depth_stays_positive_behind_a_strong_dam() -> None:
    setting = water((40,), lengths=100.0, boundary="wall")
    out = ShallowWaterReference(WATER, 8).trajectory(dam(10.0, 0.1), setting, np.array([[1.0, 3.0, 8.0]]))
    assert out[:, :, 0].min() > 0.09


@pytest.mark.parametrize("processes", [WATER, frozenset({"gravity"}), frozenset({"momentum"})])
@pytest.mark.parametrize("shape", [(10,), (10, 8)])
def test_totals_are_kept(processes: frozenset[str], shape: tuple[int, ...]) -> None:
    reference = ShallowWaterReference(processes, 2)
    axes = tuple(range(2, 2 + len(shape)))
    for boundary in ("periodic", "wall"):
        setting = water(shape, batch=2, boundary=boundary)
        u = hills(setting.grid)
        out = reference.flow(u, np.array([0.3, 0.5]), setting)
        kept = slice(0, None) if boundary == "periodic" else slice(0, 1)
        np.testing.assert_allclose(out.mean(axis=axes)[:, kept], u.mean(axis=axes)[:, kept], atol=1e-14)
    assert reference.conserves == frozenset({"h"})


def test_smooth_states_converge_fast() -> None:
    setting = water((12, 10))
    runs = [ShallowWaterReference(WATER, r).trajectory(hills, setting, np.array([[0.3]]))[:, 1] for r in (2, 4, 12)]
    errors = [relative(run, runs[-1]) for run in runs[:-1]]
    assert errors[1] < 1e-4 and errors[1] < errors[0] / 14


def test_momentum_advection_leaves_the_depth_alone_and_is_burgers_equation_on_level_water() -> None:
    reference = ShallowWaterReference(frozenset({"momentum"}), 8)
    setting = Setting(Grid.box((48,), 2.0), water_channels(1), {})
    u = hills(setting.grid)
    assert np.array_equal(reference.solve(u, setting, np.array([[0.4]]))[:, 0, 0], u[:, 0])
    level = u.copy()
    level[:, 0] = 1.0
    # m_t + (m²)_x = 0 is Burgers' equation for 2m; the shock is there at t = 2
    for time, most in ((0.4, 2e-5), (2.0, 2e-3)):
        out = reference.flow(level, np.array([time]), setting)
        exact = ColeHopfReference(frozenset({"advection"})).flow(2 * level[:, 1:], np.array([time]), line(48)) / 2
        assert relative(out[:, 1:], exact) < most


def test_the_parts_make_up_the_whole() -> None:
    setting = water((48, 40), batch=2)
    u = hills(setting.grid)
    gravity, momentum = (ShallowWaterReference(frozenset({name}), 1) for name in ("gravity", "momentum"))
    whole = ShallowWaterReference(WATER, 1).solve(u, setting, np.full((2, 1), 0.2))[:, 0]

    def strang(steps: int) -> Array:
        step, v = 0.2 / steps, u
        for _ in range(steps):
            for part, share in ((gravity, 0.5), (momentum, 1.0), (gravity, 0.5)):
                v = part.solve(v, setting, np.full((2, 1), share * step))[:, 0]
        return v

    errors = [relative(strang(steps), whole) for steps in (1, 2, 4)]
    assert errors[2] < 2e-4
    assert errors[0] / errors[1] > 3 and errors[1] / errors[2] > 3


@pytest.mark.parametrize("axes", [1, 2])
def test_a_wall_is_a_mirror(axes: int) -> None:
    shape = (12, 9)[:axes]
    walled = water(shape, boundary=("wall", "periodic")[:axes])
    double = water((24, 9)[:axes], lengths=[20.0, 10.0][:axes])
    u = hills(walled.grid)
    signs = np.array([1.0, -1.0, 1.0])[: axes + 1].reshape((1, -1) + (1,) * axes)
    mirrored = np.concatenate([u, signs * np.flip(u, axis=2)], axis=2)
    reference = ShallowWaterReference(WATER, 2)
    out = reference.flow(u, np.array([1.5]), walled)
    both = reference.flow(mirrored, np.array([1.5]), double)
    np.testing.assert_allclose(out, both[:, :, :12], atol=1e-12)


def test_the_axes_are_alike() -> None:
    setting = water((12, 10))
    u = hills(setting.grid)
    turned = np.swapaxes(u, 2, 3)[:, [0, 2, 1]]
    reference = ShallowWaterReference(WATER, 2)
    out = reference.flow(u, np.array([0.5]), setting)
    other = reference.flow(turned, np.array([0.5]), water((10, 12)))
    np.testing.assert_allclose(np.swapaxes(other, 2, 3)[:, [0, 2, 1]], out, atol=1e-13)


def test_pyclaw_on_a_periodic_box() -> None:
    """Judged on samples and times without shocks; PyClaw's own error is near 1e-3 there."""
    data = fixture("swe2d_periodic_pyclaw.npz")
    kinds = list(data["kinds"])
    smooth = [kinds.index(kind) for kind in ("gaussian", "fourier", "vortex", "damx", "radial")]
    times = data["times"]
    setting = water((128, 128), batch=5, g=data["g"][smooth])
    reference = ShallowWaterReference(WATER, 1)
    u = reference.fine_state(data["u0_128"][smooth].astype(float), setting)
    out = reference.averages(u, setting, np.tile(times[:4], (5, 1)))
    truth = data["u_128"][smooth].astype(float)
    for sample in range(5):
        for index in range(4 if sample < 4 else 3):
            assert relative(out[sample, index], truth[sample, index]) < (1e-3 if sample < 4 else 3e-3)


def test_pyclaw_between_walls() -> None:
    data = fixture("dambreak_walls_pyclaw.npz")
    assert data["names"][0] == "straight"
    setting = water((80,), lengths=100.0, boundary="wall")
    truth = restrict(data["u_320"][0, :, :2, :, 0].astype(float), (80,))
    out = ShallowWaterReference(WATER, 16).trajectory(dam(2.0, 1.0), setting, data["times"][None])[0, 1:]
    for index in range(4):
        assert relative(out[index], truth[index]) < 6e-3


def test_pyclaw_in_a_basin() -> None:
    data = fixture("dambreak_walls_pyclaw.npz")
    setting = water((40, 40), lengths=100.0, boundary="wall")
    reference = ShallowWaterReference(WATER, 4)
    start = restrict(data["u0_320"][1:].astype(float), (160, 160))
    out = reference.averages(start, setting, data["times"][None])[0]
    truth = restrict(data["u_320"][1].astype(float), (40, 40))
    for index in range(4):
        assert relative(out[index], truth[index]) < 1.5e-2


def test_a_sample_without_water_fails_alone() -> None:
    setting = water((12,), batch=3)
    u = hills(setting.grid)
    u[1, 0, 4] = -0.1
    reference = ShallowWaterReference(WATER, 1)
    out = np.empty_like(u)
    reference.advance(u, np.full(3, 0.2), setting, out)
    assert np.isnan(out[1]).all() and np.isfinite(out[[0, 2]]).all()
    with pytest.raises(NonFiniteStateError, match="sample 1"):
        reference.solve(u, setting, np.full((3, 1), 0.2))


def test_reconstruction_of_a_jump_stays_wet_and_keeps_averages() -> None:
    setting = water((12,), boundary="wall")
    u = np.zeros((1, 2, 12))
    u[:, 0] = np.where(np.arange(12) < 6, 5.0, 0.2)
    reference = ShallowWaterReference(WATER, 4)
    fine = reference.fine_state(u, setting)
    assert fine[:, 0].min() > 0
    assert fine[:, 0].mean() == pytest.approx(u[:, 0].mean(), rel=1e-13)


def test_shallow_water_errors_name_what_is_wrong() -> None:
    setting = water((8,), batch=2)
    u, times = np.ones((2, 2, 8)), np.ones((2, 1))
    with pytest.raises(InvalidInputError, match="parameter 'g' is missing"):
        ShallowWaterReference(WATER, 1).solve(u, Setting(setting.grid, setting.channels, {}), times)
    with pytest.raises(InvalidInputError, match="'g' of sample 1"):
        ShallowWaterReference(WATER, 1).solve(u, water((8,), batch=2, g=np.array([1.0, -1.0])), times)
    with pytest.raises(InvalidInputError, match="channels must be h"):
        wrong = Setting(setting.grid, (Channel("h"), Channel("hu")), setting.params)
        ShallowWaterReference(WATER, 1).solve(u, wrong, times)
    with pytest.raises(InvalidInputError, match="one or two axes"):
        cube = Setting(Grid.box((4, 4, 4)), (Channel("h"),), {})
        ShallowWaterReference(WATER, 1).solve(np.ones((1, 1, 4, 4, 4)), cube, np.ones((1, 1)))
    with pytest.raises(InvalidInputError, match="cfl is 2"):
        ShallowWaterReference(WATER, cfl=2.0)
    with pytest.raises(InvalidInputError, match="steps, more than"):
        ShallowWaterReference(WATER, 1).solve(u, setting, 1e9 * times)
    with pytest.raises(UnknownNameError, match="did you mean gravity"):
        ShallowWaterReference(frozenset({"gravty"}))
