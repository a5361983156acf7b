"""The one training loop for networks: AdamW, a warm-up and a cosine, clipping, early stopping, best weights kept.

Examples are drawn round by round from counters, so a run that goes on from a kept state ends with the same bits, on the
same machine with the same number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import cos, inf, isfinite, pi
from time import process_time
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from hycop.errors import NonFiniteStateError
from hycop.networks.module import Array, Increment, arrays_of, as_tensor, set_arrays

MOMENTS = {"first": "exp_avg", "second": "exp_avg_sq"}
"""What AdamW remembers of the gradients: our names and torch's."""


class Examples(NamedTuple):
    """States (sample, channel, *grid), dimensionless numbers (sample, numbers), the changes that follow, and the weight
    (sample,) of each: one over the size of its end state."""

    states: Array
    numbers: Array
    changes: Array
    weights: Array

    def take(self, samples: Array) -> Examples:
        return Examples(*(part[samples] for part in self))

    def errors(self, module: Increment) -> Tensor:
        """Relative L2 error of the end states, (sample,)."""
        states, numbers, changes, weights = (torch.from_numpy(np.ascontiguousarray(part, np.float32)) for part in self)
        return weighted_norm(module(states, numbers) - changes, weights)


class Learnable(Protocol):
    """What a network learns from: samples, and its relative error on each of them."""

    @property
    def states(self) -> Array: ...

    def take(self, samples: Array) -> Learnable: ...

    def errors(self, module: Increment) -> Tensor: ...


def weighted_norm(miss: Tensor, weights: Tensor) -> Tensor:
    """Weight times L2 norm of each sample, (sample,)."""
    # the norm has no derivative at zero
    return torch.sqrt((miss.flatten(1) ** 2).sum(dim=1) + 1e-14) * weights


@dataclass(frozen=True)
class Schedule:
    """How a network is trained: ``rounds`` of fresh examples in batches, a rate that rises over the first part of the
    steps and falls along a cosine, and a stop after ``patience`` rounds without a better network.

    With several ``cycles`` the rate rises and falls that often (warm restarts: Loshchilov, Hutter, ICLR 2017), so that
    the end of each cycle shows what a smaller budget would have reached."""

    rounds: int
    batch: int = 32
    rate: float = 2e-3
    weight_decay: float = 1e-5
    clip: float = 1.0
    warmup: float = 0.05
    patience: int = 50
    cycles: int = 1

    def rate_at(self, share: float) -> float:
        """The rate once so large a share of all steps is done."""
        share = (share * self.cycles) % 1.0
        if share < self.warmup:
            return self.rate * (share + 1e-3) / (self.warmup + 1e-3)
        return self.rate * (0.01 + 0.99 * 0.5 * (1.0 + cos(pi * (share - self.warmup) / (1.0 - self.warmup))))


@dataclass(frozen=True, eq=False)
class Training:
    """Where a run stands after some rounds: groups of arrays (``model``, ``best``, ``first``, ``second``), the steps
    taken, the lowest held-out error and the rounds since, all errors so far, and the CPU seconds that it took."""

    arrays: Mapping[str, Mapping[str, Array]]
    rounds: int = 0
    steps: int = 0
    best: float = inf
    since: int = 0
    errors: tuple[float, ...] = field(default=())
    seconds: float = 0.0

    @classmethod
    def start(cls, module: Increment) -> Training:
        first = arrays_of(module)
        named = dict(module.named_parameters())
        zeros = {name: np.zeros_like(array) for name, array in first.items() if name in named}
        return cls({"model": first, "best": first, "first": zeros, "second": zeros})

    @property
    def weights(self) -> Mapping[str, Array]:
        """The weights with the lowest held-out error."""
        return self.arrays["best"]


def train(
    module: Increment,
    draw: Callable[[int], Learnable],
    held_out: Learnable,
    schedule: Schedule,
    state: Training | None = None,
    keep: Callable[[Training], None] = lambda state: None,
    threads: int = 1,
) -> Training:
    """Trains the module on the examples that ``draw(round)`` gives, from a kept state or from its first weights.

    ``keep`` is told the state after every round. torch uses so many ``threads``. The module ends with the best weights.
    """
    state = Training.start(module) if state is None else state
    with _threads(threads):
        return _run(module, draw, held_out, schedule, state, keep)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _run(
    module: Increment,
    draw: Callable[[int], Learnable],
    held_out: Learnable,
    schedule: Schedule,
    state: Training,
    keep: Callable[[Training], None],
) -> Training:
    set_arrays(module, state.arrays["model"])
    optimizer = torch.optim.AdamW(module.parameters(), lr=schedule.rate, weight_decay=schedule.weight_decay)
    _restore(optimizer, module, state)
    while state.rounds < schedule.rounds and state.since < schedule.patience:
        start = process_time()
        steps = _round(module, optimizer, draw(state.rounds), schedule, state)
        error = error_of(module, held_out)
        better = isfinite(error) and error < state.best
        weights = arrays_of(module)
        state = Training(
            {"model": weights, "best": weights if better else state.weights, **_moments(optimizer, module)},
            state.rounds + 1,
            steps,
            error if better else state.best,
            0 if better else state.since + 1,
            (*state.errors, error),
            state.seconds + process_time() - start,
        )
        keep(state)
    if not isfinite(state.best):
        raise NonFiniteStateError(
            f"the network became NaN or infinite in its {state.rounds} rounds; use a lower rate, as --set rate=5e-4"
        )
    set_arrays(module, state.weights)
    return state


def _round(
    module: Increment, optimizer: torch.optim.AdamW, examples: Learnable, schedule: Schedule, state: Training
) -> int:
    """One pass over the examples; returns the number of steps that the run has taken so far."""
    count, steps = len(examples.states), state.steps
    starts = range(0, count, schedule.batch)
    module.train()
    for index, first in enumerate(starts):
        share = (state.rounds + index / len(starts)) / schedule.rounds
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate_at(share)
        optimizer.zero_grad(set_to_none=True)
        loss = examples.take(np.arange(first, min(first + schedule.batch, count))).errors(module).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        norm = _clip(module, schedule.clip)
        if torch.isfinite(norm):  # one bad batch must not spoil all that was learned
            optimizer.step()
        steps += 1
    return steps


def _clip(module: Increment, most: float) -> Tensor:
    """Clips the norm of all gradients; returns what it was. Norms of complex tensors are slow, those of their real
    parts are not."""
    gradients = [part.grad for part in module.parameters() if part.grad is not None]
    norm = torch.nn.utils.get_total_norm([torch.view_as_real(g) if g.is_complex() else g for g in gradients])
    torch.nn.utils.clip_grads_with_norm_(module.parameters(), most, norm)
    return norm


def error_of(module: Increment, examples: Learnable, batch: int = 64) -> float:
    """Mean relative L2 error of the end states."""
    module.eval()
    with torch.inference_mode():
        parts = [
            examples.take(np.arange(first, min(first + batch, len(examples.states)))).errors(module)
            for first in range(0, len(examples.states), batch)
        ]
    return float(torch.cat(parts).double().mean())


def _moments(optimizer: torch.optim.AdamW, module: Increment) -> dict[str, dict[str, Array]]:
    """What the optimiser remembers, as real arrays."""
    out: dict[str, dict[str, Array]] = {name: {} for name in MOMENTS}
    for name, parameter in module.named_parameters():
        known = optimizer.state.get(parameter, {})
        for ours, theirs in MOMENTS.items():
            value = known.get(theirs, torch.zeros_like(parameter)).detach()
            real = torch.view_as_real(value) if value.is_complex() else value
            out[ours][name] = real.numpy().copy()
    return out


def _restore(optimizer: torch.optim.AdamW, module: Increment, state: Training) -> None:
    if not state.steps:
        return
    for name, parameter in module.named_parameters():
        moments = {theirs: as_tensor(state.arrays[ours][name], parameter) for ours, theirs in MOMENTS.items()}
        optimizer.state[parameter] = {"step": torch.tensor(float(state.steps)), **moments}
