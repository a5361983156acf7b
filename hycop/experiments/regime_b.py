"""Table ``regime-b``: dictionaries with learned parts on advection–diffusion–reaction.

- Path (b): one network for advection and diffusion, and the exact reaction. Fully learned: a network for each process.
- Networks are generic (``fno-film``) or know more of their process: *linear* ones (``multiplier-film``) know linearity
  and translation, the *pointwise* one of the reaction that cells do not see each other. None knows an equation.
- Protocol ``paper``: the source paper's network, which is not the identity for short durations and was trained from
  initial states only, here on 10,000 that are seen once instead of 500 times; a ``position`` policy by an evolution
  strategy, judged before any gate. Protocol ``ours``: the settings of the preset.
- Policies learn from 120 queries, a policy for each seed; the networks have one seed. Beside each model: the classical
  scheme at equal work with the same dictionary, and the error of each network alone over the query time.
- Means out of distribution are heavy-tailed, so that medians are given too.
- Two parts have files of their own: ``mixed`` and ``hybrid_gas``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.experiments import hybrid_gas, mixed
from hycop.experiments.bench import Bench, Learned
from hycop.experiments.fixtures import PDEBENCH
from hycop.experiments.judging import CLASSICAL, training_seconds
from hycop.experiments.table import Part, Table
from hycop.metrics import rel_l2
from hycop.primitives.learned import NeuralOperator
from hycop.problems import find_problem

PROBLEM = "adr2d"
SPLITS = ("id", "ood")
MEDIAN = "median rel_l2"
ALONE, ALONE_MEDIAN = "rel_l2 of the network alone", "median rel_l2 of the network alone"

TRANSPORT, REACTION = ("advection", "diffusion"), ("reaction",)
OURS: Mapping[str, Any] = {
    "samples": 120,
    "max_steps": 5,
    "tilts": 1,
    "tries": 1,
    "patterns": 1,
    "rounds": 1,
    "iterations": 1,
}
"""Settings of our policies: a network costs a hundred times a textbook primitive, so fewer programs are tried."""

EVOLUTION: Mapping[str, Any] = {
    "samples": 120,
    "policy": "position",
    "optimizer": "openes",
    "start": "random",
    "population": 50,
    "sigma": 0.03,
    "learning_rate": 5e-3,
    "weight_decay": 1e-3,
    "generations": 20,
    "minibatch": 5,
}
"""The source paper's evolution strategy for its hybrids."""

AS_PUBLISHED: Mapping[str, Any] = {"midway": 0.0, "longest": 0.2, "units": "fixed", "rounds": 40, "samples": 256}
"""The source paper's networks: 10,000 initial states, durations up to T."""


@dataclass(frozen=True)
class Hybrid:
    """A dictionary by the networks that it holds, name → (family, processes); what they leave is numerical."""

    networks: Mapping[str, tuple[str, tuple[str, ...]]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=lambda: OURS)
    paper: Mapping[str, float] = field(default_factory=dict)
    gated: bool = True

    def parts(self, bench: Bench) -> Dictionary:
        whole = find_problem(PROBLEM).dictionary
        covered = {process for _, processes in self.networks.values() for process in processes}
        found: dict[str, Any] = {
            name: bench.network(PROBLEM, processes, family, **self.settings)
            for name, (family, processes) in self.networks.items()
        }
        return Dictionary({**found, **{name: whole[name] for name in whole if not whole[name].advances & covered}})


PATH_B, LEARNED = {"id": 3.77e-2, "ood": 1.36e-1}, {"id": 2.38e-2, "ood": 3.90e-1}
"""The source paper's relative L2 errors."""


def _each(family: str, reaction: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {
        "advection": (family, ("advection",)),
        "diffusion": (family, ("diffusion",)),
        "reaction": (reaction, REACTION),
    }


HYBRIDS: Mapping[str, Hybrid] = {
    "numerical": Hybrid({}, paper={"id": 2.10e-2, "ood": 2.87e-2}),
    "{AD generic, reaction}": Hybrid({"ad": ("fno-film", TRANSPORT)}, paper=PATH_B),
    "{AD linear, reaction}": Hybrid({"ad": ("multiplier-film", TRANSPORT)}),
    "learned, generic": Hybrid(_each("fno-film", "fno-film"), paper=LEARNED),
    "learned, linear and pointwise": Hybrid(_each("multiplier-film", "pointwise")),
    "{AD generic, reaction}, paper": Hybrid(
        {"ad": ("fno-film-direct", TRANSPORT)}, AS_PUBLISHED, EVOLUTION, PATH_B, gated=False
    ),
    "learned, generic, paper": Hybrid(
        _each("fno-film-direct", "fno-film-direct"), AS_PUBLISHED, EVOLUTION, LEARNED, gated=False
    ),
}
"""The dictionaries of the table; those that end in *paper* follow its protocol."""


def _part(name: str) -> Part:
    hybrid = HYBRIDS[name]

    def rows(bench: Bench, seed: int) -> list[Row]:
        parts = hybrid.parts(bench)
        learned = bench.learned(PROBLEM, seed, using=parts, **hybrid.training)
        protocol = "paper" if hybrid.training is EVOLUTION else "ours"
        variant = Variant.of({"protocol": protocol})
        label = name.removesuffix(", paper")
        found = [row for split in SPLITS for row in _judged(hybrid, learned, label, bench.data(PROBLEM, split, seed))]
        found = [replace(row, variant=variant) for row in found]
        return [*found, training_seconds(learned, found[0]), *_networks(bench, hybrid, found)]

    return rows


def _judged(hybrid: Hybrid, learned: Learned, label: str, data: Dataset) -> list[Row]:
    """A model and its classical opponent: mean and median errors."""
    model = learned.model.model if hybrid.gated else learned.model.model.opened()
    contenders = [Contender("HyCOP", model, label), Contender(CLASSICAL, learned.model.model.classical(), label)]
    rows = []
    for row in evaluate(contenders, [data], metrics=("rel_l2",)):
        solver = next(one for one in contenders if one.method == row.method)
        errors = rel_l2(solver.solve(data.query).states, data.truth, data.query.setting)
        published = hybrid.paper.get(data.split) if row.method == "HyCOP" else None
        rows += [replace(row, paper=published), replace(row, metric=MEDIAN, value=float(np.median(errors)))]
    return rows


def _networks(bench: Bench, hybrid: Hybrid, found: list[Row]) -> list[Row]:
    """The error of each network over the query time, against the trusted flow of its processes; seconds of training."""
    problem, rows = find_problem(PROBLEM), []
    for name, (family, processes) in hybrid.networks.items():
        network = bench.network(PROBLEM, processes, family, **hybrid.settings)
        for split in SPLITS:
            like = next(row for row in found if row.split == split)
            errors = _alone(network, bench.data(PROBLEM, split, 0))
            about = replace(like, method=f"{name}: {family}", work=0.0, seconds_per_sample=0.0, paper=None)
            about = replace(about, truth=str(problem.subflow(network.advances)))
            rows.append(replace(about, metric=ALONE, value=float(errors.mean())))
            rows.append(replace(about, metric=ALONE_MEDIAN, value=float(np.median(errors))))
        seconds = bench.network_seconds(PROBLEM, processes, family, **hybrid.settings)
        rows.append(replace(about, split="train", metric="training seconds", value=seconds, truth=""))
    return rows


def _alone(network: NeuralOperator, data: Dataset) -> Any:
    query = data.query
    truth = find_problem(PROBLEM).subflow(network.advances).flow(query.u0, query.time, query.setting)
    return rel_l2(network.flow(query.u0, query.time, query.setting), truth, query.setting)


TABLE = Table(
    "regime-b",
    "dictionaries with learned parts: path (b), fully learned, mixed covers (adr2d), learned Euler (ns2d-pdebench)",
    {**{name: _part(name) for name in HYBRIDS}, "mixed covers": mixed.rows, "compressible flow": hybrid_gas.rows},
    fixtures=(PDEBENCH,),
    samples=120,
    preset="laptop",
)
