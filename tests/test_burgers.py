"""Burgers' advection and viscosity: contract, shocks and rarefactions, Cole–Hopf, invariants, bad input."""

from __future__ import annotations

import pickle
from typing import Any

import numba
import numpy as np
import pytest

import hycop
from hycop.conformance import check_primitive
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError, InvalidInputError
from hycop.grid import Array, Grid, restrict
from hycop.primitive import Primitive
from hycop.primitives import (
    PRIMITIVES,
    BurgersAdvection,
    FiniteVolumeDiffusion,
    FiniteVolumeViscosity,
    SpectralDiffusion,
    SpectralViscosity,
)
from hycop.query import Channel, Query, Setting
from hycop.storage.registry import options_of, registry_name

SCHEMES = ("weno5", "muscl", "upwind")
every_scheme = pytest.mark.parametrize("solver", [BurgersAdvection(scheme) for scheme in SCHEMES], ids=SCHEMES)  # type: ignore[arg-type]


def line(n: int, boundary: str = "periodic", length: float = 2.0, batch: int = 1, **params: Any) -> Setting:
    return Setting(Grid.box((n,), length, boundary, batch), (Channel("u"),), params)


def random_lines(seed: int, n: int, batch: int = 3, boundary: str = "periodic") -> tuple[Array, Setting]:
    rng = np.random.default_rng(seed)
    grid = Grid((n,), rng.uniform(0.5, 3.0, (batch, 1)), (boundary,))
    return rng.normal(size=(batch, 1, n)), Setting(grid, (Channel("u"),), {})


# ---------------------------------------------------------------------------------------- the contract


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "solver", [BurgersAdvection(), BurgersAdvection("upwind"), SpectralViscosity(), FiniteVolumeViscosity()], ids=str
)
def test_conforms(solver: Primitive, seed: int) -> None:
    check_primitive(solver, seed).raise_if_failed()


@pytest.mark.parametrize("seed", range(3))
def test_muscl_conforms_but_for_the_noise_of_its_order(seed: int) -> None:
    """Its limiter acts on the few cells about an extremum, so the order measured on a line scatters about 2.2."""
    report = check_primitive(BurgersAdvection("muscl"), seed)
    assert {check.name for check in report.checks if not check.passed} <= {"order"}


@pytest.mark.parametrize("solver", [BurgersAdvection("muscl", 0.4), SpectralViscosity(), FiniteVolumeViscosity()])
def test_is_found_pickled_and_stored(solver: Primitive) -> None:
    assert pickle.loads(pickle.dumps(solver)) == solver
    name, options = registry_name(type(solver)), options_of(solver)
    assert options is not None and PRIMITIVES[name](**options) == solver


@every_scheme
def test_bits_depend_on_neither_batch_nor_threads(solver: BurgersAdvection) -> None:
    u, setting = random_lines(0, 333, batch=70)
    duration = np.linspace(0.0, 0.3, 70)
    together = solver.flow(u, duration, setting)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    assert np.array_equal(solver.flow(u, duration, setting), together)
    numba.set_num_threads(threads)
    for sample in (0, 13, 69):
        one = slice(sample, sample + 1)
        assert np.array_equal(solver.flow(u[one], duration[one], setting.take(one)), together[one])


# ---------------------------------------------------------------------------------- analytic solutions


@every_scheme
@pytest.mark.parametrize(("left", "right"), [(1.0, 0.2), (0.5, -0.5), (-0.1, -0.9)])
def test_shock_speed(solver: BurgersAdvection, left: float, right: float) -> None:
    setting, time = line(200, "outflow"), 0.6
    (x,) = setting.grid.centres()
    out = solver.flow(np.where(x < 1.0, left, right)[:, None], np.array([time]), setting)[0, 0]
    front = 1.0 + 0.5 * (left + right) * time
    assert out.sum() * 0.01 == pytest.approx(left * front + right * (2.0 - front), abs=1e-8)
    assert (np.abs(out - np.where(x[0] < front, left, right)) > 0.05).sum() <= 6
    assert out.max() < left + 5e-2 and out.min() > right - 5e-2


@pytest.mark.parametrize(("scheme", "limit"), [("weno5", 1e-2), ("muscl", 1.2e-2), ("upwind", 6e-2)])
@pytest.mark.parametrize(("left", "right"), [(0.0, 1.0), (-1.0, 1.0), (-1.0, -0.2)])
def test_rarefaction(scheme: Any, limit: float, left: float, right: float) -> None:
    """u = (x − 1)/t between the two states; also through the sonic point."""
    setting, time = line(200, "outflow"), 0.6
    (fine,) = setting.grid.refined(20).centres()
    truth = restrict(np.clip((fine - 1.0) / time, left, right)[:, None], (200,))
    (x,) = setting.grid.centres()
    out = BurgersAdvection(scheme).flow(np.where(x < 1.0, left, right)[:, None], np.array([time]), setting)
    assert np.linalg.norm(out - truth) < limit * np.linalg.norm(truth)


def cole_hopf(n: int, nu: float, time: float) -> Array:
    """Cell averages of the solution from u0 = sin(πx) on [0, 2]: u̅ = −2ν Δlog φ/Δx with the heat solution φ."""
    fine = 4096
    y = (np.arange(fine) + 0.5) * 2.0 / fine
    phi0 = np.exp(-(1.0 - np.cos(np.pi * y)) / (2.0 * np.pi * nu))
    k = np.pi * np.arange(fine // 2 + 1)
    modes = np.fft.rfft(phi0) * np.exp(-1j * k * (0.5 * 2.0 / fine)) * np.exp(-nu * k**2 * time)
    edges = np.append(np.fft.irfft(modes, fine)[:: fine // n], np.fft.irfft(modes, fine)[0])
    return -2.0 * nu * np.diff(np.log(edges)) / (2.0 / n)


@pytest.mark.parametrize(("viscosity", "limit"), [(SpectralViscosity(), 2.2e-3), (FiniteVolumeViscosity(), 4e-3)])
def test_strang_against_cole_hopf(viscosity: Primitive, limit: float) -> None:
    n, nu, time = 128, 0.02, 0.5
    setting = line(n, nu=nu)
    u0 = np.diff(-np.cos(np.pi * np.linspace(0.0, 2.0, n + 1))) / np.pi / (2.0 / n)
    dictionary = Dictionary({"advection": BurgersAdvection(), "viscosity": viscosity})
    query = Query(u0[None, None], setting, np.array([time]))
    out = hycop.run(hycop.splitting("strang x16").programs(query, dictionary), dictionary, query)[0, 0]
    truth = cole_hopf(n, nu, time)
    assert np.linalg.norm(out - truth) < limit * np.linalg.norm(truth)


@pytest.mark.parametrize(
    ("viscosity", "diffusion"),
    [(SpectralViscosity(), SpectralDiffusion()), (FiniteVolumeViscosity(), FiniteVolumeDiffusion())],
)
@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
def test_viscosity_is_diffusion_along_every_axis(viscosity: Primitive, diffusion: Primitive, boundary: str) -> None:
    u, grid, nu = np.random.default_rng(1).normal(size=(2, 1, 9, 12)), Grid.box((9, 12), 1.0, boundary, 2), [0.01, 0.3]
    by_axes = Setting(grid, (Channel("u"),), {"Dx": np.array(nu), "Dy": np.array(nu)})
    out = viscosity.flow(u, np.full(2, 0.1), Setting(grid, (Channel("u"),), {"nu": np.array(nu)}))
    assert np.array_equal(out, diffusion.flow(u, np.full(2, 0.1), by_axes))
    assert viscosity.advances == {"viscosity"}


# ----------------------------------------------------------------------------- invariants, symmetries


@every_scheme
@pytest.mark.parametrize("n", [5, 64])
def test_keeps_the_total(solver: BurgersAdvection, n: int) -> None:
    u, setting = random_lines(2, n)
    out = solver.flow(u, np.full(3, 0.7), setting)
    np.testing.assert_allclose(out.sum(axis=2), u.sum(axis=2), rtol=0, atol=1e-12 * np.abs(u).sum())


@every_scheme
@pytest.mark.parametrize("boundary", ["periodic", "outflow"])
def test_is_the_same_in_a_mirror(solver: BurgersAdvection, boundary: str) -> None:
    """x → −x takes u to −u."""
    u, setting = random_lines(3, 41, boundary=boundary)
    duration = np.full(3, 0.5)
    image = -np.flip(solver.flow(-np.flip(u, 2), duration, setting), 2)
    np.testing.assert_allclose(image, solver.flow(u, duration, setting), atol=1e-12)


@pytest.mark.parametrize("scheme", ["muscl", "upwind"])
def test_total_variation_does_not_grow(scheme: Any) -> None:
    u, setting = random_lines(4, 50, batch=40)
    out = BurgersAdvection(scheme).flow(u, np.full(40, 0.2), setting)
    before, after = (np.abs(np.diff(v, axis=2, append=v[..., :1])).sum(axis=2) for v in (u, out))
    assert (after <= before + 1e-10).all()


# ------------------------------------------------------------------------------------------- bad input


@every_scheme
def test_one_bad_sample_is_lost_alone(solver: BurgersAdvection) -> None:
    u, setting = random_lines(5, 20)
    spoilt = u.copy()
    spoilt[1, 0, 7] = np.nan
    out = solver.flow(spoilt, np.full(3, 0.1), setting)
    assert np.isnan(out[1]).all()
    assert np.array_equal(out[[0, 2]], solver.flow(u, np.full(3, 0.1), setting)[[0, 2]])
    assert np.isfinite(solver.work(spoilt, np.full(3, 0.1), setting)).all()


def test_refuses_what_it_cannot_do() -> None:
    plane = Setting(Grid.box((4, 4)), (Channel("u"),), {})
    with pytest.raises(InvalidInputError, match="Burgers' advection has u on one axis"):
        BurgersAdvection().flow(np.ones((1, 1, 4, 4)), np.array([0.1]), plane)
    with pytest.raises(InvalidInputError, match="parameter 'nu' is missing"):
        SpectralViscosity().flow(np.ones((1, 1, 8)), np.array([0.1]), line(8))
    with pytest.raises(InvalidInputError, match="parameter 'nu' is negative for sample 0"):
        FiniteVolumeViscosity().flow(np.ones((1, 1, 8)), np.array([0.1]), line(8, nu=-0.1))
    for options in ({"cfl": 0.0}, {"cfl": 1.1}, {"reconstruction": "weno"}):
        with pytest.raises(HyCOPError, match=r"cfl is|weno"):
            BurgersAdvection(**options)  # type: ignore[arg-type]


def test_internal_refinement_knows_no_direction() -> None:
    """x → −x, u → −u leaves the equation as it is, also for a state of one sign, whose parts keep that sign."""
    problem = hycop.problem("burgers1d")
    x = (np.arange(32) + 0.5) / 32
    box = np.where(np.abs(x - 0.4) < 0.2, 1.0, 0.0)[None, None]
    states = {}
    for sign in (1.0, -1.0):
        grid = Grid.box((32,), problem.lengths, problem.boundary)
        query = Query(sign * box[..., :: int(sign)], Setting(grid, problem.channels, {"nu": 0.02}), 0.2)
        programs = hycop.splitting("Strang x4").programs(query, problem.dictionary)
        states[sign] = hycop.run(programs, problem.dictionary, query, refinement=2)
    np.testing.assert_allclose(-states[-1.0][..., ::-1], states[1.0], rtol=0, atol=1e-13)
    assert states[1.0].max() > 0.5
