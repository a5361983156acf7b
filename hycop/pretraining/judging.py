"""How good a learned primitive is: its error against the trusted flow of its processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hycop.metrics import rel_l2
from hycop.pretraining.task import ahead_of
from hycop.primitives.learned import NeuralOperator
from hycop.problems import Problem


@dataclass(frozen=True)
class NetworkRow:
    """The error of a primitive against the trusted flow: one split, start and duration."""

    split: str
    start: str
    duration: float
    error: float
    median: float
    samples: int
    outside: float
    substeps: float


def judged(
    primitive: NeuralOperator,
    problem: Problem,
    splits: Sequence[str],
    durations: Sequence[float] | None,
    samples: int,
    seed: int,
) -> list[NetworkRow]:
    """Relative L2 errors of a learned primitive against the trusted flow of its processes, from initial states and from
    states half-way, for each split and duration (a quarter, half and all of the split's longest time, unless given)."""
    part = problem.subflow(primitive.advances)
    rows = []
    for split in splits:
        query = problem.queries(samples, split, seed)
        rng = np.random.Generator(np.random.Philox(key=[seed, 1]))
        starts = {"initial": query.u0, "half-way": ahead_of(problem, query, rng)}
        last = problem.split(split).time[1]
        for start, u in starts.items():
            for duration in durations or [last / 4, last / 2, last]:
                tau = np.full(samples, duration)
                truth = part.flow(u, tau, query.setting)
                errors = rel_l2(primitive.flow(u, tau, query.setting), truth, query.setting)
                outside = primitive.outside(u, query.setting)
                steps = primitive.told.substeps(u, tau, query.setting)
                rows.append(
                    NetworkRow(
                        split,
                        start,
                        float(duration),
                        float(errors.mean()),
                        float(np.median(errors)),
                        samples,
                        float(np.mean(outside)),
                        float(np.mean(steps)),
                    )
                )
    return rows
