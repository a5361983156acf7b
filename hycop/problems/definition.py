"""A problem: an equation with distributions of queries, a reference that makes the truth, and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import numpy as np

from hycop import markup
from hycop.boundary import PLAIN, Boundaries
from hycop.data import Dataset
from hycop.data.blocks import joined
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.grid import Array, Grid
from hycop.pde import Equation
from hycop.primitive import bears_vacuum, boundaries_of, checked_boundaries
from hycop.problems.draw import Draw, Intervals
from hycop.problems.initial_conditions import Profile, box_of
from hycop.query import Channel, Query, Setting
from hycop.references import Reference, Subflows, error_estimate
from hycop.version import __version__

InitialCondition = Callable[[Draw, Setting], Array]
"""A family of initial states: point values (batch, channel, *grid) of the state at the cell centres of the setting's
grid, whichever that is."""

ReportedVariables = Callable[[Array, Setting], tuple[Array, Setting]]
"""(states, setting) → the same in the variables in which errors are reported, such as velocity and pressure for
momentum and energy."""

Progress = Callable[[int], None]
"""Told how many more samples are done."""

ESTIMATED = 32
"""Samples on which the error of the truth is estimated, at most."""

ESTIMATED_WITH_ENDS = 4
"""The same for boxes with walls or outflow: that truth costs some twenty times as much."""

BLOCK_BYTES = 32 * 2**20
"""Bytes of the fine initial state that are made at a time."""


@dataclass(frozen=True)
class Split:
    """A distribution of queries: intervals for each parameter, families of initial states, and the query times.

    ``lengths`` are intervals for the length of each axis, where boxes differ from sample to sample; ``fields`` are
    profiles of the parameters that vary in space.
    """

    params: Mapping[str, Intervals]
    initial: Mapping[str, InitialCondition]
    time: tuple[float, float]
    lengths: tuple[Intervals, ...] | None = None
    fields: Mapping[str, Profile] = field(default_factory=dict)


class Settings(TypedDict, total=False):
    """Settings of training that suit a problem; each has the meaning that it has in ``TrainingConfig``."""

    shape: tuple[int, ...]
    refinement: int
    learning_refinement: int
    metric: Literal["rel_l2", "nrmse"]
    target: Literal["truth", "limit"]
    samples: int
    validation: int
    max_steps: int
    substeps: int
    tilts: int
    patterns: int
    tries: int
    rounds: int
    iterations: int


@dataclass(frozen=True)
class Problem:
    """A family of queries for one equation, with its truth and its dictionaries.

    ``reference(processes, boundary, shape)`` gives the trusted solver of the equation or a part of it. ``settings`` are
    those of training that suit the problem, whatever the preset, ``presets`` those of a preset by name.
    ``reported_variables`` gives a state in the variables in which its errors are reported, if those are not the state's
    own. ``estimated`` samples are solved twice for the error of the truth; with 0 it is not estimated.
    """

    name: str
    equation: Equation
    behaviour: str
    shape: tuple[int, ...]
    lengths: tuple[float, ...]
    boundary: tuple[str, ...]
    splits: Mapping[str, Split]
    dictionaries: Mapping[str, Dictionary]
    reference: Callable[[frozenset[str], tuple[str, ...], tuple[int, ...]], Reference]
    settings: Settings = field(default_factory=Settings)
    presets: Mapping[str, Settings] = field(default_factory=dict)
    reported_variables: ReportedVariables | None = None
    estimated: int = ESTIMATED

    def _repr_html_(self) -> str:
        """Equation, box, splits and dictionaries, for notebooks."""
        about = [
            ("equation", self.equation.formula),
            ("processes", ", ".join(self.processes)),
            ("channels", ", ".join(channel.name for channel in self.channels)),
            ("grid", f"{' x '.join(map(str, self.shape))} cells"),
            ("box", f"{' x '.join(f'{each:g}' for each in self.lengths)}, {', '.join(self.boundary)}"),
            *(("dictionary " + name, ", ".join(map(repr, each.values()))) for name, each in self.dictionaries.items()),
        ]
        rows = [
            (
                name,
                " to ".join(f"{time:g}" for time in dict.fromkeys(split.time)),
                _ranges(split),
                ", ".join(split.initial),
            )
            for name, split in self.splits.items()
        ]
        splits = markup.table(("split", "T", "coefficients", "initial states"), rows)
        return markup.page(f"Problem {self.name}", markup.note(self.behaviour), markup.facts(about), splits)

    @property
    def processes(self) -> tuple[str, ...]:
        return self.equation.processes

    @property
    def channels(self) -> tuple[Channel, ...]:
        return self.equation.channels

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(self.equation.coefficients)

    def suited(self, preset: str) -> Settings:
        """Settings over those of a preset."""
        return {**self.settings, **self.presets.get(preset, Settings())}

    @property
    def refinement(self) -> int:
        """How many times finer than the query's is the grid on which its programs run, unless told otherwise."""
        return self.settings.get("refinement", 1)

    @property
    def dictionary(self) -> Dictionary:
        """The default dictionary: the first of the named ones."""
        return next(iter(self.dictionaries.values()))

    def named_dictionary(self, name: str | None) -> Dictionary:
        if name is None:
            return self.dictionary
        if name not in self.dictionaries:
            raise UnknownNameError("dictionary", name, self.dictionaries, f"(of problem {self.name})")
        return self.dictionaries[name]

    def name_of(self, dictionary: Dictionary) -> str:
        """The problem's name for a dictionary, whatever stands beside it; the classes of its primitives if it is not
        one of the problem's."""
        mine = dictionary.alone().fingerprint()
        same = [name for name, known in self.dictionaries.items() if known.fingerprint() == mine]
        return same[0] if same else ", ".join(type(primitive).__name__ for primitive in dictionary.values())

    def able(self, grid: Grid) -> list[str]:
        """The dictionaries whose primitives can all handle the boundaries of a grid."""
        needed = grid.boundary_kinds
        return [
            name
            for name, parts in self.dictionaries.items()
            if all(needed <= boundaries_of(primitive) for primitive in parts.values())
        ]

    @property
    def bears_vacuum(self) -> bool:
        """Whether a dictionary can handle an empty state, such as a dry bed."""
        return any(all(map(bears_vacuum, parts.values())) for parts in self.dictionaries.values())

    def checked(self, data: Dataset) -> Dataset:
        """A dataset with its channels in the problem's order. Refuses other coefficients or channels, and values for
        which the problem is ill-posed.

        Zero depth or density is allowed if some dictionary can handle it; the others refuse it when they run.
        """
        axes = data.setting.grid.axes
        if axes != len(self.shape):
            raise InvalidInputError(f"the data have {axes} axes, but problem {self.name} has {len(self.shape)}")
        if len(data.setting.channels) != len(self.channels):
            wanted = ", ".join(channel.name for channel in self.channels)
            raise InvalidInputError(
                f"the data have {len(data.setting.channels)} channels, but problem {self.name} has {wanted}"
            )
        self.equation.check_setting(data.setting)
        arranged = data.arranged(self.channels)
        for frame in range(arranged.times.shape[1]):
            states = arranged.states[:, frame]
            self.equation.check_states(states, arranged.setting, frame, self.bears_vacuum)
            if self.reported_variables is not None:
                reported = self.reported_variables(states, arranged.setting)
                self.equation.check_states(*reported, frame, self.bears_vacuum)
        return arranged

    def split(self, name: str) -> Split:
        if name not in self.splits:
            raise UnknownNameError("split", name, self.splits, f"(of problem {self.name})")
        return self.splits[name]

    def subflow(self, processes: Sequence[str] | frozenset[str]) -> Reference:
        """The trusted solver of some processes on the problem's own box; with all processes it gives the truth."""
        if not processes:
            raise InvalidInputError("subflow needs at least one process")
        return self._trusted(frozenset(processes), self.boundary, self.shape)

    def subflows(self, grid: Grid, like: Dictionary | None = None) -> Subflows:
        """Trusted solvers for the boundaries and cells of a query's grid: one for each process, or for each primitive
        of the dictionary ``like``, under its name and for all processes that it advances."""
        parts = {name: frozenset({name}) for name in self.processes}
        if like is not None:
            parts = {name: primitive.advances for name, primitive in like.items()}
        found = {name: self._trusted(processes, grid.boundary, grid.shape) for name, processes in parts.items()}
        for name, reference in found.items():
            checked_boundaries(f"trusted {name}", reference, grid)
        return Subflows(found)

    def _trusted(self, processes: frozenset[str], boundary: tuple[str, ...], shape: tuple[int, ...]) -> Reference:
        for process in sorted(processes - set(self.processes)):
            raise UnknownNameError("process", process, self.processes, f"(of problem {self.name})")
        return self.reference(processes, boundary, shape)

    def grid(self, shape: Sequence[int] | None = None, boundary: Boundaries | None = None, batch: int = 1) -> Grid:
        """The problem's box with its own cells and boundaries, or others."""
        shape = self.shape if shape is None else tuple(int(n) for n in shape)
        if len(shape) != len(self.shape):
            raise InvalidInputError(f"shape {shape}: problem {self.name} has {len(self.shape)} axes")
        return Grid.box(shape, self.lengths, self.boundary if boundary is None else boundary, batch)

    def sample(
        self,
        samples: int,
        split: str = "id",
        seed: int = 0,
        *,
        shape: Sequence[int] | None = None,
        times: Sequence[float] | None = None,
        boundary: Boundaries | None = None,
        estimated: int | None = None,
        progress: Progress | None = None,
    ) -> Dataset:
        """Queries with their truth, drawn from a split.

        Sample i depends on (seed, split, i) alone: not on how many are drawn, on batches or on threads. ``times``
        asks every sample at the same times; otherwise each has one, from the range of the split. The truth is solved
        on a finer grid and restricted to ``shape`` by cell averages; its own error is estimated by doubling that grid,
        for as many samples as the problem says unless ``estimated`` says otherwise.
        """
        more: dict[str, Any] = {"shape": shape, "times": times, "boundary": boundary}
        return joined(list(self.blocks(samples, split, seed, **more, estimated=estimated, progress=progress)))

    def blocks(
        self,
        samples: int,
        split: str = "id",
        seed: int = 0,
        *,
        shape: Sequence[int] | None = None,
        times: Sequence[float] | None = None,
        boundary: Boundaries | None = None,
        estimated: int | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Dataset]:
        """The samples of ``sample``, a few at a time; the last of them know the error of the truth."""
        _check_counts(samples, seed, estimated)
        chosen = self.split(split)
        grid = self.grid(shape, boundary)
        shape, walls = grid.shape, grid.boundary
        asked = None if times is None else _checked_times(times)
        reference = self.reference(frozenset(self.processes), walls, shape)
        fine_bytes = 8 * int(np.prod([n * reference.refinement for n in shape]))
        block = max(1, BLOCK_BYTES // fine_bytes)
        few = min(self.estimated if estimated is None else estimated, _most_estimated(walls), samples)
        for first in range(0, samples, block):
            count = min(block, samples - first)
            setting, at, initial = self._queries(chosen, split, seed, first, count, shape, walls, asked)
            states = reference.trajectory(initial, setting, at)
            if progress is not None:
                progress(count)
            error = None
            if few and first + count == samples:
                some, when, start = self._queries(chosen, split, seed, 0, few, shape, walls, asked)
                error = error_estimate(reference, start, some, when)
            yield Dataset(
                problem=self.name,
                split=split,
                states=states,
                times=np.pad(at, ((0, 0), (1, 0))),
                setting=setting,
                seed=seed,
                reference=str(reference),
                reference_error=error,
                version=__version__,
            )

    def queries(
        self,
        samples: int,
        split: str = "id",
        seed: int = 0,
        *,
        shape: Sequence[int] | None = None,
        times: Sequence[float] | None = None,
        boundary: Boundaries | None = None,
    ) -> Query:
        """The queries of ``sample``, at the last of its times, without the truth."""
        grid = self.grid(shape, boundary)
        asked = None if times is None else _checked_times(times)
        setting, at, initial = self._queries(
            self.split(split), split, seed, 0, samples, grid.shape, grid.boundary, asked
        )
        reference = self.reference(frozenset(self.processes), grid.boundary, grid.shape)
        start = reference.trajectory(initial, setting, np.zeros((samples, 1)))[:, 0]
        return Query(np.ascontiguousarray(start), setting, at[:, -1])  # without the rest of the trajectory

    def _queries(
        self,
        split: Split,
        name: str,
        seed: int,
        first: int,
        count: int,
        shape: tuple[int, ...],
        boundary: tuple[str, ...],
        times: Array | None,
    ) -> tuple[Setting, Array, Callable[[Grid], Array]]:
        """Settings, times (batch, time) and initial states as a function of the grid, for samples first, …"""
        draw = Draw.of(seed, f"{self.name}/{name}", first, count)
        params = {parameter: draw.among(intervals) for parameter, intervals in split.params.items()}
        at = draw.uniform(*split.time)[:, None]
        if times is not None:
            at = np.tile(times, (count, 1))
        families = tuple(split.initial.values())
        family = draw.integer(0, len(families) - 1)
        grid = Grid.box(shape, self.lengths, boundary, count)
        if split.lengths is not None:
            grid = Grid(shape, np.stack([draw.among(intervals) for intervals in split.lengths], axis=1), boundary)
        box = box_of(grid)
        params |= {name: np.broadcast_to(profile(draw, box), (count, *shape)) for name, profile in split.fields.items()}
        setting = Setting(grid, self.channels, params)

        def initial(grid: Grid) -> Array:
            out = np.empty((count, len(self.channels), *grid.shape))
            for index, condition in enumerate(families):
                members = np.flatnonzero(family == index)
                if members.size:
                    out[members] = condition(draw.take(members), setting.with_grid(grid).take(members))
            return out

        return setting, at, initial


def _times(split: Split) -> str:
    return " to ".join(f"{time:g}" for time in dict.fromkeys(split.time))


def _ranges(split: Split) -> str:
    intervals = [
        f"{name} in {' or '.join(f'[{low:g}, {high:g}]' for low, high in intervals)}"
        for name, intervals in split.params.items()
    ]
    return "; ".join([*intervals, *(f"{name} varies in space" for name in split.fields)])


def _most_estimated(boundary: tuple[str, ...]) -> int:
    """Most samples on which the error of the truth is estimated: none in 3D with values at the ends, where a grid twice
    as fine takes the better part of an hour."""
    if set(boundary) == {"periodic"}:
        return ESTIMATED
    return 0 if len(boundary) == 3 and not set(boundary) <= PLAIN else ESTIMATED_WITH_ENDS


def _check_counts(samples: int, seed: int, estimated: int | None) -> None:
    if not isinstance(samples, int | np.integer) or samples < 1:
        raise InvalidInputError(f"samples is {samples!r}: a whole number, at least 1, is needed")
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InvalidInputError(f"seed is {seed!r}: a whole number from 0 to 2^63 - 1 is needed")
    if estimated is not None and estimated < 0:
        raise InvalidInputError(f"estimated is {estimated}: how many samples to solve twice is needed, or 0")


def _checked_times(times: Sequence[float]) -> Array:
    out = np.asarray(times, dtype=np.float64).reshape(-1)
    if not (out.size and np.isfinite(out).all() and (out >= 0).all() and (np.diff(out) > 0).all()):
        raise InvalidInputError(f"times {list(times)}: increasing, finite, non-negative numbers are needed")
    return out
