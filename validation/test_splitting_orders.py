"""Declared against measured order of every splitting, through the engine that runs all programs.

First on random matrices that do not commute, where a sub-flow is a matrix exponential and the truth another one; then
on advection–diffusion–reaction with finite volumes, against the refined program on the same grid. The step is halved
three times; the order is measured in every halving and must be within 0.2 of the declared one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import scipy.linalg

from hycop.dictionary import Dictionary
from hycop.execution import run
from hycop.grid import Array, Grid
from hycop.primitive import EXACT
from hycop.primitives import ExactLogistic, FiniteVolumeDiffusion, MusclAdvection, UpwindAdvection
from hycop.query import Channel, Query, Setting
from hycop.schemes import Scheme, splitting

TOLERANCE = 0.2
POSITIVE = ["Lie", "Strang", "ABAB", "ABABA", "SABA2", "SABA3", "SABA4", "SABA5", "SABA7"]
ALL = [*POSITIVE, "Yoshida", "Suzuki"]


def errors_of(scheme: Scheme, substeps: tuple[int, ...], dictionary: Dictionary, query: Query, truth: Array) -> Array:
    """Relative error of the scheme cut into each number of substeps."""
    states = [run(scheme.with_substeps(n).programs(query, dictionary), dictionary, query) for n in substeps]
    return np.array([np.linalg.norm(u - truth) / np.linalg.norm(truth) for u in states])


def halving_orders(errors: Array) -> Array:
    return np.log2(errors[:-1] / errors[1:])


@dataclass(frozen=True, eq=False)
class MatrixFlow:
    """u' = M u, exactly, forwards and backwards."""

    process: str
    matrix: Array
    order = EXACT
    reversible = True

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.einsum("bij,bcj->bci", np.stack([exponential(self, float(tau)) for tau in duration]), u)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return np.ones(setting.batch)


@cache
def exponential(flow: MatrixFlow, tau: float) -> Array:
    """Kept, because a scheme takes few different steps many times."""
    return np.asarray(scipy.linalg.expm(tau * flow.matrix))


@cache
def matrix_system(operators: int) -> tuple[Dictionary, Query, Array]:
    """Random matrices of norm about two, two states and times, and where the sum of the matrices takes them."""
    rng = np.random.default_rng(operators)
    size = 5
    matrices = rng.standard_normal((operators, size, size)) / np.sqrt(size)
    dictionary = Dictionary({name: MatrixFlow(name, m) for name, m in zip("ABCD", matrices, strict=False)})
    setting = Setting(Grid.box((size,), batch=2), (Channel("u"),), {})
    query = Query(rng.standard_normal((2, 1, size)), setting, np.array([0.35, 0.5]))
    truth = np.einsum("bij,bcj->bci", scipy.linalg.expm(query.time[:, None, None] * matrices.sum(axis=0)), query.u0)
    return dictionary, query, truth


@pytest.mark.parametrize("operators", [2, 3, 4])
@pytest.mark.parametrize("name", ALL)
def test_order_on_matrices(name: str, operators: int) -> None:
    dictionary, query, truth = matrix_system(operators)
    for outer in dictionary:
        scheme = splitting(name).with_outer(outer)
        orders = halving_orders(errors_of(scheme, (4, 8, 16, 32), dictionary, query, truth))
        assert np.abs(orders - scheme.order).max() < TOLERANCE, f"{scheme}: {orders}"


@pytest.mark.parametrize("operators", [1, 2, 3])
@pytest.mark.parametrize("name", ALL)
def test_a_repeated_scheme_is_the_scheme_repeated(name: str, operators: int) -> None:
    """So that every ``x2`` has the order measured above, which halves the step by repeating."""
    dictionary, query, _ = matrix_system(operators)
    for outer in dictionary:
        once, twice = (splitting(f"{name}{repeat}(outer={outer})") for repeat in ("", " x2"))
        half = Query(query.u0, query.setting, query.time / 2)
        middle = Query(run(once.programs(half, dictionary), dictionary, half), half.setting, half.time)
        end = run(once.programs(middle, dictionary), dictionary, middle)
        np.testing.assert_allclose(run(twice.programs(query, dictionary), dictionary, query), end, rtol=1e-12)
        assert twice.with_substeps(4) == splitting(f"{name} x8(outer={outer})")


def test_commuting_operators_split_without_error() -> None:
    rng = np.random.default_rng(2)
    matrix = rng.standard_normal((5, 5))
    dictionary = Dictionary({"A": MatrixFlow("A", 0.3 * matrix), "B": MatrixFlow("B", 0.2 * matrix @ matrix)})
    query = matrix_system(2)[1]
    total = 0.3 * matrix + 0.2 * matrix @ matrix
    truth = np.einsum("bij,bcj->bci", scipy.linalg.expm(query.time[:, None, None] * total), query.u0)
    for name in ALL:
        assert errors_of(splitting(name), (1,), dictionary, query, truth)[0] < 1e-12


# The sub-steps of MUSCL have a time error of their own. With so small a cfl it is 1e-10, and nearly the same in the
# reference, so that it does not show. The query time is short for the sake of ABAB: it is not symmetric, so its next
# error term is only one order higher, and disturbs the slope where steps are not small.
FINITE_VOLUME = Dictionary(
    {"advection": MusclAdvection(cfl=1e-4), "diffusion": FiniteVolumeDiffusion(), "reaction": ExactLogistic()}
)
UPWIND = FINITE_VOLUME.swapping("advection", UpwindAdvection(cfl=1e-6))
SUBSTEPS = (2, 4, 8, 16)


def adr_query(u: Array, grid: Grid) -> Query:
    """The states on their grid with coefficients of their own."""
    rng = np.random.default_rng(0)
    ranges = {"cx": (0.4, 0.9), "cy": (0.4, 0.9), "Dx": (0.01, 0.03), "Dy": (0.01, 0.03), "r": (3.0, 5.0)}
    params = {name: rng.uniform(*bounds, grid.batch) for name, bounds in ranges.items()}
    return Query(u[:, None], Setting(grid, (Channel("u"),), params), np.full(grid.batch, 0.01))


@cache
def rising(boundary: tuple[str, str]) -> tuple[Query, Array]:
    """States that rise along the wind, and so stay monotone also where they pile up at a wall; and their truth."""
    grid = Grid.box((15, 12), (1.0, 0.9), boundary, batch=2)
    x, y = grid.centres()
    query = adr_query(0.15 + 0.6 / (1 + np.exp(3.3 - 4 * x - 3 * y)), grid)
    return query, run(splitting("SABA7 x64").programs(query, FINITE_VOLUME), FINITE_VOLUME, query)


@cache
def waves(batch: int, limited: bool) -> tuple[Query, Array]:
    """Periodic states of several phases, and their truth."""
    grid = Grid.box((15, 12), (1.0, 0.9), batch=batch)
    phase = np.arange(batch).reshape(-1, 1, 1) / batch
    x, y = grid.centres()[0] + phase, grid.centres()[1] / 0.9 - 0.3 * phase
    u = 0.5 + 0.2 * np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y) + 0.15 * np.cos(2 * np.pi * (x + y))
    query, dictionary = adr_query(u, grid), FINITE_VOLUME if limited else UPWIND
    return query, run(splitting("SABA7 x64").programs(query, dictionary), dictionary, query)


OUTER = ["advection", *(pytest.param(name, marks=pytest.mark.validate) for name in ("diffusion", "reaction"))]
CLOSED = [("outflow", "wall"), *(pytest.param((name,) * 2, marks=pytest.mark.validate) for name in ("wall", "outflow"))]


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("boundary", CLOSED, ids="-".join)
@pytest.mark.parametrize("name", POSITIVE)
def test_order_on_finite_volumes(name: str, boundary: tuple[str, str], outer: str) -> None:
    """Monotone states, for which the limiter never switches."""
    query, truth = rising(boundary)
    scheme = splitting(name).with_outer(outer)
    errors = errors_of(scheme, SUBSTEPS, FINITE_VOLUME, query, truth)
    orders = halving_orders(errors)
    assert np.abs(orders - scheme.order).max() < TOLERANCE, f"{scheme}: {orders}, errors {errors}"


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("name", POSITIVE)
def test_order_on_periodic_finite_volumes(name: str, outer: str) -> None:
    """Periodic states have extrema, where the limiter has a kink. A step in which one moves on to the next cell is an
    order less accurate; there is a fixed number of those, so the order stays, but the errors scatter about their line.
    Here the order is the slope of that line for eight states together (without a limiter nothing scatters: below)."""
    query, truth = waves(8, limited=True)
    scheme = splitting(name).with_outer(outer)
    errors = errors_of(scheme, SUBSTEPS, FINITE_VOLUME, query, truth)
    slope = -np.polyfit(np.log2(SUBSTEPS), np.log2(errors), 1)[0]
    assert abs(slope - scheme.order) < TOLERANCE, f"{scheme}: {slope}, errors {errors}"


@pytest.mark.parametrize("name", ["Lie", "Strang", "ABAB", "ABABA"])
def test_order_on_periodic_upwind(name: str) -> None:
    """Upwind has no limiter, but the time error of Euler's method, which takes many sub-steps to make negligible."""
    query, truth = waves(1, limited=False)
    scheme = splitting(name)
    orders = halving_orders(errors_of(scheme, SUBSTEPS, UPWIND, query, truth))
    assert np.abs(orders - scheme.order).max() < TOLERANCE, f"{scheme}: {orders}"
