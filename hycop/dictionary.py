"""A dictionary: the named primitives that a program may use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from hycop import markup
from hycop.errors import IncompatibleError, InvalidInputError, UnknownNameError
from hycop.grid import Grid
from hycop.primitive import EXACT, Primitive, boundaries_of, checked_boundaries, fingerprint

UNSPLIT = re.compile(r"ETDRK([234])x([1-9]\d{0,4})\((.+)\)")
"""Name of an unsplit solver made of primitives of a dictionary: stages, steps, and their names with + between them."""


def unsplit_name(stages: int, steps: int, parts: Iterable[str]) -> str:
    return f"ETDRK{stages}x{steps}({'+'.join(parts)})"


class Dictionary(Mapping[str, Primitive]):
    """An ordered, immutable collection name → primitive.

    It also finds, by their names, the exponential integrators that its own primitives make together
    (``ExponentialRungeKutta``): ``dictionary["ETDRK4x8(linear+nonlinear)"]`` takes eight steps of ETDRK4. And it finds
    what stands ``beside``: solvers of the whole equation by their names. Programs may use both; they are no entries of
    the dictionary, and nothing is composed of them.

    >>> from hycop.primitives import ExactLogistic, Rk4Logistic
    >>> one = Dictionary({"reaction": ExactLogistic()})
    >>> two = one.swapping("reaction", Rk4Logistic())
    >>> one, two.processes
    (Dictionary(reaction=ExactLogistic()), frozenset({'reaction'}))
    """

    __slots__ = ("_primitives", "_unsplit", "beside")

    def __init__(self, primitives: Mapping[str, Primitive], beside: Mapping[str, Primitive] | None = None) -> None:
        if not primitives:
            raise InvalidInputError("a dictionary needs at least one primitive")
        for name, primitive in (*primitives.items(), *(beside or {}).items()):
            if not name or not isinstance(name, str):
                raise InvalidInputError(f"primitive name {name!r}: a non-empty text is needed")
            if isinstance(primitive, type):
                raise IncompatibleError(
                    f"'{name}' is the class {primitive.__name__}: give an object, as {primitive.__name__}()"
                )
            missing = [part for part in ("advances", "order", "flow", "work") if not hasattr(primitive, part)]
            if missing:
                raise IncompatibleError(
                    f"'{name}' ({type(primitive).__name__}) is not a primitive: it lacks {', '.join(missing)}"
                )
        self._primitives = MappingProxyType(dict(primitives))
        self.beside: Mapping[str, Primitive] = MappingProxyType(dict(beside or {}))
        self._unsplit: dict[str, Primitive] = {}  # those that were asked for

    def __reduce__(self) -> tuple[type[Dictionary], tuple[dict[str, Primitive], dict[str, Primitive]]]:
        return Dictionary, (dict(self._primitives), dict(self.beside))  # read-only views do not travel to processes

    def __getitem__(self, name: str) -> Primitive:
        if name in self._primitives:
            return self._primitives[name]
        if name in self.beside:
            return self.beside[name]
        if name not in self._unsplit:
            self._unsplit[name] = self._made(name)
        return self._unsplit[name]

    def _made(self, name: object) -> Primitive:
        """The unsplit solver of a name."""
        match = UNSPLIT.fullmatch(name) if isinstance(name, str) else None
        parts = match[3].split("+") if match else ()
        if match is None or not all(part in self for part in parts):
            raise UnknownNameError("primitive", str(name), self.everything, "(names of this dictionary)")
        # primitives stand above the dictionary in the house; few programs have an unsplit solver
        kind = import_module("hycop.primitives.exponential").ExponentialRungeKutta
        return cast(Primitive, kind(tuple(self[part] for part in parts), int(match[1]), int(match[2])))

    def __contains__(self, name: object) -> bool:
        return name in self._primitives

    def __iter__(self) -> Iterator[str]:
        return iter(self._primitives)

    def __len__(self) -> int:
        return len(self._primitives)

    def __repr__(self) -> str:
        return f"Dictionary({', '.join(f'{name}={primitive!r}' for name, primitive in self.items())})"

    def _repr_html_(self) -> str:
        """A table of the primitives, for notebooks."""
        lines = [
            (name, repr(each), ", ".join(sorted(each.advances)), _order(each), ", ".join(sorted(boundaries_of(each))))
            for name, each in self.items()
        ]
        heads = ("name", "primitive", "advances", "order", "boundaries")
        return markup.page(f"Dictionary of {len(self)}", markup.table(heads, lines))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._primitives)

    @property
    def everything(self) -> Mapping[str, Primitive]:
        """Its primitives, and what stands beside them."""
        return {**self._primitives, **self.beside}

    def names_in(self, steps: Iterable[str]) -> tuple[str, ...]:
        """The names of programs that have these steps: its own, and those of unsplit solvers."""
        more = [name for name in dict.fromkeys(steps) if name not in self]
        for name in more:
            self[name]  # refuses what is not there
        return (*self.names, *more)

    @property
    def processes(self) -> frozenset[str]:
        """All processes that some primitive advances."""
        return frozenset().union(*(primitive.advances for primitive in self.values()))

    def fingerprint(self) -> str:
        """SHA-256 of the names and fingerprints of the primitives, in order, and of what stands beside them."""
        lines = (f"{len(name)} {name} {fingerprint(primitive)}" for name, primitive in self.everything.items())
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def adding(self, name: str, primitive: Primitive) -> Dictionary:
        if name in self.everything:
            raise InvalidInputError(f"primitive '{name}' is there already; use swapping to replace it")
        return Dictionary({**self, name: primitive}, self.beside)

    def without(self, name: str) -> Dictionary:
        self[name]
        return Dictionary({key: primitive for key, primitive in self.items() if key != name}, self.beside)

    def swapping(self, name: str, primitive: Primitive) -> Dictionary:
        self[name]
        return Dictionary(
            {key: primitive if key == name else old for key, old in self.items()},
            {key: primitive if key == name else old for key, old in self.beside.items()},
        )

    def with_beside(self, name: str, solver: Primitive) -> Dictionary:
        """The same primitives, and a solver of the whole equation beside them."""
        if name in self:
            raise InvalidInputError(f"primitive '{name}' is there already")
        return Dictionary(self._primitives, {name: solver})

    def alone(self) -> Dictionary:
        """The same primitives with nothing beside them."""
        return Dictionary(self._primitives) if self.beside else self

    def check_boundaries(self, names: tuple[str, ...], grid: Grid) -> None:
        """Refuses primitives that cannot handle the boundaries of a grid, and names those that can."""
        for name in names:
            able = [
                other
                for other, primitive in self.items()
                if primitive.advances == self[name].advances and grid.boundary_kinds <= boundaries_of(primitive)
            ]
            checked_boundaries(name, self[name], grid, able)


def _order(primitive: Primitive) -> str:
    return "none" if primitive.order is None else "exact" if primitive.order == EXACT else f"{primitive.order:g}"
