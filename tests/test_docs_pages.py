"""The built documentation in a browser: no errors, no broken links, no serious findings of axe, all from here."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser import axe_findings
from tests.helpers import ROOT

SITE = ROOT / "build" / "docs"
PAGES = ("index", "getting_started", "results/fixed-time", "gallery/index", "reference/api")

pytestmark = pytest.mark.validate


@pytest.fixture(scope="module", autouse=True)
def site() -> None:
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE}: there is no documentation yet; run 'make docs'")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_nothing_to_complain_about(name: str, page: Any, complaints: list[str]) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((SITE / f"{name}.html").as_uri())
    assert not complaints and all(url.startswith(("file:", "data:", "blob:")) for url in asked), (complaints, asked)
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.evaluate("[...document.images].every(image => image.hasAttribute('alt'))")
    assert not axe_findings(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")


def test_links_lead_somewhere() -> None:
    missing = set()
    for place in sorted(SITE.rglob("*.html")):
        for link in re.findall(r"""<a [^>]*href="([^"#]+)""", place.read_text(encoding="utf-8")):
            parts = urlsplit(unescape(link))
            if not parts.scheme and not (place.parent / unquote(parts.path)).exists():
                missing.add(f"{place.relative_to(SITE)}: {link}")
    assert not missing
