"""The unsplit opponent: exponential Runge–Kutta methods built from the primitives of a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hycop.conformance import check_primitive
from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError
from hycop.evaluation import Composed
from hycop.execution import run
from hycop.formula import equation
from hycop.grid import Array, Grid
from hycop.kernels.exponential import phi_functions
from hycop.kernels.mode_matrices import ModeMatrices, matrix_functions
from hycop.metrics import rel_l2
from hycop.primitive import ALL_CHANNELS, EXACT, Primitive, fingerprint
from hycop.primitives import (
    BurgersAdvection,
    CoupledLinearTerms,
    ExactLogistic,
    ExponentialRungeKutta,
    GravityWave,
    KuramotoSivashinskyLinear,
    KuramotoSivashinskyNonlinear,
    MomentumAdvection,
    Rk4Logistic,
    SpectralAdvection,
    SpectralAdvectionDiffusion,
    SpectralDiffusion,
    SpectralViscosity,
    SymbolicTerms,
)
from hycop.problems import find_problem
from hycop.query import Channel, Query, Setting
from hycop.schemes import Unsplit, splitting

GRAY_SCOTT = "u_t = 0.002*lap(u) - u*v^2 + F*(1-u); v_t = 0.001*lap(v) + u*v^2 - (F+k)*v"
SCHRODINGER = "u_t = -v_xx/2 - (u^2+v^2)*v; v_t = u_xx/2 + (u^2+v^2)*u"

Make = Callable[..., Any]
make: Make = ExponentialRungeKutta

KS = (KuramotoSivashinskyLinear(), KuramotoSivashinskyNonlinear())
BURGERS = (BurgersAdvection(), SpectralViscosity())
GOOD = {
    "two stages": make(stages=2),
    "three stages": make(stages=3),
    "steps by reach": make(reach=0.2),
    "without aliases": make(dealias=True),
    "Kuramoto–Sivashinsky": make(KS),
    "Burgers": make(BURGERS),
    "linear": make((SpectralAdvection(), SpectralDiffusion())),
    "walls": make((SpectralDiffusion(), ExactLogistic())),
    "no symbol": make((GravityWave(), MomentumAdvection())),
    "pointwise": make((Rk4Logistic(),)),
    "one's own terms": make((SpectralDiffusion(), SymbolicTerms())),
    "species apart": make(tuple(equation(GRAY_SCOTT).dictionary.values())),
    "coupled": make(tuple(equation(SCHRODINGER).dictionary.values())),
    "coupled alone": make((CoupledLinearTerms(),)),
}


@pytest.mark.parametrize("primitive", GOOD.values(), ids=GOOD)
def test_conforms(primitive: Primitive) -> None:
    check_primitive(primitive, seed=1).raise_if_failed()


def test_declares_what_its_parts_have_in_common() -> None:
    whole = make()
    assert whole.advances == {"advection", "diffusion", "reaction"} and whole.order == 4
    assert whole.boundaries == {"periodic"} and not whole.reversible and whole.conserves == frozenset()
    linear = GOOD["linear"]
    assert linear.order == EXACT and linear.conserves == ALL_CHANNELS
    assert GOOD["walls"].boundaries == {"periodic", "wall", "outflow"}
    assert make(KS).conserves == {"u"} and make(BURGERS, 2).order == 2
    assert make((SpectralAdvection(), ExactLogistic())).reversible
    assert fingerprint(make(steps=2)) != fingerprint(make()) != fingerprint(make(stages=2))


def test_phi_functions_against_their_integrals() -> None:
    """φ_n(z) = ∫₀¹ e^{(1−s)z} s^{n−1}/(n−1)! ds, also near zero, where quotients cancel, and for complex z."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, w = 0.5 * (nodes + 1), 0.5 * weights
    z = np.array([0, 1e-12, 1e-3j, -1e-5, 0.99, -1.01, 2j * np.pi, -20.0, 3 - 9j, -1 + 1e-9j], dtype=complex)
    factorials = (1.0, 1.0, 2.0)
    for n, found in enumerate(phi_functions(z, np.exp(z))):
        exact = (w * np.exp((1 - s) * z[:, None]) * s**n / factorials[n]).sum(axis=1)
        np.testing.assert_allclose(found, exact, rtol=1e-13, atol=2e-14)


def errors(name: str, **options: Any) -> Array:
    """Errors of a few queries against the limit of the problem's dictionary on the same grid."""
    chosen = find_problem(name)
    query = chosen.queries(4, "id", 0)
    limit = Composed(splitting("SABA4 x64"), chosen.dictionary).solve(query).states
    whole = Dictionary({"all": make(tuple(chosen.dictionary.values()), **options)})
    return rel_l2(Composed(splitting("Lie"), whole).solve(query).states, limit, query.setting)


@pytest.mark.parametrize(("name", "stages", "steps"), [("adr2d", 4, 16), ("adr2d", 2, 32), ("ad1d", 4, 1)])
def test_goes_where_splittings_go(name: str, stages: int, steps: int) -> None:
    fine, coarse = errors(name, stages=stages, steps=2 * steps), errors(name, stages=stages, steps=steps)
    assert fine.max() < 5e-5
    if name != "ad1d":  # which is linear, and exact
        assert (fine < 0.35 * coarse).all()


def test_samples_take_the_steps_that_they_need() -> None:
    chosen = find_problem("burgers1d")
    query = chosen.queries(6, "ood", 0)
    method = make(tuple(chosen.dictionary.values()), reach=1.0)
    work = method.work(query.u0, query.time, query.setting)
    assert np.unique(work).size > 3
    fast = int(np.argmax(work))
    assert (method.work(2 * query.u0, query.time, query.setting) > 1.8 * work).all()
    assert np.isfinite(method.flow(query.u0, query.time, query.setting)).all()
    twice = make(method.parts, reach=1.0).flow(query.u0, 2 * query.time, query.setting)
    assert np.isfinite(twice).all() and method.work(query.u0, 2 * query.time, query.setting)[fast] > 1.9 * work[fast]
    # one sample alone does the same, to the bit
    one = slice(fast, fast + 1)
    alone = method.flow(query.u0[one], query.time[one], query.setting.take(one))
    np.testing.assert_array_equal(alone, method.flow(query.u0, query.time, query.setting)[one])


def test_a_block_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    method = make(steps=2)
    u, setting = method.example(0)
    duration = np.array([0.1, 0.0, 0.2])
    whole = method.flow(u, duration, setting)
    monkeypatch.setattr("hycop.primitives.exponential.BLOCK", u[0].size)
    np.testing.assert_array_equal(method.flow(u, duration, setting), whole)
    np.testing.assert_allclose(whole[1], u[1], rtol=1e-14)


def test_without_a_symbol_it_is_the_classical_method() -> None:
    method = make((ExactLogistic(),), steps=1)
    setting = Setting(Grid.box((3,)), (Channel("u"),), {"r": 1.3})
    u, h = np.array([[[0.1, 0.5, 1.2]]]), 0.4

    def f(v: Array) -> Array:
        return 1.3 * v * (1 - v)

    k1 = f(u)
    k2 = f(u + h / 2 * k1)
    k3 = f(u + h / 2 * k2)
    k4 = f(u + h * k3)
    expected = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    np.testing.assert_allclose(method.flow(u, np.array([h]), setting), expected, rtol=1e-14)
    assert method.work(u, np.array([h]), setting) == [4 * 3]


def test_work_counts_transform_pairs_and_rates() -> None:
    method = make((SpectralDiffusion(), ExactLogistic()), stages=4, steps=3)
    setting = Setting(Grid.box((16,)), (Channel("u"),), {"Dx": 0.1, "r": 1.0})
    u = np.ones((1, 1, 16))
    assert method.work(u, np.array([0.1]), setting) == [12 * (16 * 4 + 16) + 0.5 * 16 * 4]
    slow = make((SpectralDiffusion(), Rk4Logistic()), stages=4, steps=3)  # has the same rate
    assert slow.work(u, np.array([0.1]), setting) == method.work(u, np.array([0.1]), setting)


class Frozen:
    """Has no rate and no symbol."""

    advances = frozenset({"ice"})
    order = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ones(len(u))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": ()}, "parts is empty"),
        ({"parts": (Frozen(),)}, "part Frozen has neither a symbol nor a rate"),
        ({"parts": (SpectralDiffusion(), SpectralAdvectionDiffusion())}, "two parts advance the same process"),
        ({"stages": 5}, "stages is 5: it must be one of 2, 3, 4"),
        ({"steps": 0}, "steps is 0"),
        ({"reach": -1.0}, "reach is -1.0"),
    ],
)
def test_refuses_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(HyCOPError, match=message):
        make(**options)


def test_functions_of_matrices() -> None:
    """Against the exponential of a larger matrix, which holds φ₁, φ₂ and φ₃ too; of singular and stiff ones."""
    from scipy.linalg import expm

    rng = np.random.default_rng(0)
    for matrix in (
        5 * rng.normal(size=(3, 3)) - 4 * np.eye(3),
        np.array([[0.0, 1.0], [0.0, 0.0]]),
        np.array([[0.0, 40.0], [-30.0, 0.0]]),
        np.array([[-1e5, 3.0], [2.0, -1e3]]),
    ):
        n = len(matrix)
        wide = np.zeros((4 * n, 4 * n))
        wide[:n, :n] = matrix
        for k in range(3):
            wide[k * n : (k + 1) * n, (k + 1) * n : (k + 2) * n] = np.eye(n)
        for k, found in enumerate(matrix_functions(ModeMatrices(matrix.reshape(n, n, 1, 1).astype(complex)))):
            wanted = expm(wide)[:n, k * n : (k + 1) * n]
            assert np.abs(found.entries[:, :, 0, 0] - wanted).max() <= 1e-12 * np.abs(wanted).max()


@pytest.mark.parametrize("text", [GRAY_SCOTT, SCHRODINGER])
def test_systems_have_unsplit_solvers(text: str) -> None:
    """Fourth order against a fine splitting, with numbers of steps at which an explicit method would be unstable."""
    split = equation(text, axes=2)
    shape, rng = (24, 20), np.random.default_rng(1)
    grid = Grid.box(shape, 4.0, batch=2)
    x, y = (centre * np.pi / 2 for centre in grid.centres())
    u0 = np.stack([0.5 + 0.3 * np.sin(x + angle) * np.cos(y) for angle in rng.uniform(0, 6, 2)], axis=1)
    u0 = np.broadcast_to(u0, (2, 2, *shape))
    setting = Setting(grid, split.equation.channels, dict.fromkeys(split.equation.coefficients, 0.05))
    query = Query(u0, setting, 2.0)
    assert Unsplit(4).runs(split.dictionary, setting)
    walled = Setting(Grid.box(shape, 4.0, "wall", batch=2), setting.channels, setting.params)
    assert not Unsplit(4).runs(split.dictionary, walled)
    coarse, fine = (
        run(splitting(f"strang x{n}").programs(query, split.dictionary), split.dictionary, query) for n in (100, 200)
    )
    wanted = (4 * fine - coarse) / 3
    errors = []
    for steps in (16, 32):
        found = run(Unsplit(4, steps).programs(query, split.dictionary), split.dictionary, query)
        errors.append(float(np.abs(found - wanted).max()))
    assert errors[1] < 3e-5 and errors[0] / errors[1] > 12
