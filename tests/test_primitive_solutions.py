"""Primitives of a scalar with constant coefficients against analytic solutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hycop.grid import Array
from hycop.primitive import Primitive
from hycop.primitives import (
    ExactLogistic,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    SpectralAdvection,
    SpectralAdvectionDiffusion,
    SpectralDiffusion,
    UpwindAdvection,
)
from tests.helpers import one_box


@pytest.mark.parametrize("shape", [(16,), (15,), (12, 9)])
def test_fourier_modes_travel(shape: tuple[int, ...]) -> None:
    setting = one_box(shape, cx=0.7, cy=-1.3)
    centres, c = setting.grid.centres(), setting.per_axis("c")[0]

    def wave(time: float) -> Array:
        return sum(np.sin(2 * np.pi * 3 * (x - speed * time)) for x, speed in zip(centres, c, strict=True))[:, None]

    np.testing.assert_allclose(SpectralAdvection().flow(wave(0.0), np.array([0.6]), setting), wave(0.6), atol=1e-13)
    back = SpectralAdvection().flow(wave(0.6), np.array([-0.6]), setting)
    np.testing.assert_allclose(back, wave(0.0), atol=1e-13)


def test_fourier_modes_travel_and_decay_at_once() -> None:
    setting, time = one_box((16,), cx=0.7, Dx=0.02), 0.6
    (x,) = setting.grid.centres()

    def wave(time: float) -> Array:
        return np.exp(-0.02 * (6 * np.pi) ** 2 * time) * np.sin(6 * np.pi * (x - 0.7 * time))[:, None]

    out = SpectralAdvectionDiffusion().flow(wave(0.0), np.array([time]), setting)
    np.testing.assert_allclose(out, wave(time), atol=1e-13)


def test_the_nyquist_mode_stands() -> None:
    zigzag = np.where(np.arange(8) % 2, -1.0, 1.0)[None, None]
    out = SpectralAdvection().flow(zigzag, np.array([0.3]), one_box((8,), cx=1.0))
    np.testing.assert_allclose(out, zigzag, atol=1e-15)


@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
@pytest.mark.parametrize("kind", [SpectralDiffusion, FiniteVolumeDiffusion])
@pytest.mark.parametrize("n", [12, 13])
def test_modes_decay(kind: Callable[[], Primitive], boundary: str, n: int) -> None:
    """cos(kx) decays with D k², and with 4D/Δx² sin²(kΔx/2) by finite volumes."""
    setting, time, diffusivity = one_box((n,), boundary, Dx=0.03), 0.8, 0.03
    (x,) = setting.grid.centres()
    for mode in range(1, 5):
        k = np.pi * mode * (2 if boundary == "periodic" else 1)
        rate = diffusivity * (k**2 if kind is SpectralDiffusion else 4 * n**2 * np.sin(k / n / 2) ** 2)
        u = np.cos(k * x)[:, None]
        out = kind().flow(u, np.array([time]), setting)
        np.testing.assert_allclose(out, np.exp(-rate * time) * u, atol=1e-14)


@pytest.mark.parametrize("kind", [SpectralDiffusion, FiniteVolumeDiffusion])
@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
def test_everything_diffuses_in_the_end(kind: Callable[[], Primitive], boundary: str) -> None:
    u = np.random.default_rng(0).uniform(size=(1, 1, 6, 7))
    out = kind().flow(u, np.array([1e6]), one_box((6, 7), boundary, Dx=1.0, Dy=1.0))
    np.testing.assert_allclose(out, u.mean(), atol=1e-14)


@pytest.mark.parametrize(("kind", "tolerance"), [(ExactLogistic, 1e-14), (Rk4Logistic, 1e-4)])
@pytest.mark.parametrize("r", [3.0, -3.0, 0.0])
def test_logistic_growth(kind: Callable[[], Primitive], tolerance: float, r: float) -> None:
    u = np.linspace(0.0, 1.5, 31).reshape(1, 1, 31)
    a = 0.9 * r
    out = kind().flow(u, np.array([0.9]), one_box((31,), r=r))
    np.testing.assert_allclose(out[0, 0, :21], (u * np.exp(a) / (1 + u * np.expm1(a)))[0, 0, :21], atol=tolerance)
    assert out[0, 0, 0] == 0.0
    assert out[0, 0, 20] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logistic_growth_for_ages(dtype: type) -> None:
    u = np.array([0.0, 1e-30, 1e-3, 0.5, 1.0, 30.0], dtype=dtype).reshape(1, 1, 6)
    for a in (50.0, 700.0, 1e4, 1e300):
        out = ExactLogistic().flow(u, np.array([a]), one_box((6,), r=1.0))
        assert np.isfinite(out).all()
        assert out[0, 0, 0] == 0.0
        if a > 100:
            np.testing.assert_allclose(out[0, 0, 1:], 1.0)


def test_logistic_growth_backwards_for_ages() -> None:
    """Values in [0, 1) come from ever closer to 0, and 1 from 1."""
    u = np.array([0.0, 1e-3, 0.5, 1.0]).reshape(1, 1, 4)
    for a in (-50.0, -700.0, -1e4):
        out = ExactLogistic().flow(u, np.array([a]), one_box((4,), r=1.0))
        np.testing.assert_allclose(out[0, 0], [0.0, 0.0, 0.0, 1.0], atol=1e-20)


def test_logistic_growth_past_a_pole_is_nan() -> None:
    """u < 0 reaches −∞ at a = log(1 − 1/u); backwards u > 1 reaches +∞ at a = log(1 − 1/u)."""
    u = np.array([-0.5, 0.5]).reshape(1, 1, 2)
    pole = np.log(3.0)
    before = ExactLogistic().flow(u, np.array([0.999 * pole]), one_box((2,), r=1.0))
    after = ExactLogistic().flow(u, np.array([1.001 * pole]), one_box((2,), r=1.0))
    assert before[0, 0, 0] < -100 and np.isnan(after[0, 0, 0]) and np.isfinite(after[0, 0, 1])
    assert np.isnan(ExactLogistic().flow(u + 2.0, np.array([-5.0]), one_box((2,), r=1.0))).all()


@pytest.mark.parametrize("cells", [1, 3, 16, 21])
@pytest.mark.parametrize("wind", [1.0, -1.0])
def test_upwind_at_courant_number_one_shifts(cells: int, wind: float) -> None:
    setting = one_box((16,), cx=wind)
    u = np.random.default_rng(1).normal(size=(1, 1, 16))
    out = UpwindAdvection(cfl=1.0).flow(u, np.array([cells / 16]), setting)
    np.testing.assert_allclose(out, np.roll(u, int(wind) * cells, axis=2), atol=1e-14)


@pytest.mark.parametrize("courant", [0.1, 0.35, 0.5, 0.8, 0.9])
def test_numerical_diffusion_of_upwind(courant: float) -> None:
    """The longest wave decays as with D_num = ½cΔx(1 − CFL)."""
    n, c, steps = 400, 0.7, 50
    setting = one_box((n,), cx=c)
    (x,) = setting.grid.centres()
    time = steps * courant / (n * c) * (1 - 1e-12)  # just below, so that rounding does not add a sub-step
    primitive = UpwindAdvection(cfl=courant)
    assert primitive.work(x, np.array([time]), setting)[0] == n * steps
    out = primitive.flow(np.sin(2 * np.pi * x)[:, None], np.array([time]), setting)
    amplitude = 2 * np.abs(np.fft.rfft(out[0, 0])[1]) / n
    measured = -np.log(amplitude) / (time * (2 * np.pi) ** 2)
    assert measured == pytest.approx(0.5 * c / n * (1 - courant), rel=2e-3)


def test_outflow_lets_everything_out() -> None:
    u = np.zeros((1, 1, 20))
    u[..., 8:14] = 1.0
    for kind in (UpwindAdvection, MusclAdvection):
        for wind in (1.0, -1.0):
            out = kind().flow(u, np.array([4.0]), one_box((20,), "outflow", cx=wind))
            assert np.abs(out).max() < 1e-9
