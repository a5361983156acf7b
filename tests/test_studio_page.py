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
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import hycop
from tests.browser import axe_findings
from tests.helpers import ROOT, hycop_command, tiny_model

pytest.importorskip("panel", reason="needs the extra 'studio'")

PICTURES = ROOT / "build" / "screenshots"
PATIENCE = 60_000
"""Milliseconds to wait for the page: the machine may be busy."""

COLLECTED = 0.05
"""Seconds for which the changes of a slider are collected before they are answered."""

STEPS = """() => {
  for (const document of Bokeh.documents)
    for (const model of document._all_models.values())
      if (model.type === 'ColumnDataSource' && model.data.number !== undefined && model.data.lane !== undefined)
        return JSON.stringify([model.data.lane, model.data.lasts]);
}"""
"""The steps that the timeline draws."""


COUNTED = """() => {
  const models = Bokeh.documents.flatMap((document) => [...document._all_models.values()]);
  const steps = models.find((model) => model.type === 'ColumnDataSource' && model.data.lasts !== undefined);
  window.drawn = 0;
  steps.properties.data.change.connect(() => window.drawn += 1);
}"""
"""Counts the programs that are drawn from now on."""


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
        assert process.stdout is not None and process.stdout.read().startswith("refused a page")


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


@pytest.fixture
def built(run: Path) -> Any:
    """A page without a browser: what comes later comes at once."""
    from hycop.studio.page import Page
    from hycop.studio.session import Session

    return Page(Session(hycop.HyCOP.load(run)))


def test_an_edit_changes_the_comparison_and_can_be_taken_back(built: Any) -> None:
    assert "by hand" not in built.table.object and "…" not in built.status.object
    own = built.editor.line.value
    built.step.value = 1
    built.editor.duration.value = 0.05
    assert built.shown.value == "by hand" and "by hand" in built.table.object
    assert "is integrated over" in built.warning.object and built.timeline.steps.data["lasts"][0] == "0.05"
    count = len(built.candidate().program)
    built.editor.add.clicks += 1
    assert len(built.candidate().program) == count + 1 and built.step.value == 2
    built.editor.later.clicks += 1
    built.editor.drop.clicks += 1
    assert len(built.candidate().program) == count
    built.editor.line.value = "advection 0.2, diffusion 0.2, reaction 0.2"
    assert len(built.candidate().program) == 3 and built.warning.object == ""
    built.back.clicks += 1
    assert built.editor.line.value == own and "by hand" not in built.table.object


def test_every_control_of_the_page_answers(built: Any) -> None:
    built.kind.value = "Error"
    assert "minus refined answer" in built.caption.object
    built.sidebar.tolerance.value = 1e-3
    built.sidebar.tolerance.param.trigger("value_throttled")
    assert "within the tolerance" in built.status.object
    built.sidebar.tolerance.value = None
    built.sidebar.boundary.value = "wall"
    assert "Not to be trusted" in built.status.object and "boundary periodic → wall" in built.status.object
    built.sidebar.boundary.value = "periodic"
    built.sidebar.primitives["advection"].value = "UpwindAdvection"
    assert "primitive advection was not trained with" in built.status.object
    built.sidebar.start.value = "ring"
    built.shown.value = "Strang"
    assert built.caption.object.count("Strang minus") == 1
    built.solve.clicks += 1
    assert "against the truth" in built.table.object and built.solve.disabled
    assert built.message.object == ""


def test_what_goes_wrong_is_a_sentence(built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = built.table.object
    built.sidebar.coefficients["Dx"].number.value = -1.0
    assert "parameter &#x27;Dx&#x27; is -1" in built.message.object and built.table.object == before
    built.sidebar.coefficients["Dx"].number.value = 0.1
    assert built.message.object == ""
    built.editor.line.value = "advection"
    assert "a primitive and a duration are needed" in built.message.object
    monkeypatch.setattr(built.session, "ask", lambda controls: 1 / 0)
    built.sidebar.time.number.value = 0.1
    assert "a fault of hycop: ZeroDivisionError" in built.message.object


def test_a_notebook_gets_an_object_that_shows_itself(run: Path) -> None:
    shown = hycop.HyCOP.load(run).explore()
    assert hasattr(shown, "_repr_mimebundle_")
    with pytest.raises(hycop.HyCOPError, match="explore takes a model"):
        hycop.explore(run)  # type: ignore[arg-type]


@pytest.mark.parametrize(("shape", "lengths"), [((16,), (2.0,)), ((8, 4), (2.0, 1.0)), ((8, 4, 6), (2.0, 1.0, 1.0))])
def test_fields_of_every_dimension(shape: tuple[int, ...], lengths: tuple[float, ...]) -> None:
    from hycop.studio.figures import field_figure

    field, values = field_figure(lengths), np.random.default_rng(0).random(shape)
    field.show(values, lengths, (0.0, 1.0), False)
    if len(shape) == 1:
        assert np.array_equal(field.sources[1].data["u"], values)
    else:  # the first axis is x; of a box the middle slice is shown
        flat = values[:, :, 3] if len(shape) == 3 else values
        assert np.allclose(field.source.data["image"][0], flat.T, atol=1e-7)


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

        page.evaluate(COUNTED)
        begin = perf_counter()
        for _ in range(20):  # faster than answers come: only the newest counts
            page.get_by_role("slider", name="T (").press("ArrowRight")
        page.wait_for_timeout(500)
        assert 1 <= page.evaluate("window.drawn") <= 1 + (perf_counter() - begin) / COLLECTED
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
