"""How long the studio takes from a move of a slider to the changed picture, in a real browser.

A headless Chromium moves the slider of T by a key and waits until the field has been painted anew, which a frame of
the browser's own animation tells. Moves come one by one, each after estimate and comparison of the last are there
(*at rest*), or as fast as a key repeats (*in a row*, of which the last answer counts). The models are trained on a
few queries only: what an answer costs does not depend on how well it was learned.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import hycop
from benchmarks.measure import Ratio

PROMISED = 300.0
"""Milliseconds within which the studio answers for problems in 2D on two cores."""

IN_A_ROW, REPEATED = 12, 40
"""Keys pressed in a row, and milliseconds between them."""

PATIENCE = 120_000
SWITCHES = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SMALL: dict[str, Any] = {"samples": 16, "tries": 1, "patterns": 1, "rounds": 1, "iterations": 2}

WATCH = """() => {
  const models = Bokeh.documents.flatMap((document) => [...document._all_models.values()]);
  const sources = models.filter((model) => model.type === 'ColumnDataSource');
  const field = sources.find((source) => source.data.image !== undefined);
  const program = sources.find((source) => source.data.lasts !== undefined);
  Object.assign(window, {pressed: [], painted: [], answered: []});
  window.addEventListener('keydown', () => window.pressed.push(performance.now()), true);
  const note = (times) => () => requestAnimationFrame(() => setTimeout(() => times.push(performance.now())));
  field.properties.data.change.connect(note(window.painted));
  program.properties.data.change.connect(note(window.answered));
}"""
"""Notes when keys are pressed, and when a changed field or program has been painted: after the frame that follows."""

FORGET = "() => { window.pressed.length = window.painted.length = window.answered.length = 0; }"

SETTLED = """() => {
  const seen = (root) => [...root.querySelectorAll('*')].flatMap(
    (node) => [...(node.matches('.estimate') ? [node.textContent] : []),
               ...(node.shadowRoot ? seen(node.shadowRoot) : [])]);
  const found = seen(document);
  return found.length && found.every((text) => text !== '…');
}"""


def missing() -> str:
    """What this measurement lacks here; empty if it can run."""
    if find_spec("panel") is None or find_spec("playwright") is None:
        return "needs the extra 'dev' (Panel and Playwright)"
    return "" if _chromium() else "needs Chromium (apt install chromium), or its program in HYCOP_CHROMIUM"


def _chromium() -> str | None:
    return os.environ.get("HYCOP_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def measure(problems: Sequence[str] = ("adr2d", "swe2d"), moves: int = 12) -> list[Ratio]:
    if lacks := missing():
        print(f"studio: skipped, it {lacks}")
        return []
    from playwright.sync_api import sync_playwright

    found: list[Ratio] = []
    if not problems:
        return found
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name in problems:
            _train(name, Path(folder) / name)
        browser = playwright.chromium.launch(executable_path=_chromium(), args=SWITCHES)
        for name in problems:
            with _served(Path(folder) / name) as address:
                found += _ratios(name, browser.new_page(), address, moves)
        browser.close()
    return found


def _train(name: str, folder: Path) -> None:
    """A model with the grid, the primitives and programs of the length of a real one."""
    problem = hycop.problem(name)
    data, held_out = (problem.sample(count, "train", seed, estimated=0) for seed, count in enumerate((16, 32)))
    hycop.HyCOP(problem.dictionary).fit(data, held_out, verbose=False, **SMALL).save(folder)


@contextmanager
def _served(run: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "hycop", "studio", str(run), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                raise RuntimeError(f"the studio of {run} did not start")
            yield found.group()
        finally:
            process.terminate()


def _ratios(name: str, page: Any, address: str, moves: int) -> list[Ratio]:
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.locator("main table").wait_for()
    page.wait_for_function(SETTLED)
    page.evaluate(WATCH)
    slider = page.get_by_role("slider", name="T (")
    slider.focus()
    at_rest = [_at_rest(page, "ArrowLeft" if turn % 2 else "ArrowRight") for turn in range(moves)]
    in_a_row, answers = _in_a_row(page)
    page.close()
    typical, worst = median(at_rest), max(at_rest)
    detail = f"median {typical:.0f} ms of {moves} moves, at most {worst:.0f} ms"
    print(f"studio: {name}: at rest {detail}; in a row {answers} answers, {in_a_row:.0f} ms")
    told = f"{answers} answers to {IN_A_ROW} moves; the last came {in_a_row:.0f} ms after its key"
    return [
        Ratio("studio", f"{name}, slider to picture / {PROMISED:.0f} ms", typical / PROMISED, 1.0, False, detail),
        Ratio(
            "studio", f"{name}, the last of keys in a row / {PROMISED:.0f} ms", in_a_row / PROMISED, 2.0, False, told
        ),
    ]


def _at_rest(page: Any, key: str) -> float:
    """Milliseconds from a key to the first picture of its answer."""
    page.evaluate(FORGET)
    page.keyboard.press(key)
    page.wait_for_function("() => window.painted.length && window.answered.length")
    elapsed = float(page.evaluate("() => Math.max(window.painted[0], window.answered[0]) - window.pressed[0]"))
    page.wait_for_timeout(400)  # the estimate is that of the last question until the controls have come to rest
    page.wait_for_function(SETTLED)
    page.wait_for_timeout(1200)
    return elapsed


def _in_a_row(page: Any) -> tuple[float, int]:
    """Milliseconds from the last of many keys to the program of its answer, and the answers in all."""
    page.evaluate(FORGET)
    for _ in range(IN_A_ROW):
        page.keyboard.press("ArrowRight")
        time.sleep(1e-3 * REPEATED)
    page.wait_for_function("() => window.answered.some((each) => each > window.pressed.at(-1))")
    page.wait_for_timeout(1500)  # for answers that came late
    last, answers = page.evaluate("() => [window.answered.at(-1) - window.pressed.at(-1), window.answered.length]")
    return float(last), int(answers)
