"""``python -m benchmarks [TOPIC …] [--json FILE]``: measures, prints a table, and exits with 1 if a goal is missed."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import numba
from rich.console import Console
from rich.table import Table

from benchmarks import answer, engine, gas, memory, muscl, population, spectral, start, studio, training
from benchmarks.measure import Ratio

TOPICS: dict[str, Callable[[], list[Ratio]]] = {
    "spectral": spectral.measure,
    "muscl": muscl.measure,
    "engine": engine.measure,
    "answer": answer.measure,
    "start": start.measure,
    "memory": memory.measure,
    "gas": gas.measure,
    "population": population.measure,
    "studio": studio.measure,
    "training": training.measure,
}

LONG = ("training",)
"""Topics that take a quarter of an hour, and run if named only."""


def machine() -> dict[str, object]:
    """Facts without which a number means nothing."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "load": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("hycop", "numpy", "scipy", "numba")},
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def table_of(ratios: Sequence[Ratio]) -> Table:
    table = Table("topic", "what", "ratio", "goal", "met")
    for ratio in ratios:
        goal = f"{'≥' if ratio.at_least else '≤'} {ratio.goal:g}"
        table.add_row(ratio.topic, ratio.what, f"{ratio.value:.2f}", goal, "yes" if ratio.met else "no")
    return table


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
    facts = machine()
    ratios = [ratio for topic in chosen for ratio in TOPICS[topic]()]
    console = Console()
    console.print(table_of(ratios))
    console.print(f"{facts['cpu']}, {facts['threads']} threads, load {facts['load']:.1f} at the start", highlight=False)
    if options.json:
        command = shlex.join(["python", "-m", "benchmarks", *(sys.argv[1:] if arguments is None else arguments)])
        rows = [{**asdict(ratio), "met": ratio.met} for ratio in ratios]
        options.json.write_text(json.dumps({"rows": rows, "meta": {"command": command, **facts}}, indent=2) + "\n")
    return 0 if all(ratio.met for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
