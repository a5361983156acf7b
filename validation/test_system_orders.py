"""Measured order of the nonlinear finite-volume primitives: cell averages of a smooth state on ever finer grids.

The truth is the same primitive with ``weno5`` on a grid three times finer than the finest; the order is the slope of
log(L1 error) over log(cells), between the two finest grids for ``weno5`` (whose spatial error dies out sooner than that
of its time integrator), fitted over all of them otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from hycop.grid import Array, Grid, restrict
from hycop.primitive import Primitive
from hycop.primitives import BurgersAdvection, GravityWave, MomentumAdvection, ShallowWater
from hycop.query import Channel, Setting

CHANNELS = (Channel("h"), Channel("hu", normal=0), Channel("hv", normal=1))


def averages(grid: Grid, wave: int) -> Array:
    """Averages of sin(2π·wave·Σx/L + wave) over the cells, exactly."""
    angle = sum(2 * np.pi * wave * x / 10.0 for x in grid.centres()) + float(wave)
    return np.sin(angle) * np.prod([np.sinc(wave / n) for n in grid.shape])


def water(shape: tuple[int, ...]) -> tuple[Array, Setting]:
    grid = Grid.box(shape, 10.0)
    momenta = [0.6 + 0.2 * averages(grid, 1), -0.5 + 0.2 * averages(grid, 2)][: grid.axes]
    u = np.stack([1.0 + 0.15 * averages(grid, 1), *momenta], axis=1)
    return u, Setting(grid, CHANNELS[: grid.axes + 1], {"g": 9.81})


def wind(shape: tuple[int, ...]) -> tuple[Array, Setting]:
    grid = Grid.box(shape, 10.0)
    return (1.0 + 0.3 * averages(grid, 1))[:, None], Setting(grid, (Channel("u"),), {})


def state_for(primitive: Primitive, shape: tuple[int, ...]) -> tuple[Array, Setting]:
    return wind(shape) if isinstance(primitive, BurgersAdvection) else water(shape)


def errors(primitive: Primitive, truth: Array, cells: Sequence[int], time: float) -> list[float]:
    out = []
    for n in cells:
        shape = (n,) * (truth.ndim - 2)
        u, setting = state_for(primitive, shape)
        out.append(float(np.abs(primitive.flow(u, np.array([time]), setting) - restrict(truth, shape)).mean()))
    return out


def errors_on_lines(primitive: Primitive, best: Primitive, cells: Sequence[int], time: float = 0.8) -> list[float]:
    u, setting = state_for(best, (3 * cells[-1],))
    return errors(primitive, best.flow(u, np.array([time]), setting), cells, time)


def order(cells: Sequence[int], wrong: Sequence[float]) -> float:
    return float(-np.polyfit(np.log(cells), np.log(wrong), 1)[0])


@pytest.mark.parametrize("kind", [GravityWave, MomentumAdvection, ShallowWater, BurgersAdvection])
def test_weno_on_a_line(kind: type[ShallowWater]) -> None:
    """At least third order; more while the error in space still counts."""
    cells = (27, 81, 243, 729)
    wrong = errors_on_lines(kind(), kind(cfl=0.3), cells)
    assert 2.8 < order(cells[-2:], wrong[-2:]) < 3.6
    assert wrong[1] < 1e-5


@pytest.mark.parametrize("kind", [GravityWave, MomentumAdvection, ShallowWater, BurgersAdvection])
def test_muscl_on_a_line(kind: type[ShallowWater]) -> None:
    cells = (27, 81, 243, 729)
    assert order(cells, errors_on_lines(kind("muscl"), kind(), cells)) == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize("kind", [GravityWave, MomentumAdvection])
def test_hancock_on_a_line(kind: type[GravityWave]) -> None:
    """Second order in one stage, with a smaller error than MUSCL in two; WENO's edges make it smaller still."""
    cells = (27, 81, 243)
    muscl, central, weno = (
        errors_on_lines(solver, kind(), cells)
        for solver in (kind("muscl"), kind("hancock", 0.9), kind("weno5-hancock", 0.9))
    )
    assert order(cells, central) > 1.7 and order(cells, weno) > 1.7
    assert weno[-1] < central[-1] < muscl[-1]


def test_upwind_on_a_line() -> None:
    cells = (81, 243, 729)
    wrong = errors_on_lines(BurgersAdvection("upwind"), BurgersAdvection(), cells)
    assert order(cells, wrong) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(
    ("kind", "measured"),
    [
        (GravityWave, (2.16, 2.10)),
        pytest.param(MomentumAdvection, (2.12, 1.77), marks=pytest.mark.validate),
        pytest.param(ShallowWater, (2.32, 2.16), marks=pytest.mark.validate),
    ],
)
def test_in_the_plane(kind: type[ShallowWater], measured: tuple[float, float]) -> None:
    """Fluxes at the middle of faces make the order two in the end, with a far smaller error than that of MUSCL.

    The truth shares that error, which adds a tenth to the order; MUSCL for momentum, whose limiter acts about every
    extremum of the velocity, is still on its way (1.56 from 27 to 81 cells).
    """
    cells, time = (81, 135), 0.3
    u, setting = water((405, 405))
    truth = kind().flow(u, np.array([time]), setting)
    weno, muscl = (errors(kind(scheme), truth, cells, time) for scheme in ("weno5", "muscl"))  # type: ignore[arg-type]
    assert (order(cells, weno), order(cells, muscl)) == pytest.approx(measured, abs=0.1)
    assert weno[-1] < 0.1 * muscl[-1]
