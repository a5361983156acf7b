"""The figures of a diagnosis."""

from __future__ import annotations

import numpy as np

from hycop.diagnosis.budget import TERMS
from hycop.diagnosis.diagnosis import Diagnosis
from hycop.diagnosis.regimes import numbers_of
from hycop.plots import Figure, bars_figure, maps_figure, matrix_figure, trends_figure


def figures(found: Diagnosis) -> dict[str, Figure]:
    """Budget, error against features, maps over space, and commutators as numbers and maps, by the name of the file.
    What was not measured has no figure."""
    case, budget = found.case, found.budget
    title = f"{case.model.equation.name} on {case.source.problem}: {found.verdict.advice}"
    known = {term: budget.floor.of(term) for term in TERMS if term in budget.sizes}
    channels = [channel.name for channel in case.query.setting.channels]
    lengths = case.query.grid.lengths[0].tolist()
    drawn = {
        "budget": bars_figure(budget.sizes, known, title),
        "maps": maps_figure(budget.maps(), channels, lengths, "root mean square of the error over the queries"),
    }
    numbers = numbers_of(case)
    if numbers:
        drawn["features"] = trends_figure(numbers, budget.sizes["total"], "relative L2 error of every query")
    if found.commutators:
        names = [name for name in case.model.dictionary if any(name in each.pair for each in found.commutators)]
        values = np.zeros((len(names), len(names)))
        for each in found.commutators:
            i, j = (names.index(name) for name in each.pair)
            values[i, j] = values[j, i] = each.strength
        drawn["commutators"] = matrix_figure(names, values, "T²‖[F, G]u‖ / ‖u‖")
        maps = {"–".join(each.pair): each.map for each in found.commutators}
        drawn["commutator_maps"] = maps_figure(maps, channels, lengths, "root mean square of the commutators")
    return drawn
