"""A part of table ``regime-b``: a slow solver and a network for the same processes in one dictionary.

The solver is a research script: first-order upwind transport with explicit diffusion, in NumPy, a sample at a time. It
is slow and diffusive, but right for every coefficient. The network (``multiplier-film``) was trained on the ranges of
split ``id``, is faster and better there, and guesses elsewhere. Half of the queries lie inside its range, half outside.
A policy that may choose composes the network where it was trained and the script elsewhere.

HyCOP's own spectral primitives are better and faster than both; the row says by how much. The part is about what people
have: a script and a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.experiments.judging import CLASSICAL
from hycop.experiments.table import Bench
from hycop.grid import Array
from hycop.primitives.foreign.function import ForeignFunction
from hycop.primitives.learned import NeuralOperator
from hycop.problems import find_problem
from hycop.query import Query, Setting
from hycop.surrogate import HyCOP

PROBLEM, TRANSPORT = "adr2d", ("advection", "diffusion")
SETTINGS: Mapping[str, Any] = {
    "max_steps": 5,
    "tries": 2,
    "patterns": 2,
    "rounds": 1,
    "iterations": 3,
    "verbose": False,
}
TRAINING, HELD_OUT = 64, 200
TIMED = 8
"""Queries on which the work of the script is measured."""

SAFETY = 0.9
"""Share of the longest stable step."""

NUMERICAL, SOLVER, NETWORK, MIXED = (
    "HyCOP's own",
    "{script, reaction}",
    "{network, reaction}",
    "{script, network, reaction}",
)
CHOSEN = "share of programs with the network"


def upwind_script(u: Array, duration: Array, setting: Setting) -> Array:
    """u_t + c·∇u = Σ D_i ∂_ii u by first-order upwind differences and explicit Euler on a periodic grid, one sample."""
    out, spacing = u[0, 0].copy(), [length / n for length, n in zip(setting.grid.lengths[0], u.shape[2:], strict=True)]
    winds, spreads = setting.per_axis("c")[0], setting.per_axis("D")[0]
    rate = sum(abs(c) / h + 2 * d / h**2 for c, d, h in zip(winds, spreads, spacing, strict=True))
    steps = max(1, int(np.ceil(float(duration[0]) * rate / SAFETY)))
    tau = float(duration[0]) / steps
    for _ in range(steps):
        change = np.zeros_like(out)
        for axis, (c, d, h) in enumerate(zip(winds, spreads, spacing, strict=True)):
            before, after = np.roll(out, 1, axis), np.roll(out, -1, axis)
            change -= c * ((out - before) if c > 0 else (after - out)) / h
            change += d * (before - 2 * out + after) / h**2
        out += tau * change
    return out[None, None]


def script(bench: Bench, query: Query) -> ForeignFunction:
    """The script as a primitive; its work is measured once, on some queries, and kept with the table."""
    bare = ForeignFunction(
        function=upwind_script, advances=frozenset(TRANSPORT), boundaries=frozenset({"periodic"}), order=1
    )
    few = query.take(slice(0, TIMED))
    file = None if bench.folder is None else bench.folder / "work.json"
    return bare.calibrated(few.u0, few.time, few.setting, file)


def half_and_half(network: NeuralOperator, inside: Dataset, outside: Dataset, count: int) -> Dataset:
    """As many samples inside the range of the network as outside it."""
    parts = []
    for data, there in ((inside, False), (outside, True)):
        flags = network.outside(data.query.u0, data.query.setting)
        parts.append(data.take(np.flatnonzero(flags == there)[: count // 2]))
    return replace(
        parts[0],
        split="half outside",
        states=np.concatenate([part.states for part in parts]),
        times=np.concatenate([part.times for part in parts]),
        setting=Setting.joined([part.setting for part in parts]),
    )


def _data(bench: Bench, network: NeuralOperator, seed: int, count: int) -> Dataset:
    inside, outside = (bench.data(PROBLEM, split, seed, 2 * count) for split in ("id", "ood"))
    return half_and_half(network, inside, outside, count)


def rows(bench: Bench, seed: int) -> list[Row]:
    """Errors, seconds and choices of the policies of each dictionary, and of their classical opponents."""
    network = bench.network(PROBLEM, TRANSPORT, "multiplier-film")
    own = find_problem(PROBLEM).dictionary
    reaction = {"reaction": own["reaction"]}
    train, held_out = (_data(bench, network, seed + shift, n) for shift, n in ((2**33, TRAINING), (2**34, HELD_OUT)))
    solver = script(bench, train.query)
    dictionaries = {
        NUMERICAL: own,
        SOLVER: Dictionary({"script": solver, **reaction}),
        NETWORK: Dictionary({"network": network, **reaction}),
        MIXED: Dictionary({"script": solver, "network": network, **reaction}),
    }
    data = _data(bench, network, seed, bench.samples)
    found: list[Row] = []
    for label, dictionary in dictionaries.items():
        model = HyCOP(dictionary).fit(train, held_out, preset="quick", seed=seed, samples=TRAINING, **SETTINGS)
        inner = model.model
        contenders = [Contender("HyCOP", inner, label), Contender(CLASSICAL, inner.classical(), label)]
        for part, some in _parts(data).items():
            variant = Variant.of({"queries": part})
            found += [replace(row, variant=variant) for row in evaluate(contenders, [some], metrics=("rel_l2",))]
            if "network" in dictionary:
                chosen = (inner.programs(some.query).ops == dictionary.names.index("network")).any(axis=1)
                like = replace(found[-2], metric=CHOSEN, value=float(chosen.mean()), truth="")
                found.append(replace(like, work=0.0, seconds_per_sample=0.0))
    return found


def _parts(data: Dataset) -> dict[str, Dataset]:
    half = data.samples // 2
    return {"all": data, "inside": data.take(slice(0, half)), "outside": data.take(slice(half, None))}
