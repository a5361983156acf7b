"""Naming in a system: drag −k m of shallow water, with a pseudo-spectral solver of its own as the world."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hycop
from hycop.grid import Array
from hycop.problems import find_problem
from tests.planted import classical_model

CELLS, FINER, LENGTH, TIME, STEPS, SAMPLES = 16, 3, 10.0, 0.3, 60, 16


def slope_of(shape: int) -> Callable[[Array, int], Array]:
    """Spectral derivatives of fields (batch, n, n), without their highest third of modes."""
    k = 2 * np.pi * np.fft.fftfreq(shape, 1 / shape) / LENGTH
    kept = np.abs(k) <= 2 / 3 * k.max()

    def slope(field: Array, axis: int) -> Array:
        factor = 1j * k[:, None] if axis == 0 else 1j * k[None]
        return np.fft.ifft2(factor * (kept[:, None] & kept[None]) * np.fft.fft2(field)).real

    return slope


def field(rng: np.random.Generator, low: float, high: float, amplitude: float) -> Array:
    x = (np.arange(CELLS * FINER) + 0.5) / (CELLS * FINER)
    out = rng.uniform(low, high, (SAMPLES, 1, 1)) + np.zeros((1, x.size, x.size))
    for _ in range(5):
        i, j = rng.integers(-2, 3, (2, SAMPLES, 1, 1))
        phase = rng.uniform(0, 2 * np.pi, (SAMPLES, 1, 1))
        waves = np.sin(2 * np.pi * (i * x[:, None] + j * x[None]) + phase)
        out = out + amplitude * rng.normal(size=(SAMPLES, 1, 1)) * waves
    return out


def world(drag: float) -> hycop.Dataset:
    """h_t + ∇·m = 0, m_t + ∇·(m⊗m/h) + ∇(g h²/2) = −drag m, by the classical Runge–Kutta method."""
    rng, slope = np.random.default_rng(3), slope_of(CELLS * FINER)
    h = field(rng, 0.9, 1.2, 0.03)
    u = np.stack([h, h * field(rng, -0.2, 0.2, 0.08), h * field(rng, -0.2, 0.2, 0.08)], axis=1)
    g = rng.uniform(9, 11, SAMPLES)

    def rate(u: Array) -> Array:
        h, a, b = u[:, 0], u[:, 1], u[:, 2]
        pressure = 0.5 * g[:, None, None] * h**2
        along_x = slope(a * a / h + pressure, 0) + slope(a * b / h, 1)
        along_y = slope(a * b / h, 0) + slope(b * b / h + pressure, 1)
        return np.stack([-slope(a, 0) - slope(b, 1), -along_x - drag * a, -along_y - drag * b], axis=1)

    states, step = [u], TIME / STEPS
    for _ in range(STEPS):
        one = rate(u)
        two = rate(u + 0.5 * step * one)
        three = rate(u + 0.5 * step * two)
        u = u + step / 6 * (one + 2 * two + 2 * three + rate(u + step * three))
    states.append(u)
    cells = [each.reshape(SAMPLES, 3, CELLS, FINER, CELLS, FINER).mean(axis=(3, 5)) for each in states]
    grid = hycop.Grid.box((CELLS, CELLS), LENGTH, "periodic", batch=SAMPLES)
    setting = hycop.Setting(grid, find_problem("swe2d").channels, {"g": g})
    return hycop.Dataset("swe2d", "world", np.stack(cells, axis=1), [0.0, TIME], setting)


@pytest.mark.validate
def test_drag_of_shallow_water_is_named_in_both_momenta() -> None:
    problem = find_problem("swe2d")
    missing = hycop.name_missing(classical_model(problem, "strang x4", refinement=2), world(0.3), verbose=False)
    assert missing.verdict == "named", missing
    _, mx, my = (channel.name for channel in problem.channels)
    assert {(term.channel, term.term) for term in missing.terms} == {(mx, mx), (my, my)}, missing
    for term in missing.terms:
        assert term.coefficient == pytest.approx(-0.3, rel=0.01)
