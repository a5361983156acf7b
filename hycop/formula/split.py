"""A formula split into processes by kind, with a primitive for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from hycop import markup
from hycop.dictionary import Dictionary
from hycop.errors import InvalidInputError, UnknownNameError
from hycop.formula.parsing import parsed
from hycop.formula.polynomial import Monomial, Polynomial, written
from hycop.grid import AXES
from hycop.pde import Coefficient, Equation, Kind
from hycop.primitive import Primitive
from hycop.primitives.flux import ConservativeFlux
from hycop.primitives.linear import CoupledLinearTerms, LinearTerms
from hycop.primitives.logistic import ExactLogistic
from hycop.primitives.pointwise import PointwiseRate
from hycop.primitives.symbolic import SymbolicTerms
from hycop.problems.definition import Problem
from hycop.problems.own import own_problem
from hycop.query import Channel
from hycop.terms import HIGHEST_POWER, MOST_FACTORS

REACTION, TRANSPORT, COUPLING, TOGETHER = "reaction", "transport", "coupling", "linear transport"
FLUX = "nonlinear advection"
LINEAR = {1: "advection", 2: "diffusion", 3: "dispersion", 4: "hyperdiffusion"}
"""The processes of linear terms of one channel, by the order of the derivative."""

FirstOrder = Literal["automatic", "conservative", "spectral"]
"""Who solves first derivatives that form a flux: finite volumes where they are nonlinear and no third or fourth
derivative smooths the solution; always finite volumes, also for linear ones; or modes and Runge–Kutta steps."""


@dataclass(frozen=True)
class Piece:
    """A term of a formula: number · monomial, on the right-hand side of a channel."""

    target: str
    monomial: Monomial
    number: float

    @property
    def fields(self) -> list[tuple[str, str, int]]:
        """Channel, derivative and power of its factors."""
        return [(atom.name, atom.derivative or "", power) for atom, power in self.monomial if atom.is_field]

    @property
    def coefficients(self) -> list[str]:
        """The names in front of it, and those in its functions."""
        return [name for atom, power in self.monomial for name in atom.coefficients for _ in range(power)]

    @property
    def factors(self) -> list[str]:
        """The coefficients in front of it alone."""
        return [
            atom.name for atom, power in self.monomial if not (atom.is_field or atom.is_function) for _ in range(power)
        ]

    @property
    def has_function(self) -> bool:
        return any(atom.is_function for atom, _ in self.monomial)

    @property
    def along(self) -> str:
        """The axis of its flux, if it is the derivative of one of its own channel (u^n u_x, dx(sin(u))); else empty."""
        slopes = [(atom, power) for atom, power in self.monomial if atom.derivative]
        if len(slopes) != 1 or slopes[0][1] != 1 or len(slopes[0][0].derivative or "") != 1:
            return ""
        own = all(atom.channels in ((), (self.target,)) for atom, _ in self.monomial)
        return slopes[0][0].derivative or "" if own else ""

    @property
    def flux(self) -> Polynomial:
        """f of u_t = −f(u)_x, for a term that has one."""
        (slope,) = [atom for atom, _ in self.monomial if atom.derivative]
        powers = {atom: power for atom, power in self.monomial if atom != slope}
        plain = slope._replace(derivative="")
        powers[plain] = 1 + powers.get(plain, 0)
        return Polynomial({tuple(powers.items()): -self.number / powers[plain]})

    @property
    def derivatives(self) -> int:
        return max((len(letters) for _, letters, _ in self.fields), default=0)

    @property
    def linear(self) -> bool:
        """Whether it is a derivative of one channel."""
        return len(self.fields) == 1 and self.fields[0][2] == 1 and self.derivatives > 0 and not self.has_function

    @property
    def multiple(self) -> bool:
        """Whether it is a multiple of one channel."""
        return len(self.fields) == 1 and self.fields[0][1:] == ("", 1) and not self.has_function

    @property
    def own(self) -> bool:
        """Whether it is a derivative of the channel that it acts on."""
        return self.linear and self.fields[0][0] == self.target

    @property
    def backwards(self) -> bool:
        """Whether it runs diffusion backwards: +u_xxxx, or −u_xx."""
        growing = {2: self.number < 0, 4: self.number > 0}.get(self.derivatives, False)
        return self.own and growing and len(set(self.fields[0][1])) == 1

    @property
    def kind(self) -> str:
        """The process that it belongs to, if the equation has no reason to treat linear terms together."""
        if not self.derivatives:
            return REACTION
        if self.linear:
            return LINEAR[self.derivatives] if self.own else COUPLING
        return FLUX if self.along else TRANSPORT

    def __str__(self) -> str:
        text, size = written(self.monomial), abs(self.number)
        shown = [*([] if size == 1.0 and text != "1" else [f"{size:.6g}"]), *([] if text == "1" else [text])]
        return f"{'-' if self.number < 0 else '+'} {' '.join(shown)}"


@dataclass(frozen=True)
class SplitEquation:
    """An equation that was written as a formula: its processes with their terms, and a dictionary that solves them.

    ``equation`` and ``dictionary`` are what ``HyCOP(dictionary, equation)`` takes. Change the dictionary as any other:
    ``split.dictionary.swapping("advection", …)``.
    """

    text: str
    equation: Equation
    dictionary: Dictionary
    pieces: Mapping[str, Sequence[Piece]]

    def problem(self, **options: Any) -> Problem:
        """A problem of this equation: ``ranges`` of the coefficients, ``initial`` states, ``time``, ``shape``, … (see
        ``hycop.own_problem``). It trains, samples and is judged as one that comes with HyCOP."""
        return own_problem(self.equation, self.dictionary, **options)

    def _lines(self) -> list[tuple[str, str, str]]:
        out = []
        for process, pieces in self.pieces.items():
            for target in dict.fromkeys(piece.target for piece in pieces):
                mine = " ".join(str(piece) for piece in pieces if piece.target == target)
                first = target == pieces[0].target
                solver = type(self.dictionary[process]).__name__ if first else ""
                out.append((process if first else "", f"{target}_t = {mine.removeprefix('+ ')}", solver))
        return out

    def __str__(self) -> str:
        lines = self._lines()
        wide = [max(len(line[column]) for line in lines) for column in (0, 1)]
        body = [f"  {name:{wide[0]}}  {term:{wide[1]}}  {solver}".rstrip() for name, term, solver in lines]
        return "\n".join([self.text.strip(), *body])

    def _repr_html_(self) -> str:
        """The processes, for notebooks."""
        return markup.page(self.text.strip(), markup.table(("process", "terms", "primitive"), self._lines()))


def equation(
    text: str,
    *,
    name: str = "own",
    axes: int | None = None,
    features: Sequence[str] | None = None,
    positive: Sequence[str] = (),
    first_order: FirstOrder = "automatic",
) -> SplitEquation:
    """An equation from a text, split into processes by kind, with a primitive for each.

    Channels are what has a ``_t`` on the left; ``u_xx`` is a derivative, ``lap(u)`` the Laplacian, ``dx(u*v_x)`` a
    derivative of a product; every other name is a coefficient. Systems have their equations separated by ``;``.

    Linear terms with derivatives are solved exactly in Fourier space, terms without derivatives to rounding in each
    cell, with any functions (``r*u/(1+u)``, ``sin(u)``). First derivatives that form a flux, as ``-u*u_x`` or
    ``-dx(u^2/(u^2+(1-u)^2))``, are solved by finite volumes, all others by Runge–Kutta steps with spectral derivatives.
    With ``first_order="conservative"`` finite volumes also solve linear advection, which then knows walls and outflow;
    with ``"spectral"`` they solve nothing. ``name``, ``features`` and ``positive`` are those of ``Equation``. Without
    ``axes`` there are as many as derivatives name, and at least two with a Laplacian.

    >>> print(equation("u_t = -cx*u_x + Dx*u_xx + r*u*(1-u)"))
    u_t = -cx*u_x + Dx*u_xx + r*u*(1-u)
      advection  u_t = - cx*u_x         LinearTerms
      diffusion  u_t = Dx*u_xx          LinearTerms
      reaction   u_t = r*u - r*u^2      ExactLogistic
    """
    if first_order not in get_args(FirstOrder):
        raise UnknownNameError("first_order", str(first_order), get_args(FirstOrder))
    found = parsed(text, axes)
    pieces = [
        Piece(target, monomial, number)
        for target, polynomial in found.right.items()
        for monomial, number in polynomial.terms.items()
    ]
    _check_terms(pieces, first_order)
    channels = tuple(found.right)
    processes = _processes(pieces, channels, first_order)
    named = Equation(
        name,
        tuple(processes),
        tuple(Channel(channel) for channel in channels),
        _coefficients(pieces),
        features=None if features is None else tuple(features),
        speeds=_speeds(pieces, channels),
        unit_rate=_unit_rate(pieces),
        positive=tuple(positive),
        formula="; ".join(part.strip() for part in text.replace("\n", ";").split(";") if part.strip()),
    )
    conservative = (FLUX, LINEAR[1]) if first_order == "conservative" else (FLUX,)
    solvers = {
        process: _fluxes(process, mine, channels) if process in conservative else _solver(process, mine, channels)
        for process, mine in processes.items()
    }
    return SplitEquation(text, named, Dictionary(solvers), processes)


def _check_terms(pieces: Sequence[Piece], first_order: FirstOrder) -> None:
    """Refuses terms that are too long, ill-posed, or without a solver."""
    for piece in pieces:
        if len(piece.fields) > MOST_FACTORS and not piece.has_function:
            raise InvalidInputError(
                f"equation: the term '{written(piece.monomial)}' has more than {MOST_FACTORS} different factors"
            )
        if any(power > HIGHEST_POWER for _, power in piece.monomial):
            raise InvalidInputError(
                f"equation: the term '{written(piece.monomial):.60}' has a power beyond {HIGHEST_POWER}"
            )
        if first_order == "spectral" and piece.has_function and piece.along:
            raise InvalidInputError(
                f"equation: the flux '{written(piece.monomial)}' has functions; leave out first_order='spectral'"
            )
    _check_damping(pieces)


def _processes(pieces: Sequence[Piece], channels: Sequence[str], first_order: FirstOrder) -> dict[str, list[Piece]]:
    """The terms of each process. The linear terms of several channels are one process, unless they are all of one kind:
    they then share their transforms. So are those of one channel where one of them alone would be ill-posed."""
    apart = LINEAR[1] if first_order == "conservative" else None
    linear = [piece for piece in pieces if piece.linear and piece.kind != apart]
    linear += _waves(pieces)
    kinds = {piece.kind for piece in linear}
    alone = len(channels) == 1 and not any(piece.backwards for piece in pieces)
    shared = None if alone or len(kinds) == 1 else TOGETHER
    smooth = first_order == "spectral" or (
        first_order == "automatic" and any(piece.linear and piece.derivatives > 2 for piece in pieces)
    )
    out: dict[str, list[Piece]] = {}
    for piece in sorted(pieces, key=lambda piece: _ORDER.index(piece.kind)):
        kind = TRANSPORT if smooth and piece.kind == FLUX and not piece.has_function else piece.kind
        out.setdefault(shared if shared and piece in linear else kind, []).append(piece)
    return out


def _waves(pieces: Sequence[Piece]) -> list[Piece]:
    """Multiples of other channels that make waves with a derivative: u_t = v beside v_t = c*u_xx. One without the other
    is unstable in long steps; together they only turn the modes."""
    pulls = {(piece.fields[0][0], piece.target) for piece in pieces if piece.linear and not piece.own}
    return [
        piece
        for piece in pieces
        if piece.multiple
        and (piece.target, piece.fields[0][0]) in pulls
        and (piece.fields[0][0], piece.target) not in pulls
    ]


_ORDER = (*LINEAR.values(), COUPLING, FLUX, TRANSPORT, REACTION)


def _fluxes(process: str, pieces: Sequence[Piece], channels: tuple[str, ...]) -> Primitive:
    """Finite volumes for terms that are derivatives of fluxes."""
    total: dict[tuple[str, str], Polynomial] = {}
    for piece in pieces:
        key = (piece.target, piece.along)
        total[key] = total.get(key, Polynomial({})) + piece.flux
    targets, along = zip(*total, strict=True)
    return ConservativeFlux(channels, targets, along, tuple(flux.text for flux in total.values()), process)


def _rates(pieces: Sequence[Piece], channels: tuple[str, ...]) -> Primitive:
    """Rates in each cell that are no polynomials."""
    total = {
        name: Polynomial({piece.monomial: piece.number for piece in pieces if piece.target == name})
        for name in channels
    }
    return PointwiseRate(channels, tuple(rate.text for rate in total.values()))


def _solver(process: str, pieces: Sequence[Piece], channels: tuple[str, ...]) -> Primitive:
    targets = tuple(piece.target for piece in pieces)
    terms = tuple(written(piece.monomial) for piece in pieces)
    amounts = tuple(piece.number for piece in pieces)
    if (
        process == REACTION
        and channels == targets[:1]
        and dict(zip(terms, amounts, strict=True))
        == {
            f"r*{channels[0]}": 1.0,
            f"r*{channels[0]}^2": -1.0,
        }
    ):
        return ExactLogistic()
    if process == REACTION and any(piece.has_function for piece in pieces):
        return _rates(pieces, channels)
    if process in (REACTION, TRANSPORT):
        return SymbolicTerms(channels, targets, terms, amounts, process)
    apart = all(len(set(letters)) == 1 for piece in pieces for _, letters, _ in piece.fields)
    if len(channels) == 1 and apart:
        return LinearTerms(channels, terms, amounts, process)
    even = all(piece.derivatives % 2 == 0 and piece.own for piece in pieces)
    if even and apart:  # also between walls
        return SymbolicTerms(channels, targets, terms, amounts, process)
    return CoupledLinearTerms(channels, targets, terms, amounts, process)


def _check_damping(pieces: Sequence[Piece]) -> None:
    """Refuses diffusion that runs backwards: without a fourth derivative that damps, fine modes grow without bound."""
    damped = {piece.target for piece in pieces if piece.kind == LINEAR[4] and piece.number < 0}
    for piece in pieces:
        if piece.backwards and not (piece.derivatives == 2 and piece.target in damped):
            raise InvalidInputError(
                f"equation: the term '{str(piece).removeprefix('+ ')}' of {piece.target}_t runs diffusion backwards, "
                "so fine modes grow without bound; change its sign"
            )


def _coefficients(pieces: Sequence[Piece]) -> dict[str, Coefficient]:
    """What each coefficient means, from the terms in which it stands alone."""
    names = dict.fromkeys(name for piece in pieces for name in piece.coefficients)
    return {name: _coefficient(name, [piece for piece in pieces if name in piece.coefficients]) for name in names}


def _coefficient(name: str, pieces: Sequence[Piece]) -> Coefficient:
    kinds = {_scale(piece) for piece in pieces}
    if len(kinds) != 1 or any(piece.factors != [name] for piece in pieces):
        return Coefficient("other")
    (kind,) = kinds
    axes = {AXES.index(letters[0]) for piece in pieces for _, letters, _ in piece.fields if letters}
    axis = axes.pop() if len(axes) == 1 and kind in ("velocity", "diffusivity") else None
    return Coefficient(kind, axis, at_least=0.0 if kind == "diffusivity" else None)


def _scale(piece: Piece) -> Kind:
    """The time scale that the coefficient of a term has."""
    if piece.own and len(set(piece.fields[0][1])) == 1:
        return "velocity" if piece.derivatives == 1 else "diffusivity" if piece.derivatives == 2 else "other"
    return "rate" if not piece.derivatives else "other"


def _speeds(pieces: Sequence[Piece], channels: Sequence[str]) -> tuple[str, ...]:
    """The speed |u| of Burgers' advection by the first channel, whose coefficient is a number."""
    burgers = [piece for piece in pieces if piece.kind == FLUX and not piece.coefficients and not piece.has_function]
    square = [piece for piece in burgers if sum(power for _, _, power in piece.fields) == 2]
    return ("first_channel",) if any(piece.target == channels[0] for piece in square) else ()


def _unit_rate(pieces: Sequence[Piece]) -> float:
    """The fastest rate among the terms that have no coefficient, for states of order one."""
    plain = [abs(piece.number) for piece in pieces if not piece.derivatives and not piece.coefficients]
    return max(plain, default=0.0)
