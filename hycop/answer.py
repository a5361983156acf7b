"""An answer: states at the query times, with everything that led to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hycop import markup
from hycop.data import Dataset, XarrayDataset
from hycop.estimation import Estimate
from hycop.execution import Outcome
from hycop.grid import Array
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.version import __version__

MOST_SHOWN = 5
"""Programs of an answer that a notebook shows."""


@dataclass(frozen=True, eq=False)
class Answer:
    """A model's answer to a batch of queries: states (batch, channel, *grid), programs, features by name (batch,), and
    ``outside``: which queries (batch,) lie outside training, by reason.

    Programs ran on a grid ``refinement`` (batch,) times finer than the query's. ``meter`` computes the work and
    ``estimator`` the estimated errors, which is done when they are first asked for. ``tolerance`` is that of
    ``answer(query, tol)``; ``problem`` is the name of the model's equation.
    """

    query: Query
    programs: ProgramBatch
    states: Array
    features: Mapping[str, Array]
    outside: Mapping[str, Array]
    refinement: Array
    meter: Callable[[], Array] = field(repr=False)
    estimator: Callable[[], Estimate] = field(repr=False)
    tolerance: float | None = None
    problem: str = "unknown"

    @cached_property
    def work(self) -> Array:
        """The work that each answer took, (batch,)."""
        return self.meter()

    @property
    def outcome(self) -> Outcome:
        """The states and the work."""
        return Outcome(self.states, self.work)

    @cached_property
    def estimate(self) -> Estimate:
        """Estimated errors without a truth, and the work that this took: 5 to 8 times that of the answer."""
        return self.estimator()

    @property
    def error(self) -> Array:
        """Estimated relative error of each answer, (batch,): 90 % of the queries like those of training err less.

        It sees what a finer program and a finer grid would change, not what the equation of the model lacks.
        """
        return self.estimate.error

    @property
    def tolerance_met(self) -> Array | None:
        """Which answers are within the tolerance by their estimate, (batch,); None if no tolerance was asked for."""
        return None if self.tolerance is None else self.error <= self.tolerance

    @property
    def untrusted(self) -> Array:
        """Which answers are not to be trusted, (batch,)."""
        flags = np.zeros(self.query.batch, dtype=bool)
        for outside in self.outside.values():
            flags |= outside
        return flags

    @property
    def reasons(self) -> tuple[tuple[str, ...], ...]:
        """Why each answer is not to be trusted; an empty tuple for trusted ones."""
        return tuple(
            tuple(name for name, outside in self.outside.items() if outside[sample])
            for sample in range(self.query.batch)
        )

    def _repr_html_(self) -> str:
        """The first programs, and what is known about the answers, for notebooks."""
        count, flagged = self.query.batch, int(self.untrusted.sum())
        trust = (
            f"{flagged} of {count} not to be trusted: {', '.join(self.outside)}" if flagged else "all within training"
        )
        about = [
            ("states", f"{self.states.shape}, (query, channel, *grid)"),
            ("times", _spread(self.query.time)),
            ("work", f"{_spread(self.work)} channel-cell updates"),
            ("trust", trust),
        ]
        if "estimate" in self.__dict__ or self.tolerance is not None:  # which is not computed for a look
            about.append(("estimated error", _spread(self.error)))
        if self.tolerance_met is not None:
            about.append(("tolerance", f"{self.tolerance:g}, met by {int(self.tolerance_met.sum())} of {count}"))
        shown = {
            f"query {index}, T = {self.query.time[index]:.3g}": [(step.primitive, step.duration) for step in program]
            for index, program in zip(range(MOST_SHOWN), self.programs, strict=False)
        }
        more = markup.note(f"and {count - MOST_SHOWN} more") if count > MOST_SHOWN else ""
        title = f"Answer of {self.problem} to {count} {'query' if count == 1 else 'queries'}"
        return markup.page(title, markup.timelines(shown, self.programs.names), more, markup.facts(about))

    def to_dataset(self, error_estimate: bool = False) -> Dataset:
        """Initial states and answers. Queries in a row that ask one initial state at increasing times, as those of
        ``HyCOP.query``, become the times of one sample. ``error_estimate`` adds the estimated errors."""
        query, each = self.query, times_per_sample(self.query)
        first = slice(None, None, each)
        shape = (query.batch // each, each)

        def of_times(values: Array, initial: object) -> Array:
            """(sample, time) from one value per query, and that of the initial states."""
            return np.concatenate([np.full((shape[0], 1), initial, values.dtype), values.reshape(shape)], axis=1)

        met = self.tolerance_met
        return Dataset(
            problem=self.problem,
            split="answers",
            states=np.concatenate([query.u0[first, None], self.states.reshape(*shape, *self.states.shape[1:])], axis=1),
            times=of_times(query.time, 0.0),
            setting=query.setting.take(first),
            reference="HyCOP",
            version=__version__,
            untrusted=of_times(self.untrusted, False),
            reasons=of_times(np.array([", ".join(own) for own in self.reasons], dtype=np.str_), ""),
            error_estimate=of_times(self.error, 0.0) if error_estimate else None,
            tolerance_met=None if met is None else of_times(met, True),
        )

    def to_xarray(self, error_estimate: bool = False) -> XarrayDataset:
        """``to_dataset`` as an xarray Dataset, with the names and dimensions of a dataset file."""
        return self.to_dataset(error_estimate).to_xarray()


def _spread(values: Array) -> str:
    low, high = float(values.min()), float(values.max())
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}, median {float(np.median(values)):.3g}"


def times_per_sample(query: Query) -> int:
    """How many queries in a row ask the same initial state at increasing times; 1 unless all samples have as many.

    >>> from hycop.grid import Grid
    >>> from hycop.query import Setting
    >>> setting = Setting(Grid.box((4,), batch=2), ("u",), {"cx": 1.0})
    >>> times_per_sample(Query(np.arange(8.0).reshape(2, 1, 4), setting, np.zeros(2)).at([0.1, 0.2, 0.5]))
    3
    """
    columns = [query.u0, query.grid.lengths, *query.setting.params.values()]
    same = query.time[1:] > query.time[:-1]
    for values in columns:
        same &= (values[1:] == values[:-1]).all(axis=tuple(range(1, values.ndim)))
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    counts = np.diff(np.append(starts, query.batch))
    return int(counts[0]) if (counts == counts[0]).all() else 1
