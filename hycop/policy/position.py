"""The paper's policy: an operator and a duration for each position of the program."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from hycop.grid import Array
from hycop.policy.allotment import Allotment, Inputs, allotted, seen_by
from hycop.policy.slot import LONGEST
from hycop.policy.theta import Layout, carried, checked_thetas, laid_out
from hycop.program import EMPTY, ProgramBatch

POSITION_SCALE = 4.0

NEVER_CHOSEN = 1.0
"""Start logits of a new primitive lie this far below all others, so that it has no position yet."""


def _but_logits(layout: Layout) -> Layout:
    return {name: part for name, part in layout.items() if not name.endswith(".logits")}


@dataclass(frozen=True)
class PositionPolicy:
    """The paper's form: for each of ``longest`` positions, logits of the primitives and a duration softplus(a), and a
    length k between ``shortest`` and ``longest``; features shift the logits of all positions and the length.

    The operator of a position is the argmax, in training too. Durations are budgeted as in every policy; a process
    without a position gets one step for its whole time at the end. Logits, durations and length are four times theta:
    in these units the paper's σ = 0.02 and learning rate can move between programs within its 200 generations.
    """

    allotment: Allotment
    features: int
    longest: int = LONGEST
    shortest: int = 2

    @property
    def _names(self) -> int:
        return len(self.allotment.names)

    @property
    def _base(self) -> int:
        return self.longest * (self._names + 1) + 1

    @property
    def size(self) -> int:
        return self._base + (self._names + 1) * self.features + self.allotment.size

    def layout(self) -> Layout:
        """Logits and durations by position, the length, the feature weights of each, then the allotment's
        parameters."""
        names = self.allotment.names
        return laid_out(
            [
                *((f"{position}.logits", self._names) for position in range(self.longest)),
                ("durations", self.longest),
                ("length", 1),
                *((f"{name}.shift", self.features) for name in names),
                ("length.shift", self.features),
                *self.allotment.sizes(),
            ]
        )

    def adding(self, theta: Array, name: str, allotment: Allotment) -> tuple[PositionPolicy, Array]:
        """The new primitive has no position at first; a step for its process is appended until one is learned."""
        policy = replace(self, allotment=allotment)
        return policy, self._moved(theta, policy)

    def without(self, theta: Array, name: str, allotment: Allotment | None = None) -> tuple[PositionPolicy, Array]:
        """Each position of the primitive goes to the next best one."""
        policy = replace(self, allotment=self.allotment if allotment is None else allotment)
        if allotment is None:
            theta = theta.copy()
            logits = theta[: self.longest * self._names].reshape(self.longest, self._names)
            logits[:, self.allotment.names.index(name)] = logits.min() - NEVER_CHOSEN
        return policy, self._moved(theta, policy)

    def _moved(self, theta: Array, policy: PositionPolicy) -> Array:
        """Theta for other names: known names keep their logits, and new names are not chosen at first."""
        old, new = self.allotment.names, policy.allotment.names
        logits = theta[: self.longest * len(old)].reshape(self.longest, len(old))
        start = np.zeros(policy.size)
        moved = start[: self.longest * len(new)].reshape(self.longest, len(new))
        moved[:] = logits.min() - NEVER_CHOSEN
        for column, name in enumerate(new):
            if name in old:
                moved[:, column] = logits[:, old.index(name)]
        return carried(theta, _but_logits(self.layout()), policy.layout(), start)

    def programs(self, thetas: Array, inputs: Inputs) -> ProgramBatch:
        thetas = POSITION_SCALE * checked_thetas(thetas, self.size)
        members, batch, n, k = thetas.shape[0], inputs.batch, self._names, self.longest
        logits = thetas[:, : k * n].reshape(members, 1, k, n)
        weights = np.logaddexp(0.0, thetas[:, k * n : k * (n + 1)])
        shifts = thetas[:, self._base : self._base + (n + 1) * self.features].reshape(members, n + 1, self.features)
        seen = seen_by(shifts, inputs.features[:, : self.features])
        ops = np.argmax(logits + seen[:, :, None, :n], axis=3)
        share = expit(thetas[:, None, k * (n + 1)] + seen[:, :, n])
        length = np.rint(self.shortest + (self.longest - self.shortest) * share).astype(np.int64)
        ops = np.where(np.arange(k) < length[..., None], ops, EMPTY).reshape(members * batch, k)
        rows = np.repeat(weights, batch, axis=0)
        allotment = self.allotment
        amounts = allotment.amounts(thetas[:, self._base + (n + 1) * self.features :], inputs).reshape(-1, n)
        if allotment.budget != "literal":
            ops, rows = self._completed(ops, rows, amounts)
        return ProgramBatch(
            allotment.names, ops, allotted(ops, rows, amounts, np.tile(inputs.time, members), allotment.budget)
        )

    def _completed(self, ops: Array, weights: Array, amounts: Array) -> tuple[Array, Array]:
        """Appends a slot for every primitive that has time but no position."""
        missing = np.stack([(ops != op).all(axis=1) for op in range(self._names)], axis=1) & (amounts > 0)
        missing[:, list(self.allotment.redundant)] = False
        extra = np.where(missing, np.arange(self._names), EMPTY)
        return np.concatenate([ops, extra], axis=1), np.concatenate([weights, np.ones_like(extra, dtype=float)], axis=1)
