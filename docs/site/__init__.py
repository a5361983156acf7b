"""What the site shows that is not written down in docs/: commands, settings and API as the code has them, and the
files of the repository's first folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from docs.site.api import api_page
from docs.site.commands import commands_page, problems_page, settings_page
from docs.site.docstrings import plain

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent

MOVED = {
    "](docs/": "](",
    "](CHANGELOG.md)": "](changelog.md)",
    "](CONTRIBUTING.md)": "](contributing.md)",
}
"""Links of the repository's first folder as they are called in the site."""


def from_root(name: str) -> str:
    """A Markdown file of the repository's first folder, with the links of the site."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for old, new in MOVED.items():
        text = text.replace(old, new)
    return re.sub(r"\[([^\]]+)\]\(([^)#]+)(#[^)]*)?\)", _kept, text)


def _kept(match: re.Match[str]) -> str:
    """A link as it is if the site has its target, and its text alone if not."""
    target = match[2]
    if target.startswith("http") or (DOCS / target).exists():
        return match[0]
    return match[1] if match[1].startswith("`") else f"`{match[1]}`"


FILLED: Mapping[str, Callable[[], str]] = {
    "commands": commands_page,
    "settings": settings_page,
    "problems": problems_page,
    "api": api_page,
    "contributing": lambda: from_root("CONTRIBUTING.md"),
    "changelog": lambda: from_root("CHANGELOG.md"),
}
"""What an HTML comment ``<!-- fill: NAME -->`` in a page stands for."""


def filled(text: str, folder: Path) -> str:
    """A page with its comments filled in. A line ``<!-- picture: FILE, ALT -->`` becomes the picture if it is there."""

    def picture(match: re.Match[str]) -> str:
        path, alt = match[1].strip(), match[2].strip()
        return f"![{alt}]({path})" if (folder / path).exists() else ""

    text = re.sub(r"<!-- picture: ([^,]+),(.*?)-->", picture, text)
    return re.sub(r"<!-- fill: (\w+) -->", lambda match: FILLED[match[1]](), text)


def _read(app: Any, docname: str, source: list[str]) -> None:
    source[0] = filled(source[0], (DOCS / docname).parent)


def connect(app: Any) -> None:
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", plain)
