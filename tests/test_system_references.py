"""The truths of shallow water, Burgers and Kuramoto–Sivashinsky: exact solutions, public solvers, each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hycop.errors import InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.grid import Array, Grid, restrict
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive
from hycop.problems import Problem, burgers, kuramoto_sivashinsky, shallow_water
from hycop.query import Channel, Setting
from hycop.references import ColeHopfReference, KuramotoSivashinskyReference, Reference, ShallowWaterReference
from hycop.references.fourier import cell_averages
from hycop.references.shallow_water import shallow_water_channels

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
WATER = frozenset({"gravity", "momentum"})
BURGERS = frozenset({"advection", "viscosity"})
KS = frozenset({"linear", "nonlinear"})
PROBLEMS = {entry.name: entry for entry in (*burgers.PROBLEMS, *shallow_water.PROBLEMS, *kuramoto_sivashinsky.PROBLEMS)}


def fixture(name: str) -> Any:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"the fixture {path} is not here")
    return np.load(path)


def relative(u: Array, exact: Array) -> float:
    return float(np.linalg.norm(u - exact) / np.linalg.norm(exact))


def water(
    shape: tuple[int, ...], batch: int = 1, lengths: Any = 10.0, boundary: Any = "periodic", g: Any = 9.81
) -> Setting:
    return Setting(Grid.box(shape, lengths, boundary, batch), shallow_water_channels(len(shape)), {"g": g})


def line(cells: int, batch: int = 1, length: float = 2.0, **params: Any) -> Setting:
    return Setting(Grid.box((cells,), length, "periodic", batch), (Channel("u"),), params)


def hills(grid: Grid) -> Array:
    """A smooth periodic state, subcritical; samples differ by a shift."""
    shift = np.arange(grid.batch).reshape((-1,) + (1,) * grid.axes)
    angles = [2 * np.pi * x / grid.lengths[:, i].reshape(shift.shape) + shift for i, x in enumerate(grid.centres())]
    depth = 1 + 0.1 * np.sin(sum(angles)) + 0.1 * np.cos(2 * angles[0])
    momenta = [0.3 * np.cos(angle + axis) + 0.1 * np.sin(angles[0]) for axis, angle in enumerate(angles)]
    return np.stack(np.broadcast_arrays(depth, *momenta), axis=1)


# Shallow water


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
    setting = Setting(Grid.box((48,), 2.0), shallow_water_channels(1), {})
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


# Burgers


@pytest.mark.parametrize("nu", [0.5, 0.05, 0.005])
@pytest.mark.parametrize("mean", [0.0, -0.7])
def test_cole_hopf_against_an_exact_solution(nu: float, mean: float) -> None:
    """φ, a sum of two heat modes, gives u = c − 2ν φ_x/φ, whose cell averages are differences of log φ."""
    k, b = np.pi, 0.99
    setting = line(40, nu=nu)
    times = np.array([[1e-5, 0.03, 0.5, 3.0]])

    def log_phi(x: Array, t: float) -> Array:
        return np.asarray(np.log(1 + b * np.exp(-nu * k**2 * t) * np.cos(k * (x - mean * t))))

    def start(grid: Grid) -> Array:
        x = grid.centres()[0]
        return (mean + 2 * nu * k * b * np.sin(k * x) / (1 + b * np.cos(k * x)))[:, None]

    out = ColeHopfReference(BURGERS, 32).trajectory(start, setting, times)[0, 1:, 0]
    faces = np.linspace(0, 2, 41)
    for index, t in enumerate(times[0]):
        exact = mean - 2 * nu * np.diff(log_phi(faces, t)) * 20
        assert np.abs(out[index] - exact).max() < 4e-6 * nu  # the largest velocity is 44ν


def test_inviscid_flow_before_and_after_the_shock() -> None:
    """u₀ = sin πx on [0, 2]: characteristics x = ξ + t sin πξ, and by symmetry a shock that stands at x = 1."""
    setting = line(20)
    times = np.array([[0.2, 1.0, 4.0]])
    reference = ColeHopfReference(frozenset({"advection"}), 64)
    out = reference.trajectory(lambda grid: np.sin(np.pi * grid.centres()[0])[:, None], setting, times)[0, 1:, 0]
    nodes, weights = np.polynomial.legendre.leggauss(12)
    x = 0.1 * (np.arange(10)[:, None] + 0.5 + nodes / 2)
    for index, t in enumerate(times[0]):
        origin = np.vectorize(lambda at, t=t: brentq(lambda xi: xi + t * np.sin(np.pi * xi) - at, 0.0, at))(x)
        exact = np.sin(np.pi * origin) @ weights / 2
        np.testing.assert_allclose(out[index, :10], exact, atol=1e-7)
        np.testing.assert_allclose(out[index, 10:], -exact[::-1], atol=1e-7)


def test_small_viscosity_tends_to_the_entropy_solution() -> None:
    def start(grid: Grid) -> Array:
        return (0.3 + np.sin(np.pi * grid.centres()[0]))[:, None]

    times = np.array([[0.1, 0.5, 2.0]])
    inviscid = ColeHopfReference(frozenset({"advection"})).trajectory(start, line(32), times)
    errors = [
        relative(ColeHopfReference(BURGERS).trajectory(start, line(32, nu=nu), times), inviscid) for nu in (1e-4, 1e-6)
    ]
    assert errors[1] < 2e-5 and errors[1] < errors[0] / 50
    still = ColeHopfReference(BURGERS).trajectory(start, line(32, nu=0.0), times)
    assert np.array_equal(still, inviscid)


def test_extreme_viscosities() -> None:
    def start(grid: Grid) -> Array:
        return (0.3 + np.sin(np.pi * grid.centres()[0]))[:, None]

    times = np.array([[0.5]])
    thick = ColeHopfReference(BURGERS, 4).trajectory(start, line(32, nu=1e9), times)[0, 1]
    np.testing.assert_allclose(thick, 0.3, atol=1e-14)
    thin, none = (ColeHopfReference(BURGERS, 4).trajectory(start, line(32, nu=nu), times) for nu in (1e-14, 0.0))
    assert np.array_equal(thin, none)


def test_viscosity_alone_is_the_heat_flow() -> None:
    setting = line(16, nu=0.1)
    averages = np.cos(3 * np.pi * setting.grid.centres()[0])[:, None] + 2.0
    out = ColeHopfReference(frozenset({"viscosity"}), 4).flow(averages, np.array([0.2]), setting)
    fine = ColeHopfReference(frozenset({"viscosity"}), 64).flow(averages, np.array([0.2]), setting)
    decay = np.exp(-0.1 * (3 * np.pi) ** 2 * 0.2)
    assert relative(out - 2.0, decay * (averages - 2.0)) < 3e-2
    assert relative(out, fine) < 1e-3

    def start(grid: Grid) -> Array:
        return np.cos(3 * np.pi * grid.centres()[0])[:, None]

    run = ColeHopfReference(frozenset({"viscosity"}), 64).trajectory(start, setting, np.array([[0.2]]))[0]
    np.testing.assert_allclose(run[1], decay * run[0], atol=1e-13)


def test_burgers_errors_name_what_is_wrong() -> None:
    u, times = np.ones((1, 1, 8)), np.ones((1, 1))
    with pytest.raises(InvalidInputError, match="parameter 'nu' is missing"):
        ColeHopfReference(BURGERS, 1).solve(u, line(8), times)
    with pytest.raises(InvalidInputError, match="nu of sample 0 is negative"):
        ColeHopfReference(BURGERS, 1).solve(u, line(8, nu=-1.0), times)
    with pytest.raises(InvalidInputError, match="must be periodic"):
        walled = Setting(Grid.box((8,), boundary="wall"), (Channel("u"),), {"nu": 1.0})
        ColeHopfReference(BURGERS, 1).solve(u, walled, times)
    with pytest.raises(InvalidInputError, match="one channel on one axis"):
        KuramotoSivashinskyReference(KS, 1).solve(np.ones((1, 2, 8)), water((8,)), times)
    with pytest.raises(InvalidInputError, match="step is 0"):
        KuramotoSivashinskyReference(KS, step=0.0)
    with pytest.raises(InvalidInputError, match="steps are needed"):
        KuramotoSivashinskyReference(KS, 1).solve(u, line(8), 1e9 * times)


# Kuramoto–Sivashinsky


def waves(grid: Grid) -> Array:
    s = grid.centres()[0] / grid.lengths[:, :1]
    shift = np.arange(grid.batch)[:, None]
    return (np.cos(2 * np.pi * s + shift) + np.sin(6 * np.pi * s) - 0.5 * np.cos(10 * np.pi * s))[:, None]


def test_etdrk4_against_scipy() -> None:
    cells, length = 96, 2 * np.pi * 5
    setting = line(cells, length=length)
    k = 2 * np.pi * np.arange(cells // 2 + 1) / length
    slope = np.where(np.arange(k.size) < cells / 3, -0.5j * k, 0.0)

    def rate(_: float, u: Array) -> Array:
        return np.asarray(np.fft.irfft((k**2 - k**4) * np.fft.rfft(u) + slope * np.fft.rfft(u * u), cells))

    start = waves(setting.grid)
    exact = solve_ivp(rate, (0.0, 3.0), start[0, 0], method="BDF", rtol=1e-9, atol=1e-10).y[:, -1]
    reference = KuramotoSivashinskyReference(KS, 1, step=0.02)
    out = reference.solve(cell_averages(start, setting), setting, np.array([[3.0]]))
    assert relative(out[0, 0, 0], cell_averages(exact, setting)) < 1e-6


def test_kuramoto_sivashinsky_has_order_four() -> None:
    setting = line(128, length=2 * np.pi * 16)
    runs = [
        KuramotoSivashinskyReference(KS, 2, step=step).trajectory(waves, setting, np.array([[6.0]]))[:, 1]
        for step in (0.2, 0.1, 0.05, 0.01)
    ]
    errors = np.array([relative(run, runs[-1]) for run in runs[:-1]])
    assert errors[-1] < 1e-5
    assert np.log2(errors[1] / errors[2]) > 3


def test_the_linear_part_is_exact_and_the_nonlinear_part_is_inviscid_burgers() -> None:
    setting = line(64, length=2 * np.pi * 8)
    time = np.array([[1.5]])
    linear = KuramotoSivashinskyReference(frozenset({"linear"}))
    assert linear.order == EXACT
    k = 5 / 8
    run = linear.trajectory(lambda grid: np.cos(k * grid.centres()[0])[:, None], setting, time)[0]
    np.testing.assert_allclose(run[1], np.exp((k**2 - k**4) * 1.5) * run[0], atol=1e-12)
    nonlinear = KuramotoSivashinskyReference(frozenset({"nonlinear"})).trajectory(waves, setting, time)
    inviscid = ColeHopfReference(frozenset({"advection"})).trajectory(waves, setting, time)
    assert relative(nonlinear, inviscid) < 1e-5


def test_the_attractor_is_reached_and_the_mean_kept() -> None:
    setting = line(64, batch=2, length=2 * np.pi * 10)
    out = KuramotoSivashinskyReference(KS, 2, step=0.1).trajectory(waves, setting, np.tile([60.0, 90.0], (2, 1)))
    assert 0.9 < out[:, 1:].std() < 1.8 and np.abs(out).max() < 5
    np.testing.assert_allclose(out.mean(axis=(2, 3)), 0.0, atol=1e-12)


# What all of them promise

SOLVERS: dict[str, tuple[Reference, Setting]] = {
    "water 1D": (ShallowWaterReference(WATER, 2), water((12,), batch=5, boundary="wall")),
    "water 2D": (ShallowWaterReference(WATER, 2), water((7, 6), batch=5)),
    "burgers": (ColeHopfReference(BURGERS, 8), line(15, batch=5, nu=np.linspace(0.01, 0.2, 5))),
    "advection": (ColeHopfReference(frozenset({"advection"}), 8), line(15, batch=5)),
    "viscosity": (ColeHopfReference(frozenset({"viscosity"}), 8), line(15, batch=5, nu=0.1)),
    "ks": (KuramotoSivashinskyReference(KS), line(16, batch=5, length=30.0)),
    "ks nonlinear": (KuramotoSivashinskyReference(frozenset({"nonlinear"})), line(16, batch=5, length=30.0)),
}


def state_for(setting: Setting) -> Array:
    return waves(setting.grid) if len(setting.channels) == 1 else hills(setting.grid)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_sample_does_not_see_its_batch_or_the_threads(name: str) -> None:
    reference, setting = SOLVERS[name]
    u = state_for(setting)
    duration = np.array([0.1, 0.0, 0.4, 0.21, 0.2])
    together = reference.flow(u, duration, setting)
    for samples in ([0], [1], [4, 2], [3, 2, 1]):
        index = np.array(samples)
        assert np.array_equal(reference.flow(u[index], duration[index], setting.take(index)), together[index])
    assert np.array_equal(together[1], u[1]) and not np.array_equal(together[0], u[0])


@pytest.mark.parametrize("name", SOLVERS)
def test_a_reference_is_a_primitive(name: str) -> None:
    reference, setting = SOLVERS[name]
    u = state_for(setting)
    assert isinstance(reference, Primitive) and not reference.reversible
    assert reference.finer().refinement == 2 * reference.refinement
    out = reference.flow(u.astype(np.float32), np.full(5, 0.1), setting)
    assert out.dtype == np.float32 and np.isfinite(out).all()
    work = reference.work(u, np.linspace(0, 1, 5), setting)
    assert work.shape == (5,) and (work > 0).all()
    if reference.conserves == ALL_CHANNELS:
        np.testing.assert_allclose(out.mean(axis=2), u.mean(axis=2), atol=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
def test_two_halves_are_a_whole(name: str) -> None:
    reference, setting = SOLVERS[name]
    u = state_for(reference.refined(setting))
    setting_fine = reference.refined(setting)
    times = np.tile([0.1, 0.2], (5, 1))
    both = reference.solve(u, setting_fine, times)
    again = reference.solve(both[:, 0], setting_fine, times[:, :1])
    assert relative(again[:, 0], both[:, 1]) < 2e-4


# The problems


@pytest.mark.parametrize(("name", "split"), [(name, split) for name in PROBLEMS for split in ("id", "ood")])
def test_samples_and_their_truth(name: str, split: str) -> None:
    chosen = PROBLEMS[name]
    two_dimensional = len(chosen.shape) == 2
    shape = (12, 12) if two_dimensional else None
    data = chosen.sample(2 if two_dimensional else 6, split, seed=1, shape=shape, times=[0.05, 0.2])
    assert np.isfinite(data.states).all()
    assert data.reference_error is not None and data.reference_error < (2e-3 if split == "ood" else 3e-4)
    for parameter, intervals in chosen.split(split).params.items():
        values = data.setting.param(parameter)
        assert all(any(low <= value <= high for low, high in intervals) for value in values)
    if "h" in {channel.name for channel in chosen.channels}:
        assert data.states[:, :, 0].min() > 0.2
        total = data.states[:, :, 0].reshape(*data.states.shape[:2], -1).mean(axis=2)
        np.testing.assert_allclose(total, total[:, :1] * np.ones((1, 3)), rtol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_sample_belongs_to_its_seed_and_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = PROBLEMS[name]
    monkeypatch.setattr("hycop.problems.definition.ESTIMATED", 1)
    shape = (9, 7) if len(chosen.shape) == 2 else (33,)
    many = chosen.sample(4, "ood", seed=3, shape=shape, times=[0.02])
    monkeypatch.setattr("hycop.problems.definition.BLOCK_BYTES", 1)
    few = chosen.sample(2, "ood", seed=3, shape=shape, times=[0.02])
    assert many.states.shape == (4, 2, len(chosen.channels), *shape)
    assert np.array_equal(many.states[:2], few.states)
    assert np.array_equal(many.setting.grid.lengths[:2], few.setting.grid.lengths)
    other = chosen.sample(2, "ood", seed=4, shape=shape, times=[0.02])
    assert not np.allclose(other.states, few.states)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_family_is_smooth_on_any_grid(name: str) -> None:
    """The initial states are functions: finer point values average to about those of a coarser grid."""
    chosen = PROBLEMS[name]
    for split_name in ("id", "ood"):
        split = chosen.split(split_name)
        shape = tuple(4 * n for n in chosen.shape) if len(chosen.shape) == 2 else (2048,)
        setting, _, initial = chosen._queries(split, split_name, 0, 0, 12, shape, chosen.boundary, None)
        coarse, fine = initial(setting.grid), initial(setting.grid.refined(3))
        centres = (slice(None), slice(None), *(slice(1, None, 3) for _ in shape))
        np.testing.assert_allclose(fine[centres], coarse, atol=1e-9)


def test_the_paper_s_numbers() -> None:
    assert PROBLEMS["burgers1d"].lengths == (2.0,) and PROBLEMS["burgers1d"].split("id").time == (0.5, 0.5)
    assert PROBLEMS["burgers1d"].split("ood").params["nu"] == [(0.002, 0.005), (0.1, 0.2)]
    assert len(PROBLEMS["burgers1d"].split("id").initial) == 6
    for name, families in (("swe1d", (5, 4)), ("swe2d", (6, 5))):
        water_problem = PROBLEMS[name]
        assert set(water_problem.lengths) == {10.0} and water_problem.split("train").time == (0.15, 0.4)
        assert water_problem.split("id").params["g"] == [(9.0, 11.0)]
        assert tuple(len(water_problem.split(split).initial) for split in ("id", "ood")) == families
    ks = PROBLEMS["ks1d"]
    assert ks.shape == (128,) and ks.split("ood-t").time == (8.0, 20.0) and ks.split("ood-w").time == (5.0, 8.0)


def test_intervals_of_kuramoto_sivashinsky_differ() -> None:
    data = PROBLEMS["ks1d"].sample(4, "ood", seed=0, times=[0.5])
    widths = data.setting.grid.lengths[:, 0] / (2 * np.pi)
    assert len(set(widths)) == 4 and widths.min() >= 40 and widths.max() <= 50
    np.testing.assert_allclose(data.states.mean(axis=(2, 3)), 0.0, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_parts_of_the_equation_are_trusted_flows(name: str) -> None:
    chosen: Problem = PROBLEMS[name]
    shape = (12, 12) if len(chosen.shape) == 2 else (48,)
    data = chosen.sample(2, "id", seed=0, shape=shape, times=[0.02])
    u = data.query.u0
    whole = chosen.subflow(chosen.processes).flow(u, data.query.time, data.query.setting)
    for process in chosen.processes:
        part = chosen.subflow([process]).flow(u, data.query.time, data.query.setting)
        assert np.isfinite(part).all()
    a, b = (chosen.subflow([process]) for process in chosen.processes)
    lie = b.flow(a.flow(u, data.query.time, data.query.setting), data.query.time, data.query.setting)
    assert relative(lie, whole) < 0.05


def test_walls_and_outflow_for_water() -> None:
    for boundary in ("wall", "outflow"):
        data = PROBLEMS["swe1d"].sample(2, "id", seed=0, shape=(20,), boundary=boundary, times=[0.1])
        assert np.isfinite(data.states).all() and data.reference_error is not None and data.reference_error < 1e-3
    with pytest.raises(InvalidInputError, match="periodic"):
        PROBLEMS["burgers1d"].sample(1, "id", boundary="wall")
