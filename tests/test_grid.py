"""Boxes, cells and boundaries; and averages on coarser grids."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError
from hycop.grid import BOUNDARIES, Grid, all_finite, prolong, restrict

properties = settings(max_examples=50, deadline=None, derandomize=True, database=None)
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
seeds = st.integers(0, 2**32 - 1)

BAD_GRIDS: dict[str, tuple[Callable[[], object], type[HyCOPError], str]] = {
    "no axis": (lambda: Grid.box(()), InvalidInputError, r"grid shape \(\)"),
    "four axes": (lambda: Grid.box((2, 2, 2, 2)), InvalidInputError, "grid shape .*one to three axes"),
    "no cells": (lambda: Grid.box((4, 0)), InvalidInputError, "grid shape .*at least one cell"),
    "negative cells": (lambda: Grid.box((-3,)), InvalidInputError, "grid shape"),
    "lengths without batch": (
        lambda: Grid((4,), np.ones(1), ("wall",)),
        InvalidInputError,
        r"grid lengths .*\(batch, 1\)",
    ),
    "lengths of other axes": (
        lambda: Grid((4, 4), np.ones((2, 3)), ("wall",) * 2),
        InvalidInputError,
        r"grid lengths have shape \(2, 3\)",
    ),
    "zero length": (lambda: Grid.box((4,), 0.0), InvalidInputError, "grid lengths.*finite and positive"),
    "negative length": (lambda: Grid.box((4, 4), (1.0, -1.0)), InvalidInputError, "grid lengths"),
    "NaN length": (lambda: Grid.box((4,), np.nan), InvalidInputError, "grid lengths"),
    "infinite length": (lambda: Grid.box((4,), np.inf), InvalidInputError, "grid lengths"),
    "text as length": (lambda: Grid.box((4,), "1.0"), InvalidInputError, "grid lengths have dtype <U3: give real"),  # type: ignore[arg-type]
    "length for another axis": (
        lambda: Grid.box((4,), (1.0, 2.0)),
        InvalidInputError,
        r"shape \(2,\): give one length, or one for each of 1 axes",
    ),
    "batch that is no number": (lambda: Grid.box((4,), batch="two"), InvalidInputError, "grid batch is 'two'"),  # type: ignore[arg-type]
    "shape as a number": (lambda: Grid.box(64), InvalidInputError, r"grid shape 64: give whole numbers"),  # type: ignore[arg-type]
    "unknown boundary": (
        lambda: Grid.box((4,), boundary="walls"),
        UnknownNameError,
        "boundary 'walls'.*did you mean wall",
    ),
    "far-off boundary": (lambda: Grid.box((4,), boundary="?"), UnknownNameError, "known: dirichlet, neumann, outflow"),
    "too many boundaries": (
        lambda: Grid.box((4,), boundary=("wall", "wall")),
        InvalidInputError,
        "grid boundary: 2 names for 1 axes",
    ),
    "too few boundaries": (lambda: Grid.box((4, 4), boundary=("wall",)), InvalidInputError, "grid boundary: 1 names"),
    "refined away": (lambda: Grid.box((4,)).refined(0), InvalidInputError, "grid shape"),
    "another unknown boundary": (lambda: Grid.box((4,)).with_boundary("period"), UnknownNameError, "periodic"),
}


@pytest.mark.parametrize("case", BAD_GRIDS)
def test_bad_grids_are_refused_by_name(case: str) -> None:
    build, kind, message = BAD_GRIDS[case]
    with pytest.raises(kind, match=message) as caught:
        build()
    assert type(caught.value) is kind


def test_a_box_is_the_same_for_every_sample() -> None:
    grid = Grid.box((6, 4), lengths=(3.0, 1.0), boundary=("periodic", "wall"), batch=3)
    assert (grid.axes, grid.batch, grid.cells) == (2, 3, 24)
    assert grid.boundary == ("periodic", "wall")
    np.testing.assert_array_equal(grid.spacing, [[0.5, 0.25]] * 3)


def test_a_grid_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Grid.box((4,)).shape = (5,)  # type: ignore[misc]


@properties
@given(shapes, seeds)
def test_centres_are_the_middles_of_the_cells(shape: tuple[int, ...], seed: int) -> None:
    lengths = np.random.default_rng(seed).uniform(0.1, 9.0, (2, len(shape)))
    grid = Grid(shape, lengths, ("wall",) * len(shape))
    for axis, centres in enumerate(grid.centres()):
        assert np.broadcast_shapes(centres.shape, (2, *shape)) == (2, *shape)
        along = centres.reshape(2, shape[axis])
        np.testing.assert_allclose(along[:, 0], 0.5 * grid.spacing[:, axis], rtol=1e-14)
        np.testing.assert_allclose(along[:, 0] + along[:, -1], lengths[:, axis], rtol=1e-14)
        np.testing.assert_allclose(np.diff(along), grid.spacing[:, [axis]] * np.ones(shape[axis] - 1), rtol=1e-11)


@properties
@given(shapes, st.integers(1, 4))
def test_refined_boxes_keep_their_lengths_and_nest(shape: tuple[int, ...], factor: int) -> None:
    grid = Grid.box(shape, lengths=2.5, boundary="outflow", batch=2)
    fine = grid.refined(factor)
    assert fine.shape == tuple(n * factor for n in shape)
    assert fine.boundary == grid.boundary
    np.testing.assert_array_equal(fine.lengths, grid.lengths)
    coarse_x, fine_x = (np.broadcast_to(g.centres()[0], (2, *g.shape)) for g in (grid, fine))
    np.testing.assert_allclose(restrict(fine_x, shape), coarse_x, rtol=1e-14)


@pytest.mark.parametrize("boundary", sorted(BOUNDARIES))
def test_with_boundary_changes_the_boundary_only(boundary: str) -> None:
    grid = Grid.box((4, 3), lengths=(1.0, 2.0), batch=2)
    other = grid.with_boundary(boundary)
    assert other.boundary == (boundary, boundary)
    assert grid.boundary == ("periodic", "periodic")
    assert other.shape == grid.shape
    np.testing.assert_array_equal(other.lengths, grid.lengths)


def test_take_chooses_samples() -> None:
    grid = Grid((4,), np.array([[1.0], [2.0], [3.0]]), ("wall",))
    np.testing.assert_array_equal(grid.take(np.array([2, 0, 2])).lengths, [[3.0], [1.0], [3.0]])
    np.testing.assert_array_equal(grid.take(slice(1, None)).lengths, [[2.0], [3.0]])
    assert grid.take(slice(0, 1)).boundary == ("wall",)


@properties
@given(shapes, st.integers(1, 3), st.integers(1, 3), seeds)
def test_restrict_keeps_totals_and_nests(shape: tuple[int, ...], first: int, second: int, seed: int) -> None:
    middle = tuple(n * first for n in shape)
    fine = tuple(n * second for n in middle)
    u = np.random.default_rng(seed).standard_normal((2, 3, *fine))
    coarse = restrict(u, shape)
    assert coarse.shape == (2, 3, *shape)
    spaces = tuple(range(2, u.ndim))
    np.testing.assert_allclose(coarse.mean(axis=spaces), u.mean(axis=spaces), atol=1e-14)
    np.testing.assert_allclose(restrict(restrict(u, middle), shape), coarse, atol=1e-14)
    np.testing.assert_array_equal(restrict(u, fine), u)
    np.testing.assert_array_equal(restrict(np.full(fine, 0.75), shape), np.full(shape, 0.75))


def test_restrict_averages_blocks() -> None:
    u = np.arange(24.0).reshape(1, 1, 4, 6)
    np.testing.assert_array_equal(restrict(u, (2, 2)), [[[[4.0, 7.0], [16.0, 19.0]]]])


@pytest.mark.parametrize("shape", [(3,), (8,), (5,)])
def test_restrict_refuses_what_does_not_divide(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot restrict \(4,\) to \(\d,\)"):
        restrict(np.zeros((1, 1, 4)), shape)


@properties
@given(shapes)
def test_cells_are_the_product_of_the_shape(shape: tuple[int, ...]) -> None:
    grid = Grid.box(shape)
    assert grid.cells == prod(shape)
    assert grid.axes == len(shape)


@properties
@given(
    st.lists(st.integers(5, 8), min_size=1, max_size=2).map(tuple),
    st.integers(1, 4),
    st.sampled_from(sorted(BOUNDARIES)),
    seeds,
)
def test_prolong_keeps_every_average(shape: tuple[int, ...], factor: int, boundary: str, seed: int) -> None:
    u = np.random.default_rng(seed).standard_normal((2, 2, *shape))
    fine = prolong(u, (boundary,) * len(shape), factor)
    assert fine.shape == (2, 2, *(n * factor for n in shape))
    np.testing.assert_allclose(restrict(fine, shape), u, rtol=0, atol=1e-12)
    flat = np.full((1, 1, *shape), 0.3)
    np.testing.assert_allclose(prolong(flat, (boundary,) * len(shape), factor), 0.3, rtol=1e-13)


@pytest.mark.parametrize(
    ("boundary", "order", "waves", "grids"), [("periodic", 17, 4, (32, 64)), ("outflow", 5, 1, (32, 64, 128))]
)
def test_prolong_has_the_order_of_its_polynomial(boundary: str, order: int, waves: int, grids: tuple[int, ...]) -> None:
    def averages(n: int) -> np.ndarray:
        edges = 2 * np.pi * np.arange(n + 1) / n
        return (np.diff(-np.cos(waves * edges)) / waves * n / (2 * np.pi))[None, None]

    errors = [np.abs(prolong(averages(n), (boundary,), 2) - averages(2 * n)).max() for n in grids]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.abs(orders - order).max() < 0.03 * order  # a finer grid than 64 would show rounding


def test_prolong_mirrors_the_normal_component_at_a_wall() -> None:
    """A quantity that is odd about both walls is reconstructed as on the doubled periodic box."""
    odd = np.sin(np.pi * (np.arange(8) + 0.5) / 8)[None, None]
    doubled = np.concatenate((odd, -odd[..., ::-1]), axis=-1)
    fine = prolong(odd, ("wall",), 2, np.array([[-1.0]]))
    np.testing.assert_allclose(fine, prolong(doubled, ("periodic",), 2)[..., :16], atol=1e-14)


def test_prolong_needs_five_cells() -> None:
    with pytest.raises(InvalidInputError, match="at least 5 cells along y, there are 4"):
        prolong(np.zeros((1, 1, 6, 4)), ("wall", "wall"), 2)


@pytest.mark.parametrize("shape", [(32,), (17, 23), (6, 6, 6)])
@pytest.mark.parametrize("channels", [1, 3])
def test_prolongation_of_a_sample_does_not_depend_on_its_batch(shape: tuple[int, ...], channels: int) -> None:
    u, boundary = np.random.default_rng(0).random((3, channels, *shape)), ("periodic",) * len(shape)
    alone = [prolong(u[i : i + 1], boundary, 2) for i in range(3)]
    assert np.array_equal(np.concatenate(alone), prolong(u, boundary, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 3, 1000])
def test_only_nan_and_infinity_are_not_finite(count: int, dtype: type) -> None:
    values = np.full(count, 0.9 * np.finfo(dtype).max, dtype=dtype)  # whose squares are infinite
    assert all_finite(values) and all_finite(values[::2]) and all_finite(np.ones((count, 2), dtype=dtype).T)
    for bad in (np.nan, np.inf, -np.inf) if count else ():
        assert not all_finite(np.append(values, bad).astype(dtype))
        assert not all_finite(np.append(np.ones(count), bad).astype(dtype)[::-1])


@pytest.mark.parametrize("kind", ["f8", "f4", "f2", ">f8", "g", "i8"])
def test_finite_values_of_any_type(kind: str) -> None:
    for size in (3, 40):
        values = np.ones(size, dtype=kind).reshape(1, -1)
        assert all_finite(values)
        if values.dtype.kind == "f":
            values[0, 1] = np.inf
            assert not all_finite(values)
