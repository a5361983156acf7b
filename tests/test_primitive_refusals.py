"""Every primitive that comes with HyCOP refuses bad input in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hycop.errors import HyCOPError, IncompatibleError, InvalidInputError
from hycop.grid import Grid
from hycop.primitive import Primitive
from hycop.primitives import (
    PRIMITIVES,
    FiniteVolumeDiffusion,
    MusclAdvection,
    Rk4Logistic,
    SpectralDiffusion,
    UpwindAdvection,
)
from hycop.query import Channel, Setting
from tests.helpers import SCALAR_KINDS, one_box

BAD_DURATIONS: list[tuple[object, str]] = [
    (np.nan, "duration is nan for sample 0"),
    (np.array([0.1, np.inf, 0.1]), "duration is inf for sample 1"),
    (np.array([0.1, 0.1]), r"duration has shape \(2,\)"),
    (np.ones((3, 1)), r"duration has shape \(3, 1\)"),
]
of_any_kind = pytest.mark.parametrize("kind", PRIMITIVES.values(), ids=PRIMITIVES)


@of_any_kind
@pytest.mark.parametrize(("duration", "message"), BAD_DURATIONS)
def test_refuses_bad_durations(kind: Callable[[], Primitive], duration: Any, message: str) -> None:
    u, setting = kind().example(0)  # type: ignore[attr-defined]
    with pytest.raises(InvalidInputError, match=message):
        kind().flow(u, duration, setting)


@of_any_kind
def test_refuses_to_run_backwards_unless_reversible(kind: Callable[[], Primitive]) -> None:
    u, setting = kind().example(0)  # type: ignore[attr-defined]
    back = np.array([0.1, -0.1, 0.1])
    if kind().reversible:  # type: ignore[attr-defined]
        assert np.isfinite(kind().flow(u, back, setting)).all()
    else:
        with pytest.raises(
            InvalidInputError, match=r"duration is -0\.1 for sample 1: it must be finite and not negative"
        ):
            kind().flow(u, back, setting)


@pytest.mark.parametrize("kind", SCALAR_KINDS.values(), ids=SCALAR_KINDS)
def test_names_a_missing_parameter(kind: Callable[[], Primitive]) -> None:
    u, setting = kind().example(0)  # type: ignore[attr-defined]
    name = list(setting.params)[-1]
    rest = {key: value for key, value in setting.params.items() if key != name}
    with pytest.raises(InvalidInputError, match=f"parameter '{name}' is missing"):
        kind().flow(u, np.array(0.1), Setting(setting.grid, setting.channels, rest))


@pytest.mark.parametrize("kind", [SpectralDiffusion, FiniteVolumeDiffusion])
def test_diffusion_refuses_what_it_cannot_do(kind: Callable[[], Primitive]) -> None:
    u = np.ones((1, 1, 6))
    with pytest.raises(InvalidInputError, match="parameter 'Dx' is negative for sample 0"):
        kind().flow(u, np.array([0.1]), one_box((6,), Dx=-0.1))
    walled = Grid.box((6,), 1.0, "wall")
    with pytest.raises(IncompatibleError, match="channel 'v', which is normal to the wall along x"):
        kind().flow(u, np.array([0.1]), Setting(walled, (Channel("v", normal=0),), {"Dx": 0.1}))
    free = walled.with_boundary("periodic")
    assert np.isfinite(kind().flow(u, np.array([0.1]), Setting(free, (Channel("v", normal=0),), {"Dx": 0.1}))).all()


BAD_OPTIONS: list[tuple[Callable[[], object], str]] = [
    (lambda: UpwindAdvection(cfl=0.0), "cfl is 0.0"),
    (lambda: UpwindAdvection(cfl=1.1), "at most 1 for"),
    (lambda: UpwindAdvection(cfl=float("nan")), "cfl is nan"),
    (lambda: MusclAdvection(cfl=0.6), "at most 0.5"),
    (lambda: MusclAdvection(cfl=-0.1), "cfl is -0.1"),
    (lambda: Rk4Logistic(reach=0.0), "reach is 0.0"),
    (lambda: Rk4Logistic(reach=3.0), "at most 2.5"),
]


@pytest.mark.parametrize(("make", "message"), BAD_OPTIONS)
def test_refuses_bad_options(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        make()
    assert isinstance(caught.value, HyCOPError)
