"""Programs of 17 and 33 steps for viscous gas on 128² against PDEBench's scheme, and against its generator.

What a program takes depends on its steps, not on who wrote them: the classical ones here take what learned ones do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median

from benchmarks.measure import Ratio, compared, interleaved
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
    where, rival = f"{batch} × {chosen.shape[0]}²", "PDEBench's scheme"
    found = [
        compared("gas", f"{rival} / a program of {steps}, {where}", seconds, steps, rival, 1.0, queries=batch)
        for steps in PROGRAMS
    ]
    for steps in PROGRAMS:
        what = f"{GENERATOR:g} s of PDEBench's generator / a program of {steps}, {where}"
        found.append(Ratio("gas", what, GENERATOR * batch / median(seconds[steps].cpu), 80.0, True))
    return found


def measure_batch(batch: int = 8, rounds: int = 7, shape: tuple[int, int] = (128, 128)) -> list[Ratio]:
    """Whether a sample of a batch takes longer than one alone, whose state the cache holds."""
    chosen = problem("ns2d")
    query, dictionary = chosen.queries(batch, shape=shape), chosen.dictionary
    programs = splitting("strang x2").programs(query, dictionary)
    each = [slice(sample, sample + 1) for sample in range(batch)]
    # every sample has sub-steps of its own, so that all of them run alone, too
    alone = [(programs.take(one), query.take(one)) for one in each]
    calls: dict[str, Callable[[], object]] = {
        "together": partial(run, programs, dictionary, query),
        "one by one": lambda: [run(one, dictionary, asked) for one, asked in alone],
    }
    seconds = interleaved(calls, rounds)
    what = f"{batch} samples of ns2d on {shape[0]}² together / one by one"
    return [compared("ns2d-batch", what, seconds, "together", "one by one", 1.0, at_least=False, queries=batch)]
