"""Classical schemes as data: splittings, and unsplit exponential integrators. They write programs, as policies do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from hycop.dictionary import Dictionary, unsplit_name
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.primitive import boundaries_of, is_linear, is_reversible, symbol_of
from hycop.program import ProgramBatch
from hycop.query import Query, Setting

MOST_SUBSTEPS = 4096
"""A scheme is cut into at most this many equal steps."""


@dataclass(frozen=True)
class Scheme:
    """A splitting A_{a1} B_{b1} A_{a2} B_{b2} …, with coefficients as fractions of the query time.

    ``coefficients`` alternate between the outer operator A and the inner operator B. For n operators the same scheme
    is written as a composition of the Lie map χ = A₁ A₂ … Aₙ and its adjoint χ* = Aₙ … A₂ A₁ with weights
    a1 = w1, b1 = w1 + w2, a2 = w2 + w3, …, which keeps the order and gives nested palindromes:
    A B C B A for Strang. ``outer`` names the primitive to put outside; by default the first of the dictionary.
    ``cover`` names the primitives that it composes; by default all of the dictionary.

    >>> [round(weight, 6) for weight in splitting("abab").weights]
    [0.292893, 0.414214, 0.292893]
    """

    name: str
    order: int
    coefficients: tuple[float, ...]
    substeps: int = 1
    outer: str | None = None
    cover: tuple[str, ...] | None = None

    def __str__(self) -> str:
        repeat = f" x{self.substeps}" if self.substeps > 1 else ""
        return f"{self.name}{repeat}{f'(outer={self.outer})' if self.outer else ''}"

    def with_substeps(self, substeps: int) -> Scheme:
        """scheme×m: the whole scheme m times in a row, each time for 1/m of the query time."""
        if substeps < 1:
            raise InvalidInputError(f"scheme {self.name}: {substeps} substeps; at least 1 is needed")
        if self.substeps * substeps > MOST_SUBSTEPS:
            raise InvalidInputError(
                f"scheme {self.name}: {self.substeps * substeps} substeps; at most {MOST_SUBSTEPS} are allowed"
            )
        return replace(self, substeps=self.substeps * substeps)

    def with_outer(self, primitive: str) -> Scheme:
        return replace(self, outer=primitive)

    def within(self, cover: Sequence[str] | None) -> Scheme:
        """The scheme restricted to the primitives of a cover."""
        return replace(self, cover=None if cover is None else tuple(cover))

    @property
    def weights(self) -> tuple[float, ...]:
        """Durations of χ, χ*, χ, …: successive remainders of the coefficients."""
        weights: list[float] = []
        rest = 0.0
        for coefficient in self.coefficients:
            rest = coefficient - rest
            weights.append(rest)
        while weights and abs(weights[-1]) < 1e-14:
            weights.pop()
        return tuple(weights)

    @property
    def backwards(self) -> bool:
        """Whether it takes negative steps, as every real scheme of order above two must."""
        return min(self.weights) < 0

    def check(self, dictionary: Dictionary) -> None:
        """Refuses negative steps for primitives that cannot take them, and an outer primitive that is not there."""
        dictionary = _part(dictionary, self.cover)
        if self.outer is not None:
            dictionary[self.outer]
        stuck = [name for name, primitive in dictionary.items() if not is_reversible(primitive)]
        if self.backwards and stuck:
            raise IncompatibleError(
                f"scheme {self} takes negative steps, but {', '.join(map(repr, stuck))} cannot run backwards; "
                "use a positive one (strang, ababa, saba4, …) or reversible primitives"
            )

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        """One program per query, all of the same pattern."""
        self.check(dictionary)
        names = process_order(_part(dictionary, self.cover), query.setting, self.outer)
        every = dictionary.names_in(names)
        index = [every.index(name) for name in names]
        ops: list[int] = []
        fractions: list[float] = []
        for k, weight in enumerate(self.weights * self.substeps):
            # an odd number of weights per substep starts the next one with χ again, not with χ*
            forwards = k % len(self.weights) % 2 == 0
            for op in index if forwards else index[::-1]:
                if ops and ops[-1] == op:
                    fractions[-1] += weight / self.substeps
                else:
                    ops.append(op)
                    fractions.append(weight / self.substeps)
        batch = query.batch
        return ProgramBatch(every, np.tile(ops, (batch, 1)), np.asarray(query.time)[:, None] * np.asarray(fractions))


@dataclass(frozen=True)
class Unsplit:
    """All processes at once: ``steps`` equal steps of ETDRK2, 3 or 4 over the query time, whatever that is.

    The solver (``ExponentialRungeKutta``) is made of the primitives that ``cover`` names, by default of all of the
    dictionary: of their symbols and matrices for every mode, which it integrates exactly, and of the rates of those
    without.

    >>> print(classical("etdrk4 x8"), classical("etdrk4 x8").order)
    ETDRK4 x8 4
    """

    stages: int
    steps: int = 1
    cover: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"ETDRK{self.stages}{f' x{self.steps}' if self.steps > 1 else ''}"

    @property
    def order(self) -> int:
        return self.stages

    def within(self, cover: Sequence[str] | None) -> Unsplit:
        """The solver made of the primitives of a cover."""
        return replace(self, cover=None if cover is None else tuple(cover))

    def step_of(self, dictionary: Dictionary) -> str:
        """The name of the solver in programs."""
        return unsplit_name(self.stages, self.steps, self.cover or dictionary.names)

    def check(self, dictionary: Dictionary) -> None:
        """Refuses primitives of which it cannot be made."""
        dictionary[self.step_of(dictionary)]

    def fits(self, dictionary: Dictionary) -> bool:
        """Whether it can be made of the primitives: some are linear, the others have a rate, and none was trained."""
        names = self.cover or dictionary.names
        parts = [dictionary[name] for name in names]
        linear = [is_linear(part) for part in parts]
        return (
            any(linear)
            and not all(linear)
            and all(hasattr(part, "rate") for part, known in zip(parts, linear, strict=True) if not known)
            and not any(hasattr(part, "outside") or part.order is None for part in parts)
            and not any("+" in name for name in names)  # which stands between names in that of the solver
        )

    def runs(self, dictionary: Dictionary, setting: Setting) -> bool:
        """Whether it can be made of the primitives, and these know the boundaries and share a transform."""
        if not self.fits(dictionary):
            return False
        parts = [dictionary[name] for name in self.cover or dictionary.names]
        transforms = {symbol_of(part, setting).transforms for part in parts if hasattr(part, "symbol")}
        if any(hasattr(part, "mode_matrices") for part in parts):
            transforms.add(("fourier",) * setting.grid.axes)
            if set(setting.grid.boundary) != {"periodic"}:
                return False
        return len(transforms) == 1 and all(set(setting.grid.boundary) <= boundaries_of(part) for part in parts)

    def programs(self, query: Query, dictionary: Dictionary) -> ProgramBatch:
        """One step for each query."""
        self.check(dictionary)
        names = dictionary.names_in([self.step_of(dictionary)])
        return ProgramBatch(names, np.full((query.batch, 1), len(names) - 1), np.asarray(query.time)[:, None])


Classical = Scheme | Unsplit
"""A classical scheme."""


def _part(dictionary: Dictionary, cover: Sequence[str] | None) -> Dictionary:
    return dictionary if cover is None else Dictionary({name: dictionary[name] for name in cover})


def process_order(dictionary: Dictionary, setting: Setting, outer: str | None = None) -> tuple[str, ...]:
    """Primitives from the outermost to the innermost: ``outer`` first, then as in the dictionary; those that share a
    transform stand together."""
    names = dictionary.names
    for name in names:
        shared = [other for other in names if other != name and dictionary[other].advances & dictionary[name].advances]
        if shared:
            raise IncompatibleError(
                f"a classical splitting needs one primitive per process, but '{name}' and '{shared[0]}' overlap; "
                f"drop one with without('{shared[0]}')"
            )
    if outer is not None:
        names = (outer, *(name for name in names if name != outer))
    return tuple(name for group in _commuting_groups(names, dictionary, setting) for name in group)


def _commuting_groups(names: Sequence[str], dictionary: Dictionary, setting: Setting) -> list[list[str]]:
    """Groups of primitives that share a transform, in order of their first member; any other primitive is alone."""
    groups: dict[object, list[str]] = {}
    for name in names:
        symbol = getattr(dictionary[name], "symbol", None)
        groups.setdefault(name if symbol is None else symbol(setting).transforms, []).append(name)
    return list(groups.values())


def _gauss_legendre(stages: int) -> Scheme:
    """SABA_n of Laskar and Robutel: B by the weights of Gauss–Legendre on [0, 1], A by the gaps between its nodes."""
    if not 1 <= stages <= 64:
        raise InvalidInputError(f"scheme SABA{stages}: the number of stages must be between 1 and 64")
    nodes, weights = np.polynomial.legendre.leggauss(stages)
    gaps = np.diff(np.concatenate(([0.0], (nodes + 1) / 2, [1.0])))
    interleaved = np.empty(2 * stages + 1)
    interleaved[0::2] = gaps
    interleaved[1::2] = weights / 2
    return Scheme(f"SABA{stages}", 2, tuple(float(c) for c in interleaved))


def _strang_composition(name: str, order: int, fractions: Sequence[float]) -> Scheme:
    """Strang steps of the given fractions of the time, one after the other."""
    coefficients = [0.0]
    for fraction in fractions:
        coefficients[-1] += fraction / 2
        coefficients += [fraction, fraction / 2]
    return Scheme(name, order, tuple(coefficients))


def _schemes() -> dict[str, Scheme]:
    root = 1 - sqrt(0.5)
    a = 0.193183327503783685  # McLachlan, SIAM J. Sci. Comput. 16 (1995) 151
    yoshida = 1 / (2 - 2 ** (1 / 3))  # Yoshida, Phys. Lett. A 150 (1990) 262
    suzuki = 1 / (4 - 4 ** (1 / 3))  # Suzuki, Phys. Lett. A 146 (1990) 319
    known = [
        Scheme("Lie", 1, (1.0, 1.0)),
        Scheme("Strang", 2, (0.5, 1.0, 0.5)),
        Scheme("ABAB", 2, (root, 1 - root, 1 - root, root)),
        Scheme("ABABA", 2, (a, 0.5, 1 - 2 * a, 0.5, a)),
        *(_gauss_legendre(stages) for stages in (2, 3, 4, 5)),
        _strang_composition("Yoshida", 4, (yoshida, 1 - 2 * yoshida, yoshida)),
        _strang_composition("Suzuki", 4, (suzuki, suzuki, 1 - 4 * suzuki, suzuki, suzuki)),
    ]
    return {scheme.name.lower(): scheme for scheme in known}


SCHEMES: Mapping[str, Scheme] = _schemes()
"""The named schemes; SABA of any other number of stages and scheme×m come from ``splitting``."""

_SPELLING = re.compile(
    r"^(?P<base>[a-z]+?\d*)(?:\s*[x×*]\s*(?P<substeps>\d+))?(?:\s*\(\s*outer\s*=\s*(?P<outer>.+?)\s*\))?"
    r"(?:\s*[x×*]\s*(?P<substeps_last>\d+))?$"
)


_UNSPLIT = re.compile(r"etdrk(?P<stages>[234])(?:\s*[x×*]\s*(?P<steps>\d{1,5}))?")


def classical(name: str) -> Classical:
    """A classical scheme by its name, as it prints: a ``splitting``, or an unsplit solver such as ``ETDRK4 x8``."""
    match = _UNSPLIT.fullmatch(name.strip().lower()) if isinstance(name, str) else None
    if match is None:
        return splitting(name)
    steps = int(match["steps"] or 1)
    if not 1 <= steps <= MOST_SUBSTEPS:
        raise InvalidInputError(f"scheme {name}: {steps} steps; 1 to {MOST_SUBSTEPS} are needed")
    return Unsplit(int(match["stages"]), steps)


def splitting(name: str) -> Scheme:
    """A scheme by its name, as it prints: ``strang``, ``SABA7``, ``Strang x4``, ``ABABA x2(outer=diffusion)``.

    >>> print(splitting("strang x4"), splitting("ababa(outer=diffusion)").order)
    Strang x4 2
    """
    if not isinstance(name, str):
        raise InvalidInputError(f"scheme {name!r}: a name is needed, as 'strang x4'")
    text = name.strip()
    match = _SPELLING.match(text[: text.find("(")].lower() + text[text.find("(") :] if "(" in text else text.lower())
    if match is None:
        raise UnknownNameError("scheme", name, [scheme.name for scheme in SCHEMES.values()])
    base = match["base"]
    if base in SCHEMES:
        scheme = SCHEMES[base]
    elif re.fullmatch(r"saba\d+", base):
        scheme = _gauss_legendre(int(base[4:][:9]))
    else:
        raise UnknownNameError(
            "scheme",
            name,
            [scheme.name for scheme in SCHEMES.values()],
            "(also SABAn, 'NAME xM', 'NAME(outer=PRIMITIVE)')",
        )
    substeps = match["substeps"] or match["substeps_last"]
    if substeps:
        scheme = scheme.with_substeps(int(substeps[:9]))  # more digits are too many substeps anyway
    return scheme.with_outer(match["outer"]) if match["outer"] else scheme


def portfolio(
    dictionary: Dictionary,
    setting: Setting,
    substeps: Sequence[int] = (1, 2, 4, 8),
    covers: Sequence[Sequence[str]] | None = None,
) -> tuple[Scheme, ...]:
    """Every named scheme that these primitives can run, with each distinct outer operator, cut into ``substeps``;
    for each of the ``covers`` if they are given.

    Of primitives that share a transform only the first is tried as outer operator: they commute.
    """
    if covers is not None:
        parts = [(cover, Dictionary({name: dictionary[name] for name in cover})) for cover in covers]
        return tuple(scheme.within(cover) for cover, part in parts for scheme in portfolio(part, setting, substeps))
    names = process_order(dictionary, setting)
    if len(names) == 1:  # all schemes are one step of it
        return (SCHEMES["lie"],)
    reversible = all(is_reversible(dictionary[name]) for name in names)
    _, *others = _commuting_groups(names, dictionary, setting)
    outers = [None, *(group[0] for group in others)] if others else [None]
    schemes = [scheme for scheme in SCHEMES.values() if reversible or not scheme.backwards]
    return tuple(
        replace(scheme.with_substeps(count), outer=outer)
        for outer in outers
        for scheme in schemes
        for count in substeps
    )
