"""Vectors in registers: their arithmetic, small products, exponentials and transforms made of them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.kernels.complex_exponentials import LARGEST_TURN, LEAST, MOST, complex_exponentials
from hycop.kernels.lanes import (
    LANES,
    absolute,
    aligned_rows,
    any_positive,
    filled,
    fused,
    load,
    maximum,
    minimum,
    room,
    square_root,
    store,
    where_positive,
)
from hycop.kernels.line_transform import line_plan, transform
from hycop.kernels.small_products import product

Array = np.ndarray[Any, Any]


@numba.njit(error_model="numpy")
def _arithmetic(a: Array, b: Array, out: Array) -> None:
    for k in range(0, a.size, LANES):
        x, y = load(a, k), load(b, k)
        store(out, k, 2.0 * x + y / 4.0 - x * y)
        store(out, a.size + k, maximum(x, y) - minimum(x, 0.5))
        store(out, 2 * a.size + k, square_root(absolute(x)))
        store(out, 3 * a.size + k, where_positive(x, y, 7.0))
        store(out, 4 * a.size + k, fused(x, y, filled(0.25)))


def test_vectors_compute_what_their_numbers_do() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 3 * LANES))
    a[0] = np.nan
    out = np.empty((5, a.size))
    _arithmetic(a, b, out)
    expected = [2 * a + b / 4 - a * b, np.maximum(a, b) - np.minimum(a, 0.5), np.sqrt(np.abs(a)), np.where(a > 0, b, 7)]
    expected.append(a * b + 0.25)
    np.testing.assert_allclose(out[:, 1:], np.stack(expected)[:, 1:], rtol=1e-14, atol=1e-15)
    assert np.isnan(out[0, 0])
    assert out[3, 0] == 7.0, "NaN is not positive"


@numba.njit
def _any_positive(a: Array) -> bool:
    return any_positive(load(a, 0))


@pytest.mark.parametrize("lane", range(LANES))
def test_any_positive_looks_at_every_number_of_a_vector(lane: int) -> None:
    numbers = np.where(np.arange(LANES) % 2, np.nan, -1.0)
    numbers[lane] = 0.0
    assert not _any_positive(numbers)
    numbers[lane] = 1e-300
    assert _any_positive(numbers)


@pytest.mark.parametrize("first", [0, 1, 3, 8])
def test_aligned_rows_begin_cache_lines(first: int) -> None:
    for rows in aligned_rows(5, 2 * LANES, first):
        assert rows.shape == (2 * LANES,)
        assert rows[first:].ctypes.data % 64 == 0


@pytest.mark.parametrize("count", [1, 7, 8, 9, 34, 40])
def test_room_is_enough_for_the_last_vector_and_one_number_more(count: int) -> None:
    last = (count - 1) // LANES * LANES
    assert room(count) % LANES == 0
    assert room(count) >= last + LANES + 1


@settings(deadline=None, max_examples=60)
@given(
    st.tuples(*[st.integers(1, 40)] * 3), st.sampled_from([np.float64, np.float32]), st.integers(0, 2), st.booleans()
)
def test_small_products_are_those_of_numpy(sizes: tuple[int, int, int], kind: type, place: int, along: bool) -> None:
    """Of any matrix of a stack, also where rows begin one value before the one above; nothing else is written."""
    n, k, m = sizes
    rng = np.random.default_rng(n + 50 * k + 2500 * m)
    a, b = rng.standard_normal((3, n, k)).astype(kind), rng.standard_normal((3, k, m)).astype(kind)
    if along:
        ring = rng.standard_normal((3, k + m)).astype(kind)
        size = ring.itemsize
        b = np.lib.stride_tricks.as_strided(ring[:, k:], (3, k, m), ((k + m) * size, -size, size))
    out = np.full((3, n, m), np.nan, kind)
    product(a, place, b, 2 - place, out, 1)
    tolerance = 1e-13 if kind is np.float64 else 1e-4
    np.testing.assert_allclose(out[1], a[place] @ b[2 - place], rtol=0, atol=tolerance)
    assert np.isnan(out[[0, 2]]).all()
    alone = np.empty((1, n, m), kind)
    product(a[place : place + 1].copy(), 0, np.ascontiguousarray(b[2 - place])[None], 0, alone, 0)
    np.testing.assert_array_equal(alone[0], out[1])


@pytest.mark.parametrize("turns", [1.0, 1e3, 0.99 * LARGEST_TURN, 10 * LARGEST_TURN])
@pytest.mark.parametrize("growth", [1.0, 40.0, 690.0])
def test_complex_exponentials_err_by_rounding_alone(growth: float, turns: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-growth, growth, 500), rng.uniform(-turns, turns, 500)
    lines = np.stack([x, y, x, y])
    complex_exponentials(lines, 500)
    real, imaginary = lines[2:]
    size = np.exp(x)
    np.testing.assert_allclose(real / size, np.cos(y), rtol=0, atol=6e-16)
    np.testing.assert_allclose(imaginary / size, np.sin(y), rtol=0, atol=6e-16)


def test_complex_exponentials_of_extremes() -> None:
    x = np.array([0.0, -np.inf, LEAST - 1, MOST + 1, np.nan, 0.0])
    y = np.array([0.0, 1.0, np.nan, 1.0, 0.0, np.nan])
    lines = np.stack([x, y, x, y])
    complex_exponentials(lines, 6)
    real, imaginary = lines[2:]
    assert (real[:3] == [1, 0, 0]).all() and (imaginary[:3] == 0).all()
    assert real[3] == np.inf
    assert np.isnan(real[4:]).all()
    lines[1, :3] = LARGEST_TURN + 1, np.inf, 1.0
    complex_exponentials(lines, 3)
    assert (real[1:3] == 0).all() and (imaginary[1:3] == 0).all(), "faded, whatever the turn"


@pytest.mark.parametrize("fewest", [2, 4, 6, 16, 97, 193])
def test_transforms_of_lines_are_those_of_numpy(fewest: int) -> None:
    plan = line_plan(fewest)
    rng = np.random.default_rng(2)
    lines = rng.standard_normal((LANES, plan.half)) + 1j * rng.standard_normal((LANES, plan.half))
    buffers = np.zeros((4, plan.half * LANES))
    buffers[0], buffers[1] = lines.real.T.ravel(), lines.imag.T.ravel()
    second = transform(buffers, 0, 2 * plan.half * LANES, plan.half, plan.radices, plan.twiddles)
    real, imaginary = buffers[2:] if second else buffers[:2]
    found = (real + 1j * imaginary).reshape(plan.half, LANES).T
    np.testing.assert_allclose(found, np.fft.fft(lines, axis=1), rtol=0, atol=1e-12)
