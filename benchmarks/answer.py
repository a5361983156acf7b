"""What ``predict`` adds to the run of its own programs: query, features, scope and policy. And what single precision
saves, and costs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.data import SPECTRAL, adr_model, adr_query
from benchmarks.measure import Ratio, compared, interleaved, limited
from benchmarks.parts import of_answer, of_program
from hycop.execution import run
from hycop.grid import Array
from hycop.policy import Pattern
from hycop.problems import find_problem
from hycop.schemes import splitting

STEPS = Pattern((0, 1, 2, 1, 2, 1), (1.0, 0.1, 0.2, 0.5, 0.8, 0.4), "as trained with the preset quick")
MOST_SECONDS = 1.3e-3
"""Goal for one answer to one query."""


def measure(batches: Sequence[int] = (64, 1), rounds: int = 101) -> list[Ratio]:
    model, problem = adr_model(STEPS), find_problem("adr2d")
    ratios = []
    for batch in batches:
        query = problem.queries(batch, "id", 0)
        params, times = dict(query.setting.params), [0.2]
        asked = model.query(query.u0, params, times)
        programs = model.programs(asked)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a random query may lie outside 64 others
            calls = {
                "predict": lambda: model.predict(query.u0, params, times),  # noqa: B023 called at once
                "run": lambda: run(programs, model.dictionary, asked),  # noqa: B023
            }
            seconds = interleaved(calls, rounds, pause=0.0)
        what = f"{batch} × {problem.shape[0]}²"
        if batch == 1:
            told = f"predict / {1e3 * MOST_SECONDS:g} ms, {what}"
            ratios.append(limited("answer", told, seconds["predict"], MOST_SECONDS))
        else:
            told = f"predict / run of its programs, {what}"
            row = compared("answer", told, seconds, "predict", "run", 1.25, at_least=False, queries=batch)
            ratios.append(replace(row, detail=of_answer(model, query.u0, params, times)))
    return ratios


def measure_single(sizes: Sequence[tuple[int, int]] = ((1000, 32), (60, 128)), rounds: int = 11) -> list[Ratio]:
    """A state in single precision is answered in single precision; sizes are queries and cells along an axis."""
    return [_single(batch, cells, rounds) for batch, cells in sizes]


def _single(batch: int, cells: int, rounds: int) -> Ratio:
    double = adr_query(batch, cells)
    single = replace(double, u0=double.u0.astype(np.float32))
    programs = splitting("strang x2").programs(double, SPECTRAL)
    finest = run(splitting("saba4 x8").programs(double, SPECTRAL), SPECTRAL, double)
    calls = {"double": partial(run, programs, SPECTRAL, double), "single": partial(run, programs, SPECTRAL, single)}
    errors = [_error(call(), finest) for call in calls.values()]
    seconds = interleaved(calls, rounds, pause=0.0)
    off = _error(calls["single"](), calls["double"]())
    return compared(
        "precision",
        f"double / single precision, Strang x2 on adr2d, {batch} × {cells}²",
        seconds,
        "single",
        "double",
        2.0,
        queries=batch,
        errors=(errors[1], errors[0]),
        detail=f"rounding changes the answer by {off:.1g}; {of_program(cells, convolutions=3, growths=2)}",
    )


def _error(states: Array, truth: Array) -> float:
    return float(np.linalg.norm(states.astype(np.float64) - truth) / np.linalg.norm(truth))
