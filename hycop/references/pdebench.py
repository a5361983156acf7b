"""The scheme with which the compressible data of PDEBench were made, for results that are compared with those data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from math import ceil

import numba
import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array, prolong
from hycop.query import Setting
from hycop.references.compressible import CHANNELS, GasReference, crossing_rate

GHOSTS = 2
MOST_STEPS = 1e7


@dataclass(frozen=True)
class PDEBenchReference(GasReference):
    """Lie splitting, Euler then viscosity, step by step: the truth of PDEBench's data with its own splitting error.

    As published with the data (Takamoto et al., NeurIPS 2022, appendix on the compressible equations): second-order
    finite volumes with van Leer's slopes of (ρ, v, p) and HLLC fluxes (Toro 1994), advanced by the midpoint rule, then
    central differences of the viscous fluxes in explicit sub-steps over the same time. A step is ``cfl`` times the
    fastest crossing of a cell by sound, and never goes beyond a time that is asked for. It solves on the query grid
    itself (``refinement`` 1) because the data carry the error of that grid: first order in time, of order dx.
    """

    refinement: int = 1
    cfl: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.cfl <= 0.5:
            raise InvalidInputError(f"cfl is {self.cfl}: it must be positive and at most 0.5")

    @property
    def order(self) -> float:
        return 1.0

    @property
    def distrust(self) -> str:
        return "the truth of PDEBench is itself a splitting, of first order in its own step"

    def finer(self) -> PDEBenchReference:
        return replace(self, refinement=2 * self.refinement)

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return solution

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        state = averages.astype(np.float64, copy=False)
        return state if self.refinement == 1 else prolong(state, setting.grid.boundary, self.refinement)

    def advanced(self, state: Array, duration: float, gamma: float, spacing: Array, viscosity: Array) -> Array:
        _, n1, n2 = state.shape
        q, face = np.empty((4, n1 + 2 * GHOSTS, n2 + 2 * GHOSTS)), np.empty(8)
        w, later, elapsed = state.copy(), np.empty_like(state), 0.0
        decay = 2.0 * viscosity.max() / spacing.min() ** 2
        valid = duration == 0.0 or _primitives(w, gamma, q)
        while valid and elapsed < duration:
            step = self.cfl / _fastest_crossing(q, gamma, spacing)
            if not step > duration / MOST_STEPS:
                return np.full_like(state, np.nan)
            last = step >= duration - elapsed
            step = duration - elapsed if last else step
            elapsed = duration if last else elapsed + step
            if "euler" in self.processes:
                _euler(w, 0.5 * step, gamma, spacing, q, face, later)
                valid = _primitives(later, gamma, q)
                _euler(w, step, gamma, spacing, q, face, later)
                w, later = later, w
                valid &= _primitives(w, gamma, q)
            inner = ceil(step * decay / self.cfl)
            for _ in range(inner):
                _viscous(w, step / inner, spacing, viscosity, q)
                valid &= _primitives(w, gamma, q)
        return w if valid else np.full_like(state, np.nan)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Updates of all channel-cells: two a step of Euler, and one a viscous sub-step."""
        grid = self.refined(setting).grid
        span = np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,))
        crossing = crossing_rate(u, setting.param("gamma"), grid.spacing) / 2.0
        steps = np.maximum(1.0, np.ceil(span * crossing / self.cfl))
        diffusion = (self.viscosities(setting).max(axis=1) / grid.spacing.min(axis=1) ** 2) * 2.0
        inner = np.ceil(span / steps * diffusion / self.cfl)
        updates = steps * (2.0 * float("euler" in self.processes) + inner)
        work: Array = np.maximum(1.0, updates) * len(CHANNELS) * grid.cells
        return work


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _primitives(w, gamma, q):  # type: ignore[no-untyped-def]
    """Fills q (4, n1 + ghosts, n2 + ghosts) with ρ, v_x, v_y, p; whether ρ and p are positive."""
    n1, n2 = w.shape[1:]
    bad = 0
    for i in range(n1):
        for j in range(n2):
            density = w[0, i, j]
            vx, vy = w[1, i, j] / density, w[2, i, j] / density
            pressure = (gamma - 1.0) * (w[3, i, j] - 0.5 * density * (vx * vx + vy * vy))
            bad += 0 if density > 0.0 and pressure > 0.0 else 1
            q[0, i + GHOSTS, j + GHOSTS] = density
            q[1, i + GHOSTS, j + GHOSTS] = vx
            q[2, i + GHOSTS, j + GHOSTS] = vy
            q[3, i + GHOSTS, j + GHOSTS] = pressure
    for k in range(4):
        for ghost in range(GHOSTS):
            for j in range(GHOSTS, n2 + GHOSTS):
                q[k, ghost, j] = q[k, n1 + ghost, j]
                q[k, n1 + GHOSTS + ghost, j] = q[k, GHOSTS + ghost, j]
            for i in range(n1 + 2 * GHOSTS):
                q[k, i, ghost] = q[k, i, n2 + ghost]
                q[k, i, n2 + GHOSTS + ghost] = q[k, i, GHOSTS + ghost]
    return bad == 0


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _half_slope(before, here, after):  # type: ignore[no-untyped-def]
    """Half of van Leer's slope (J. Comput. Phys. 32 (1979) 101): the harmonic mean, zero at an extremum."""
    left, right = here - before, after - here
    product = left * right
    return product / (left + right) if product > 0.0 else 0.0


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _hllc(gamma, rho, u, v, p, rho2, u2, v2, p2):  # type: ignore[no-untyped-def]
    """Fluxes of mass, momentum along and across, and energy between a left and a right state (Toro 1994)."""
    energy, energy2 = (
        p / (gamma - 1.0) + 0.5 * rho * (u * u + v * v),
        p2 / (gamma - 1.0) + 0.5 * rho2 * (u2 * u2 + v2 * v2),
    )
    c, c2 = math.sqrt(gamma * p / rho), math.sqrt(gamma * p2 / rho2)
    slowest, fastest = min(u - c, u2 - c2), max(u + c, u2 + c2)
    drive, drive2 = rho * (slowest - u), rho2 * (fastest - u2)
    contact = (p2 - p + drive * u - drive2 * u2) / (drive - drive2)
    if contact < 0.0:  # the state behind the contact is that on the right
        rho, u, v, p, energy, drive, slowest = rho2, u2, v2, p2, energy2, drive2, fastest
        outside = fastest <= 0.0
    else:
        outside = slowest >= 0.0
    mass, momentum, shear, work = rho * u, rho * u * u + p, rho * u * v, (energy + p) * u
    if outside:
        return mass, momentum, shear, work
    star = drive / (slowest - contact)
    heated = star * (energy / rho + (contact - u) * (contact + p / drive))
    mass += slowest * (star - rho)
    momentum += slowest * (star * contact - rho * u)
    shear += slowest * (star * v - rho * v)
    work += slowest * (heated - energy)
    return mass, momentum, shear, work


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _euler(base, step, gamma, spacing, q, face, out):  # type: ignore[no-untyped-def]
    """out = base − step·∇·F, with the fluxes F of the state whose primitive variables are q."""
    n1, n2 = base.shape[1:]
    out[:] = base
    for axis in range(2):
        di, dj = 1 - axis, axis
        along, across, scale = 1 + axis, 2 - axis, step / spacing[axis]
        for i in range(n1 + di):
            for j in range(n2 + dj):  # the face between cells (i, j) − (di, dj) and (i, j)
                r, s = i + GHOSTS, j + GHOSTS
                for k in range(4):
                    far, left = q[k, r - 2 * di, s - 2 * dj], q[k, r - di, s - dj]
                    right, beyond = q[k, r, s], q[k, r + di, s + dj]
                    face[k] = left + _half_slope(far, left, right)
                    face[4 + k] = right - _half_slope(left, right, beyond)
                mass, momentum, shear, work = _hllc(
                    gamma,
                    face[0],
                    face[along],
                    face[across],
                    face[3],
                    face[4],
                    face[4 + along],
                    face[4 + across],
                    face[7],
                )
                if i < n1 and j < n2:
                    out[0, i, j] += scale * mass
                    out[along, i, j] += scale * momentum
                    out[across, i, j] += scale * shear
                    out[3, i, j] += scale * work
                if i >= di and j >= dj:
                    out[0, i - di, j - dj] -= scale * mass
                    out[along, i - di, j - dj] -= scale * momentum
                    out[across, i - di, j - dj] -= scale * shear
                    out[3, i - di, j - dj] -= scale * work


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _viscous(w, step, spacing, viscosity, q):  # type: ignore[no-untyped-def]
    """One explicit step of ρ v_j,t = Σ_i ∂_i(ν_ij ρ ∂_i v_j) and of the energy that goes with it, in place."""
    n1, n2 = w.shape[1:]
    for axis in range(2):
        di, dj = 1 - axis, axis
        scale = step / (2.0 * spacing[axis] ** 2)
        for i in range(n1):
            for j in range(n2):
                r, s = i + GHOSTS, j + GHOSTS
                ahead = scale * (q[0, r, s] + q[0, r + di, s + dj])
                behind = scale * (q[0, r - di, s - dj] + q[0, r, s])
                heat = 0.0
                for k in range(1, 3):
                    nu = viscosity[0] if k == 1 + axis else viscosity[1]
                    v, after, before = q[k, r, s], q[k, r + di, s + dj], q[k, r - di, s - dj]
                    w[k, i, j] += nu * (ahead * (after - v) - behind * (v - before))
                    heat += nu * (ahead * (after * after - v * v) - behind * (v * v - before * before))
                w[3, i, j] += 0.5 * heat


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fastest_crossing(q, gamma, spacing):  # type: ignore[no-untyped-def]
    """max (|v| + c)/dx over cells and axes."""
    fastest = 0.0
    for i in range(GHOSTS, q.shape[1] - GHOSTS):
        for j in range(GHOSTS, q.shape[2] - GHOSTS):
            c = math.sqrt(gamma * q[3, i, j] / q[0, i, j])
            fastest = max(fastest, (abs(q[1, i, j]) + c) / spacing[0], (abs(q[2, i, j]) + c) / spacing[1])
    return fastest
