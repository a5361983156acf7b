"""Names what a model's equation lacks, from pairs of initial and final states as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.corrections import Correction
from hycop.data import Dataset
from hycop.diagnosis.case import check_squares
from hycop.diagnosis.library import Candidate, CoefficientShift, Library, NamedTerm, ProcessRate
from hycop.diagnosis.missing import Missing, MissingTerm, Verdict
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
from hycop.grid import Array, changed
from hycop.model import Model
from hycop.policy import exact_covers
from hycop.primitive import order_of
from hycop.progress import Describe, describing
from hycop.query import Query
from hycop.surrogate import HyCOP

FEWEST, MOST = 8, 64
"""Fewest pairs for naming, and most pairs that are used."""

RESPONSES = 2**23
"""Values of the responses of all candidates that are afforded: large grids and systems use fewer pairs."""

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

IMPERFECT = 0.9
"""Largest certainty of terms that leave structure above the floor: resamples repeat the same systematic error."""

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
    with describing("naming", enabled=verbose) as report:
        return _Search(model.model, pairs, seed, report).missing()


def checked_pairs(model: Model, data: Dataset) -> Dataset:
    """Initial, middle and last states that fit the model, of at most ``MOST`` samples; no middle if there is none."""
    if not isinstance(data, Dataset):
        raise InvalidInputError(f"data is a {type(data).__name__}: give a hycop.Dataset, as hycop.load(file)")
    data.check_later()
    check_squares(data)
    equation = model.equation
    grid = data.setting.grid
    if grid.axes != model.box.axes:
        raise InvalidInputError(f"the data have {grid.axes} axes, but {equation.name} has {model.box.axes} here")
    absent = [name for name in equation.coefficients if name not in data.setting.params]
    if absent and not equation.guessed:
        raise InvalidInputError(f"parameter '{absent[0]}' of {equation.name} is missing in the data")
    frames = data.times.shape[1]
    last = data.arranged(equation.channels).only([frames // 2, -1] if frames > 2 else [-1])
    equation.check_bounds(last.setting)
    later = np.flatnonzero(last.times[:, -1] > last.times[:, 0])
    if later.size < FEWEST:
        raise InvalidInputError(
            f"the data have {later.size} pairs of an initial and a later state: at least {FEWEST} are needed for naming"
        )
    return last.take(later[spread(later.size, MOST)])


def spread(count: int, most: int) -> Array:
    """At most so many of ``count`` indices, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(np.int64))


def base_dictionary(model: Model) -> Dictionary:
    """One primitive for each process, of the highest order that the dictionary has."""
    parts = model.composition().dictionary
    covers = exact_covers(parts, model.equation.processes)
    if not covers:
        raise IncompatibleError(f"the dictionary does not advance every process of {model.equation.name}")
    best = max(covers, key=lambda cover: min(order_of(parts[name]) for name in cover))
    return Dictionary({name: parts[name] for name in best})


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
        dictionary = base_dictionary(model)
        self.library = Library.of(model.equation, dictionary, data.setting)
        values = len(self.library.everything) * data.states[0, 0].size
        data = data.take(spread(data.samples, max(FEWEST, RESPONSES // values)))
        self.middle = data.at(1) if data.times.shape[1] > 2 else None
        self.data = data = data.at(-1)
        self.seed, self.report = seed, report
        given = data.query
        query = model.corrected(Query(given.u0.astype(np.float64), given.setting, given.time))
        self.response = Response(self.library, dictionary, query, max(1, model.refinement // 2))
        self.candidates, nameable = self.library.everything, range(len(self.library.candidates))
        self.order = sorted(nameable, key=lambda k: self.candidates[k].complexity)
        self.rivals = range(len(nameable), len(self.candidates))
        self.truth, self.weights = data.truth.astype(np.float64), weights_of(data)
        self.reconstruction = self.response.reconstruction(self.weights)
        self.initial_noise = self.response.initial_noise(self.weights, seed)
        self.start = self._at(Amounts())
        self.now = self.start

    def _at(self, amounts: Amounts) -> _State:
        forward = self.response.forward(amounts)
        residual = self.weights * (self.truth - forward.states)
        return _State(amounts, forward, residual, self._parts(residual))

    def _parts(self, residual: Array) -> Residual:
        if not np.isfinite(residual).all():
            return Residual(np.inf, 0.0, np.inf)
        return measured(residual, self.data.setting.grid.boundary)

    @property
    def floor(self) -> float:
        """Relative error of the states that extrapolation, the initial states and the truth leave."""
        doubt = self.weights * self.now.forward.doubt
        axes, stated = tuple(range(1, doubt.ndim)), self.data.reference_error
        truth = UNKNOWN_TRUTH if stated is None else max(stated, LEAST_TRUTH)
        steps = float(np.sqrt((doubt**2).sum(axis=axes).mean()))
        return max(steps, self.reconstruction) + self.initial_noise + truth

    @property
    def tolerance(self) -> float:
        """The error that naming leaves unexplained at the end."""
        return max(ABOVE_FLOOR * self.floor, SMALLEST * self.start.parts.size)

    def missing(self) -> Missing:
        if not np.isfinite(self.start.parts.size):
            raise IncompatibleError("the model's programs become NaN or infinite on these data: nothing can be named")
        if self.start.parts.size <= ABOVE_FLOOR * self.floor:
            return self._result("nothing", (), 1.0)
        for index in range(ROUNDS):
            self.report(f"round {index + 1}", index / ROUNDS)
            normal = self._linearised()
            among = independent(normal.whole, self.order)
            choice = self._selected(normal, among)
            chosen = self._amounts(normal, choice)
            if chosen.chosen == self.now.amounts.chosen and self._is_small(normal, chosen):
                last = self._at(chosen)
                self.now = last if last.parts.size <= self.now.parts.size else self.now
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
        sure = certainty(normal, among, chosen, self.rivals, self.tolerance, noise, self.seed) if chosen else 1.0
        terms = self._terms(normal, among)
        left, level = after.structure if chosen else before.structure, ABOVE_FLOOR * self.floor
        if chosen and left > level:
            sure = min(sure, IMPERFECT)
        allowed = max(level, UNEXPLAINED * before.structure if chosen else 0.0)
        per_channel = max((sum(t.channel == c for t in terms) for c in {t.channel for t in terms}), default=0)
        clear = left <= allowed and per_channel <= MOST_TERMS and sure >= SURE_ENOUGH
        clear = clear and (not chosen or self._holds_midway())
        return self._result("unknown" if not clear else "named" if terms else "nothing", terms, sure)

    def _result(self, verdict: Verdict, terms: tuple[MissingTerm, ...], sure: float) -> Missing:
        before, after = self.start.parts, self.now.parts
        explained = max(0.0, 1.0 - after.size**2 / before.size**2) if before.size > 0 else 0.0
        return Missing(
            verdict=verdict,
            terms=terms if verdict == "named" else (),
            guess=terms if verdict == "unknown" else (),
            explained=explained if terms else 0.0,
            certainty=sure,
            before=before.size,
            after=after.size,
            floor=self.floor,
            noise=after.noise,
            pairs=self.data.samples,
            channels=tuple(channel.name for channel in self.data.setting.channels),
        )

    def _holds_midway(self) -> bool:
        """Whether the named terms explain the middle states of the data too: amounts that depend on time do not."""
        if self.middle is None:
            return True
        query = changed(self.response.query, time=self.middle.query.time)
        response = replace(self.response, query=query)
        weights, truth = weights_of(self.middle), self.middle.truth.astype(np.float64)
        before, after = (
            self._parts(weights * (truth - response.forward(amounts).states)).structure
            for amounts in (Amounts(), self.now.amounts)
        )
        return after <= max(ABOVE_FLOOR * self.floor, UNEXPLAINED * before)

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
