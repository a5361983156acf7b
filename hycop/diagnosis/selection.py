"""Selection of candidates in a linear model r ≈ Σ_k a_k J_k from its normal equations, sample by sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hycop.diagnosis.library import best_subset
from hycop.grid import Array

EXHAUSTIVE = 3
"""Up to this many terms every subset is tried; larger ones come from backward elimination."""

FINALISTS = 40
"""Candidates that backward elimination leaves for that."""

SIGNIFICANT = 4.0
"""Removing a term counts as a loss if it raises the error by so many standard deviations of the noise."""

COLLINEAR = 1e-7
"""A candidate is left out if the others explain all but this share of its response."""

RESAMPLES = 100
"""Bootstrap resamples of the samples."""


@dataclass(frozen=True, eq=False)
class Normal:
    """Normal equations of each sample: ``gram`` (sample, k, k) of the responses, their products ``right`` (sample, k)
    with the residual of the known model, its square ``total`` (sample,), and the number of values of a sample.

    Responses are scaled to a root mean square of one over the samples; ``scale`` (k,) is what they were divided by.
    """

    gram: Array
    right: Array
    total: Array
    scale: Array
    values: int

    @classmethod
    def of(cls, responses: Array, residual: Array) -> Normal:
        """From responses (k, sample, value) and the residual (sample, value), both weighted."""
        size = np.sqrt(np.einsum("ksv,ksv->ks", responses, responses).mean(axis=1))
        scale = np.where(size > 0, size, 1.0)
        samples, candidates = residual.shape[0], scale.size
        gram, right = np.empty((samples, candidates, candidates)), np.empty((samples, candidates))
        for sample, target in enumerate(residual):
            unit = responses[:, sample] / scale[:, None]
            gram[sample], right[sample] = unit @ unit.T, unit @ target
        return cls(
            gram,
            right,
            (residual**2).sum(axis=1),
            scale,
            residual.shape[1],
        )

    @property
    def samples(self) -> int:
        return int(self.total.size)

    @property
    def candidates(self) -> int:
        return int(self.scale.size)

    def weighted(self, weights: Array) -> Summed:
        """The sums over samples with weights, divided by the sum of weights."""
        share = weights / weights.sum()
        return Summed(
            np.einsum("s,skl->kl", share, self.gram),
            np.einsum("s,sk->k", share, self.right),
            float(share @ self.total),
            self.values * self.samples,
        )

    @cached_property
    def whole(self) -> Summed:
        return self.weighted(np.ones(self.samples))


@dataclass(frozen=True, eq=False)
class Summed:
    """Normal equations of all samples together: mean squares per sample."""

    gram: Array
    right: Array
    total: float
    values: int

    def fitted(self, chosen: Sequence[int]) -> Array:
        """The amounts of a subset."""
        index = list(chosen)
        left = self.gram[np.ix_(index, index)]
        return np.linalg.solve(left + 1e-13 * np.eye(len(index)), self.right[index])

    def misfit(self, chosen: Sequence[int], amounts: Array | None = None) -> float:
        """Mean square of what a subset leaves, with its own amounts or with given ones."""
        index = list(chosen)
        if not index:
            return self.total
        found = self.fitted(index) if amounts is None else amounts
        left = self.gram[np.ix_(index, index)]
        return max(0.0, float(self.total - 2 * found @ self.right[index] + found @ left @ found))

    def losses(self, chosen: Sequence[int]) -> Array:
        """By how much the mean square rises if one term is removed and the others are fitted again."""
        index = list(chosen)
        inverse = np.linalg.inv(self.gram[np.ix_(index, index)] + 1e-13 * np.eye(len(index)))
        amounts = inverse @ self.right[index]
        return amounts**2 / np.diag(inverse)

    def eliminated(self, chosen: Sequence[int], down_to: int) -> list[tuple[int, ...]]:
        """Subsets of falling size: each without the term of smallest t-value of the one before."""
        current = list(chosen)
        path = [tuple(current)]
        while len(current) > down_to:
            current.pop(int(np.argmin(self.losses(current))))
            path.append(tuple(current))
        return path


def independent(summed: Summed, order: Sequence[int]) -> list[int]:
    """Candidates in the given order, without those that earlier ones explain: they cannot be told apart by the data."""
    kept: list[int] = []
    for index in order:
        size = summed.gram[index, index]
        if size <= 1e-12:
            continue
        if kept:
            left = summed.gram[np.ix_(kept, kept)]
            right = summed.gram[kept, index]
            rest = size - right @ np.linalg.solve(left + 1e-13 * np.eye(len(kept)), right)
            if rest <= COLLINEAR * size:
                continue
        kept.append(index)
    return kept


@dataclass(frozen=True)
class Choice:
    """A subset with its amounts (in units of scaled responses) and the mean square that it leaves."""

    chosen: tuple[int, ...]
    amounts: tuple[float, ...]
    misfit: float


def select(summed: Summed, among: Sequence[int], tolerance: float, noise: float) -> Choice:
    """The smallest subset whose error is above that of all candidates together by no more than the tolerance (a root
    mean square) and by what noise explains. ``noise`` is the mean square of white noise per sample.

    Backward elimination from all candidates, because forward selection fails where terms cancel; small subsets are
    searched exhaustively.
    """
    path = summed.eliminated(among, min(len(among), FINALISTS))
    few = path[-1]
    path += summed.eliminated(few, 1)[1:]
    lowest = summed.misfit(path[0])
    by_size: dict[int, tuple[int, ...]] = {len(subset): subset for subset in path}
    by_size[0] = ()
    per_value = noise / summed.values
    for size in sorted(by_size):
        subset = by_size[size]
        if 1 <= size <= EXHAUSTIVE and size < len(few):
            best = best_subset(summed.gram, summed.right, few, size)
            subset = subset if best is None else best[1]
        lost = len(path[0]) - size
        allowed = tolerance**2 + per_value * (lost + SIGNIFICANT * np.sqrt(2 * lost) + SIGNIFICANT**2)
        misfit = summed.misfit(subset)
        if misfit <= lowest + allowed:
            break
    amounts = summed.fitted(subset) if subset else np.zeros(0)
    order = np.argsort(subset)
    return Choice(tuple(int(subset[i]) for i in order), tuple(float(amounts[i]) for i in order), misfit)


def standard_errors(normal: Normal, chosen: Sequence[int], amounts: Array) -> Array:
    """Standard errors of the amounts from the scatter between samples (sandwich estimator, one cluster a sample)."""
    index = list(chosen)
    if not index:
        return np.zeros(0)
    gram = normal.gram[:, index][:, :, index]
    score = normal.right[:, index] - np.einsum("skl,l->sk", gram, amounts)
    bread = np.linalg.inv(gram.sum(axis=0))
    freedom = normal.samples / max(1, normal.samples - len(index))
    covariance = bread @ (score.T @ score) @ bread * freedom
    return np.sqrt(np.maximum(np.diag(covariance), 0.0)) / normal.scale[index]


def worst_bias(normal: Normal, chosen: Sequence[int], size: float) -> Array:
    """The most by which a systematic error of the states, of a given root mean square, can shift each amount."""
    index = list(chosen)
    inverse = np.linalg.inv(normal.whole.gram[np.ix_(index, index)])
    return size * np.sqrt(np.diag(inverse)) / normal.scale[index]


def certainty(
    normal: Normal,
    among: Sequence[int],
    chosen: Sequence[int],
    rivals: Sequence[int],
    tolerance: float,
    noise: float,
    seed: int = 0,
) -> float:
    """The fraction of bootstrap resamples of the samples in which the same subset is selected, also from ``rivals``,
    which are no candidates. Rivals that candidates explain can take nothing from them and are left out."""
    path = normal.whole.eliminated(among, min(len(among), FINALISTS // 2))
    few = sorted({*path[-1], *chosen})
    few = independent(normal.whole, [*few, *rivals])
    stream = np.random.Generator(np.random.Philox(key=[seed, normal.samples]))
    hits = 0
    for _ in range(RESAMPLES):
        drawn = stream.integers(0, normal.samples, normal.samples)
        weights = np.bincount(drawn, minlength=normal.samples).astype(np.float64)
        hits += select(normal.weighted(weights), few, tolerance, noise).chosen == tuple(sorted(chosen))
    return hits / RESAMPLES


def stand_ins(
    summed: Summed, among: Sequence[int], chosen: Sequence[int], tolerance: float, noise: float
) -> dict[int, list[int]]:
    """For each chosen candidate those that could stand in its place without a larger error: they form a group."""
    base = summed.misfit(chosen)
    allowed = 0.25 * tolerance**2 + noise / summed.values * SIGNIFICANT
    groups: dict[int, list[int]] = {}
    for index in chosen:
        rest = [other for other in chosen if other != index]
        groups[index] = [
            other for other in among if other not in chosen and summed.misfit([*rest, other]) <= base + allowed
        ]
    return groups
