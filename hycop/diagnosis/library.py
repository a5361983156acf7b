"""Candidates for what an equation may lack: terms, rates of primitives, and shifts of coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from typing import Protocol

import numpy as np

from hycop.dictionary import Dictionary
from hycop.errors import HyCOPError
from hycop.grid import AXES, Array, Grid, changed
from hycop.pde import Equation
from hycop.primitive import Primitive, boundaries_of, fewest_cells, order_of
from hycop.primitives import PRIMITIVES
from hycop.query import Setting
from hycop.terms import Evaluator, Factor, Term

EXPRESSED = 0.98
"""Share of a rate on smooth states that terms must express to stand for it; schemes of low order differ by a little."""

MOST_IN_RATE = 4
"""Most terms that may stand for a rate."""

SMOOTH_SAMPLES = 4
"""Samples of the smooth states on which rates are compared with terms."""

COMPOSITE = ("SymbolicTerms", "ExponentialRungeKutta")
"""Primitives that are made of others, or of named terms: none of a process of its own."""

STEP = 1e-4
"""Relative step of the differences by a coefficient."""


class Candidate(Protocol):
    """Something that may be missing: a rate (batch, channel, *grid) of a state, with a text and a complexity."""

    @property
    def text(self) -> str: ...

    @property
    def channel(self) -> str | None:
        """The channel on which it acts; None for several at once."""
        ...

    @property
    def complexity(self) -> float: ...

    def rate(self, u: Array, setting: Setting) -> Array: ...


@dataclass(frozen=True)
class NamedTerm:
    """A term in the equation of one channel."""

    channel: str
    term: Term

    @property
    def text(self) -> str:
        return str(self.term)

    @property
    def complexity(self) -> float:
        letters = sum(len(factor.derivative) * factor.power for factor in self.term.factors)
        return self.term.degree + 0.5 * letters + 1.5 * len(self.term.coefficients)

    def rate(self, u: Array, setting: Setting) -> Array:
        place = [channel.name for channel in setting.channels].index(self.channel)
        return Evaluator([self.term], setting).sum(u, [place], [1.0])


@dataclass(frozen=True)
class ProcessRate:
    """The rate of a registered primitive that terms cannot express: a whole process that is missing."""

    text: str
    primitive: Primitive
    channel: None = None
    complexity: float = 1.0

    def rate(self, u: Array, setting: Setting) -> Array:
        return rate_of_primitive(self.primitive, u, setting)


@dataclass(frozen=True)
class CoefficientShift:
    """The change of the known rates with a coefficient, where terms cannot express it."""

    name: str
    dictionary: Dictionary
    channel: None = None
    complexity: float = 1.0

    @property
    def text(self) -> str:
        return f"d/d{self.name}"

    def rate(self, u: Array, setting: Setting) -> Array:
        return sensitivity(self.dictionary, self.name, u, setting)


@dataclass(frozen=True)
class MeanField:
    """u times its average over the box, a nonlocal rate. No term of an equation: only a rival of those."""

    channel: str
    complexity: float = 2.0

    @property
    def text(self) -> str:
        return f"mean({self.channel})*{self.channel}"

    def rate(self, u: Array, setting: Setting) -> Array:
        place = [channel.name for channel in setting.channels].index(self.channel)
        out = np.zeros(u.shape)
        own = u[:, place]
        out[:, place] = own * own.mean(axis=tuple(range(1, own.ndim)), keepdims=True)
        return out


@dataclass(frozen=True)
class Direction:
    """What a shift of a coefficient by one adds to the equation, as weights of named terms."""

    name: str
    weights: Mapping[tuple[str, Term], float]


@dataclass(frozen=True)
class Library:
    """The candidates for a model and its data, and the coefficients whose shift is a sum of some of them.

    ``rivals`` are never named. If one of them explains the data as well as the candidates do, the truth may lie outside
    the library, and the certainty of a name falls.
    """

    candidates: tuple[Candidate, ...]
    directions: tuple[Direction, ...]
    rivals: tuple[Candidate, ...] = ()

    @property
    def everything(self) -> tuple[Candidate, ...]:
        return (*self.candidates, *self.rivals)

    @classmethod
    def of(cls, equation: Equation, dictionary: Dictionary, setting: Setting, seed: int = 0) -> Library:
        """Terms that the channels, axes and coefficients of the data allow, and rates that these cannot express."""
        names = [(channel.name, term) for channel in setting.channels for term in terms_for(channel.name, setting)]
        names += [
            (channel.name, term)
            for channel in setting.channels
            for term in scaled_terms(channel.name, setting, equation)
        ]
        terms = tuple(NamedTerm(channel, term) for channel, term in dict.fromkeys(names))
        smooth = _Smooth.of(setting, terms, seed)
        directions: list[Direction] = []
        others: list[Candidate] = []
        for name in setting.params:
            if name in equation.coefficients:
                found = smooth.expressed(sensitivity(dictionary, name, smooth.u, smooth.setting), scaled=False)
                if found:
                    directions.append(Direction(name, {(one.channel, one.term): weight for one, weight in found}))
                elif found is None:
                    others.append(CoefficientShift(name, dictionary))
        for name, primitive in _registered(setting, frozenset(equation.processes)):
            rate = _tried(primitive, smooth.u, smooth.setting)
            if rate is not None and smooth.expressed(rate, scaled=True) is None:
                others.append(ProcessRate(name, primitive))
        rivals = (rival for channel in setting.channels for rival in rivals_for(channel.name, setting))
        return cls((*terms, *others), tuple(directions), tuple(rivals))


def terms_for(channel: str, setting: Setting) -> Iterator[Term]:
    """Monomials, derivatives and products u·∂v for one channel's equation. Systems of three channels and more have
    monomials up to degree two and no fourth derivatives."""
    names = [each.name for each in setting.channels]
    letters = AXES[: setting.grid.axes]
    degree = 3 if len(names) <= 2 else 2
    for power in range(degree + 1):
        for chosen in combinations_with_replacement(names, power):
            yield Term((), tuple(Factor(name, "", chosen.count(name)) for name in sorted(set(chosen))))
    firsts = [letter for axis, letter in enumerate(letters) if setting.grid.shape[axis] >= 4]
    seconds = ["".join(pair) for pair in combinations_with_replacement(firsts, 2)]
    for name in names:
        for derivative in (*firsts, *seconds):
            yield Term((), (Factor(name, derivative),))
    if len(names) <= 2:
        fourths = [2 * letter + 2 * letter for letter in firsts] + [2 * a + 2 * b for a, b in combinations(firsts, 2)]
        for derivative in fourths:
            yield Term((), (Factor(channel, derivative),))
    for plain in names:
        for slope in names:
            for letter in firsts:
                yield Term((), tuple(sorted((Factor(plain), Factor(slope, letter)))))


def rivals_for(channel: str, setting: Setting) -> Iterator[Candidate]:
    """What terms are easily mistaken for: higher powers, squares of slopes, steeper products, and a mean field."""
    letters = [letter for axis, letter in enumerate(AXES[: setting.grid.axes]) if setting.grid.shape[axis] >= 4]
    for power in (4, 5):
        yield NamedTerm(channel, Term((), (Factor(channel, "", power),)))
    for letter in letters:
        yield NamedTerm(channel, Term((), (Factor(channel, letter, 2),)))
        yield NamedTerm(channel, Term((), (Factor(channel, "", 2), Factor(channel, letter))))
    yield MeanField(channel)


def scaled_terms(channel: str, setting: Setting, equation: Equation) -> Iterator[Term]:
    """Terms times coefficients of the file that differ from sample to sample; else they are multiples of the terms.

    A coefficient that the equation does not have scales what it may stand for: monomials, first and second derivatives.
    One that it has scales the terms of its kind.
    """
    letters = AXES[: setting.grid.axes]
    plain = list(terms_for(channel, setting))
    for name, values in setting.params.items():
        if np.ptp(values) <= 1e-9 * np.abs(values).max(initial=0.0):
            continue
        known = equation.coefficients.get(name)
        own = [term for term in plain if all(factor.channel == channel for factor in term.factors)]
        for term in own:
            derivative = term.factors[0].derivative if len(term.factors) == 1 else ""
            if known is None:
                wanted = (term.pointwise or (term.degree == 1)) and len(derivative) <= 2
            elif known.kind == "rate":
                wanted = term.pointwise and 1 <= term.degree <= 2
            elif known.kind in ("velocity", "diffusivity"):
                along = letters if known.axis is None else letters[known.axis : known.axis + 1]
                times = 1 if known.kind == "velocity" else 2
                wanted = term.degree == 1 and derivative in [times * letter for letter in along]
            else:
                wanted = False
            if wanted:
                yield term.scaled(name)


def rate_of_primitive(primitive: Primitive, u: Array, setting: Setting) -> Array:
    """du/dt of a primitive: its own rate, or the difference of its flow over a tiny duration."""
    own = getattr(primitive, "rate", None)
    if own is not None:
        return np.asarray(own(u, setting), dtype=np.float64)
    tau = 1e-6
    return (primitive.flow(u, np.full(setting.batch, tau), setting) - u) / tau


def sensitivity(dictionary: Dictionary, name: str, u: Array, setting: Setting) -> Array:
    """The derivative of the sum of all rates by a coefficient."""
    value = setting.params[name]
    size = np.abs(value)
    step = STEP * np.where(size > 0, size, max(float(size.max(initial=0.0)), 1.0))

    def rates(shifted: Array) -> Array:
        other = changed(setting, params={**setting.params, name: shifted})
        total = np.zeros(u.shape)
        for primitive in dictionary.values():
            total = total + rate_of_primitive(primitive, u, other)
        return total

    column = (-1,) + (1,) * (u.ndim - 1)
    return (rates(value + step) - rates(value - np.minimum(step, 0.5 * size))) / (
        step + np.minimum(step, 0.5 * size)
    ).reshape(column)


def _registered(setting: Setting, known: frozenset[str]) -> Iterator[tuple[str, Primitive]]:
    """Registered primitives of processes that the equation lacks: the one of highest order for each."""
    best: dict[frozenset[str], tuple[str, Primitive]] = {}
    for name in PRIMITIVES:
        if name in COMPOSITE:
            continue
        primitive = PRIMITIVES[name]()
        able = setting.grid.boundary_kinds <= boundaries_of(primitive) and hasattr(primitive, "rate")
        if not able or primitive.advances <= known or min(setting.grid.shape) < fewest_cells(primitive):
            continue
        other = best.get(primitive.advances)
        if other is None or order_of(primitive) > order_of(other[1]):
            best[primitive.advances] = (name, primitive)
    yield from best.values()


def _tried(primitive: Primitive, u: Array, setting: Setting) -> Array | None:
    """The rate of a primitive, or None if it is one of other channels, axes or coefficients."""
    try:
        with np.errstate(all="ignore"):
            rate = rate_of_primitive(primitive, u, setting)
    except (HyCOPError, ValueError, IndexError):
        return None
    if rate.shape != u.shape or not np.isfinite(rate).all() or not rate.any():
        return None
    return rate


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Smooth states, on which all schemes agree, and the values of terms on them, (term, value)."""

    u: Array
    setting: Setting
    terms: tuple[NamedTerm, ...]
    values: Array

    @classmethod
    def of(cls, setting: Setting, terms: tuple[NamedTerm, ...], seed: int) -> _Smooth:
        few = setting.take(np.arange(SMOOTH_SAMPLES) % setting.batch)
        rng = np.random.default_rng(seed)
        u = np.stack([_waves(rng, few.grid, channel.normal) for channel in few.channels], axis=1)
        return cls(u, few, terms, np.stack([term.rate(u, few).reshape(-1) for term in terms]))

    def expressed(self, rate: Array, scaled: bool) -> list[tuple[NamedTerm, float]] | None:
        """The fewest terms that express a rate, channel by channel, with their weights; None if they cannot."""
        found: list[tuple[NamedTerm, float]] = []
        total = float((rate**2).sum())
        if total == 0:
            return found
        for place, channel in enumerate(self.setting.channels):
            part = rate[:, place].reshape(-1)
            if float((part**2).sum()) <= (1 - EXPRESSED) * 0.1 * total:
                continue
            own = [
                index
                for index, term in enumerate(self.terms)
                if term.channel == channel.name and (scaled or not term.term.coefficients)
            ]
            shape = (-1, *rate.shape)
            columns = self.values.reshape(shape)[own][:, :, place].reshape(len(own), -1)
            chosen = _fewest(columns, part)
            if chosen is None:
                return None
            found += [(self.terms[own[index]], weight) for index, weight in chosen]
        return found


def _waves(rng: np.random.Generator, grid: Grid, normal: int | None) -> Array:
    """Waves (batch, *grid) that the boundary allows: any phase on periodic axes, no slope at walls and outflow, and no
    value at a wall for the component of a vector normal to it. All others lie around one."""
    column = (-1,) + (1,) * grid.axes
    vanishing = normal is not None and grid.boundary[normal] == "wall"
    total = np.full((grid.batch, *grid.shape), 0.0 if vanishing else 1.0)
    for mode in product((0, 1, 2), repeat=grid.axes):
        wave = np.full_like(total, 0.5 / (3**grid.axes * max(1, sum(mode))))
        for axis, (number, x, length) in enumerate(zip(mode, grid.centres(), grid.lengths.T, strict=True)):
            along = np.pi * x / length.reshape(column)
            phase = rng.uniform(0, 2 * np.pi, grid.batch).reshape(column)
            if grid.boundary[axis] == "periodic":
                wave = wave * np.sin(2 * number * along + phase)
            elif vanishing and normal == axis:
                wave = wave * np.sin((number + 1) * along)
            else:
                wave = wave * np.cos(number * along) * np.sin(phase)
        total += wave
    return total


def _fewest(columns: Array, target: Array) -> list[tuple[int, float]] | None:
    """The fewest rows of ``columns`` whose combination is close to the target, with their weights."""
    scale = np.sqrt((columns**2).sum(axis=1))
    scale = np.where(scale > 0, scale, 1.0)
    unit = columns / scale[:, None]
    gram, right, total = unit @ unit.T, unit @ target, float(target @ target)
    few = np.argsort(-np.abs(right))[:24]
    for size in range(1, MOST_IN_RATE + 1):
        best = best_subset(gram, right, few, size)
        if best is not None and best[0] >= EXPRESSED * total:
            return [(index, float(weight / scale[index])) for index, weight in zip(best[1], best[2], strict=True)]
    return None


def best_subset(
    gram: Array, right: Array, among: Sequence[int] | Array, size: int
) -> tuple[float, tuple[int, ...], Array] | None:
    """The subset of a size that explains most of a target: the reduction of its squared norm, the subset and its
    weights. ``gram`` holds the products of the columns with each other, ``right`` those with the target."""
    subsets = np.array(list(combinations([int(index) for index in among], size)), dtype=np.int64)
    if not subsets.size:
        return None
    left = gram[subsets[:, :, None], subsets[:, None, :]] + 1e-12 * np.eye(size)
    rhs = right[subsets]
    weights = np.linalg.solve(left, rhs[..., None])[..., 0]
    gain = (weights * rhs).sum(axis=1)
    top = int(np.argmax(gain))
    return float(gain[top]), tuple(subsets[top].tolist()), weights[top]
