"""Shallow water: contract, analytic solutions, invariants, symmetries, dry beds and bad input."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numba
import numpy as np
import pytest
from scipy.optimize import brentq

from hycop.conformance import check_primitive
from hycop.errors import HyCOPError, InvalidInputError
from hycop.grid import Array, Grid, restrict
from hycop.kernels.shallow_water import _flow_by_rows_of, _flow_of, _tendencies_of
from hycop.primitive import Primitive
from hycop.primitives import PRIMITIVES, GravityWave, MomentumAdvection, ShallowWater
from hycop.primitives.shallow_water import Reconstruction
from hycop.query import Channel, Setting
from tests.helpers import CHANNELS, SIGNS, G, relative

KINDS: tuple[type[GravityWave] | type[MomentumAdvection] | type[ShallowWater], ...] = (
    GravityWave,
    MomentumAdvection,
    ShallowWater,
)

OPTIONS: tuple[tuple[Reconstruction, float], ...] = (
    ("weno5", 0.5),
    ("muscl", 0.5),
    ("hancock", 0.9),
    ("weno5-hancock", 0.9),
)

every_solver = pytest.mark.parametrize(
    "solver",
    [kind(*each) for kind in KINDS for each in OPTIONS],
    ids=str,
)


def box(shape: tuple[int, ...], boundary: str | tuple[str, ...] = "periodic", lengths: float = 10.0) -> Setting:
    return Setting(Grid.box(shape, lengths, boundary), CHANNELS[: len(shape) + 1], {"g": G})


def random_box(
    seed: int, shape: tuple[int, ...], boundary: str | tuple[str, ...] = "periodic", batch: int = 3, froude: float = 0.5
) -> tuple[Array, Setting]:
    """Rough states: depths and velocities that differ from cell to cell, in boxes of their own lengths."""
    rng = np.random.default_rng(seed)
    axes = len(shape)
    names = (boundary,) * axes if isinstance(boundary, str) else boundary
    grid = Grid(shape, rng.uniform(5.0, 15.0, (batch, axes)), names)
    h = rng.uniform(0.5, 2.0, (batch, *shape))
    speed = froude * np.sqrt(G * h)
    momenta = [h * speed * rng.uniform(-1.0, 1.0, h.shape) for _ in range(axes)]
    return np.stack([h, *momenta], axis=1), Setting(grid, CHANNELS[: axes + 1], {"g": rng.uniform(9.0, 11.0, batch)})


# ---------------------------------------------------------------------------------------- the contract


@every_solver
def test_conforms(solver: Primitive) -> None:
    check_primitive(solver, seed=1).raise_if_failed()


@every_solver
def test_is_found_pickled_and_stored(solver: Primitive) -> None:
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert PRIMITIVES[type(solver).__name__] is type(solver)


@every_solver
@pytest.mark.parametrize("shape", [(37,), (9, 14), (6, 5)])
def test_float32_stays_float32(solver: Primitive, shape: tuple[int, ...]) -> None:
    u, setting = random_box(0, shape)
    duration = np.full(3, 0.05)
    single = solver.flow(u.astype(np.float32), duration, setting)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, solver.flow(u, duration, setting), atol=2e-4)


@every_solver
def test_bits_depend_on_neither_batch_nor_threads(solver: Primitive) -> None:
    """Whole samples to a thread, rows of one sample to a thread, or one thread for all: the same bits."""
    u, setting = random_box(1, (96, 130), ("wall", "periodic"))
    duration = np.array([0.1, 0.15, 0.12])
    together = solver.flow(u, duration, setting)
    threads = numba.get_num_threads()
    for sample in range(3):
        one = slice(sample, sample + 1)
        for number in {1, threads}:
            numba.set_num_threads(number)
            alone = solver.flow(u[one], duration[one], setting.take(one))
            numba.set_num_threads(threads)
            assert np.array_equal(alone[0], together[sample])


@every_solver
def test_work_counts_sub_steps(solver: Primitive) -> None:
    u, setting = random_box(2, (8, 9))
    short, long = (solver.work(u, np.full(3, tau), setting) for tau in (1e-9, 1.0))
    stages = {"weno5": 3, "muscl": 2}.get(solver.reconstruction, 1)  # type: ignore[attr-defined]
    assert (short == stages * 3 * 72).all() and (long > 5 * short).all() and (long % short == 0).all()
    u[1, 0] = np.nan
    assert np.isfinite(solver.work(u, np.full(3, 1.0), setting)).all()


# ---------------------------------------------------------------------------------- analytic solutions


@pytest.mark.parametrize("kind", [GravityWave, ShallowWater])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
@pytest.mark.parametrize("shape", [(64,), (64, 5), (5, 64)])
def test_standing_wave(kind: Callable[[], Primitive], boundary: str, shape: tuple[int, ...]) -> None:
    """h = H + ε cos(kx) cos(ωt) with ω = k√(gH), after one and after half a period."""
    setting, along = box(shape, boundary), int(np.argmax(shape))
    x, k, depth, size = setting.grid.centres()[along], 2 * np.pi / 10.0, 1.5, 1e-5
    shape_of_wave = np.broadcast_to(np.cos(k * x), (1, *shape))
    u = np.zeros((1, 1 + len(shape), *shape))
    u[:, 0] = depth + size * shape_of_wave
    period = 2 * np.pi / (k * np.sqrt(G * depth))
    for time, sign in ((period / 2, -1.0), (period, 1.0)):
        out = kind().flow(u, np.array([time]), setting)
        np.testing.assert_allclose(out[:, 0] - depth, sign * size * shape_of_wave, atol=1e-3 * size)
        assert np.abs(out[:, 1:]).max() < 5e-3 * size * np.sqrt(G * depth)


def exact_averages(depth: Callable[[Array], Array], setting: Setting, time: float) -> Array:
    """Cell averages of a self-similar depth(x/t) about the middle of the line."""
    fine = setting.grid.refined(50)
    return restrict(depth((fine.centres()[0] - 5.0) / time)[:, None], setting.grid.shape)[:, 0]


def stoker(left: float, right: float) -> Callable[[Array], Array]:
    """Dam break onto water at rest: rarefaction, plateau and shock (Stoker, Water Waves, 1957)."""
    c0 = np.sqrt(G * left)

    def mismatch(h: float) -> float:
        return 2 * (c0 - np.sqrt(G * h)) - (h - right) * np.sqrt(0.5 * G * (h + right) / (h * right))

    h = brentq(mismatch, right, left)
    u = 2 * (c0 - np.sqrt(G * h))
    shock = h * u / (h - right)

    def depth(xi: Array) -> Array:
        fan = (2 * c0 - xi) ** 2 / (9 * G)
        water = np.where(xi < -c0, left, np.where(xi < u - np.sqrt(G * h), fan, h))
        return np.where(xi > shock, right, water)

    return depth


def ritter(left: float) -> Callable[[Array], Array]:
    """Dam break onto a dry bed."""
    c0 = np.sqrt(G * left)
    return lambda xi: np.where(xi < -c0, left, np.where(xi > 2 * c0, 0.0, (2 * c0 - xi) ** 2 / (9 * G)))


@pytest.mark.parametrize("scheme", [name for name, _ in OPTIONS])
@pytest.mark.parametrize(
    ("left", "right", "limit"), [(2.0, 1.0, 1e-2), (1.0, 0.1, 2e-2), (1.0, 0.0, 1e-2), (0.0, 1.0, 1e-2)]
)
def test_dam_breaks(scheme: str, left: float, right: float, limit: float) -> None:
    setting, time = box((200,), "outflow"), 0.6
    (x,) = setting.grid.centres()
    u = np.stack([np.where(x < 5.0, left, right), np.zeros_like(x)], axis=1)
    out = ShallowWater(scheme).flow(u, np.array([time]), setting)  # type: ignore[arg-type]
    deep, shallow = max(left, right), min(left, right)
    solution = stoker(deep, shallow) if shallow else ritter(deep)
    truth = exact_averages(solution if left > right else lambda xi: solution(-xi), setting, time)
    assert relative(out[:, 0], truth) < limit
    assert out[:, 0].min() >= 0.0
    assert out[:, 0].sum() == pytest.approx(u[:, 0].sum(), rel=1e-12)


def test_momentum_is_advected_by_itself() -> None:
    """m_t + (m²/h)_x = 0 over constant h is Burgers' equation of speed 2m/h: a shock moves at (m₀ + m₁)/h."""
    setting = box((400,), "outflow")
    (x,) = setting.grid.centres()
    h = np.full_like(x, 2.0)
    out = MomentumAdvection().flow(np.stack([h, np.where(x < 3.0, 3.0, 1.0)], axis=1), np.array([1.5]), setting)
    assert np.array_equal(out[:, 0], h)
    front = 3.0 + 1.5 * (3.0 + 1.0) / 2.0
    np.testing.assert_allclose(out[0, 1].mean() * 10.0, 3.0 * front + 1.0 * (10.0 - front), rtol=1e-10)
    assert (np.abs(out[0, 1] - np.where(x[0] < front, 3.0, 1.0)) > 0.05).sum() <= 4


def test_transverse_momentum_is_carried_along() -> None:
    """hv over constant h and hu moves with hu/h, and gravity waves along x leave it alone."""
    setting = box((80, 5))
    x = np.broadcast_to(setting.grid.centres()[0], (1, 80, 5))
    h, hu = np.full_like(x, 2.0), np.full_like(x, 3.0)

    def state(time: float) -> Array:
        return np.stack([h, hu, 0.05 * np.sin(2 * np.pi * (x - 1.5 * time) / 10.0)], axis=1)

    out = MomentumAdvection().flow(state(0.0), np.array([2.0]), setting)
    assert np.abs(out - state(2.0))[:, :2].max() < 1e-10
    assert np.abs(out - state(2.0))[:, 2].max() < 1e-4
    bump = np.stack([1.0 + 0.3 * np.sin(2 * np.pi * x / 10.0), hu, np.cos(2 * np.pi * x / 10.0)], axis=1)
    np.testing.assert_allclose(GravityWave().flow(bump, np.array([0.5]), setting)[:, 2], bump[:, 2], atol=1e-14)


# ------------------------------------------------------------------------------------------ invariants


@every_solver
@pytest.mark.parametrize("shape", [(50,), (13, 8)])
def test_keeps_mass_and_momentum_on_periodic_boxes(solver: Primitive, shape: tuple[int, ...]) -> None:
    u, setting = random_box(3, shape)
    drift = (solver.flow(u, np.full(3, 0.5), setting) - u).sum(axis=tuple(range(2, u.ndim)))
    assert np.abs(drift).max() < 1e-12 * np.abs(u).sum() / 3


@every_solver
@pytest.mark.parametrize("boundary", [("wall", "wall"), ("periodic", "wall"), ("wall", "periodic")])
def test_keeps_mass_between_walls(solver: Primitive, boundary: tuple[str, ...]) -> None:
    u, setting = random_box(4, (12, 9), boundary)
    drift = (solver.flow(u, np.full(3, 0.5), setting) - u)[:, 0].sum(axis=(1, 2))
    assert np.abs(drift).max() < 1e-12 * u[:, 0].sum()


@every_solver
@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
def test_a_lake_stays_at_rest(solver: Primitive, boundary: str) -> None:
    u = np.zeros((1, 3, 7, 10))
    u[:, 0] = 1.7
    np.testing.assert_allclose(solver.flow(u, np.array([100.0]), box((7, 10), boundary)), u, rtol=0, atol=1e-12)


@every_solver
@pytest.mark.parametrize("samples", [500, pytest.param(5000, marks=pytest.mark.validate)])
@pytest.mark.parametrize("froude", [0.3, 3.0])
def test_depth_is_positive_or_the_sample_lost(solver: Primitive, froude: float, samples: int) -> None:
    """States of white noise; slow ones are all solved, and the unsplit solver solves fast ones too."""
    rng = np.random.default_rng(5)
    shape = (samples, 6, 5)
    h = rng.uniform(0.01, 3.0, shape)
    speed, angle = rng.uniform(0.0, froude, shape) * np.sqrt(G * h), rng.uniform(0.0, 2 * np.pi, shape)
    u = np.stack([h, h * speed * np.cos(angle), h * speed * np.sin(angle)], axis=1)
    setting = Setting(Grid.box(shape[1:], 1.0, batch=samples), CHANNELS, {"g": G})
    out = solver.flow(u, np.full(samples, 0.05), setting)
    lost = np.isnan(out).any(axis=(1, 2, 3))
    assert np.isnan(out[lost]).all() and (out[~lost, 0] > 0.0).all()
    if froude < 1.0 or isinstance(solver, ShallowWater):
        assert not lost.any()


@pytest.mark.parametrize("scheme", [name for name, _ in OPTIONS])
def test_a_bed_with_dry_patches(scheme: str) -> None:
    rng = np.random.default_rng(6)
    u = np.zeros((500, 3, 8, 7))
    u[:, 0] = rng.uniform(0.0, 2.0, (500, 8, 7)) * (rng.random((500, 8, 7)) > 0.5)
    u[:, 1:] = u[:, :1] * rng.uniform(-3.0, 3.0, (500, 2, 8, 7))
    setting = Setting(Grid.box((8, 7), 1.0, "wall", batch=500), CHANNELS, {"g": G})
    out = ShallowWater(scheme).flow(u, np.full(500, 0.3), setting)  # type: ignore[arg-type]
    assert np.isfinite(out).all() and out[:, 0].min() >= 0.0
    np.testing.assert_allclose(out[:, 0].sum(axis=(1, 2)), u[:, 0].sum(axis=(1, 2)), rtol=1e-12)
    nothing = np.zeros((1, 3, 8, 7))
    assert np.array_equal(ShallowWater().flow(nothing, np.array([1.0]), box((8, 7))), nothing)


# ------------------------------------------------------------------------------------------ symmetries


@every_solver
@pytest.mark.parametrize("boundary", [("periodic", "wall"), ("outflow", "periodic"), ("wall", "outflow")])
def test_knows_no_direction(solver: Primitive, boundary: tuple[str, str]) -> None:
    """The same with the axes exchanged, and in a mirror."""
    u, setting = random_box(7, (11, 8), boundary)
    duration, grid = np.full(3, 0.2), setting.grid
    out = solver.flow(u, duration, setting)
    turned = Grid(grid.shape[::-1], grid.lengths[:, ::-1], grid.boundary[::-1])
    swapped = solver.flow(u[:, [0, 2, 1]].swapaxes(2, 3).copy(), duration, setting.with_grid(turned))
    np.testing.assert_allclose(swapped[:, [0, 2, 1]].swapaxes(2, 3), out, atol=1e-11)
    for axis in (0, 1):
        sign = SIGNS[:, axis].reshape(1, 3, 1, 1)
        image = solver.flow(sign * np.flip(u, 2 + axis), duration, setting)
        np.testing.assert_allclose(sign * np.flip(image, 2 + axis), out, atol=1e-11)


@pytest.mark.parametrize("reconstruction", ["weno5", "muscl", "hancock", "weno5-hancock"])
def test_a_round_dam_on_a_dry_bed_stays_its_mirror_image_to_the_bit(reconstruction: str) -> None:
    """A flow that is unstable at its edge, where a rounding error of one side would grow."""
    x, y = np.meshgrid(*[(np.arange(24) - 11.5) / 24] * 2, indexing="ij")
    u = np.zeros((1, 3, 24, 24))
    u[0, 0] = np.where(x * x + y * y < 0.06, 2.0, 0.0)
    setting = Setting(Grid.box((24, 24), 10.0), CHANNELS, {"g": np.array([9.81])})
    out = ShallowWater(reconstruction).flow(u, np.array([1.0]), setting)
    for axis in (0, 1):
        np.testing.assert_array_equal(out[:, 0], np.flip(out[:, 0], 1 + axis))


@every_solver
@pytest.mark.parametrize("axis", [0, 1])
def test_walls_mirror(solver: Primitive, axis: int) -> None:
    """A box between walls is half of a periodic one that holds its mirror image too."""
    names = ("wall", "periodic") if axis == 0 else ("periodic", "wall")
    u, setting = random_box(8, (10, 9), names)
    sign = SIGNS[:, axis].reshape(1, 3, 1, 1)
    both = np.concatenate([u, sign * np.flip(u, 2 + axis)], axis=2 + axis)
    scale = np.where(np.arange(2) == axis, 2.0, 1.0)
    double = setting.with_grid(Grid(both.shape[2:], setting.grid.lengths * scale, ("periodic", "periodic")))
    duration = np.full(3, 0.4)
    half = np.take(solver.flow(both, duration, double), np.arange(u.shape[2 + axis]), axis=2 + axis)
    np.testing.assert_allclose(solver.flow(u, duration, setting), half, atol=1e-11)


@every_solver
@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("n", [5, 17])
def test_a_line_in_the_plane(solver: Primitive, boundary: str, along: int, n: int) -> None:
    """A state that is constant along the other axis follows the line; by sub-steps of its own, so not to rounding."""
    u, setting = random_box(9, (n,), boundary)
    shape, names = ((n, 5), (boundary, "periodic")) if along == 0 else ((5, n), ("periodic", boundary))
    lengths = np.full((3, 2), 1e9)
    lengths[:, along] = setting.grid.lengths[:, 0]
    plane = Setting(Grid(shape, lengths, names), CHANNELS, setting.params)
    wide = np.zeros((3, 3, *shape))
    wide[:, 0] = np.expand_dims(u[:, 0], 2 - along)
    wide[:, 1 + along] = np.expand_dims(u[:, 1], 2 - along)
    out = solver.flow(wide, np.full(3, 0.2), plane)
    line = solver.flow(u, np.full(3, 0.2), setting)
    np.testing.assert_allclose(out[:, 0], np.broadcast_to(np.expand_dims(line[:, 0], 2 - along), out[:, 0].shape))
    assert np.abs(out[:, 1 + along] - np.expand_dims(line[:, 1], 2 - along)).max() < 1e-6
    assert np.abs(out[:, 2 - along]).max() < 1e-6


def test_outflow_lets_waves_out() -> None:
    setting = box((100,), "outflow")
    (x,) = setting.grid.centres()
    u = np.stack([1.0 + 0.1 * np.exp(-((x - 5.0) ** 2)), np.zeros_like(x)], axis=1)
    out = ShallowWater().flow(u, np.array([4.0]), setting)
    np.testing.assert_allclose(out[:, 0], 1.0, atol=1e-3)


# ------------------------------------------------------------------------------------------- bad input


@every_solver
@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_one_bad_sample_is_lost_alone(solver: Primitive, bad: float) -> None:
    u, setting = random_box(10, (8, 9))
    spoilt = u.copy()
    spoilt[1, 0, 3, 3] = bad
    duration = np.full(3, 0.1)
    out = solver.flow(spoilt, duration, setting)
    assert np.isnan(out[1]).all()
    assert np.array_equal(out[[0, 2]], solver.flow(u, duration, setting)[[0, 2]])


@every_solver
def test_refuses_what_is_not_shallow_water(solver: Primitive) -> None:
    u, setting = random_box(11, (8, 9))
    for channels in (tuple(map(Channel, "abc")), (CHANNELS[0], CHANNELS[2], CHANNELS[1])):
        wrong = Setting(setting.grid, channels, setting.params)
        for method in (solver.flow, solver.work):
            with pytest.raises(InvalidInputError, match="shallow water has h, hu"):
                method(u, np.full(3, 0.1), wrong)
    with pytest.raises(InvalidInputError, match="parameter 'g' is missing"):
        solver.flow(u, np.full(3, 0.1), Setting(setting.grid, CHANNELS, {}))
    with pytest.raises(InvalidInputError, match="parameter 'g' is not positive for sample 0"):
        solver.flow(u, np.full(3, 0.1), Setting(setting.grid, CHANNELS, {"g": -1.0}))


@pytest.mark.parametrize("kind", KINDS)
def test_refuses_bad_options(kind: Callable[..., Primitive]) -> None:
    for options in ({"cfl": 0.0}, {"cfl": 1.5}, {"reconstruction": "weno7"}):
        with pytest.raises(HyCOPError, match=r"cfl is|weno7"):
            kind(**options)


def test_compiled_kernels_have_files_of_their_own() -> None:
    """Numba names them after the function, and processes that compile at once must not write into the same one."""
    made = [make(system, kind) for make in (_flow_of, _flow_by_rows_of) for system in range(3) for kind in (0, 1)]
    made += [_tendencies_of(system, kind) for system in range(3) for kind in (0, 1)]
    assert len({kernel.py_func.__qualname__ for kernel in made}) == len(made)
