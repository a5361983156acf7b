"""Colours that colour-blind people can tell apart (Okabe and Ito's), for primitives, methods and terms of an error."""

from __future__ import annotations

from collections.abc import Iterable

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F")


def colour(index: int) -> str:
    """The colour of a place in a list; long lists begin again."""
    return COLOURS[index % len(COLOURS)]


def by_name(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in order.

    >>> by_name(["advection", "reaction", "advection"])
    {'advection': '#0072B2', 'reaction': '#E69F00'}
    """
    return {name: colour(index) for index, name in enumerate(dict.fromkeys(names))}


def ink(background: str) -> str:
    """Black or white, whichever reads better on a colour.

    >>> ink("#0072B2"), ink("#E69F00")
    ('white', 'black')
    """
    red, green, blue = (int(background[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.45 else "white"
