"""What the references of advection–diffusion–reaction share: coefficients, and the rates that bound their steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.primitive import ALL_CHANNELS
from hycop.query import Setting
from hycop.references.reference import RefinedReference

MOST_TIMES = 5000.0
"""Largest product of a rate and a duration, some 1e5 steps."""


@dataclass(frozen=True)
class ScalarReference(RefinedReference):
    """u_t + Σ c_i ∂_i u = Σ D_i ∂_ii u + r u (1 − u), or a part of it; without a reaction it is linear and exact."""

    known: ClassVar[frozenset[str]] = frozenset({"advection", "diffusion", "reaction"})

    @property
    def reacting(self) -> bool:
        return "reaction" in self.processes

    @property
    def conserves(self) -> frozenset[str]:
        return frozenset() if self.reacting else ALL_CHANNELS

    @property
    def exact_in_time(self) -> bool:
        return not self.reacting


@dataclass(frozen=True, eq=False)
class Coefficients:
    """c, D (batch, axis) and r (batch,) of u_t + Σ c_i ∂_i u = Σ D_i ∂_ii u + r u (1 − u); zero if not asked for."""

    velocity: Array
    diffusivity: Array
    rate: Array

    @classmethod
    def of(cls, setting: Setting, processes: frozenset[str]) -> Coefficients:
        absent = np.zeros((setting.batch, setting.grid.axes))
        velocity = setting.per_axis("c") if "advection" in processes else absent
        diffusivity = setting.per_axis("D") if "diffusion" in processes else absent
        rate = setting.param("r") if "reaction" in processes else absent[:, 0]
        negative = (diffusivity < 0).any(axis=1)
        if negative.any():
            sample = int(np.flatnonzero(negative)[0])
            raise InvalidInputError(f"diffusivity D of sample {sample} is negative: the equation is ill-posed")
        return cls(velocity, diffusivity, rate)

    def take(self, samples: Array | slice) -> Coefficients:
        return Coefficients(self.velocity[samples], self.diffusivity[samples], self.rate[samples])


def reaction_rate(u: Array, rate: Array) -> Array:
    """|r|·max(1, max|1 − 2u|) per sample: the fastest rate at which the reaction changes u or a difference of two u."""
    axes = tuple(range(1, u.ndim))
    slope = np.maximum(np.abs(1.0 - 2.0 * u.min(axis=axes)), np.abs(1.0 - 2.0 * u.max(axis=axes)))
    fastest: Array = np.abs(rate) * np.maximum(1.0, slope)
    return fastest


def checked_stiffness(rate: Array, duration: Array) -> Array:
    """The fastest rates (batch,), unless one is so fast that the steps it needs would never end."""
    times = rate * duration
    worst = int(np.argmax(times)) if times.size else 0
    if times.size and times[worst] > MOST_TIMES:
        raise InvalidInputError(
            f"reference: the fastest rate of sample {worst} times the duration is {times[worst]:.1e}, more than "
            f"{MOST_TIMES:g}: u is far outside [0, 1], or a layer at a wall is too thin"
        )
    return rate
