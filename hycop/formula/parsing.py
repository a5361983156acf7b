"""Equations as text: ``u_t = -cx*u_x + Dx*u_xx + r*u*(1-u)``, read without evaluating anything.

Python's own parser makes a tree of the text (``hycop.expression``); the tree is walked over a short list of what is
allowed.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, pi

from hycop.errors import InvalidInputError
from hycop.expression import LONGEST, Place, check_name, listed_functions, number_of, tree_of
from hycop.formula.polynomial import RECIPROCAL, Atom, Polynomial, bracketed
from hycop.grid import AXES
from hycop.kernels.tape import FUNCTIONS
from hycop.terms import HIGHEST_DERIVATIVE, HIGHEST_POWER

PLAIN = str.maketrans({"−": "-", "·": "*", "×": "*", "–": "-"})
"""Signs from typeset formulas; each is one character, so that columns stay."""

OPERATORS: Mapping[type[ast.operator], Callable[[Polynomial, Polynomial], Polynomial]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}
DERIVATIVES = {f"d{letter}": letter for letter in AXES}
LAPLACIAN = "lap"
RESERVED = (*AXES, "t", "pi", LAPLACIAN, *DERIVATIVES, *FUNCTIONS)
"""Names that mean something."""

_LEFT = re.compile(r"\s*([^\W\d_]\w*?)_t\s*", re.ASCII)


@dataclass(frozen=True)
class Parsed:
    """The right-hand side of each channel, and the number of axes."""

    right: Mapping[str, Polynomial]
    axes: int


def parsed(text: str, axes: int | None = None) -> Parsed:
    """A formula or several, separated by semicolons or line breaks.

    Without ``axes`` there are as many as the derivatives name, and at least two if there is a Laplacian.

    >>> from hycop.formula.polynomial import written
    >>> [written(monomial) for monomial in parsed("u_t = D*u_xx - dx(u^2/2)").right["u"].terms]
    ['D*u_xx', 'u*u_x']
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"equation is a {type(text).__name__}: give a text, as 'u_t = D*u_xx'")
    if len(text) > LONGEST:
        raise InvalidInputError(f"equation has {len(text)} characters: at most {LONGEST} are possible")
    if axes is not None and (isinstance(axes, bool) or axes not in range(1, len(AXES) + 1)):
        raise InvalidInputError(f"axes is {axes!r:.40}: 1, 2 or 3 is needed")
    sides = [_sides(part) for part in _statements(text.translate(PLAIN))]
    if not sides:
        raise InvalidInputError("equation is empty: write one, as 'u_t = D*u_xx'")
    channels = [left for left, _ in sides]
    for name in channels:
        if channels.count(name) > 1:
            raise InvalidInputError(f"equation: {name}_t stands on the left twice; add the two right-hand sides")
    trees = [(right, tree_of(right)) for _, right in sides]
    found = _axes_of(trees) if axes is None else axes
    right = {
        name: _Reader(place, name, tuple(channels), found).read(tree)
        for name, (place, tree) in zip(channels, trees, strict=True)
    }
    for name, polynomial in right.items():
        if not polynomial.terms:
            raise InvalidInputError(f"equation of {name}: its right-hand side is zero; leave the channel out")
    return Parsed(right, found)


def _statements(text: str) -> list[Place]:
    out, lines = [], text.splitlines()
    for number, line in enumerate(lines, start=1):
        column = 0
        for part in line.split(";"):
            if part.strip():
                out.append(Place(part, number, column, len(lines)))
            column += len(part) + 1
    return out


def _sides(place: Place) -> tuple[str, Place]:
    """The channel on the left, and the right-hand side."""
    left, sign, right = place.text.partition("=")
    if not sign:
        raise place.error(0, "there is no '='; write u_t = …")
    if "=" in right:
        raise place.error(len(left) + 1 + right.index("="), "there is a second '='; separate equations by ';'")
    match = _LEFT.fullmatch(left)
    if match is None or match[1].endswith("_t"):
        raise place.error(0, f"the left-hand side is {left.strip()!r:.30}; {_left_advice(left)}")
    name = match[1]
    if keyword.iskeyword(name) or name in RESERVED:
        raise place.error(0, f"'{name}' cannot be the name of a channel")
    if not right.strip():
        raise place.error(len(left) + 1, "the right-hand side is empty")
    return name, Place(right, place.line, place.column + len(left) + 1, place.lines)


def _left_advice(left: str) -> str:
    """What to write instead of a left-hand side that is no channel with _t."""
    twice = re.fullmatch(r"\s*([^\W\d_]\w*?)_t_?t\s*", left, re.ASCII)
    if twice:
        return f"write a channel for {twice[1]}_t, as {twice[1]}_t = v; v_t = …"
    if re.search(r"[^\W\d_]\w*_t\b", left, re.ASCII):
        return "bring all terms but u_t to the right"
    return "it must be a channel with _t, as u_t"


def _axes_of(trees: Sequence[tuple[Place, ast.expr]]) -> int:
    """As many axes as the formula names."""
    names = {node.id for _, tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    letters = {
        letter for name in names for letter in DERIVATIVES.get(name, name.rpartition("_")[2] if "_" in name else "")
    }
    named = [1 + AXES.index(letter) for letter in letters if letter in AXES]
    return max([1, *named, *([2] if LAPLACIAN in names else [])])


@dataclass(frozen=True)
class _Reader:
    """Turns the tree of the right-hand side of a channel into a polynomial."""

    place: Place
    target: str
    channels: tuple[str, ...]
    axes: int

    def read(self, node: ast.expr) -> Polynomial:
        try:
            found = self._read(node)
            self._check(found)
            return found
        except InvalidInputError as error:
            if str(error).startswith("equation"):
                raise
            raise self._error(node, str(error)) from None

    def _error(self, node: ast.expr, message: str) -> InvalidInputError:
        return self.place.error_at(node, message)

    def _read(self, node: ast.expr) -> Polynomial:
        match node:
            case ast.Constant(value=value):
                return Polynomial.number(number_of(self.place, node, value))
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.read(inner).times(-1.0)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.read(inner)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(self.read(left), right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.read(left) * self._inverse(right)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                return OPERATORS[type(operator)](self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]):
                return self._call(node, name, inner)
        raise self._error(node, f"this is not possible here; use {self.place.allowed}")

    def _check(self, found: Polynomial) -> None:
        """Refuses functions beside derivatives, and fluxes of other channels."""
        for monomial in found.terms:
            if not any(atom.is_function for atom, _ in monomial) or not any(atom.derivative for atom, _ in monomial):
                continue
            flux = [(atom, power) for atom, power in monomial if atom.is_field]
            atom, power = flux[0]
            if len(flux) > 1 or power > 1 or not atom.is_function:
                raise InvalidInputError(
                    "functions and quotients stand in terms without derivatives, or in a flux, as dx(u/(1+u)); name a "
                    "quotient of coefficients, as k for 1/tau"
                )
            if atom.channels != (self.target,):
                others = ", ".join(atom.channels)
                raise InvalidInputError(
                    f"a flux of {self.target}_t with functions has to be one of {self.target} alone, not of {others}"
                )

    def _power(self, base: Polynomial, node: ast.expr) -> Polynomial:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            raise self._error(node, "a power of a power: write a number, as u^8")
        exponent = self.read(node)
        value = exponent.constant
        if value is not None and (abs(value) > HIGHEST_POWER or value == 0):
            raise self._error(node, f"a power must be a number between -{HIGHEST_POWER} and {HIGHEST_POWER}, and not 0")
        if value is not None and value.is_integer():
            return base.power(int(value)) if value > 0 else self._reciprocal(base).power(int(-value))
        self._check_argument(base)
        self._check_argument(exponent)
        if base.constant is not None and value is not None:
            return self._finite(base.constant, lambda x: x**value)
        return Polynomial.function(f"{bracketed(base.text)}^{bracketed(exponent.text)}", base, exponent)

    def _inverse(self, node: ast.expr) -> Polynomial:
        divisor = self.read(node)
        if divisor.constant == 0:
            raise self._error(node, "this divides by zero")
        if not divisor.pointwise:
            raise self._error(node, "a derivative cannot stand in a divisor")
        return self._reciprocal(divisor)

    def _reciprocal(self, divisor: Polynomial) -> Polynomial:
        if divisor.constant is not None:
            return self._finite(divisor.constant, lambda x: 1.0 / x)
        self._check_argument(divisor)
        return Polynomial.function(f"{RECIPROCAL}{bracketed(divisor.text)}", divisor)

    def _check_argument(self, argument: Polynomial) -> None:
        if not argument.pointwise:
            raise InvalidInputError("derivatives cannot stand in functions, divisors or odd powers")

    def _finite(self, value: float, function: Callable[[float], float | complex]) -> Polynomial:
        """The value of a function of a number."""
        try:
            found = complex(function(value))
        except (ValueError, OverflowError, ZeroDivisionError):
            found = complex(math.nan)
        if found.imag or not isfinite(found.real):
            raise InvalidInputError("this number does not exist, or is too large")
        return Polynomial.number(found.real)

    def _name(self, node: ast.expr, name: str) -> Polynomial:
        channel, _, letters = name.rpartition("_")
        if name in self.channels:
            return Polynomial.atom(Atom(name, ""))
        if channel in self.channels:
            wrong = [letter for letter in letters if letter not in AXES[: self.axes]]
            if wrong or not letters:
                known = ", ".join(AXES[: self.axes])
                raise self._error(node, f"'{name}' is a derivative along '{''.join(wrong)}'; the axes are {known}")
            if len(letters) > HIGHEST_DERIVATIVE:
                raise self._error(node, f"at most {HIGHEST_DERIVATIVE} derivatives are possible")
            return Polynomial.atom(Atom(channel, "".join(sorted(letters))))
        if name == "pi":
            return Polynomial.number(pi)
        if name in (*AXES, "t"):
            raise self._error(node, f"'{name}': coefficients that vary in space or time are not possible in a formula")
        if name in RESERVED:
            raise self._error(node, f"'{name}' needs brackets, as {name}({self.channels[0]})")
        unknown = re.fullmatch(r"([^\W\d]\w*)_([xyz]+)", name, re.ASCII)
        if unknown:
            raise self._error(node, f"'{name}' is a derivative of '{unknown[1]}', {self._without_equation}")
        check_name(self.place, node, name)
        return Polynomial.atom(Atom(name))

    @property
    def _without_equation(self) -> str:
        return f"which has no equation (there is {', '.join(f'{each}_t' for each in self.channels)})"

    def _call(self, node: ast.expr, name: str, inner: ast.expr) -> Polynomial:
        if name == LAPLACIAN or name in DERIVATIVES:
            self._check_varies(node, self.read(inner))
        if name == LAPLACIAN:
            letters: tuple[str, ...] = AXES[: self.axes]
            total = Polynomial({})
            for letter in letters:
                total = total + self.read(inner).differentiated(letter).differentiated(letter)
            return self._steep(node, total)
        if name in DERIVATIVES and DERIVATIVES[name] in AXES[: self.axes]:
            return self._steep(node, self.read(inner).differentiated(DERIVATIVES[name]))
        if name in FUNCTIONS:
            argument = self.read(inner)
            self._check_argument(argument)
            if argument.constant is not None:
                return self._finite(argument.constant, abs if name == "abs" else getattr(math, name))
            return Polynomial.function(f"{name}({argument.text})", argument)
        raise self._error(node, f"the function '{name}' is not possible; use {listed_functions()}, lap, dx, dy, dz")

    def _check_varies(self, node: ast.expr, inner: Polynomial) -> None:
        """Refuses derivatives of coefficients: a channel whose name is wrong would vanish in silence."""
        atoms = [atom for monomial in inner.terms for atom, _ in monomial]
        names = [name for atom in atoms for name in atom.coefficients]
        if names and not any(atom.channels for atom in atoms):
            raise self._error(node, f"this is a derivative of '{names[0]}', {self._without_equation}")

    def _steep(self, node: ast.expr, polynomial: Polynomial) -> Polynomial:
        for monomial in polynomial.terms:
            if any(len(atom.derivative or "") > HIGHEST_DERIVATIVE for atom, _ in monomial):
                raise self._error(node, f"at most {HIGHEST_DERIVATIVE} derivatives are possible")
        return polynomial
