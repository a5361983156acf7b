"""The variant of a row: named fields that tell rows of one method apart, written as one line of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

SEPARATOR = ", "
AT_MOST = "<="
_FIELD = re.compile(rf"(?P<name>.+?)(?P<relation>{AT_MOST}|=)(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Variant(Mapping[str, str]):
    """Ordered fields, name → value. A field without a value is a word; a value may begin with ``<=``.

    Two variants are equal if their texts are, so one that was read from a file equals the one that was written.

    >>> variant = Variant.of({"budget": "gain", "steps": "<=7", "reaction": ""})
    >>> print(variant)
    budget=gain, steps<=7, reaction
    >>> variant == Variant.parse("budget=gain, steps<=7, reaction"), variant["budget"], "reaction" in variant
    (True, 'gain', True)
    """

    fields: tuple[tuple[str, str], ...] = ()
    separator: str = SEPARATOR

    @classmethod
    def of(cls, fields: Mapping[str, object], separator: str = SEPARATOR) -> Variant:
        """Values as text; numbers in their shortest form."""
        if isinstance(fields, Variant):
            return fields
        shown = ((name, f"{value:g}" if isinstance(value, float) else str(value)) for name, value in fields.items())
        return cls(tuple(shown), separator)

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Reads fields from text. Text that is not a list of fields (a comma within brackets) becomes a single word."""
        if not text:
            return cls()
        separator = SEPARATOR if SEPARATOR in text or "," not in text else ","
        pieces = text.split(separator)
        fields = tuple(_field(piece) for piece in pieces)
        names = {name for name, _ in fields}
        whole = all(piece and piece.count("(") == piece.count(")") for piece in pieces) and len(names) == len(fields)
        return cls(fields, separator) if whole else cls(((text, ""),))

    def __str__(self) -> str:
        return self.separator.join(_text(name, value) for name, value in self.fields)

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.fields))

    def __len__(self) -> int:
        return len(self.fields)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Variant) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def adding(self, fields: Mapping[str, object]) -> Variant:
        """These fields, and more after them."""
        return Variant.of({**self, **fields}, self.separator)

    def without(self, name: str) -> Variant:
        """All fields but one."""
        return Variant(tuple(field for field in self.fields if field[0] != name), self.separator)


def _field(piece: str) -> tuple[str, str]:
    match = _FIELD.fullmatch(piece)
    if match is None:
        return piece, ""
    return match["name"], match["value"] if match["relation"] == "=" else AT_MOST + match["value"]


def _text(name: str, value: str) -> str:
    return f"{name}{value}" if value.startswith(AT_MOST) else f"{name}={value}" if value else name
