"""The studio in a real browser, and its server: who may see it, and how it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import axe_findings
from tests.helpers import ROOT, hycop_command, tiny_model

pytest.importorskip("panel", reason="needs the extra 'studio'")

PICTURES = ROOT / "build" / "screenshots"
PATIENCE = 60_000
"""Milliseconds to wait for the page: the machine may be busy."""

STEPS = """() => {
  for (const document of Bokeh.documents)
    for (const model of document._all_models.values())
      if (model.type === 'ColumnDataSource' && model.data.number !== undefined && model.data.lane !== undefined)
        return JSON.stringify([model.data.lane, model.data.lasts]);
}"""
"""The steps that the timeline draws."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studio") / "run"
    tiny_model().save(folder)
    return folder


@contextmanager
def served(run: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a studio that runs, and its process."""
    command = [sys.executable, "-m", "hycop", "studio", str(run), "--port", "0", "--no-browser", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, process.communicate()
            yield found.group(), process
        finally:
            process.kill()


def _status(port: int, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status
    finally:
        connection.close()


def test_beyond_this_machine_the_address_has_a_token_and_ctrl_c_ends_it_quietly(run: Path) -> None:
    with served(run, "--host", "0.0.0.0") as (address, process):
        found, token = re.findall(r":(\d+)/([\w-]{20,})/$", address)[0]
        port = int(found)
        assert _status(port, f"/{token}/") == 200
        for wrong in ("/", "/ws", f"/{'x' * len(token)}/", "/static/js/bokeh.min.js"):
            assert _status(port, wrong) == 404, wrong
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
        upgrade["Sec_WebSocket_Key"] = "AAAAAAAAAAAAAAAAAAAAAA=="
        assert _status(port, f"/{token}/ws", Origin="http://elsewhere.example", **upgrade) == 403
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr is not None and process.stderr.read() == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--port", "70000"), "--port is 70000"),
        (("--host", "203.0.113.7"), "--host 203.0.113.7"),
        (("--port", "busy"), "is in use; give another"),
    ],
)
def test_a_place_that_cannot_be_served_is_one_line(run: Path, options: tuple[str, str], told: str) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        words = [str(busy.getsockname()[1]) if word == "busy" else word for word in options]
        result = hycop_command("studio", run, "--no-browser", *words)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and told in result.stderr


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    result = hycop_command("studio", tmp_path / "nothing", "--no-browser")
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and "nothing" in result.stderr


def _settled(page: Any) -> None:
    """Waits until the estimate and the comparison are there."""
    page.wait_for_function(
        """() => {
          const seen = (root) => [...root.querySelectorAll('*')].flatMap(
            (node) => [...(node.matches('.estimate') ? [node.textContent] : []),
                       ...(node.shadowRoot ? seen(node.shadowRoot) : [])]);
          const found = seen(document);
          return found.length && found.every((text) => text !== '…');
        }""",
        timeout=PATIENCE,
    )
    page.locator("main table").wait_for(timeout=PATIENCE)


def _error_by_hand(page: Any) -> str:
    row = page.locator("tr", has_text="by hand")
    row.wait_for(timeout=PATIENCE)
    return str(row.locator(".error").inner_text())


@pytest.mark.validate
def test_a_visitor_asks_edits_and_uploads(run: Path, page: Any, complaints: list[str], tmp_path: Path) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with served(run) as (address, _):
        page.set_default_timeout(PATIENCE)
        page.goto(address)
        _settled(page)
        page.screenshot(path=PICTURES / "studio.png", full_page=True)

        before = page.evaluate(STEPS)
        page.get_by_role("slider", name="T (").press("PageDown")
        page.wait_for_function(f"() => ({STEPS})() !== {before!r}", timeout=PATIENCE)
        _settled(page)

        page.get_by_label("Duration of the step").fill("0.2")
        page.get_by_label("Duration of the step").press("Enter")
        first = _error_by_hand(page)
        assert page.get_by_text("is integrated over").count() == 1
        page.get_by_label("Duration of the step").fill("0.4")
        page.get_by_label("Duration of the step").press("Enter")
        page.locator("tr", has_text="by hand").get_by_text(first).wait_for(state="detached")
        assert float(_error_by_hand(page)) > float(first)
        page.get_by_role("button", name="Back to the model's program").click()
        page.locator("tr", has_text="by hand").wait_for(state="detached")

        (tmp_path / "bad.nc").write_text("these are no data")
        page.locator("input[type=file]").set_input_files(tmp_path / "bad.nc")
        alert = page.get_by_role("alert").filter(has_text="bad.nc")
        alert.wait_for()
        assert "Traceback" not in alert.inner_text() and alert.inner_text().startswith("bad.nc: ")
        page.screenshot(path=PICTURES / "studio-bad-file.png", full_page=True)

        page.wait_for_timeout(1200)  # names for screen readers come twice a second
        assert axe_findings(page) == []
        page.set_viewport_size({"width": 1000, "height": 800})
        page.emulate_media(color_scheme="dark")
        page.wait_for_timeout(800)
        page.screenshot(path=PICTURES / "studio-dark.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert axe_findings(page) == []
    assert complaints == []
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
