"""Features of advection, diffusion and reaction, and of any scalar state."""

from __future__ import annotations

import numpy as np

from hycop.features.statistics import TINY, length, log, low_energies, mean, mean_and_variance
from hycop.grid import AXES, Array
from hycop.query import Query


def peclet(axis: int, query: Query) -> Array:
    """log₁₀ |c| L / D along an axis: advection against diffusion."""
    box, letter = length(axis, query), AXES[axis]
    return log(query.setting.param("c" + letter) * box) - log(query.setting.param("D" + letter))


def cell_peclet(query: Query) -> Array:
    """|c| Δx / D, mean over the axes: how much an upwind flux adds to diffusion. It depends on the grid, so it feeds
    gains only."""
    c, diffusivity = query.setting.per_axis("c"), query.setting.per_axis("D")
    ratio: Array = (np.abs(c) * query.grid.spacing / np.maximum(diffusivity, TINY)).mean(axis=1)
    return ratio


def damkohler(query: Query) -> Array:
    """log₁₀ r / Σ_i |c_i|/L_i: reaction against the crossing of the box."""
    crossings = (np.abs(query.setting.per_axis("c")) / query.grid.lengths).sum(axis=1)
    return log(query.setting.param("r")) - log(crossings)


def courant(axis: int, query: Query) -> Array:
    """|c| T / L: boxes crossed in the query time."""
    return np.abs(query.setting.param("c" + AXES[axis])) * query.time / length(axis, query)


def fourier(axis: int, query: Query) -> Array:
    """log₁₀ D T / L²: how far diffusion reaches in the query time."""
    return log(query.setting.param("D" + AXES[axis]) * query.time / length(axis, query) ** 2)


def growth(query: Query) -> Array:
    """log₁₀ r T: e-foldings of the reaction in the query time."""
    return log(query.setting.param("r") * query.time)


def level(query: Query) -> Array:
    """Mean of the state, for states that are measured against a capacity of one."""
    return mean(query, 0)


def variation(query: Query) -> Array:
    """log₁₀ (1 + coefficient of variation of the state)."""
    average, variance = mean_and_variance(low_energies(query)[0])
    return np.log10(1.0 + np.sqrt(variance) / np.maximum(average, TINY))


def gradient(axis: int, query: Query) -> Array:
    """log₁₀ (1 + (L/2π)² ⟨u_i²⟩ / var u): the mean squared wave number of the state along an axis."""
    length(axis, query)
    energies, squares = low_energies(query)
    _, variance = mean_and_variance(energies)
    total = (energies * squares[axis]).reshape(query.batch, -1).sum(axis=1)
    return np.log10(1.0 + total / np.maximum(variance, TINY))
