"""The conformance suite accepts primitives that keep their contract and names the check that others fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numba
import numpy as np
import pytest

from hycop.conformance import Check, ConformanceError, check_primitive
from hycop.grid import BOUNDARIES, Array, Grid
from hycop.primitive import ALL_CHANNELS, EXACT, update_work
from hycop.primitives import (
    ExactLogistic,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    SpectralAdvection,
    SpectralDiffusion,
    UpwindAdvection,
)
from hycop.primitives.examples import scalar_example
from hycop.query import Channel, Setting


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads would mostly wait for those of the other test worker; ``test_primitives`` runs the suite with all."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(threads)


def altered(kind: type, **members: Any) -> Any:
    """An instance of a primitive with some members replaced."""
    return type(f"Altered{kind.__name__}", (kind,), members)()


def after(kind: type, change: Callable[[Array], Any]) -> Any:
    """A primitive whose result is changed."""
    return altered(kind, flow=lambda self, u, duration, setting: change(kind().flow(u, duration, setting)))


class Drag:
    """u_t = −k u, with only what a primitive must have."""

    advances = frozenset({"drag"})
    order = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u * np.exp(-setting.param("k") * duration).reshape(-1, *[1] * (u.ndim - 1))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)

    def example(self, seed: int) -> tuple[Array, Setting]:
        setting = Setting(Grid.box((9,)), (Channel("h"), Channel("m", normal=0)), {"k": 2e-5})
        return np.random.default_rng(seed).normal(size=(1, 2, 9)), setting


class ExplicitDiffusion(FiniteVolumeDiffusion):
    """Euler steps of at most Δx²/(8D): first order in time, yet second when space is refined."""

    symbol = rate = None
    boundaries = frozenset({"periodic"})

    def example(self, seed: int) -> tuple[Array, Setting]:
        grid = Grid.box((11,), batch=2)
        return np.sin(2 * np.pi * grid.centres()[0] + seed)[:, None], Setting(grid, (Channel("u"),), {"Dx": 0.3})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        rate = setting.per_axis("D") / setting.grid.spacing**2
        out = np.empty_like(u)
        for sample in range(setting.batch):
            steps = max(1, int(np.ceil(duration[sample] * 8 * rate[sample].sum())))
            v = u[sample]
            for _ in range(steps):
                v = v + duration[sample] / steps * sum(
                    rate[sample, axis] * (np.roll(v, 1, 1 + axis) + np.roll(v, -1, 1 + axis) - 2 * v)
                    for axis in range(setting.grid.axes)
                )
            out[sample] = v
        return out


def curvature(u: Array) -> Array:
    return sum(np.roll(u, 1, axis) + np.roll(u, -1, axis) - 2 * u for axis in (2, 3)) / 24  # type: ignore[no-any-return]


class LogisticOfAverages(ExactLogistic):
    """Averages to points, exact growth, and back: fourth order in cell averages, but second in point values."""

    order = 4
    reversible = False
    boundaries = frozenset({"periodic"})

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        points = u - curvature(u)
        growth = super().flow(points, duration, setting) - points
        return u + growth + curvature(growth)


class Walled(FiniteVolumeDiffusion):
    """Knows walls only, so that its example must be refined by cosines."""

    boundaries = frozenset({"wall"})

    def example(self, seed: int) -> tuple[Array, Setting]:
        grid = Grid.box((14,), 2.0, "wall", batch=2)
        return np.cos(np.pi * grid.centres()[0] / 2.0)[:, None], Setting(grid, (Channel("u"),), {"Dx": 0.3})


GOOD = {
    "least": Drag(),
    "first order in time, second when refined": ExplicitDiffusion(),
    "only walls": Walled(),
    "one sample": altered(UpwindAdvection, example=lambda self, seed: scalar_example(seed, ("c",), batch=1)),
    "large units": altered(ExactLogistic, example=lambda self, seed: scalar_example(seed, (), {"r": 1e-9})),
    "small units": altered(Rk4Logistic, example=lambda self, seed: scalar_example(seed, (), {"r": 1e12})),
    "another Courant number": UpwindAdvection(cfl=0.3),
    "sub-steps": Rk4Logistic(reach=0.05),
    "sub-steps with only rounding": Rk4Logistic(reach=0.02),
}


@pytest.mark.parametrize("primitive", GOOD.values(), ids=GOOD)
def test_good_primitives_pass(primitive: Any) -> None:
    check_primitive(primitive, seed=4).raise_if_failed()


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """A learned reaction u ↦ u + τ·tanh(w·u + b): a primitive with weights and without an order."""

    w: Array = dataclasses.field(default_factory=lambda: np.array([0.7]))
    noise: float = 0.0
    batch_dependent: bool = False
    advances: ClassVar[frozenset[str]] = frozenset({"reaction"})
    order: ClassVar[None] = None

    def arrays(self) -> Mapping[str, Array]:
        return {"w": self.w}

    def with_arrays(self, arrays: Mapping[str, Array]) -> Network:
        return dataclasses.replace(self, w=arrays["w"])

    def rate(self, u: Array, setting: Setting) -> Array:
        return np.tanh(self.w * u + 0.1)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = duration.reshape((-1,) + (1,) * (u.ndim - 1))
        return u + tau * (self.rate(u, setting) + self.noise * u.max())

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, ())


class Forgetful(Network):
    def with_arrays(self, arrays: Mapping[str, Array]) -> Network:
        return self


def test_a_primitive_may_have_no_order() -> None:
    report = check_primitive(Network())
    report.raise_if_failed()
    assert report["order"].detail == "not declared" and "order none" in report["declarations"].detail
    assert "for information" in report["semigroup"].detail and "e-" in report["semigroup"].detail
    moving = check_primitive(altered(Network, flow=lambda self, u, duration, setting: 1.01 * u))
    assert not moving["identity"].passed


def test_bits_may_depend_on_the_batch_if_declared() -> None:
    assert not check_primitive(Network(noise=1e-7))["batch of one"].passed
    check_primitive(Network(noise=1e-7, batch_dependent=True)).raise_if_failed()
    assert not check_primitive(Network(noise=1e-2, batch_dependent=True))["batch of one"].passed


def test_weights_that_cannot_be_given_back_are_caught() -> None:
    assert "ignores the arrays" in check_primitive(Forgetful())["declarations"].detail


@pytest.mark.parametrize("kind", [MusclAdvection, ExactLogistic, SpectralDiffusion])
def test_a_rate_of_something_else_is_caught(kind: Any) -> None:
    wrong = altered(kind, rate=lambda self, u, setting: (1 + 1e-5) * kind.rate(self, u, setting))
    assert not check_primitive(wrong)["rate"].passed
    flat = altered(kind, rate=lambda self, u, setting: kind.rate(self, u, setting)[:, 0])
    assert "demanded float64" in check_primitive(flat)["rate"].detail
    assert check_primitive(altered(kind, rate=None))["rate"].detail == "not offered"


def test_an_order_in_cell_averages_counts() -> None:
    report = check_primitive(LogisticOfAverages())
    assert report["order"].passed, report
    assert "cell averages" in report["order"].detail


class Noisy(Rk4Logistic):
    calls = 0

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        Noisy.calls += 1
        return super().flow(u, duration, setting) * (1.0 + 1e-15 * Noisy.calls)


class Buffered(ExactLogistic):
    buffer = np.empty(0)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        if Buffered.buffer.shape != u.shape:
            Buffered.buffer = np.empty_like(u)
        Buffered.buffer[:] = super().flow(u, duration, setting)
        return Buffered.buffer


class Destructive(ExactLogistic):
    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        u[:] = super().flow(u, duration, setting)
        return u


class Greedy(ExactLogistic):
    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        out = super().flow(u, duration, setting)
        setting.params["r"][:] *= 1.5
        return out


class OnePace(ExactLogistic):
    """Advances every sample by the first one's duration: depends on the order of the batch."""

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return super().flow(u, np.broadcast_to(duration[:1], duration.shape), setting)


class Averaging(ExactLogistic):
    """Mixes in the mean over the batch: depends on its composition, not on its order."""

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        out = super().flow(u, duration, setting)
        return out + 1e-9 * np.max(duration) * (np.sort(u, axis=0).mean(axis=0) - u)


class HiddenSpace(Rk4Logistic):
    """Second order in time, with errors there that are larger than its first-order ones in space."""

    order = 2
    reversible = False

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        a = (setting.param("r") * duration).reshape(-1, 1, 1, 1)
        half = u + 0.5 * a * u * (1 - u)
        wide = setting.grid.spacing[:, 0].reshape(-1, 1, 1, 1)
        return u + a * half * (1 - half) + 2e-5 * a * wide * np.sin(7 * u)


class Roll:
    """Advection, whose author never thought of walls."""

    advances = frozenset({"advection"})
    order = EXACT

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return SpectralAdvection().flow(u, duration, setting.with_grid(setting.grid.with_boundary("periodic")))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return SpectralAdvection().example(seed)


class Tired(SpectralAdvection):
    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return super().flow(u, np.minimum(duration, 1.0), setting)


def raising(self: Any, u: Array, duration: Array, setting: Setting) -> Array:
    raise ZeroDivisionError("no\nway")


def refusing_walls(self: Any, u: Array, duration: Array, setting: Setting) -> Array:
    if "wall" in setting.grid.boundary:
        raise ZeroDivisionError("no way")
    return UpwindAdvection().flow(u, duration, setting)


BAD: dict[str, tuple[Any, str, str]] = {
    "diffusion declared exact": (altered(FiniteVolumeDiffusion, order=EXACT), "order", "demanded ≤ 1e-10"),
    "upwind declared 2": (altered(UpwindAdvection, order=2), "order", "measured 0.98"),
    "MUSCL declared 3": (altered(MusclAdvection, order=3), "order", "measured 1.93"),
    "MUSCL declared 1": (altered(MusclAdvection, order=1), "order", "demanded 1 ± 0.2"),
    "RK4 declared 2": (altered(Rk4Logistic, order=2), "order", "measured 4.00"),
    "RK4 declared 5": (altered(Rk4Logistic, order=5), "order", "measured 4.00"),
    "RK4 declared exact": (altered(Rk4Logistic, order=EXACT), "order", "demanded ≤ 1e-10"),
    "exact declared 2": (altered(ExactLogistic, order=2), "order", "∞ (rounding only)"),
    "lower order hidden": (HiddenSpace(), "order", "space alone 1.0"),
    "RK4 declared exact, two steps": (altered(Rk4Logistic, order=EXACT), "semigroup", "one step against two"),
    "growth declared conserving": (altered(ExactLogistic, conserves=ALL_CHANNELS), "conservation", "'u'"),
    "RK4 declared conserving": (altered(Rk4Logistic, conserves=frozenset({"u"})), "conservation", "'u'"),
    "leaking": (after(UpwindAdvection, lambda out: out * (1 - 1e-11)), "conservation", "1.0e-11"),
    "spectral advection with walls": (altered(SpectralAdvection, boundaries=BOUNDARIES), "semigroup", ""),
    "walls like periodic ends": (Roll(), "boundaries", "declare boundaries"),
    "stops after a while": (Tired(), "semigroup", "100 times the duration"),
    "raises on walls": (altered(UpwindAdvection, flow=refusing_walls), "boundaries", "wall: raised ZeroDivisionError"),
    "raises": (altered(ExactLogistic, flow=raising), "flow", "raised ZeroDivisionError: no way"),
    "not reversible": (altered(UpwindAdvection, reversible=True), "reversible", "negative"),
    "depends on the batch": (Averaging(), "batch of one", "to the bit"),
    "depends on the place": (OnePace(), "batch order", "to the bit"),
    "modifies its input": (Destructive(), "input untouched", "state"),
    "modifies the setting": (Greedy(), "input untouched", "r"),
    "has a state": (Noisy(), "repeatable", "to the bit"),
    "reuses its buffer": (Buffered(), "repeatable", "new array"),
    "float32": (after(ExactLogistic, lambda out: out.astype(np.float32)), "shape and dtype", "float32"),
    "list": (after(ExactLogistic, lambda out: out.tolist()), "shape and dtype", "list"),
    "wrong shape": (after(ExactLogistic, lambda out: out[:, 0]), "flow", "shape (3, 12, 15)"),
    "not identity": (after(ExactLogistic, lambda out: out * (1 + 1e-13)), "identity", "demanded ≤ 1e-14"),
    "NaN": (after(ExactLogistic, lambda out: out * np.nan), "flow", "not finite"),
    "a NaN": (after(ExactLogistic, lambda out: np.where(np.arange(15) == 3, np.nan, out)), "flow", "not finite"),
    "does nothing": (altered(ExactLogistic, flow=lambda self, u, duration, setting: u.copy()), "flow", "example"),
    "no work": (altered(ExactLogistic, work=lambda *_: np.zeros(3)), "work", "demanded > 0"),
    "infinite work": (altered(ExactLogistic, work=lambda *_: np.array([1.0, 1.0, np.nan])), "work", "finite"),
    "work of one number": (altered(ExactLogistic, work=lambda *_: 1.0), "work", "(3,)"),
    "work raises": (altered(ExactLogistic, work=lambda *_: 1 / 0), "work", "raised ZeroDivisionError"),
    "advances text": (altered(ExactLogistic, advances="reaction"), "declarations", "advances"),
    "advances nothing": (altered(ExactLogistic, advances=frozenset()), "declarations", "advances"),
    "order zero": (altered(ExactLogistic, order=0), "declarations", "order is 0"),
    "order text": (altered(ExactLogistic, order="2"), "declarations", "order is '2'"),
    "odd boundary": (altered(ExactLogistic, boundaries=frozenset({"open"})), "declarations", "open"),
    "boundaries text": (altered(ExactLogistic, boundaries="periodic"), "declarations", "frozenset"),
    "conserves text": (altered(SpectralDiffusion, conserves="u"), "declarations", "conserves"),
    "conserves unknown": (altered(SpectralDiffusion, conserves=frozenset({"h"})), "example", "conserves names h"),
    "undeclared example": (altered(SpectralDiffusion, boundaries=frozenset({"wall"})), "example", "periodic"),
    "odd example": (altered(ExactLogistic, example=lambda self, seed: (np.zeros(3), 1)), "example", "Setting"),
    "lost example": (
        altered(ExactLogistic, example=lambda self, seed: (np.full((3, 1, 12, 15), np.nan), scalar_example(0, ())[1])),
        "example",
        "NaN",
    ),
    "no example": (
        type("Bare", (), {"advances": Drag.advances, "order": EXACT, "flow": Drag.flow, "work": Drag.work})(),
        "example",
        "add one that returns (u, setting)",
    ),
}


@pytest.mark.parametrize(("primitive", "check", "detail"), BAD.values(), ids=BAD)
def test_broken_primitives_are_caught(primitive: Any, check: str, detail: str) -> None:
    report = check_primitive(primitive)
    assert not report.passed
    assert not report[check].passed, report
    assert detail in report[check].detail
    assert "\n" not in report[check].detail
    with pytest.raises(ConformanceError, match=check):
        report.raise_if_failed()


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(
    "primitive",
    [
        altered(FiniteVolumeDiffusion, order=EXACT),
        altered(UpwindAdvection, order=2),
        altered(MusclAdvection, order=3),
        altered(MusclAdvection, order=1),
        altered(Rk4Logistic, order=2),
    ],
    ids=lambda each: f"{type(each).__name__}-{each.order}",
)
def test_wrong_orders_are_caught_for_every_seed(primitive: Any, seed: int) -> None:
    assert not check_primitive(primitive, seed)["order"].passed


def test_a_wrong_symbol_is_caught() -> None:
    class Mixed(SpectralDiffusion):
        def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
            return FiniteVolumeDiffusion().flow(u, duration, setting)

    assert not check_primitive(Mixed())["symbol"].passed


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_spectral_advection_with_walls_is_caught_without_its_warning() -> None:
    """Cosines cannot travel: two steps are not one, even if the lost imaginary part goes unnoticed."""
    check = check_primitive(altered(SpectralAdvection, boundaries=BOUNDARIES))["semigroup"]
    assert not check.passed
    assert "wall" in check.detail or "outflow" in check.detail


def test_a_boundary_that_run_does_not_refuse_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hycop.conformance.checks.run", lambda *_: None)
    check = check_primitive(SpectralAdvection())["other boundaries"]
    assert check == Check("other boundaries", False, "dirichlet is not declared, but run did not refuse it")
