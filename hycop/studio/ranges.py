"""The intervals of the sliders: wider than training, so that the trust flag can be seen to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite, log10

import numpy as np

from hycop.data import Dataset
from hycop.grid import AXES
from hycop.model import Model
from hycop.pde import Coefficient
from hycop.problems import Problem

BEYOND = 0.25
"""A slider reaches this fraction of its interval beyond what any split of the problem asks."""

LONGER, LONGEST = 1.5, 4.0
"""The slider of the time reaches ``LONGER`` times the longest time of any split, but at most ``LONGEST`` times the
longest trained one: the snapshots of long trajectories lie far beyond."""

STEPS = 200
"""Steps of a slider, at least."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Range:
    """The interval of a slider, the value that it starts from, and the trained interval if it is known."""

    low: float
    high: float
    start: float
    trained: Interval | None = None

    @property
    def step(self) -> float:
        """A round number: 1, 2 or 5 times a power of ten."""
        least = (self.high - self.low) / STEPS
        power = 10.0 ** floor(log10(least))
        return float(max(factor * power for factor in (1, 2, 5) if factor * power <= least * (1 + 1e-9)))

    @property
    def text(self) -> str:
        """The trained interval for the label of the slider."""
        if self.trained is None:
            return ""
        low, high = self.trained
        return f"trained at {low:.3g}" if low == high else f"trained on {low:.3g} to {high:.3g}"


def coefficient_ranges(model: Model, problem: Problem | None, data: Dataset | None) -> dict[str, Range]:
    """A range for each coefficient of the model's equation, or for each parameter of the data if that was guessed."""
    names = list(model.equation.coefficients) or ([] if data is None else list(data.setting.params))
    return {name: _of_coefficient(name, model, problem, data) for name in names}


def time_range(model: Model, problem: Problem | None, data: Dataset | None) -> Range:
    if problem is not None:
        trained = problem.splits["train"].time if "train" in problem.splits else None
        longest = max(split.time[1] for split in problem.splits.values())
        start = sum(problem.splits["id"].time) / 2 if "id" in problem.splits else longest
    elif data is not None and data.times.shape[1] > 1:
        later = data.times[:, 1:] - data.times[:, :1]
        trained = float(later.min()), float(later.max())
        longest = start = trained[1]
    else:
        longest = start = model.scope.longest_time or 1.0
        trained = None if model.scope.longest_time is None else (0.0, longest)
    most = LONGER * longest if trained is None else min(LONGER * longest, LONGEST * trained[1])
    return Range(0.0, _rounded(most), start, trained)


def length_ranges(model: Model, problem: Problem | None) -> dict[str, Range]:
    """A range for each length of the box, where the problem draws boxes of different lengths."""
    drawn = None if problem is None or "train" not in problem.splits else problem.splits["train"].lengths
    if problem is None or drawn is None:
        return {}
    found = {}
    for axis, start in enumerate(model.box.lengths):
        asked = [split.lengths[axis] for split in problem.splits.values() if split.lengths is not None]
        trained = _hull(drawn[axis])
        low, high = _wider(_hull([each for intervals in asked for each in intervals]))
        found[f"length {AXES[axis]}"] = Range(low, high, float(np.clip(start, *trained)), trained)
    return found


def _of_coefficient(name: str, model: Model, problem: Problem | None, data: Dataset | None) -> Range:
    trained, asked = _known(name, model, problem, data)
    inside = (0.5, 1.5) if trained is None else trained
    low, high = _bounded(_wider(asked or inside), model.equation.coefficients.get(name, Coefficient()))
    start = 0.5 * (inside[0] + inside[1])
    return Range(low, high, float(np.clip(float(f"{start:.3g}"), low, high)), trained)


def _known(
    name: str, model: Model, problem: Problem | None, data: Dataset | None
) -> tuple[Interval | None, Interval | None]:
    """The trained interval of a coefficient and that of all splits, as far as they are known."""
    if problem is not None:
        asked = [each for split in problem.splits.values() for each in split.params.get(name, ())]
        train = problem.splits["train"].params.get(name, ()) if "train" in problem.splits else asked
        if asked and train:
            return _hull(train), _hull(asked)
    if data is not None and name in data.setting.params:
        values = data.setting.params[name]
        return (float(values.min()), float(values.max())), None
    scope = model.scope
    if name in scope.constants:
        return (scope.constants[name], scope.constants[name]), None
    low, high = scope.coefficients.get(name, (-inf, inf))
    finite = isfinite(low) and isfinite(high) and max(abs(low), abs(high)) < 1e100
    return ((low, high) if finite else None), None


def _hull(intervals: Sequence[Interval]) -> Interval:
    return float(min(low for low, _ in intervals)), float(max(high for _, high in intervals))


def _wider(interval: Interval) -> Interval:
    """Wider at both ends. What is positive stays so, and a single value gets room around it."""
    low, high = interval
    if low == high:
        return (low / 2, 2 * high) if low > 0 else (2 * low, high / 2) if low < 0 else (-1.0, 1.0)
    more = BEYOND * (high - low)
    least = low - more
    return (low / 2 if low > 0 >= least else least), _rounded(high + more)


def _bounded(interval: Interval, coefficient: Coefficient) -> Interval:
    low, high = interval
    if coefficient.at_least is not None:
        low = max(low, coefficient.at_least)
    if coefficient.above is not None and low <= coefficient.above:
        low = coefficient.above + 1e-3 * (high - coefficient.above)
    return low, high


def _rounded(value: float) -> float:
    """Two digits are enough for the end of a slider."""
    return float(f"{value:.2g}")
