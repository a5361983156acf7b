"""The gate: a learned policy is kept only if it beats the best classical scheme at equal work on held-out queries.

That is a splitting, or an unsplit solver made of the same primitives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

import numpy as np

from hycop.data import Dataset
from hycop.dictionary import Dictionary
from hycop.errors import NonFiniteStateError
from hycop.evaluation import Composed, Rivals, errors_of
from hycop.execution import Outcome
from hycop.grid import Array, Grid
from hycop.primitive import boundaries_of
from hycop.primitives.exponential import ExponentialRungeKutta
from hycop.query import Query, Setting
from hycop.schemes import MOST_SUBSTEPS, Classical, Unsplit, classical, splitting
from hycop.scope import WithinTraining

EXTREME = 0.1
"""Fraction of the held-out queries that counts as extreme: those furthest out in their features."""

STABLE = 2.5
"""Step times rate up to which a method of fourth order is stable on its own, 2.8, with a margin."""

MARGIN = 1e-3
"""The learned error must be smaller by this fraction; a smaller lead is rounding."""

CONFIDENT = 0.95
"""Fraction of bootstrap resamples in which a policy must win to be kept."""

RESAMPLES = 2000
"""Number of bootstrap resamples of the held-out samples."""


@dataclass(frozen=True)
class Gate:
    """The decision of a run and its numbers: mean errors on the held-out queries and on their most extreme tenth.

    - ``kept``: the learned policy writes the programs. Its ``confidence`` is at least 95 %: the fraction of paired
      bootstrap resamples of the held-out samples in which its mean error is smaller. Otherwise it is a tie or a loss,
      and the classical scheme stays.
    - ``classical_when_clipped``: queries with a feature outside its trained range get classical programs, because the
      policy was not better on the most extreme tenth.
    - ``classical_when_repeated``: beyond the trained times the policy writes only the first segment, and the classical
      scheme the others.
    - ``classical_when_far``: queries far outside training (``Scope.far``) get classical programs, because the held-out
      queries say nothing about them.
    - ``splitting`` and ``splitting_cover``: the best splitting, if ``classical`` is an unsplit solver. It stands in
      where that cannot be made: after a swap, of a primitive without a rate.
    - ``whole``: the dictionary of the problem whose only primitive advances the whole equation with a smaller error at
      no more work, if there is one; ``whole_refinement``, ``whole_error`` and ``whole_work`` are its numbers.
    - ``instead``: the name of that primitive, beside the dictionary of the model, if it is used: a program is a step of
      it instead of a composition, except between boundaries that it does not know. The other numbers are those of
      compositions, which are used again after a swap of one of their primitives.
    - ``reach``: the largest product of a step of that solver and the fastest rate of what it does not integrate
      exactly, on the held-out queries. Queries outside training take as many more steps as keep below it.
    """

    kept: bool
    classical: str
    learned_error: float
    classical_error: float
    learned_extreme: float
    classical_extreme: float
    classical_when_clipped: bool
    learned_work: float
    classical_work: float
    samples: int
    classical_when_repeated: bool = False
    classical_when_far: bool = True
    cover: tuple[str, ...] | None = None
    confidence: float | None = None
    splitting: str | None = None
    splitting_cover: tuple[str, ...] | None = None
    reach: float | None = None
    whole: str | None = None
    whole_refinement: int | None = None
    whole_error: float | None = None
    whole_work: float | None = None
    instead: str | None = None

    @property
    def scheme(self) -> Classical:
        """The classical scheme."""
        if self.instead is not None:
            return splitting("Lie").within((self.instead,))
        return classical(self.classical).within(self.cover)

    def composes(self, dictionary: Dictionary, grid: Grid) -> bool:
        """Whether programs are compositions: unless a solver of the whole equation is used ``instead``."""
        return self.instead is None or not grid.boundary_kinds <= boundaries_of(dictionary[self.instead])

    def used(self, dictionary: Dictionary, grid: Grid) -> tuple[str, ...]:
        """The primitives that answer on a grid: those of the dictionary, or the one that is used instead."""
        whole = self.instead
        return dictionary.names if whole is None or self.composes(dictionary, grid) else (whole,)

    def scheme_for(self, dictionary: Dictionary, setting: Setting) -> Classical:
        """The classical scheme, or the splitting that stands in for an unsplit solver that cannot be made."""
        if self.instead is not None and self.composes(dictionary, setting.grid):
            return self.of_compositions().scheme_for(dictionary, setting)
        found = self.scheme
        if self.splitting is None or not isinstance(found, Unsplit) or found.runs(dictionary, setting):
            return found
        return classical(self.splitting).within(self.splitting_cover)

    def cuts(self, scheme: Unsplit, dictionary: Dictionary, query: Query, outside: Array, refinement: int) -> Array:
        """How many times each query takes the steps of an unsplit solver, (batch,): once; as often as its rates ask for
        if it lies ``outside`` training, so that the solver is no less stable there than on the held-out queries, and
        stable also where nothing damps what they turn. A grid that is ``refinement`` times finer turns as much faster.
        """
        cuts, there = np.ones(query.batch, dtype=np.int64), np.flatnonzero(outside)
        if self.reach and there.size:
            most = min(self.reach, STABLE / refinement)
            wanted = np.nan_to_num(step_reach(scheme, dictionary, query.take(there)) / most)
            cuts[there] = np.ceil(np.clip(wanted * (1 - MARGIN), 1, MOST_SUBSTEPS)).astype(np.int64)
        return cuts

    def check(self, dictionary: Dictionary) -> None:
        """Refuses a dictionary with which the classical scheme, or what stands in for it, cannot be run."""
        found = self.scheme
        for name in self.cover or ():
            dictionary[name]
        if self.instead is not None:
            self.of_compositions().check(dictionary)
        (found if self.splitting is None else classical(self.splitting).within(self.splitting_cover)).check(dictionary)

    @property
    def learned(self) -> bool:
        """Whether the learned policy writes the programs."""
        return self.kept and self.instead is None

    @property
    def error(self) -> float:
        """Held-out error of the programs that the model writes: the learned ones if kept, else the classical ones."""
        if self.instead is not None and self.whole_error is not None:
            return self.whole_error
        return self.learned_error if self.kept else self.classical_error

    @property
    def work(self) -> float:
        """Their mean work."""
        if self.instead is not None and self.whole_work is not None:
            return self.whole_work
        return self.learned_work if self.kept else self.classical_work

    def of_compositions(self) -> Gate:
        """The gate under which programs are compositions."""
        return replace(self, instead=None)

    def opened(self) -> Gate:
        """The gate under which the policy writes every program, as it was learned."""
        return replace(
            self.of_compositions(),
            kept=True,
            classical_when_clipped=False,
            classical_when_repeated=False,
            classical_when_far=False,
        )

    def closed(self) -> Gate:
        """The gate under which the classical scheme writes every program."""
        return replace(self, kept=False)

    def explained(self) -> list[str]:
        """The decision and its numbers, in words."""
        sure = "" if self.confidence is None else f", better in {self.confidence:.0%} of resamples"
        unsplit = "" if self.splitting is None else f", unsplit; the best splitting is {self.splitting}"
        lines = [
            f"held-out error {self.learned_error:.3e}, best classical scheme at equal work ({self.classical}{unsplit}) "
            f"{self.classical_error:.3e}, on {self.samples} queries{sure}"
        ]
        if self.instead is not None:
            return [*lines, *self._without_splitting()]
        if not self.kept:
            even = self.confidence is not None and self.confidence > 1 - CONFIDENT
            reason = "no clear winner" if even else "not better"
            return [*lines, f"{reason}: the programs are those of {self.classical}", *self._without_splitting()]
        lines.append("kept: the programs are the policy's")
        if self.classical_when_clipped:
            lines.append(
                f"but not outside the trained ranges: on the most extreme tenth its error was "
                f"{self.learned_extreme:.3e}, that of {self.classical} {self.classical_extreme:.3e}"
            )
        if self.classical_when_repeated:
            lines.append(f"beyond the trained times {self.classical} goes on from where the policy's program ends")
        if self.classical_when_far and not self.classical_when_clipped:
            lines.append(f"far outside the trained ranges the programs are those of {self.classical}")
        return [*lines, *self._without_splitting()]

    def _without_splitting(self) -> list[str]:
        if self.whole is None or self.whole_error is None or self.whole_work is None:
            return []
        share = self.whole_work / self.of_compositions().work
        numbers = f"refinement={self.whole_refinement} errs by {self.whole_error:.3e} at {share:.0%} of the work"
        if self.instead is None:
            return [
                f"without splitting, dictionary={self.whole} with {numbers}: for queries like these it is the better "
                "choice"
            ]
        return [
            f"without splitting, {self.instead} with {numbers}: the programs are its steps (unsplit=false keeps the "
            "composition)"
        ]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def confidence(ours: Array, theirs: Array, groups: int) -> float:
    """Confidence that the mean of ``ours`` is smaller by more than rounding: the fraction of paired bootstrap resamples
    in which it is. Errors (query,) come from ``groups`` samples with equally many queries each. Samples are drawn, not
    queries, because the errors of one sample at several times are correlated."""
    if not np.isfinite(theirs).all():
        return float(np.isfinite(ours).all())
    if not np.isfinite(ours).all():
        return 0.0
    lead = ((1 - MARGIN) * theirs - ours).reshape(groups, -1).mean(axis=1)
    stream = np.random.Generator(np.random.Philox(key=[groups, 0]))
    drawn = lead[stream.integers(0, groups, (RESAMPLES, groups))].mean(axis=1)
    return float((drawn > 0).mean())


def gate(
    learned: Outcome,
    rivals: Rivals,
    dictionary: Dictionary,
    held_out: Dataset,
    features: Array,
    refinement: int = 1,
    error: str = "rel_l2",
    covers: Sequence[tuple[str, ...]] = (),
) -> Gate:
    """Compares the learned states with those of the best of ``rivals`` query by query; ``features`` are normalised.
    The rivals were asked for the held-out queries.
    ``covers`` are the sets of primitives that a splitting may compose where those of its own were not trained."""
    query, truth, scheme = held_out.query, held_out.truth, rivals.best
    states, cost = rivals.answers or Composed(WithinTraining(scheme, covers), dictionary, refinement).solve(query)
    ours, theirs = (errors_of(error, found, truth, query) for found in (learned.states, states))
    reach = np.abs(features).max(axis=1) if features.shape[1] else np.zeros(query.batch)
    if not (np.isfinite(ours.mean()) or np.isfinite(theirs.mean())):
        raise NonFiniteStateError(
            "neither the learned nor the classical programs have a finite error on the held-out queries; check the data"
        )
    extreme = np.argsort(-reach, kind="stable")[: max(1, int(EXTREME * query.batch))]
    sure = confidence(ours, theirs, held_out.samples)
    unsplit = isinstance(scheme, Unsplit)
    return Gate(
        kept=sure >= CONFIDENT,
        classical=str(scheme),
        learned_error=float(ours.mean()),
        classical_error=float(theirs.mean()),
        learned_extreme=float(ours[extreme].mean()),
        classical_extreme=float(theirs[extreme].mean()),
        classical_when_clipped=bool(not ours[extreme].mean() < theirs[extreme].mean()),
        learned_work=float(learned.work.mean()),
        classical_work=float(cost.mean()),
        samples=query.batch,
        cover=scheme.cover,
        confidence=sure,
        splitting=str(rivals.splitting) if unsplit else None,
        splitting_cover=rivals.splitting.cover if unsplit else None,
        reach=float(step_reach(scheme, dictionary, query).max()) if isinstance(scheme, Unsplit) else None,
    )


def step_reach(scheme: Unsplit, dictionary: Dictionary, query: Query) -> Array:
    """Step of an unsplit solver times the fastest rate of what it does not integrate exactly, (batch,)."""
    solver = cast(ExponentialRungeKutta, dictionary[scheme.step_of(dictionary)])
    return np.asarray(query.time / scheme.steps * solver.fastest(query.u0.astype(np.float64), query.setting))
