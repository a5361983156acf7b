"""The MUSCL kernel against the same scheme written with whole arrays in NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks.data import adr_query
from benchmarks.measure import Ratio, compared, interleaved
from hycop.grid import Array
from hycop.primitives import MusclAdvection


def _flux_difference(v: Array, nu: Array, axis: int) -> Array:
    """What leaves less what enters each cell of a periodic axis, by van Leer's slopes; nu (batch,) of either sign."""
    courant = nu.reshape((-1,) + (1,) * (v.ndim - 1))
    padded = np.moveaxis(
        np.concatenate((v.take([-2, -1], axis, mode="wrap"), v, v.take([0, 1], axis, mode="wrap")), axis), axis, -1
    )
    jump = padded[..., 1:] - padded[..., :-1]
    product, total = jump[..., 1:] * jump[..., :-1], jump[..., 1:] + jump[..., :-1]
    half = np.divide(product, total, out=np.zeros_like(product), where=product > 0)
    here = padded[..., 1:-1]
    rightwards, leftwards = (here + half)[..., :-1], (here - half)[..., 1:]
    flux = np.maximum(courant, 0) * rightwards + np.minimum(courant, 0) * leftwards
    return np.moveaxis(flux[..., 1:] - flux[..., :-1], -1, axis)


def _euler(v: Array, nu: Array) -> Array:
    out = v.copy()
    for axis in range(nu.shape[1]):
        out -= _flux_difference(v, nu[:, axis], 2 + axis)
    return out


def numpy_muscl(u: Array, nu: Array, steps: int) -> Array:
    """Heun steps at Courant numbers nu (batch, axis), the whole batch in each array operation."""
    for _ in range(steps):
        u = 0.5 * u + 0.5 * _euler(_euler(u, nu), nu)
    return u


def numpy_muscl_blocked(u: Array, nu: Array, steps: int, block: int = 16) -> Array:
    """The same a few samples at a time: a stronger opponent, because its temporaries stay in the cache."""
    return np.concatenate([numpy_muscl(u[i : i + block], nu[i : i + block], steps) for i in range(0, len(u), block)])


def measure(batch: int = 1000, cells: int = 32, rounds: int = 11) -> list[Ratio]:
    query = adr_query(batch, cells)
    u, setting = query.u0, query.setting
    # one sub-step for every sample: the whole duration has a Courant number of 0.4 at the largest velocities
    tau = np.full(batch, 0.2 / cells)
    nu = setting.per_axis("c") * tau[:, None] / setting.grid.spacing
    ours = MusclAdvection()
    if not np.abs(ours.flow(u, tau, setting) - numpy_muscl(u, nu, 1)).max() < 1e-13:
        raise AssertionError("the MUSCL kernel and its NumPy version disagree: the comparison would mean nothing")
    seconds = interleaved(
        {
            "kernel": lambda: ours.flow(u, tau, setting),
            "NumPy": lambda: numpy_muscl(u, nu, 1),
            "NumPy in blocks": lambda: numpy_muscl_blocked(u, nu, 1),
        },
        rounds,
    )
    where = f"{batch} × {cells}²"
    return [
        compared("muscl", f"{name} / kernel, {where}", seconds, "kernel", name, 5.0, queries=batch)
        for name in ("NumPy", "NumPy in blocks")
    ]
