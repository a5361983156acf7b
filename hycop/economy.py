"""Which solver and which grid are worth their work for a query outside training.

What a policy has learned holds in training. Elsewhere an unsplit solver may be as good as the composition, and a finer
grid may gain little: where the solution jumps, cells half as wide take 2^(axes + 1) times the work for half the error
at best. So a model that is ``economical`` first solves a coarse version of such a query, with its own programs and with
each unsplit solver of its equation. They tell whether refinement is worth its work, and which solver is the cheapest of
those that are as good as the best; that one then solves the query itself.

A query whose state becomes NaN or infinite is solved again, by programs that are cut finer, and is not to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import ceil
from typing import NamedTuple, TypeVar

import numpy as np

from hycop.answer import Answer
from hycop.dictionary import Dictionary
from hycop.errors import ForeignError, HyCOPError, InvalidInputError, LostSampleError
from hycop.estimation import Estimate
from hycop.evaluation import errors_of
from hycop.execution import Outcome, measure
from hycop.features import Observed
from hycop.grid import Array, Grid, restrict
from hycop.model import Model
from hycop.primitive import Primitive, boundaries_of, fingerprint
from hycop.problems import unsplit_solvers
from hycop.program import ProgramBatch, merged
from hycop.query import Query

AS_GOOD = 1.25
"""A solver is as good as the best on a grid if its estimated error is at most this many times larger."""

LEAST_ORDER = 1.5
"""A finer grid is worth its work if the error falls at least with this power of the width of its cells. Where the
solution jumps, estimated errors fall with a power of 0.9 to 1.1; where it is smooth, with 2 and more."""

MOST_CELLS: Mapping[int, int] = {1: 128, 2: 32, 3: 24}
"""Most cells along an axis of the coarse version of a query, by number of axes. A query that is not larger keeps the
model's own program and grid: to compare would cost as much as to answer."""

FEWEST_CELLS = 16
"""Fewest cells along an axis of the coarse version."""

FINEST_CUT = 16
"""Programs that make a state NaN or infinite are cut 2, 4, … and at most this many times finer."""

UNSTABLE = "step length"
"""Why an answer is not to be trusted whose program had to be cut finer."""

T = TypeVar("T")


class Part(NamedTuple):
    """Queries (index,) of a batch, and the model that answers them."""

    rows: Array
    model: Model


def parts_of(model: Model, query: Query) -> list[Part]:
    """The batch in parts, each with the model that answers it; one part with the model itself unless it is
    ``economical`` and some queries lie outside its training. The choice for a query does not depend on the others."""
    factor = _factor(query.grid.shape) if model.economical else 1
    plain = factor > 1 and not query.setting.fields  # a coarse field is another field
    rivals = rivals_of(model, query.grid.boundary) if plain else {}
    if not rivals or not query.batch:
        return [Part(np.arange(query.batch), model)]
    groups: dict[tuple[str, int], list[int]] = {}
    outside = _outside(model, query)
    for row in range(query.batch):
        own = ("", model.refinement)
        one = query.take(slice(row, row + 1))
        groups.setdefault(_choice(model, rivals, _coarsened(one, factor)) if outside[row] else own, []).append(row)
    return [Part(np.array(rows), _with(model, rivals, *choice)) for choice, rows in groups.items()]


def only_part(model: Model, query: Query) -> Model:
    """The model that answers the queries, if it is one for all of them."""
    parts = parts_of(model, query)
    if len(parts) > 1:
        raise InvalidInputError("these queries are answered by different solvers: ask them one by one")
    return parts[0].model


def answer(model: Model, query: Query, tol: float | None = None) -> Answer:
    """``Model.answer``, each query by the solver and on the grid that are worth their work."""

    def ask(chosen: Model, asked: Query, unstable: bool) -> Answer:
        found = chosen.answer(asked, tol)
        return replace(found, outside=_flagged(found.outside, asked)) if unstable else found

    rows, found = _asked(model, query, ask)
    return joined_answers(query, rows, found)


def predicted(model: Model, query: Query) -> tuple[Array, Mapping[str, Array]]:
    """``Model.predicted``, each query by the solver and on the grid that are worth their work."""

    def ask(chosen: Model, asked: Query, unstable: bool) -> tuple[Array, Mapping[str, Array]]:
        states, outside = chosen.predicted(asked)
        return states, _flagged(outside, asked) if unstable else outside

    rows, found = _asked(model, query, ask)
    return _joined(rows, [states for states, _ in found]), _joined_reasons(query, rows, [each for _, each in found])


def _flagged(outside: Mapping[str, Array], query: Query) -> Mapping[str, Array]:
    return {**outside, UNSTABLE: np.ones(query.batch, dtype=bool)}


def _asked(model: Model, query: Query, ask: Callable[[Model, Query, bool], T]) -> tuple[list[Array], list[T]]:
    """What the models of all parts say, and the rows of each. Where a state becomes NaN or infinite, a model that cuts
    its programs finer is asked instead."""
    rows: list[Array] = []
    found: list[T] = []
    waiting = [(part, 1) for part in reversed(parts_of(model, query))]
    while waiting:
        part, cut = waiting.pop()
        asked = query if part.rows.size == query.batch else query.take(part.rows)
        try:
            found.append(ask(part.model, asked, cut > 1))
            rows.append(part.rows)
        except LostSampleError as error:
            if isinstance(error, ForeignError) or cut >= FINEST_CUT:  # foreign code is not known to gain from it
                raise error.at(int(part.rows[error.sample]), error.place) from None
            lost = _lost(part.model, asked)
            finer = replace(part.model, substeps=2 * part.model.substeps)
            waiting.append((Part(part.rows[lost], finer), 2 * cut))
            if not lost.all():
                waiting.append((Part(part.rows[~lost], part.model), cut))
    return rows, found


def _lost(model: Model, query: Query) -> Array:
    """Which states (batch,) become NaN or infinite."""
    done = measure(
        model.programs(query), model.dictionary, model.corrected(query), refinement=model.refinement, strict=False
    )
    return np.asarray(~np.isfinite(done.states.reshape(query.batch, -1)).all(axis=1))


def joined_answers(query: Query, every: Sequence[Array], found: Sequence[Answer]) -> Answer:
    """The answers to parts of a batch, given by their rows, as one."""
    if len(found) == 1:
        return found[0]
    return replace(
        found[0],
        query=query,
        programs=merged(list(zip(every, [each.programs for each in found], strict=True))),
        states=_joined(every, [each.states for each in found]),
        features={name: _joined(every, [each.features[name] for each in found]) for name in found[0].features},
        outside=_joined_reasons(query, every, [each.outside for each in found]),
        refinement=_joined(every, [each.refinement for each in found]),
        meter=lambda: _joined(every, [each.work for each in found]),
        estimator=lambda: _estimates(every, [each.estimate for each in found]),
    )


def _joined_reasons(query: Query, every: Sequence[Array], found: Sequence[Mapping[str, Array]]) -> Mapping[str, Array]:
    if len(found) == 1:
        return found[0]
    outside: dict[str, Array] = {}
    for rows, each in zip(every, found, strict=True):
        for reason, there in each.items():
            outside.setdefault(reason, np.zeros(query.batch, dtype=bool))[rows] = there
    return outside


def _estimates(every: Sequence[Array], found: Sequence[Estimate]) -> Estimate:
    return Estimate(
        error=_joined(every, [each.error for each in found]),
        distance=_joined(every, [each.distance for each in found]),
        work=_joined(every, [each.work for each in found]),
        calibrated=all(each.calibrated for each in found),
    )


def solve(model: Model, query: Query) -> Outcome:
    """``Model.solve``, each query by the solver and on the grid that are worth their work."""
    rows, found = _asked(model, query, lambda chosen, asked, unstable: chosen.solve(asked))
    return Outcome(_joined(rows, [each.states for each in found]), _joined(rows, [each.work for each in found]))


def programs(model: Model, query: Query) -> ProgramBatch:
    """``Model.programs``, with those of unsplit solvers where they are worth their work."""
    return merged([(rows, part.programs(query.take(rows))) for rows, part in parts_of(model, query)])


def _joined(rows: Sequence[Array], values: Sequence[Array]) -> Array:
    """Values of parts of a batch, in the order of the batch."""
    if len(rows) == 1:
        return values[0]
    out = np.empty((sum(each.size for each in rows), *values[0].shape[1:]), dtype=np.result_type(*values))
    for some, value in zip(rows, values, strict=True):
        out[some] = value
    return out


def _outside(model: Model, query: Query) -> Array:
    """Which queries (batch,) training says nothing about: other boundaries, or values far from those of training."""
    if query.grid.boundary != model.scope.boundary:
        return query.time > 0
    seen = Observed(model.corrected(query), model.equation)
    return model.scope.far(seen, model.scope.view.values(seen)) & (query.time > 0)


def rivals_of(model: Model, boundary: Sequence[str]) -> dict[str, Primitive]:
    """Unsplit solvers of the equation that know a boundary and are not composed, by names that are not in use."""
    own = {fingerprint(one) for one in model.composition().dictionary.values()}
    found: dict[str, Primitive] = {}
    for label, (name, one) in unsplit_solvers(model.equation).items():
        if fingerprint(one) not in own and set(boundary) <= boundaries_of(one):
            distinct = f"{name} ({label})" if name in found else name
            while distinct in found or distinct in model.dictionary.everything:
                distinct += "'"
            found[distinct] = one
    return found


def _with(model: Model, rivals: Mapping[str, Primitive], name: str, refinement: int) -> Model:
    """The model that solves by an unsplit solver, or by its own programs if no name is given, on a grid."""
    if not name:
        calibration = model.calibration if refinement == model.refinement else None
        return replace(model, economical=False, refinement=refinement, calibration=calibration)
    return replace(
        model,
        economical=False,
        dictionary=Dictionary({name: rivals[name]}),
        refinement=refinement,
        substeps=1,
        gate=replace(
            model.gate.of_compositions(),
            kept=False,
            classical="Lie",
            cover=None,
            splitting=None,
            splitting_cover=None,
            reach=None,
        ),
        scope=replace(model.scope, untrained=(name,)),
        calibration=None,
        static_theta=None,
    )


@cache
def _factor(shape: tuple[int, ...]) -> int:
    """How many times coarser the coarse version of a query is along each axis; 1 if there is none."""
    least = ceil(max(shape) / MOST_CELLS[len(shape)])
    most = min(shape) // FEWEST_CELLS
    return next((each for each in range(max(2, least), most + 1) if least > 1 and not any(n % each for n in shape)), 1)


def _coarsened(query: Query, factor: int) -> Query:
    shape = tuple(n // factor for n in query.grid.shape)
    setting = query.setting.with_grid(Grid(shape, query.grid.lengths, query.grid.boundary))
    return Query(restrict(query.u0, shape), setting, query.time)


def _levels(refinement: int) -> list[int]:
    """2, 4, … and the refinement itself. Each is asked for: within the cells of a coarse query jumps are not seen, and
    errors of the finest grids fall faster than those of the query will."""
    return [*(2**level for level in range(1, refinement.bit_length()) if 2**level < refinement), refinement]


def _choice(model: Model, rivals: Mapping[str, Primitive], coarse: Query) -> tuple[str, int]:
    """What solves one query, as a name and a refinement: first the grid, by the cheapest unsplit solver (the judge) on
    ever finer ones while each is worth its work, then the cheapest solver that is as good there as the best. Errors are
    distances to the judge's answer on a grid twice as fine."""
    runs: dict[tuple[str, int], Outcome | None] = {}

    def run(name: str, refinement: int) -> Outcome | None:
        if (name, refinement) not in runs:
            try:
                runs[name, refinement] = _with(model, rivals, name, refinement).solve(coarse)
            except HyCOPError:  # it cannot solve the query
                runs[name, refinement] = None
        return runs[name, refinement]

    def error(name: str, refinement: int) -> float:
        done, finer = run(name, refinement), run(judge, 2 * refinement)
        if done is None or finer is None:
            return np.inf
        return float(errors_of(model.record.config.metric, done.states, finer.states, coarse)[0])

    plain = {name: float(done.work[0]) for name in rivals if (done := run(name, 1)) is not None}
    if not plain:
        return "", model.refinement
    judge = min(plain, key=plain.__getitem__)
    grid = 1
    for finer in _levels(model.refinement):
        if not error(judge, grid) >= (finer / grid) ** LEAST_ORDER * error(judge, finer):
            break
        grid = finer
    known = {name: error(name, grid) for name in ("", *rivals)}
    best = min(known.values())
    if not np.isfinite(best):
        return "", model.refinement
    work = {name: float(done.work[0]) for name in known if (done := run(name, grid)) is not None}
    return min((name for name in work if known[name] <= AS_GOOD * best), key=work.__getitem__), grid
