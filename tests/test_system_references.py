"""The truths of Burgers and Kuramoto–Sivashinsky, and what all truths of systems have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hycop.errors import InvalidInputError
from hycop.grid import Array, Grid
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive
from hycop.problems import Problem, burgers, kuramoto_sivashinsky, shallow_water
from hycop.query import Channel, Setting
from hycop.references import ColeHopfReference, KuramotoSivashinskyReference, Reference, ShallowWaterReference
from hycop.references.fourier import cell_averages
from tests.helpers import WATER, hills, line, relative, water

BURGERS = frozenset({"advection", "viscosity"})
KS = frozenset({"linear", "nonlinear"})
PROBLEMS = {entry.name: entry for entry in (*burgers.PROBLEMS, *shallow_water.PROBLEMS, *kuramoto_sivashinsky.PROBLEMS)}


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
