"""Table ``dictionary``: the primitives of each benchmark and the size of its policy.

- *Dictionaries* (nothing is trained): how many primitives there are (``n``), the size of the largest policy of one
  pattern that the default settings allow, and that of the source paper's form of a policy, K_max(n + 1) + 1 with
  K_max = 18, plus the weights of its features.
- *Trained*: the size of the policies that the other tables use; one that chooses between patterns has at most 100.

The dictionaries with networks count by the processes that these advance; no network is trained for this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hycop.dictionary import Dictionary
from hycop.evaluation import Row, Variant
from hycop.experiments.bench import Bench
from hycop.experiments.coverage import policy_size
from hycop.experiments.table import Table
from hycop.grid import Array
from hycop.policy import Allotment, PositionPolicy
from hycop.primitive import update_work
from hycop.problems import Problem, find_problem
from hycop.query import Setting

COUNT, ALLOWED, PUBLISHED_FORM, TRAINED = (
    "primitives",
    "policy parameters allowed",
    "policy parameters in the paper's form",
    "policy parameters trained",
)
ABOUT_50, ABOUT_73 = 50.0, 73.0
PAPER: Mapping[str, float] = {
    "ad1d": ABOUT_50,
    "burgers1d": ABOUT_50,
    "swe1d": ABOUT_50,
    "ks1d": ABOUT_50,
    "adr2d": ABOUT_73,
    "swe2d": ABOUT_50,
    "ns2d": ABOUT_50,
}
"""The source paper's approximate sizes; its form of a policy without features has 55 and 73 parameters."""


@dataclass(frozen=True)
class Network:
    """Stands for a network that advances some processes: a policy asks for no more."""

    advances: frozenset[str]
    order = None

    def flow(self, u: Array, duration: Array, setting: Setting) -> Array:
        return u

    def work(self, u: Array, duration: Array, setting: Setting) -> Array:
        return update_work(setting, 1.0)


TRANSFERS: Mapping[str, tuple[Mapping[str, tuple[str, ...]], float]] = {
    "path (a): advection, diffusion, learned residual": ({"residual": ("reaction",)}, ABOUT_73),
    "path (b): learned advection–diffusion, reaction": ({"ad": ("advection", "diffusion")}, ABOUT_50),
    "fully learned": ({name: (name,) for name in ("advection", "diffusion", "reaction")}, ABOUT_73),
}
"""From advection–diffusion to ``adr2d``: the networks of a dictionary with their processes, and the paper's size."""


def with_networks(problem: Problem, networks: Mapping[str, tuple[str, ...]]) -> Dictionary:
    """The problem's dictionary with networks in place of the primitives of their processes."""
    covered = {process for processes in networks.values() for process in processes}
    kept = {name: one for name, one in problem.dictionary.items() if not one.advances & covered}
    return Dictionary({**kept, **{name: Network(frozenset(processes)) for name, processes in networks.items()}})


def published_form(problem: Problem, dictionary: Dictionary) -> int:
    """The size of the source paper's form of a policy with the problem's features."""
    allotment = Allotment.of(dictionary, problem.processes, "consistent")
    return PositionPolicy(allotment, len(problem.equation.features or ())).size


def _facts(problem: Problem, dictionary: Dictionary, label: str, paper: float) -> list[Row]:
    text = ", ".join(f"{name}: {type(primitive).__name__}" for name, primitive in dictionary.items())
    values = {
        COUNT: (len(dictionary), None),
        ALLOWED: (policy_size(problem, dictionary), paper),
        PUBLISHED_FORM: (published_form(problem, dictionary), paper),
    }
    return [_fact(problem, metric, value, label, text, known) for metric, (value, known) in values.items()]


def _fact(problem: Problem, metric: str, value: float, label: str, text: str, paper: float | None) -> Row:
    empty: dict[str, Any] = dict.fromkeys(("split", "method", "time", "truth"), "")
    numbers: dict[str, Any] = dict.fromkeys(("std", "work", "seconds_per_sample", "limit"), 0.0)
    return Row(
        problem=problem.name,
        dictionary=label,
        variant=Variant.of({text: ""}),
        grid="x".join(map(str, problem.shape)),
        metric=metric,
        value=float(value),
        seeds=1,
        samples=0,
        paper=paper,
        **empty,
        **numbers,
    )


def _dictionaries(bench: Bench, seed: int) -> list[Row]:
    rows = []
    for name, paper in PAPER.items():
        problem = find_problem(name)
        rows += _facts(problem, problem.dictionary, problem.name_of(problem.dictionary), paper)
    target = find_problem("adr2d")
    for label, (networks, paper) in TRANSFERS.items():
        rows += _facts(target, with_networks(target, networks), label, paper)
    return rows


def _trained(bench: Bench, seed: int) -> list[Row]:
    rows = []
    for name, paper in PAPER.items():
        model = bench.learned(name, seed).model.model
        problem = find_problem(name)
        text = ", ".join(f"{each}: {type(one).__name__}" for each, one in model.dictionary.items())
        rows.append(_fact(problem, TRAINED, model.theta.size, problem.name_of(model.dictionary), text, paper))
    return rows


TABLE = Table(
    "dictionary",
    "primitives and policy sizes of the benchmarks",
    {"dictionaries": _dictionaries, "trained": _trained},
    preset="laptop",
    seeds=1,
)
