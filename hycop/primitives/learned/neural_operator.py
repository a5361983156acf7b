"""A network as a primitive: u(t) → u(t + τ) for the processes on which it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import BOUNDARIES, Array
from hycop.primitive import MOST_SUB_STEPS, checked_duration
from hycop.primitives.learned.chunks import FLOPS_PER_UPDATE, in_chunks
from hycop.primitives.learned.numbers import Numbers
from hycop.primitives.learned.trained import Trained
from hycop.query import Channel, Setting

STATE_SLACK = 0.05
"""Share of its width by which a state may leave the trained range of values."""


@dataclass(frozen=True, eq=False, repr=False)
class NeuralOperator(Trained):
    """A trained network N: u ↦ u + N(u, n(τ)), the identity for τ = 0 to the bit.

    ``architecture`` is that of the network as data, see ``hycop.networks``. It is told dimensionless ``numbers`` (kind
    and axis of each by name), of which ``ranges`` were trained per unit of time, for durations up to ``longest``; see
    ``Numbers``. It sees states in ``units`` (see ``UNITS``); ``states`` are the trained ranges of the channels in them,
    ``spreads`` their means and standard deviations. A longer duration is taken in equal steps that are within.
    ``conserved`` channels keep their total. ``measured`` is what conformance found: ``error``, ``semigroup_defect`` and
    ``lipschitz`` in the trained range. The weights are its ``arrays()``. It computes in single precision.
    """

    architecture: Mapping[str, str | int]
    processes: tuple[str, ...]
    states: Mapping[str, tuple[float, float]]
    numbers: Mapping[str, tuple[str, int | None]]
    ranges: Mapping[str, tuple[float, float]]
    longest: float
    boundary: tuple[str, ...]
    units: str = "fixed"
    spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    conserved: tuple[str, ...] = ()
    measured: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, Array] = field(default_factory=dict, init=False)

    source: ClassVar[str] = "load it with hycop.load_primitive"

    def __post_init__(self) -> None:
        for name in ("states", "numbers", "ranges", "spreads"):
            object.__setattr__(self, name, {key: tuple(value) for key, value in getattr(self, name).items()})
        for name in ("architecture", "measured"):
            object.__setattr__(self, name, dict(getattr(self, name)))
        self._check()

    def _check(self) -> None:
        for name in ("processes", "boundary", "conserved"):
            given = getattr(self, name)
            if not isinstance(given, tuple) or not all(isinstance(part, str) for part in given):
                raise InvalidInputError(f"{name} of a network is {given!r:.60}: names are needed")
        for name in ("states", "spreads", "measured"):
            if not np.isfinite(list(getattr(self, name).values())).all():
                raise InvalidInputError(f"{name} of a network: finite numbers are needed")
        plan, told = self.plan, self.told
        if any(axis is not None and axis >= plan["axes"] for _, axis in self.numbers.values()):
            raise InvalidInputError(f"numbers of a network of {plan['axes']} axes: there is no such axis")
        if not self.processes or not set(self.boundary) <= BOUNDARIES or len(self.boundary) != plan["axes"]:
            raise InvalidInputError("a network needs processes, and one boundary for each of its axes")
        self._check_sizes(channels=len(self.states), numbers=len(self.numbers), timed=len(told.timed))
        if any(not low < high for low, high in self.states.values()):
            raise InvalidInputError(f"network {plan.family}: a range of values ends before it begins")
        if self.spreads and (set(self.spreads) != set(self.states) or any(not s > 0 for _, s in self.spreads.values())):
            raise InvalidInputError(f"network {plan.family}: each channel needs a mean and a positive deviation")
        if not set(self.conserved) <= set(self.states):
            raise InvalidInputError(f"network {plan.family}: conserved channels must be channels of the state")

    def __repr__(self) -> str:
        return f"NeuralOperator({self.plan.family}, {'+'.join(self.processes)}, {self._parameters()} parameters)"

    @property
    def told(self) -> Numbers:
        """The dimensionless numbers that the network is told."""
        return Numbers(self.numbers, self.ranges, self.longest, self.units)

    @property
    def advances(self) -> frozenset[str]:
        return frozenset(self.processes)

    @property
    def conserves(self) -> frozenset[str]:
        return frozenset(self.conserved)

    def seen(self, u: Array, duration: Array, setting: Setting) -> tuple[Array, Array, Array]:
        """What the network sees of a step: states in their units, about 0 and of size 1, and the numbers; and the unit
        of its answer, (batch, channel, 1, …)."""
        spreads = np.array([self.spreads.get(name, (0.0, 1.0)) for name in self.states])
        ends = (1,) * (u.ndim - 2)
        unit = self.told.unit(u, setting).per_cell(len(ends))
        # a linear network has no middle: it maps zero to zero
        middle = np.where(self.plan.kind.linear, 0.0, spreads[:, 0]).reshape(-1, *ends)
        deviation = spreads[:, 1].reshape(-1, *ends)
        return (u / unit - middle) / deviation, self.told(u, duration, setting), deviation * unit

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        """The state after a duration per sample, in equal steps that are no longer than those of training."""
        self._check_setting(setting)
        tau = checked_duration(duration, setting)
        steps = self._steps(u, tau, setting)
        out = np.array(u, dtype=np.float64)
        for step in range(int(steps.max(initial=0))):
            some = np.flatnonzero((steps > step) & (tau > 0))
            if some.size:
                out[some] += self._increment(out[some], tau[some] / steps[some], setting.take(some))
        return out.astype(u.dtype, copy=False)

    def step(self, u: Array, duration: Array, setting: Setting) -> Array:
        """The state after one step of the network, however long."""
        self._check_setting(setting)
        return u + self._increment(u, duration, setting)

    def work_of_step(self, cells: int) -> float:
        """Floating-point operations of one step, over those that cost as much as one update of a channel-cell."""
        return self._built().flops(cells) / FLOPS_PER_UPDATE

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return self._steps(u, np.asarray(duration, dtype=np.float64), setting) * self.work_of_step(setting.grid.cells)

    def outside(self, u: Array, setting: Setting) -> Array:
        """Which samples (batch,) lie outside the trained range: ratios of the dimensionless numbers, values of a state,
        or boundaries."""
        out = self.told.outside(u, setting)
        if not self.plan.kind.linear:
            scaled = u / self.told.unit(u, setting).per_cell(setting.grid.axes)
            for channel, (low, high) in enumerate(self.states.values()):
                margin, values = STATE_SLACK * (high - low), scaled[:, channel].reshape(setting.batch, -1)
                out |= (values.min(axis=1) < low - margin) | (values.max(axis=1) > high + margin)
        if not self.plan.kind.pointwise and setting.grid.boundary != self.boundary:
            out |= True
        return out

    def example(self, seed: int) -> tuple[Array, Setting]:
        """Smooth states within the trained range, on a small box of length one."""
        rng, batch = np.random.default_rng(seed), 3
        grid = self._example_grid(batch)
        params = {
            name: rng.uniform(*self.ranges[name], batch)
            for name, (kind, _) in self.numbers.items()
            if kind not in ("transit", "time")
        }
        return self._example_states(rng, grid), Setting(grid, tuple(map(Channel, self.states)), params)

    def _steps(self, u: Array, duration: Array, setting: Setting) -> Array:
        steps = self.told.substeps(u, duration, setting)
        if steps.max(initial=1.0) > MOST_SUB_STEPS:
            raise InvalidInputError(f"a duration needs {steps.max():.3g} sub-steps of a network; make it shorter")
        return steps

    def _increment(self, u: Array, duration: Array, setting: Setting) -> Array:
        """One step of the network for each sample."""
        states, numbers, unit = self.seen(u, duration, setting)
        out = in_chunks(self._built(), states, numbers)
        for channel, name in enumerate(self.states):
            if name in self.conserved:
                out[:, channel] -= out[:, channel].mean(axis=tuple(range(1, u.ndim - 1)), keepdims=True)
        return unit * out
