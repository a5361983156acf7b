"""Features of flows: shallow water, Burgers, compressible gas, Kuramoto–Sivashinsky.

Speeds are root mean squares over the lowest modes, where the source paper takes maxima over cells: those grow with the
number of cells.
"""

from __future__ import annotations

import numpy as np

from hycop.features.statistics import TINY, channel, length, log, low_energies, mean, mean_and_variance, rms
from hycop.grid import AXES, Array
from hycop.query import Query

MOMENTA = ("hu", "hv")
GAS_MOMENTA = tuple(f"momentum_{letter}" for letter in AXES)


def wave_speed(query: Query) -> Array:
    """√(g h̄), the speed of long gravity waves."""
    return np.sqrt(np.abs(query.setting.param("g") * mean(query, channel("h", query))))


def froude(axis: int, query: Query) -> Array:
    """log₁₀ of the speed of the water along an axis over that of its waves, m/(h̄ √(g h̄)); at least −3."""
    length(axis, query)
    depth = np.maximum(mean(query, channel("h", query)), TINY)
    speed = rms(query, channel(MOMENTA[axis], query)) / depth
    return np.log10(1e-3 + speed / np.maximum(wave_speed(query), TINY))


def wave_crossings(query: Query) -> Array:
    """√(g h̄) T Σ 1/L_i: boxes that a gravity wave crosses in the query time."""
    return wave_speed(query) * query.time * (1.0 / query.grid.lengths).sum(axis=1)


def reynolds(query: Query) -> Array:
    """log₁₀ U L/ν of a velocity field, the Reynolds number."""
    return log(rms(query, channel("u", query)) * length(0, query)) - log(query.setting.param("nu"))


def steepening(query: Query) -> Array:
    """log₁₀ T √⟨u_x²⟩ of a velocity field with viscosity: query time over the time in which waves break."""
    query.setting.param("nu")
    energies, squares = low_energies(query, channel("u", query))
    slope = np.sqrt((energies * squares[0]).reshape(query.batch, -1).sum(axis=1)) * 2 * np.pi / length(0, query)
    return log(query.time * slope)


def viscous(query: Query) -> Array:
    """log₁₀ ν T/L²: how far viscosity (``nu`` or ``eta``) reaches in the query time."""
    name = "nu" if "nu" in query.setting.params else "eta"
    return log(query.setting.param(name) * query.time / length(0, query) ** 2)


def sound_speed(query: Query) -> Array:
    """√(γ p̄/ρ̄), with the pressure from the mean energy (its kinetic part is small below the speed of sound)."""
    gamma = query.setting.param("gamma")
    density = np.maximum(mean(query, channel("density", query)), TINY)
    kinetic = sum(
        (rms(query, channel(name, query)) ** 2 for name in GAS_MOMENTA[: query.grid.axes]), np.zeros(query.batch)
    ) / (2 * density)
    pressure = (gamma - 1) * (mean(query, channel("energy", query)) - kinetic)
    return np.sqrt(np.maximum(gamma * pressure, TINY) / density)


def mach(query: Query) -> Array:
    """log₁₀ of the speed of the gas over that of sound."""
    density = np.maximum(mean(query, channel("density", query)), TINY)
    squares = sum((rms(query, channel(name, query)) ** 2 for name in GAS_MOMENTA[: query.grid.axes]), np.zeros(1))
    return log(np.sqrt(squares) / density / sound_speed(query))


def sound_crossings(query: Query) -> Array:
    """log₁₀ c T Σ 1/L_i: boxes that sound crosses in the query time."""
    return log(sound_time(query))


def sound_time(query: Query) -> Array:
    """c T Σ 1/L_i: the query time in units of the time in which sound crosses the box. Besides its logarithm, because
    what a program needs is not a linear function of that alone."""
    return sound_speed(query) * query.time * (1.0 / query.grid.lengths).sum(axis=1)


def pressure_variation(query: Query) -> Array:
    """log₁₀ (1 + coefficient of variation of the energy)."""
    average, variance = mean_and_variance(low_energies(query, channel("energy", query))[0])
    return np.log10(1.0 + np.sqrt(variance) / np.maximum(average, TINY))


def unit_length(query: Query) -> Array:
    """Length of the box in units of the most unstable wave, 2π√2, where the equation has no coefficient."""
    return length(0, query) / (2 * np.pi * np.sqrt(2.0))


def unit_time(query: Query) -> Array:
    """Query time in units of the fastest growth, 4, where the equation has no coefficient."""
    return query.time / 4.0


def unit_amplitude(query: Query) -> Array:
    """Root mean square of the state, where the equation has no coefficient."""
    return rms(query, 0)


def speeds(query: Query) -> Array:
    """The speed along each axis at which anything known to the setting moves, (batch, axis)."""
    params, names = query.setting.params, {entry.name for entry in query.setting.channels}
    axes = range(query.grid.axes)
    out = np.zeros((query.batch, query.grid.axes))
    for axis in axes:
        out[:, axis] += np.abs(params.get("c" + AXES[axis], np.zeros(query.batch)))
    if "g" in params and {"h", *MOMENTA[: len(axes)]} <= names and len(axes) <= len(MOMENTA):
        depth = np.maximum(mean(query, channel("h", query)), TINY)
        for axis in axes:
            out[:, axis] += wave_speed(query) + rms(query, channel(MOMENTA[axis], query)) / depth
    if "gamma" in params and {"density", "energy", *GAS_MOMENTA[: len(axes)]} <= names:
        density = np.maximum(mean(query, channel("density", query)), TINY)
        for axis in axes:
            out[:, axis] += sound_speed(query) + rms(query, channel(GAS_MOMENTA[axis], query)) / density
    if "nu" in params and "u" in names:
        out[:, 0] += rms(query, channel("u", query))
    return out


def clock(query: Query) -> Array:
    """Dimensionless times of a query, (batch, 3): crossings of the box Σ s_i T/L_i at the speeds of transport and
    waves, spreads Σ D_i T/L_i² of diffusion and viscosity, e-foldings |r| T.

    What the equation does not have is 0; an equation without coefficients has its own unit of time. They say how often
    the program of a shorter time must be repeated.
    """
    params, lengths = query.setting.params, query.grid.lengths
    zero = np.zeros(query.batch)
    crossings = (speeds(query) / lengths).sum(axis=1)
    viscosity = np.abs(params.get("nu", zero)) + np.abs(params.get("eta", zero))
    spreads = zero
    for axis, letter in enumerate(AXES[: query.grid.axes]):
        spreads = spreads + (np.abs(params.get("D" + letter, zero)) + viscosity) / lengths[:, axis] ** 2
    rate = np.abs(params.get("r", zero)) if params else np.ones(query.batch)
    return np.stack([crossings, spreads, rate], axis=1) * query.time[:, None]
