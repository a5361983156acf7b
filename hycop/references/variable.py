"""The truth for coefficients that vary in space and for values at the ends of the axes, by sparse matrices and BDF."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy

from hycop.boundary import EVERY, Side, sides_of
from hycop.errors import InvalidInputError, LostSampleError
from hycop.grid import AXES, Array, prolong
from hycop.query import Setting
from hycop.references.coefficients import ScalarReference
from hycop.references.reference import run_blocks

Matrix: TypeAlias = Any
"""A sparse matrix; SciPy imports those when they are first used."""


class Affine(NamedTuple):
    """A matrix and what is added to its product."""

    matrix: Matrix
    added: Array


@dataclass(frozen=True)
class VariableReference(ScalarReference):
    """u_t + Σ ∂_i (c_i u) = Σ ∂_i (D_i ∂_i u) + r u (1 − u), or the part of it that ``processes`` names.

    c, D and r may vary in space, and every end of an axis may hold a value or a slope. Method of lines on a grid
    ``refinement`` times finer: central differences of second order in sparse matrices, one-sided at the ends, with no
    limiter; SciPy's BDF (DOP853 in 3D) with its own step control to ``tolerance``. Slower than the other references,
    which need constant coefficients and no values at the ends.
    """

    tolerance: float = 1e-8

    @property
    def order(self) -> float:
        return 2.0

    @property
    def exact_in_time(self) -> bool:
        return False

    @property
    def boundaries(self) -> frozenset[str]:
        return EVERY

    def finer(self) -> VariableReference:
        return replace(self, refinement=2 * self.refinement, tolerance=0.1 * self.tolerance)

    def checked_setting(self, setting: Setting) -> Setting:
        for channel in setting.channels:
            if channel.normal is not None:
                raise InvalidInputError(f"variable reference: channel '{channel.name}' is not a scalar")
        return setting

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return solution

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        state = averages.astype(np.float64, copy=False)
        return state if self.refinement == 1 else prolong(state, setting.grid.boundary, self.refinement)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """About a thousand solutions of a banded system."""
        fine = self.refined(setting).grid
        return np.full(setting.batch, 1e3 * len(setting.channels) * fine.cells * fine.axes)

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        def advance(block: Array) -> None:
            sample = int(block[0])
            one = setting_fine.take(slice(sample, sample + 1))
            for channel in range(state.shape[1]):
                start = state[sample, channel]
                if duration[sample] == 0:
                    out[sample, channel] = start
                else:
                    out[sample, channel] = self._solved(start, float(duration[sample]), one, channel, sample)

        run_blocks(advance, [np.array([sample]) for sample in range(state.shape[0])], self.workers)

    def _solved(self, start: Array, duration: float, setting: Setting, channel: int, sample: int) -> Array:
        linear = self._linear(setting, channel)
        growth = setting.field("r")[0].reshape(-1) if self.reacting else np.zeros(start.size)
        size = max(float(np.abs(start).max()), float(np.abs(linear.added).max()) * duration, 1e-300)
        how: dict[str, Any] = {"method": "DOP853"}  # in 3D the factors of a sparse matrix fill the memory
        if setting.grid.axes < 3:
            how = {
                "method": "BDF",
                "jac": lambda _, u: (linear.matrix + scipy.sparse.diags(growth * (1.0 - 2.0 * u))).tocsc(),
            }
        found = scipy.integrate.solve_ivp(
            lambda _, u: linear.matrix @ u + linear.added + growth * u * (1.0 - u),
            (0.0, duration),
            start.reshape(-1),
            **how,
            rtol=self.tolerance,
            atol=self.tolerance * size,
            t_eval=[duration],
        )
        if not found.success:
            raise LostSampleError(sample, f": the reference could not reach the time asked for ({found.message})")
        return np.asarray(found.y[:, -1]).reshape(start.shape)

    def _linear(self, setting: Setting, channel: int) -> Affine:
        """Advection and diffusion of a channel of the only sample, u' = A u + b."""
        grid = setting.grid
        total, added = scipy.sparse.csr_matrix((grid.cells, grid.cells)), np.zeros(grid.cells)
        for axis, letter in enumerate(AXES[: grid.axes]):
            ends, dx = sides_of(grid.boundary[axis]), float(grid.spacing[0, axis])
            values = (ends[0].value(channel), ends[1].value(channel))

            def along(line: Affine, axis: int = axis) -> Affine:
                return _on_lines(line, grid.shape, axis)

            flux = along(Affine(_divergence(grid.shape[axis], ends, dx), np.zeros(grid.shape[axis]))).matrix
            at_faces = along(_interpolated(grid.shape[axis], ends, values, dx, leaving=True, free=True)).matrix
            if "advection" in self.processes:
                speed = at_faces @ setting.field("c" + letter)[0].reshape(-1)
                for leaving in (False, True):
                    face = along(_interpolated(grid.shape[axis], ends, values, dx, leaving))
                    chosen = np.where(_outwards(speed, grid.shape, axis) == leaving, speed, 0.0)
                    total = total - flux @ scipy.sparse.diags(chosen) @ face.matrix
                    added = added - flux @ (chosen * face.added)
            if "diffusion" in self.processes:
                diffusivity = _between(at_faces, setting.field("D" + letter)[0].reshape(-1))
                slope = along(_gradient(grid.shape[axis], ends, values, dx))
                total = total + flux @ scipy.sparse.diags(diffusivity) @ slope.matrix
                added = added + flux @ (diffusivity * slope.added)
        return Affine(total.tocsr(), added)


def _between(at_faces: Matrix, cells: Array) -> Array:
    """Diffusivities at the faces: resistances are added, so that layers are right. Where a straight line of them falls
    below zero at an end, that of the diffusivities is taken."""
    resistance = np.asarray(at_faces @ (1.0 / np.maximum(cells, 1e-300)))
    return np.where(resistance > 0, 1.0 / np.where(resistance > 0, resistance, 1.0), np.maximum(at_faces @ cells, 0.0))


def _on_lines(line: Affine, shape: tuple[int, ...], axis: int) -> Affine:
    """What acts on one line of cells, on all lines along an axis."""
    before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    eye = scipy.sparse.identity
    matrix = scipy.sparse.kron(scipy.sparse.kron(eye(before), line.matrix), eye(after)).tocsr()
    return Affine(matrix, np.tile(np.repeat(line.added, after), before))


def _outwards(speed: Array, shape: tuple[int, ...], axis: int) -> Array:
    """Which faces of all lines are not entered from outside: those within the box, and those where the wind leaves."""
    faces = list(shape)
    faces[axis] += 1
    at = np.moveaxis(speed.reshape(faces), axis, -1)
    out = np.ones(at.shape, dtype=bool)
    out[..., 0], out[..., -1] = at[..., 0] <= 0, at[..., -1] >= 0
    return np.moveaxis(out, -1, axis).reshape(-1)


def _divergence(n: int, ends: tuple[Side, Side], dx: float) -> Matrix:
    """Differences of the fluxes at n + 1 faces over dx; nothing passes a wall."""
    out = (np.eye(n, n + 1, 1) - np.eye(n, n + 1)) / dx
    if ends[0].kind == "wall":
        out[0, 0] = 0.0
    if ends[1].kind == "wall":
        out[n - 1, n] = 0.0
    return scipy.sparse.csr_matrix(out)


def _interpolated(
    n: int, ends: tuple[Side, Side], values: tuple[float, float], dx: float, leaving: bool, free: bool = False
) -> Affine:
    """Values at n + 1 faces: means of the cells on both sides. At an end a straight line is continued if something is
    ``leaving`` or the ends are ``free``; what enters has the value or slope of the end."""
    matrix = 0.5 * (np.eye(n + 1, n, -1) + np.eye(n + 1, n))
    added = np.zeros(n + 1)
    if ends[0].kind == "periodic":
        matrix[0, n - 1] = matrix[n, 0] = 0.5
        return Affine(scipy.sparse.csr_matrix(matrix), added)
    for side, value, face, first, second in zip(ends, values, (0, n), (0, n - 1), (1, n - 2), strict=True):
        if free or (leaving and side.kind in ("dirichlet", "neumann")):
            matrix[face, first], matrix[face, second] = 1.5, -0.5
        elif side.kind == "dirichlet":
            matrix[face, first], added[face] = 0.0, value
        else:
            matrix[face, first], added[face] = 1.0, 0.5 * value * dx
    return Affine(scipy.sparse.csr_matrix(matrix), added)


def _gradient(n: int, ends: tuple[Side, Side], values: tuple[float, float], dx: float) -> Affine:
    """Derivatives at n + 1 faces; at an end with a value through that and the two last cells, else the given slope."""
    matrix = np.eye(n + 1, n) - np.eye(n + 1, n, -1)
    added = np.zeros(n + 1)
    if ends[0].kind == "periodic":
        matrix[0, n - 1], matrix[n, 0] = -1.0, 1.0
        return Affine(scipy.sparse.csr_matrix(matrix / dx), added)
    for side, value, face, first, second in zip(ends, values, (0, n), (0, n - 1), (1, n - 2), strict=True):
        outward = -1.0 if face == 0 else 1.0
        if side.kind == "dirichlet":
            matrix[face, first], matrix[face, second] = -3.0 * outward, outward / 3.0
            added[face] = outward * 8.0 / 3.0 * value / dx
        else:
            matrix[face, first], added[face] = 0.0, outward * value
    return Affine(scipy.sparse.csr_matrix(matrix / dx), added)
