"""Docstrings are plain text with ``literals``: what else looks like markup, as ``*grid`` or |k|, is only notation."""

from __future__ import annotations

import re
from typing import Any

MARKUP = re.compile(r"``.+?``|\*\*?\w[^*\n]*?\w\*\*?(?!\w)|`[^`]+`_?", flags=re.DOTALL)


def escaped(text: str) -> str:
    """A paragraph in which bars and stars that are no markup stand for themselves.

    >>> print(escaped("(batch, *grid), |k| and ``|k|`` and *words*"))
    (batch, \\*grid), \\|k\\| and ``|k|`` and *words*
    """
    out, end = [], 0
    for match in MARKUP.finditer(text):
        out += [re.sub(r"[*|]", r"\\\g<0>", text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*out, re.sub(r"[*|]", r"\\\g<0>", text[end:])])


def plain(app: Any, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """For Sphinx's event ``autodoc-process-docstring``; doctests stay as they are."""
    blocks = re.split(r"(\n\s*\n)", "\n".join(lines))
    lines[:] = "".join(block if block.lstrip().startswith(">>>") else escaped(block) for block in blocks).split("\n")
