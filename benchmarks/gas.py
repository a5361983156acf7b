"""Programs of 17 and 33 steps for viscous gas on 128² against PDEBench's scheme, and against its generator.

What a program takes depends on its steps, not on who wrote them: the classical ones here take what learned ones do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

from benchmarks.measure import Ratio, interleaved, median_ratio, milliseconds
from hycop.execution import run
from hycop.experiments.ns import GENERATOR
from hycop.problems import find_problem as problem
from hycop.schemes import splitting

PROGRAMS = {"17 steps": "SABA2 x4", "33 steps": "SABA2 x8"}


def measure(batch: int = 8, rounds: int = 5) -> list[Ratio]:
    chosen = problem("ns2d-pdebench")
    query, dictionary = chosen.queries(batch), chosen.dictionary
    scheme = chosen.subflow(chosen.processes)
    programs = {steps: splitting(name).programs(query, dictionary) for steps, name in PROGRAMS.items()}
    calls: dict[str, Callable[[], object]] = {
        steps: partial(run, program, dictionary, query) for steps, program in programs.items()
    }
    calls["PDEBench's scheme"] = partial(scheme.flow, query.u0, query.time, query.setting)
    seconds = interleaved(calls, rounds)
    where = f"{batch} × {chosen.shape[0]}²"
    return [
        ratio
        for steps in PROGRAMS
        for ratio in (
            Ratio(
                "gas",
                f"PDEBench's scheme / a program of {steps}, {where}",
                median_ratio(seconds, "PDEBench's scheme", steps),
                1.0,
                True,
                milliseconds(seconds),
            ),
            Ratio(
                "gas",
                f"{GENERATOR:g} s of PDEBench's generator / a program of {steps}, {where}",
                GENERATOR * batch / median(seconds[steps]),
                80.0,
                True,
            ),
        )
    ]
