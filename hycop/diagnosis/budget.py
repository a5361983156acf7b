"""The error budget: mismatch, splitting and primitive error of every query, and the part of every step.

With S the truth, Ψ̂ the programs as run, Ψ the same programs with trusted flows on a fine grid, Ψ∞ their refinement:

    S − Ψ̂ = (S − Ψ∞) + (Ψ∞ − Ψ) + (Ψ − Ψ̂)   mismatch, splitting, primitive
    Ψ − Ψ̂ = Σ_j (w_{j−1} − w_j),   w_j = Φ_k … Φ_{j+1} Φ̂_j … Φ̂_1 u_0

Step j is charged with its own error, carried to the end by trusted flows (the telescoping sum of the paper's proof).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hycop.diagnosis.case import Case
from hycop.diagnosis.floor import MARGIN, Floor, floor_of
from hycop.diagnosis.trusted import Trusted
from hycop.errors import NonFiniteStateError
from hycop.grid import Array, restrict
from hycop.program import EMPTY, ProgramBatch

TERMS = ("mismatch", "splitting", "primitive")

TELESCOPED, FEWEST_TELESCOPED = 32, 4
"""Most and fewest queries whose primitive error is divided among their steps, evenly spread."""

TRUSTED_STEPS = 4000
"""Trusted steps that the division takes, which decides for how many queries it is done: k²/2 for k steps of each."""

LONGEST_DIVIDED, DRAWN = 100, 16
"""Steps of the longest program that is divided whole. Of longer ones so many steps are drawn, which stand for all."""

BLOCK_BYTES = 64 * 2**20
"""Bytes of the fine states that are made at a time."""

Advance = Callable[[float], None]
"""Told the finished fraction."""


@dataclass(frozen=True, eq=False)
class Shares:
    """The primitive error of some queries, divided among the steps of their ``programs``.

    The longer the programs, the fewer are the queries. ``fields`` are the signed parts (query, channel, *grid) of each
    primitive, ``sizes`` their norms relative to the truth (query,), and ``by_step`` (query, step) those of each step.
    ``places`` are the positions of these steps: all, or those drawn from long programs.
    """

    programs: ProgramBatch
    places: Array
    fields: Mapping[str, Array]
    sizes: Mapping[str, Array]
    by_step: Array

    def fractions(self) -> dict[str, float]:
        """The part of each primitive as a fraction of the sum of all parts, largest first."""
        means = {name: float(size.mean()) for name, size in self.sizes.items()}
        whole = sum(means.values()) or 1.0
        return {name: means[name] / whole for name in sorted(means, key=lambda name: -means[name])}

    def steps(self) -> list[tuple[int, str, float]]:
        """Position, primitive and mean relative size of the steps of the pattern that most queries have."""
        patterns, which = np.unique(self.programs.ops, axis=0, return_inverse=True)
        most = int(np.bincount(which.reshape(-1)).argmax())
        means = self.by_step[which.reshape(-1) == most].mean(axis=0)
        names = self.programs.names
        entries = zip(self.places.tolist(), patterns[most], means, strict=True)
        return [(place, names[op], float(mean)) for place, op, mean in entries if op != EMPTY]

    def to_json(self) -> dict[str, object]:
        steps = [{"step": place + 1, "primitive": name, "size": size} for place, name, size in self.steps()]
        return {"fractions": self.fractions(), "steps": steps, "queries": len(self.programs)}


@dataclass(frozen=True, eq=False)
class Budget:
    """Signed fields (batch, channel, *grid) of the ``total`` error and its terms, and their norms relative to the truth
    (batch,).

    A term that cannot be told from others is absent, and ``reason`` says why; ``rest`` is then what splitting and
    primitives err together. ``floor`` holds the errors of the trusted part and of the data.
    """

    fields: Mapping[str, Array]
    sizes: Mapping[str, Array]
    floor: Floor
    shares: Shares | None = None
    reason: str = ""

    @property
    def total(self) -> float:
        return float(self.sizes["total"].mean())

    def means(self) -> dict[str, float | None]:
        """Mean relative errors: the total and the three terms; None for a term that is not separable."""
        return {term: float(self.sizes[term].mean()) if term in self.sizes else None for term in ("total", *TERMS)}

    def blamable(self) -> dict[str, float]:
        """Terms that are larger than what the trusted part and the data get wrong, largest first."""
        found = {
            term: size
            for term, size in self.means().items()
            if term in TERMS and size is not None and self.floor.exceeded(term, size)
        }
        return dict(sorted(found.items(), key=lambda entry: -entry[1]))

    @property
    def mismatched(self) -> bool:
        """Whether the mismatch is more than the trusted part and the truth explain, noise apart: naming can tell terms
        from noise that is larger than they are."""
        size = self.means()["mismatch"]
        return size is not None and size > MARGIN * (self.floor.of("mismatch") - self.floor.noise)

    def leads(self, term: str) -> float:
        """Fraction of the queries in which a term is the largest of those that are separable."""
        others = [self.sizes[each] for each in TERMS if each in self.sizes]
        return float(np.mean(self.sizes[term] >= np.max(others, axis=0)))

    def maps(self) -> dict[str, Array]:
        """Root mean square over the queries of every field, (channel, *grid)."""
        return {name: np.sqrt(np.mean(field**2, axis=0)) for name, field in self.fields.items()}


def budget(case: Case, trusted: Trusted, advance: Advance = lambda done: None) -> Budget:
    """The budget of a case. Where the trusted flows of a part are missing or fail, terms are not separable."""
    fields = {"total": case.truth - case.answers}
    reason = trusted.reason(case.programs) or ("" if trusted.has_limit else "no trusted solver knows the equation")
    shares = None
    try:
        if trusted.has_limit:
            limits = _limits(case, trusted, lambda done: advance(0.3 * done))
            terms = {"mismatch": case.truth - limits}
            if reason:
                terms["rest"] = limits - case.answers
            else:
                composed, shares = _composed(case, trusted, lambda done: advance(0.3 + 0.6 * done))
                terms |= {"splitting": limits - composed, "primitive": composed - case.answers}
            floor = floor_of(case, trusted, not reason, terms["mismatch"])
            fields |= terms
    except NonFiniteStateError as error:
        reason, shares = f"the trusted flows fail ({error})", None
    if len(fields) == 1:
        floor = floor_of(case, None, False, fields["total"])
    sizes = {name: case.relative(field) for name, field in fields.items()}
    return Budget(fields, sizes, floor, shares, reason)


def _blocks(queries: Array, bytes_each: int) -> Iterator[Array]:
    together = max(1, BLOCK_BYTES // bytes_each)
    for first in range(0, len(queries), together):
        yield queries[first : first + together]


def _fine_bytes(case: Case, trusted: Trusted) -> int:
    return 8 * case.query.u0[0].size * trusted.refinement**case.query.grid.axes


def _limits(case: Case, trusted: Trusted, advance: Advance) -> Array:
    """Ψ∞ on the grid of the queries."""
    out = np.empty_like(case.truth)
    for block in _blocks(np.arange(case.batch), _fine_bytes(case, trusted)):
        query = case.query.take(block)
        out[block] = restrict(trusted.limit(trusted.start(query)), query.grid.shape)
        advance((1 + block[-1]) / case.batch)
    return out


def _composed(case: Case, trusted: Trusted, advance: Advance) -> tuple[Array, Shares | None]:
    """Ψ on the grid of the queries, and the parts of the steps for some of them."""
    out, places = np.empty_like(case.truth), _places(case.programs.ops.shape[1])
    affordable = max(FEWEST_TELESCOPED, 2 * TRUSTED_STEPS // max(1, len(places)) ** 2)
    chosen = case.few(min(TELESCOPED, affordable))
    others = np.setdiff1d(np.arange(case.batch), chosen)
    ends = np.unique([0, *places, *(places + 1)])  # w_j before and after each of the steps; w_0 is Ψ
    each = _fine_bytes(case, trusted)
    work, done = len(others) + len(ends) * len(chosen), 0
    for block in _blocks(others, each):
        out[block] = _replaced(case.take(block), trusted, np.zeros(1, dtype=int))[:, 0]
        done += len(block)
        advance(done / work)
    parts = np.empty((len(chosen), len(places), *case.truth.shape[1:]))
    for place in _blocks(np.arange(len(chosen)), each * len(ends)):
        block = chosen[place]
        states = _replaced(case.take(block), trusted, ends)
        out[block] = states[:, 0]
        parts[place] = states[:, np.searchsorted(ends, places)] - states[:, np.searchsorted(ends, places + 1)]
        done += len(ends) * len(block)
        advance(done / work)
    return out, _shared(case.take(chosen), places, parts)


def _places(steps: int) -> Array:
    """Positions of the steps that are charged. Drawn ones do not beat with the pattern of a repeated program."""
    if steps <= LONGEST_DIVIDED:
        return np.arange(steps)
    stream = np.random.Generator(np.random.Philox(key=[0, steps]))
    return np.sort(stream.choice(steps, DRAWN, replace=False))


def _replaced(case: Case, trusted: Trusted, ends: Array) -> Array:
    """w_j (batch, j, channel, *grid) for j in ``ends``: the first j steps of the programs as the model takes them, the
    others by trusted flows."""
    queries = np.repeat(np.arange(case.batch), len(ends))
    done = np.tile(ends, case.batch)
    before = case.traced(ends)
    start = case.query_from(queries, before.reshape(len(queries), *before.shape[2:]))
    programs = case.programs.take(queries)
    left = np.where(np.arange(programs.ops.shape[1]) < done[:, None], EMPTY, programs.ops)
    fine = trusted.run(replace(programs, ops=left), trusted.handed_over(start))
    return restrict(fine, case.query.grid.shape).reshape(case.batch, len(ends), *case.truth.shape[1:])


def _shared(case: Case, places: Array, parts: Array) -> Shares:
    """Parts (query, step, channel, *grid) by primitive and by step; drawn steps stand for all of their primitive."""
    programs = case.programs
    some = replace(programs, ops=programs.ops[:, places], durations=programs.durations[:, places])
    fields, axes = {}, (1,) * (parts.ndim - 2)
    for op, name in enumerate(programs.names):
        mine, all_mine = some.ops == op, programs.ops == op
        if mine.any():
            weight = all_mine.sum(axis=1) / np.maximum(1, mine.sum(axis=1))
            each = np.where(mine, weight[:, None], 0.0).reshape(*mine.shape, *axes)
            fields[name] = np.sum(each * parts, axis=1)
    norms = np.linalg.norm(parts.reshape(*parts.shape[:2], -1), axis=2) / case.size[:, None]
    return Shares(some, places, fields, {name: case.relative(field) for name, field in fields.items()}, norms)
