"""A headless Chromium for the tests that look at pages.

``tests/conftest.py`` offers the fixtures to every test file. The browser is that of the system (``chromium`` on the
path, or the program that ``HYCOP_CHROMIUM`` names); nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Switches under which Chromium runs as root, without a screen, and calls nobody."""

SERIOUS = ("serious", "critical")


def chromium() -> str:
    """The program to start."""
    found = os.environ.get("HYCOP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.fail("no Chromium: install it (apt install chromium), or name the program in HYCOP_CHROMIUM")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of a worker."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'dev'")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=list(QUIET))
        yield running
        running.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh page, without cookies or storage of other tests."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture
def complaints(page: Any) -> list[str]:
    """What the page complains about from now on: console errors, exceptions, and requests that fail."""
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("requestfailed", lambda request: heard.append(f"{request.url}: {request.failure}"))
    return heard


def axe_findings(page: Any, levels: tuple[str, ...] = SERIOUS) -> list[str]:
    """What axe-core finds on a page at these levels, a line for each kind with the first element that shows it."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [
        f"{each['id']} ({each['impact']}, {len(each['nodes'])}×): {each['help']}: {each['nodes'][0]['html'][:200]}"
        for each in found
        if each["impact"] in levels
    ]
