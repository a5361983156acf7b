"""Kuramoto–Sivashinsky: contract, growth of modes, Burgers without shocks, the whole equation against SciPy."""

from __future__ import annotations

import pickle

import numba
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hycop
from hycop.conformance import check_primitive
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Array, Grid
from hycop.primitive import Primitive
from hycop.primitives import PRIMITIVES, KuramotoSivashinskyLinear, KuramotoSivashinskyNonlinear
from hycop.query import Channel, Query, Setting

BOTH = {"nonlinear": KuramotoSivashinskyNonlinear(), "linear": KuramotoSivashinskyLinear()}
both_parts = pytest.mark.parametrize("solver", BOTH.values(), ids=BOTH)


def lines(n: int, lengths: list[float]) -> Setting:
    return Setting(Grid((n,), np.array(lengths)[:, None], ("periodic",)), (Channel("u"),), {})


def two_modes(setting: Setting) -> Array:
    x = 2 * np.pi * setting.grid.centres()[0] / setting.grid.lengths
    return (np.sin(2 * x) + 0.5 * np.cos(3 * x + 1.0))[:, None]


def averages(values: Array, power: int = 1) -> Array:
    """Averages over cells from the values at their centres, mode by mode; with −1 the way back."""
    n = values.shape[-1]
    return np.fft.irfft(np.fft.rfft(values) * np.sinc(np.arange(n // 2 + 1) / n) ** power, n)


@both_parts
@pytest.mark.parametrize("seed", range(3))
def test_conforms(solver: Primitive, seed: int) -> None:
    check_primitive(solver, seed).raise_if_failed()
    assert pickle.loads(pickle.dumps(solver)) == solver
    assert PRIMITIVES[type(solver).__name__] is type(solver)


@pytest.mark.parametrize("n", [32, 33])
def test_modes_grow_and_decay(n: int) -> None:
    setting, time = lines(n, [30.0, 100.0]), 3.0
    for mode in (1, 4, 9):
        k = 2 * np.pi * mode / setting.grid.lengths
        u = np.sin(k * setting.grid.centres()[0] + 0.3)[:, None]
        out = KuramotoSivashinskyLinear().flow(u, np.full(2, time), setting)
        np.testing.assert_allclose(out, np.exp((k**2 - k**4) * time)[:, None] * u, atol=1e-13)


@pytest.mark.parametrize("n", [128, 129])
def test_nonlinear_part_follows_its_characteristics(n: int) -> None:
    """Before the shock, u(x, t) = u0(ξ) with x = ξ + u0(ξ) t."""
    setting, time = lines(n, [2 * np.pi, 2 * np.pi]), np.array([0.0, 0.5])
    x = setting.grid.centres()[0]
    xi = x.copy()
    for _ in range(200):
        xi = x - np.sin(xi) * time[:, None]
    out = KuramotoSivashinskyNonlinear(cfl=0.3).flow(averages(np.sin(x))[:, None], time, setting)
    np.testing.assert_allclose(out[:, 0], averages(np.sin(xi)), atol=1e-6)


@pytest.mark.parametrize("n", [32, 33])
def test_products_have_no_aliases(n: int) -> None:
    """The energy of a resolved state stays: the truncated equation keeps it, aliases would not."""
    setting = lines(n, [20.0])
    modes = np.zeros(n // 2 + 1, dtype=np.complex128)
    modes[1 : (n + 1) // 2] = np.exp(1j * np.arange((n + 1) // 2 - 1) ** 2)
    u = np.fft.irfft(modes, n)[None, None] * n / 20
    out = averages(KuramotoSivashinskyNonlinear(cfl=0.02).flow(averages(u), np.array([0.5]), setting), -1)
    assert np.abs(out - u).max() > 0.05
    assert (out**2).sum() == pytest.approx((u**2).sum(), rel=1e-6)


@pytest.mark.parametrize(("steps", "limit"), [(32, 1.5e-2), (128, 1.2e-3)])
def test_strang_against_scipy(steps: int, limit: float) -> None:
    n, length, time = 64, 22.0, 4.0
    setting = lines(n, [length])
    u0 = two_modes(setting)
    k = 2 * np.pi / length * np.arange(n // 2 + 1)

    def tendency(_: float, u: Array) -> Array:
        square = np.fft.rfft(0.5 * u * u) * (np.arange(k.size) < n / 3)
        return np.fft.irfft((k**2 - k**4) * np.fft.rfft(u) - 1j * k * square, n)

    truth = solve_ivp(tendency, (0.0, time), u0[0, 0], method="BDF", rtol=1e-9, atol=1e-10).y[:, -1]
    dictionary, query = Dictionary(BOTH), Query(averages(u0), setting, np.array([time]))
    out = hycop.run(hycop.splitting("strang").with_substeps(steps).programs(query, dictionary), dictionary, query)[0, 0]
    out = averages(out, -1)
    assert np.linalg.norm(out - truth) < limit * np.linalg.norm(truth)


@both_parts
@pytest.mark.parametrize("n", [47, 48])
def test_keeps_the_mean(solver: Primitive, n: int) -> None:
    u = np.random.default_rng(0).normal(size=(3, 1, n))
    out = solver.flow(u, np.full(3, 0.3), lines(n, [20.0, 50.0, 90.0]))
    np.testing.assert_allclose(out.mean(axis=2), u.mean(axis=2), atol=1e-14)


@both_parts
def test_bits_depend_on_neither_batch_nor_threads(solver: Primitive) -> None:
    n, batch = 128, 600
    rng = np.random.default_rng(1)
    u, setting = rng.normal(size=(batch, 1, n)), lines(n, list(rng.uniform(100.0, 300.0, batch)))
    duration = rng.uniform(0.0, 2.0, batch)
    together = solver.flow(u, duration, setting)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    assert np.array_equal(solver.flow(u, duration, setting), together)
    numba.set_num_threads(threads)
    for sample in (0, 311, 599):
        one = slice(sample, sample + 1)
        assert np.array_equal(solver.flow(u[one], duration[one], setting.take(one)), together[one])


def test_one_bad_sample_is_lost_alone() -> None:
    setting = lines(32, [20.0, 30.0, 40.0])
    u, solver = two_modes(setting), KuramotoSivashinskyNonlinear()
    spoilt = u.copy()
    spoilt[1, 0, 3] = np.nan
    spoilt[2] *= 1e12
    out = solver.flow(spoilt, np.full(3, 1.0), setting)
    assert np.isnan(out[1:]).all() and np.array_equal(out[0], solver.flow(u, np.full(3, 1.0), setting)[0])
    assert np.isfinite(solver.work(spoilt, np.full(3, 1.0), setting)).all()
    assert solver.flow(u.astype(np.float32), np.full(3, 0.1), setting).dtype == np.float32


@both_parts
def test_refuses_what_it_cannot_do(solver: Primitive) -> None:
    plane = Setting(Grid.box((4, 4)), (Channel("u"),), {})
    with pytest.raises(InvalidInputError, match="has u on one axis"):
        solver.flow(np.ones((1, 1, 4, 4)), np.array([0.1]), plane)
    walled = Setting(Grid.box((8,), 1.0, "wall"), (Channel("u"),), {})
    query = Query(np.ones((1, 1, 8)), walled, np.array([0.1]))
    with pytest.raises(IncompatibleError, match="cannot handle the wall boundary"):
        hycop.run(hycop.splitting("lie").programs(query, Dictionary({"it": solver})), Dictionary({"it": solver}), query)
    with pytest.raises(InvalidInputError, match="cfl is"):
        KuramotoSivashinskyNonlinear(cfl=0.9)
