"""What all foreign primitives share: declarations, arguments, samples that are not passed on, and work."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from math import isfinite
from threading import Event
from typing import Any, ClassVar, TypeVar

import numba
import numpy as np

from hycop.errors import ForeignError, InvalidInputError
from hycop.grid import AXES, BOUNDARIES, Array
from hycop.primitive import checked_duration, update_work
from hycop.primitives.foreign.calibration import measured_work
from hycop.primitives.foreign.npy import BadAnswer, Stopped, as_state
from hycop.query import Setting

BOUNDARY_CODES = {"periodic": 0.0, "wall": 1.0, "outflow": 2.0}
"""How a boundary is told to code that takes numbers only."""

GRACE = 1.0
"""Seconds that samples under way are given when another one has failed."""

Example = Callable[[int], tuple[Array, Setting]]
Kind = TypeVar("Kind", bound="Foreign")


@dataclass(frozen=True, kw_only=True)
class Foreign(ABC):
    """Code from outside that advances a state: u(t) → u(t + duration), sample by sample.

    The user declares what the code keeps: ``advances``, ``order`` (None: it has none), ``conserves``, ``boundaries``
    and ``reversible``. ``arguments`` names the numbers that it takes beside the state, in order: ``duration``,
    ``length_x`` and ``boundary_x`` (periodic 0, wall 1, outflow 2) of each axis, and coefficients of the setting.
    ``work_per_cell`` is its cost per channel and cell, in updates; ``calibrated()`` measures it.

    Zero durations are the identity and are never passed on, nor are states that are NaN or infinite already. A sample
    never sees the others, so results do not depend on the batch. Every fault is a ``ForeignError``.
    """

    advances: frozenset[str]
    order: float | None = None
    conserves: frozenset[str] = frozenset()
    boundaries: frozenset[str] = BOUNDARIES
    reversible: bool = False
    arguments: tuple[str, ...] = ("duration",)
    work_per_cell: float | None = None
    example: Example | None = field(default=None, init=False, repr=False, compare=False)

    foreign: ClassVar[bool] = True
    runs_code: ClassVar[bool] = True
    """Whether it runs code, which a model folder may name but never start; ``load`` must then be given it."""

    def __post_init__(self) -> None:
        for name in ("advances", "conserves", "boundaries"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        object.__setattr__(self, "arguments", tuple(_texts("arguments", self.arguments)))
        unknown = self.boundaries - BOUNDARIES
        if unknown:
            raise InvalidInputError(f"boundaries: there is no {sorted(unknown)[0]}; known: {sorted(BOUNDARIES)}")
        if not self.advances:
            raise InvalidInputError("advances is empty: name at least one process")
        if self.work_per_cell is not None and not _is_positive(self.work_per_cell):
            raise InvalidInputError(f"work_per_cell is {self.work_per_cell}: give a positive number, or None")

    def __getstate__(self) -> dict[str, Any]:
        # an example may be a local function, which cannot travel to other processes, where nobody needs it
        return {**self.__dict__, "example": None}

    @property
    @abstractmethod
    def label(self) -> str:
        """What messages call it."""

    @abstractmethod
    def advance(self, u: Array, duration: float, setting: Setting, stop: Event) -> object:
        """The state (1, channel, *grid) of one sample after a duration that is not zero; ``stop`` asks to give up."""

    def prepare(self) -> None:
        """Called before samples are advanced in this process, to fail early and once."""
        return None

    @property
    def threads(self) -> int:
        """How many samples are advanced at the same time."""
        return numba.get_num_threads()

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        tau = checked_duration(duration, setting, self.reversible)
        out = np.array(u)
        finite = np.isfinite(out.reshape(len(out), -1)).all(axis=1)
        samples = np.flatnonzero((tau != 0) & finite).tolist()
        if samples:
            self.prepare()
            self.advance_samples(out, samples, tau, setting)
        return out

    def advance_samples(self, out: Array, samples: list[int], tau: Array, setting: Setting) -> None:
        """Replaces the states of some samples by those after their durations."""
        stop = Event()

        def one(sample: int) -> None:
            out[sample] = self._checked(out[[sample]], sample, float(tau[sample]), setting, stop)

        if self.threads == 1 or len(samples) == 1:
            for sample in samples:
                one(sample)
            return
        with ThreadPoolExecutor(min(self.threads, len(samples))) as pool:
            futures = [pool.submit(one, sample) for sample in samples]
            try:
                _, left = wait(futures, return_when=FIRST_EXCEPTION)
                # after a failure what has not begun does not begin; what runs may end, so that its process stays
                wait([future for future in left if not future.cancel()], GRACE)
            finally:  # also after Ctrl-C
                for future in futures:
                    future.cancel()
                stop.set()
        for future in futures:
            if not future.cancelled() and not isinstance(future.exception(), Stopped):
                future.result()

    def _checked(self, u: Array, sample: int, tau: float, setting: Setting, stop: Event) -> Array:
        try:
            given = np.array(u, dtype=np.float64)
            answer = self.advance(given, tau, setting.take(np.array([sample])), stop)
            return as_state(answer, u.shape)[0].astype(u.dtype)
        except (InvalidInputError, Stopped):  # such as a coefficient that the query lacks: no fault of foreign code
            raise
        except BadAnswer as error:
            raise ForeignError(sample, f": {self.label} {error}") from None
        except (Exception, SystemExit) as error:
            raise ForeignError(sample, f": {self.label} raised {one_line(error)}") from error

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        if self.work_per_cell is None:
            raise InvalidInputError(
                f"{self.label}: its work is not known; use primitive.calibrated(), or give work_per_cell"
            )
        return update_work(setting, self.work_per_cell)

    def calibrated(
        self: Kind,
        u: Array | None = None,
        duration: Array | float | None = None,
        setting: Setting | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Kind:
        """The same primitive with its work measured: seconds over this machine's seconds per cell update.

        Measured on a state, duration and setting, by default those of ``example(0)``. The number is rounded to two
        digits and kept in ``file`` (by default in the user's cache folder), so that it is measured once per machine and
        then is the same in every run.
        """
        if u is None or setting is None:
            if self.example is None:
                raise InvalidInputError(f"{self.label}: give a state, a duration and a setting to measure its work on")
            u, setting = self.example(0)
        tau = np.full(setting.batch, 0.01) if duration is None else checked_duration(duration, setting, self.reversible)
        bare = replace(self, work_per_cell=None)
        return replace(self, work_per_cell=measured_work(bare, u, tau, setting, file)).with_example(self.example)

    def with_example(self: Kind, example: Example | None) -> Kind:
        """The same primitive with an ``example(seed)`` on which ``hycop check`` can try it."""
        out = replace(self)
        object.__setattr__(out, "example", example)
        return out

    def numbers(self, duration: float, setting: Setting) -> list[float]:
        """The values of ``arguments`` for one sample."""
        return [number(name, duration, setting) for name in self.arguments]


def number(name: str, duration: float, setting: Setting) -> float:
    """The number that an argument stands for, for the only sample of a setting."""
    if name == "duration":
        return duration
    kind, _, axis = name.rpartition("_")
    if kind in ("length", "boundary") and axis in AXES[: setting.grid.axes]:
        index = AXES.index(axis)
        return (
            float(setting.grid.lengths[0, index]) if kind == "length" else BOUNDARY_CODES[setting.grid.boundary[index]]
        )
    return float(setting.param(name)[0])


def one_line(error: BaseException) -> str:
    """An exception on one short line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _texts(name: str, value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{name} is {value!r:.60}: give a collection of names")
    texts = list(value)
    if not all(isinstance(text, str) and text for text in texts):
        raise InvalidInputError(f"{name} is {value!r:.60}: give names that are not empty")
    return texts


def _names(name: str, value: object) -> frozenset[str]:
    return frozenset(_texts(name, value))


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value > 0


def checked_limit(name: str, value: float | None) -> None:
    """Refuses a time or memory limit that is not a positive number."""
    if value is not None and not _is_positive(value):
        raise InvalidInputError(f"{name} is {value!r:.60}: give a positive number")
