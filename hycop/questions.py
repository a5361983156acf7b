"""Queries for a model from what a user has: arrays, or an xarray Dataset with the names of a dataset file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from hycop.answer import Answer
from hycop.boundary import Boundaries
from hycop.data import Dataset, XarrayDataset
from hycop.errors import InvalidInputError
from hycop.grid import Array, Grid
from hycop.model import Box, Model
from hycop.pde import Equation
from hycop.query import Query, Setting, real_numbers


def query_of_arrays(
    model: Model,
    u0: Array,
    params: Mapping[str, object] | None,
    times: Sequence[float] | float | None,
    lengths: Sequence[float] | Array | None = None,
    boundary: Boundaries | None = None,
) -> Query:
    """Every state at every time, sample by sample; the model's box where nothing else is given."""
    u0, box, asked = real_numbers("u0", u0), model.box, _checked_times(times)
    if u0.ndim != 2 + box.axes or not u0.shape[0]:
        raise InvalidInputError(
            f"u0 has shape {u0.shape}: (batch, channel, *grid) with {box.axes} grid axes and at least one state is "
            "needed"
        )
    u0 = np.ascontiguousarray(u0)  # once, for all that read it
    _check_params(params, model.equation)
    if lengths is None and boundary is None:
        grid = _grid_in(box, u0.shape)
    else:
        grid = Grid(
            u0.shape[2:],
            _checked_lengths(box.lengths if lengths is None else lengths, u0.shape[0], box.axes),
            box.boundary if boundary is None else boundary,  # type: ignore[arg-type]
        )
    setting = Setting(grid, model.equation.channels, params)  # type: ignore[arg-type]
    model.equation.check_bounds(setting)
    if asked.size == 1:
        return Query(u0, setting, np.full(u0.shape[0], asked[0]))
    return Query(u0, setting, np.zeros(u0.shape[0])).at(asked)


def query_of_dataset(
    model: Model,
    data: Dataset,
    times: Sequence[float] | float | None = None,
    boundary: Boundaries | None = None,
) -> Query:
    """The initial states of a dataset at ``times`` after them, or at the dataset's own."""
    data = data.arranged(model.equation.channels)
    grid = data.setting.grid if boundary is None else data.setting.grid.with_boundary(boundary)
    if times is None:
        data.check_later()
    asked = 0.0 if times is None else times
    query = query_of_arrays(model, data.states[:, 0], data.setting.params, asked, grid.lengths, grid.boundary)
    if times is not None:
        return query
    elapsed = data.times[:, 1:] - data.times[:, :1]
    samples = np.repeat(np.arange(data.samples), elapsed.shape[1])
    return Query(query.u0[samples], query.setting.take(samples), elapsed.reshape(-1))


def answered_in_xarray(answer: Answer, data: Dataset) -> XarrayDataset:
    """The answer to ``query_of_dataset(model, data)``, with the times and names that the data have."""
    found = answer.to_dataset(error_estimate=False)
    return replace(found, problem=data.problem, split=data.split, times=data.times[:, :1] + found.times).to_xarray()


@lru_cache(maxsize=16)
def _grid_in(box: Box, shape: tuple[int, ...]) -> Grid:
    """The grid of states (batch, channel, *grid) in a box; its lengths cannot be written into."""
    return Grid.box(shape[2:], box.lengths, box.boundary, shape[0])


def _check_params(params: object, equation: Equation) -> None:
    if not isinstance(params, Mapping):
        names = ", ".join(f"'{name}': …" for name in equation.coefficients)
        shown = "'name': value" if equation.guessed else names
        raise InvalidInputError(f"params is a {type(params).__name__}: give them by name, {{{shown}}}")
    equation.check_names(params, complete=False)


def _checked_times(times: object) -> Array:
    try:
        asked = np.atleast_1d(np.asarray(times))
        if asked.dtype.kind not in "fiu" or np.ma.is_masked(times) or asked.ndim != 1 or not asked.size:
            raise ValueError
    except ValueError:
        raise InvalidInputError(f"times is {times!r}: a number, or a list of numbers, is needed") from None
    return asked.astype(np.float64)


def _checked_lengths(lengths: object, batch: int, axes: int) -> Array:
    try:
        return np.broadcast_to(real_numbers("lengths", lengths).astype(np.float64), (batch, axes))
    except ValueError:
        raise InvalidInputError(
            f"lengths is {lengths!r}: a length for each of {axes} axes is needed, or a row of them for each of "
            f"{batch} states"
        ) from None
