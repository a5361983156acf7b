"""Formulas as text: ``u_t = -cx*u_x + Dx*u_xx + r*u*(1-u)``, read without evaluating anything.

Python's own parser makes a tree of the text; the tree is walked over a short list of what is allowed.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, pi

from hycop.errors import InvalidInputError
from hycop.formula.polynomial import Atom, Polynomial
from hycop.grid import AXES
from hycop.terms import HIGHEST_DERIVATIVE, HIGHEST_POWER

LONGEST, DEEPEST = 2000, 60
"""Characters of a formula, and brackets inside each other, at most."""

PLAIN = str.maketrans({"−": "-", "·": "*", "×": "*", "–": "-"})
"""Signs from typeset formulas; each is one character, so that columns stay."""

ALLOWED = "numbers, names, + - * / ^, derivatives as u_xx, lap(…), dx(…), dy(…), dz(…)"
OPERATORS: Mapping[type[ast.operator], Callable[[Polynomial, Polynomial], Polynomial]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}
DERIVATIVES = {f"d{letter}": letter for letter in AXES}
LAPLACIAN = "lap"

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
    trees = [(right, _tree(right)) for _, right in sides]
    found = _axes_of(trees) if axes is None else axes
    right = {
        name: _Reader(place, tuple(channels), found).read(tree)
        for name, (place, tree) in zip(channels, trees, strict=True)
    }
    for name, polynomial in right.items():
        if not polynomial.terms:
            raise InvalidInputError(f"equation of {name}: its right-hand side is zero; leave the channel out")
    return Parsed(right, found)


@dataclass(frozen=True)
class Place:
    """A piece of the text, and the column at which it begins in its line."""

    text: str
    line: int
    column: int
    lines: int = field(default=1, compare=False)

    def error(self, column: int, message: str) -> InvalidInputError:
        """An error that points at a column of the piece, counted from zero."""
        where = (
            f"column {self.column + column + 1}"
            if self.lines == 1
            else f"line {self.line}, column {self.column + column + 1}"
        )
        near = self.text[column : column + 20].strip()
        return InvalidInputError(f"equation, {where}{f' (at {near!r})' if near else ''}: {message}")


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
    if match is None:
        raise place.error(0, f"the left-hand side is {left.strip()!r:.30}; it must be a channel with _t, as u_t")
    name = match[1]
    if keyword.iskeyword(name) or name in (*AXES, "t", "pi", LAPLACIAN, *DERIVATIVES):
        raise place.error(0, f"'{name}' cannot be the name of a channel")
    if not right.strip():
        raise place.error(len(left) + 1, "the right-hand side is empty")
    return name, Place(right, place.line, place.column + len(left) + 1, place.lines)


def _tree(place: Place) -> ast.expr:
    depth = deepest = 0
    for sign in place.text:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise place.error(0, f"more than {DEEPEST} brackets inside each other")
    if "**" in place.text:
        raise place.error(place.text.index("**"), "write powers with ^, as u^2")
    bad = re.search(r"[^\w\s.+\-*/^()]", place.text, re.ASCII)
    if bad:
        raise place.error(bad.start(), f"'{bad[0]}' is not possible here; use {ALLOWED}")
    doubled = re.search(r"[+\-*/^]\s*[*/^]", place.text)
    if doubled:
        raise place.error(doubled.start(), "two operators in a row")
    source = place.text.replace("^", "**")
    start = len(source) - len(source.lstrip())
    try:
        return ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        column = _column(place.text, start + max(0, (error.offset or 1) - 1))
        raise place.error(min(column, len(place.text) - 1), _why(place, error)) from None
    except (ValueError, MemoryError, RecursionError):
        raise place.error(0, "it cannot be read; write it shorter") from None


def _why(place: Place, error: SyntaxError) -> str:
    if place.text.count("(") != place.text.count(")"):
        return "a bracket is not closed, or closed twice"
    for word in re.findall(r"\w+", place.text):
        if keyword.iskeyword(word):
            return f"'{word}' is a word of Python and cannot be a name"
        if re.fullmatch(r"\d[\d.]*[^\W\d]\w*", word):
            return f"'{word}': write the sign *, as 2*u"
    return f"this is not a formula ({error.msg}); is an operator or a factor missing?"


def _column(text: str, column: int) -> int:
    """The column in the text of a column in the source, where each ^ takes two characters."""
    place = 0
    for index, sign in enumerate(text):
        if place >= column:
            return index
        place += 2 if sign == "^" else 1
    return len(text)


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
    """Turns the tree of a right-hand side into a polynomial."""

    place: Place
    channels: tuple[str, ...]
    axes: int

    def read(self, node: ast.expr) -> Polynomial:
        try:
            return self._read(node)
        except InvalidInputError as error:
            if str(error).startswith("equation"):
                raise
            raise self._error(node, str(error)) from None

    def _error(self, node: ast.expr, message: str) -> InvalidInputError:
        lead = len(self.place.text) - len(self.place.text.lstrip())
        return self.place.error(_column(self.place.text, lead + node.col_offset), message)

    def _read(self, node: ast.expr) -> Polynomial:
        match node:
            case ast.Constant(value=value):
                return self._number(node, value)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.read(inner).times(-1.0)
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.read(inner)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.read(left).power(self._exponent(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.read(left).times(1.0 / self._divisor(right))
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                return OPERATORS[type(operator)](self.read(left), self.read(right))
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]):
                return self._call(node, name, inner)
        raise self._error(node, f"this is not possible here; use {ALLOWED}")

    def _number(self, node: ast.expr, value: object) -> Polynomial:
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e100 or not isfinite(value):
            raise self._error(node, "a number of ordinary size is needed")
        return Polynomial.number(float(value))

    def _exponent(self, node: ast.expr) -> int:
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= HIGHEST_POWER:
            raise self._error(node, f"a power must be a whole number from 1 to {HIGHEST_POWER}")
        return value

    def _divisor(self, node: ast.expr) -> float:
        value = self.read(node).constant
        if value is None:
            raise self._error(node, "divide by numbers only; name the quotient as a coefficient, as k for 1/tau")
        if value == 0:
            raise self._error(node, "this divides by zero")
        return value

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
        if name in (LAPLACIAN, *DERIVATIVES):
            raise self._error(node, f"'{name}' needs brackets, as {name}({self.channels[0]})")
        unknown = re.fullmatch(r"([^\W\d]\w*)_([xyz]+)", name, re.ASCII)
        if unknown:
            known = ", ".join(f"{each}_t" for each in self.channels)
            raise self._error(node, f"'{name}' is a derivative of '{unknown[1]}', which has no equation ({known} have)")
        if not name.isascii() or name.startswith("_") or len(name) > 30:
            raise self._error(node, "a name must be ASCII letters and digits, at most 30, and begin with a letter")
        return Polynomial.atom(Atom(name))

    def _call(self, node: ast.expr, name: str, inner: ast.expr) -> Polynomial:
        if name == LAPLACIAN:
            letters: tuple[str, ...] = AXES[: self.axes]
            total = Polynomial({})
            for letter in letters:
                total = total + self.read(inner).differentiated(letter).differentiated(letter)
            return self._steep(node, total)
        if name in DERIVATIVES and DERIVATIVES[name] in AXES[: self.axes]:
            return self._steep(node, self.read(inner).differentiated(DERIVATIVES[name]))
        raise self._error(node, f"the function '{name}' is not possible; use {ALLOWED}")

    def _steep(self, node: ast.expr, polynomial: Polynomial) -> Polynomial:
        for monomial in polynomial.terms:
            if any(len(atom.derivative or "") > HIGHEST_DERIVATIVE for atom, _ in monomial):
                raise self._error(node, f"at most {HIGHEST_DERIVATIVE} derivatives are possible")
        return polynomial
