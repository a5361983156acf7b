"""The truths against analytic solutions, against each other and against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from hycop.errors import InvalidInputError, NonFiniteStateError, UnknownNameError
from hycop.grid import Array, Grid, restrict
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive
from hycop.query import Channel, Setting
from hycop.references import FiniteVolumeReference, FourierReference, Reference, error_estimate
from hycop.references.coefficients import Coefficients
from hycop.references.etdrk4 import Spectrum, phi_functions
from hycop.references.fourier import cell_averages, interpolate, point_values
from hycop.references.propagators import exponential, product
from hycop.references.reference import InitialCondition
from hycop.references.stencils import axis_rates, prolongation

ALL = frozenset({"advection", "diffusion", "reaction"})
LINEAR = frozenset({"advection", "diffusion"})
Solver = type[FourierReference] | type[FiniteVolumeReference]
SOLVERS: tuple[Solver, ...] = (FourierReference, FiniteVolumeReference)


def make_setting(
    shape: tuple[int, ...],
    batch: int = 1,
    lengths: Any = 1.0,
    boundary: str | tuple[str, ...] = "periodic",
    seed: int = 0,
    **fixed: float,
) -> Setting:
    """Coefficients of the paper's range, unless given: one letter for all axes, or with its axis."""
    random = np.random.default_rng(seed)
    params = {"r": random.uniform(0.1, 1.0, batch)}
    for axis in "xyz"[: len(shape)]:
        params["c" + axis] = random.uniform(0.2, 1.5, batch)
        params["D" + axis] = random.uniform(0.05, 0.2, batch)
    for name, value in fixed.items():
        params |= {full: np.full(batch, value) for full in params if full.startswith(name)}
    return Setting(Grid.box(shape, lengths, boundary, batch), (Channel("u"),), params)


def gaussian(grid: Grid) -> Array:
    """A smooth periodic pulse of width 0.1 of the box."""
    out = np.ones((grid.batch, *grid.shape))
    for axis, x in enumerate(grid.centres()):
        s = x / grid.lengths[:, axis].reshape((-1,) + (1,) * grid.axes)
        out = out * np.exp(-((np.sin(np.pi * (s - 0.4)) / np.pi) ** 2) / (2 * 0.1**2))
    return out[:, None]


def fronts(grid: Grid) -> Array:
    """A plateau between two tanh fronts of width 0.05 along the first axis."""
    s = grid.centres()[0] / grid.lengths[:, 0].reshape((-1,) + (1,) * grid.axes)
    level = (np.cos(2 * np.pi * (s - 0.5)) - np.cos(0.5 * np.pi)) / (2 * np.pi * 0.05)
    return np.array(np.broadcast_to(0.5 * (1 + np.tanh(level)), (grid.batch, *grid.shape))[:, None])


def relative(u: Array, exact: Array) -> float:
    return float(np.linalg.norm(u - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("shape", [(16,), (15, 8), (8, 10, 9)])
def test_fourier_is_exact_for_a_mode_of_advection_diffusion(shape: tuple[int, ...]) -> None:
    setting = make_setting(shape, batch=3, lengths=np.arange(1.0, len(shape) + 1))
    mode = np.array([2, -1, 1])[: len(shape)]
    k = 2 * np.pi * mode / setting.grid.lengths
    time = np.array([[0.0, 0.1], [0.05, 0.3], [0.2, 0.2]])

    def wave(t: Array) -> Array:
        phase = -(k * setting.per_axis("c")).sum(axis=1) * t
        angle = phase.reshape((-1,) + (1,) * len(shape))
        for axis, x in enumerate(setting.grid.centres()):
            angle = angle + k[:, axis].reshape((-1,) + (1,) * len(shape)) * x
        decay = np.exp(-(k**2 * setting.per_axis("D")).sum(axis=1) * t)
        return np.asarray(0.3 + decay.reshape((-1,) + (1,) * len(shape)) * np.cos(angle))[:, None]

    out = FourierReference(LINEAR).solve(wave(np.zeros(3)), setting, time)
    for index in range(2):
        np.testing.assert_allclose(out[:, index], wave(time[:, index]), atol=2e-14)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("processes", [{"reaction"}, {"advection", "reaction"}, ALL])
def test_uniform_state_follows_the_logistic_curve(solver: Solver, processes: set[str] | frozenset[str]) -> None:
    setting = make_setting((8, 5), batch=4)
    start = np.array([0.0, 0.2, 1.0, 1.5])
    times = np.tile([0.2, 3.0], (4, 1))
    growth = np.exp(setting.param("r")[:, None] * times)
    exact = start[:, None] * growth / (1 + start[:, None] * (growth - 1))
    u = np.broadcast_to(start[:, None, None, None], (4, 1, 8, 5))
    out = solver(frozenset(processes)).solve(u, setting, times)
    np.testing.assert_allclose(out, np.broadcast_to(exact[..., None, None, None], out.shape), rtol=2e-6, atol=1e-12)


def fisher_front(x: Array, t: float, r: float, D: float) -> Array:
    return np.asarray((1 + np.exp(np.sqrt(r / (6 * D)) * x - 5 * r * t / 6)) ** -2)


def test_fourier_follows_a_pair_of_fisher_fronts() -> None:
    setting = make_setting((128,), lengths=200.0, c=3.0, D=1.0, r=1.0)

    def pair(grid: Grid, t: float) -> Array:
        x = (grid.centres()[0] - 100 - 3 * t + 100) % 200 - 100
        return (fisher_front(x - 50, t, 1, 1) * fisher_front(-x - 50, t, 1, 1))[:, None]

    reference = FourierReference(ALL)
    out = reference.trajectory(lambda grid: pair(grid, 0.0), setting, np.array([[2.0]]))
    fine = reference.refined(setting)
    exact = restrict(cell_averages(pair(fine.grid, 2.0), fine), (128,))
    assert relative(out[:, 1], exact) < 1e-7


def test_finite_volumes_follow_a_fisher_front_between_walls() -> None:
    setting = make_setting((64,), lengths=100.0, boundary="wall", D=1.0, r=1.0)

    def front(grid: Grid, t: float) -> Array:
        return fisher_front(grid.centres()[0] - 40, t, 1, 1)[:, None]

    reference = FiniteVolumeReference(frozenset({"diffusion", "reaction"}))
    out = reference.trajectory(lambda grid: front(grid, 0.0), setting, np.array([[3.0]]))
    exact = reference.averages(
        reference.initial_state(lambda grid: front(grid, 3.0), setting), setting, np.zeros((1, 1))
    )
    assert relative(out[:, 1], exact[:, 0]) < 2e-6


@pytest.mark.parametrize("shape", [(32,), (32, 24), (12, 10, 8)])
def test_fourier_and_finite_volumes_agree(shape: tuple[int, ...]) -> None:
    setting = make_setting(shape, batch=3, seed=4)
    times = np.tile([0.05, 0.2], (3, 1))
    truths = [solver(ALL).trajectory(gaussian, setting, times) for solver in SOLVERS]
    assert relative(truths[1], truths[0]) < (2e-6 if min(shape) > 12 else 1e-4)


@pytest.mark.parametrize("initial", [gaussian, fronts])
def test_the_truth_of_the_paper_problem_is_good_to_seven_digits(initial: InitialCondition) -> None:
    setting = make_setting((32, 32), batch=4, seed=2)
    hardest = make_setting((32, 32), c=1.5, D=0.2, r=1.0)
    assert error_estimate(FourierReference(ALL), initial, setting, np.full((4, 1), 0.2)) < 1e-7
    assert error_estimate(FourierReference(ALL), initial, hardest, np.full((1, 1), 0.2)) < 1e-7


def test_error_estimate_uses_at_most_32_samples_and_sees_a_coarse_run() -> None:
    setting = make_setting((16,), batch=40)
    times = np.full((40, 1), 0.2)
    fine = error_estimate(FiniteVolumeReference(ALL, 4), gaussian, setting, times)
    coarse = error_estimate(FiniteVolumeReference(ALL, 1), gaussian, setting, times)
    few = error_estimate(FiniteVolumeReference(ALL, 4), gaussian, setting.take(slice(0, 32)), times[:32])
    assert fine == few
    assert fine < 1e-4 < coarse


def test_error_estimate_sees_the_error_of_a_single_step() -> None:
    setting = make_setting((32,), r=1.0)
    reference = FourierReference(frozenset({"reaction"}), step=1.0)
    u = reference.initial_state(gaussian, setting)
    exact = u * np.exp(0.2) / (1 + u * (np.exp(0.2) - 1))
    error = relative(reference.solve(u, reference.refined(setting), np.array([[0.2]]))[:, 0], exact)
    assert error_estimate(reference, gaussian, setting, np.array([[0.2]])) == pytest.approx(error, rel=0.2)


def test_the_name_of_a_reference_has_its_processes_in_order() -> None:
    assert str(FiniteVolumeReference(ALL, 2)) == (
        "FiniteVolumeReference(advection+diffusion+reaction, refinement=2, steps=6)"
    )


def test_etdrk4_has_order_four() -> None:
    setting = make_setting((64,), c=1.0, D=0.1, r=2.0)
    u = gaussian(setting.grid)
    spectrum = Spectrum(setting.grid, Coefficients.of(setting, ALL), reacting=True)
    runs = [spectrum.advanced(u, np.full((1, n), 0.4 / n), np.array([0.4])) for n in (16, 32, 64, 512)]
    errors = [relative(run, runs[-1]) for run in runs[:-1]]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((orders > 3.7) & (orders < 4.3))


def test_phi_functions_against_contour_integrals() -> None:
    z = -np.concatenate([[0.0], np.logspace(-12, 3, 61), [0.999999, 1.0, 1.000001]])
    circle = z[:, None] + np.exp(2j * np.pi * (np.arange(64) + 0.5) / 64)
    integrands = (
        (np.exp(circle) - 1) / circle,
        (np.exp(circle) - 1 - circle) / circle**2,
        (np.exp(circle) - 1 - circle - circle**2 / 2) / circle**3,
    )
    for phi, integrand in zip(phi_functions(z, np.exp(z)), integrands, strict=True):
        np.testing.assert_allclose(phi, integrand.mean(axis=1).real, rtol=2e-13)


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    refinement=st.integers(1, 5),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=60, deadline=None)
def test_interpolation_keeps_every_cell_average(shape: tuple[int, ...], refinement: int, seed: int) -> None:
    lengths = [1.0, 2.0, 3.0][: len(shape)]
    setting = Setting(Grid.box(shape, lengths, batch=2), (Channel("u"),), {})
    fine = setting.with_grid(setting.grid.refined(refinement))
    u = np.random.default_rng(seed).normal(size=(2, 1, *shape))
    points = interpolate(u, setting, refinement)
    assert points.shape == (2, 1, *fine.grid.shape)
    np.testing.assert_allclose(restrict(cell_averages(points, fine), shape), u, atol=1e-12)
    np.testing.assert_allclose(point_values(cell_averages(points, fine), fine), points, atol=1e-11)


def test_interpolation_is_exact_for_a_resolved_function() -> None:
    setting = make_setting((32, 31))
    fine = setting.with_grid(setting.grid.refined(4))

    def smooth(grid: Grid) -> Array:
        x, y = grid.centres()
        return np.asarray(np.exp(np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y)))[:, None]

    averages = restrict(cell_averages(smooth(fine.grid), fine), (32, 31))
    np.testing.assert_allclose(interpolate(averages, setting, 4), smooth(fine.grid), atol=1e-12)


@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
@pytest.mark.parametrize("cells", [5, 6, 17])
def test_prolongation_keeps_every_cell_average(boundary: str | tuple[str, ...], cells: int) -> None:
    u = np.random.default_rng(0).normal(size=(1, 1, cells))
    fine = u @ prolongation(cells, boundary, 3).T
    np.testing.assert_allclose(restrict(fine, (cells,)), u, atol=1e-13)


@pytest.mark.parametrize("boundary", ["periodic", "wall", ("wall", "periodic")])
@pytest.mark.parametrize("processes", [{"advection"}, {"diffusion"}, LINEAR])
def test_closed_boxes_keep_their_mass(boundary: str | tuple[str, ...], processes: set[str] | frozenset[str]) -> None:
    setting = make_setting((12, 10), batch=3, boundary=boundary)
    u = np.random.default_rng(1).uniform(size=(3, 1, 12, 10))
    solvers = SOLVERS if boundary == "periodic" else SOLVERS[1:]
    for solver in solvers:
        reference = solver(frozenset(processes))
        assert reference.conserves == ALL_CHANNELS
        out = reference.flow(u, np.array([0.0, 0.2, 1.0]), setting)
        np.testing.assert_allclose(out.mean(axis=(1, 2, 3)), u.mean(axis=(1, 2, 3)), rtol=1e-12)


def test_wind_against_a_wall_settles_in_the_exponential_layer() -> None:
    setting = make_setting((20,), boundary="wall", c=1.0, D=0.1)
    reference = FiniteVolumeReference(LINEAR)
    out = reference.flow(np.ones((1, 1, 20)), np.array([20.0]), setting)
    faces = np.exp(10 * np.linspace(0, 1, 21))
    exact = 20 * np.diff(faces) / (faces[-1] - faces[0])
    assert relative(out[0, 0], exact) < 1e-5


def test_outflow_lets_a_pulse_leave() -> None:
    setting = make_setting((40,), boundary="outflow", c=-1.0, D=0.01)
    narrow = np.exp(-(((setting.grid.centres()[0] - 0.5) / 0.08) ** 2))[:, None]
    out = FiniteVolumeReference(LINEAR).flow(narrow, np.array([1.5]), setting)
    assert np.abs(out).max() < 1e-3 * narrow.max()


@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
@pytest.mark.parametrize("velocity", [0.7, -0.7])
def test_lawson_steps_against_scipy(boundary: str | tuple[str, ...], velocity: float) -> None:
    setting = make_setting((24,), boundary=boundary, c=velocity, D=0.1, r=1.0)
    reference = FiniteVolumeReference(ALL, steps=48)
    u = reference.initial_state(gaussian, make_setting((6,), boundary=boundary))
    forward, backward, diffusion = axis_rates(24, boundary)
    matrix = 0.7 * 24 * (forward if velocity > 0 else backward) + 0.1 * 24**2 * diffusion

    def rate(_: float, v: Array) -> Array:
        inner = np.gradient(v) if boundary != "periodic" else (np.roll(v, -1) - np.roll(v, 1)) / 2
        if boundary != "periodic":
            cubic = np.array([4.0, -6.0, 4.0, -1.0])
            inner[0], inner[-1] = (v[1] - cubic @ v[:4]) / 2, (cubic @ v[:-5:-1] - v[-2]) / 2
        return np.asarray(matrix @ v + v - v**2 - inner**2 / 12)

    exact = solve_ivp(rate, (0.0, 0.3), u[0, 0], method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    assert relative(reference.solve(u, setting, np.array([[0.3]]))[0, 0, 0], exact) < 2e-7


@pytest.mark.parametrize("scale", [0.0, 0.1, 30.0, 3000.0])
def test_exponential_of_matrices(scale: float) -> None:
    random = np.random.default_rng(0)
    matrices = np.stack([scale * axis_rates(33, name)[2] for name in ("periodic", "wall")])
    matrices += scale / 100 * random.normal(size=(2, 1, 1)) * axis_rates(33, "wall")[0]
    np.testing.assert_allclose(exponential(matrices), expm(matrices), atol=1e-12)


@pytest.mark.parametrize(("m", "k", "n"), [(1, 256, 256), (129, 128, 96), (64, 300, 7)])
def test_product_in_tiles(m: int, k: int, n: int) -> None:
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, m, k)), random.normal(size=(2, k, n))
    np.testing.assert_allclose(product(left, right), left @ right, atol=1e-11)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(7,), (16,), (65,), (9, 6), (16, 16), (5, 4, 6)])
@pytest.mark.parametrize("processes", [LINEAR, ALL])
def test_a_sample_does_not_see_its_batch_or_the_threads(
    solver: Solver, shape: tuple[int, ...], processes: frozenset[str]
) -> None:
    batch = 9
    setting = make_setting(shape, batch=batch)
    random = np.random.default_rng(3)
    u = random.uniform(size=(batch, 1, *shape))
    times = np.sort(random.uniform(0, 0.3, (batch, 2)), axis=1)
    times[4, 0] = 0.0
    together = solver(processes, workers=3).solve(u, setting, times)
    alone = solver(processes, workers=1)
    for samples in ([0], [4], [8, 2], [7, 6, 5, 4, 3]):
        index = np.array(samples)
        assert np.array_equal(alone.solve(u[index], setting.take(index), times[index]), together[index])


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_time_changes_nothing(solver: Solver) -> None:
    setting = make_setting((6, 5), batch=2)
    u = np.random.default_rng(0).uniform(size=(2, 1, 6, 5))
    reference = solver(ALL)
    assert np.array_equal(reference.solve(u, setting, np.zeros((2, 2))), np.stack([u, u], axis=1))
    assert np.array_equal(reference.flow(u, np.array([0.0, 0.1]), setting)[0], u[0])
    assert not np.array_equal(reference.flow(u, np.array([0.0, 0.1]), setting)[1], u[1])


@pytest.mark.parametrize("solver", SOLVERS)
def test_intervals_add_up(solver: Solver) -> None:
    setting = make_setting((16,), batch=2)
    u = gaussian(setting.grid)
    reference = solver(ALL)
    several = reference.solve(u, setting, np.tile([0.05, 0.05, 0.2], (2, 1)))
    assert np.array_equal(several[:, 0], several[:, 1])
    assert relative(several[:, 2], reference.solve(u, setting, np.full((2, 1), 0.2))[:, 0]) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_reference_is_a_primitive(solver: Solver) -> None:
    setting = make_setting((16, 16), batch=3)
    reference: Reference = solver(ALL)
    assert isinstance(reference, Primitive)
    assert reference.advances == ALL
    assert reference.order == 4
    assert reference.conserves == frozenset()
    assert not reference.reversible
    assert FourierReference(LINEAR).order == EXACT
    averages = reference.trajectory(gaussian, setting, np.full((3, 1), 0.1))
    flow = reference.flow(averages[:, 0].astype(np.float32), np.full(3, 0.1), setting)
    assert flow.dtype == np.float32
    assert relative(flow, averages[:, 1]) < 2e-3
    work = reference.work(averages[:, 0], np.array([0.0, 0.1, 1.0]), setting)
    assert np.all(work > 0)
    assert work[2] > work[1] > work[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_errors_name_what_is_wrong(solver: Solver) -> None:
    setting = make_setting((8,), batch=2)
    u = np.full((2, 1, 8), 0.5)
    times = np.ones((2, 1))
    incomplete = Setting(setting.grid, setting.channels, {"cx": np.ones(2), "Dx": np.ones(2)})
    with pytest.raises(InvalidInputError, match="parameter 'r' is missing"):
        solver(ALL).solve(u, incomplete, times)
    with pytest.raises(InvalidInputError, match="times of sample 1"):
        solver(ALL).solve(u, setting, np.array([[0.1, 0.2], [0.2, 0.1]]))
    with pytest.raises(InvalidInputError, match=r"times have shape \(2,\)"):
        solver(ALL).solve(u, setting, np.ones(2))
    with pytest.raises(InvalidInputError, match="diffusivity D of sample 0 is negative"):
        solver(ALL).solve(u, make_setting((8,), batch=2, D=-0.1), times)
    with pytest.raises(NonFiniteStateError, match="sample 0: the reference solution became NaN or infinite"):
        solver(ALL).solve(u - 2, make_setting((8,), batch=2, r=1.0), times)
    with pytest.raises(InvalidInputError, match="fastest rate of sample 1"):
        solver(ALL).solve(u * np.array([1.0, 1e9])[:, None, None], setting, times)
    with pytest.raises(UnknownNameError, match="did you mean advection"):
        solver(frozenset({"advecton"}))
    with pytest.raises(InvalidInputError, match="at least one"):
        solver(frozenset())
    with pytest.raises(InvalidInputError, match="refinement is 0"):
        solver(ALL, 0)


def test_fourier_refuses_walls() -> None:
    setting = make_setting((8, 8), boundary=("periodic", "wall"))
    with pytest.raises(InvalidInputError, match="boundary along y is wall"):
        FourierReference(ALL).solve(np.ones((1, 1, 8, 8)), setting, np.ones((1, 1)))


def test_finite_volumes_refuse_vectors() -> None:
    grid = Grid.box((8,))
    setting = Setting(grid, (Channel("u", normal=0),), {"Dx": np.ones(1)})
    with pytest.raises(InvalidInputError, match="channel 'u' is not a scalar"):
        FiniteVolumeReference(frozenset({"diffusion"})).solve(np.ones((1, 1, 8)), setting, np.ones((1, 1)))
