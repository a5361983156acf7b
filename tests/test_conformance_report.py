"""What the conformance suite says, and the tools that it measures with."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from hycop.conformance import Check, Report, check_primitive
from hycop.conformance.case import interpolated, observed_order
from hycop.errors import HyCOPError, InvalidInputError, UnknownNameError
from hycop.grid import Array, Grid
from hycop.primitives import (
    UpwindAdvection,
)
from hycop.query import Channel, Setting


def test_report_reads_well() -> None:
    report = check_primitive(UpwindAdvection())
    lines = str(report).splitlines()
    assert lines[0] == "UpwindAdvection: 21 of 21 checks passed"
    assert len(lines) == 1 + len(report) == 1 + len(list(report))
    assert all(line.startswith("ok  ") for line in lines[1:])
    assert report["identity"] == Check("identity", True, "relative change in zero duration 0.0e+00, demanded ≤ 1e-14")
    report.raise_if_failed()
    with pytest.raises(UnknownNameError, match="identity"):
        report["identiti"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.checks = ()  # type: ignore[misc]


def test_failures_stand_out_in_the_report() -> None:
    report = Report("Mine", (Check("one", True, "fine"), Check("two", False, "measured 2, demanded 1")))
    assert str(report).splitlines()[2].startswith("FAIL  two")
    with pytest.raises(HyCOPError, match="Mine does not keep its contract: two: measured 2, demanded 1"):
        report.raise_if_failed()


def test_a_class_is_not_an_instance() -> None:
    with pytest.raises(InvalidInputError, match=r"UpwindAdvection is a class.*UpwindAdvection\(\)"):
        check_primitive(UpwindAdvection)  # type: ignore[arg-type]


def test_something_else_is_no_primitive() -> None:
    assert check_primitive(3)["declarations"].detail == "it lacks advances, order, flow, work"  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [3, 9])
@pytest.mark.parametrize("n", [7, 8])
def test_interpolation_hits_smooth_fields(n: int, factor: int) -> None:
    channels = (Channel("h"), Channel("v", normal=1))
    setting = Setting(Grid.box((n, n + 1), (1.0, 2.0), ("periodic", "wall")), channels, {})

    def fields(grid: Grid) -> Array:
        x, y = grid.centres()
        wave = 1 + np.sin(2 * np.pi * x + 1)
        return np.stack([wave * np.cos(np.pi * y / 2), wave * np.sin(np.pi * y)], axis=1)

    fine = interpolated(fields(setting.grid), setting, factor)
    np.testing.assert_allclose(fine, fields(setting.grid.refined(factor)), atol=1e-13)
    half = slice(factor // 2, None, factor)
    np.testing.assert_allclose(fine[:, :, half, half], fields(setting.grid), atol=1e-13)


def test_observed_order() -> None:
    assert observed_order(np.array([1.0, 0.1, 0.01 / 9, 0.01 / 81]), 3).order == pytest.approx(2)
    assert observed_order(np.array([1e-9, 1e-11, 1e-16]), 10).order == pytest.approx(2)
    sub_stepped = observed_order(np.array([0.0, 0.0, 0.4, 0.2]), 2)
    assert sub_stepped.order == pytest.approx(1), "its own sub-steps were short enough at first"
    exact = observed_order(np.array([1e-15, 2e-16]), 3)
    assert exact.order == np.inf and not exact.is_about(2) and exact.reaches(2)
    bound = observed_order(np.array([1e-10, 1e-16]), 10)
    assert str(bound) == "≥ 4.00" and bound.is_about(5) and bound.reaches(5) and not bound.is_about(3)
    for unknown in (np.array([1e-16, 1e-10]), np.array([1.0, np.nan])):
        observed = observed_order(unknown, 3)
        assert np.isnan(observed.order) and not observed.is_about(1) and not observed.reaches(1)
