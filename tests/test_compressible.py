"""Primitives of compressible flow: contract, analytic solutions, conservation and bad input."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest

from hycop.channels import gas_channels
from hycop.conformance import check_primitive
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError
from hycop.execution import run
from hycop.grid import Array, Grid
from hycop.kernels import compressible, density_weighted, threads
from hycop.primitive import Primitive
from hycop.primitives import (
    CentralEuler,
    CompressibleNavierStokes,
    FiniteVolumeGasViscosity,
    MusclEuler,
    SqrtDensityViscosity,
)
from hycop.query import Channel, Query, Setting
from hycop.schemes import splitting
from tests.helpers import CONSERVATIVE, SHOCKS, SPECTRAL, conserved, nrmse, primitive_fields, setting_of

KINDS = (CentralEuler, MusclEuler, SqrtDensityViscosity, FiniteVolumeGasViscosity, CompressibleNavierStokes)
every_kind = pytest.mark.parametrize("kind", KINDS)
euler_kinds = pytest.mark.parametrize("kind", [CentralEuler, MusclEuler])
viscous_kinds = pytest.mark.parametrize("kind", [SqrtDensityViscosity, FiniteVolumeGasViscosity])


def random_flow(seed: int, n: int, batch: int, time: float = 0.05) -> Query:
    """Random fields as PDEBench draws them, without windows: M = 0.1, η = ζ = 0.1."""
    rng, gamma = np.random.default_rng(seed), 5 / 3
    grid = Grid.box((n, n), 1.0, batch=batch)
    x, y = grid.centres()
    fields = np.zeros((4, batch, n, n))
    for i in range(-4, 5):
        for j in range(-4, 5):
            if i * j:
                phase = rng.uniform(0, 2 * np.pi, (4, batch, 1, 1))
                fields += np.hypot(i, j) ** -0.5 * np.sin(2 * np.pi * (i * x + j * y) + phase)
    fields /= np.abs(fields).max(axis=(2, 3), keepdims=True)
    density, temperature = rng.uniform(0.1, 10, (2, batch, 1, 1))
    speed = 0.3 * np.sqrt(gamma * temperature)
    u = conserved(
        density * (1 + 0.5 * fields[0]),
        [speed * fields[1], speed * fields[2]],
        density * temperature * (1 + 0.5 * fields[3]),
        gamma,
    )
    setting = Setting(grid, gas_channels(2), {"gamma": gamma, "eta": 0.1, "zeta": 0.1})
    return Query(u, setting, np.full(batch, time))


# ---------------------------------------------------------------------------------------- the contract


@every_kind
def test_conforms(kind: Callable[[], Primitive]) -> None:
    check_primitive(kind(), seed=0).raise_if_failed()


@pytest.fixture
def tiny_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes small states worth sharing, so that a sample alone has its rows shared."""
    monkeypatch.setattr(threads, "UPDATES", 1)
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


@every_kind
@pytest.mark.usefixtures("tiny_tasks")
@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
def test_is_the_same_however_it_is_shared(kind: Callable[[], Primitive], boundary: str) -> None:
    if boundary not in kind().boundaries:  # type: ignore[attr-defined]
        pytest.skip(f"knows no {boundary} boundary")
    query = random_flow(3, 2 * compressible.BLOCK + 5, 3, 0.004)
    setting = query.setting.with_grid(query.grid.with_boundary(boundary))
    together = kind().flow(query.u0, query.time, setting)
    assert np.isfinite(together).all()
    for count in (1, numba.get_num_threads()):
        numba.set_num_threads(count)
        np.testing.assert_array_equal(kind().flow(query.u0, query.time, setting), together)
        for i in range(3):
            one = slice(i, i + 1)
            alone = kind().flow(query.u0[one], query.time[one], setting.take(one))
            np.testing.assert_array_equal(alone, together[one])


@every_kind
def test_only_the_sample_that_is_not_physical_is_nan(kind: Callable[[], Primitive]) -> None:
    query = random_flow(0, 8, 4, 0.001)
    u = query.u0.copy()
    u[0, 0, 3, 4] = -1.0
    u[1, 3, 2, 2] = 0.0
    u[3, 1, 0, 0] = np.nan
    for duration in (query.time, np.zeros(4)):
        out = kind().flow(u, duration, query.setting)
        assert np.isnan(out[[0, 1, 3]]).all() and np.isfinite(out[2]).all()
        np.testing.assert_array_equal(out[2:3], kind().flow(u[2:3], duration[2:3], query.setting.take(slice(2, 3))))
    assert (kind().work(u, query.time, query.setting) > 0).all()


@every_kind
def test_float32_stays_float32(kind: Callable[[], Primitive]) -> None:
    query = random_flow(1, 8, 2, 0.002)
    single = kind().flow(query.u0.astype(np.float32), query.time, query.setting)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, kind().flow(query.u0, query.time, query.setting), rtol=1e-3, atol=1e-4)


@every_kind
def test_takes_an_empty_batch_and_a_uniform_line(kind: Callable[[], Primitive]) -> None:
    query = random_flow(1, 8, 2, 0.002)
    none = slice(0, 0)
    assert kind().flow(query.u0[none], query.time[none], query.setting.take(none)).shape == (0, 4, 8, 8)
    u = conserved(np.ones((1, 5)), [np.full((1, 5), 0.3)], np.ones((1, 5)), 1.4)
    np.testing.assert_allclose(kind().flow(u, np.array([0.1]), setting_of((5,), eta=0.1)), u, rtol=1e-13)


# ---------------------------------------------------------------------------------- analytic solutions


def vortex(n: int, time: float) -> Array:
    """An isentropic vortex in the wind (1, ½) on the periodic box [0, 10]²: it moves unchanged."""
    x, y = Grid.box((n, n), 10.0).centres()
    dx, dy = ((centre - 5.0 - wind * time + 5.0) % 10.0 - 5.0 for centre, wind in ((x, 1.0), (y, 0.5)))
    swirl = 2.0 / (2 * np.pi) * np.exp(0.5 * (1 - dx**2 - dy**2))
    temperature = 1 - 0.4 / (2 * 1.4) * swirl**2
    density = temperature**2.5
    return conserved(density, [1.0 - dy * swirl, 0.5 + dx * swirl], density * temperature, 1.4)


@pytest.mark.parametrize(("kind", "order"), [(CentralEuler, 4), (MusclEuler, 2)])
def test_a_vortex_moves_unchanged(kind: Callable[[], Primitive], order: int) -> None:
    errors = []
    for n in (32, 64, 128):
        out = kind().flow(vortex(n, 0.0), np.array([1.0]), setting_of((n, n), 10.0))
        errors.append(np.abs(out - vortex(n, 1.0)).mean())
    observed = np.log2(errors[1] / errors[2])
    assert order - 0.4 < observed < order + 0.6
    assert errors[2] < {4: 1e-5, 2: 3e-4}[order]


@viscous_kinds
@pytest.mark.parametrize(("component", "viscosity"), [(1, 0.03), (0, 0.03 + 0.02 + 0.01)])
def test_shear_and_compression_waves_decay(kind: Callable[[], Primitive], component: int, viscosity: float) -> None:
    """With constant density v_y(x) diffuses with η and v_x(x) with η + ζ + η/3, and what they lose is heat."""
    n, k, time, gamma = 48, 2 * np.pi, 0.6, 1.4
    setting = setting_of((n, 4), eta=0.03, zeta=0.02)
    x, _ = setting.grid.centres()
    velocities = [np.zeros((1, n, 4)), np.zeros((1, n, 4))]
    velocities[component] = 0.5 * np.sin(k * x) + np.zeros((1, n, 4))
    u = conserved(np.full((1, n, 4), 2.0), velocities, np.full((1, n, 4), 3.0), gamma)
    for _ in range(12):
        u = kind().flow(u, np.array([time / 12]), setting)
    out = primitive_fields(u, gamma)
    spectral = kind is SqrtDensityViscosity
    z = viscosity * time * (k**2 if spectral else 4 * n**2 * np.sin(k / n / 2) ** 2)
    tolerance = 1e-12 if spectral else 1e-5
    np.testing.assert_allclose(out[:, 1 + component], np.exp(-z) * velocities[component], atol=tolerance)
    np.testing.assert_array_equal(out[:, 0], 2.0)
    assert np.abs(out[:, 2 - component]).max() < 1e-14
    heat = 2.0 * 0.25 * -np.expm1(-2 * z) / 4 * (1 + np.cos(2 * k * x))  # ∫ νρ|∂v|² dt
    np.testing.assert_allclose(out[:, 3] - 3.0, (gamma - 1) * heat + np.zeros((1, n, 4)), atol=1e-3)


@viscous_kinds
def test_a_constant_velocity_stays(kind: Callable[[], Primitive]) -> None:
    query = random_flow(5, 32, 2)
    fields = primitive_fields(query.u0, 5 / 3)
    u = conserved(fields[:, 0], [np.full((2, 32, 32), 0.7), np.full((2, 32, 32), -0.2)], fields[:, 3], 5 / 3)
    np.testing.assert_allclose(kind().flow(u, query.time, query.setting), u, rtol=1e-12)


def test_both_viscosities_agree() -> None:
    """With a density that varies threefold: the finite-volume one converges to the spectral one."""
    errors = []
    for n in (32, 64):
        query = random_flow(6, n, 2, 0.01)
        spectral = query.u0
        for _ in range(32):
            spectral = SqrtDensityViscosity().flow(spectral, query.time / 32, query.setting)
        errors.append(nrmse(FiniteVolumeGasViscosity().flow(query.u0, query.time, query.setting), spectral))
    assert (errors[1][1:] < 0.3 * errors[0][1:]).all() and errors[1].max() < 5e-3


@pytest.mark.parametrize("dictionary", [SPECTRAL, CONSERVATIVE, None], ids=["spectral", "conservative", "unsplit"])
def test_sound_is_damped(dictionary: Dictionary | None) -> None:
    """A small standing wave: v = a e^{−½νk²t}·… with ω² = c²k² − ¼ν²k⁴, ν = η + ζ + η/3."""
    n, k, time, small = 64, 2 * np.pi, 0.9, 1e-4
    eta, zeta = 0.015, 0.03
    setting = setting_of((n,), eta=eta, zeta=zeta)
    (x,) = setting.grid.centres()
    u = conserved(np.ones((1, n)), [small * np.sin(k * x)], np.full((1, n), 1 / 1.4), 1.4)
    rate = 0.5 * (eta + zeta + eta / 3) * k**2
    omega = np.sqrt(k**2 - rate**2)
    exact = small * np.exp(-rate * time) * (np.cos(omega * time) - rate / omega * np.sin(omega * time)) * np.sin(k * x)
    query = Query(u, setting, np.array([time]))
    if dictionary is None:
        out = CompressibleNavierStokes().flow(u, query.time, setting)
    else:
        out = run(splitting("strang x32").programs(query, dictionary), dictionary, query)
    assert np.abs(out[:, 1] - exact).max() < 6e-3 * small


# ------------------------------------------------------------------------------------------ invariants


@pytest.mark.parametrize("dictionary", [CONSERVATIVE, SHOCKS], ids=["central", "muscl"])
@pytest.mark.parametrize("scheme", ["ababa x4", "strang x2(outer=viscosity)"])
def test_a_program_conserves(dictionary: Dictionary, scheme: str) -> None:
    query = random_flow(7, 32, 3)
    out = run(splitting(scheme).programs(query, dictionary), dictionary, query)
    drift = np.abs((out - query.u0).sum(axis=(2, 3))) / np.abs(query.u0).sum(axis=(2, 3))
    assert drift.max() < 1e-12


@pytest.mark.parametrize("steps", [2, 3])
def test_steps_of_the_spectral_viscosity_share_what_they_may(steps: int) -> None:
    """They are as good as so many calls."""
    query = random_flow(6, 24, 2, 0.01)
    out = query.u0
    for _ in range(steps):
        out = SqrtDensityViscosity(1).flow(out, query.time / steps, query.setting)
    np.testing.assert_allclose(
        SqrtDensityViscosity(steps).flow(query.u0, query.time, query.setting), out, rtol=1e-12, atol=1e-14
    )
    with pytest.raises(InvalidInputError, match="steps is 0"):
        SqrtDensityViscosity(0)


def test_the_spectral_viscosity_is_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few samples at a time stay in the cache; which they are changes no bit."""
    query = random_flow(8, 16, 7, 0.01)
    out = SqrtDensityViscosity().flow(query.u0, query.time, query.setting)
    monkeypatch.setattr(density_weighted, "CACHED", 0)
    np.testing.assert_array_equal(SqrtDensityViscosity().flow(query.u0, query.time, query.setting), out)


def test_the_spectral_viscosity_nearly_conserves() -> None:
    query = random_flow(7, 32, 3, 0.003)
    out = SqrtDensityViscosity().flow(query.u0, query.time, query.setting)
    drift = np.abs((out - query.u0).sum(axis=(2, 3))) / np.abs(query.u0).sum(axis=(2, 3))
    assert (drift[:, 0] == 0).all() and drift.max() < 1e-3


@pytest.mark.parametrize("kind", [MusclEuler, FiniteVolumeGasViscosity, CompressibleNavierStokes])
def test_walls_keep_mass_and_energy_and_the_symmetry(kind: Callable[[], Primitive]) -> None:
    """A flow between walls is the half of a periodic one that is its own mirror image."""
    query = random_flow(8, 24, 2, 0.02)
    walled = query.setting.with_grid(Grid.box((24, 24), 1.0, ("wall", "periodic"), batch=2))
    out = kind().flow(query.u0, query.time, walled)
    drift = np.abs((out - query.u0).sum(axis=(2, 3))) / np.abs(query.u0).sum(axis=(2, 3))
    assert drift[:, [0, 3]].max() < 1e-12
    signs = np.array([1.0, -1.0, 1.0, 1.0]).reshape(1, 4, 1, 1)
    double = np.concatenate([query.u0, signs * query.u0[:, :, ::-1]], axis=2)
    periodic = query.setting.with_grid(Grid.box((48, 24), (2.0, 1.0), batch=2))
    np.testing.assert_allclose(kind().flow(double, query.time, periodic)[:, :, :24], out, rtol=1e-9, atol=1e-9)


def test_integrators_are_stable_for_any_mix_of_upwinding_and_viscosity() -> None:
    """Von Neumann's analysis of the stages that a Courant number of 0.8 and a viscous decay ask for."""
    angle = np.linspace(0, np.pi, 361)
    step = np.exp(1j * angle)
    linear, first = (1 - 1 / step) * (1 + (step - 1 / step) / 4), 1 - 1 / step
    for cfl in (0.2, 0.5, 0.8):
        for decay in np.concatenate([np.linspace(0, 40, 401), np.geomspace(40, 4000, 40)]):
            weights = compressible._weights(1.0, decay + compressible.ROOM * cfl)
            for upwind in (linear, first):
                z = -cfl * upwind - 0.5 * decay * (1 - np.cos(angle))
                y, older = np.ones_like(z), np.ones_like(z)
                for w in weights:
                    y, older = w[0] + w[1] * y + w[2] * older + z * (w[3] * y + w[4]), y
                assert np.abs(y).max() < 1 + 1e-9


# ------------------------------------------------------------------------------------------- bad input


@every_kind
def test_refuses_what_it_cannot_do(kind: Callable[[], Primitive]) -> None:
    query, duration = random_flow(0, 8, 1), np.array([0.01])
    name = kind.__name__  # type: ignore[attr-defined]
    other = Setting(query.grid, tuple(Channel(c) for c in "abcd"), query.setting.params)
    with pytest.raises(InvalidInputError, match=f"{name} needs the channels density, momentum_x, momentum_y, energy"):
        kind().flow(query.u0, duration, other)
    cube = Setting(Grid.box((4, 4, 4)), (Channel("density"),), query.setting.params)
    with pytest.raises(InvalidInputError, match="axes; the state has density on 3"):
        kind().flow(np.ones((1, 1, 4, 4, 4)), duration, cube)
    with pytest.raises(InvalidInputError, match=r"parameter '(gamma|eta)' is missing"):
        kind().flow(query.u0, duration, Setting(query.grid, query.setting.channels, {}))
    wrong = "gamma" if kind in (CentralEuler, MusclEuler) else "zeta"
    bad = Setting(query.grid, query.setting.channels, dict(query.setting.params) | {wrong: -1.0})
    with pytest.raises(InvalidInputError, match=f"parameter '{wrong}' is (negative|-1.0) for sample 0"):
        kind().flow(query.u0, duration, bad)


BAD_OPTIONS: list[tuple[Callable[[], object], str]] = [
    (lambda: CentralEuler(cfl=2.5), "at most 2 for"),
    (lambda: MusclEuler(cfl=0.9), "at most 0.8"),
    (lambda: CompressibleNavierStokes(cfl=0.0), "cfl is 0.0"),
    (lambda: FiniteVolumeGasViscosity(most_stages=4), "an odd number of at least 3"),
    (lambda: CompressibleNavierStokes(most_stages=1), "most_stages is 1"),
]


@pytest.mark.parametrize(("make", "message"), BAD_OPTIONS)
def test_refuses_bad_options(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
