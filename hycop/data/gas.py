"""The state of a compressible flow: the conserved variables of programs, and the reported ones of PDEBench's files."""

from __future__ import annotations

import numpy as np

from hycop.grid import Array


def encode(reported: Array, gamma: float | Array) -> Array:
    """(density, velocities, pressure) as (density, momenta, energy), arrays (batch, channel, *grid).

    E = p/(γ − 1) + ½ρ|v|²; ``gamma`` is a number or one per sample.

    >>> encode(np.array([[[2.0], [3.0], [1.0]]]), 1.5).ravel().tolist()
    [2.0, 6.0, 11.0]
    """
    density, velocity, pressure = reported[:, :1], reported[:, 1:-1], reported[:, -1:]
    energy = pressure / (_over(gamma, reported) - 1.0) + 0.5 * density * (velocity**2).sum(axis=1, keepdims=True)
    return np.concatenate([density, density * velocity, energy], axis=1)


def decode(state: Array, gamma: float | Array) -> Array:
    """(density, momenta, energy) as (density, velocities, pressure): the inverse of ``encode``."""
    density, momentum, energy = state[:, :1], state[:, 1:-1], state[:, -1:]
    velocity = momentum / density
    kinetic = 0.5 * density * (velocity**2).sum(axis=1, keepdims=True)
    return np.concatenate([density, velocity, (_over(gamma, state) - 1.0) * (energy - kinetic)], axis=1)


def _over(gamma: float | Array, like: Array) -> Array:
    return np.asarray(gamma, dtype=np.float64).reshape((-1,) + (1,) * (like.ndim - 1))
