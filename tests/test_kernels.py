"""Kernels: the same bits for one sample and many, for shared samples and shared rows, for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.muscl import numpy_muscl, numpy_muscl_blocked
from hycop.grid import Array
from hycop.kernels import advection, convolution, reaction, spectral, threads

properties = settings(max_examples=30, deadline=None, derandomize=True, database=None)
SHAPES = [(7,), (9, 20), (5, 4, 6)]
THREADS = [1, numba.get_num_threads()]
BOUNDARIES = list(advection.BOUNDARY_CODES)


@pytest.fixture(autouse=True)
def _tiny_tasks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes small arrays worth sharing, so that small tests take the paths of large ones."""
    monkeypatch.setattr(threads, "UPDATES", 1)
    monkeypatch.setattr(spectral, "BLOCK", 64)
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


def courants(rng: np.random.Generator, batch: int, axes: int) -> Array:
    """Courant numbers of either sign, some of them zero."""
    nu = rng.uniform(-0.5, 0.5, (batch, axes)) / axes
    return np.where(rng.random((batch, axes)) < 0.15, 0.0, nu)


def boundaries(axes: int) -> list[tuple[str, ...]]:
    """The same along every axis, and another along each."""
    return [
        tuple(BOUNDARIES[(first + axis * turn) % 3] for axis in range(axes)) for first in range(3) for turn in (0, 1)
    ]


@pytest.mark.parametrize("muscl", [True, False], ids=["muscl", "upwind"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_advect_is_the_same_however_it_is_shared(shape: tuple[int, ...], muscl: bool) -> None:
    rng = np.random.default_rng(len(shape))
    u, nu, steps = rng.random((5, 2, *shape)), courants(rng, 5, len(shape)), np.array([0, 1, 2, 3, 1])
    for boundary in boundaries(len(shape)):
        full = advection.advect(u, nu, steps, boundary, muscl)
        for count in THREADS:
            numba.set_num_threads(count)
            np.testing.assert_array_equal(advection.advect(u, nu, steps, boundary, muscl), full)
            for i in range(5):  # one sample at a time: its rows are shared
                alone = advection.advect(u[i : i + 1], nu[i : i + 1], steps[i : i + 1], boundary, muscl)
                np.testing.assert_array_equal(alone, full[i : i + 1])


def test_rows_that_fill_several_tasks_are_the_same_too() -> None:
    rng = np.random.default_rng(1)
    u, nu, steps = rng.random((3, 1, 4 * advection.BLOCK + 3, 5)), courants(rng, 3, 2), np.array([2, 3, 1])
    full = advection.advect(u, nu, steps, ("wall", "periodic"), True)
    alone = advection.advect(u[:1], nu[:1], steps[:1], ("wall", "periodic"), True)
    np.testing.assert_array_equal(alone, full[:1])


@properties
@given(st.lists(st.integers(1, 8), min_size=1, max_size=3).map(tuple), st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_muscl_is_the_scheme_written_with_whole_arrays(shape: tuple[int, ...], seed: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    u, nu = rng.random((3, 2, *shape)), courants(rng, 3, len(shape))
    ours = advection.advect(u, nu, np.full(3, steps), ("periodic",) * len(shape), True)
    np.testing.assert_allclose(ours, numpy_muscl(u, nu, steps), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(numpy_muscl_blocked(u, nu, steps, 2), numpy_muscl(u, nu, steps))


def test_advect_leaves_its_argument_alone_and_takes_views() -> None:
    rng = np.random.default_rng(2)
    u, nu, steps = rng.random((4, 1, 6, 12)), courants(rng, 4, 2), np.ones(4, dtype=np.int64)
    before = u.copy()
    view = u[:, :, ::-1, ::2]
    out = advection.advect(view, nu, steps, ("periodic", "periodic"), True)
    np.testing.assert_array_equal(out, advection.advect(view.copy(), nu, steps, ("periodic", "periodic"), True))
    np.testing.assert_array_equal(u, before)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_modes_are_the_same_however_they_are_shared(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    u = rng.random((50, 2, *shape))
    for transforms in product(("fourier", "cosine"), repeat=len(shape)):
        phase: Any = 1j if set(transforms) == {"fourier"} else 0
        multipliers = tuple(np.exp(-rng.random((50, n)) * (1 + phase)) for n in shape)
        full = spectral.multiply_modes(u, transforms, multipliers)
        for count in THREADS:
            numba.set_num_threads(count)
            np.testing.assert_array_equal(spectral.multiply_modes(u, transforms, multipliers), full)
            for i in (0, 1, 24, 49):
                alone = spectral.multiply_modes(u[i : i + 1], transforms, tuple(m[i : i + 1] for m in multipliers))
                np.testing.assert_array_equal(alone, full[i : i + 1])


@pytest.mark.parametrize("transform", ["fourier", "cosine"])
def test_multipliers_of_one_change_nothing(transform: str) -> None:
    u = np.random.default_rng(4).random((3, 2, 6, 5))
    same = spectral.multiply_modes(u, (transform,) * 2, tuple(np.ones((3, n)) for n in (6, 5)))
    np.testing.assert_allclose(same, u, rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape", [(6,), (7,), (6, 5), (1, 4), (32, 32), (128, 20)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_small_boxes_are_convolved_to_what_transforms_give(
    shape: tuple[int, ...], dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one by one, with any threads, and beside operators that only others of the batch use."""
    rng = np.random.default_rng(6)
    batch, transforms = 35, ("fourier",) * len(shape)
    u, durations = rng.random((batch, 2, *shape)).astype(dtype), rng.uniform(0, 1, (batch, 3))
    durations[rng.random((batch, 3)) < 0.3] = 0.0
    rates = []
    for n in shape:
        k = np.fft.fftfreq(n, 1 / n) * rng.random((batch, 1))
        turning = np.where(2 * np.arange(n) == n, 0.0, k)
        rates.append(np.stack([-1j * turning, -0.1 * k**2, np.full((batch, n), -0.3)], axis=1))
    assert convolution.convolves(u.shape, transforms)
    full = spectral.evolve(u, transforms, tuple(rates), durations)
    assert full.dtype == dtype
    for count in THREADS:
        numba.set_num_threads(count)
        np.testing.assert_array_equal(spectral.evolve(u, transforms, tuple(rates), durations), full)
    for i in range(0, batch, 5):
        used, one = durations[i] != 0, slice(i, i + 1)
        alone = spectral.evolve(
            u[one], transforms, tuple(rate[one][:, used] for rate in rates), durations[one][:, used]
        )
        np.testing.assert_array_equal(alone, full[one])
    for count in (2, 3):  # also where there are fewer cores
        monkeypatch.setattr(threads, "threads_for", lambda updates, count=count: count)
        np.testing.assert_array_equal(spectral.evolve(u, transforms, tuple(rates), durations), full)
    monkeypatch.setattr(convolution, "LARGEST", {})
    tolerance = 1e-14 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(spectral.evolve(u, transforms, tuple(rates), durations), full, rtol=0, atol=tolerance)


@pytest.mark.parametrize("cells", [4, 100, 130])
def test_infinite_rates_silence_only_those_who_use_them(cells: int) -> None:
    u = np.random.default_rng(7).random((2, 1, cells, cells))
    rates = np.zeros((2, 1, cells))
    rates[:, :, 1:] = -np.inf
    out = spectral.evolve(u, ("fourier",) * 2, (rates, rates), np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(out[0], u[0].mean(), rtol=1e-13)
    np.testing.assert_allclose(out[1], u[1], rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", [1, 100, reaction.BLOCK + 1, 3 * reaction.BLOCK])
def test_reactions_are_the_same_however_they_are_shared(size: int) -> None:
    rng = np.random.default_rng(5)
    u, a, steps = rng.random((4, 1, size)), rng.uniform(-1, 2, 4), np.array([0, 1, 2, 5])
    exact, rk4 = reaction.logistic(u, a), reaction.rk4_logistic(u, a, steps)
    for count in THREADS:
        numba.set_num_threads(count)
        for i in range(4):
            one = slice(i, i + 1)
            np.testing.assert_array_equal(reaction.logistic(u[one], a[one]), exact[one])
            np.testing.assert_array_equal(reaction.rk4_logistic(u[one], a[one], steps[one]), rk4[one])


def test_the_number_of_threads_comes_back() -> None:
    before = numba.get_num_threads()
    with pytest.raises(ZeroDivisionError), threads.sharing(0):
        assert numba.get_num_threads() == 1
        raise ZeroDivisionError
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_parts_cover_every_number_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "threads_for", lambda updates: 3)
    seen = np.zeros(count, dtype=np.int64)

    def call(first: int, last: int) -> None:
        seen[first:last] += 1

    threads.in_parts(call, count, 1e9)
    assert (seen == 1).all()
