"""The loss of a theta on queries with truth, and the jobs that workers do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hycop.dictionary import Dictionary
from hycop.evolution import LevenbergMarquardt, LMState, Optimizer, State, normal_equations
from hycop.execution import distances, measure, run
from hycop.grid import Array
from hycop.metrics import rel_l2, rel_l2_per_channel
from hycop.policy import Inputs, Policy
from hycop.program import ProgramBatch
from hycop.query import Query
from hycop.training.config import TrainingConfig

ROWS = 2048
"""Most programs that run together."""

BLOCK = 16
"""Queries whose normal equations are summed by one worker; fixed, so that sums do not depend on the workers."""

COSTED = 32
"""``max_work`` bounds the mean work on this many queries, the first ones."""

SLACK = 1e-9
"""Work may exceed ``max_work`` by this fraction, which is rounding."""

OVER_BUDGET = 1e6
"""Loss of a member over the allowed work, times the ratio: larger than any loss within the allowed work."""


def infinite_if_lost(values: Array | float) -> Array:
    """The values, with infinity for whatever is not finite."""
    return np.where(np.isfinite(values), values, np.inf)


def work_of(
    policy: Policy, theta: Array, dictionary: Dictionary, query: Query, inputs: Inputs, config: TrainingConfig
) -> Array:
    """Work (batch,) of a policy's programs on the grid of the trained model, which may differ from the grid of
    training."""
    programs = policy.programs(theta[None], inputs).with_substeps(config.substeps)
    return measure(programs, dictionary, query, refinement=config.refinement, strict=False).work


def mean_work(
    policy: Policy, theta: Array, dictionary: Dictionary, query: Query, inputs: Inputs, config: TrainingConfig
) -> float:
    """The mean work on the first queries, which ``max_work`` bounds; infinite instead of NaN."""
    few = slice(0, COSTED)
    work = work_of(policy, theta, dictionary, query.take(few), inputs.take(few), config)
    return float(infinite_if_lost(work.mean()))


@dataclass(frozen=True, eq=False)
class Objective:
    """Error of a policy's programs, plus ``work_weight`` times their work over ``unit_work``.

    The error is a mean over groups of channels of ‖e‖/‖u‖: ``rel_l2`` has one group of all channels, ``nrmse`` one for
    each channel.
    """

    dictionary: Dictionary
    query: Query
    truth: Array
    inputs: Inputs
    work_weight: float = 0.0
    unit_work: float = 1.0
    refinement: int = 1
    metric: str = "rel_l2"
    substeps: int = 1

    def take(self, samples: Array | slice) -> Objective:
        inputs = self.inputs.take(samples)
        return replace(self, query=self.query.take(samples), truth=self.truth[samples], inputs=inputs)

    def blind(self) -> Objective:
        """The same without features."""
        inputs = self.inputs
        return replace(self, inputs=replace(inputs, features=inputs.features[:, :0]))

    def _populations(self, policy: Policy, thetas: Array) -> Iterator[tuple[int, ProgramBatch]]:
        """Yields the number of members and their programs, a part of the population at a time."""
        together = max(1, ROWS // self.query.batch)
        for first in range(0, thetas.shape[0], together):
            some = thetas[first : first + together]
            yield len(some), policy.programs(some, self.inputs).with_substeps(self.substeps)

    def outcomes(self, policy: Policy, thetas: Array) -> tuple[Array, Array]:
        """States (members, batch, channel, *grid) and work (members, batch) of every member."""
        parts = [
            measure(programs, self.dictionary, self.query, refinement=self.refinement, strict=False, members=members)
            for members, programs in self._populations(policy, thetas)
        ]
        states, work = parts[0] if len(parts) == 1 else (np.concatenate(both) for both in zip(*parts, strict=True))
        return self._by_member(states), work.reshape(-1, self.query.batch)

    def states(self, policy: Policy, thetas: Array) -> Array:
        """States (members, batch, channel, *grid) of every member."""
        parts = [self.run(members, programs) for members, programs in self._populations(policy, thetas)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def run(self, members: int, programs: ProgramBatch) -> Array:
        """States of programs (members × batch), by members."""
        states = run(programs, self.dictionary, self.query, refinement=self.refinement, strict=False, members=members)
        return self._by_member(states)

    def _by_member(self, states: Array) -> Array:
        return states.astype(np.float64, copy=False).reshape(-1, *self.truth.shape)

    def losses(self, policy: Policy, thetas: Array) -> Array:
        """Losses (members, batch)."""
        return self.losses_and_work(policy, thetas)[0]

    def losses_and_work(self, policy: Policy, thetas: Array) -> tuple[Array, Array]:
        """Losses and work, (members, batch) each."""
        if self.metric == "nrmse":
            states, work = self.outcomes(policy, thetas)
            errors = np.stack([self.errors(state).mean(axis=1) for state in states])
        else:
            far = partial(distances, dictionary=self.dictionary, query=self.query, truth=self.truth)
            parts = [
                far(programs, refinement=self.refinement, members=members)
                for members, programs in self._populations(policy, thetas)
            ]
            squares, work = (np.concatenate(both) for both in zip(*parts, strict=True))
            errors = np.sqrt(squares / self.squared_sizes()[:, 0])
        return errors + self.work_weight * work / self.unit_work, work

    def errors(self, states: Array) -> Array:
        """Relative errors (batch, group) of states."""
        if self.metric == "nrmse":
            return rel_l2_per_channel(states, self.truth, self.query.setting)
        return rel_l2(states, self.truth, self.query.setting)[:, None]

    def squared_sizes(self) -> Array:
        """‖u‖² of the truth, (batch, group)."""
        batch, channels = self.truth.shape[:2]
        squares = (self.truth.astype(np.float64) ** 2).reshape(batch, channels, -1).sum(axis=2)
        return np.maximum(squares if self.metric == "nrmse" else squares.sum(axis=1, keepdims=True), 1e-300)


@dataclass(frozen=True, eq=False)
class Fitness:
    """Job: the mean loss of members first, … of a generation on its minibatch.

    ``allowed`` is the work (batch,) that programs may take on a grid of ``refinement``. A member over it has a larger
    loss than all members within it, and the loss grows with the work, so that a population that starts over the
    allowed work can return.
    """

    objective: Objective
    policy: Policy
    optimizer: Optimizer[State]
    state: State
    allowed: Array | None = None
    refinement: int = 1

    def __call__(self, first: int, count: int) -> Array:
        thetas = self.optimizer.ask_some(self.state, first, count)
        losses, work = self.objective.losses_and_work(self.policy, thetas)
        # sums along contiguous rows are taken row by row: a member's does not depend on the other members
        means = np.ascontiguousarray(losses).mean(axis=1)
        if self.allowed is None:
            return means
        if self.refinement != self.objective.refinement:
            _, work = replace(self.objective, refinement=self.refinement).outcomes(self.policy, thetas)
        ratios = np.ascontiguousarray(work).sum(axis=1) / self.allowed.sum()
        return np.where(np.isfinite(means) & (ratios > 1 + SLACK), OVER_BUDGET * ratios, means)


@dataclass(frozen=True, eq=False)
class Residuals:
    """Job: for block after block of queries, the normal equations of the residual field at theta, or the losses of
    trial points; ``weights`` (batch, group) turn squared residuals into the metric that is reported.

    Derivatives are ∂r/∂θ = ∂r/∂τ · ∂τ/∂θ with the durations τ of the steps of the policy's only pattern. With features
    there are fewer durations than parameters, and only ∂r/∂τ needs runs of programs.
    """

    objective: Objective
    policy: Policy
    optimizer: LevenbergMarquardt
    state: LMState
    weights: Array

    @property
    def blocks(self) -> int:
        return -(-self.objective.query.batch // BLOCK)

    @property
    def runs(self) -> int:
        """Most programs that run for each query."""
        one = self.objective.inputs.take(slice(0, 1))
        return len(self.state.trials) or 1 + self.policy.programs(self.state.theta[None], one).ops.shape[1]

    def __call__(self, first: int, count: int) -> Array:
        thetas = self.optimizer.ask(self.state)
        return np.stack([self._block(index, thetas) for index in range(first, first + count)])

    def _block(self, index: int, thetas: Array) -> Array:
        samples = slice(index * BLOCK, (index + 1) * BLOCK)
        part = self.objective.take(samples)
        column = self.weights[samples].reshape(self.weights[samples].shape + (1,) * (part.truth.ndim - 2))
        weights = np.broadcast_to(column, part.truth.shape).reshape(part.query.batch, -1)
        if self.state.phase == "linearise":
            return self._gram(part, thetas, weights).reshape(-1)
        residuals = (part.states(self.policy, thetas) - part.truth).reshape(thetas.shape[0], -1)
        return np.array([np.sum(weights.reshape(-1) * row**2) for row in residuals])

    def _gram(self, part: Objective, thetas: Array, weights: Array) -> Array:
        """The normal equations of a block of queries, (1+dim, 1+dim); ``thetas`` are the stencil of the optimizer."""
        batch, written = part.query.batch, self.policy.programs(thetas, part.inputs)
        durations = written.durations.reshape(len(thetas), batch, -1)
        slopes = (durations[1:] - durations[0]) / self.optimizer.steps(self.state)[:, None, None]
        slots = np.flatnonzero(slopes.any(axis=(0, 1)))  # steps that no parameter changes need no derivative
        stencil = np.repeat(durations[:1], 1 + slots.size, axis=0)
        time = np.where(part.query.time > 0, part.query.time, 1.0)
        for row, slot in enumerate(slots, start=1):
            stencil[row, :, slot] += self.optimizer.difference * time
        steps = (stencil[1:] - durations[0])[np.arange(slots.size), :, slots]
        ops = np.tile(written.ops[:batch], (1 + slots.size, 1))
        programs = ProgramBatch(written.names, ops, stencil.reshape(len(ops), -1)).with_substeps(part.substeps)
        residuals = (part.run(1 + slots.size, programs) - part.truth).reshape(1 + slots.size, batch, -1)
        gram, lost = np.zeros((len(thetas), len(thetas))), np.zeros(len(thetas), dtype=bool)
        for sample in range(batch):
            own = normal_equations(residuals[:, sample], weights[sample], steps[:, sample]).gram
            chain = np.zeros((1 + slots.size, len(thetas)))
            chain[0, 0], chain[1:, 1:] = 1.0, slopes[:, sample, slots].T
            # a derivative that is not finite is lost for the parameters that change this step, not for all
            bad = ~np.isfinite(np.diagonal(own))
            lost |= chain[bad].any(axis=0)
            own[bad], own[:, bad] = 0.0, 0.0
            gram += np.einsum("ia,ib->ab", chain, np.einsum("ij,jb->ib", own, chain))
        gram[lost], gram[:, lost] = np.nan, np.nan
        return gram
