"""Truth of the shallow-water equations: finite differences of fifth order that keep shocks sharp."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hycop.channels import water_channels
from hycop.errors import InvalidInputError
from hycop.grid import BOUNDARIES, Array, prolong
from hycop.query import Setting
from hycop.references.reference import RefinedReference, run_blocks, samplewise
from hycop.references.weno import MOST_STEPS, advance_sample

STAGES = 4
SHALLOWEST = 0.1
"""Least depth within a cell of the query grid, relative to its average, when its profile is reconstructed."""
_CODES = {"periodic": 0, "wall": 1, "outflow": 2}
_GHOSTS = {"periodic": "wrap", "wall": "symmetric", "outflow": "edge"}


@dataclass(frozen=True)
class ShallowWaterReference(RefinedReference):
    """Shallow water over a flat bed in one or two dimensions, depth h and momentum m = h·velocity:

        h_t + ∇·m = 0,   m_t + ∇·(m⊗m/h) + ∇(g h²/2) = 0

    or a part of it: ``gravity`` {h_t + ∇·m = 0, m_t + ∇(g h²/2) = 0}, ``momentum`` {h_t = 0, m_t + ∇·(m⊗m/h) = 0}.
    Channels ``h``, ``hu`` and in two dimensions ``hv``; parameter ``g``, which momentum alone does not need.

    Finite differences of point values: Lax–Friedrichs splitting with the fastest speed of the sample, WENO-Z
    reconstruction of each component (Borges, Carmona, Costa & Don, J. Comput. Phys. 227, 2008), and the classical
    fourth-order Runge–Kutta method with Σ_i α_i Δt/Δx_i ≤ ``cfl``. Fifth order where the state is smooth (fourth in
    time), first order across a shock. Conservative. Walls mirror the state, outflow continues it without
    gradient. A sample with a depth that is not positive at any stage becomes NaN, so dry beds are not supported.
    """

    cfl: float = 1.2

    known: ClassVar[frozenset[str]] = frozenset({"gravity", "momentum"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.cfl <= 1.4:
            raise InvalidInputError(f"cfl is {self.cfl}: it must be positive and at most 1.4 for stability")

    @property
    def order(self) -> float:
        return 4.0

    @property
    def conserves(self) -> frozenset[str]:
        """Depth; a wall takes momentum."""
        return frozenset({"h"})

    @property
    def boundaries(self) -> frozenset[str]:
        return BOUNDARIES

    def finer(self) -> ShallowWaterReference:
        return replace(self, refinement=2 * self.refinement)

    def checked_setting(self, setting: Setting) -> Setting:
        axes = setting.grid.axes
        if axes > 2:
            raise InvalidInputError(f"shallow-water reference: one or two axes are needed, there are {axes}")
        wanted = water_channels(axes)
        if setting.channels != wanted:
            names = ", ".join(f"{channel.name} (normal {channel.normal})" for channel in wanted)
            raise InvalidInputError(f"shallow-water reference: the channels must be {names}")
        if "gravity" in self.processes and not (setting.param("g") > 0).all():
            sample = int(np.flatnonzero(~(setting.param("g") > 0))[0])
            raise InvalidInputError(
                f"parameter 'g' of sample {sample} is {setting.param('g')[sample]}: g > 0 is needed"
            )
        return setting

    def fine_state(self, averages: Array, setting: Setting) -> Array:
        signs = setting.wall_signs()
        fine = prolong(averages.astype(np.float64, copy=False), setting.grid.boundary, self.refinement, signs)
        fine[:, 0] = _wet(fine[:, 0], averages[:, 0], self.refinement)
        points = _corrected(fine, setting, -1.0)
        # at a jump to a depth 25 times smaller the correction would leave none
        return np.where(points[:, :1] < SHALLOWEST * fine[:, :1], fine, points)

    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        return _corrected(solution, setting_fine, 1.0)

    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        grid = setting_fine.grid
        g = self._gravity(setting_fine)
        self._steps(state, duration, setting_fine)
        flat = (state.shape[1],) + (1,) * (2 - grid.axes) + grid.shape
        spacing = np.concatenate([np.ones((grid.batch, 2 - grid.axes)), grid.spacing], axis=1)
        codes = np.array([0] * (2 - grid.axes) + [_CODES[name] for name in grid.boundary])
        pressure, transport = "gravity" in self.processes, "momentum" in self.processes

        def advance(block: Array) -> None:
            for sample in block:
                u = np.ascontiguousarray(state[sample]).reshape(flat)
                new = np.empty(flat)
                advance_sample(
                    u, new, duration[sample], spacing[sample], codes, g[sample], pressure, transport, self.cfl
                )
                out[sample] = new.reshape(state.shape[1:])

        run_blocks(advance, list(np.arange(grid.batch)[:, None]), self.workers)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Four stages a step on every channel-cell of the fine grid, with the steps of the initial speeds."""
        fine = self.refined(setting)
        span = np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,))
        steps = np.maximum(1.0, self._steps(u, span, fine))
        out: Array = STAGES * steps * float(len(setting.channels) * fine.grid.cells)
        return out

    def _gravity(self, setting: Setting) -> Array:
        return setting.param("g") if "gravity" in self.processes else np.zeros(setting.batch)

    def _steps(self, u: Array, duration: Array, setting_fine: Setting) -> Array:
        """Steps (batch,) that the speeds of a state need on the fine grid."""
        cells = tuple(range(1, u.ndim - 1))
        depth = np.where(u[:, 0] > 0, u[:, 0], np.nan)
        wave = np.sqrt(samplewise(self._gravity(setting_fine), depth) * depth)
        transport = 0.0 if "momentum" not in self.processes else 1.0 if "gravity" in self.processes else 2.0
        rate = np.zeros(u.shape[0])
        for axis in range(setting_fine.grid.axes):
            speed = (transport * np.abs(u[:, 1 + axis]) / depth + wave).max(axis=cells)
            rate += speed / setting_fine.grid.spacing[:, axis]
        steps: Array = np.ceil(np.nan_to_num(rate) * duration / self.cfl)
        worst = int(np.argmax(steps)) if steps.size else 0
        if steps.size and steps[worst] > MOST_STEPS:
            raise InvalidInputError(
                f"shallow-water reference: sample {worst} needs {steps[worst]:.1e} steps, more than {MOST_STEPS:g}"
            )
        return steps


def _wet(fine: Array, averages: Array, refinement: int) -> Array:
    """Positivity limiter (Zhang & Shu): sub-cell depths that would be too low move towards the cell average."""
    blocks: list[int] = []
    for cells in averages.shape[1:]:
        blocks += [cells, refinement]
    parts = fine.reshape(fine.shape[0], *blocks)
    within = tuple(range(2, parts.ndim, 2))
    mean = averages.reshape(averages.shape[0], *(n for cells in averages.shape[1:] for n in (cells, 1)))
    fall = mean - parts.min(axis=within, keepdims=True)
    room = (1.0 - SHALLOWEST) * mean
    share = np.where(fall > room, np.maximum(room, 0.0) / np.where(fall > 0, fall, 1.0), 1.0)
    return np.asarray(mean + share * (parts - mean)).reshape(fine.shape)


def _corrected(u: Array, setting: Setting, sign: float) -> Array:
    """u ± Δx²/24 ∂²u along each axis: averages of cells from the values at their centres (+), or the inverse (−).

    Fourth order; ghost cells are those of the scheme, so that totals are kept in closed boxes.
    """
    grid = setting.grid
    mirror = setting.wall_signs()
    for axis, kind in enumerate(grid.boundary):
        along = u.ndim - grid.axes + axis
        moved = np.moveaxis(u, along, -1)
        wide = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(1, 1)], mode=_GHOSTS[kind])  # type: ignore[call-overload]
        if kind == "wall":
            flip = mirror[:, axis].reshape((-1,) + (1,) * (grid.axes - 1))
            wide[..., 0] *= flip
            wide[..., -1] *= flip
        second = wide[..., :-2] - 2.0 * moved + wide[..., 2:]
        u = np.moveaxis(moved + sign / 24.0 * second, -1, along)
    return np.ascontiguousarray(u)
