"""Formulas as text, read without evaluating anything: Python's parser makes a tree of the text, and only what a short
list allows is taken from it. ``Tape`` turns formulas of channels and coefficients into instructions."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite, pi

import numpy as np

from hycop.errors import InvalidInputError
from hycop.grid import Array
from hycop.kernels import tape as op

LONGEST, DEEPEST, MOST_LEVELS = 2000, 60, 250
"""Characters of a formula, brackets inside each other, and levels of its tree, at most."""

BINARY = (op.ADD, op.SUBTRACT, op.MULTIPLY, op.DIVIDE, op.POWER)

HIGHEST_EXPONENT = 16.0
"""Largest size of an exponent that is a number."""

ALLOWED = "numbers, names, + - * / ^, sin(…) and other functions, derivatives as u_xx, lap(…), dx(…), dy(…), dz(…)"
"""What an equation may contain."""


@dataclass(frozen=True)
class Place:
    """A piece of a text, and the line and column at which it begins; ``what`` is the text."""

    text: str
    line: int = 1
    column: int = 0
    lines: int = field(default=1, compare=False)
    what: str = "equation"
    allowed: str = field(default=ALLOWED, compare=False)

    def error(self, column: int, message: str) -> InvalidInputError:
        """An error that points at a column of the piece, counted from zero."""
        where = (
            f"column {self.column + column + 1}"
            if self.lines == 1
            else f"line {self.line}, column {self.column + column + 1}"
        )
        near = self.text[column : column + 20].strip()
        return InvalidInputError(f"{self.what}, {where}{f' (at {near!r})' if near else ''}: {message}")

    def error_at(self, node: ast.expr, message: str) -> InvalidInputError:
        """An error that points at a node of its tree."""
        lead = len(self.text) - len(self.text.lstrip())
        return self.error(_column(self.text, lead + node.col_offset), message)


def tree_of(place: Place) -> ast.expr:
    """The tree of a formula; what its nodes are is for the reader to check."""
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
        raise place.error(bad.start(), f"'{bad[0]}' is not possible here; use {place.allowed}")
    doubled = re.search(r"[+\-*/^]\s*[*/^]", place.text)
    if doubled:
        raise place.error(doubled.start(), "two operators in a row")
    source = place.text.replace("^", "**")
    start = len(source) - len(source.lstrip())
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except SyntaxError as error:
        column = _column(place.text, start + max(0, (error.offset or 1) - 1))
        raise place.error(min(column, len(place.text) - 1), _why(place, error)) from None
    except (ValueError, MemoryError, RecursionError):
        raise place.error(0, "it cannot be read; write it shorter") from None
    if _levels(tree) > MOST_LEVELS:
        raise place.error(0, f"more than {MOST_LEVELS} terms or signs in a row; write it shorter")
    return tree


def _levels(tree: ast.AST) -> int:
    """Levels of a tree, without recursion."""
    count, level = 0, [tree]
    while level:
        count, level = count + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return count


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


def number_of(place: Place, node: ast.expr, value: object) -> float:
    """The value of a number in a formula."""
    if isinstance(value, complex):
        raise place.error_at(
            node, "there are no complex numbers; write the real and the imaginary part as two channels, u and v"
        )
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e100 or not isfinite(value):
        raise place.error_at(node, "a number of ordinary size is needed")
    return float(value)


def check_name(place: Place, node: ast.expr, name: str) -> None:
    """Refuses what cannot be the name of a coefficient."""
    if not name.isascii() or name.startswith("_") or len(name) > 30:
        raise place.error_at(node, "a name must be ASCII letters and digits, at most 30, and begin with a letter")


def listed_functions() -> str:
    return ", ".join(op.FUNCTIONS)


@dataclass(frozen=True, eq=False)
class Tape:
    """Formulas as instructions: ``outputs`` are those that hold their values, ``coefficients`` the names they need."""

    code: Array
    numbers: Array
    outputs: Array
    coefficients: tuple[str, ...]

    @property
    def length(self) -> int:
        return len(self.code)

    def values(self, u: Array, k: Array) -> Array:
        """The formulas (formula, cell) of the channels (channel, cell) and coefficients of one sample."""
        registers = np.empty((self.length, u.shape[1]))
        op.evaluate(self.code, self.numbers, np.ascontiguousarray(u, dtype=np.float64), k, registers)
        return np.asarray(registers[self.outputs])

    def depends_on_channels(self, output: int) -> bool:
        """Whether the value of an instruction changes with a channel."""
        waiting: list[int] = [int(output)]
        seen: set[int] = set()
        while waiting:
            kind, a, b = (int(each) for each in self.code[waiting.pop()])
            if kind == op.CHANNEL:
                return True
            found = [a, b] if kind in BINARY else [a] if kind > op.POWER else []
            waiting += [each for each in found if each not in seen]
            seen.update(found)
        return False


@lru_cache(maxsize=256)
def tape_of(texts: tuple[str, ...], channels: tuple[str, ...], along: str | None = None, what: str = "formula") -> Tape:
    """The tape of formulas of channels; every other name is a coefficient. With a channel in ``along``, the derivatives
    of the formulas by that channel follow them.

    >>> tape = tape_of(("r*u/(1+u)",), ("u",), along="u")
    >>> tape.coefficients, tape.values(np.array([[1.0, 3.0]]), np.array([2.0])).tolist()
    (('r',), [[1.0, 1.5], [0.5, 0.125]])
    """
    builder = _Builder(tuple(channels))
    allowed = f"numbers, names, + - * / ^, {listed_functions()}"
    outputs = []
    for text in texts:
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            raise InvalidInputError(f"{what}: {text!r:.40} is not a formula of 1 to {LONGEST} characters")
        place = Place(text, what=f"{what} '{text:.60}'", allowed=allowed)
        outputs.append(builder.read(place, tree_of(place)))
    if along is not None:
        outputs += [builder.derivative(each, channels.index(along)) for each in outputs]
    return Tape(
        np.array(builder.code, dtype=np.int64),
        np.array([*builder.numbers, 0.0]),
        np.array(outputs, dtype=np.int64),
        tuple(builder.coefficients),
    )


class _Builder:
    """Collects instructions, each once."""

    def __init__(self, channels: tuple[str, ...]) -> None:
        self.channels = channels
        self.coefficients: list[str] = []
        self.numbers: list[float] = []
        self.code: list[tuple[int, int, int]] = []
        self._known: dict[tuple[int, int, int], int] = {}

    def _add(self, kind: int, a: int = 0, b: int = 0) -> int:
        key = (kind, a, b)
        if key not in self._known:
            self._known[key] = len(self.code)
            self.code.append(key)
        return self._known[key]

    def number(self, value: float) -> int:
        if value not in self.numbers:
            self.numbers.append(value)
        return self._add(op.NUMBER, self.numbers.index(value))

    def _value(self, index: int) -> float | None:
        kind, a, _ = self.code[index]
        return self.numbers[a] if kind == op.NUMBER else None

    def do(self, kind: int, a: int, b: int = 0) -> int:
        """An operation, left out where it changes nothing."""
        one, two = self._value(a), self._value(b)
        if kind == op.MULTIPLY and 0.0 in (one, two):
            return self.number(0.0)
        if (kind in (op.ADD, op.SUBTRACT) and two == 0.0) or (kind in (op.MULTIPLY, op.DIVIDE) and two == 1.0):
            return a
        if (kind == op.ADD and one == 0.0) or (kind == op.MULTIPLY and one == 1.0):
            return b
        if kind == op.DIVIDE and one == 0.0:
            return a
        return self._add(kind, a, b)

    def read(self, place: Place, node: ast.expr) -> int:
        binary = {ast.Add: op.ADD, ast.Sub: op.SUBTRACT, ast.Mult: op.MULTIPLY, ast.Div: op.DIVIDE}
        match node:
            case ast.Constant(value=value):
                return self.number(number_of(place, node, value))
            case ast.Name(id=name):
                return self._name(place, node, name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.do(op.MULTIPLY, self.number(-1.0), self.read(place, inner))
            case ast.UnaryOp(op=ast.UAdd(), operand=inner):
                return self.read(place, inner)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._power(place, self.read(place, left), right)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in binary:
                return self.do(binary[type(operator)], self.read(place, left), self.read(place, right))
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in op.FUNCTIONS:
                return self._add(op.FUNCTIONS[name], self.read(place, inner))
        raise place.error_at(node, f"this is not possible here; use {place.allowed}")

    def _name(self, place: Place, node: ast.expr, name: str) -> int:
        if name in self.channels:
            return self._add(op.CHANNEL, self.channels.index(name))
        if name == "pi":
            return self.number(pi)
        check_name(place, node, name)
        if name in op.FUNCTIONS:
            raise place.error_at(node, f"'{name}' needs brackets, as {name}({self.channels[0]})")
        if name not in self.coefficients:
            self.coefficients.append(name)
        return self._add(op.COEFFICIENT, self.coefficients.index(name))

    def _power(self, place: Place, base: int, node: ast.expr) -> int:
        exponent = self.read(place, node)
        value = self._value(exponent)
        if value is None:  # also of −1, which is read as a product
            kind, a, b = self.code[exponent]
            left, right = self._value(a), self._value(b)
            value = left * right if kind == op.MULTIPLY and left is not None and right is not None else None
        if value is not None and abs(value) > HIGHEST_EXPONENT:
            raise place.error_at(node, f"a power must be between -{HIGHEST_EXPONENT:g} and {HIGHEST_EXPONENT:g}")
        if value is None or not value.is_integer() or value == 0:
            return self._add(op.POWER, base, exponent if value is None else self.number(value))
        out = base  # by multiplication, which is faster, and right for negative bases
        for _ in range(int(abs(value)) - 1):
            out = self.do(op.MULTIPLY, out, base)
        return out if value > 0 else self.do(op.DIVIDE, self.number(1.0), out)

    def derivative(self, index: int, channel: int) -> int:
        """The derivative of an instruction by a channel."""
        slopes: dict[int, int] = {}
        for place in range(index + 1):  # instructions only use those before them
            slopes[place] = self._slope(place, channel, slopes)
        return slopes[index]

    def _slope(self, index: int, channel: int, slopes: dict[int, int]) -> int:
        kind, a, b = self.code[index]
        if kind in (op.NUMBER, op.COEFFICIENT):
            return self.number(0.0)
        if kind == op.CHANNEL:
            return self.number(1.0 if a == channel else 0.0)
        if kind in (op.ADD, op.SUBTRACT):
            return self.do(kind, slopes[a], slopes[b])
        if kind == op.MULTIPLY:
            return self.do(op.ADD, self.do(kind, slopes[a], b), self.do(kind, a, slopes[b]))
        if kind == op.DIVIDE:
            return self.do(kind, self.do(op.SUBTRACT, slopes[a], self.do(op.MULTIPLY, index, slopes[b])), b)
        if kind == op.POWER:  # a^b (b' log a + b a'/a)
            growth = self.do(op.DIVIDE, self.do(op.MULTIPLY, b, slopes[a]), a)
            if self._value(slopes[b]) != 0.0:
                growth = self.do(op.ADD, growth, self.do(op.MULTIPLY, slopes[b], self._add(op.LOG, a)))
            return self.do(op.MULTIPLY, index, growth)
        return self.do(op.MULTIPLY, self._function_slope(kind, index, a), slopes[a])

    def _function_slope(self, kind: int, index: int, a: int) -> int:
        one = self.number(1.0)
        match kind:
            case op.SIN:
                return self._add(op.COS, a)
            case op.COS:
                return self.do(op.MULTIPLY, self.number(-1.0), self._add(op.SIN, a))
            case op.TAN:
                return self.do(op.ADD, one, self.do(op.MULTIPLY, index, index))
            case op.EXP:
                return index
            case op.LOG:
                return self.do(op.DIVIDE, one, a)
            case op.SQRT:
                return self.do(op.DIVIDE, self.number(0.5), index)
            case op.TANH:
                return self.do(op.SUBTRACT, one, self.do(op.MULTIPLY, index, index))
            case op.SINH:
                return self._add(op.COSH, a)
            case op.COSH:
                return self._add(op.SINH, a)
            case op.ABS:
                return self._add(op.SIGN, a)
        return self.number(0.0)
