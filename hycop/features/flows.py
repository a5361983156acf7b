"""Features of flows: shallow water, Burgers, compressible gas, Kuramoto–Sivashinsky.

Speeds are root mean squares over the lowest modes. The source paper takes maxima over cells, which grow with the number
of cells.
"""

from __future__ import annotations

import numpy as np

from hycop.features.observed import TINY, Observed, log
from hycop.grid import AXES, Array

MOMENTA = ("hu", "hv")
GAS_MOMENTA = tuple(f"momentum_{letter}" for letter in AXES)


def wave_speed(seen: Observed) -> Array:
    """√(g h̄), the speed of long gravity waves."""
    return np.sqrt(np.abs(seen.param("g") * seen.mean(seen.channel("h"))))


def froude(axis: int, seen: Observed) -> Array:
    """log₁₀ of the speed of the water along an axis over that of its waves, m/(h̄ √(g h̄)); at least −3."""
    seen.length(axis)
    depth = np.maximum(seen.mean(seen.channel("h")), TINY)
    speed = seen.rms(seen.channel(MOMENTA[axis])) / depth
    return np.log10(1e-3 + speed / np.maximum(wave_speed(seen), TINY))


def wave_crossings(seen: Observed) -> Array:
    """√(g h̄) T Σ 1/L_i: boxes that a gravity wave crosses in the query time."""
    return wave_speed(seen) * seen.time * (1.0 / seen.grid.lengths).sum(axis=1)


def reynolds(seen: Observed) -> Array:
    """log₁₀ U L/ν of a velocity field, the Reynolds number."""
    return log(seen.rms(seen.channel("u")) * seen.length(0)) - log(seen.param("nu"))


def steepening(seen: Observed) -> Array:
    """log₁₀ T √⟨u_x²⟩ of a velocity field with viscosity: query time over the time in which waves break."""
    seen.param("nu")
    slope = np.sqrt(seen.squared_slope(0, seen.channel("u"))) * 2 * np.pi / seen.length(0)
    return log(seen.time * slope)


def viscous(seen: Observed) -> Array:
    """log₁₀ ν T/L²: how far viscosity (``nu`` or ``eta``) reaches in the query time."""
    name = "nu" if "nu" in seen.params else "eta"
    return log(seen.param(name) * seen.time / seen.length(0) ** 2)


def _squared_momentum(seen: Observed) -> Array:
    squares = [seen.rms(seen.channel(name)) ** 2 for name in GAS_MOMENTA[: seen.grid.axes]]
    return sum(squares, np.zeros(seen.batch))


def sound_speed(seen: Observed) -> Array:
    """√(γ p̄/ρ̄), with the pressure from the mean energy (its kinetic part is small below the speed of sound)."""
    gamma = seen.param("gamma")
    density = np.maximum(seen.mean(seen.channel("density")), TINY)
    kinetic = _squared_momentum(seen) / (2 * density)
    pressure = (gamma - 1) * (seen.mean(seen.channel("energy")) - kinetic)
    return np.sqrt(np.maximum(gamma * pressure, TINY) / density)


def mach(seen: Observed) -> Array:
    """log₁₀ of the speed of the gas over that of sound."""
    density = np.maximum(seen.mean(seen.channel("density")), TINY)
    return log(np.sqrt(_squared_momentum(seen)) / density / sound_speed(seen))


def sound_crossings(seen: Observed) -> Array:
    """log₁₀ c T Σ 1/L_i: boxes that sound crosses in the query time."""
    return log(sound_time(seen))


def sound_time(seen: Observed) -> Array:
    """c T Σ 1/L_i: the query time in units of the time in which sound crosses the box. It is used beside its logarithm,
    because the best program is not a linear function of the logarithm alone."""
    return sound_speed(seen) * seen.time * (1.0 / seen.grid.lengths).sum(axis=1)


def pressure_variation(seen: Observed) -> Array:
    """log₁₀ (1 + coefficient of variation of the energy)."""
    average, variance = seen.mean_and_variance(seen.channel("energy"))
    return np.log10(1.0 + np.sqrt(variance) / np.maximum(average, TINY))


def unit_length(seen: Observed) -> Array:
    """Length of the box in units of the most unstable wave, 2π√2, where the equation has no coefficient."""
    return seen.length(0) / (2 * np.pi * np.sqrt(2.0))


def unit_time(seen: Observed) -> Array:
    """Query time in units of the fastest growth, 4, where the equation has no coefficient."""
    return seen.time / 4.0


def unit_amplitude(seen: Observed) -> Array:
    """Root mean square of the state, where the equation has no coefficient."""
    return seen.rms(0)
