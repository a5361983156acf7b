"""``python -m benchmarks [TOPIC …] [--json FILE]``: measures, prints a table, and exits with 1 if a goal is missed.

Everything runs in one thread, opponents too, except for the topics ``cluster`` and ``studio``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    answer,
    cluster,
    engine,
    gas,
    growth,
    memory,
    muscl,
    population,
    solving,
    spectral,
    start,
    studio,
    training,
    water,
    water_training,
)
from benchmarks.measure import Ratio, Skipped

TOPICS: dict[str, Callable[[], list[Ratio]]] = {
    "quick-training": start.measure_training,
    **{f"{name}-answer": partial(solving.measure, name) for name in solving.GOALS},
    "fno": solving.measure_fno,
    "swe2d-answer": water.measure,
    "dam-break": water.measure_dam,
    "adr2d-training": population.measure,
    "swe2d-training": water_training.measure,
    "spectral": spectral.measure,
    "ns2d-batch": gas.measure_batch,
    "precision": answer.measure_single,
    "answer": answer.measure,
    "start": start.measure,
    "growth": growth.measure,
    "cluster": cluster.measure,
    "muscl": muscl.measure,
    "engine": engine.measure,
    "memory": memory.measure,
    "gas": gas.measure,
    "studio": studio.measure,
    "training": training.measure,
}

LONG = ("studio", "training")
"""Topics that take many minutes, and run if named only."""

PACKAGES = ("hycop", "numpy", "scipy", "numba", "torch", "jax", "exponax", "clawpack", "distributed")
WIDTH = 170
"""Characters of a line that does not go to a terminal."""

ONE_THREAD = {
    **dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "NPROC": "1",  # of JAX's thread pool
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
"""Environment in which every package works in one thread. It must be there before they are imported."""


def machine() -> dict[str, object]:
    """Facts without which a number means nothing."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: each for name in PACKAGES if (each := _version(name))},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def table_of(ratios: Sequence[Ratio]) -> Table:
    table = Table("topic", "what", "HyCOP", "opponent", "ratio", "quartiles", "goal", "errors", "met")
    for ratio in ratios:
        table.add_row(
            ratio.topic,
            ratio.what,
            "" if ratio.ours is None else shown_seconds(ratio.ours.cpu),
            "" if ratio.theirs is None else shown_seconds(ratio.theirs.cpu),
            f"{ratio.value:.2f}",
            "" if ratio.low is None else f"{ratio.low:.2f}–{ratio.high:.2f}",
            f"{'≥' if ratio.at_least else '≤'} {ratio.goal:g}",
            " / ".join(f"{each:.1e}" for each in (ratio.error, ratio.their_error) if each is not None),
            "yes" if ratio.met else "no",
        )
    return table


def shown_seconds(seconds: float) -> str:
    unit, scale = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{scale * seconds:.3g} {unit}"


def measured(chosen: Sequence[str], console: Console) -> tuple[list[Ratio], dict[str, str]]:
    """The rows of all topics, and why others have none. An opponent that is missing, or a comparison that means
    nothing, does not stop the rest."""
    ratios: list[Ratio] = []
    without: dict[str, str] = {}
    for topic in chosen:
        begin = time.perf_counter()
        try:
            found = TOPICS[topic]()
        except Skipped as reason:
            without[topic] = f"skipped, it {reason}"
        except Exception as error:  # hours of other topics must not be lost
            without[topic] = f"failed: {type(error).__name__}: {error}"
        else:
            ratios += found
        told = f"{topic}: {without.get(topic, 'done')} ({time.perf_counter() - begin:.0f} s)"
        console.print(told, highlight=False, soft_wrap=True)
    return ratios, without


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    which = f"which to run: {', '.join(TOPICS)}; by default all but {', '.join(LONG)}"
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=which)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    unknown = [topic for topic in options.topics if topic not in TOPICS]
    if unknown:
        parser.error(f"unknown topic '{unknown[0]}': known are {', '.join(TOPICS)}")
    chosen = options.topics or [topic for topic in TOPICS if topic not in LONG]
    facts, console = machine(), Console(width=None if sys.stdout.isatty() else WIDTH)
    ratios, without = measured(chosen, console)
    console.print(table_of(ratios))
    load = f"load {facts['load']:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"
    console.print(f"{facts['cpu']}, {facts['cores']} cores, {load}", highlight=False)
    if options.json:
        command = shlex.join(["python", "-m", "benchmarks", *(sys.argv[1:] if arguments is None else arguments)])
        meta = {"command": command, **facts, "load_at_end": os.getloadavg()[0], "without": without}
        text = json.dumps({"rows": [ratio.to_json() for ratio in ratios], "meta": meta}, indent=2)
        options.json.write_text(text + "\n")
    failed = any(reason.startswith("failed") for reason in without.values())
    return 0 if all(ratio.met for ratio in ratios) and not failed else 1


def in_one_thread(environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Starts this command again if packages would use several threads."""
    if any(environment.get(name) != value for name, value in ONE_THREAD.items()):
        words = [sys.executable, "-m", "benchmarks", *arguments]
        os.execve(sys.executable, words, {**environment, **ONE_THREAD})


if __name__ == "__main__":
    in_one_thread(os.environ, sys.argv[1:])
    sys.exit(main())
