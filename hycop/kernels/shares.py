"""Shares of the steps of a program: a softmax within each group of steps."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def deal(logits: Array, tilts: Array, features: Array, groups: Array, amounts: Array) -> None:
    """amounts[member, query, step] ← amounts·exp(l)/Σ exp(l), the sum over the steps of one group, with
    l = logits[member, step] + Σ_j tilts[member, step, j]·features[query, j]."""
    members, queries, steps = amounts.shape
    weights, most, sums = np.empty(steps), np.empty(steps), np.empty(steps)
    for member in range(members):
        for query in range(queries):
            most[:], sums[:] = -np.inf, 0.0
            for step in range(steps):
                logit = logits[member, step]
                for j in range(tilts.shape[2]):
                    logit += tilts[member, step, j] * features[query, j]
                weights[step] = logit
                most[groups[step]] = max(most[groups[step]], logit)
            for step in range(steps):
                # against overflow; within each group, because large logits of one must not make the weights of
                # another vanish
                weights[step] = math.exp(weights[step] - most[groups[step]])
                sums[groups[step]] += weights[step]
            for step in range(steps):
                amounts[member, query, step] *= weights[step] / sums[groups[step]]
