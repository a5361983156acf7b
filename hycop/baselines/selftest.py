"""Proof that a network can be trained at all: it fits eight samples, and learns two flows whose answer is known.

A baseline whose network fails is not allowed in a table: an opponent that cannot learn proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hycop.baselines.baseline import BaselineError
from hycop.conformance.report import Check, Report
from hycop.grid import Array
from hycop.networks import Architecture, imported

if TYPE_CHECKING:
    from hycop.networks.loop import Examples

CELLS, FEW, DRAWN, JUDGED = 32, 8, 256, 64
"""Cells of the grid, samples to fit, and samples of a known flow: of a round, and to judge by."""

Symbol = Callable[[Array], Array]
"""Wave numbers (axis, *grid) → exponents of the modes for the largest number that a network is told."""


class Goal(NamedTuple):
    """So many rounds of training, and the error to be reached in them."""

    rounds: int
    error: float


class Stated(NamedTuple):
    """What a network of its default size is to reach, with this rate of learning."""

    rate: float
    fit: Goal
    heat: Goal
    advection: Goal


STATED: Mapping[str, Stated] = {
    "fno": Stated(4e-3, Goal(400, 1e-3), Goal(150, 1e-2), Goal(150, 2e-2)),
    "local-no": Stated(4e-3, Goal(400, 1e-3), Goal(150, 1e-2), Goal(150, 2e-2)),
    "unet": Stated(2e-3, Goal(400, 1e-3), Goal(150, 1e-2), Goal(150, 4e-2)),
    "deeponet": Stated(2e-3, Goal(2500, 1e-3), Goal(150, 6e-2), Goal(150, 2e-1)),
    "uno-direct": Stated(6e-3, Goal(900, 1e-3), Goal(150, 1e-2), Goal(150, 2e-2)),
}
"""By family. A DeepONet has to learn what a place is: it needs far more steps and samples."""


def heat(k: Array) -> Array:
    """u_t = D ∇²u with D T up to 1.3e-3 of the box squared."""
    return np.asarray(-0.05 * (k**2).sum(axis=0))


def advection(k: Array) -> Array:
    """u_t + c·∇u = 0 along the diagonal, by up to a quarter of the box."""
    return np.asarray(-0.5j * np.pi * k.sum(axis=0))


def waves(seed: int, count: int, shape: tuple[int, ...], symbol: Symbol) -> Examples:
    """Smooth random states on a periodic box of length 1, and û(T) = exp(n·symbol(k)) û with n in [0, 1]."""
    from hycop.networks.loop import Examples

    rng, axes = np.random.default_rng(seed), tuple(range(2, 2 + len(shape)))
    k = np.stack(np.meshgrid(*(np.fft.fftfreq(cells, 1 / cells) for cells in shape), indexing="ij"))
    modes = np.fft.fftn(rng.normal(size=(count, 1, *shape)), axes=axes) * np.exp(-(k**2).sum(axis=0) / 8)
    before = np.fft.ifftn(modes, axes=axes).real
    before /= before.std(axis=axes, keepdims=True)
    numbers = rng.random((count, 1))
    spread = numbers.reshape(-1, *(1,) * (1 + len(shape)))
    after = np.fft.ifftn(np.fft.fftn(before, axes=axes) * np.exp(spread * symbol(k)), axes=axes).real
    return Examples(before, numbers, after - before, 1 / np.linalg.norm(after.reshape(count, -1), axis=1))


def trained_error(family: str, draw: Callable[[int], Examples], held_out: Examples, rounds: int, batch: int) -> float:
    """The lowest error on held-out examples of a network of the family."""
    from hycop.networks.loop import Schedule, train

    axes = held_out.states.ndim - 2
    plan = Architecture.of({"family": family, "axes": axes, "channels": 1, "numbers": 1, "timed": 1})
    schedule = Schedule(rounds, batch=batch, rate=STATED[family].rate, weight_decay=0.0, patience=rounds)
    return train(plan.build(seed=1), draw, held_out, schedule).best


def fit_error(family: str, rounds: int) -> float:
    """The error on the eight samples of an advected wave that a network was trained on."""
    data = waves(0, FEW, (CELLS,), advection)
    return trained_error(family, lambda index: data, data, rounds, FEW)


def flow_error(family: str, symbol: Symbol, rounds: int) -> float:
    """The error on new samples of a flow."""
    held_out = waves(10**6, JUDGED, (CELLS,), symbol)
    return trained_error(family, lambda index: waves(index, DRAWN, (CELLS,), symbol), held_out, rounds, 32)


def self_test(family: str) -> Report:
    """What a network reaches, beside what it is to reach; a minute or two."""
    if family not in STATED:
        raise BaselineError(f"network {family} has no self-test, so it is not allowed in a table")
    imported(family)
    stated = STATED[family]
    found = {
        f"fits {FEW} samples": (fit_error(family, stated.fit.rounds), stated.fit),
        "heat equation": (flow_error(family, heat, stated.heat.rounds), stated.heat),
        "pure advection": (flow_error(family, advection, stated.advection.rounds), stated.advection),
    }
    return Report(
        family,
        tuple(
            Check(name, error <= goal.error, f"{error:.1e} after {goal.rounds} rounds (at most {goal.error:.0e})")
            for name, (error, goal) in found.items()
        ),
    )
