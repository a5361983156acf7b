"""Operating points: a front of models, of which each query gets the one that its time or its tolerance allows.

``hycop train … --pareto`` writes a folder with ``front.json`` and a model folder for each point, from the cheapest to
the most accurate. ``HyCOP.load`` of that folder gives a model that is asked with ``max_seconds`` or ``tol``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from hycop import economy
from hycop.answer import Answer
from hycop.errors import InvalidInputError
from hycop.execution import expected_work
from hycop.features import Observed
from hycop.files import read_text
from hycop.grid import Array
from hycop.model import Model
from hycop.primitive import Primitive
from hycop.query import Query
from hycop.storage import ModelError, load_model

FILE = "front.json"

COVERED = 0.9
"""Fraction of the held-out queries whose error is below the tolerance for which a point is taken."""

TIMED = 3
"""Runs of which the fastest tells the seconds that a unit of work takes."""


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """A model of a front, and the seconds that a unit of its work took on the machine of its training."""

    model: Model
    seconds_per_work: float

    def seconds(self, query: Query) -> float:
        """The seconds that one query is expected to take."""
        model = self.model
        asked = model.corrected(query)
        work = expected_work(model.programs(query), model.dictionary, asked, refinement=model.refinement)
        return self.seconds_per_work * float(work.sum())

    def reaches(self, query: Query, tol: float) -> Array:
        """Which queries (batch,) lie inside training, where 90 % of the held-out errors are below a tolerance."""
        held_out = self.model.held_out
        if held_out is None or not np.quantile(held_out.errors, COVERED) <= tol:
            return np.zeros(query.batch, dtype=bool)
        asked = self.model.corrected(query)
        seen = Observed(asked, self.model.equation)
        inside = ~self.model.scope.beyond(seen, self.model.scope.view.values(seen)).any(axis=1)
        return np.asarray(inside & (query.grid.boundary == self.model.scope.boundary))


def points_at(folder: Path, primitives: Mapping[str, Primitive] | None) -> tuple[OperatingPoint, ...]:
    """The points of a front, the cheapest first; none if the folder holds a model of its own or no front."""
    path = folder / FILE
    if (folder / "model.json").exists() or not path.is_file():
        return ()
    try:
        content: Any = json.loads(read_text(path))
        names = [str(entry["folder"]) for entry in content["front"]]
        seconds = [float(content["seconds_per_work"][name]) for name in names]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ModelError(
            f"{path}: is not a front; write one with 'hycop train PROBLEM --out FOLDER --pareto'"
        ) from None
    if not names or not all(re.fullmatch(r"point\d{1,3}", name) for name in names):
        raise ModelError(f"{path}: field 'front' must name folders point0, point1, … beside it")
    if not all(0 < each < np.inf for each in seconds):
        raise ModelError(f"{path}: field 'seconds_per_work' must hold positive numbers")
    found = [load_model(folder / name, primitives) for name in names]
    return tuple(OperatingPoint(model, each) for model, each in zip(found, seconds, strict=True))


def seconds_per_work(model: Model, query: Query) -> float:
    """CPU seconds that a unit of work of a model takes on this machine."""
    model.solve(query)  # compiles
    spent = []
    for _ in range(TIMED):
        start = process_time()
        work = float(model.solve(query).work.sum())
        spent.append(process_time() - start)
    return max(min(spent), 1e-9) / max(work, 1.0)


def answer(
    model: Model,
    points: Sequence[OperatingPoint],
    query: Query,
    tol: float | None = None,
    max_seconds: float | None = None,
) -> Answer:
    """The answers of a model, or, of a front, those of the point that suits each query.

    Within ``max_seconds`` it is the most accurate point that is expected to take no longer for the query alone, and the
    cheapest if none is that fast. For ``tol`` it is the cheapest point whose held-out errors reach it, else the most
    accurate one; from there programs and grids are refined as those of any model."""
    if max_seconds is not None:
        _check_seconds(points, max_seconds, tol)
    if not points or (tol is None and max_seconds is None):
        return economy.answer(model, query, tol)
    place = np.full(query.batch, len(points) - 1)
    if max_seconds is not None:
        for row in range(query.batch):
            one = query.take(slice(row, row + 1))
            fast = [index for index, point in enumerate(points) if point.seconds(one) <= max_seconds]
            place[row] = max(fast, default=0)
    elif tol is not None:
        for index in reversed(range(len(points))):
            place[points[index].reaches(query, tol)] = index
    rows = [np.flatnonzero(place == index) for index in np.unique(place)]
    found = [economy.answer(points[place[some[0]]].model, query.take(some), tol) for some in rows]
    return economy.joined_answers(query, rows, found)


def _check_seconds(points: Sequence[OperatingPoint], max_seconds: object, tol: object) -> None:
    if tol is not None:
        raise InvalidInputError("tol and max_seconds: give one of them")
    number = isinstance(max_seconds, int | float | np.integer | np.floating) and not isinstance(max_seconds, bool)
    if not number or not 0 < max_seconds < np.inf:  # type: ignore[operator]
        raise InvalidInputError(f"max_seconds is {max_seconds!r:.40}: seconds above zero are needed, as 2e-3")
    if not points:
        raise InvalidInputError(
            "max_seconds: this model has one operating point; load the folder of a front ('hycop train … --pareto')"
        )
