"""Declared against measured order of every primitive: analytic solutions in cell averages, four grids and more.

The order is the slope of log(relative error) over log(cell width), fitted over all grids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numba
import numpy as np
import pytest
from numpy.polynomial import Polynomial

from hycop.boundary import MIXED
from hycop.grid import AXES, Array, Grid
from hycop.primitive import EXACT, Primitive, boundaries_of
from hycop.primitives import (
    PRIMITIVES,
    ExactLogistic,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    SpectralAdvection,
    SpectralAdvectionDiffusion,
    SpectralDiffusion,
    UpwindAdvection,
)
from hycop.query import Channel, Setting

TOLERANCE = 0.2
ROUNDING = 1e-13

LENGTHS = (1.0, 0.6, 0.8)
VELOCITY = (1.0, -0.5, 0.6)
DIFFUSIVITY = (0.02, 0.01, 0.015)

# odd and anisotropic; refined by about two, without a common factor, so that nothing is helped by nesting
COARSE = {
    1: ((9,), (17,), (33,), (65,)),
    2: ((9, 13), (17, 25), (33, 49), (65, 97)),
    3: ((7, 9, 5), (13, 17, 11), (25, 35, 21), (49, 69, 41)),
}
FINE = {
    1: ((75,), (151,), (301,), (601,)),
    2: ((45, 35), (91, 69), (181, 139), (361, 279)),
    3: ((24, 21, 18), (37, 33, 27), (61, 53, 45), (95, 85, 73)),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small grids and many sub-steps: threads would mostly wait for each other, and for the other test worker."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(threads)


def setting_on(shape: Sequence[int], boundary: str | Sequence[str], **letters: Sequence[float]) -> Setting:
    """One box with the coefficients of each letter along its axes."""
    axes = len(shape)
    params = {letter + axis: row[i] for letter, row in letters.items() for i, axis in enumerate(AXES[:axes])}
    return Setting(Grid.box(shape, LENGTHS[:axes], boundary), (Channel("u"),), params)


def product_of(factors: Sequence[Array]) -> Array:
    """The state (1, 1, *grid) whose averages are the products of averages along the axes."""
    return reduce(np.multiply.outer, factors)[None, None]


def relative_error(u: Array, truth: Array, norm: int) -> float:
    return float(np.linalg.norm((u - truth).ravel(), norm) / np.linalg.norm(truth.ravel(), norm))


def fitted_order(cells: Sequence[float], errors: Sequence[float]) -> float:
    return float(-np.polyfit(np.log(cells), np.log(errors), 1)[0])


@dataclass(frozen=True)
class Bump:
    """The compact bump (1 − s²)⁴ along each axis, s = (x/L − centre)/width, three times differentiable.

    ``centre`` is a fraction of the axis, counted against the wind.
    """

    centre: float
    width: float

    def averages(self, setting: Setting, time: float) -> Array:
        """Exact cell averages, from the antiderivative, of the bump after it has travelled for a time."""
        integral = (Polynomial([1.0, 0.0, -1.0]) ** 4).integ()
        factors = []
        for axis, (n, boundary) in enumerate(zip(setting.grid.shape, setting.grid.boundary, strict=True)):
            length, speed = setting.grid.lengths[0, axis], setting.per_axis("c")[0, axis]
            start = self.centre if speed > 0 else 1.0 - self.centre
            images = (-1, 0, 1) if boundary == "periodic" else (0,)
            edges = np.linspace(0.0, 1.0, n + 1) - start - speed * time / length
            parts = [np.diff(integral(np.clip((edges - image) / self.width, -1.0, 1.0))) for image in images]
            factors.append(n * self.width * np.sum(parts, axis=0))
        return product_of(factors)


def mode_averages(setting: Setting, time: float, mode: int = 1) -> Array:
    """1 + a product of modes that drift with c and decay with D: cosines that fit the boundary of each axis."""
    factors = []
    for axis, (centres, boundary) in enumerate(zip(setting.grid.centres(), setting.grid.boundary, strict=True)):
        periodic = boundary == "periodic"
        k = (2.0 if periodic else 1.0) * np.pi * mode / setting.grid.lengths[0, axis]
        dx = setting.grid.spacing[0, axis]
        shift = setting.params["c" + AXES[axis]][0] * time if "cx" in setting.params else 0.0
        decay = np.exp(-setting.params["D" + AXES[axis]][0] * k**2 * time) if "Dx" in setting.params else 1.0
        # the average of a cosine over a cell is its value at the centre times sin(k dx/2)/(k dx/2)
        width = np.sinc(k * dx / (2 * np.pi))
        factors.append(decay * width * np.cos(k * (centres.ravel() - shift) + (0.7 if periodic else 0.0)))
    return 1.0 + product_of(factors)


# Where the bump starts, its half width and its time: it wraps around, stays off the walls, or leaves through the edge.
BUMPS = {
    "periodic": (Bump(0.7, 0.45), 0.2),
    "wall": (Bump(0.42, 0.3), 0.15),
    "outflow": (Bump(0.6, 0.4), 0.2),
}


def advection_errors(
    primitive: Primitive, boundary: str, shapes: Sequence[tuple[int, ...]], norm: int
) -> tuple[list[float], list[float]]:
    bump, time = BUMPS[boundary]
    cells, errors = [], []
    for shape in shapes:
        setting = setting_on(shape, boundary, c=VELOCITY)
        out = primitive.flow(bump.averages(setting, 0.0), np.array([time]), setting)
        cells.append(setting.grid.cells ** (1 / len(shape)))
        errors.append(relative_error(out, bump.averages(setting, time), norm))
    return cells, errors


@pytest.mark.parametrize("primitive", [UpwindAdvection(), MusclAdvection()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    ("axes", "boundary"),
    [(1, "periodic"), (1, "wall"), (1, "outflow"), (2, "periodic"), (2, "wall"), (2, "outflow"), (3, "periodic")],
)
def test_advected_bump(primitive: Primitive, axes: int, boundary: str) -> None:
    """L1, because a limiter clips extrema: there MUSCL has order 1.77 in L2 and 1.4 in L∞ (1.55 and 1.0 with outflow,
    whose zero-gradient ghost cell makes the last slope zero), see ``test_limiter_costs_order_in_l2``."""
    order = fitted_order(*advection_errors(primitive, boundary, FINE[axes], norm=1))
    assert order == pytest.approx(primitive.order, abs=TOLERANCE)


@pytest.mark.parametrize(("boundary", "measured"), [("periodic", 1.77), ("wall", 1.77), ("outflow", 1.56)])
def test_limiter_costs_order_in_l2(boundary: str, measured: float) -> None:
    order = fitted_order(*advection_errors(MusclAdvection(), boundary, FINE[1], norm=2))
    assert order == pytest.approx(measured, abs=0.05)


DIFFUSION_BOXES = [
    (1, ("periodic",)),
    (1, ("wall",)),
    (1, ("outflow",)),
    (2, ("periodic", "periodic")),
    (2, ("wall", "wall")),
    (2, ("outflow", "outflow")),
    (2, ("wall", "periodic")),
    (3, ("outflow", "periodic", "wall")),
]


def diffusion_errors(primitive: Primitive, axes: int, boundary: tuple[str, ...]) -> tuple[list[float], list[float]]:
    cells, errors = [], []
    for shape in COARSE[axes]:
        setting = setting_on(shape, boundary, D=DIFFUSIVITY)
        out = primitive.flow(mode_averages(setting, 0.0), np.array([0.5]), setting)
        cells.append(setting.grid.cells ** (1 / axes))
        errors.append(relative_error(out, mode_averages(setting, 0.5), 2))
    return cells, errors


@pytest.mark.parametrize(("axes", "boundary"), DIFFUSION_BOXES)
def test_decaying_modes_by_finite_volumes(axes: int, boundary: tuple[str, ...]) -> None:
    order = fitted_order(*diffusion_errors(FiniteVolumeDiffusion(), axes, boundary))
    assert order == pytest.approx(FiniteVolumeDiffusion.order, abs=TOLERANCE)


@pytest.mark.parametrize(("axes", "boundary"), DIFFUSION_BOXES)
def test_decaying_modes_by_transforms(axes: int, boundary: tuple[str, ...]) -> None:
    _, errors = diffusion_errors(SpectralDiffusion(), axes, boundary)
    assert max(errors) < ROUNDING


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("extra", [0, 1], ids=["odd", "even"])
def test_drifting_modes_by_transforms(axes: int, extra: int) -> None:
    for shape in COARSE[axes]:
        setting = setting_on([n + extra for n in shape], "periodic", c=VELOCITY)
        out = SpectralAdvection().flow(mode_averages(setting, 0.0, mode=2), np.array([0.37]), setting)
        assert relative_error(out, mode_averages(setting, 0.37, mode=2), 2) < ROUNDING


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_drifting_and_decaying_at_once(axes: int) -> None:
    """Constant coefficients commute, so that both at once are one after the other, each of which is studied above."""
    setting = setting_on(COARSE[axes][0], "periodic", c=VELOCITY, D=DIFFUSIVITY)
    u = np.random.default_rng(axes).random((1, 1, *setting.grid.shape))
    tau = np.array([0.37])
    apart = SpectralDiffusion().flow(SpectralAdvection().flow(u, tau, setting), tau, setting)
    assert relative_error(SpectralAdvectionDiffusion().flow(u, tau, setting), apart, 2) < ROUNDING


def divided(primitive: Primitive, u: Array, time: float, setting: Setting, parts: int) -> Array:
    for _ in range(parts):
        u = primitive.flow(u, np.full(setting.batch, time / parts), setting)
    return u


def logistic(u: Array, a: float) -> Array:
    return u * np.exp(a) / (1.0 + u * np.expm1(a))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("boundary", sorted(boundaries_of(Rk4Logistic()) - {MIXED}))
def test_logistic_growth(axes: int, boundary: str) -> None:
    """Pointwise, so the order is in time: against the solution u e^a/(1 + u (e^a − 1))."""
    setting = Setting(Grid.box(COARSE[axes][0], 1.0, boundary), (Channel("u"),), {"r": 1.5})
    u = np.linspace(0.01, 1.3, setting.grid.cells).reshape(1, 1, *setting.grid.shape)
    truth = logistic(u, 1.5)
    parts = (1, 2, 4, 8, 16)
    errors = [relative_error(divided(Rk4Logistic(reach=2.0), u, 1.0, setting, n), truth, 2) for n in parts]
    assert fitted_order(parts, errors) == pytest.approx(Rk4Logistic.order, abs=TOLERANCE)
    for n in parts:
        assert relative_error(divided(ExactLogistic(), u, 1.0, setting, n), truth, 2) < ROUNDING


@pytest.mark.parametrize("primitive", [UpwindAdvection(), MusclAdvection()], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("boundary", ["periodic", "wall", "outflow"])
def test_advection_in_time(primitive: Primitive, boundary: str) -> None:
    """At a fixed grid, against the limit of ever smaller steps: the order of the time integrator."""
    setting = setting_on((25, 21), boundary, c=VELOCITY)
    u, time = Bump(0.45, 0.4).averages(setting, 0.0), 0.012  # one sub-step for each part
    limit = divided(primitive, u, time, setting, 1024)
    parts = (2, 4, 8, 16)
    errors = [relative_error(divided(primitive, u, time, setting, n), limit, 1) for n in parts]
    assert fitted_order(parts, errors) == pytest.approx(primitive.order, abs=TOLERANCE)


EXACT_IN_TIME: list[tuple[Callable[[], Primitive], str]] = [
    (kind, boundary)
    for kind in (SpectralAdvection, SpectralDiffusion, SpectralAdvectionDiffusion, FiniteVolumeDiffusion, ExactLogistic)
    for boundary in sorted(boundaries_of(kind()) - {MIXED})
]


@pytest.mark.parametrize(("kind", "boundary"), EXACT_IN_TIME, ids=lambda each: getattr(each, "__name__", each))
def test_exact_in_time(kind: Callable[[], Primitive], boundary: str) -> None:
    u, setting = kind().example(3)  # type: ignore[attr-defined]
    setting = setting.with_grid(setting.grid.with_boundary(boundary))
    once = divided(kind(), u, 0.3, setting, 1)
    for parts in (2, 4, 8, 16):
        assert relative_error(divided(kind(), u, 0.3, setting, parts), once, 2) < ROUNDING


def test_every_primitive_is_validated_here() -> None:
    by_modes = {FiniteVolumeDiffusion, SpectralDiffusion, SpectralAdvection, SpectralAdvectionDiffusion}
    scalar = {*by_modes, UpwindAdvection, MusclAdvection, Rk4Logistic, ExactLogistic}
    # flows are studied in test_system_orders.py, test_compressible.py and the files of their own primitives; named
    # terms in test_terms.py, exponential methods in test_exponential.py, linear terms in test_formula.py, formulas in
    # test_pointwise.py and test_flux.py, fields and beds in test_fields.py
    flows = {"shallow_water", "burgers", "kuramoto_sivashinsky", "euler", "compressible", "compressible_viscosity"}
    flows |= {"symbolic", "exponential", "linear", "pointwise", "flux", "variable_diffusion", "source", "over_bed"}
    for kind in set(PRIMITIVES.values()) - scalar:
        assert kind.__module__.rpartition(".")[2] in flows
    exact = {kind.__name__ for kind in scalar if kind().order == EXACT}
    assert exact == {"SpectralAdvection", "SpectralDiffusion", "SpectralAdvectionDiffusion", "ExactLogistic"}
