"""Scalar conservation laws: against Burgers' kernel, exact Riemann solutions, conservation, and three axes."""

from __future__ import annotations

import numpy as np
import pytest

from hycop.conformance import check_primitive
from hycop.errors import HyCOPError
from hycop.grid import Grid
from hycop.primitives import BurgersAdvection, MusclAdvection
from hycop.primitives.flux import ConservativeFlux
from hycop.query import Setting

PLANE = {"targets": ("u", "u"), "along": ("x", "y")}
OIL = "u^2/(u^2 + m*(1-u)^2)"


@pytest.mark.parametrize("reconstruction", ["weno5", "muscl", "upwind"])
def test_burgers_flux_is_burgers_advection(reconstruction: str) -> None:
    ours, theirs = ConservativeFlux(reconstruction=reconstruction), BurgersAdvection(reconstruction)  # type: ignore[arg-type]
    u, setting = theirs.example(4)
    u = u - 0.5  # with sonic points
    for boundary in ("periodic", "outflow"):
        box = setting.with_grid(setting.grid.with_boundary(boundary))
        duration = np.array([0.1, 0.4, 1.0])
        assert np.abs(ours.flow(u, duration, box) - theirs.flow(u, duration, box)).max() < 1e-13
        assert np.abs(ours.rate(u, box) - theirs.rate(u, box)).max() < 1e-13


CASES = {
    "muscl": ConservativeFlux(reconstruction="muscl"),
    "not convex": ConservativeFlux(fluxes=(OIL,)),
    "two winds": ConservativeFlux(("u", "v"), ("u", "v"), ("x", "x"), ("a*u", "-a*v")),
    "plane": ConservativeFlux(**PLANE, fluxes=("u^2/2", "-c*sin(u)"), reconstruction="muscl"),  # type: ignore[arg-type]
}
LONG = {
    "plane weno5": ConservativeFlux(**PLANE, fluxes=("u^2/2", "-c*u^3")),  # type: ignore[arg-type]
    "space": ConservativeFlux(("u",), ("u",) * 3, ("x", "y", "z"), ("u^2/2", "c*u", "-u^2"), reconstruction="muscl"),
}


@pytest.mark.parametrize(
    "case", [*CASES, *(pytest.param(name, marks=pytest.mark.validate) for name in LONG)]
)  # fmt: skip
def test_conformance(case: str) -> None:
    report = check_primitive({**CASES, **LONG}[case])
    assert report.passed, str(report)


@pytest.mark.parametrize("boundary", ["periodic", "wall"])
def test_totals_are_kept_on_three_axes(boundary: str) -> None:
    u, setting = LONG["space"].example(2)
    box = setting.with_grid(setting.grid.with_boundary(boundary))
    after = LONG["space"].flow(u, np.full(3, 0.2), box)
    assert np.abs(after.sum(axis=(1, 2, 3, 4)) / u.sum(axis=(1, 2, 3, 4)) - 1).max() < 1e-12
    assert np.abs(after - u).max() > 0.01


def test_linear_flux_is_muscl_advection() -> None:
    """Also with walls and outflow, on three axes, where velocities have either sign."""
    rng = np.random.default_rng(1)
    flux = ConservativeFlux(("u",), ("u",) * 3, ("x", "y", "z"), ("cx*u", "cy*u", "cz*u"), reconstruction="muscl")
    params = {"cx": np.array([0.5, -0.7]), "cy": np.array([-0.2, 0.4]), "cz": np.array([0.3, 0.9])}
    u = rng.uniform(0, 1, (2, 1, 6, 5, 4))
    for boundary in (("periodic",) * 3, ("wall", "outflow", "periodic"), ("outflow", "wall", "wall")):
        setting = Setting(Grid.box((6, 5, 4), (1.0, 1.2, 0.8), boundary, batch=2), ("u",), params)
        one = flux.flow(u, np.array([0.1, 0.3]), setting)
        assert np.abs(one - MusclAdvection().flow(u, np.array([0.1, 0.3]), setting)).max() < 1e-12


def test_a_linear_flux_moves_waves_with_high_order() -> None:
    """On a plane WENO5 shows orders between 3 (time) and 5 (space), as the one or the other error is larger."""
    flux = ConservativeFlux(**PLANE, fluxes=("a*u", "-c*u"))  # type: ignore[arg-type]
    errors = []
    for n in (16, 32):
        x = (np.arange(n) + 0.5) / n
        setting = Setting(Grid.box((n, n)), ("u",), {"a": 1.0, "c": 0.5})
        start, end = (
            np.sin(2 * np.pi * (x[:, None] - time)) * np.cos(2 * np.pi * (x[None] + 0.5 * time)) for time in (0.0, 0.3)
        )  # averages of a wave over cells are as its values, times a constant
        errors.append(np.abs(flux.flow(start[None, None], np.array([0.3]), setting)[0, 0] - end).max())
    assert errors[1] < 1e-3 and np.log2(errors[0] / errors[1]) > 2.8


def oil_front(m: float) -> tuple[float, float]:
    """Welge's tangent: the state behind the front of water that drives out oil, and its speed."""
    behind = np.sqrt(m / (1 + m))
    return behind, behind**2 / (behind**2 + m * (1 - behind) ** 2) / behind


@pytest.mark.parametrize(("reconstruction", "allowed"), [("weno5", 0.01), ("muscl", 0.012), ("upwind", 0.03)])
def test_a_front_of_a_flux_that_is_not_convex(reconstruction: str, allowed: float) -> None:
    """Buckley–Leverett: a rarefaction that ends in a shock, of which an upwind difference of f knows nothing."""
    n, m, time = 200, 0.5, 0.4
    x = (np.arange(n) + 0.5) / n
    setting = Setting(Grid.box((n,), 1.0, "outflow"), ("u",), {"m": m})
    flux = ConservativeFlux(fluxes=(OIL,), reconstruction=reconstruction)  # type: ignore[arg-type]
    found = flux.flow((x < 0.2).astype(float)[None, None], np.array([time]), setting)[0, 0]
    behind, speed = oil_front(m)
    values = np.linspace(behind, 1.0, 2000)
    slopes = 2 * m * values * (1 - values) / (values**2 + m * (1 - values) ** 2) ** 2
    places = (x - 0.2) / time
    exact = np.where(places > speed, 0.0, np.interp(places, slopes[::-1], values[::-1]))
    exact[places <= 0] = 1.0
    assert np.abs(found - exact).mean() < allowed


def test_a_state_that_is_lost_is_nan_for_its_sample_only() -> None:
    setting = Setting(Grid.box((16,), batch=2), ("u",), {})
    u = np.stack([np.full((1, 16), 1e300), np.ones((1, 16))])
    u[0, 0, 3] = -1e300
    after = ConservativeFlux(fluxes=("u^3",)).flow(u, np.full(2, 0.1), setting)
    assert np.isnan(after[0]).all() and np.array_equal(after[1], u[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fluxes": ("u*v",), "state": ("u", "v")}, "own channel only"),
        ({"fluxes": ("u", "u")}, "as many targets"),
        ({"along": ("q",)}, "give x, y or z"),
        ({"targets": ("w",)}, "target 'w'"),
        ({"targets": ("u", "u"), "along": ("x", "x"), "fluxes": ("u", "u")}, "add them"),
        ({"fluxes": ("u^",)}, "^flux 'u"),
        ({"fluxes": ("__import__('os')",)}, "^flux"),
        ({"reconstruction": "spline"}, "unknown reconstruction"),
        ({"cfl": 3.0}, "cfl is 3"),
    ],
)
def test_mistakes_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(HyCOPError, match=message) as found:
        ConservativeFlux(**options)  # type: ignore[arg-type]
    assert "\n" not in str(found.value)
