"""Takes the pictures of studio and report that the documentation shows: docs/_static/studio.png and report.png.

    python docs/screenshots.py [RUN]

Without a run it trains adr2d with the preset quick, which takes some two minutes, and keeps the model in
build/screenshots/runs/adr for the next time. It needs the extras of development and Chromium (``chromium`` on the path,
or the program that HYCOP_CHROMIUM names).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "build" / "screenshots"
PICTURES = ROOT / "docs" / "_static"
HYCOP = [sys.executable, "-m", "hycop"]
SWITCHES = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PATIENCE = 120_000
"""Milliseconds to wait for a page: the machine may be busy."""


def trained() -> Path:
    """A model of adr2d, trained unless it is there already; its place as the pictures show it."""
    folder = Path("runs") / "adr"
    if not (KEPT / folder / "model.json").exists():
        hycop("train", "adr2d", "--out", folder, "--preset", "quick")
    return folder


def hycop(*words: str | Path) -> None:
    subprocess.run([*HYCOP, *map(str, words)], cwd=KEPT, check=True)


@contextmanager
def studio(run: Path) -> Iterator[str]:
    """The address of the studio while it is served."""
    command = [*HYCOP, "studio", str(run), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, cwd=KEPT, text=True, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                sys.exit("the studio did not start")
            yield found.group()
        finally:
            process.terminate()


def take_studio(browser: Any, run: Path) -> None:
    """A query inside training, with its truth."""
    page = browser.new_page(viewport={"width": 1280, "height": 1100}, device_scale_factor=1.5)
    page.set_default_timeout(PATIENCE)
    with studio(run) as address:
        page.goto(address)
        page.locator("main table").wait_for()
        page.get_by_label("Initial state").select_option("multi-gaussian")
        page.get_by_label("Seed").fill("3")
        page.keyboard.press("Enter")
        page.wait_for_timeout(3000)
        page.get_by_role("button", name="Solve the truth").click()
        page.get_by_text("against the truth").wait_for()
        page.wait_for_timeout(1500)
        page.screenshot(path=PICTURES / "studio.png", full_page=True)
    page.close()


def take_report(browser: Any, run: Path) -> None:
    """Programs across the regime, and the first of the queries with fields."""
    hycop("report", run, "--overwrite")
    page = browser.new_page(viewport={"width": 1100, "height": 1040}, device_scale_factor=1.5)
    page.set_default_timeout(PATIENCE)
    page.goto(f"{(KEPT / 'report.html').as_uri()}#programs")
    page.wait_for_timeout(500)
    page.screenshot(path=PICTURES / "report.png")
    page.close()


def main() -> None:
    program = os.environ.get("HYCOP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("no Chromium: install it (apt install chromium), or name the program in HYCOP_CHROMIUM")
    KEPT.mkdir(parents=True, exist_ok=True)
    PICTURES.mkdir(parents=True, exist_ok=True)
    run = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else trained()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        take_studio(browser, run)
        take_report(browser, run)
        browser.close()


if __name__ == "__main__":
    main()
