"""Where a query starts: an initial state drawn from a family of the problem, or one of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np

from hycop.data import Dataset, load
from hycop.errors import DatasetError, HyCOPError, InvalidInputError
from hycop.grid import Array, Grid
from hycop.model import Model
from hycop.problems import Problem, problems_with
from hycop.problems.draw import Draw
from hycop.query import Query, Setting

SAME = 1e-6
"""Relative difference below which a coefficient or a time is that of the file."""

SMOOTH_CELLS = {1: 128, 2: 64, 3: 24}
"""Cells along each axis of a smooth random state, by the number of axes."""


class Start(Protocol):
    """A source of initial states; ``number`` is the seed of a state that is drawn, or the sample of a file."""

    def grid(self, number: int, boundary: tuple[str, ...], lengths: tuple[float, ...]) -> Grid:
        """The grid of the state, in a box of these lengths if the state has none of its own."""
        ...

    def state(self, number: int, setting: Setting) -> Array:
        """Cell averages (1, channel, *grid) on the grid of the setting."""
        ...

    def truth(self, number: int, query: Query) -> Array:
        """The trusted solution (1, channel, *grid)."""
        ...


@dataclass(frozen=True)
class Drawn:
    """A family of initial states of a problem."""

    problem: Problem
    split: str
    family: str
    shape: tuple[int, ...]

    def grid(self, number: int, boundary: tuple[str, ...], lengths: tuple[float, ...]) -> Grid:
        return Grid.box(self.shape, lengths, boundary)

    def state(self, number: int, setting: Setting) -> Array:
        at_once = np.zeros((1, 1))
        try:
            return self._trajectory(number, setting, at_once)[:, 0]
        except InvalidInputError:  # no truth for this boundary; the initial state is drawn as in the problem's own box
            own = setting.with_grid(setting.grid.with_boundary(self.problem.boundary))
            return self._trajectory(number, own, at_once)[:, 0]

    def truth(self, number: int, query: Query) -> Array:
        return self._trajectory(number, query.setting, query.time[:, None])[:, -1]

    def _trajectory(self, number: int, setting: Setting, times: Array) -> Array:
        grid = setting.grid
        reference = self.problem.reference(frozenset(self.problem.processes), grid.boundary, grid.shape)
        return reference.trajectory(self._initial(number, setting), setting, times)

    def _initial(self, number: int, setting: Setting) -> Callable[[Grid], Array]:
        draw = Draw.of(number, f"{self.problem.name}/{self.split}/{self.family}", 0, 1)
        condition, only = self.problem.splits[self.split].initial[self.family], np.zeros(1, dtype=np.int64)
        return lambda grid: condition(draw.take(only), setting.with_grid(grid))


@dataclass(frozen=True, eq=False)
class Sampled:
    """The samples of a dataset. Its later states are the truth where its coefficients and times are asked for."""

    data: Dataset
    problem: Problem | None

    def sample(self, number: int) -> Dataset:
        if not 0 <= number < self.data.samples:
            raise InvalidInputError(f"sample {number}: the file has the samples 0 to {self.data.samples - 1}")
        return self.data.take(slice(number, number + 1))

    def grid(self, number: int, boundary: tuple[str, ...], lengths: tuple[float, ...]) -> Grid:
        return self.sample(number).setting.grid.with_boundary(boundary)

    def state(self, number: int, setting: Setting) -> Array:
        return self.sample(number).states[:, 0].astype(np.float64)

    def truth(self, number: int, query: Query) -> Array:
        one = self.sample(number)
        elapsed = one.times[0] - one.times[0, 0]
        (at,) = np.nonzero(np.isclose(elapsed, query.time[0], rtol=SAME, atol=0.0))
        if at.size and _same_setting(one.setting, query.setting):
            return one.states[:, int(at[0])].astype(np.float64)
        if self.problem is None:
            raise InvalidInputError(
                "no truth is known for this query: the file has none for these coefficients and this time, and no "
                "problem of hycop has this equation"
            )
        grid = query.grid
        reference = self.problem.reference(frozenset(self.problem.processes), grid.boundary, grid.shape)
        return reference.flow(query.u0, query.time, query.setting)


@dataclass(frozen=True)
class Smooth:
    """A few random waves, for equations that no problem of hycop has. Channels that must be positive, and other
    scalars, vary around one; components of vectors start at rest."""

    model: Model

    def grid(self, number: int, boundary: tuple[str, ...], lengths: tuple[float, ...]) -> Grid:
        shape = self.model.record.config.shape or (SMOOTH_CELLS[len(lengths)],) * len(lengths)
        return Grid.box(shape, lengths, boundary)

    def state(self, number: int, setting: Setting) -> Array:
        random, grid = np.random.default_rng(number), setting.grid
        out = np.zeros((1, len(setting.channels), *grid.shape))
        for position, channel in enumerate(setting.channels):
            if channel.normal is not None:
                continue
            waves = np.zeros((1, *grid.shape))
            for wave in (1, 2):
                parts = [
                    np.cos(2 * np.pi * wave * x / grid.lengths[0, axis] + random.uniform(0, 2 * np.pi))
                    for axis, x in enumerate(grid.centres())
                ]
                waves = waves + random.uniform(0.1, 0.3) * np.prod(np.broadcast_arrays(*parts), axis=0)
            out[:, position] = 1.0 + waves
        return out

    def truth(self, number: int, query: Query) -> Array:
        raise InvalidInputError("no truth is known: no problem of hycop has this equation; upload a file that has one")


def starts_of(model: Model, problem: Problem | None) -> dict[str, Start]:
    """The initial states that a model can be asked about without a file, by name; those of training first."""
    if problem is None:
        return {"smooth random state": Smooth(model)}
    found: dict[str, Start] = {}
    trained = set(problem.splits["train"].initial) if "train" in problem.splits else set()
    shape = model.record.config.shape or problem.shape
    for split, drawn in problem.splits.items():
        for family in drawn.initial:
            name = family if family in trained or not trained else f"{family} (not trained)"
            found.setdefault(name, Drawn(problem, split, family, tuple(shape)))
    return found


def read_upload(name: str, content: bytes, model: Model, problem: Problem | None) -> Sampled:
    """The data of a file that was sent to the page; errors name it as the user does."""
    plain = Path(name.replace("\\", "/")).name or "file"
    with TemporaryDirectory(prefix="hycop-studio-") as folder:
        path = Path(folder) / plain
        path.write_bytes(content)
        try:
            data = load(path, model.equation.name, problems_with(model.equation))
            data = data.arranged(model.equation.channels) if problem is None else problem.checked(data)
            model.equation.check_question(data.setting, model.box.axes)
        except HyCOPError as error:
            text = str(error).replace(f"{folder}/", "")
            raise DatasetError(text if plain in text else f"{plain}: {text}") from None
    return Sampled(data, problem)


def _same_setting(one: Setting, other: Setting) -> bool:
    close = [np.isclose(value, other.params.get(name, np.nan), rtol=SAME) for name, value in one.params.items()]
    return bool(np.all(close)) and one.grid.boundary == other.grid.boundary
