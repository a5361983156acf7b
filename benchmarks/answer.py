"""What ``predict`` adds to the run of its own programs: query, features, scope and policy. CPU time of one process."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from statistics import median

from benchmarks.data import adr_model
from benchmarks.measure import Ratio, interleaved, median_ratio, spread
from hycop.execution import run
from hycop.policy import Pattern
from hycop.problems import find_problem

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
            seconds = interleaved(
                {
                    "predict": lambda: model.predict(query.u0, params, times),  # noqa: B023 called at once
                    "run": lambda: run(programs, model.dictionary, asked),  # noqa: B023
                },
                rounds,
                time.process_time,
                pause=0.0,
            )
        what, detail = f"{batch} × {problem.shape[0]}²", f"CPU time: {spread(seconds)}"
        if batch == 1:
            cost = median(seconds["predict"]) / MOST_SECONDS
            ratios.append(Ratio("answer", f"predict / {1e3 * MOST_SECONDS:g} ms, {what}", cost, 1.0, False, detail))
        else:
            ratio = median_ratio(seconds, "predict", "run")
            ratios.append(Ratio("answer", f"predict / run of its programs, {what}", ratio, 1.25, False, detail))
    return ratios
