"""Two Dask workers of one thread each against one, on a step of training that takes at least a second: wall time."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Ratio, Seconds, compared, needed
from benchmarks.population import judged
from hycop.evolution import OpenES
from hycop.executors.cluster import DaskExecutor
from hycop.training.objective import Fitness


def measure(members: int = 160_000, rounds: int = 3) -> list[Ratio]:
    needed("distributed", "pip install -c constraints.txt -e '.[cluster]'")
    objective, policy, _ = judged(2, 5)
    optimizer = OpenES(population=members)
    job = Fitness(objective, policy, optimizer, optimizer.start(np.zeros(policy.size), 0))
    seconds = {}
    results = []
    for workers in (1, 2):
        executor = DaskExecutor(workers=workers)
        executor.threads = 1
        try:
            results.append(executor.map(job, members))  # workers import and compile
            took = []
            for _ in range(rounds):
                start = time.perf_counter()
                executor.map(job, members)
                took.append(time.perf_counter() - start)
        finally:
            executor.close()
        seconds[f"{workers} worker{'s' if workers > 1 else ''}"] = Seconds(took, took)
    if not np.array_equal(*results):
        raise AssertionError("one worker and two disagree")
    what = f"1 Dask worker of one thread / 2 of them, {members} members × 5 queries of adr2d, wall time"
    return [compared("cluster", what, seconds, "2 workers", "1 worker", 1.7)]
