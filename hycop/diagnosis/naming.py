"""Names what a model's equation lacks, from pairs of initial and final states as they are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from hycop.corrections import Correction
from hycop.data import Dataset
from hycop.diagnosis.library import Candidate, CoefficientShift, Library, NamedTerm, ProcessRate
from hycop.diagnosis.missing import Missing, MissingTerm
from hycop.diagnosis.residual import Residual, measured
from hycop.diagnosis.response import Amounts, Forward, Response, weights_of
from hycop.diagnosis.selection import (
    Choice,
    Normal,
    certainty,
    independent,
    select,
    stand_ins,
    standard_errors,
    worst_bias,
)
from hycop.dictionary import Dictionary
from hycop.errors import IncompatibleError, InvalidInputError
from hycop.grid import Array
from hycop.model import Model
from hycop.policy import exact_covers
from hycop.primitive import order_of
from hycop.progress import Describe, describing
from hycop.query import Query
from hycop.surrogate import HyCOP

FEWEST, MOST = 8, 64
"""Fewest pairs for naming, and most pairs that are used."""

ROUNDS = 12
"""Most linearisations."""

HALVINGS = 4
"""Most times a step that makes matters worse is halved."""

ABOVE_FLOOR = 3.0
"""Errors below this many times the floor are not explained by candidates: they are artefacts."""

UNKNOWN_TRUTH, LEAST_TRUTH = 1e-5, 1e-6
"""Relative error of data that do not state theirs, and the least that is believed."""

SMALLEST = 1e-3
"""Smallest contribution of a term, as a fraction of the residual before naming."""

UNEXPLAINED = 0.02
"""Largest structure that a named equation may leave, as a fraction of the residual before naming."""

SETTLED = 0.1
"""Amounts are settled if the states move by less than this fraction of the tolerance."""

STEPWISE = 0.3
"""Largest error of a linearisation that is allowed for, as a fraction of the residual."""

MOST_TERMS = 6
"""Most terms in the equation of a channel: more are no explanation."""

SURE_ENOUGH = 0.5
"""Certainty below which nothing is named."""


def name_missing(model: HyCOP, data: Dataset, *, seed: int = 0, verbose: bool = True) -> Missing:
    """Which terms the equation of a model lacks to explain data: their names, coefficients and standard errors.

    Amounts a_k of candidates g_k are added to the known processes, u_t = Σ_j F_j(u) + Σ_k a_k g_k(u), and fitted by
    Gauss–Newton to the final states. Candidates are removed by their t-values, from all of them down to the fewest that
    explain the data up to the errors of grid, steps and truth, and noise. Data may have coefficients that the model
    does not know; they may stand in front of terms. A terminal shows progress unless ``verbose`` is False.
    """
    if not isinstance(model, HyCOP):
        raise InvalidInputError(f"model is a {type(model).__name__}: give one that fit has made, or HyCOP.load(folder)")
    pairs = checked_pairs(model.model, data)
    with describing("naming") if verbose else nullcontext(_silent) as report:
        return _Search(model.model, pairs, seed, report).missing()


def _silent(text: str, share: float) -> None:
    """Progress that nobody watches."""


def checked_pairs(model: Model, data: Dataset) -> Dataset:
    """Pairs of initial and last states that fit the model, at most ``MOST`` of them."""
    if not isinstance(data, Dataset):
        raise InvalidInputError(f"data is a {type(data).__name__}: give a hycop.Dataset, as hycop.load(file)")
    data.check_later()
    equation = model.equation
    grid = data.setting.grid
    if grid.axes != model.box.axes:
        raise InvalidInputError(f"the data have {grid.axes} axes, but {equation.name} has {model.box.axes} here")
    absent = [name for name in equation.coefficients if name not in data.setting.params]
    if absent and not equation.guessed:
        raise InvalidInputError(f"parameter '{absent[0]}' of {equation.name} is missing in the data")
    last = data.arranged(equation.channels).at(-1)
    equation.check_bounds(last.setting)
    later = np.flatnonzero(last.times[:, 1] > last.times[:, 0])
    if later.size < FEWEST:
        raise InvalidInputError(
            f"the data have {later.size} pairs of an initial and a later state: at least {FEWEST} are needed for naming"
        )
    chosen = later[np.unique(np.linspace(0, later.size - 1, min(MOST, later.size)).round().astype(np.int64))]
    return last.take(chosen)


def base_dictionary(model: Model) -> Dictionary:
    """One primitive for each process, of the highest order that the dictionary has."""
    covers = exact_covers(model.dictionary, model.equation.processes)
    if not covers:
        raise IncompatibleError(f"the dictionary does not advance every process of {model.equation.name}")
    best = max(covers, key=lambda cover: min(order_of(model.dictionary[name]) for name in cover))
    return Dictionary({name: model.dictionary[name] for name in best})


@dataclass(frozen=True, eq=False)
class _State:
    """Where the search stands: amounts, the states with them, and the weighted residual."""

    amounts: Amounts
    forward: Forward
    residual: Array
    parts: Residual


class _Search:
    """Rounds of linearisation, selection from all candidates, and a step of the amounts."""

    def __init__(self, model: Model, data: Dataset, seed: int, report: Describe) -> None:
        self.data, self.seed, self.report = data, seed, report
        given = data.query
        query = model.corrected(Query(given.u0.astype(np.float64), given.setting, given.time))
        dictionary = base_dictionary(model)
        self.library = Library.of(model.equation, dictionary, query.setting)
        self.response = Response(self.library, dictionary, query, max(1, model.refinement // 2))
        self.candidates = self.library.candidates
        self.order = sorted(range(len(self.candidates)), key=lambda k: self.candidates[k].complexity)
        self.truth, self.weights = data.truth.astype(np.float64), weights_of(data)
        self.barred: set[int] = set()
        self.start = self._at(Amounts())
        self.now = self.start

    def _at(self, amounts: Amounts) -> _State:
        forward = self.response.forward(amounts)
        residual = self.weights * (self.truth - forward.states)
        if not np.isfinite(residual).all():
            return _State(amounts, forward, residual, Residual(np.inf, 0.0, np.inf))
        return _State(amounts, forward, residual, measured(residual, self.data.setting.grid.boundary))

    @property
    def floor(self) -> float:
        """Relative error of the states that extrapolation and the truth leave."""
        doubt = self.weights * self.now.forward.doubt
        axes, stated = tuple(range(1, doubt.ndim)), self.data.reference_error
        truth = UNKNOWN_TRUTH if stated is None else max(stated, LEAST_TRUTH)
        return float(np.sqrt((doubt**2).sum(axis=axes).mean())) + truth

    @property
    def tolerance(self) -> float:
        """The error that naming leaves unexplained at the end."""
        return max(ABOVE_FLOOR * self.floor, SMALLEST * self.start.parts.size)

    def missing(self) -> Missing:
        if not np.isfinite(self.start.parts.size):
            raise IncompatibleError("the model's programs become NaN or infinite on these data: nothing can be named")
        for index in range(ROUNDS):
            self.report(f"round {index + 1}", index / ROUNDS)
            normal = self._linearised()
            among = independent(normal.whole, [k for k in self.order if k not in self.barred])
            choice = self._selected(normal, among)
            chosen = self._amounts(normal, choice)
            if chosen.chosen == self.now.amounts.chosen and self._is_small(normal, chosen):
                self.now = replace(self.now, amounts=chosen)
                break
            if not self._step(chosen):
                break
        self.report("certainty", 1.0)
        return self._judged(normal, among)

    def _linearised(self) -> Normal:
        count = len(self.candidates)
        responses = self.weights * self.response.linearised(self.now.amounts, range(count))
        responses = responses.reshape(count, self.data.samples, -1)
        responses[~np.isfinite(responses).all(axis=(1, 2))] = 0.0
        flat = self.now.residual.reshape(self.data.samples, -1)
        return Normal.of(responses, flat + np.tensordot(self.now.amounts.of(count), responses, axes=1))

    def _selected(self, normal: Normal, among: list[int]) -> Choice:
        """The fewest candidates, without those that would make the equation ill-posed. As long as amounts change, the
        linearisation has an error of second order, which must not be explained by further terms."""
        squares = (self.now.residual**2).sum(axis=tuple(range(1, self.now.residual.ndim)))
        curved = min(float(np.sqrt((squares**2).mean())), STEPWISE * self.now.parts.size)
        tolerance = max(self.tolerance, curved)
        noise = self.now.parts.noise**2
        while True:
            choice = select(normal.whole, among, tolerance, noise)
            wrong = [k for k in choice.chosen if not self._well_posed(k, self._amounts(normal, choice))]
            if not wrong:
                return choice
            among[:] = [k for k in among if k not in wrong]

    def _amounts(self, normal: Normal, choice: Choice) -> Amounts:
        scale = normal.scale[list(choice.chosen)]
        return Amounts(choice.chosen, tuple((np.array(choice.amounts) / scale).tolist()))

    def _well_posed(self, index: int, amounts: Amounts) -> bool:
        """Whether diffusion of any order stays positive, and a process runs forwards."""
        one, amount = self.candidates[index], amounts.values[amounts.chosen.index(index)]
        if isinstance(one, ProcessRate):
            return amount > 0
        if not isinstance(one, NamedTerm) or not one.term.scales_diagonally(one.channel):
            return True
        order = len(one.term.factors[0].derivative)
        if order == 0:
            return True
        params, rest = self.response.shifted(amounts)
        if all(other is not one for other, _ in rest):  # it shifts a coefficient of the model
            return all(
                (params[d.name] >= 0).all()
                for d in self.library.directions
                if (one.channel, one.term.bare) in d.weights
            )
        return amount * (1 if order % 4 == 2 else -1) > 0

    def _is_small(self, normal: Normal, target: Amounts) -> bool:
        """Whether the states change by much less than the tolerance on the way to the target."""
        count = len(self.candidates)
        change = (target.of(count) - self.now.amounts.of(count)) * normal.scale
        return bool(np.sqrt(max(0.0, change @ normal.whole.gram @ change)) <= SETTLED * self.tolerance)

    def _step(self, target: Amounts) -> bool:
        """Moves to the target, or part of the way if that is worse; False if nothing is better."""
        count = len(self.candidates)
        old, new = self.now.amounts.of(count), target.of(count)
        for halving in range(HALVINGS + 1):
            mixed = old + (new - old) / 2**halving
            chosen = target.chosen if halving == 0 else tuple(int(k) for k in np.flatnonzero(mixed))
            state = self._at(Amounts(chosen, tuple(mixed[list(chosen)].tolist())))
            if state.parts.size < self.now.parts.size or (halving == 0 and self._no_worse(state)):
                self.now = state
                return True
        return False

    def _no_worse(self, state: _State) -> bool:
        """Fewer terms may leave a little more, within the tolerance."""
        fewer = set(state.amounts.chosen) < set(self.now.amounts.chosen)
        return fewer and state.parts.size**2 <= self.now.parts.size**2 + self.tolerance**2

    # ------------------------------------------------------------------------------------------- the result

    def _judged(self, normal: Normal, among: Sequence[int]) -> Missing:
        before, after = self.start.parts, self.now.parts
        noise = after.noise**2
        chosen = self.now.amounts.chosen
        sure = certainty(normal, among, chosen, self.tolerance, noise, self.seed) if chosen else 1.0
        terms = self._terms(normal, among)
        left = after.structure if chosen else before.structure
        allowed = max(ABOVE_FLOOR * self.floor, UNEXPLAINED * before.structure if chosen else 0.0)
        per_channel = max((sum(t.channel == c for t in terms) for c in {t.channel for t in terms}), default=0)
        clear = left <= allowed and per_channel <= MOST_TERMS and sure >= SURE_ENOUGH
        verdict = "unknown" if not clear else "named" if terms else "nothing"
        explained = max(0.0, 1.0 - after.size**2 / before.size**2) if before.size > 0 else 0.0
        return Missing(
            verdict=verdict,  # type: ignore[arg-type]
            terms=terms if verdict == "named" else (),
            guess=terms if verdict == "unknown" else (),
            explained=explained if chosen else 0.0,
            certainty=sure,
            before=before.size,
            after=after.size,
            floor=self.floor,
            noise=after.noise,
            pairs=self.data.samples,
            channels=tuple(channel.name for channel in self.data.setting.channels),
        )

    def _terms(self, normal: Normal, among: Sequence[int]) -> tuple[MissingTerm, ...]:
        amounts = self.now.amounts
        if not amounts.chosen:
            return ()
        index = list(amounts.chosen)
        scatter = standard_errors(normal, index, np.array(amounts.values) * normal.scale[index])
        errors = np.hypot(scatter, worst_bias(normal, index, max(self.floor, self.now.parts.structure)))
        groups = stand_ins(normal.whole, among, index, self.tolerance, self.now.parts.noise**2)
        found = [
            MissingTerm(
                self.candidates[k].channel,
                self.candidates[k].text,
                float(amount),
                float(error),
                self._own_correction(self.candidates[k], float(amount)),
                tuple(self.candidates[other].text for other in groups[k]),
            )
            for k, amount, error in zip(index, amounts.values, errors, strict=True)
        ]
        return self._with_corrections(found)

    def _own_correction(self, one: Candidate, amount: float) -> Correction | None:
        """A shift that no term expresses, or a factor on a coefficient: ``cx*u_x`` scales cx."""
        if isinstance(one, CoefficientShift):
            return Correction(one.name, amount)
        if isinstance(one, NamedTerm) and len(one.term.coefficients) == 1:
            for direction in self.library.directions:
                key = (one.channel, one.term.bare)
                if direction.name == one.term.coefficients[0] and list(direction.weights) == [key]:
                    return Correction(direction.name, times=1.0 + amount / direction.weights[key])
        return None

    def _with_corrections(self, found: Sequence[MissingTerm]) -> tuple[MissingTerm, ...]:
        """Terms that together are the shift of one coefficient say so."""
        terms = {(term.channel, term.term): term for term in found}
        for direction in sorted(self.library.directions, key=lambda one: -len(one.weights)):
            keys = [(channel, str(term)) for channel, term in direction.weights]
            own = [terms.get(key) for key in keys]
            if any(term is None or term.correction is not None for term in own):
                continue
            weight = np.array(list(direction.weights.values()))
            amount = np.array([term.coefficient for term in own if term is not None])
            error = np.array([term.error for term in own if term is not None])
            shift = float(weight @ amount / (weight @ weight))
            if (np.abs(amount - shift * weight) <= 3 * error + 0.01 * np.abs(shift * weight)).all():
                for key in keys:
                    terms[key] = replace(terms[key], correction=Correction(direction.name, shift))
        return tuple(terms.values())
