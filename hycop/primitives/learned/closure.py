"""A learned closure as a primitive: u_t = R(u, c), the rate of a process that an equation lacked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import BOUNDARIES, Array
from hycop.primitive import checked_duration, sub_steps
from hycop.primitives.learned.chunks import FLOPS_PER_UPDATE, in_chunks
from hycop.primitives.learned.trained import Trained
from hycop.query import Channel, Setting

REACH = 0.5
"""Largest product of a Runge–Kutta step and the Lipschitz constant: the error is then below 1e-3 of the change."""

SLACK = 0.05
"""Share of its width by which a state or a coefficient may leave its trained range."""

STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))
"""The classical Runge–Kutta method: where each stage stands, and its weight."""


@dataclass(frozen=True, eq=False, repr=False)
class NeuralClosure(Trained):
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

    source: ClassVar[str] = "load the model that holds it"

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
        numbers = 1 + len(self.inputs)
        self._check_sizes(channels=len(self.states), numbers=numbers, timed=numbers)
        if not set(self.boundary) <= BOUNDARIES or len(self.boundary) != plan["axes"]:
            raise InvalidInputError("a closure needs one boundary for each of its axes")
        if set(self.spreads) != set(self.states) or set(self.rates) != set(self.states):
            raise InvalidInputError("a closure needs spreads and rates for the channels of its states")
        if any(not spread > 0 for _, spread in self.spreads.values()) or any(not r > 0 for r in self.rates.values()):
            raise InvalidInputError("spreads and rates of a closure must be positive")
        if any(not low <= high for low, high in (*self.states.values(), *self.inputs.values())):
            raise InvalidInputError("a range of a closure ends before it begins")

    def __repr__(self) -> str:
        told = f" and {', '.join(self.inputs)}" if self.inputs else ""
        return f"NeuralClosure({self.plan.family} of {', '.join(self.states)}{told}, {self._parameters()} parameters)"

    @property
    def advances(self) -> frozenset[str]:
        return frozenset({self.process})

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
        rng, batch = np.random.default_rng(seed), 3
        grid = self._example_grid(batch)
        params = {name: rng.uniform(*ends, batch) for name, ends in self.inputs.items()}
        return self._example_states(rng, grid), Setting(grid, tuple(map(Channel, self.states)), params)

    def _mean_rate(self, u: Array, h: Array, setting: Setting) -> Array:
        """The weighted rate of the stages of one Runge–Kutta step."""
        rate, total = np.zeros_like(u), np.zeros_like(u)
        for place, weight in STAGES:
            rate = self.rate(u + place * h * rate, setting)
            total += weight * rate
        return total

    def _steps(self, tau: Array) -> Array:
        return np.maximum(sub_steps(tau * self.lipschitz / REACH), 1)
