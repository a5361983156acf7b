"""Scalar conservation laws u_t + Σ_i f_i(u)_i = 0 with any flux, as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, get_args

import numpy as np

from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.expression import Tape, tape_of
from hycop.grid import AXES, BOUNDARIES, Array, Grid
from hycop.kernels import flux as kernel
from hycop.kernels.reconstruction import CELLS, STAGES
from hycop.primitive import ALL_CHANNELS, checked_cells, checked_cfl, checked_duration, update_work
from hycop.query import Channel, Setting

Reconstruction = Literal["weno5", "muscl", "upwind"]
ORDERS = {"weno5": 3, "muscl": 2, "upwind": 1}
ORDERS_IN_SPACE = {**ORDERS, "weno5": 5}


@dataclass(frozen=True)
class ConservativeFlux:
    """u_t + ∂f(u)/∂x = 0 for a channel, with a flux for each axis: shocks at their right speed, rarefactions.

    ``fluxes[k]`` is a formula of the channel ``targets[k]`` and of coefficients, as ``u^2/2``, ``c*u`` or
    ``u^2/(u^2 + m*(1-u)^2)``, through the faces across the axis ``along[k]``. Channels do not see each other. Nothing
    of it is code: a model folder holds these texts.

    Finite volumes with Godunov's exact flux, also where f is not convex, between edges by fifth-order WENO-Z
    (``weno5``, third-order Runge–Kutta), van Leer's limiter (``muscl``, second order) or the averages themselves
    (``upwind``). Nonlinear fluxes along several axes are of second order, because faces are seen at their centres.
    ``cfl`` bounds Σ_i |f_i'|τ/Δx_i of a sub-step. Keeps totals; nothing crosses a wall. f must be smooth.
    """

    state: tuple[str, ...] = ("u",)
    targets: tuple[str, ...] = ("u",)
    along: tuple[str, ...] = ("x",)
    fluxes: tuple[str, ...] = ("u^2/2",)
    process: str = "transport"
    reconstruction: Reconstruction = "weno5"
    cfl: float = 0.5

    conserves: ClassVar[frozenset[str]] = ALL_CHANNELS
    boundaries: ClassVar[frozenset[str]] = BOUNDARIES
    reversible: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.fluxes or not len(self.targets) == len(self.along) == len(self.fluxes):
            raise InvalidInputError("ConservativeFlux: as many targets and axes as fluxes are needed, at least one")
        alien = [name for name in self.targets if name not in self.state]
        if alien:
            raise InvalidInputError(f"ConservativeFlux: target '{alien[0]}' is not one of {', '.join(self.state)}")
        if set(self.along) - set(AXES):
            raise InvalidInputError(f"ConservativeFlux: along is {self.along}: give x, y or z for each flux")
        if len(set(zip(self.targets, self.along, strict=True))) < len(self.fluxes):
            raise InvalidInputError("ConservativeFlux: a channel has two fluxes along one axis; add them")
        if self.reconstruction not in get_args(Reconstruction):
            raise UnknownNameError("reconstruction", str(self.reconstruction), get_args(Reconstruction))
        checked_cfl(self.cfl, 0.5 if self.reconstruction == "muscl" else 1.0)
        for name in self.targets:
            strange = set(self._tape(name, 3).coefficients) & (set(self.state) - {name})
            if strange:
                raise InvalidInputError(
                    f"ConservativeFlux: the flux of {name} has the channel {sorted(strange)[0]}; a scalar law has its "
                    "own channel only"
                )

    def _tape(self, channel: str, axes: int, slopes: bool = False) -> Tape:
        """The fluxes of a channel along the axes; then their derivatives."""
        mine = {
            letter: text
            for target, letter, text in zip(self.targets, self.along, self.fluxes, strict=True)
            if target == channel
        }
        texts = tuple(mine.get(letter, "0") for letter in AXES[:axes])
        return tape_of(texts, (channel,), channel if slopes else None, what="flux")

    def _law(self, channel: str, axes: int) -> kernel.Law:
        flux, slope = self._tape(channel, axes), self._tape(channel, axes, slopes=True)
        return kernel.Law(
            flux.code, flux.numbers, flux.outputs, slope.code, slope.numbers, np.ascontiguousarray(slope.outputs[axes:])
        )

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    @cached_property
    def _plane(self) -> bool:
        """Whether a channel has nonlinear fluxes along several axes."""
        for name in dict.fromkeys(self.targets):
            slope = self._tape(name, len(AXES), slopes=True)
            if self.targets.count(name) > 1 and any(slope.depends_on_channels(each) for each in slope.outputs[3:]):
                return True
        return False

    @property
    def order(self) -> float:
        return min(ORDERS[self.reconstruction], 2 if self._plane else 3)

    @property
    def rate_order(self) -> float:
        return min(ORDERS_IN_SPACE[self.reconstruction], 2 if self._plane else 5)

    @property
    def stages(self) -> int:
        return STAGES[self.reconstruction].size

    @property
    def fewest_cells(self) -> int:
        return CELLS[self.reconstruction]

    @property
    def _axes(self) -> int:
        return 1 + max(AXES.index(letter) for letter in self.along)

    def _channels(self, setting: Setting) -> list[tuple[int, str]]:
        """Place and name of the channels that have fluxes."""
        checked_cells(self, setting)
        names = [channel.name for channel in setting.channels]
        missing = [name for name in self.targets if name not in names]
        if missing or setting.grid.axes < self._axes:
            what = f"no channel '{missing[0]}'" if missing else f"{setting.grid.axes} axes only"
            raise IncompatibleError(f"{self.process}: the state has {what}")
        return [(names.index(name), name) for name in dict.fromkeys(self.targets)]

    def _numbers(self, channel: str, setting: Setting) -> Array:
        columns = [setting.param(name) for name in self._tape(channel, setting.grid.axes).coefficients]
        return np.stack(columns, axis=1) if columns else np.zeros((setting.batch, 0))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau, grid, out = checked_duration(duration, setting), setting.grid, np.array(u)
        for place, name in self._channels(setting):
            law, k = self._law(name, grid.axes), self._numbers(name, setting)
            out[:, place] = kernel.flow(
                u[:, place], tau, grid.boundary, grid.spacing, k, law, self.cfl, self.reconstruction
            )
        return out

    def rate(self, u: Array, setting: Setting) -> Array:
        grid, out = setting.grid, np.zeros_like(u)
        for place, name in self._channels(setting):
            law, k = self._law(name, grid.axes), self._numbers(name, setting)
            out[:, place] = kernel.tendencies(u[:, place], grid.boundary, grid.spacing, k, law, self.reconstruction)
        return out

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        total, grid = np.zeros(setting.batch), setting.grid
        for place, name in self._channels(setting):
            law, k = self._law(name, grid.axes), self._numbers(name, setting)
            courant = kernel.fastest(u[:, place], grid.spacing, k, law) * duration
            total += np.fmax(np.ceil(courant / self.cfl), 1.0)  # one for a state that is NaN
        return update_work(setting, self.stages * total / len(setting.channels))

    def example(self, seed: int) -> tuple[Array, Setting]:
        """Smooth fields on a small grid, coefficients between ½ and 1."""
        rng, batch, axes = np.random.default_rng(seed), 3, self._axes
        shape = ((27,), (15, 14), (9, 10, 8))[axes - 1]
        grid = Grid(shape, rng.uniform(0.8, 1.2, (batch, axes)), ("periodic",) * axes)
        u = np.full((batch, len(self.state), *shape), 0.5)
        for centre, length in zip(grid.centres(), grid.lengths.T, strict=True):
            phase = rng.uniform(0, 2 * np.pi, (batch, len(self.state)) + (1,) * axes)
            turn = 2 * np.pi * (centre / length.reshape((-1,) + (1,) * axes))[:, None]
            u = u + 0.2 * np.sin(turn + phase)
        names = {name for target in self.targets for name in self._tape(target, 3).coefficients}
        params = {name: rng.uniform(0.5, 1.0, batch) for name in sorted(names)}
        return u, Setting(grid, tuple(Channel(name) for name in self.state), params)
