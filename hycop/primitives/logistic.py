"""Logistic (Fisher–KPP) reaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.boundary import EVERY
from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.kernels.reaction import logistic, rk4_logistic
from hycop.kernels.reaction_field import logistic_field
from hycop.primitive import EXACT, checked_duration, sub_steps, update_work
from hycop.primitives.examples import scalar_example
from hycop.query import Setting


def _rate(u: Array, growth: Array) -> Array:
    return (growth * u * (1.0 - u)).astype(u.dtype, copy=False)


@dataclass(frozen=True)
class ExactLogistic:
    """Reaction u_t = r u (1 − u), pointwise and exact: u ↦ u / (e^{−a} + u (1 − e^{−a})), a = r τ.

    Keeps [0, 1]; a negative value runs to −∞ in finite time, and a duration beyond that gives NaN. Runs backwards
    too. Parameter: ``r``, a number or a field.
    """

    advances: ClassVar[frozenset[str]] = frozenset({"reaction"})
    order: ClassVar[float] = EXACT
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = True

    def growth(self, setting: Setting) -> Array:
        return setting.param("r")

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting, self.reversible)
        if "r" in setting.fields:
            return logistic_field(u, setting.field("r") * tau.reshape((-1,) + (1,) * setting.grid.axes))
        return logistic(u, self.growth(setting) * tau)

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(u, setting.field("r")[:, None])

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, (), {"r": 1.5})


@dataclass(frozen=True)
class Rk4Logistic:
    """Reaction u_t = r u (1 − u) by the classical fourth-order Runge–Kutta method, pointwise.

    One step as long as |r| τ ≤ ``reach``, else equal steps no longer than that. Parameter: ``r``.
    """

    reach: float = 0.5

    advances: ClassVar[frozenset[str]] = frozenset({"reaction"})
    order: ClassVar[float] = 4
    rate_order: ClassVar[float] = EXACT
    stages: ClassVar[int] = 4
    boundaries: ClassVar[frozenset[str]] = EVERY
    reversible: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 < self.reach <= 2.5:
            raise InvalidInputError(f"reach is {self.reach}: it must be positive and at most 2.5 for stability")

    def _steps(self, duration: Array, setting: Setting) -> Array:
        return sub_steps(np.abs(setting.param("r") * duration) / self.reach)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting, self.reversible)
        return rk4_logistic(u, setting.param("r") * tau, self._steps(tau, setting))

    def rate(self, u: Array, setting: Setting) -> Array:
        return _rate(u, setting.param("r").reshape((-1,) + (1,) * (u.ndim - 1)))

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 4.0 * self._steps(np.asarray(duration), setting))

    def example(self, seed: int) -> tuple[Array, Setting]:
        return scalar_example(seed, (), {"r": 1.5})
