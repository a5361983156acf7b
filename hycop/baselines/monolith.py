"""A trained baseline as a solver: one step of its network, or a roll-out of several."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from typing import ClassVar

import numpy as np

from hycop.baselines.baseline import Baseline, BaselineError
from hycop.baselines.registry import find_baseline
from hycop.errors import HyCOPWarning
from hycop.execution import Outcome
from hycop.grid import Array
from hycop.primitives.learned import NeuralOperator
from hycop.query import Query
from hycop.storage.network import BASELINE, Network, is_network, load_network

FEWEST_ROUNDS = 16
"""Rounds of training below which the curve does not say whether it has ended."""

SAME_TIME = 1e-6
"""Relative difference below which two times are the same."""

MOST_STEPS = 10_000
"""Steps of a roll-out at most."""

TRANSIT = "1/L"
"""Names of the numbers that are times in units of the box begin so."""

LENGTHS = "lengths"
"""The setting that holds the lengths of the box, if all solutions of training have the same."""

BOUNDARY = "boundary"
"""The setting that holds the boundaries of training."""


class UntrustedBaselineWarning(HyCOPWarning):
    """A baseline is asked about other boundaries than those it was trained with."""


@dataclass(frozen=True, eq=False)
class Monolith:
    """A trained baseline. A ``fixed`` one answers at its own time T by one evaluation, a ``step`` one at multiples of
    its step by as many evaluations, each of the state before.

    Where the equation has speeds of its own, a box that is λ times as long is the same task with λ times the time.
    """

    baseline: Baseline
    network: Network

    any_time: ClassVar[bool] = False

    @property
    def primitive(self) -> NeuralOperator:
        return self.network.primitive

    @property
    def time(self) -> float:
        """The trained time, or the trained step."""
        return self.primitive.longest

    @property
    def passes(self) -> float:
        """Forward passes of training: samples, counted each time that they were seen."""
        return self._noted("passes_before") + len(self.curve) * self._noted("samples")

    @property
    def seconds(self) -> float:
        """CPU seconds of training."""
        return self._noted("seconds_before") + self._noted("seconds")

    def _noted(self, name: str) -> float:
        value = self.network.settings.get(name, 0.0)
        return float(value) if isinstance(value, int | float) else 0.0

    @property
    def curve(self) -> Sequence[float]:
        """The held-out error after each round."""
        return self.network.errors

    @property
    def slope(self) -> float:
        """log2 of the factor by which the second half of the rounds lowered the best held-out error: the error falls as
        budget^−slope. Each half ends with a low rate of learning, see ``cycles``."""
        half = len(self.curve) // 2
        if not half:
            return float("nan")
        return log2(min(self.curve[:half]) / min(self.curve))

    @property
    def converged(self) -> bool:
        """Whether twice the budget lowered the error by less than 10 %; a few rounds do not tell."""
        return len(self.curve) >= FEWEST_ROUNDS and self.slope < log2(1 / 0.9)

    def extrapolated(self, passes: float) -> float:
        """The factor by which errors would be lower after so many forward passes, if they fell on as they did."""
        return float(max(1.0, passes / self.passes) ** max(0.0, self.slope))

    def solve(self, query: Query) -> Outcome:
        """States that became NaN or infinite are results."""
        self._warn_of_boundary(query.grid.boundary_name)
        once = self.time * self._stretch(query)
        steps = self._steps(query.time, once)
        out, states = np.array(query.u0, dtype=np.float64), np.array(query.u0, dtype=np.float64)
        # a wild state must not spoil the others of its chunk
        with np.errstate(all="ignore"):
            for step in range(int(steps.max(initial=0))):
                some = np.flatnonzero(steps > step)
                states[some] = self.primitive.step(states[some], once[some], query.setting.take(some))
                out[some] = states[some]
        return Outcome(out, steps * self.primitive.work_of_step(query.grid.cells))

    def _warn_of_boundary(self, asked: str) -> None:
        """A network cannot be told of walls: it goes on as if they were not there."""
        trained = self.network.settings.get(BOUNDARY, asked)
        if trained != asked:
            told = f"{self.baseline.label} was trained with boundary={trained} and knows nothing of boundary={asked}"
            warnings.warn(told, UntrustedBaselineWarning, stacklevel=3)

    def _stretch(self, query: Query) -> Array:
        """How many times longer than in training the box is, where a longer time makes up for that; else 1."""
        trained = self.network.settings.get(LENGTHS)
        moving = any(name.startswith(TRANSIT) for name in self.primitive.numbers)
        if not moving or not isinstance(trained, list) or len(trained) != query.grid.axes:
            return np.ones(query.batch)
        ratios = query.grid.lengths / np.array(trained, dtype=np.float64)
        if np.ptp(ratios, axis=1).max(initial=0.0) > SAME_TIME * ratios.max(initial=1.0):
            raise BaselineError(f"{self.baseline.label} was trained in a box of another aspect ratio: use that")
        return np.asarray(ratios.mean(axis=1))

    def _steps(self, time: Array, once: Array) -> Array:
        """How many steps each query takes, (batch,)."""
        asked = time / once
        steps = np.ones_like(asked) if self.baseline.protocol == "fixed" else np.round(asked)
        wrong = np.abs(asked - steps) > SAME_TIME * np.maximum(steps, 1.0)
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            known = "at T =" if self.baseline.protocol == "fixed" else "at multiples of"
            raise BaselineError(
                f"{self.baseline.label} answers {known} {once[first]:g}, but sample {first} asks at "
                f"{time[first]:g}; ask at that, or train it for other times"
            )
        if steps.max(initial=0.0) > MOST_STEPS:
            raise BaselineError(f"{self.baseline.label}: {steps.max():.0f} steps are too many; at most {MOST_STEPS}")
        return steps


def is_baseline(folder: str | Path) -> bool:
    """Whether a folder holds a trained baseline that answers queries by itself."""
    return is_network(folder) and BASELINE in load_network(folder).settings


def load_baseline(folder: str | Path) -> Monolith:
    """The baseline of a folder that ``hycop baseline`` has written."""
    network = load_network(folder)
    name = network.settings.get(BASELINE)
    if not isinstance(name, str):
        raise BaselineError(f"{folder}: is a network for {', '.join(network.primitive.processes)}, not a baseline")
    return Monolith(find_baseline(name), network)
