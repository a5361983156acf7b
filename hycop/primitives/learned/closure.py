"""A learned closure as a primitive: u_t = R(u, c), the rate of a process that an equation lacked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import BOUNDARIES, Array, Grid
from hycop.networks import Architecture
from hycop.primitive import checked_duration, sub_steps
from hycop.primitives.learned.chunks import FLOPS_PER_UPDATE, in_chunks
from hycop.query import Channel, Setting

if TYPE_CHECKING:
    from hycop.networks.module import Increment

REACH = 0.5
"""Largest product of a Runge–Kutta step and the Lipschitz constant: the error is then below 1e-3 of the change."""

SLACK = 0.05
"""Share of its width by which a state or a coefficient may leave its trained range."""

STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))
"""The classical Runge–Kutta method: where each stage stands, and its weight."""


@dataclass(frozen=True, eq=False, repr=False)
class NeuralClosure:
    """u_t = R(u, c) with a trained network R of the state u and some coefficients c, the same at all times.

    - ``architecture`` is that of the network as data, see ``hycop.networks``. It is told the number 1 and the
      coefficients in ``inputs`` over the ends of their trained ranges n_i, and R = net_0 + Σ_i n_i·net_i.
    - It sees channels about the means and over the deviations in ``spreads``; ``rates`` are the units of its answer.
    - ``states`` and ``inputs`` are the trained ranges of the channels and coefficients. Values outside count as the
      nearest end: a network is no guide there, and so its rates stay bounded. Such samples are ``outside``.
    - ``lipschitz`` is the measured Lipschitz constant of R: durations are cut into Runge–Kutta steps of fourth order
      that are short against 1 / ``lipschitz``, and are the identity for τ = 0 to the bit.

    ``measured`` is what was found on held-out data. The weights are its ``arrays()``. R is computed in single
    precision.
    """

    architecture: Mapping[str, str | int]
    process: str
    states: Mapping[str, tuple[float, float]]
    spreads: Mapping[str, tuple[float, float]]
    rates: Mapping[str, float]
    inputs: Mapping[str, tuple[float, float]]
    boundary: tuple[str, ...]
    lipschitz: float
    measured: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, Array] = field(default_factory=dict, init=False)

    order: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        for name in ("states", "spreads", "inputs"):
            object.__setattr__(self, name, {key: tuple(value) for key, value in getattr(self, name).items()})
        for name in ("architecture", "rates", "measured"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        self._check()

    def _check(self) -> None:
        for name in ("states", "spreads", "rates", "inputs", "measured"):
            if not np.isfinite([*getattr(self, name).values()]).all():
                raise InvalidInputError(f"{name} of a closure: finite numbers are needed")
        if not (isinstance(self.lipschitz, float | int) and isfinite(self.lipschitz) and self.lipschitz > 0):
            raise InvalidInputError(f"lipschitz of a closure is {self.lipschitz!r:.40}: a positive number is needed")
        if not isinstance(self.process, str) or not self.process:
            raise InvalidInputError("process of a closure: a name is needed")
        plan = self.plan
        sizes = {"channels": len(self.states), "numbers": 1 + len(self.inputs), "timed": 1 + len(self.inputs)}
        for name, count in sizes.items():
            if plan[name] != count:
                raise InvalidInputError(f"network {plan.family}: {name} is {plan[name]}, but there are {count}")
        if not set(self.boundary) <= BOUNDARIES or len(self.boundary) != plan["axes"]:
            raise InvalidInputError("a closure needs one boundary for each of its axes")
        if set(self.spreads) != set(self.states) or set(self.rates) != set(self.states):
            raise InvalidInputError("a closure needs spreads and rates for the channels of its states")
        if any(not spread > 0 for _, spread in self.spreads.values()) or any(not r > 0 for r in self.rates.values()):
            raise InvalidInputError("spreads and rates of a closure must be positive")
        if any(not low <= high for low, high in (*self.states.values(), *self.inputs.values())):
            raise InvalidInputError("a range of a closure ends before it begins")

    def __repr__(self) -> str:
        count = sum(array.size for array in self.weights.values())
        told = f" and {', '.join(self.inputs)}" if self.inputs else ""
        return f"NeuralClosure({self.plan.family} of {', '.join(self.states)}{told}, {count} parameters)"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_module"}

    @property
    def plan(self) -> Architecture:
        return Architecture.of(self.architecture)

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

    @property
    def boundaries(self) -> frozenset[str]:
        """Those that it was trained with; all if it takes each cell by itself."""
        return BOUNDARIES if self.plan.kind.pointwise else frozenset(self.boundary)

    def arrays(self) -> Mapping[str, Array]:
        return self.weights

    def with_arrays(self, arrays: Mapping[str, Array]) -> NeuralClosure:
        """The same closure with other weights, which must have the names and shapes of its architecture."""
        wanted = self.plan.shapes()  # says so if torch is missing
        from hycop.networks.module import check_shapes  # torch is imported when a network is used

        check_shapes({name: np.shape(array) for name, array in arrays.items()}, wanted)
        out = object.__new__(NeuralClosure)
        kept = {name: np.array(array, dtype=np.float32) for name, array in arrays.items()}
        for name, array in kept.items():
            if not np.isfinite(array).all():
                raise InvalidInputError(f"weights: array '{name}' has a NaN or infinite value; train the network again")
        out.__dict__.update({**self.__getstate__(), "weights": kept})
        return out

    def seen(self, u: Array, setting: Setting) -> tuple[Array, Array]:
        """What the network sees: channels about 0 and of size 1, and the numbers 1, c_1, … (batch, number)."""
        column = (-1,) + (1,) * (u.ndim - 2)
        middle, deviation = (np.array(part).reshape(column) for part in zip(*self.spreads.values(), strict=True))
        low, high = (np.array(part).reshape(column) for part in zip(*self.states.values(), strict=True))
        margin = SLACK * (high - low)
        given = [
            np.clip(setting.param(name), *ends) / (max(map(abs, ends)) or 1.0) for name, ends in self.inputs.items()
        ]
        inside = np.clip(u, low - margin, high + margin)
        return (inside - middle) / deviation, np.stack([np.ones(setting.batch), *given], axis=1)

    def rate(self, u: Array, setting: Setting) -> Array:
        """R(u, c), in double precision from single."""
        self._check_setting(setting)
        unit = np.array(list(self.rates.values())).reshape(-1, *(1,) * (u.ndim - 2))
        return unit * in_chunks(self._built(), *self.seen(u.astype(np.float64, copy=False), setting))

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        self._check_setting(setting)
        tau = checked_duration(duration, setting)
        steps = self._steps(tau)
        out = np.array(u, dtype=np.float64)
        for step in range(int(steps.max(initial=0))):
            some = np.flatnonzero((steps > step) & (tau > 0))
            if some.size:
                h = (tau[some] / steps[some]).reshape((-1,) + (1,) * (u.ndim - 1))
                out[some] += h * self._mean_rate(out[some], h, setting.take(some))
        return out.astype(u.dtype, copy=False)

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        """Floating-point operations over those that cost as much as one update of a channel-cell."""
        once = self._built().flops(setting.grid.cells) / FLOPS_PER_UPDATE
        tau = np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,))
        return np.maximum(self._steps(tau), 1) * len(STAGES) * once

    def outside(self, u: Array, setting: Setting) -> Array:
        """Which samples (batch,) lie outside the trained range of a state or coefficient, or have other boundaries."""
        out = np.zeros(setting.batch, dtype=bool)
        values = [u[:, channel].reshape(setting.batch, -1) for channel in range(len(self.states))]
        values += [setting.param(name)[:, None] for name in self.inputs]
        for (low, high), found in zip((*self.states.values(), *self.inputs.values()), values, strict=True):
            margin = SLACK * (high - low) + 1e-9 * max(abs(low), abs(high))
            out |= (found.min(axis=1) < low - margin) | (found.max(axis=1) > high + margin)
        if not self.plan.kind.pointwise and setting.grid.boundary != self.boundary:
            out |= True
        return out

    def example(self, seed: int) -> tuple[Array, Setting]:
        """Smooth states within the trained range, on a small box of length one."""
        rng, axes, batch = np.random.default_rng(seed), self.plan["axes"], 3
        grid = Grid.box((12, 15, 10)[:axes], 1.0, self.boundary, batch)
        params = {name: rng.uniform(*ends, batch) for name, ends in self.inputs.items()}
        u = np.empty((batch, len(self.states), *grid.shape))
        for channel, (low, high) in enumerate(self.states.values()):
            # cosines have no gradient at the ends, so they suit every boundary
            wave = sum(
                rng.uniform(-1, 1, (batch,) + (1,) * axes) * np.cos(2 * np.pi * (1 + axis // 2) * x)
                for axis, x in enumerate(grid.centres())
            )
            u[:, channel] = 0.5 * (low + high) + 0.2 * (high - low) * wave / axes
        return u, Setting(grid, tuple(map(Channel, self.states)), params)

    def _mean_rate(self, u: Array, h: Array, setting: Setting) -> Array:
        """The weighted rate of the stages of one Runge–Kutta step."""
        rate, total = np.zeros_like(u), np.zeros_like(u)
        for place, weight in STAGES:
            rate = self.rate(u + place * h * rate, setting)
            total += weight * rate
        return total

    def _steps(self, tau: Array) -> Array:
        return np.maximum(sub_steps(tau * self.lipschitz / REACH), 1)

    def _check_setting(self, setting: Setting) -> None:
        names = [channel.name for channel in setting.channels]
        if names != list(self.states) or setting.grid.axes != self.plan["axes"]:
            raise IncompatibleError(
                f"{self!r} was trained for {self.plan['axes']} axes and channels {', '.join(self.states)}: the query "
                f"has {setting.grid.axes} and {', '.join(names)}"
            )

    def _built(self) -> Increment:
        """The module with its weights, made once in each process."""
        if "_module" not in self.__dict__:
            if not self.weights:
                raise InvalidInputError(f"{self!r} has no weights; load the model that holds it, or give arrays")
            from hycop.networks.module import set_arrays

            module = self.plan.build()
            set_arrays(module, self.weights)
            object.__setattr__(self, "_module", module.eval())
        built: Increment = self.__dict__["_module"]
        return built
