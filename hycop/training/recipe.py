"""Learns a policy: by evolution strategies, or by the default recipe of pattern search and least squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from hycop.errors import IncompatibleError, NonFiniteStateError
from hycop.evolution import CMA, LevenbergMarquardt, LMState, NormalEquations, OpenES, Optimizer, State
from hycop.executors import Executor
from hycop.grid import Array
from hycop.policy import (
    MOST_PARAMETERS,
    Allotment,
    Pattern,
    Policy,
    PositionPolicy,
    SlotPolicy,
    affordable_tilts,
)
from hycop.training.checkpoint import Journal
from hycop.training.config import TrainingConfig
from hycop.training.objective import (
    COSTED,
    OVER_BUDGET,
    SLACK,
    Fitness,
    Objective,
    Residuals,
    infinite_if_lost,
    mean_work,
    work_of,
)
from hycop.training.portfolio import patterns
from hycop.training.progress import Meter
from hycop.training.selector import selector

RIVAL = 1.5
FEWEST, FEW = 8, 32
"""Queries on which every pattern is tried, and on which the best are: half of them on twice as many, and so on."""

START_DEVIATION = 0.125
"""Standard deviation of a random start."""

Start: TypeAlias = tuple[Policy, Array]
"""A policy with its theta."""

JUDGES, EVERY = 256, 10
"""Queries on which the theta of an evolution strategy is judged, and generations between two judgements."""

FINALISTS = 12
"""Patterns that are tried on all queries."""

RIDGE = 1e-4
"""Weight of ‖θ‖² in least squares, as a fraction of the loss."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """The parts of a run that do not change while it learns; errors and work of patterns that were ``_tried``."""

    objective: Objective
    allotment: Allotment
    processes: tuple[str, ...]
    config: TrainingConfig
    seed: int
    executor: Executor
    journal: Journal
    meter: Meter
    start: Start | None = None
    _tried: dict[Pattern, tuple[Array, ...]] = field(default_factory=dict, init=False, repr=False)

    @property
    def features(self) -> int:
        return int(self.objective.inputs.features.shape[1])

    def learn(self) -> Start:
        if self.config.optimizer != "recipe":
            return self._evolved()
        return self._searched_and_polished() if self.start is None else self._polished_from(*self.start)

    def static(self, policy: Policy) -> Array | None:
        """The ablation of a slot policy: one program for all queries, of the same pattern, polished in the same way."""
        if not isinstance(policy, SlotPolicy) or self.config.optimizer != "recipe":
            return None
        blind = replace(self, objective=self.objective.blind())
        return blind._polished(policy.alone(), np.zeros(policy.alone().size), 2, "static")

    def _done(self, stage: str, step: int, of: int, loss: float) -> None:
        """Ends a round: writes a line of the history and reports progress."""
        self.journal.note(stage=stage, step=step, of=of, loss=loss)
        self.meter.round_done()
        self.meter.tell(stage, step, of, loss)

    def _evolved(self) -> tuple[Policy, Array]:
        """The paper's Algorithm 1 (or CMA): minibatches of queries, a population, only losses. Algorithm 1 returns the
        theta that is best on more queries, of those after every tenth generation."""
        config = self.config
        policy, theta = self.start or self._classical_start()
        if self.start is None and config.start == "random":
            theta = START_DEVIATION * np.random.Generator(_stream(self.seed, 1)).standard_normal(policy.size)
        optimizer: Optimizer[Any] = (
            OpenES(config.population, config.sigma, config.learning_rate, config.weight_decay)
            if config.optimizer == "openes"
            else CMA(config.population, config.sigma)
        )
        whole = self.objective
        batch = min(config.minibatch, whole.query.batch)
        self.meter.plan(config.generations, *self._classical())

        def step(state: State) -> State:
            # a stream of its own for every generation, so that a resumed run draws the same minibatches
            stream = _stream(self.seed, 2, state.generation)
            samples = np.sort(np.random.Generator(stream).choice(whole.query.batch, batch, replace=False))
            allowed = None if self._allowed is None else self._allowed[samples]
            job = Fitness(whole.take(samples), policy, optimizer, state, allowed, config.refinement)
            losses = self.executor.map(job, optimizer.members(state))
            self.meter.evaluated(losses.size * batch)
            state = optimizer.tell(state, losses)
            told = losses[losses < OVER_BUDGET] if (losses < OVER_BUDGET).any() else losses[np.isfinite(losses)]
            self._done(config.optimizer, state.generation, config.generations, float(np.median(told)))
            return state

        if isinstance(optimizer, OpenES):
            # minibatches are noisy and so is the last theta
            judges, seen = whole.take(slice(0, JUDGES)), []
            for generation in range(0, config.generations, EVERY):
                state = replace(optimizer.start(theta, self.seed), generation=generation)
                theta = self.journal.follow(state, step, min(generation + EVERY, config.generations))
                seen.append((self._excess(policy, theta), *_standing(judges.losses(policy, theta[None])), theta))
            theta = min(seen, key=lambda entry: entry[:3])[3]
        else:
            theta = self.journal.follow(optimizer.start(theta, self.seed), step, config.generations)
        if self._excess(policy, theta) > 0:
            raise IncompatibleError(
                f"after {config.generations} generations the programs still take more than max_work={config.max_work}; "
                "allow more max_work or generations, fewer max_steps, or set optimizer=recipe, policy=slot"
            )
        return policy, theta

    def _classical_start(self) -> Start:
        policy = self._policy()
        return policy, np.zeros(policy.size)

    def _policy(self) -> Policy:
        if self.config.policy == "slot":
            return self._as_it_stands(self._ranked()[0])[0]
        names = len(self.allotment.names)
        base = PositionPolicy(self.allotment, 0, self.config.max_steps).size
        room = max(0, (MOST_PARAMETERS - base) // (names + 1))
        return PositionPolicy(self.allotment, min(self.features, room), self.config.max_steps)

    def _classical(self) -> tuple[str, float]:
        """The best classical scheme within the allowed steps and work, and its loss on the training queries."""
        classical = [entry for entry in self._scored if "," not in entry[2]] or self._scored
        loss, _, name, _ = min(classical, key=lambda entry: entry[:3])
        return name, loss

    def _ranked(self) -> list[Pattern]:
        """Operator orders from the best classical start to the worst, each once; only those within the allowed work and
        with a finite loss."""
        best: dict[tuple[int, ...], Pattern] = {}
        for loss, _, _, pattern in sorted(self._scored, key=lambda entry: entry[:3]):
            if np.isfinite(loss):
                best.setdefault(pattern.ops, pattern)
        if not best:
            raise NonFiniteStateError(
                f"no classical program of at most {self.config.max_steps} steps stays finite on every training query; "
                "allow shorter steps with max_steps or substeps, or check the data"
            )
        return list(best.values())

    @cached_property
    def _scored(self) -> list[tuple[float, int, str, Pattern]]:
        """Patterns within the allowed steps and work, with their untrained loss, length and origin. All are tried on
        few queries, half of them on twice as many, and the best on all queries. Patterns of infinite loss count only if
        there are no others."""
        config = self.config
        found = patterns(self.objective.dictionary, self.processes, self.objective.query, config.max_steps)
        allowed = [pattern for pattern in found if not self._excess(*self._as_it_stands(pattern)) > 0]
        if not allowed:
            raise IncompatibleError(
                f"no program of at most {config.max_steps} steps and work {config.max_work} covers every process; "
                "allow more with max_steps or max_work"
            )
        hopeful, count = allowed, FEWEST
        while count <= FEW:  # the best are first, and only they are tried on more queries
            racing = max(FINALISTS, len(allowed) * FEWEST // count)
            first = sorted((self._score(each, count) for each in hopeful[:racing]), key=lambda entry: entry[:3])
            hopeful, count = [*(entry[3] for entry in first), *hopeful[racing:]], 2 * count
        whole = (self._score(pattern, self.objective.query.batch) for pattern in hopeful)
        best = islice((entry for entry in whole if np.isfinite(entry[0])), FINALISTS)
        return list(best) or [self._score(pattern, FEW) for pattern in allowed]

    def _as_it_stands(self, pattern: Pattern) -> tuple[SlotPolicy, Array]:
        tilts = affordable_tilts(self.config.tilts, self.allotment, self.features, self.config.max_steps)
        policy = SlotPolicy((pattern,), self.allotment, self.features, tilts)
        return policy, np.zeros(policy.size)

    def _score(self, pattern: Pattern, count: int) -> tuple[float, int, str, Pattern]:
        """Loss of a pattern as it stands, on the first queries; the rest decides between equal losses.

        Redundant primitives get no time here: their effect would hide which pattern is best.
        """
        policy = SlotPolicy((pattern,), replace(self.allotment, redundant=()), self.features)
        known = self._tried.get(pattern, ())
        new = self._inside(policy).objective.take(slice(len(known[0]) if known else 0, count))
        if new.query.batch:
            states, work = new.outcomes(policy, np.zeros((1, policy.size)))
            more = infinite_if_lost(new.errors(states[0])), work[0]
            known = tuple(map(np.concatenate, zip(known, more, strict=True))) if known else more
            self._tried[pattern] = known
        errors, work = known
        loss = float(errors.mean() + self.config.work_weight * work.mean() / new.unit_work)
        return float(infinite_if_lost(loss)), len(pattern.ops), pattern.origin, pattern

    def _excess(self, policy: Policy, theta: Array) -> float:
        """Fraction by which the mean work exceeds the allowed work; 0 if it does not."""
        if self.config.max_work is None:
            return 0.0
        objective = self.objective
        work = mean_work(policy, theta, objective.dictionary, objective.query, objective.inputs, self.config)
        excess = work / self.config.max_work - 1
        return excess if excess > SLACK else 0.0

    @cached_property
    def _allowed(self) -> Array | None:
        """The allowed work of each training query. ``max_work`` is a mean, but a minibatch may hold costly queries
        only, so it is divided in proportion to the work of a pattern within it."""
        if self.config.max_work is None:
            return None
        objective, pattern = self.objective, min(self._scored, key=lambda entry: entry[:3])[3]
        policy, theta = self._as_it_stands(pattern)
        work = work_of(policy, theta, objective.dictionary, objective.query, objective.inputs, self.config)
        return np.asarray(self.config.max_work * work / work[:COSTED].mean())

    def _searched_and_polished(self) -> tuple[Policy, Array]:
        """Short least squares on the most promising patterns, long ones on the best, then the choice among those."""
        config = self.config
        tried = []
        # each try is a round, each of the patterns kept is polished for some, and the static program for two
        self.meter.plan(config.tries + config.patterns * config.rounds + 2, *self._classical())
        for pattern in self._candidates():
            policy, start = self._as_it_stands(pattern)
            inside = self._inside(policy)
            policy, theta = inside._lean(policy, inside._polished(policy, start, 1, f"try {pattern.origin}"))
            tried.append((inside._loss(policy, theta), policy, theta))
        tried.sort(key=lambda entry: entry[0])
        if not self._mixed:
            # a pattern far behind the best is not chosen for enough queries to be worth polishing
            tried = [entry for entry in tried[: config.patterns] if entry[0] <= RIVAL * tried[0][0]]
        polished: list[tuple[SlotPolicy, Array]] = []
        for _, policy, theta in tried:
            label = f"polish {policy.patterns[0].origin}"
            polished.append((policy, self._inside(policy)._polished(policy, theta, config.rounds, label)))
        polished.sort(key=lambda entry: self._loss(*entry))
        return self._joined(polished)

    @property
    def _mixed(self) -> bool:
        """Whether some queries lie outside what some primitives were trained on."""
        barred = self.objective.inputs.barred
        return barred is not None and bool(barred.any()) and len(self.allotment.covers) > 1

    def _candidates(self) -> list[Pattern]:
        """The patterns to try: the best ones, or, if queries are mixed, the best of each cover."""
        ranked = self._ranked()
        if not self._mixed:
            return ranked[: self.config.tries]
        best: dict[frozenset[int], Pattern] = {}
        for pattern in ranked:
            best.setdefault(frozenset(pattern.ops) - set(self.allotment.redundant), pattern)
        return list(best.values())[: max(self.config.patterns, self.config.tries)]

    def _inside(self, policy: SlotPolicy) -> Recipe:
        """The recipe for those queries alone that a policy of one pattern may be chosen for."""
        barred = policy.barred_patterns(self.objective.inputs)
        if barred is None or not barred.any() or barred.all():
            return self
        return replace(self, objective=self.objective.take(np.flatnonzero(~barred[:, 0])))

    def _polished_from(self, policy: Policy, theta: Array) -> Start:
        """Polishes every pattern of a given policy from its theta, without a search."""
        if not isinstance(policy, SlotPolicy):
            raise IncompatibleError(
                f"a {type(policy).__name__} cannot be polished by least squares; set optimizer=openes to go on with it"
            )
        rounds = self.config.rounds
        self.meter.plan(len(policy.patterns) * rounds + 2, *self._classical())
        polished: list[tuple[SlotPolicy, Array]] = []
        for index, pattern in enumerate(policy.patterns):
            one, start = policy.alone_with(index, theta)
            found = self._polished(one, start, rounds, f"polish {pattern.origin}")
            polished.append((one, found if self._loss(one, found) <= self._loss(one, start) else start))
        polished.sort(key=lambda entry: self._loss(*entry))
        return self._joined(polished)

    def _lean(self, policy: SlotPolicy, theta: Array) -> tuple[SlotPolicy, Array]:
        """The policy without its redundant primitives, unless they lower the loss: a mass can come close to 0 and still
        cost a step."""
        if not self.allotment.redundant:
            return policy, theta
        lean, rest = policy, theta
        for op in self.allotment.redundant:
            lean, rest = lean.without(rest, self.allotment.names[op])
        return (lean, rest) if self._loss(lean, rest) <= self._loss(policy, theta) else (policy, theta)

    def _loss(self, policy: Policy, theta: Array) -> float:
        """Mean loss on the training queries; infinite over the allowed work."""
        if self._excess(policy, theta) > 0:
            return np.inf
        return float(infinite_if_lost(self.objective.losses(policy, theta[None])).mean())

    def _polished(self, policy: Policy, theta: Array, rounds: int, label: str) -> Array:
        """Levenberg–Marquardt on the residual field. The reported metric is the mean of ‖r‖/‖u‖, not of its square:
        every round divides the square by the error at its start (iteratively reweighted least squares)."""
        objective = self.objective
        size = objective.squared_sizes()
        optimizer = LevenbergMarquardt()
        for index in range(rounds if policy.size else 0):
            errors = objective.errors(objective.states(policy, theta[None])[0])
            if not errors.any():
                break  # nothing to gain, and no error to divide by
            weights = 1.0 / (size * np.maximum(errors, 0.1 * errors.mean()))
            ridge = RIDGE * float(np.sum(weights * size * errors**2))
            tell = partial(self.meter.tell, label, index, rounds, float(errors.mean()))
            found = self.journal.follow(
                optimizer.start(theta),
                self._least_squares(policy, optimizer, weights, ridge, tell),
                self._most_steps,
            )
            loss = self._loss(policy, found)
            self._done(label, index + 1, rounds, loss)
            if not np.isfinite(loss):
                break  # least squares does not see the allowed work
            theta = found
        return theta

    @property
    def _most_steps(self) -> int:
        """Most steps of least squares in a round: each iteration linearises, then tries."""
        return 2 * self.config.iterations

    def _least_squares(
        self,
        policy: Policy,
        optimizer: LevenbergMarquardt,
        weights: Array,
        ridge: float,
        tell: Callable[[float], None],
    ) -> Callable[[LMState], LMState]:
        """A step on Σ w‖r‖² + ridge·‖θ‖². The last term keeps directions without effect near the start."""

        def step(state: LMState) -> LMState:
            job = Residuals(self.objective, policy, optimizer, state, weights)
            rows = self.executor.map(job, job.blocks)
            self.meter.evaluated(job.runs * self.objective.query.batch)
            tell(state.generation / self._most_steps)
            if state.phase == "linearise":
                edge = 1 + state.theta.size
                equations = NormalEquations.total(rows.reshape(-1, edge, edge))
                pull = np.vstack([state.theta, np.eye(state.theta.size)])
                return optimizer.tell(state, equations + NormalEquations(ridge * np.einsum("in,jn->ij", pull, pull)))
            return optimizer.tell(state, np.add.reduce(rows, axis=0) + ridge * (state.trials**2).sum(axis=1))

        return step

    def _joined(self, polished: list[tuple[SlotPolicy, Array]]) -> tuple[Policy, Array]:
        """One policy that chooses among the polished patterns, if that lowers the training loss by two per cent within
        the limit on parameters; else the best pattern alone."""
        best, theta = polished[0]
        policy = replace(best, patterns=tuple(entry.patterns[0] for entry, _ in polished))
        if len(polished) == 1 or policy.size > MOST_PARAMETERS:
            return best, theta
        losses = np.stack([self.objective.losses(entry, each[None])[0] for entry, each in polished])
        barred = policy.barred_patterns(self.objective.inputs)
        if barred is not None:  # a choice that is not there must not teach anything
            losses = np.where(barred.T, losses.min(axis=0), losses)
        if not (np.isfinite(losses).all() and losses.any()):
            return best, theta
        seen = np.concatenate([np.ones((losses.shape[1], 1)), self.objective.inputs.features], axis=1)
        whole = np.concatenate([*(each for _, each in polished), selector(seen, losses).reshape(-1)])
        return (policy, whole) if self._loss(policy, whole) < 0.98 * self._loss(best, theta) else (best, theta)


def _standing(losses: Array) -> tuple[int, float]:
    """Number of lost queries, then the mean loss of the others: one lost query must not make all thetas equal."""
    finite = np.isfinite(losses)
    return int((~finite).sum()), float(losses[finite].mean()) if finite.any() else np.inf


def _stream(seed: int, use: int, index: int = 0) -> np.random.Philox:
    """Random bits for the start (1) and the minibatches (2) of a run; the noise of its members has 0 in that place."""
    return np.random.Philox(key=[seed, 0], counter=[0, use, index, 0])
