"""Every primitive that comes with HyCOP: contract, invariants, symmetries and bad input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hycop
from hycop.boundary import MIXED, PLAIN
from hycop.conformance import check_primitive
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import AXES, Array, Grid
from hycop.primitive import Primitive, boundaries_of, conserved_channels, fewest_cells
from hycop.primitives import (
    PRIMITIVES,
    ExactLogistic,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    UpwindAdvection,
    find_primitive,
)
from hycop.query import Channel, Setting
from tests.helpers import SCALAR_KINDS

every_primitive = pytest.mark.parametrize("kind", SCALAR_KINDS.values(), ids=SCALAR_KINDS)
CONSERVING = {name: kind for name, kind in SCALAR_KINDS.items() if getattr(kind(), "conserves", None)}
SIZES = (1, 2, 3, 4, 5, 7, 8, 12)
CHANNELS = (Channel("a"), Channel("b"))

# the same examples in every run: a failure in one run and none in the next helps nobody
properties = settings(max_examples=40, deadline=None, derandomize=True, database=None)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[int]:
    """Small states: threads would mostly wait for those of the other test worker."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield threads
    numba.set_num_threads(threads)


@pytest.fixture
def all_threads(one_thread: int) -> Iterator[None]:
    numba.set_num_threads(one_thread)
    yield
    numba.set_num_threads(1)


@dataclass(frozen=True, eq=False)
class Box:
    """A state, its setting and durations, drawn at random."""

    u: Array
    setting: Setting
    duration: Array

    def flow(self, kind: Callable[[], Primitive]) -> Array:
        return kind().flow(self.u, self.duration, self.setting)


def box(seed: int, boundary: tuple[str, ...], shape: tuple[int, ...]) -> Box:
    """Two samples of two channels in [0, 1]; some velocities and diffusivities are zero."""
    rng = np.random.default_rng(seed)
    axes = len(shape)
    grid = Grid(shape, rng.uniform(0.3, 5.0, (2, axes)), boundary)
    params = {"r": rng.uniform(-2.0, 2.0, 2)}
    for axis in AXES[:axes]:
        params["c" + axis] = rng.choice([0.0, 1.0], 2, p=[0.1, 0.9]) * rng.uniform(-2.0, 2.0, 2)
        params["D" + axis] = rng.choice([0.0, 1.0], 2, p=[0.1, 0.9]) * rng.uniform(0.0, 0.3, 2)
    u = rng.uniform(0.0, 1.0, (2, 2, *shape))
    return Box(u, Setting(grid, CHANNELS, params), rng.uniform(0.0, 0.5, 2))


@st.composite
def boxes(
    draw: st.DrawFn, kind: Callable[[], Primitive], boundaries: frozenset[str], axes: tuple[int, ...] = (1, 2, 3)
) -> Box:
    sizes = [n for n in SIZES if n >= fewest_cells(kind())]
    shape = tuple(draw(st.lists(st.sampled_from(sizes), min_size=min(axes), max_size=max(axes))))
    known = sorted(boundaries - {MIXED})  # the same at both ends: a mirror must not matter
    names = tuple(draw(st.sampled_from(known)) for _ in shape)
    return box(draw(st.integers(0, 2**32 - 1)), names, shape)


def mirrored(state: Box, axis: int) -> Box:
    """The same seen in a mirror: the axis reversed, and the wind along it."""
    params = dict(state.setting.params)
    params["c" + AXES[axis]] = -params["c" + AXES[axis]]
    setting = Setting(state.setting.grid, state.setting.channels, params)
    return Box(np.flip(state.u, 2 + axis).copy(), setting, state.duration)


def in_other_units(state: Box, metre: float, second: float) -> Box:
    """The same with lengths and times measured in other units."""
    powers = {"r": (0, -1), "c": (1, -1), "D": (2, -1)}
    params = {
        name: value * metre ** powers[name[0]][0] * second ** powers[name[0]][1]
        for name, value in state.setting.params.items()
    }
    grid = state.setting.grid
    scaled = Grid(grid.shape, grid.lengths * metre, grid.boundary)
    return Box(state.u, Setting(scaled, CHANNELS, params), state.duration * second)


# ---------------------------------------------------------------------------------------- the contract


@every_primitive
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("all_threads")
def test_conforms(kind: Callable[[], Primitive], seed: int) -> None:
    check_primitive(kind(), seed).raise_if_failed()


def test_registry() -> None:
    assert find_primitive("MusclAdvection") is MusclAdvection
    with pytest.raises(UnknownNameError, match="did you mean MusclAdvection"):
        find_primitive("MuslAdvection")


@every_primitive
@given(data=st.data())
@properties
def test_float32_stays_float32(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    state = data.draw(boxes(kind, boundaries_of(kind())))
    single = kind().flow(state.u.astype(np.float32), state.duration, state.setting)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, state.flow(kind), rtol=0, atol=2e-4)


@every_primitive
@given(data=st.data())
@properties
def test_work_is_positive_and_ignores_other_samples(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    state = data.draw(boxes(kind, boundaries_of(kind())))
    work = kind().work(state.u, state.duration, state.setting)
    one = slice(1, 2)
    assert work.shape == (2,) and (work >= 0).all()
    assert kind().work(state.u[one], state.duration[one], state.setting.take(one))[0] == work[1]


# ------------------------------------------------------------------------------------------ invariants


@pytest.mark.parametrize("kind", CONSERVING.values(), ids=CONSERVING)
@given(data=st.data())
@properties
def test_keeps_totals(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    state = data.draw(boxes(kind, boundaries_of(kind()) & {"periodic", "wall"}))
    assert conserved_channels(kind(), state.setting) == (0, 1)
    cells = tuple(range(2, state.u.ndim))
    drift = (state.flow(kind) - state.u).sum(axis=cells)
    assert (np.abs(drift) <= 1e-12 * state.u.sum(axis=cells)).all()


MANY_STEPS = [
    pytest.param(kind, boundary, id=f"{name}-{'-'.join(boundary)}")
    for name, kind in CONSERVING.items()
    for boundary in (("periodic", "periodic"), ("wall", "wall"), ("periodic", "wall"))
    if set(boundary) <= boundaries_of(kind())
]


@pytest.mark.parametrize("steps", [300, pytest.param(10_000, marks=pytest.mark.validate)])
@pytest.mark.parametrize(("kind", "boundary"), MANY_STEPS)
def test_keeps_totals_over_many_steps(kind: Callable[[], Primitive], boundary: tuple[str, ...], steps: int) -> None:
    state = box(7, boundary, (5, 4))
    primitive, u, rng = kind(), state.u, np.random.default_rng(8)
    for _ in range(steps):
        u = primitive.flow(u, rng.uniform(0.0, 0.05, 2), state.setting)
    np.testing.assert_allclose(u.sum(axis=(2, 3)), state.u.sum(axis=(2, 3)), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "boundaries"),
    [
        (UpwindAdvection, frozenset({"periodic", "outflow"})),
        (MusclAdvection, frozenset({"periodic", "outflow"})),
        (FiniteVolumeDiffusion, boundaries_of(FiniteVolumeDiffusion())),
        (ExactLogistic, boundaries_of(ExactLogistic())),
        (Rk4Logistic, boundaries_of(Rk4Logistic())),
    ],
)
@given(data=st.data())
@properties
def test_makes_no_new_extrema(kind: Callable[[], Primitive], boundaries: frozenset[str], data: st.DataObject) -> None:
    """Values stay between the extremes of their channel (between 0 and 1 where they react)."""
    state = data.draw(boxes(kind, boundaries))
    out, cells = state.flow(kind), tuple(range(2, state.u.ndim))
    reacts = "reaction" in kind().advances
    low = 0.0 if reacts else state.u.min(axis=cells, keepdims=True)
    high = 1.0 if reacts else state.u.max(axis=cells, keepdims=True)
    assert (out >= low - 1e-13).all() and (out <= high + 1e-13).all()


@pytest.mark.parametrize("kind", [UpwindAdvection, MusclAdvection])
@given(data=st.data())
@properties
def test_stays_positive_at_walls(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    """What the wind piles up at a wall may grow, but nothing gets negative."""
    assert data.draw(boxes(kind, boundaries_of(kind()))).flow(kind).min() >= -1e-13


@pytest.mark.parametrize("kind", [UpwindAdvection, MusclAdvection])
@given(data=st.data())
@properties
def test_total_variation_does_not_grow(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    state = data.draw(boxes(kind, frozenset({"periodic", "outflow"}), axes=(1,)))
    wrap = {"append": state.u[..., :1]} if state.setting.grid.boundary == ("periodic",) else {}
    before = np.abs(np.diff(state.u, **wrap)).sum(axis=-1)
    out = state.flow(kind)
    wrap = {"append": out[..., :1]} if wrap else {}
    assert (np.abs(np.diff(out, **wrap)).sum(axis=-1) <= before + 1e-12).all()


# ------------------------------------------------------------------------------------------ symmetries


@every_primitive
@given(data=st.data())
@properties
def test_moves_with_the_state(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    state = data.draw(boxes(kind, boundaries_of(kind())))
    shifts = [data.draw(st.integers(0, n)) for n in state.u.shape[2:]]
    for axis, boundary in enumerate(state.setting.grid.boundary):
        shifts[axis] *= boundary == "periodic"
    axes = tuple(range(2, state.u.ndim))
    moved = Box(np.roll(state.u, shifts, axes), state.setting, state.duration).flow(kind)
    np.testing.assert_allclose(moved, np.roll(state.flow(kind), shifts, axes), rtol=0, atol=1e-13)


@every_primitive
@given(data=st.data())
@properties
def test_is_the_same_in_a_mirror(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    state = data.draw(boxes(kind, boundaries_of(kind())))
    for axis in range(state.setting.grid.axes):
        image = np.flip(mirrored(state, axis).flow(kind), 2 + axis)
        np.testing.assert_allclose(image, state.flow(kind), rtol=0, atol=1e-12)


@every_primitive
@given(data=st.data(), metre=st.floats(1e-3, 1e3), second=st.floats(1e-3, 1e3))
@properties
def test_does_not_know_units(kind: Callable[[], Primitive], data: st.DataObject, metre: float, second: float) -> None:
    state = data.draw(boxes(kind, boundaries_of(kind())))
    other = in_other_units(state, metre, second)
    work = kind().work(state.u, state.duration, state.setting)
    # a duration of a whole number of sub-steps may be cut into one more of them after rounding
    assume((work == kind().work(other.u, other.duration, other.setting)).all())
    np.testing.assert_allclose(other.flow(kind), state.flow(kind), rtol=0, atol=1e-11)


@every_primitive
@given(data=st.data())
@properties
def test_a_line_in_more_axes(kind: Callable[[], Primitive], data: st.DataObject) -> None:
    """A state that is constant along the other axes, without wind along them, stays so and follows the line."""
    line = data.draw(boxes(kind, boundaries_of(kind()), axes=(1,)))
    room = data.draw(boxes(kind, boundaries_of(kind()) & PLAIN, axes=(2, 3)))  # a value would change the state
    axes = room.setting.grid.axes
    along = data.draw(st.integers(0, axes - 1))

    def placed(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (*values[:along], value, *values[along + 1 :])

    grid, n = room.setting.grid, line.setting.grid.shape[0]
    lengths = grid.lengths.copy()
    lengths[:, along] = line.setting.grid.lengths[:, 0]
    shape = placed(grid.shape, n)
    params = dict(room.setting.params) | {"r": line.setting.params["r"]}
    params |= {"c" + axis: np.zeros(2) for axis in AXES[:axes]}
    params |= {letter + AXES[along]: line.setting.params[letter + "x"] for letter in "cD"}
    setting = Setting(Grid(shape, lengths, placed(grid.boundary, line.setting.grid.boundary[0])), CHANNELS, params)

    def spread(u: Array) -> Array:
        return np.broadcast_to(u.reshape(2, 2, *placed((1,) * axes, n)), (2, 2, *shape))

    out = kind().flow(spread(line.u), line.duration, setting)
    allowed = 1e-12 + 10 * getattr(kind(), "tolerance", 0.0)  # other axes make other time steps
    np.testing.assert_allclose(out, spread(line.flow(kind)), rtol=0, atol=allowed)


# ------------------------------------------------------------------------------------------- bad input


of_any_kind = pytest.mark.parametrize("kind", PRIMITIVES.values(), ids=PRIMITIVES)


@of_any_kind
@pytest.mark.parametrize("cells", [1, 2, 3, pytest.param(4, marks=pytest.mark.validate), 5])
def test_tiny_grids_are_refused_or_right(kind: Callable[[], Primitive], cells: int) -> None:
    """Fewer cells than the stencil are refused; periodic cells three times in a row change as they do once."""
    solver = kind()
    u, setting = solver.example(0)  # type: ignore[attr-defined]
    setting = setting.averaged()
    axes, grid = setting.grid.axes, setting.grid
    u = np.ascontiguousarray(u[(..., *(slice(0, cells),) * axes)])
    tiny = setting.with_grid(Grid((cells,) * axes, grid.lengths, grid.boundary))
    duration = 1e-3 * np.ones(setting.batch)
    if cells < fewest_cells(solver):
        for act in (lambda: solver.flow(u, duration, tiny), lambda: solver.rate(u, tiny)):  # type: ignore[attr-defined]
            with pytest.raises(InvalidInputError, match=f"needs at least {fewest_cells(solver)} cells along each axis"):
                act()
        return
    for boundary in boundaries_of(solver) - {MIXED}:
        box = tiny.with_grid(tiny.grid.with_boundary(boundary))
        out = solver.flow(u, duration, box)
        assert np.isfinite(out).all() and np.isfinite(solver.rate(u, box)).all()  # type: ignore[attr-defined]
        kept = conserved_channels(solver, box) if boundary in ("periodic", "wall") else ()
        totals = [each.sum(axis=tuple(range(2, u.ndim)))[:, list(kept)] for each in (u, out)]
        np.testing.assert_allclose(totals[0], totals[1], rtol=0, atol=1e-12 * np.abs(u).sum())
    three = setting.with_grid(Grid((3 * cells,) * axes, 3.0 * grid.lengths, grid.boundary))
    tiled = solver.flow(np.tile(u, (1, 1) + (3,) * axes), duration, three)
    once = solver.flow(u, duration, tiny)
    np.testing.assert_allclose(tiled, np.tile(once, (1, 1) + (3,) * axes), rtol=1e-9, atol=1e-11)


@of_any_kind
def test_a_rate_is_float32_for_float32_and_keeps_totals(kind: Callable[[], Primitive]) -> None:
    solver: Any = kind()
    u, setting = solver.example(1)
    rate = solver.rate(u, setting)
    single = solver.rate(u.astype(np.float32), setting)
    assert single.dtype == np.float32 and np.linalg.norm(single - rate) < 1e-3 * np.linalg.norm(rate)
    total = np.abs(rate.sum(axis=tuple(range(2, u.ndim))))[:, list(conserved_channels(solver, setting))]
    assert (total < 1e-11 * np.abs(rate).sum()).all()


def test_primitives_are_imported_when_asked_for() -> None:
    code = (
        "import sys, hycop.primitives as p\n"
        "def loaded(): return {name[17:] for name in sys.modules if name.startswith('hycop.primitives.')}\n"
        "assert not loaded() and 'Rk4Logistic' in p.PRIMITIVES and 'Rk4Logistic' in dir(p) and not loaded()\n"
        "from hycop.primitives import Rk4Logistic\n"
        "assert p.PRIMITIVES['Rk4Logistic'] is p.Rk4Logistic is Rk4Logistic\n"
        "assert loaded() == {'logistic', 'examples'}, loaded()\n"
        "assert not hasattr(p, 'Rk5Logistic')\n"
    )
    # the package hycop itself imports its problems, and they their primitives: a bare one in its place
    bare = f"import sys, types; bare = types.ModuleType('hycop'); bare.__path__ = {list(hycop.__path__)!r}\n"
    bare += "sys.modules['hycop'] = bare\n"
    subprocess.run([sys.executable, "-c", bare + code], check=True)
