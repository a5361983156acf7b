"""Units in which a network sees a state: those of the sample itself, so that what it learned holds for every size.

A sample without units of its own would be the hardest part of a network's task: states a hundred times smaller than
those of training are lost in its constant errors. Water, gas and Burgers' equation look the same in units of their own
depth, density and speed; a scalar field is taken in units of its root mean square, which the network is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from hycop.errors import UnknownNameError
from hycop.grid import Array
from hycop.pde import Equation
from hycop.query import Setting

TINY = np.finfo(float).tiny


class Unit(NamedTuple):
    """Units of each sample: of its channels (batch, channel), and of speed (batch,)."""

    channels: Array
    speed: Array

    def per_cell(self, axes: int) -> Array:
        """The units of the channels, ready to divide states on a grid of so many axes."""
        return self.channels.reshape(*self.channels.shape, *(1,) * axes)


@dataclass(frozen=True)
class Units:
    """A system of units. ``absorbs`` names the coefficients that it makes 1. Where a process has no such symmetry, the
    network must be told the unit (``told``)."""

    measure: Callable[[Array, Setting], Unit]
    absorbs: tuple[str, ...] = ()
    told: bool = False


def _mean(u: Array, setting: Setting, name: str) -> Array:
    """Mean of a channel over the cells, (batch,), above zero."""
    index = [channel.name for channel in setting.channels].index(name)
    return np.maximum(_per_sample(u[:, index]).mean(axis=1), TINY)


def _rms(u: Array) -> Array:
    return np.maximum(np.sqrt((_per_sample(u) ** 2).mean(axis=1)), TINY)


def _per_sample(u: Array) -> Array:
    """(batch, all other values), also for no samples."""
    return np.ascontiguousarray(u).reshape(len(u), prod(u.shape[1:]))


def _fixed(u: Array, setting: Setting) -> Unit:
    return Unit(np.ones(u.shape[:2]), np.ones(len(u)))


def _size(u: Array, setting: Setting) -> Unit:
    """The root mean square over all channels and cells."""
    return Unit(np.repeat(_rms(u)[:, None], u.shape[1], axis=1), np.ones(len(u)))


def _velocity(u: Array, setting: Setting) -> Unit:
    """A state that is a velocity, in units of its root mean square."""
    return Unit(np.repeat(_rms(u)[:, None], u.shape[1], axis=1), _rms(u))


def _water(u: Array, setting: Setting) -> Unit:
    """Depth h̄, speed √(g h̄)."""
    depth = _mean(u, setting, "h")
    speed = np.sqrt(np.abs(setting.param("g")) * depth)
    scales = [depth if channel.normal is None else depth * speed for channel in setting.channels]
    return Unit(np.stack(scales, axis=1), speed)


def _gas(u: Array, setting: Setting) -> Unit:
    """Density ρ̄, speed of sound √(γ (γ − 1) Ē/ρ̄), energy ρ̄ c²."""
    density, gamma = _mean(u, setting, "density"), setting.param("gamma")
    speed = np.sqrt(np.abs(gamma * (gamma - 1.0)) * _mean(u, setting, "energy") / density)
    power = {"density": 0, "energy": 2}
    return Unit(np.stack([density * speed ** power.get(one.name, 1) for one in setting.channels], axis=1), speed)


UNITS: Mapping[str, Units] = {
    "fixed": Units(_fixed),
    "size": Units(_size, told=True),
    "velocity": Units(_velocity),
    "water": Units(_water, absorbs=("g",)),
    "gas": Units(_gas),
}
"""Systems of units by name; ``fixed`` ones are those of the query."""

OF_SPEED = {"first_channel": "velocity", "shallow_water": "water", "sound": "gas"}
"""The units that belong to the speeds that an equation declares."""


def find_units(name: str) -> Units:
    if name not in UNITS:
        raise UnknownNameError("units", name, UNITS)
    return UNITS[name]


def units_for(equation: Equation) -> str:
    """The units that suit an equation."""
    return OF_SPEED.get(equation.speeds[0], "size") if len(equation.speeds) == 1 else "size"
