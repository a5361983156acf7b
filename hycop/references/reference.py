"""The contract of a reference solver, and its error estimate."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from hycop.boundary import kinds_of
from hycop.errors import InvalidInputError, LostSampleError, SampleError, UnknownNameError
from hycop.grid import AXES, Array, Grid, restrict
from hycop.primitive import Primitive
from hycop.query import Setting, checked_state

CHUNK_VALUES = 2**21
"""Values of the fine solution held at a time while it is averaged."""

ESTIMATE_SAMPLES = 32
"""Number of samples that ``error_estimate`` solves a second time."""

InitialCondition = Callable[[Grid], Array]
"""Point values (batch, channel, *grid) at the cell centres of any grid over the same boxes."""


R = TypeVar("R", bound="RefinedReference")


class Reference(Primitive, Protocol):
    """An unsplit solver on a grid ``refinement`` times finer than the query grid, independent of the primitives it
    judges in two ways: other code, and another integrator in time.

    Its fine state may be point values or cell averages; ``initial_state`` makes one. As a primitive it
    advances the cell averages of the query grid.
    """

    @property
    def refinement(self) -> int: ...

    @property
    def conserves(self) -> frozenset[str]: ...

    @property
    def boundaries(self) -> frozenset[str]: ...

    @property
    def reversible(self) -> bool: ...

    @property
    def distrust(self) -> str:
        """Why its solution of a part of the equation is no better than that of a primitive; empty if it is."""
        ...

    def finer(self) -> Reference:
        """The same solver with twice the cells along each axis and half the time step."""
        ...

    def on_fine_grid(self) -> Reference:
        """The same solver at refinement 1: a primitive for the cell averages of a grid that is fine already."""
        ...

    def initial_state(self, initial: InitialCondition, setting: Setting) -> Array:
        """The fine state (batch, channel, *fine_grid) of an initial condition on the boxes of the query grid."""
        ...

    def solve(self, fine: Array, setting_fine: Setting, times: Array) -> Array:
        """Fine states (batch, time, channel, *fine_grid) at non-decreasing times (batch, time)."""
        ...

    def averages(self, fine: Array, setting: Setting, times: Array) -> Array:
        """Cell averages (batch, time, channel, *grid) on the query grid that follow from a fine state."""
        ...

    def trajectory(self, initial: InitialCondition, setting: Setting, times: Array) -> Array:
        """Cell averages (batch, 1 + time, channel, *grid) of an initial condition at time 0 and then at ``times``.

        The fine initial state of the whole batch is held in memory: split a large batch first.
        """
        ...


@dataclass(frozen=True)
class RefinedReference(ABC):
    """What the references have in common: they solve on a finer grid, interval by interval, and average the result.

    ``processes`` are those of the equation that it solves, all of ``known`` or a part of them. Results of
    a sample do not depend on the batch it is in or on the number of ``workers`` (threads, all cores by default).
    """

    processes: frozenset[str]
    refinement: int = 4
    workers: int | None = field(default=None, repr=False, compare=False, kw_only=True)

    known: ClassVar[frozenset[str]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "processes", checked_processes(self.processes, self.known))
        if self.refinement < 1:
            raise InvalidInputError(f"refinement is {self.refinement}: it must be at least 1")

    def __str__(self) -> str:
        """The name and the settings of the solver, the same in every run of Python (sets have no order)."""
        shown = [f"{item.name}={getattr(self, item.name)}" for item in fields(self) if item.repr][1:]
        return f"{type(self).__name__}({', '.join(['+'.join(sorted(self.processes)), *shown])})"

    @property
    def distrust(self) -> str:
        return ""

    def on_fine_grid(self: R) -> R:
        return replace(self, refinement=1)

    @abstractmethod
    def checked_setting(self, setting: Setting) -> Setting:
        """The setting, or an error that says why this reference cannot solve in it."""

    @abstractmethod
    def fine_averages(self, solution: Array, setting_fine: Setting) -> Array:
        """Cell averages of the fine grid from the fine states (batch, time, channel, *fine_grid)."""

    @abstractmethod
    def fine_state(self, averages: Array, setting: Setting) -> Array:
        """A fine state with the given cell averages on the query grid."""

    @abstractmethod
    def advance(self, state: Array, duration: Array, setting_fine: Setting, out: Array) -> None:
        """Writes the fine state after a duration per sample to ``out``, unchanged to the last bit if that is zero."""

    @property
    def advances(self) -> frozenset[str]:
        return self.processes

    @property
    @abstractmethod
    def conserves(self) -> frozenset[str]: ...

    @property
    @abstractmethod
    def boundaries(self) -> frozenset[str]: ...

    @property
    def exact_in_time(self) -> bool:
        """Whether a duration causes no error; then every time is reached from the start, so that no rounding adds
        up."""
        return False

    @property
    def reversible(self) -> bool:
        return False

    def refined(self, setting: Setting) -> Setting:
        return setting.with_grid(setting.grid.refined(self.refinement))

    def solve(self, fine: Array, setting_fine: Setting, times: Array) -> Array:
        """Fine states (batch, time, channel, *fine_grid) at non-decreasing ``times``, from the one at time 0."""
        self.checked_setting(setting_fine)
        self._check_boundaries(setting_fine.grid)
        state = checked_state(fine, setting_fine, "fine state").astype(np.float64, copy=False)
        at = checked_times(times, setting_fine)
        out = np.empty((state.shape[0], at.shape[1], *state.shape[1:]))
        since = np.zeros(state.shape[0])
        for index in range(at.shape[1]):
            duration = at[:, index] - since
            if duration.any():
                self.advance(state, duration, setting_fine, out[:, index])
            else:  # every trajectory begins at time 0
                out[:, index] = state
            checked_finite(out[:, index])
            if not self.exact_in_time:
                state, since = out[:, index], at[:, index]
        return out

    def _check_boundaries(self, grid: Grid) -> None:
        for axis, boundary in zip(AXES, grid.boundary, strict=False):
            if not kinds_of(boundary) <= self.boundaries:
                raise InvalidInputError(
                    f"boundary {boundary} along {axis}: there is no truth for it, only for "
                    f"{', '.join(sorted(self.boundaries))}"
                )

    def query_averages(self, fine: Array, setting_fine: Setting, times: Array, shape: tuple[int, ...]) -> Array:
        """Cell averages (batch, time, channel, *shape) on the query grid that follow from a fine state."""
        solution = self.solve(fine, setting_fine, times)
        return restrict(self.fine_averages(solution, setting_fine), shape)

    def averages(self, fine: Array, setting: Setting, times: Array) -> Array:
        return self._averages(lambda samples: fine[samples], setting, times)

    def trajectory(self, initial: InitialCondition, setting: Setting, times: Array) -> Array:
        at = np.pad(checked_times(times, setting), ((0, 0), (1, 0)))
        return self.averages(self.initial_state(initial, setting), setting, at)

    def initial_state(self, initial: InitialCondition, setting: Setting) -> Array:
        """Point values at the centres of the fine cells."""
        fine = self.refined(setting)
        return checked_state(initial(fine.grid), fine, "initial state").astype(np.float64, copy=False)

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        """The cell averages of the query grid after a duration per sample."""
        self.checked_setting(setting)
        state = checked_state(u, setting, "u")
        span = np.broadcast_to(np.asarray(duration, dtype=np.float64), (setting.batch,))
        later = self._averages(
            lambda samples: self.fine_state(state[samples], setting.take(samples)), setting, span[:, None]
        )[:, 0]
        return np.where(samplewise(span == 0, state), state, later).astype(state.dtype, copy=False)

    def _averages(self, fine: Callable[[slice], Array], setting: Setting, times: Array) -> Array:
        at = checked_times(times, setting)
        shape = setting.grid.shape
        out = np.empty((setting.batch, at.shape[1], len(setting.channels), *shape))
        size = max(1, CHUNK_VALUES // max(1, prod(out.shape[1:]) * self.refinement ** len(shape)))
        for first in range(0, setting.batch, size):
            samples = slice(first, first + size)
            setting_fine = self.refined(setting.take(samples))
            try:
                out[samples] = self.query_averages(fine(samples), setting_fine, at[samples], shape)
            except SampleError as error:
                raise error.at(first + error.sample) from None
        return out


def error_estimate(reference: Reference, initial: InitialCondition, setting: Setting, times: Array) -> float:
    """Mean relative L2 change of the coarse cell averages when the grid and the time step are halved.

    Only the first 32 samples are solved, but ``initial`` is called for the whole batch of ``setting``; give 32 samples
    to save memory.
    """
    samples = slice(0, ESTIMATE_SAMPLES)
    few, their_times = setting.take(samples), np.asarray(times)[samples]
    runs = [
        solver.averages(solver.initial_state(initial, setting)[samples], few, their_times)
        for solver in (reference, reference.finer())
    ]
    rows = [run.reshape(run.shape[0] * run.shape[1], -1) for run in runs]
    size = np.linalg.norm(rows[1], axis=1)
    change = np.linalg.norm(rows[1] - rows[0], axis=1)
    return float(np.mean(change / np.where(size > 0, size, 1.0)))


def checked_processes(processes: Iterable[str], known: frozenset[str]) -> frozenset[str]:
    """The processes a reference advances, at least one of those it knows."""
    names = frozenset(processes)
    for name in sorted(names - known):
        raise UnknownNameError("process", name, known)
    if not names:
        raise InvalidInputError(f"processes: at least one of {', '.join(sorted(known))} is needed")
    return names


def checked_times(times: object, setting: Setting) -> Array:
    """Output times (batch, time), finite, not negative and non-decreasing for each sample."""
    out = np.asarray(times, dtype=np.float64)
    if out.ndim != 2 or out.shape[0] != setting.batch:
        raise InvalidInputError(f"times have shape {out.shape}: ({setting.batch}, time) is needed, one row per sample")
    steps = np.diff(out, axis=1, prepend=0.0)
    wrong = ~(np.isfinite(out) & (steps >= 0)).all(axis=1)
    if wrong.any():
        sample = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(f"times of sample {sample}: they must be finite, not negative and non-decreasing")
    return out


def checked_finite(states: Array) -> Array:
    """The states, unless one of them became NaN or infinite."""
    finite = np.isfinite(states.reshape(states.shape[0], -1)).all(axis=1)
    if not finite.all():
        sample = int(np.flatnonzero(~finite)[0])
        raise LostSampleError(sample, ": the reference solution became NaN or infinite before the time asked for")
    return states


def relative_size(change: Array, u: Array) -> Array:
    """max|change| / max|u| per sample, 0 for a state that is zero."""
    axes = tuple(range(1, u.ndim))
    size = np.abs(u).max(axis=axes)
    ratio: Array = np.abs(change).max(axis=axes) / np.where(size > 0, size, 1.0)
    return ratio


def samplewise(column: Array, like: Array) -> Array:
    """(batch,) as (batch, 1, …, 1), ready to broadcast to another array."""
    return column.reshape((-1,) + (1,) * (like.ndim - 1))


def blocks_of(keys: Array, size: int) -> list[Array]:
    """Indices of the samples in blocks of at most ``size`` whose rows of ``keys`` (batch, …) are equal."""
    _, group = np.unique(keys.reshape(keys.shape[0], -1), axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    starts = np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1
    return [
        members[first : first + size]
        for members in np.split(order, starts)
        for first in range(0, members.size, max(1, size))
    ]


def run_blocks(task: Callable[[Array], None], blocks: Sequence[Array], workers: int | None) -> None:
    """Runs a task on each block in threads. Blocks write to samples of their own, so their order does not matter."""
    threads = min(len(blocks), workers or os.cpu_count() or 1)
    if threads <= 1:
        for block in blocks:
            task(block)
        return
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(task, block) for block in blocks]:
            future.result()
