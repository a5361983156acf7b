"""What the commands print: lines, tables and errors. All text passes through here, and none of it can steer a terminal.

Text may come from files and paths, so brackets are no markup, and control characters are shown, not sent.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text


def visible(text: str) -> str:
    """The text with every character that a terminal would obey, or could not show, written out; line breaks stay.

    >>> visible("a\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(each if each == "\n" or each.isprintable() else _written_out(each) for each in text)


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class _Terminal(Console):
    """A console that shows text as it is: no markup, no emoji, no control characters, also in tables."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


_out = _Terminal()
_err = _Terminal(stderr=True)


def show(table: RichTable) -> None:
    """Prints a table to stdout."""
    _out.print(table)


def say(text: str) -> None:
    """Prints a result to stdout."""
    _out.print(text)


def tell(text: str) -> None:
    """Prints a remark to stderr."""
    _err.print(text)


LONGEST = 1000
"""Characters of an error line; what is longer is cut in the middle."""


def fail(text: str) -> None:
    """Prints an error as one line to stderr, if that can be written at all."""
    line = text.replace("\n", "\\n")
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    with suppress(OSError):
        _err.print(f"hycop: {line}")


def tolerate_encodings() -> None:
    """A terminal that cannot show a character, as with LC_ALL=C, shows a question mark instead."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # a test or a notebook may have put another stream there
        if reconfigure is not None:
            reconfigure(errors="replace")


def counted(count: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "sample"), counted(3, "seed")
    ('1 sample', '3 seeds')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"
