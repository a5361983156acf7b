"""Shares of the steps of a program: a softmax within each group of steps."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LOST = 1e-300
"""Sums of weights below this count as zero."""


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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def divide(groups: Array, weights: Array, amounts: Array) -> Array:
    """Shares amounts (row, group) among the steps of each group by their weights ≥ 0, (row, step), or equally if all
    of these are zero: they may have underflowed, but no time must be lost. Steps of a group below 0 get none."""
    rows, steps = groups.shape
    out, sums, counts = np.zeros((rows, steps)), np.empty(amounts.shape[1]), np.empty(amounts.shape[1])
    for row in range(rows):
        sums[:], counts[:] = 0.0, 0.0
        for step in range(steps):
            if groups[row, step] >= 0:
                sums[groups[row, step]] += weights[row, step]
                counts[groups[row, step]] += 1.0
        for step in range(steps):
            group = groups[row, step]
            if group >= 0:
                lost = sums[group] < LOST
                weight, whole = (1.0, counts[group]) if lost else (weights[row, step], sums[group])
                out[row, step] = weight * amounts[row, group] / whole
    return out
