"""Learns a closure: a network for the rate that a model lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import numpy as np

from hycop.data import Dataset
from hycop.enrichment.known import KnownFlow
from hycop.enrichment.rates import Source, source_of
from hycop.errors import NonFiniteStateError
from hycop.grid import Array
from hycop.networks import Architecture, imported
from hycop.primitives.learned import NeuralClosure
from hycop.progress import Describe, describing

LINEARISATIONS = 3
"""Times that the response of end states is linearised: each leaves some fifth of the error of the one before."""

DISTURBED, TURNS, SAFETY = 16, 8, 1.2
"""Samples, power iterations and safety factor of the Lipschitz constant."""


@dataclass(frozen=True)
class NetworkPlan:
    """A network to try as a closure: its family and options, and how long it learns at which rate.

    ``halfway`` short-time pairs teach the rate at the state in their middle, others at their first state.
    """

    family: str
    options: Mapping[str, int] = field(default_factory=dict)
    rounds: int = 60
    rate: float = 5e-3
    batch: int = 8
    halfway: bool = True


NETWORKS: tuple[NetworkPlan, ...] = (
    NetworkPlan("pointwise", {"width": 24, "layers": 2}, rounds=80),
    NetworkPlan("uno", {"width": 32, "modes": 4, "layers": 4}, rounds=40, rate=2e-3),
)
"""The networks that are tried, the cheaper ones first."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a closure is learned from: the known flow, data to learn from and data to stop and choose by, the name of
    its process, and the coefficients that it is told."""

    known: KnownFlow
    learn: Dataset
    judge: Dataset
    process: str
    inputs: tuple[str, ...] = ()
    seed: int = 0


def learned_closure(lesson: Lesson, plan: NetworkPlan, verbose: bool = True) -> NeuralClosure:
    """A network of that plan, trained on the data of the lesson."""
    imported(plan.family)  # says so if torch is missing
    learn, judge = (source_of(lesson.known, data, lesson.seed, plan.halfway) for data in (lesson.learn, lesson.judge))
    closure = _blank(lesson, plan, learn)
    with describing(f"closure {plan.family}") if verbose else nullcontext(_silent) as report:
        times = 1 if learn.exact else LINEARISATIONS
        for index in range(times):
            part = replace(plan, rounds=plan.rounds if index == 0 else max(1, plan.rounds // 2))
            closure = _trained(closure, part, learn, judge, lesson.seed, index, report)
    return closure


def _silent(text: str, share: float) -> None:
    """Progress that nobody watches."""


def _blank(lesson: Lesson, plan: NetworkPlan, source: Source) -> NeuralClosure:
    """The closure without weights: its ranges and units from the data."""
    setting, grid = source.setting, source.setting.grid
    sizes = {"axes": grid.axes, "channels": len(setting.channels)}
    numbers = 1 + len(lesson.inputs)
    over = (0, *range(2, source.states.ndim))
    states, rates = source.states, np.sqrt((source.estimates**2).mean(axis=over))
    names = [channel.name for channel in setting.channels]
    deviation = states.std(axis=over)
    plain = {**sizes, "numbers": numbers, "timed": numbers, **plan.options}
    return NeuralClosure(
        architecture=Architecture.of({"family": plan.family, **plain}).to_json(),
        process=lesson.process,
        states=_by_name(names, states.min(axis=over), states.max(axis=over)),
        spreads=_by_name(names, states.mean(axis=over), np.where(deviation > 0, deviation, 1.0)),
        rates=dict(zip(names, np.where(rates > 0, rates, 1.0).tolist(), strict=True)),
        inputs={name: (float(setting.param(name).min()), float(setting.param(name).max())) for name in lesson.inputs},
        boundary=grid.boundary,
        lipschitz=1.0,
    )


def _by_name(names: Sequence[str], first: Array, second: Array) -> dict[str, tuple[float, float]]:
    return {name: (float(a), float(b)) for name, a, b in zip(names, first, second, strict=True)}


def _trained(
    closure: NeuralClosure, plan: NetworkPlan, learn: Source, judge: Source, seed: int, index: int, report: Describe
) -> NeuralClosure:
    """The closure after one more linearisation, with its Lipschitz constant."""
    from hycop.networks.loop import Schedule, Training, train  # torch is imported when it is needed
    from hycop.networks.module import set_arrays

    first = int(np.random.Generator(np.random.Philox(key=[seed, 0])).integers(2**62))
    module = closure.plan.build(first)
    if index:
        set_arrays(module, closure.arrays())
    examples, held_out = (source.examples(closure, index > 0) for source in (learn, judge))
    count = len(examples.states)

    def keep(now: Training) -> None:
        report(f"{plan.family}, round {now.rounds}/{plan.rounds}  error {now.best:.2e}", now.rounds / plan.rounds)

    done = train(
        module,
        lambda turn: examples.take(np.random.default_rng([seed, index, turn]).permutation(count)),
        held_out,
        Schedule(plan.rounds, plan.batch, plan.rate),
        keep=keep,  # and one thread, so that the same seed gives the same bits everywhere
    )
    made = replace(closure, measured={"error": done.best}).with_arrays(done.weights)
    return replace(made, lipschitz=_lipschitz(made, learn, seed)).with_arrays(done.weights)


def _lipschitz(closure: NeuralClosure, source: Source, seed: int) -> float:
    """The largest growth of a disturbance by the rate, ‖R(u + δ) − R(u)‖/‖δ‖, by power iterations on some states."""
    chosen = np.unique(np.linspace(0, len(source.states) - 1, DISTURBED).round().astype(np.int64))
    u, setting = source.states[chosen], source.setting.take(chosen)
    axes = tuple(range(1, u.ndim))
    scale = 1e-2 * np.sqrt((u**2).sum(axis=axes, keepdims=True))
    scale = np.where(scale > 0, scale, 1e-2)
    still, largest = closure.rate(u, setting), 0.0
    nudge = np.random.default_rng(seed).standard_normal(u.shape)
    for _ in range(TURNS):
        norm = np.sqrt((nudge**2).sum(axis=axes, keepdims=True))
        nudge = scale * nudge / np.where(norm > 0, norm, 1.0)
        growth = (closure.rate(u + nudge, setting) - still) / scale
        largest = max(largest, float(np.sqrt((growth**2).sum(axis=axes)).max()))
        nudge = growth
    if not np.isfinite(largest):
        raise NonFiniteStateError(f"closure {closure.plan.family}: its rates became NaN or infinite; use other data")
    return max(SAFETY * largest, 1e-6)
