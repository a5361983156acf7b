"""Dimensionless times: the query time in units of the time scales that the equation declares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np

from hycop.errors import InvalidInputError, UnknownNameError
from hycop.features.flows import GAS_MOMENTA, MOMENTA, sound_speed, wave_speed
from hycop.features.observed import TINY, Observed, log
from hycop.grid import AXES, Array
from hycop.pde import Coefficient, Equation
from hycop.query import Channel, Query

TIMES = ("crossings", "spreads", "foldings")
"""The dimensionless times, in the order of ``dimensionless_times``."""


def _shallow_water(seen: Observed) -> Array:
    """Gravity waves on moving water, √(g h̄) + |m|/h̄ along each axis."""
    depth = np.maximum(seen.mean(seen.channel("h")), TINY)
    wave = wave_speed(seen)
    return np.stack([wave + seen.rms(seen.channel(name)) / depth for name in MOMENTA[: seen.grid.axes]], axis=1)


def _sound(seen: Observed) -> Array:
    """Sound in a moving gas, c + |m|/ρ̄ along each axis."""
    density = np.maximum(seen.mean(seen.channel("density")), TINY)
    sound = sound_speed(seen)
    return np.stack([sound + seen.rms(seen.channel(name)) / density for name in GAS_MOMENTA[: seen.grid.axes]], axis=1)


def _first_channel(seen: Observed) -> Array:
    """A state u that is itself a velocity, as in Burgers' equation: along the first axis."""
    out = np.zeros((seen.batch, seen.grid.axes))
    out[:, 0] = seen.rms(0)
    return out


SPEEDS: Mapping[str, Callable[[Observed], Array]] = {
    "shallow_water": _shallow_water,
    "sound": _sound,
    "first_channel": _first_channel,
}
"""Speeds (batch, axis) that depend on the state, by name: an equation lists those that it has."""


def find_speed(name: str) -> Callable[[Observed], Array]:
    if name not in SPEEDS:
        raise UnknownNameError("speed", name, SPEEDS)
    return SPEEDS[name]


def dimensionless_times(seen: Observed) -> Array:
    """Dimensionless times of a query, (batch, 3): crossings of the box Σ s_i T/L_i at the speeds of transport and
    waves, spreads Σ D_i T/L_i² of diffusion and viscosity, e-foldings Σ |r| T.

    A time scale that the equation does not have gives 0. They decide into how many segments a long query is cut, so
    that no step is longer than in training.
    """
    equation, lengths = seen.equation, seen.grid.lengths
    if equation is None:
        raise InvalidInputError("dimensionless times need the equation of the query")
    if equation.guessed:  # an old model folder does not name all coefficients, but the query does
        equation = guessed_equation(equation.name, equation.processes, seen.query)
    rates = seen.once(("rates", equation), partial(_coefficient_rates, seen, equation))
    if equation.speeds:
        rates = rates.copy()
        for name in equation.speeds:
            rates[:, 0] += (find_speed(name)(seen) / lengths).sum(axis=1)
    return rates * seen.time[:, None]


def _coefficient_rates(seen: Observed, equation: Equation) -> Array:
    """What the coefficients add to the dimensionless times, in a unit of time."""
    lengths, axes = seen.grid.lengths, seen.grid.axes
    out = np.zeros((seen.batch, len(TIMES)))
    crossings, spreads, foldings = out.T
    foldings += equation.unit_rate
    for name, coefficient in equation.coefficients.items():
        if name not in seen.params or coefficient.kind == "other":
            continue
        size = np.abs(seen.params[name])
        if coefficient.kind == "rate":
            foldings += size
            continue
        for axis in range(axes) if coefficient.axis is None else [coefficient.axis]:
            if coefficient.kind == "velocity":
                crossings += size / lengths[:, axis]
            else:
                spreads += size / lengths[:, axis] ** 2
    return out


def log_time(index: int, seen: Observed) -> Array:
    """log₁₀ of a dimensionless time."""
    return log(dimensionless_times(seen)[:, index])


def guessed_equation(name: str, processes: tuple[str, ...], query: Query) -> Equation:
    """Guesses the equation of a dataset from the names in it."""
    setting = query.setting
    return guessed_from_names(name, processes, setting.channels, setting.params, query.grid.axes)


def guessed_from_names(
    name: str, processes: tuple[str, ...], channels: tuple[Channel, ...], names: Collection[str], axes: int
) -> Equation:
    """Guesses an equation from the usual names of coefficients: velocities c, diffusivities D, ν, η, growth
    rate r; shallow water h, hu, hv with g; a gas with γ. Coefficients of other names have no time scale."""
    known: dict[str, Coefficient] = {"r": Coefficient("rate")}
    for axis, letter in enumerate(AXES[:axes]):
        known |= {"c" + letter: Coefficient("velocity", axis), "D" + letter: Coefficient("diffusivity", axis)}
    known |= dict.fromkeys(("nu", "eta"), Coefficient("diffusivity"))
    there = {channel.name for channel in channels}
    speeds: list[str] = []
    if "g" in names and axes <= len(MOMENTA) and {"h", *MOMENTA[:axes]} <= there:
        speeds.append("shallow_water")
    if "gamma" in names and {"density", "energy", *GAS_MOMENTA[:axes]} <= there:
        speeds.append("sound")
    if "nu" in names and channels[0].name == "u":
        speeds.append("first_channel")
    return Equation(
        name,
        processes,
        channels,
        {**known, **{key: Coefficient() for key in names if key not in known}},
        speeds=tuple(speeds),
        unit_rate=0.0 if names else 1.0,
        guessed=True,
    )
