"""How the final states answer to amounts of candidates: the forward model and its linearisation.

With A the known processes and B = Σ_k a_k g_k the candidates, the states at the time T come from SABA4, whose nodes are
those of Gauss and Legendre: as B is small, its error is that of quadrature, and second order only in B². Runs on two
levels of grid and steps are extrapolated to their limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hycop.data import Dataset
from hycop.diagnosis.floor import noise
from hycop.diagnosis.library import Candidate, Library, NamedTerm, ProcessRate
from hycop.diagnosis.residual import white_level
from hycop.dictionary import Dictionary
from hycop.execution import measure
from hycop.grid import Array, Grid, changed, restrict
from hycop.primitive import EXACT, order_of
from hycop.primitives.symbolic import SymbolicTerms
from hycop.program import ProgramBatch
from hycop.query import Query, Setting
from hycop.schemes import Scheme, splitting
from hycop.terms import Evaluator

MISSING = "what is missing"
"""Name under which candidates join the dictionary."""

PERTURBATION = 1e-5
"""Relative size of the perturbations of a state whose growth is followed."""

FEWEST_CELLS = 5
"""Cells along an axis that a reconstruction needs."""

SLOWEST, FASTEST = 1.5, 128.0
"""Bounds on the factor by which the reconstruction error falls with the cell width: that of a jump, that of a state
whose modes fall exponentially."""

AT_ONCE = 2**24
"""Values of perturbed states that are advanced together."""


@dataclass(frozen=True, eq=False)
class Amounts:
    """Amounts of some candidates, by their index in the library."""

    chosen: tuple[int, ...] = ()
    values: tuple[float, ...] = ()

    def of(self, count: int) -> Array:
        """As a vector over all candidates."""
        out = np.zeros(count)
        out[list(self.chosen)] = self.values
        return out


@dataclass(frozen=True, eq=False)
class Forward:
    """The states with amounts, extrapolated to fine grids and steps, and the error that is left, as a field."""

    states: Array
    doubt: Array


@dataclass(frozen=True, eq=False)
class Response:
    """The known dictionary, the queries, and the candidates to add. ``refinement`` is that of the coarser level."""

    library: Library
    dictionary: Dictionary
    query: Query
    refinement: int = 1
    substeps: int = 2

    @property
    def scheme(self) -> Scheme:
        """The splitting of the known processes over a gap between two nodes."""
        return splitting("strang")

    # ------------------------------------------------------------------------------------------- forward

    def forward(self, amounts: Amounts) -> Forward:
        """The states with amounts of candidates. ``doubt`` is how far extrapolation has moved them."""
        coarse = self._run(amounts, self.refinement, self.substeps)
        fine = self._run(amounts, 2 * self.refinement, 2 * self.substeps)
        states = (4 * fine - coarse) / 3
        return Forward(states, states - fine)

    def reconstruction(self, weights: Array) -> float:
        """Weighted root mean square error of the known model that comes from reconstructing initial states from cell
        averages. Zero unless all flows are exact: else refinement shows it.

        Averages over cells 2 and 4 times wider tell how it falls with the cell width: e_1 ≈ e_2 (e_2/e_4). Zero where
        the grid has too few cells for that.
        """
        grid = self.query.grid
        exact = all(order_of(primitive) == EXACT for primitive in self.dictionary.values())
        if not exact or any(n % 4 or n // 4 < FEWEST_CELLS for n in grid.shape):
            return 0.0
        best = self._run(Amounts(), 2 * self.refinement, self.substeps)
        errors = []
        for factor in (2, 4):
            shape = tuple(n // factor for n in grid.shape)
            wide = self.query.setting.with_grid(Grid(shape, grid.lengths, grid.boundary))
            query = changed(self.query, u0=restrict(self.query.u0, shape), setting=wide)
            reached = replace(self, query=query)._run(Amounts(), 2 * factor * self.refinement, self.substeps)
            error = weights * (reached - restrict(best, shape))
            errors.append((error**2).sum(axis=tuple(range(1, error.ndim))) * factor**grid.axes)
        ratio = np.clip(errors[1] / np.maximum(errors[0], np.finfo(float).tiny), SLOWEST**2, FASTEST**2)
        return float(np.sqrt((errors[0] / ratio).mean()))

    def initial_noise(self, weights: Array, seed: int) -> float:
        """Weighted root mean square of what noise of the initial states makes of the final ones in the known model.

        The size of the noise is the smaller of two estimates: that from the highest modes sees jumps as noise, that
        from differences between cells sees short waves as noise.
        """
        u, grid = self.query.u0, self.query.grid
        rough = np.stack([noise(u[:, [place]], grid) for place in range(u.shape[1])], axis=1)
        size = np.minimum(rough, np.sqrt(white_level(u, grid.boundary))).reshape(weights.shape)
        stream = np.random.Generator(np.random.Philox(key=[seed, u.size]))
        shaken = changed(self.query, u0=u + size * stream.standard_normal(u.shape))
        runs = [replace(self, query=query)._run(Amounts(), self.refinement, 1) for query in (self.query, shaken)]
        change = weights * (runs[1] - runs[0])
        found = float(np.sqrt((change**2).sum(axis=tuple(range(1, change.ndim))).mean()))
        return found if np.isfinite(found) else 0.0

    def _run(self, amounts: Amounts, refinement: int, substeps: int) -> Array:
        query, dictionary, steps = self._with(amounts)
        programs = self._programs(query, dictionary, steps, substeps)
        return measure(programs, dictionary, query, refinement=refinement, strict=False).states

    def _with(self, amounts: Amounts) -> tuple[Query, Dictionary, Mapping[str, float]]:
        """The query with shifted coefficients, the dictionary with further terms and processes, and how long these last
        in units of the query time."""
        params, rest = self.shifted(amounts)
        query = changed(self.query, setting=changed(self.query.setting, params=params))
        dictionary, steps = self.dictionary, dict[str, float]()
        terms = [(one, amount) for one, amount in rest if isinstance(one, NamedTerm)]
        if terms:
            dictionary = dictionary.adding(MISSING, primitive_of(terms, query.setting))
            steps[MISSING] = 1.0
        for one, amount in rest:
            if isinstance(one, ProcessRate):
                dictionary = dictionary.adding(one.text, one.primitive)
                steps[one.text] = amount
        return query, dictionary, steps

    def shifted(self, amounts: Amounts) -> tuple[dict[str, Array], list[tuple[Candidate, float]]]:
        """Coefficients with the amounts that are shifts of one of them, and all other amounts. A shifted coefficient is
        advanced together with its process, which stays well-posed where a part of it alone is not."""
        params = dict(self.query.setting.params)
        alone = {
            next(iter(direction.weights)): (direction.name, next(iter(direction.weights.values())))
            for direction in self.library.directions
            if len(direction.weights) == 1
        }
        rest: list[tuple[Candidate, float]] = []
        for index, amount in zip(amounts.chosen, amounts.values, strict=True):
            one = self.library.candidates[index]
            if isinstance(one, NamedTerm):
                scaled = [name for name in one.term.coefficients if name in params]
                key = (one.channel, one.term.bare)
                if key in alone and scaled in ([], [alone[key][0]]):
                    name, weight = alone[key]
                    own = self.query.setting.params[name]
                    params[name] = params[name] + amount / weight * (own if scaled else 1.0)
                    continue
            elif not isinstance(one, ProcessRate):
                name = one.text.removeprefix("d/d")
                params[name] = params[name] + amount
                continue
            rest.append((one, amount))
        return params, rest

    def _programs(
        self, query: Query, dictionary: Dictionary, steps: Mapping[str, float], substeps: int
    ) -> ProgramBatch:
        """SABA4 × substeps, with the known processes in its gaps and the others at its nodes."""
        parts: list[ProgramBatch] = []
        for known, fraction in self._alternation(substeps if steps else max(1, substeps)):
            if known:
                parts.append(self._known(query, fraction, dictionary.names))
            elif steps:
                ops = [dictionary.names.index(name) for name in steps]
                durations = query.time[:, None] * fraction * np.array(list(steps.values()))
                parts.append(ProgramBatch(dictionary.names, np.tile(ops, (query.batch, 1)), durations))
        return ProgramBatch(
            dictionary.names,
            np.concatenate([part.ops for part in parts], axis=1),
            np.concatenate([part.durations for part in parts], axis=1),
        )

    def _alternation(self, substeps: int) -> Iterator[tuple[bool, float]]:
        """Gaps (True) and nodes (False) of the scheme with their fractions of the time; neighbouring gaps are one."""
        coefficients = splitting("saba4").coefficients
        rest = 0.0
        for _ in range(substeps):
            for place, fraction in enumerate(coefficients):
                part = fraction / substeps
                if place % 2:
                    yield False, part
                elif place == len(coefficients) - 1:
                    rest = part
                else:
                    yield True, part + rest
                    rest = 0.0
        yield True, rest

    def _known(self, query: Query, fraction: float, names: tuple[str, ...]) -> ProgramBatch:
        part = changed(query, time=fraction * query.time)
        programs = self.scheme.programs(part, self.dictionary)
        place = np.array([names.index(name) for name in programs.names])
        return ProgramBatch(names, place[programs.ops], programs.durations)

    # ------------------------------------------------------------------------------------------- linearisation

    def linearised(self, amounts: Amounts, candidates: Sequence[int]) -> Array:
        """The derivative of the states by the amount of each candidate, (candidate, batch, channel, *grid), on the
        query grid, at the given amounts."""
        most = max(1, AT_ONCE // self.query.u0.size)
        parts = [candidates[start : start + most] for start in range(0, len(candidates), most)]
        return np.concatenate([self._tangents(amounts, part) for part in parts])

    def _tangents(self, amounts: Amounts, candidates: Sequence[int]) -> Array:
        query, dictionary, steps = self._with(amounts)
        u = query.u0.astype(np.float64)
        tangents = np.zeros((len(candidates), *u.shape))
        sources = _Sources([self.library.everything[index] for index in candidates], query)
        flow = _Flow(query, dictionary, len(candidates))
        column = (-1,) + (1,) * (u.ndim - 1)
        for known, fraction in self._alternation(1):
            if known:
                u, tangents = flow.both(u, tangents, self._known(query, fraction, dictionary.names))
                continue
            half = None
            if steps:
                ops = [dictionary.names.index(name) for name in steps]
                durations = 0.5 * query.time[:, None] * fraction * np.array(list(steps.values()))
                half = ProgramBatch(dictionary.names, np.tile(ops, (query.batch, 1)), durations)
                u, tangents = flow.both(u, tangents, half)
            tangents = tangents + (fraction * query.time).reshape(column) * sources(u)
            if half is not None:
                u, tangents = flow.both(u, tangents, half)
        return tangents


def primitive_of(terms: Sequence[tuple[NamedTerm, float]], setting: Setting) -> SymbolicTerms:
    """Named terms with their amounts as a primitive."""
    return SymbolicTerms(
        state=tuple(channel.name for channel in setting.channels),
        targets=tuple(one.channel for one, _ in terms),
        terms=tuple(one.text for one, _ in terms),
        amounts=tuple(float(amount) for _, amount in terms),
        process=MISSING,
        normals=tuple(channel.normal for channel in setting.channels),
    )


class _Sources:
    """The rates of candidates on a state, (candidate, batch, channel, *grid); terms share their derivatives."""

    def __init__(self, candidates: Sequence[Candidate], query: Query) -> None:
        self.candidates, self.setting = candidates, query.setting
        self.terms = [(place, one) for place, one in enumerate(candidates) if isinstance(one, NamedTerm)]
        self.evaluator = Evaluator([one.term for _, one in self.terms], self.setting)
        names = [channel.name for channel in self.setting.channels]
        self.channels = [names.index(one.channel) for _, one in self.terms]

    def __call__(self, u: Array) -> Array:
        out = np.zeros((len(self.candidates), *u.shape))
        for (place, _), channel, value in zip(self.terms, self.channels, self.evaluator.values(u), strict=True):
            out[place, :, channel] = value
        for place, one in enumerate(self.candidates):
            if not isinstance(one, NamedTerm):
                out[place] = one.rate(u, self.setting)
        return out


class _Flow:
    """Advances a state and its perturbations by the same programs."""

    def __init__(self, query: Query, dictionary: Dictionary, members: int) -> None:
        self.dictionary, self.members = dictionary, members
        self.query = query
        self.tiled = query.take(np.tile(np.arange(query.batch), members))

    def both(self, u: Array, tangents: Array, programs: ProgramBatch) -> tuple[Array, Array]:
        after = self._run(changed(self.query, u0=u), programs)
        if not tangents.any():
            return after, tangents
        over = tuple(range(2, tangents.ndim))
        size = np.sqrt((tangents**2).sum(axis=over, keepdims=True))
        own = np.sqrt((u**2).sum(axis=tuple(range(1, u.ndim)), keepdims=True))[None]
        step = PERTURBATION * np.where(own > 0, own, 1.0) / np.where(size > 0, size, 1.0)
        perturbed = (u[None] + step * tangents).reshape(-1, *u.shape[1:])
        batch = self.query.batch
        several = programs.take(np.tile(np.arange(batch), self.members))
        moved = self._run(changed(self.tiled, u0=perturbed), several).reshape(tangents.shape)
        return after, (moved - after[None]) / step

    def _run(self, query: Query, programs: ProgramBatch) -> Array:
        return measure(programs, self.dictionary, query, strict=False).states


def weights_of(data: Dataset) -> Array:
    """Weights (batch, channel, 1, …) that make residuals relative: one over the norm of the truth of a channel, or over
    a tenth of its mean norm where that is larger; all channels together count as one."""
    truth = data.truth.astype(np.float64)
    over = tuple(range(2, truth.ndim))
    norms = np.sqrt((truth**2).sum(axis=over, keepdims=True))
    mean = np.sqrt((norms**2).mean(axis=0, keepdims=True))
    largest = np.maximum(norms, 0.1 * mean)
    return np.where(largest > 0, 1.0 / np.where(largest > 0, largest, 1.0), 0.0) / np.sqrt(truth.shape[1])
