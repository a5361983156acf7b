"""A part of table ``regime-b``: a slow solver and a network for the same processes in one dictionary.

The solver is a research script in NumPy, a sample at a time: limited second-order transport, exact diffusion. It is
slow, but right for every wind. The network (``multiplier-film``) was trained on winds to the north-east. Half of the
queries have such winds. The other half are mirrored: their winds blow to the south-west, and the network has to guess.
A policy that may choose composes the network where it was trained and the script elsewhere.

HyCOP's own spectral primitives take a hundredth of the time, as a row says (they split three processes into the same
three steps, and so err more). The part is about what people have: a script and a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.evaluation import Contender, Row, Variant, evaluate
from hycop.experiments.bench import Bench
from hycop.experiments.judging import CLASSICAL
from hycop.grid import Array
from hycop.primitives.foreign.function import ForeignFunction
from hycop.problems import find_problem
from hycop.query import Query, Setting
from hycop.surrogate import HyCOP

PROBLEM, TRANSPORT = "adr2d", ("advection", "diffusion")
SETTINGS: Mapping[str, Any] = {
    "max_steps": 3,
    "tries": 1,
    "patterns": 2,
    "rounds": 1,
    "iterations": 1,
    "verbose": False,
}
TRAINING, HELD_OUT = 32, 200
TIMED = 8
"""Queries on which the work of the script is measured."""

COURANT = 0.4

NUMERICAL, SOLVER, NETWORK, MIXED = (
    "HyCOP's own",
    "{script, reaction}",
    "{network, reaction}",
    "{script, network, reaction}",
)
CHOSEN = "share of programs with the network"


def muscl_script(u: Array, duration: Array, setting: Setting) -> Array:
    """u_t + c·∇u = Σ D_i ∂_ii u on a periodic plane, one sample: half of the diffusion in Fourier space, transport with
    van Leer's slopes and two Runge–Kutta stages a step, the other half of the diffusion."""
    tau, spacing = float(duration[0]), setting.grid.lengths[0] / np.array(u.shape[2:])
    winds, spreads = setting.per_axis("c")[0], setting.per_axis("D")[0]
    steps = max(1, int(np.ceil(tau * float(np.sum(np.abs(winds) / spacing)) / COURANT)))
    out = _diffused(u[0, 0], spreads, spacing, 0.5 * tau)
    for _ in range(steps):
        once = out + tau / steps * _transport(out, winds, spacing)
        out = 0.5 * (out + once + tau / steps * _transport(once, winds, spacing))
    return _diffused(out, spreads, spacing, 0.5 * tau)[None, None]


def _diffused(u: Array, spreads: Array, spacing: Array, tau: float) -> Array:
    along = [2 * np.pi * np.fft.fftfreq(n, h) for n, h in zip(u.shape, spacing, strict=True)]
    decay = np.exp(-tau * (spreads[0] * along[0][:, None] ** 2 + spreads[1] * along[1][None, :] ** 2))
    out: Array = np.fft.ifft2(decay * np.fft.fft2(u)).real
    return out


def _transport(u: Array, winds: Array, spacing: Array) -> Array:
    """−c·∇u by finite volumes."""
    change = np.zeros_like(u)
    for axis, (c, h) in enumerate(zip(winds, spacing, strict=True)):
        after = np.roll(u, -1, axis)
        below, above = u - np.roll(u, 1, axis), after - u
        product, total = below * above, below + above
        slope = np.divide(2 * product, total, out=np.zeros_like(u), where=product > 0)
        flux = c * (u + 0.5 * slope if c > 0 else after - 0.5 * np.roll(slope, -1, axis))
        change -= (flux - np.roll(flux, 1, axis)) / h
    return change


def script(bench: Bench, query: Query) -> ForeignFunction:
    """The script as a primitive; its work is measured once, on some queries, and kept with the table."""
    bare = ForeignFunction(
        function=muscl_script, advances=frozenset(TRANSPORT), boundaries=frozenset({"periodic"}), order=2
    )
    few = query.take(slice(0, TIMED))
    file = None if bench.folder is None else bench.folder / "work.json"
    return bare.calibrated(few.u0, few.time, few.setting, file)


def mirrored(data: Dataset) -> Dataset:
    """The same solutions seen in a mirror: x and y run the other way, and so do the winds."""
    axes = tuple(range(3, data.states.ndim))
    params = {name: -values if name.startswith("c") else values for name, values in data.setting.params.items()}
    return replace(data, states=np.flip(data.states, axes), setting=replace(data.setting, params=params))


def half_and_half(bench: Bench, seed: int, count: int) -> Dataset:
    """As many samples with winds of the network's training as with the opposite ones."""
    data = bench.data(PROBLEM, "id", seed, 2 * (count // 2))
    parts = [data.take(slice(0, count // 2)), mirrored(data.take(slice(count // 2, None)))]
    return replace(
        parts[0],
        split="half outside",
        states=np.concatenate([part.states for part in parts]),
        times=np.concatenate([part.times for part in parts]),
        setting=Setting.joined([part.setting for part in parts]),
    )


def rows(bench: Bench, seed: int) -> list[Row]:
    """Errors, seconds and choices of the policies of each dictionary, and of their classical opponents."""
    network = bench.network(PROBLEM, TRANSPORT, "multiplier-film")
    own = find_problem(PROBLEM).dictionary
    reaction = {"reaction": own["reaction"]}
    train, held_out = half_and_half(bench, seed + 2**33, TRAINING), half_and_half(bench, seed + 2**34, HELD_OUT)
    solver = script(bench, train.query)
    dictionaries = {
        NUMERICAL: own,
        SOLVER: Dictionary({"script": solver, **reaction}),
        NETWORK: Dictionary({"network": network, **reaction}),
        MIXED: Dictionary({"script": solver, "network": network, **reaction}),
    }
    data = half_and_half(bench, seed, bench.samples)
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
