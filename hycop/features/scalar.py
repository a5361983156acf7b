"""Features of advection, diffusion and reaction, and of any scalar state."""

from __future__ import annotations

import numpy as np

from hycop.features.observed import TINY, Observed, log
from hycop.grid import AXES, Array


def peclet(axis: int, seen: Observed) -> Array:
    """log₁₀ |c| L / D along an axis: advection against diffusion."""
    box, letter = seen.length(axis), AXES[axis]
    return log(seen.param("c" + letter) * box) - log(seen.param("D" + letter))


def cell_peclet(seen: Observed) -> Array:
    """|c| Δx / D, mean over the axes: how much an upwind flux adds to diffusion. It depends on the grid, so it feeds
    gains only."""
    setting = seen.query.setting
    c, diffusivity = setting.per_axis("c"), setting.per_axis("D")
    ratio: Array = (np.abs(c) * seen.grid.spacing / np.maximum(diffusivity, TINY)).mean(axis=1)
    return ratio


def damkohler(seen: Observed) -> Array:
    """log₁₀ r / Σ_i |c_i|/L_i: reaction against the crossing of the box."""
    crossings = (np.abs(seen.query.setting.per_axis("c")) / seen.grid.lengths).sum(axis=1)
    return log(seen.param("r")) - log(crossings)


def courant(axis: int, seen: Observed) -> Array:
    """|c| T / L: boxes crossed in the query time."""
    return np.abs(seen.param("c" + AXES[axis])) * seen.time / seen.length(axis)


def fourier(axis: int, seen: Observed) -> Array:
    """log₁₀ D T / L²: how far diffusion reaches in the query time."""
    return log(seen.param("D" + AXES[axis]) * seen.time / seen.length(axis) ** 2)


def growth(seen: Observed) -> Array:
    """log₁₀ r T: e-foldings of the reaction in the query time."""
    return log(seen.param("r") * seen.time)


def level(seen: Observed) -> Array:
    """Mean of the state, for states that are measured against a capacity of one."""
    return seen.mean(0)


def variation(seen: Observed) -> Array:
    """log₁₀ (1 + coefficient of variation of the state)."""
    average, variance = seen.mean_and_variance()
    return np.log10(1.0 + np.sqrt(variance) / np.maximum(average, TINY))


def gradient(axis: int, seen: Observed) -> Array:
    """log₁₀ (1 + (L/2π)² ⟨u_i²⟩ / var u): the mean squared wave number of the state along an axis."""
    _, variance = seen.mean_and_variance()
    return np.log10(1.0 + seen.squared_slope(axis) / np.maximum(variance, TINY))
